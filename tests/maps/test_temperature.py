"""Temperatures: what they give on the rows they were fitted to, applied, written and read."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import special, stats

import safecal
from safecal.inference import Interval
from safecal.maps.inverse_temperature import effective_rows, temper
from safecal.maps.temperature import SafeTemperature, Temperature

KINDS = [Temperature, SafeTemperature]


def binary(n: int = 400, t: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes, and log-odds that are ``t`` times too large."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(0, 2, n)
    return (rng.random(n) < special.expit(log_odds)).astype(int), t * log_odds


def classes(n: int = 400, k: int = 5, t: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, (n, k))
    return (z + rng.gumbel(size=z.shape)).argmax(axis=1), t * z


def states(n: int = 300, d: int = 3, t: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return states, means and covariances that are ``t`` times too small."""
    rng = np.random.default_rng(seed)
    factor = np.tril(rng.normal(size=(n, d, d))) * 0.3 + np.eye(d)
    mean = rng.normal(size=(n, d))
    x = mean + math.sqrt(t) * (factor @ rng.normal(size=(n, d, 1)))[..., 0]
    return x, mean, factor @ factor.transpose(0, 2, 1)


def weight(n: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.0, 3.0, n)


@pytest.mark.parametrize("weighted", [False, True])
def test_ecd_is_0_on_the_rows_a_temperature_was_fitted_to(weighted: bool) -> None:
    y, odds = binary()
    w = weight(len(y)) if weighted else None
    model = Temperature().fit(y, logits=odds, sample_weight=w)
    assert 1.5 < model.temperature_ < 3.0
    assert abs(safecal.ecd(y, model.apply(logits=odds), sample_weight=w)) <= 1e-8
    assert abs(safecal.ecd(y, logits=odds / model.temperature_, sample_weight=w)) <= 1e-10
    assert abs(safecal.ecd(y, model.apply(special.expit(odds)), sample_weight=w)) <= 1e-8

    y, z = classes()
    model.fit(y, logits=z, sample_weight=w)
    assert abs(safecal.ecd(y, model.apply(logits=z), sample_weight=w)) <= 1e-8
    p = special.softmax(z, axis=1)
    assert abs(safecal.ecd(y, Temperature().fit(y, p, sample_weight=w).apply(p), sample_weight=w)) <= 1e-8

    x, mean, cov = states(400)
    model.fit_states(x, mean, cov=cov, sample_weight=w)
    mended = safecal.gaussian(x, mean, cov=model.apply_states(cov=cov))
    assert abs(mended.summary(w).ecd) <= 1e-8
    assert model.temperature_ == pytest.approx(safecal.nees(x, mean, cov=cov, sample_weight=w) / 3)


def test_under_confident_models_are_sharpened_to_0_too() -> None:
    y, odds = binary(t=0.25)
    model = Temperature().fit(y, logits=odds)
    assert model.temperature_ < 0.5
    assert abs(safecal.ecd(y, model.apply(logits=odds))) <= 1e-8


def test_temperature_of_a_density_is_that_of_the_gaussian_it_is() -> None:
    rng = np.random.default_rng(0)
    x, sd = rng.normal(0, 1.5, 60), rng.uniform(0.5, 2.0, 60)
    for kind in KINDS:
        a = kind().fit_predictions(safecal.density(x, stats.norm(0.0, sd)))
        b = kind().fit_states(x, np.zeros(60), std=sd)
        assert a.temperature_ == pytest.approx(b.temperature_, rel=1e-6)
        assert a.family_ == "density"
        assert a.sentence_ == f"Densities are raised to the power {a.beta_:.2g}."
        with pytest.raises(safecal.errors.UnavailableError, match="density predictions does not apply to classes"):
            a.apply([0.5])


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.25])
def test_the_safe_beta_is_where_the_bound_on_g_is_0(alpha: float) -> None:
    y, odds = binary(150, 1.7)
    w = weight(150)
    for sample_weight in (None, w):
        beta = SafeTemperature(alpha).fit(y, logits=odds, sample_weight=sample_weight).beta_
        c = np.ones(150) if sample_weight is None else w
        p = special.expit(beta * odds)
        g = (p - y) * odds  # E_{p_beta} log p - log p(y)
        n = c.sum() ** 2 / (c**2).sum()
        seen = (c**2 * (g - np.average(g, weights=c)) ** 2).sum() * n / (n - 1)
        model = (c**2 * p * (1 - p) * odds**2).sum()
        bound = (c * g).sum() + stats.t.ppf(1 - alpha, n - 1) * math.sqrt(max(seen, model))
        assert bound == pytest.approx(0.0, abs=1e-7)


