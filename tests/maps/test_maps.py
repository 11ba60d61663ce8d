"""Maps: each finds what was planted, keeps what it promises, is written and read, and refuses what it cannot mend."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from scipy import optimize, special, stats

import safecal
from safecal import maps
from safecal.errors import DocumentError, LabelError, OptionError, UnavailableError

TWO: list[Callable[[], maps.Map]] = [maps.Identity, maps.Temperature, maps.Affine, maps.Beta, maps.Isotonic]
MANY: list[Callable[[], maps.Map]] = [maps.Identity, maps.Temperature, maps.Affine, maps.Vector]


def two(n: int = 4000, slope: float = 0.5, shift: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes, and log-odds whose slope and shift are wrong."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, n)
    return rng.random(n) < special.expit(slope * z + shift), z


def many(n: int = 4000, classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, (n, classes))
    return (0.5 * z + np.arange(classes) / 2.0 + rng.gumbel(size=z.shape)).argmax(axis=1), z


def test_affine_is_the_likeliest_line_with_its_prior() -> None:
    y, z = two(500)

    def loss(t: np.ndarray) -> float:
        eta = t[0] * z + t[1]
        level = (t[0] - 1.0) * z.mean() + t[1]
        return float((np.logaddexp(0.0, eta) - y * eta).sum() + 0.025 * ((t[0] - 1.0) ** 2 + level**2))

    wanted = optimize.minimize(loss, [1.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    model = maps.Affine().fit(y, logits=z)
    assert (model.slope_, model.shift_) == pytest.approx(tuple(wanted), rel=1e-6)
    assert model.apply(logits=z) == pytest.approx(special.expit(model.slope_ * z + model.shift_))
    assert model.sentence_.startswith("Log-odds are shrunk by a factor of")


def test_affine_of_many_classes_finds_a_slope_and_a_shift_for_each() -> None:
    y, z = many(20_000)
    model = maps.Affine().fit(y, logits=z)
    assert model.slope_ == pytest.approx(0.5, abs=0.03)
    assert np.diff(model.shift_) == pytest.approx([0.5, 0.5, 0.5], abs=0.12)
    assert sum(model.shift_) == pytest.approx(0.0, abs=1e-6)
    assert model.parameters_ == 4
    assert abs(safecal.ecd(y, model.apply(logits=z))) < 1e-3


def test_vector_finds_what_is_wrong_with_each_class() -> None:
    rng = np.random.default_rng(1)
    logp = special.log_softmax(rng.normal(0.0, 2.0, (40_000, 3)), axis=1)
    y = (logp * [1.0, 0.5, 0.5] + rng.gumbel(size=logp.shape)).argmax(axis=1)
    model = maps.Vector().fit(y, logits=logp)
    assert model.weights_ == pytest.approx((1.0, 0.5, 0.5), abs=0.06)
    assert safecal.nll(y, model.apply(logits=logp)) < safecal.nll(
        y, maps.Affine().fit(y, logits=logp).apply(logits=logp)
    )


def test_many_classes_with_few_rows_are_pulled_together() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, (6000, 40))
    y = (0.5 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    model = maps.Vector().fit(y[:1000], logits=z[:1000])
    assert np.ptp(model.weights_) < 0.05  # nothing differs from class to class, and little is made of it
    rest = slice(1000, None)
    plain = maps.Temperature().fit(y[:1000], logits=z[:1000])
    assert safecal.nll(y[rest], model.apply(logits=z[rest])) < safecal.nll(y[rest], plain.apply(logits=z[rest])) + 0.003


@pytest.mark.proof
def test_more_numbers_than_a_matrix_holds_are_fitted_too() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, (2000, 130))
    y = (0.7 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    model = maps.Vector().fit(y, logits=z)
    assert np.mean(model.weights_) == pytest.approx(0.7, abs=0.04)


def test_beta_is_affine_where_that_is_all_and_bends_where_it_is_not() -> None:
    y, z = two(20_000)
    model = maps.Beta().fit(y, logits=z)
    assert (model.a_, model.b_) == pytest.approx((0.5, 0.5), abs=0.06)
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.5, 20_000)
    y = rng.random(20_000) < special.expit(np.where(z > 0.0, z / 3.0, z))
    bent, straight = (kind().fit(y, logits=z).apply(logits=z) for kind in (maps.Beta, maps.Affine))
    assert safecal.nll(y, bent) < safecal.nll(y, straight) - 0.002


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_beta_never_falls(sign: float) -> None:
    rng = np.random.default_rng(3)
    z = sign * rng.normal(0.0, 2.0, 3000)
    y = rng.random(3000) < special.expit(sign * np.where(sign * z > 0.0, -0.3 * sign * z, 2.0 * sign * z))
    model = maps.Beta().fit(y, logits=z)
    assert 0.0 in (model.a_, model.b_)
    assert (np.diff(model.apply(logits=np.linspace(-8.0, 8.0, 200))) >= 0.0).all()
    assert np.isfinite(model.apply_logits([0.0, 1.0])).sum() == 1


def test_isotonic_is_monotone_never_certain_and_has_few_steps() -> None:
    y, z = two(5000)
    model = maps.Isotonic().fit(y, logits=z)
    p = model.apply(logits=np.linspace(-30.0, 30.0, 999))
    assert (np.diff(p) >= 0.0).all()
    assert 0.0 < p[0] < p[-1] < 1.0
    assert 4 < len(model.values_) < 25
    assert model.apply([0.0, 1.0]).tolist() == [p[0], p[-1]]


def test_equal_predictions_never_part() -> None:
    y = np.r_[np.zeros(40), np.ones(60)]  # sorted by outcome
    model = maps.Isotonic().fit(y, np.full(100, 0.8))
    assert len(model.values_) == 1
    assert model.apply([0.1, 0.9]) == pytest.approx([0.6, 0.6])


def test_isotonic_takes_outcomes_that_were_called_impossible() -> None:
    p = np.r_[np.zeros(100), np.ones(100)]
    y = np.r_[np.arange(100) < 10, np.arange(100) < 90]
    model = maps.Isotonic().fit(y, p)
    assert model.apply([0.0, 0.5, 1.0]) == pytest.approx([11 / 102, 11 / 102, 91 / 102])


def test_axes_are_the_likeliest_bias_and_factors() -> None:
    rng = np.random.default_rng(0)
    factor = np.tril(rng.normal(size=(3000, 2, 2))) * 0.3 + np.eye(2)
    cov = factor @ factor.transpose(0, 2, 1)
    mean = rng.normal(size=(3000, 2))
    scale, bias = np.array([1.5, 0.7]), np.array([0.4, -0.2])
    x = mean + bias + scale * (factor @ rng.normal(size=(3000, 2, 1)))[..., 0]
    model = maps.Axes().fit_states(x, mean, cov=cov)
    assert model.factor_ == pytest.approx(scale, rel=0.05)
    assert model.bias_ == pytest.approx(bias, abs=0.05)

    def nll(t: np.ndarray) -> float:
        moved = safecal.gaussian(x, mean + t[:2], cov=cov * np.outer(t[2:], t[2:]))
        return safecal.Summary.nll.fget(moved.summary())  # type: ignore[attr-defined, no-any-return]

    best = np.r_[model.bias_, model.factor_]
    for j in range(4):
        for step in (-1e-3, 1e-3):
            assert nll(best) < nll(best + step * np.eye(4)[j])
    again = model.apply_predictions(safecal.gaussian(x, mean, cov=cov))
    assert again.summary().nll == pytest.approx(nll(best))


@pytest.mark.parametrize("form", ["std", "var", "cov", "chol", "precision", "shared"])
def test_axes_of_every_form_of_a_spread(form: str) -> None:
    rng = np.random.default_rng(1)
    std = rng.uniform(0.5, 2.0, (500, 2))
    x = rng.normal(size=(500, 2)) * std * [2.0, 1.0]
    cov = np.einsum("ni,ij->nij", std**2, np.eye(2))
    spreads = {
        "std": {"std": std}, "var": {"var": std**2}, "cov": {"cov": cov}, "chol": {"chol": np.sqrt(cov)},
        "precision": {"precision": np.linalg.inv(cov)}, "shared": {"std": [1.0, 1.0]},
    }[form]  # fmt: skip
    zero = np.zeros((500, 2))
    model = maps.Axes().fit_states(x, zero, **spreads)
    if form != "shared":
        assert model.factor_ == pytest.approx(maps.Axes().fit_states(x, zero, std=std).factor_)
    name, spread = next(iter(spreads.items()))
    applied = safecal.gaussian(x, model.apply_mean(zero), **{name: model.apply_states(**{name: spread})})
    whole = model.apply_predictions(safecal.gaussian(x, zero, **spreads))
    assert applied.summary().nll == pytest.approx(whole.summary().nll)
    assert abs(applied.summary().ecd) < 1e-9


def test_one_axis_is_a_column() -> None:
    x = np.random.default_rng(0).normal(0.5, 2.0, 400)
    model = maps.Axes().fit_states(x, np.zeros(400), std=1.0)
    assert model.apply_mean([0.0, 1.0]) == pytest.approx(np.array([0.0, 1.0]) + x.mean())
    assert model.apply_states(std=np.ones(3)) == pytest.approx(np.full(3, x.std()))
    by = np.arange(400) % 2
    groups = maps.Axes().fit_states(x, np.zeros(400), std=1.0, by=by)
    assert groups.apply_states(std=np.ones(400), by=by).shape == (400,)
    assert groups.apply_mean(np.zeros(400), by=by).shape == (400,)


@pytest.mark.parametrize("kind", TWO)
def test_two_columns_are_one(kind: Callable[[], maps.Map]) -> None:
    y, z = two()
    one, both = kind().fit(y, logits=z), kind().fit(y.astype(int), logits=np.stack([0 * z, z], axis=1))
    assert both.apply(logits=z) == pytest.approx(one.apply(logits=z), rel=1e-9)
    columns = one.apply(logits=np.stack([0 * z, z], axis=1))
    assert columns[:, 1] == pytest.approx(one.apply(logits=z))
    assert columns.sum(axis=1) == pytest.approx(np.ones(len(z)))


@pytest.mark.parametrize("kind", [*TWO, lambda: maps.Safe(maps.Affine()), lambda: maps.Safe(maps.Isotonic())])
def test_whole_weights_are_repeated_rows(kind: Callable[[], maps.Map]) -> None:
    y, z = two(600)
    w = np.random.default_rng(0).integers(1, 3, 600)
    plain = kind()
    if isinstance(plain, maps.Safe):  # its folds are those of rows
        assert plain.fit(y, logits=z, sample_weight=w).temperature_ > 1.0
        return
    weighted = kind().fit(y, logits=z, sample_weight=w)
    repeated = kind().fit(np.repeat(y, w), logits=np.repeat(z, w))
    assert weighted.apply(logits=z) == pytest.approx(kind().fit(y, logits=z, sample_weight=3.0 * w).apply(logits=z))
    if isinstance(plain, maps.Isotonic):
        return  # as many rows, so as few steps
    slack = 2e-3 if isinstance(plain, maps.Affine | maps.Beta) else 1e-9  # the prior weighs a row
    assert weighted.apply(logits=z) == pytest.approx(repeated.apply(logits=z), abs=slack)


@pytest.mark.parametrize("kind", TWO)
@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize("by", [False, True])
def test_documents_of_two_classes(kind: Callable[[], maps.Map], safe: bool, by: bool) -> None:
    y, z = two(900)
    group = np.arange(900) % 2 if by else None
    model = (maps.Safe(kind()) if safe else kind()).fit(y, logits=z, by=group)
    again = maps.from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False)))
    assert type(again) is type(model)
    assert again.to_dict() == model.to_dict()
    assert repr(again) == repr(model)
    assert again.sentence_ == model.sentence_
    assert again.parameters_ == model.parameters_
    assert (again.apply(logits=z, by=group) == model.apply(logits=z, by=group)).all()


@pytest.mark.parametrize("kind", MANY)
def test_documents_of_many_classes(kind: Callable[[], maps.Map]) -> None:
    y, z = many(900)
    for model in (kind().fit(y, logits=z), maps.Safe(kind()).fit(y, logits=z)):
        again = maps.from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False)))
        assert (again.apply(logits=z) == model.apply(logits=z)).all()
        assert repr(again) == repr(model)


def test_classes_in_another_order_are_refused(rng: np.random.Generator) -> None:
    pd = pytest.importorskip("pandas")
    z = rng.normal(0, 2, (500, 3))
    y = np.array(["cat", "dog", "eel"])[(z + [1.0, 0.0, 0.0] + rng.gumbel(size=z.shape)).argmax(axis=1)]
    named = maps.Safe(maps.Affine()).fit(y, logits=z, labels=["cat", "dog", "eel"])
    model = maps.from_dict(json.loads(json.dumps(named.to_dict())))
    assert model.names_ == model.safe_.names_ == ("cat", "dog", "eel")
    frame = pd.DataFrame(z, columns=["z_cat", "z_dog", "z_eel"])
    assert np.array_equal(model.apply(logits=frame), named.apply(logits=z))
    with pytest.raises(LabelError, match=r"order of the fit.*\n\nHint: `logits\[\['z_cat', 'z_dog', 'z_eel'\]\]`"):
        model.apply(logits=frame[["z_eel", "z_cat", "z_dog"]])
    with pytest.raises(LabelError, match="order of the fit"):
        model.apply_predictions(safecal.categorical(y, logits=z, labels=["dog", "cat", "eel"]))
    with pytest.raises(LabelError, match="order of the fit"):
        model.to_sql("p_dog", "p_cat", "p_eel")
    assert model.to_sql("a", "b", "c")
    document = named.map_.to_dict()
    for names in (["cat", "dog"], ["cat", "cat", "eel"]):
        with pytest.raises(DocumentError, match="names"):
            maps.from_dict(document | {"names": names})


@pytest.mark.parametrize("safe", [False, True])
def test_columns_of_groups_are_found_by_their_names(safe: bool, rng: np.random.Generator) -> None:
    a, b, z = rng.integers(0, 2, 2000), rng.integers(0, 2, 2000), rng.normal(0, 2, 2000)
    y = rng.random(2000) < special.expit(z + 2 * a - 2 * b)
    kind: maps.Map = maps.Safe(maps.Affine()) if safe else maps.Affine()
    fitted = kind.fit(y, logits=z, by={"a": a, "b": b})
    model = maps.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert model.by_ == ("a", "b")
    want = model.apply(logits=z, by={"a": a, "b": b})
    assert np.array_equal(fitted.apply(logits=z, by={"b": b, "a": a}), want)
    assert np.array_equal(model.apply(logits=z, by={"b": b, "a": a}), want)
    with pytest.raises(OptionError, match=r"`by` must have the columns of the fit, \['a', 'b'\]; got \['a', 'c'\]"):
        model.apply(logits=z, by={"a": a, "c": b})


def test_documents_that_are_none_are_refused() -> None:
    for document in ({}, {"kind": "safecal.evaluation"}, {"kind": 3}):
        with pytest.raises(DocumentError, match="must be the document of a map"):
            maps.from_dict(document)
    y, z = two(900)
    document = maps.Affine().fit(y, logits=z).to_dict()
    document["fit"]["step"]["slope"] = -1.0
    with pytest.raises(DocumentError, match=r"`fit\.step\.slope` must be a number above 0"):
        maps.from_dict(document)
    identity = maps.Identity().fit(y, logits=z).to_dict()
    identity["fit"]["step"] = 3
    with pytest.raises(DocumentError, match=r"`fit\.step` must be an object; got 3"):
        maps.from_dict(identity)
    stairs = maps.Isotonic().fit(y, logits=z).to_dict()
    stairs["fit"]["step"]["values"].reverse()
    with pytest.raises(DocumentError, match="must have values that do not fall"):
        maps.from_dict(stairs)
    both = maps.Safe(maps.Affine()).fit(y, logits=z).to_dict()
    both["temperature"] |= {"family": "categorical"}
    with pytest.raises(DocumentError, match="of the same rows"):
        maps.from_dict(both)
    for changes in ({"family": "gaussian"}, {"classes": 3}, {"classes": None}):
        other = maps.Affine().fit(y, logits=z).to_dict() | changes
        with pytest.raises(DocumentError, match="must have a family and classes that its numbers and names belong to"):
            maps.from_dict(other)


def test_early_documents_of_a_temperature_are_of_use() -> None:
    y, z = two(900)
    document = safecal.Temperature().fit(y, logits=z).to_dict()
    del document["classes"]
    assert maps.from_dict(document).to_sql("p") == safecal.Temperature().fit(y, logits=z).to_sql("p")
    several = maps.from_dict(document | {"family": "categorical"})
    assert several.apply([[0.5, 0.3, 0.2]]).shape == (1, 3)
    with pytest.raises(UnavailableError, match="does not say how many classes"):
        several.to_sql("p")


@pytest.mark.parametrize("kind", [maps.Affine, maps.Beta, maps.Isotonic])
def test_what_two_classes_cannot_support_is_refused(kind: Callable[[], maps.Map]) -> None:
    y, z = two()
    with pytest.raises(UnavailableError, match=r"needs at least \d+ rows; got 19"):
        kind().fit(y[:19], logits=z[:19])
    with pytest.raises(UnavailableError, match="got weights worth 19"):
        kind().fit(y, logits=z, sample_weight=(np.arange(4000) < 19).astype(float))
    with pytest.raises(UnavailableError, match="the same class happened in every row"):
        kind().fit(np.ones(4000), logits=z)
    with pytest.raises(UnavailableError, match="is for classes, and these are gaussian"):
        kind().fit_states(z, 0 * z, std=1.0)
    with pytest.raises(UnavailableError, match="not fitted yet"):
        kind().apply([0.5])
    if kind is not maps.Isotonic:
        with pytest.raises(UnavailableError, match="confidence carries no information"):
            kind().fit(z < 0.0, logits=z)  # always wrong
        with pytest.raises(UnavailableError, match=r"an outcome of probability 0: that happened at row 7 \(1 of"):
            kind().fit(y, logits=np.where(np.arange(4000) == 7, np.where(y, -np.inf, np.inf), z))


@pytest.mark.parametrize("kind", [maps.Affine, maps.Beta, maps.Isotonic])
def test_separated_outcomes_have_no_infinite_slope(kind: Callable[[], maps.Map]) -> None:
    _, z = two(200)
    for model in (kind(), maps.Safe(kind())):
        assert np.abs(model.fit(z > 0.0, logits=z).apply_logits(logits=z)).max() < 20.0 * np.abs(z).max()


@pytest.mark.parametrize("kind", [maps.Affine, maps.Beta, maps.Isotonic])
@pytest.mark.parametrize("score", [0.0, 3.0])
def test_constant_scores_become_the_share_of_positives(kind: Callable[[], maps.Map], score: float) -> None:
    y = np.arange(1000) % 10 < 3
    assert kind().fit(y, logits=np.full(1000, score)).apply(logits=[score]) == pytest.approx([0.3], abs=5e-3)


def test_maps_have_their_numbers_of_classes() -> None:
    y, z = many()
    for kind in (maps.Beta, maps.Isotonic):
        with pytest.raises(UnavailableError, match="is for two classes, and these are 4"):
            kind().fit(y, logits=z)
    with pytest.raises(UnavailableError, match="Vector is for three classes or more"):
        maps.Vector().fit(y > 1, logits=z[:, 0])
    with pytest.raises(UnavailableError, match="a map of 4 classes does not apply to 3"):
        maps.Affine().fit(y, logits=z).apply(logits=z[:, :3])
    with pytest.raises(UnavailableError, match="Axes is for Gaussian states"):
        maps.Axes().fit(y, logits=z)
    assert maps.Temperature().fit(y, logits=z).apply(logits=z[:, :3]).shape == (4000, 3)


def test_certain_predictions_stay_certain_and_do_not_disturb() -> None:
    y, z = two()
    sure = np.r_[z, np.full(50, np.inf)], np.r_[y, np.ones(50, bool)]
    for kind in (maps.Affine, maps.Beta):
        model = kind().fit(sure[1], logits=sure[0])
        assert model.apply(logits=z) == pytest.approx(kind().fit(y, logits=z).apply(logits=z))
        assert model.apply([0.0, 1.0]).tolist() == [0.0, 1.0]
    y, z = many()
    z[5, (y[5] + 1) % 4] = -np.inf
    for kind in (maps.Affine, maps.Vector):
        p = kind().fit(y, logits=z).apply(logits=z)
        assert p[5, (y[5] + 1) % 4] == 0.0
        assert np.isfinite(p).all()


def test_safe_of_nothing_is_the_safe_temperature() -> None:
    y, z = two()
    cluster = np.arange(4000) // 20
    for options in ({}, {"cluster": cluster}, {"by": np.arange(4000) % 2}):
        one = maps.Safe(maps.Identity()).fit(y, logits=z, **options)
        other = maps.SafeTemperature().fit(y, logits=z, **options)
        assert (one.beta_, one.interval_) == (other.beta_, other.interval_)
        by = options.get("by")
        assert (one.apply(logits=z, by=by) == other.apply(logits=z, by=by)).all()


def test_safe_is_chosen_on_rows_that_the_map_was_not_fitted_to() -> None:
    y, z = two(400)
    safe = maps.Safe(maps.Isotonic(), 0.1).fit(y, logits=z)
    fold = np.random.default_rng(0).permutation(400) % 5
    held_out = np.empty(400)
    for k in range(5):
        held_out[fold == k] = maps.Isotonic().fit(y[fold != k], logits=z[fold != k]).apply_logits(logits=z[fold == k])
    assert safe.beta_ == pytest.approx(maps.SafeTemperature(0.1).fit(y, logits=held_out).beta_, rel=1e-12)
    inner = maps.Isotonic().fit(y, logits=z).apply_logits(logits=z)
    assert safe.apply_logits(logits=z) == pytest.approx(safe.beta_ * inner)


def test_safe_states_have_the_factors_of_the_axes_and_a_temperature() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal([0.3, 0.0], [2.0, 1.0], (400, 2))
    by = np.arange(400) % 2
    for group in (None, by):
        safe = maps.Safe(maps.Axes()).fit_states(x, np.zeros((400, 2)), std=1.0, by=group)
        spread = safe.apply_states(std=np.ones((400, 2)), by=group)
        inner = safe.map_.apply_states(std=np.ones((400, 2)), by=group)
        assert (spread > inner).all()
        again = safe.apply_predictions(safecal.gaussian(x, np.zeros((400, 2)), std=1.0), by=group)
        assert again.ecd < 0.0
        assert maps.from_dict(safe.to_dict()).to_dict() == safe.to_dict()


def test_folds_keep_clusters_together() -> None:
    y, z = two(2000)
    cluster = np.repeat(np.arange(100), 20)
    plain, clustered = (maps.Safe(maps.Affine()).fit(y, logits=z, cluster=c) for c in (None, cluster))
    assert clustered.map_.to_dict() == plain.map_.to_dict()
    assert clustered.temperature_ > plain.temperature_


def test_safe_takes_maps_that_are_not_safe_already() -> None:
    for bad in (maps.Safe(), maps.SafeTemperature(), "affine"):
        with pytest.raises(OptionError, match="`map` must be a map, and not one that is safe already"):
            maps.Safe(bad)  # type: ignore[arg-type]


def test_options_are_read_and_set_as_scikit_learn_does() -> None:
    safe = maps.Safe(maps.Temperature(0.9), 0.1)
    assert safe.get_params()["map__level"] == 0.9
    assert safe.set_params(alpha=0.2, map__level=0.8).alpha == 0.2
    assert safe.map.level == 0.8  # type: ignore[attr-defined]
    assert maps.Affine().get_params() == {}


def test_groups_shrink_towards_the_common_fit() -> None:
    y, z = two(3000)
    group = np.r_[np.repeat("large", 2980), np.repeat("small", 20)]
    y[2980:] = np.arange(20) % 2 == 0
    for kind in (maps.Affine, maps.Beta, maps.Isotonic):
        common = kind().fit(y, logits=z).apply(logits=[-1.0, 1.0])
        model = kind().fit(y, logits=z, by=group)
        small = model.apply(logits=[-1.0, 1.0], by=["small", "small"])
        assert np.abs(small - common).max() < 0.3
        assert model.apply(logits=[-1.0, 1.0], by=["large", "large"]) == pytest.approx(common, abs=0.04)


def test_predictions_come_back_with_their_outcomes() -> None:
    y, z = two()
    for predictions in (
        safecal.bernoulli(y, logits=z),
        safecal.bernoulli(y, special.expit(z), clip=1e-6),
        safecal.categorical(y.astype(int), np.stack([1 - special.expit(z), special.expit(z)], axis=1), clip=1e-6),
    ):
        model = maps.Affine().fit_predictions(predictions)
        again = model.apply_predictions(predictions)
        assert again.family == predictions.family
        assert abs(again.ecd) < 1e-3
    density = safecal.density(z, log_density=lambda v: -0.5 * v * v, sampler=lambda rng: rng.normal(size=4000))
    with pytest.raises(UnavailableError, match="does not apply to density"):
        model.apply_predictions(density)
    with pytest.raises(UnavailableError, match="does not apply to states"):
        model.apply_predictions(safecal.gaussian(z, 0 * z, std=1.0))
    with pytest.raises(UnavailableError, match="cannot be fitted in part"):
        maps.Safe(maps.Temperature()).fit_predictions(safecal.density(z[:40], stats.norm(0, 1)))


@pytest.mark.parametrize("kind", [maps.Affine, maps.Vector])
@pytest.mark.parametrize("rare", [0.0, 2e-4])
def test_many_rows_are_fitted_to_all_digits(kind: Callable[[], maps.Affine | maps.Vector], rare: float) -> None:
    """Steps with half of the digits come first, without weights; a class that a sample lacks stops them."""
    rng = np.random.default_rng(4)
    z = rng.normal(0, 1, (101_000, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    if rare:
        y = np.where(rng.random(len(y)) < rare, 2, y % 2)
    one, other = (kind().fit(y, logits=2 * z, sample_weight=w) for w in (None, np.ones(len(y))))
    first, second = (step.to_dict() for model in (one, other) for step in model._steps())
    for name in ("weights", "shifts"):
        assert first[name] == pytest.approx(second[name], rel=1e-7, abs=1e-7)


def test_axes_without_a_bias_leave_means_alone_and_make_up_for_it(rng: np.random.Generator) -> None:
    x = rng.normal([0.0, 1.0], [1.0, 3.0], (4000, 2))
    model = maps.Axes(bias=False).fit_states(x, np.zeros((4000, 2)), std=1.0)
    assert model.bias_.tolist() == [0.0, 0.0]
    assert model.factor_ == pytest.approx(np.sqrt((x * x).mean(axis=0)))
    document = model.to_dict()
    assert maps.Axes.from_dict(document).bias is False
    del document["bias"]  # as written before there was a choice
    assert maps.Axes.from_dict(document).bias is True