def test_the_safe_gaussian_in_closed_form() -> None:
    x, mean, cov = states(80, 3)
    e = safecal.nees(x, mean, cov=cov) * 80
    t = stats.t.ppf(0.95, 79)
    model = SafeTemperature().fit_states(x, mean, cov=cov)
    by_model = (80 * 3 - t * math.sqrt(2 * 80 * 3)) / e
    assert model.beta_ <= by_model * (1 + 1e-9)  # less, where the errors vary more than the model says
    small = mean + (x - mean) / np.sqrt(safecal.gaussian(x, mean, cov=cov).nees(slice(0, 80))[0] / 3)[:, None]
    same = SafeTemperature().fit_states(small, mean, cov=cov)  # every NEES is 3: no spread at all
    assert same.beta_ == pytest.approx((80 * 3 - t * math.sqrt(2 * 80 * 3)) / 240)


def test_safe_is_safer_the_smaller_alpha_and_the_fewer_the_rows() -> None:
    y, odds = binary(2000)
    temperatures = [SafeTemperature(alpha).fit(y, logits=odds).temperature_ for alpha in (0.4, 0.1, 0.05, 0.01, 0.001)]
    assert temperatures == sorted(temperatures)
    plain = Temperature().fit(y, logits=odds).temperature_
    assert plain < temperatures[0]
    gaps = [
        SafeTemperature().fit(y[:n], logits=odds[:n]).temperature_
        / Temperature().fit(y[:n], logits=odds[:n]).temperature_
        for n in (50, 200, 2000)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1.15


def test_a_safe_temperature_exists_where_no_outcome_surprised() -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(4, 1, 100)
    model = SafeTemperature().fit(np.ones(100), logits=np.abs(odds))
    assert 0.0 < model.beta_ < math.inf
    assert (model.interval_.value, model.interval_.low) == (0.0, 0.0)
    assert model.interval_.high > 0.0


def test_sharpening_is_a_choice() -> None:
    y, odds = binary(2000, t=0.3)
    sharp = SafeTemperature().fit(y, logits=odds)
    assert sharp.temperature_ < 0.5
    kept = SafeTemperature(sharpen=False).fit(y, logits=odds)
    assert kept.temperature_ == 1.0
    y, odds = binary(2000)
    both = [SafeTemperature(sharpen=s).fit(y, logits=odds).temperature_ for s in (True, False)]
    assert both[0] == both[1] > 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_two_columns_agree_with_one(kind: type[Temperature] | type[SafeTemperature]) -> None:
    y, odds = binary()
    p = special.expit(odds)
    one, two = kind().fit(y, logits=odds), kind().fit(y, logits=np.stack([0 * odds, odds], axis=1))
    three, four = kind().fit(y, p), kind().fit(y, np.stack([1 - p, p], axis=1))
    for other in (two, three, four):
        assert other.temperature_ == pytest.approx(one.temperature_, rel=1e-9)
        assert other.interval_.high == pytest.approx(one.interval_.high, rel=1e-6)
    assert two.apply(logits=np.stack([0 * odds, odds], axis=1))[:, 1] == pytest.approx(one.apply(logits=odds), rel=1e-8)
    assert one.apply(np.stack([1 - p, p], axis=1))[:, 1] == pytest.approx(one.apply(p), rel=1e-12)


def test_labels_by_name() -> None:
    y, odds = binary()
    names = np.where(y == 1, "sick", "well")
    plain = Temperature().fit(y, logits=odds)
    assert Temperature().fit(names, logits=odds, pos_label="sick").beta_ == plain.beta_
    columns = np.stack([odds, 0 * odds], axis=1)
    assert Temperature().fit(names, logits=columns, labels=["sick", "well"]).beta_ == pytest.approx(plain.beta_)


def test_float32_and_other_arrays_are_taken_and_left_alone() -> None:
    y, z = classes()
    p = special.softmax(z, axis=1).astype(np.float32)
    p /= p.sum(axis=1, keepdims=True)
    odds = binary()[1].astype(np.float32)
    for array in (p, odds, y):
        array.flags.writeable = False
    model = SafeTemperature().fit(y, p)
    out = model.apply(p)
    assert (out.dtype, out.shape) == (np.float64, p.shape)
    assert model.temperature_ == pytest.approx(SafeTemperature().fit(y, logits=z).temperature_, rel=1e-4)
    assert model.apply(logits=odds).dtype == np.float64
    assert model.apply([0.2, 0.9]).shape == (2,)
    cov = np.eye(3, dtype=np.float32)
    cov.flags.writeable = False
    assert Temperature().fit_states(*states()[:2], cov=cov).apply_states(cov=cov).dtype == np.float64


def fitted(t: float, family: str = "bernoulli") -> Temperature:
    """Return a recalibration with a given temperature."""
    interval = Interval(t, t, t, 0.95, "none").to_dict()
    fit = {"beta": 1.0 / t, "interval": interval, "n": 100}
    content = {"level": 0.95, "family": family, "fit": fit, "groups": None}
    return Temperature.from_dict({"kind": "safecal.temperature", "version": 1, **content})


def test_temperature_1_changes_nothing() -> None:
    p = np.array([0.0, 1e-300, 1e-12, 0.3, 0.5, 0.75, 1 - 1e-12, 1 - 2.0**-53, 1.0])
    assert fitted(1.0).apply(p) == pytest.approx(p, rel=1e-12, abs=0.0)
    q = np.random.default_rng(0).dirichlet(np.full(6, 0.1), 200)
    assert fitted(1.0).apply(q) == pytest.approx(q, rel=1e-12, abs=1e-300)
    assert fitted(1.0, "gaussian").apply_states(var=[1.0, 2.0]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("t", [0.01, 0.5, 3.0, 1e5])
def test_applied_it_keeps_the_order_and_certainties(t: float) -> None:
    model = fitted(t)
    p = np.linspace(0.0, 1.0, 1001)
    out = model.apply(p)
    assert (out[0], out[500], out[-1]) == (0.0, 0.5, 1.0)
    assert (np.diff(out) >= 0).all()
    assert out + model.apply(1.0 - p) == pytest.approx(np.ones(1001))
    assert model.apply(logits=[-np.inf, -1e308, 0.0, 1e308, np.inf]).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    rows = model.apply([[0.0, 0.25, 0.75], [0.0, 0.0, 1.0]])
    assert rows[:, 0].tolist() == [0.0, 0.0]
    assert rows[1].tolist() == [0.0, 0.0, 1.0]
    assert rows.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert rows[0, 2] / rows[0, 1] == pytest.approx(3 ** (1 / t)) if t > 0.1 else rows[0, 2] == 1.0
    wide = model.apply(logits=[[-np.inf, -1e308, 1e308], [5.0, 5.0, -np.inf]])
    assert wide.tolist() == [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]


def test_powers_are_taken_in_logs() -> None:
    p = np.array([[1e-300, 1e-200, 1.0]])
    assert fitted(100.0).apply(p)[0] == pytest.approx(np.array([1e-3, 1e-2, 1.0]) / 1.011)
    assert fitted(100.0).apply([1e-300])[0] == pytest.approx(1e-3 / 1.001)
    assert fitted(0.01).apply([1e-5])[0] == pytest.approx(0.0)


def test_states_keep_their_form() -> None:
    x, mean, cov = states()
    model = Temperature().fit_states(x, mean, cov=cov)
    t = model.temperature_
    chol = np.linalg.cholesky(cov)
    assert model.apply_states(cov=cov) == pytest.approx(t * cov)
    assert model.apply_states(cov=cov[0]) == pytest.approx(t * cov[0])
    assert model.apply_states(chol=chol) == pytest.approx(math.sqrt(t) * chol)
    assert model.apply_states(precision=np.linalg.inv(cov[:4])) == pytest.approx(np.linalg.inv(cov[:4]) / t)
    assert model.apply_states(std=2.0) == pytest.approx(2.0 * math.sqrt(t))
    assert model.apply_states(var=np.ones((4, 3))) == pytest.approx(np.full((4, 3), t))
    for form in ({"chol": chol}, {"precision": np.linalg.inv(cov)}):
        assert Temperature().fit_states(x, mean, **form).temperature_ == pytest.approx(t)


def test_the_interval_of_a_temperature() -> None:
    y, odds = binary(1000)
    model = Temperature(level=0.9).fit(y, logits=odds)
    assert model.interval_.value == model.temperature_ == 1.0 / model.beta_
    assert model.interval_.low < model.temperature_ < model.interval_.high
    assert model.interval_.level == 0.9
    wider = Temperature(level=0.99).fit(y, logits=odds).interval_
    assert wider.low < model.interval_.low < model.interval_.high < wider.high
    safe = SafeTemperature(0.05).fit(y, logits=odds)
    assert safe.interval_.level == pytest.approx(0.9)
    assert safe.interval_.value == model.temperature_ < safe.temperature_


def grouped() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y, odds = binary(900, t=1.0)
    group = np.repeat(["north", "south"], 450)
    return y, np.where(group == "north", 1.5, 4.0) * odds, group


@pytest.mark.parametrize("form", ["logits", "y_prob", "classes", "cov", "std", "shared"])
def test_each_group_has_the_safe_temperature_of_its_own_rows(form: str) -> None:
    y, odds, group = grouped()
    w = weight(len(y))
    mix = np.random.default_rng(3).permutation(len(y))
    y, odds, group = y[mix], odds[mix], group[mix]
    x, mean, cov = states(900)
    full = {
        "logits": lambda r: safecal.bernoulli(y[r], logits=odds[r]),
        "y_prob": lambda r: safecal.bernoulli(y[r], special.expit(odds[r])),
        "classes": lambda r: safecal.categorical(y[r], logits=np.stack([0 * odds, odds], axis=1)[r]),
        "cov": lambda r: safecal.gaussian(x[r], mean[r], cov=cov[r]),
        "std": lambda r: safecal.gaussian(x[r], mean[r], std=np.ones(x.shape)[r]),
        "shared": lambda r: safecal.gaussian(x[r], mean[r], std=[1.0, 2.0, 3.0]),
    }[form]
    model = SafeTemperature(shared=False).fit_predictions(full(np.arange(900)), by=group, sample_weight=w)
    assert model.groups_ is not None
    assert list(model.groups_) == ["north", "south"]
    for key, fit in model.groups_.items():
        rows = np.flatnonzero(group == key)
        alone = SafeTemperature().fit_predictions(full(rows), sample_weight=w[rows])
        assert (fit.beta, fit.interval, fit.n) == (alone.beta_, alone.interval_, alone.n_)
        assert fit.temperature == alone.temperature_
    assert model.n_ == 900
    assert model.beta_ == SafeTemperature().fit_predictions(full(np.arange(900)), sample_weight=w).beta_


def test_all_rows_count_as_30_more_in_each_group() -> None:
    y, odds, group = grouped()
    rows = np.concatenate([np.flatnonzero(group == "south"), np.arange(900)])
    lent = np.concatenate([np.ones(450), np.full(900, 30 / 900)])
    model = Temperature().fit(y, logits=odds, by=group)
    alone = Temperature().fit(y[rows], logits=odds[rows], sample_weight=lent)
    assert model.groups_ is not None
    south = model.groups_["south"]
    assert south.beta == pytest.approx(alone.beta_, rel=1e-9)
    assert south.interval == Temperature().fit(y[450:], logits=odds[450:]).interval_
    assert south.n == 450
    small = Temperature().fit(y, logits=odds, by=np.where(np.arange(900) == 0, "one", "rest"))
    assert small.groups_ is not None
    assert small.groups_["one"].beta == pytest.approx(small.beta_, rel=0.05)


def test_groups_without_weight_or_of_one_cluster_have_no_interval() -> None:
    y, odds, group = grouped()
    weight = np.where(group == "south", 0.0, 1.0)
    none = Temperature().fit(y, logits=odds, by=group, sample_weight=weight)
    assert none.groups_ is not None
    assert none.groups_["south"].interval.method == "none: no row has a weight"
    assert none.groups_["south"].beta == pytest.approx(none.beta_, rel=1e-9)
    one = Temperature().fit(y, logits=odds, by=group, cluster=np.where(group == "south", -1, np.arange(900)))
    assert one.groups_ is not None
    assert one.groups_["south"].interval.method == "none: all rows are of one cluster"


def test_groups_are_applied_row_by_row() -> None:
    y, odds, group = grouped()
    model = Temperature().fit(y, logits=odds, by=group)
    assert model.groups_ is not None
    north, south = (model.groups_[key].temperature for key in ("north", "south"))
    out = model.apply(logits=[2.0, 2.0, -1.0], by=["south", "north", "north"])
    assert out == pytest.approx(special.expit([2.0 / south, 2.0 / north, -1.0 / north]))
    for key in ("north", "south"):
        rows = group == key
        assert abs(safecal.ecd(y[rows], model.apply(logits=odds, by=group)[rows])) <= 0.02  # 30 rows are lent
    two = model.apply(special.softmax(np.stack([0 * odds, odds], axis=1), axis=1), by=group)
    assert two[:, 1] == pytest.approx(model.apply(logits=odds, by=group))

    x, mean, cov = states(600)
    number = np.arange(600) % 2
    model.fit_states(x, mean, cov=cov, by=number)
    assert model.groups_ is not None
    t = np.array([model.groups_[k].temperature for k in number.tolist()])
    assert model.apply_states(cov=cov, by=number) == pytest.approx(cov * t[:, None, None])
    assert model.apply_states(std=np.ones(600), by=number) == pytest.approx(np.sqrt(t))
    assert model.apply_states(var=np.ones((600, 3)), by=number) == pytest.approx(np.tile(t[:, None], 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [False, True])
def test_json_round_trip_is_exact(kind: type[Temperature] | type[SafeTemperature], groups: bool) -> None:
    y, odds, group = grouped()
    model = kind().fit(y, logits=odds, by=group if groups else None)
    text = json.dumps(model.to_dict(), allow_nan=False)
    again = kind.from_dict(json.loads(text))
    assert again.to_dict() == model.to_dict()
    assert repr(again) == repr(model)
    for name in ("temperature_", "beta_", "interval_", "n_", "family_", "groups_"):
        assert getattr(again, name) == getattr(model, name)
    column = group if groups else None
    assert (again.apply(logits=odds, by=column) == model.apply(logits=odds, by=column)).all()


def test_json_keeps_infinite_ends_and_group_keys() -> None:
    odds = np.abs(np.random.default_rng(0).normal(4, 1, 100))
    model = SafeTemperature(0.1, sharpen=False).fit(np.ones(100), logits=odds)
    again = SafeTemperature.from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False)))
    assert (again.alpha, again.sharpen, again.interval_) == (0.1, False, model.interval_)
    y, odds, group = grouped()
    for keys in ([1, 2], [0.5, None], [("a", 1), ("b", 2)], [True, False]):
        column = np.empty(900, dtype=object)
        column[:] = [keys[int(g == "south")] for g in group]
        groups = SafeTemperature().fit(y, logits=odds, by=column)
        again = SafeTemperature.from_dict(json.loads(json.dumps(groups.to_dict(), allow_nan=False)))
        assert again.groups_ == groups.groups_
        assert (again.apply(logits=odds, by=column) == groups.apply(logits=odds, by=column)).all()


def test_repr_shows_the_value() -> None:
    assert repr(SafeTemperature(0.1)) == "SafeTemperature(alpha=0.1, sharpen=True, shared=True)"
    y, odds, group = grouped()
    text = repr(Temperature().fit(y, logits=odds, by=group))
    assert text.startswith("Temperature(level=0.95): T = ")
    assert text.endswith("from 900 rows in 2 groups")


@pytest.mark.proof
def test_many_rows_in_blocks_give_what_rows_at_once_give() -> None:
    y, odds = binary(150_000)
    rows = temper(safecal.bernoulli(y, logits=odds))
    assert effective_rows(rows) == 150_000
    model = SafeTemperature().fit(y, logits=odds)
    beta = model.beta_
    p = special.expit(beta * odds)
    g = (p - y) * odds
    sd = math.sqrt(max((p * (1 - p) * odds**2).sum(), g.var(ddof=1) * len(g)))
    assert g.sum() + stats.t.ppf(0.95, len(g) - 1) * sd == pytest.approx(0.0, abs=1e-4)


def test_heavy_tails_do_not_hide_the_other_rows() -> None:
    # At beta = 0 one huge logit owns the variance and nothing is rejected; a little above it says nothing any more.
    y, odds = binary(300, t=1.0)
    y, odds = np.append(y, 1), np.append(odds, 1e5)
    assert SafeTemperature().fit(y, logits=odds).temperature_ < 1.6


@pytest.mark.proof
def test_flat_predictions_without_a_surprise_are_sharpened_as_far_as_numbers_go() -> None:
    odds = 1e-7 * np.random.default_rng(0).normal(size=200)
    assert SafeTemperature().fit(odds > 0, logits=odds).beta_ == 2.0**20


def test_groups_share_alpha_unless_each_is_to_have_its_own() -> None:
    y, odds = binary(2000)
    group = np.arange(2000) % 4
    shared, each = (SafeTemperature(shared=s).fit(y, logits=odds, by=group) for s in (True, False))
    assert shared.groups_ is not None
    assert each.groups_ is not None
    for key in range(4):
        some = group == key
        for fitted, alpha in ((shared, 0.0125), (each, 0.05)):
            assert fitted.groups_ is not None
            alone = SafeTemperature(alpha).fit(y[some], logits=odds[some])
            assert fitted.groups_[key].beta == pytest.approx(alone.beta_, rel=1e-9)
    assert shared.beta_ == each.beta_  # all rows are one
    assert SafeTemperature.from_dict(shared.to_dict()).shared
    before = {name: value for name, value in shared.to_dict().items() if name != "shared"}
    assert not SafeTemperature.from_dict(before).shared  # so they were fitted
