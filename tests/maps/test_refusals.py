"""Data that support no temperature, and arguments that make no sense: what the messages say."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import special

import safecal
from safecal.errors import (
    CovarianceError,
    DocumentError,
    FormError,
    OptionError,
    RangeError,
    SafecalError,
    ShapeError,
    UnavailableError,
)
from safecal.maps.temperature import FittedTemperature, SafeTemperature, Temperature

KINDS = [Temperature, SafeTemperature]
Kind = type[Temperature] | type[SafeTemperature]


def rows(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    return (rng.random(n) < special.expit(z)).astype(int), z


def message(error: pytest.ExceptionInfo[SafecalError]) -> str:
    return str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_too_few_rows(kind: Kind) -> None:
    y, z = rows(9, 3)
    with pytest.raises(UnavailableError, match=r"^a temperature needs at least 10 rows; got 9\.$"):
        kind().fit(y, logits=z)
    y, z = rows(200)
    w = np.where(np.arange(200) < 5, 1.0, 0.0)
    with pytest.raises(UnavailableError, match=r"at least 10 rows; got weights worth 5\.$"):
        kind().fit(y, logits=z, sample_weight=w)


@pytest.mark.parametrize("kind", KINDS)
def test_impossible_outcomes(kind: Kind) -> None:
    y, z = rows()
    p = special.expit(z)
    p[[7, 9]] = 1.0 - y[[7, 9]]
    with pytest.raises(UnavailableError) as error:
        kind().fit(y, p)
    assert message(error).startswith(
        "no temperature explains an outcome of probability 0: that happened at row 7 (2 of 200 rows).\n\n"
        "Hint: pass `logits=`, which never saturate"
    )
    assert "np.clip(y_prob, 1e-6, 1 - 1e-6)" in message(error)
    kind().fit(y, np.clip(p, 1e-6, 1 - 1e-6))
    w = np.ones(200)
    w[[7, 9]] = 0.0
    assert kind().fit(y, p, sample_weight=w).beta_ > 0  # rows without weight do not count


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_temper(kind: Kind) -> None:
    y, _ = rows()
    with pytest.raises(UnavailableError, match=r"^every prediction is a coin toss or a certainty, and no temperature"):
        kind().fit(y, np.full(200, 0.5))
    with pytest.raises(UnavailableError, match="coin toss or a certainty"):
        kind().fit(y, y.astype(float))
    with pytest.raises(UnavailableError, match="coin toss or a certainty"):
        kind().fit(y, np.full((200, 4), 0.25))


@pytest.mark.parametrize("kind", KINDS)
def test_confidence_without_information(kind: Kind) -> None:
    y, z = rows()
    with pytest.raises(UnavailableError) as error:
        kind().fit(y, logits=-z)
    assert message(error).startswith("confidence carries no information here")
    assert "T = infinity" in message(error)
    assert "Hint: are outcomes and predictions rows of the same data" in message(error)


def test_no_surprise_at_all() -> None:
    _, z = rows()
    with pytest.raises(UnavailableError) as error:
        Temperature().fit(z > 0, logits=z)
    assert message(error).startswith("the most likely outcome happened in every row")
    assert "T = 0" in message(error)
    assert "`SafeTemperature`" in message(error)
    assert SafeTemperature().fit(z > 0, logits=z).temperature_ > 0


def test_over_confidence_that_is_never_ruled_out() -> None:
    y = np.array([1] * 11 + [0] * 9)
    with pytest.raises(UnavailableError) as error:
        SafeTemperature().fit(y, np.full(20, 0.9))
    assert message(error).startswith(
        "over-confidence cannot be ruled out at level 0.05 with these 20 rows, at any temperature.\n\nHint: about "
    )
    needed = int(message(error).split("about ")[1].split()[0])
    again = -(-needed // 20)
    assert 20 < needed < 2000
    assert SafeTemperature().fit(np.tile(y, again), np.full(20 * again, 0.9)).temperature_ > 1
    assert SafeTemperature(0.4).fit(y, np.full(20, 0.9)).temperature_ > 1
    with pytest.raises(UnavailableError, match="at any temperature"):
        SafeTemperature(1e-6).fit_states(np.ones(10), np.zeros(10), std=1.0)


def test_small_groups_are_named_with_the_rows_they_need() -> None:
    y, z = rows(500)
    group = np.repeat(["a", "b", "c"], [470, 18, 12])
    with pytest.raises(UnavailableError) as error:
        SafeTemperature().fit(y, logits=z, by=group)
    assert message(error) == (
        "the groups of `by` must each support a temperature of their own; 2 of 3 do not: 'b' (18 rows: needs 30), 'c' "
        "(12 rows: needs 30).\n\nHint: join small groups, leave their rows out, or fit without `by=`."
    )


def test_groups_without_a_temperature_say_why() -> None:
    y, z = rows(500)
    y[100:200], z[100:200] = 1, 5.0  # no surprise
    z[200:240] *= 0.05  # hardly any information
    y[200:240] = (np.arange(40) % 3 > 0) == (z[200:240] > 0)
    y[240:280] = z[240:280] < 0  # always wrong
    z[280:320] = 0.0
    z[320:360] = np.where(y[320:360] == 1, -np.inf, 2.0)
    group = np.repeat([0, 1, 2, 3, 4, 5, 6], [100, 100, 40, 40, 40, 40, 140])
    with pytest.raises(UnavailableError) as error:
        SafeTemperature(0.001).fit(y, logits=z, by=group)
    text = message(error)
    assert re.search(r"do not: 2 \(40 rows: needs about \d+\), 3 \(40 rows: confidence carries no information", text)
    assert "4 (40 rows: every prediction is a coin toss or a certainty)" in text
    assert "5 (40 rows: an outcome of probability 0 happened, " in text
    w = np.where(group == 0, 0.0, 1.0)
    with pytest.raises(UnavailableError, match=r"0 \(100 rows: their weights are all 0\)"):
        SafeTemperature().fit(y, logits=z, by=group, sample_weight=w)


def test_long_lists_of_groups_are_cut() -> None:
    y, z = rows(90)
    with pytest.raises(UnavailableError, match=r"9 of 9 do not: 0 \(10 rows: needs 30\), .*4 \(.*\) and 4 more\."):
        SafeTemperature().fit(y, logits=z, by=np.arange(90) // 10)


def test_densities_have_no_groups() -> None:
    x = np.random.default_rng(0).normal(size=60)
    predictions = safecal.density(x, log_density=lambda v: -0.5 * v * v, sampler=lambda rng: rng.normal(size=60))
    with pytest.raises(UnavailableError, match="unnormalised density has no temperature"):
        Temperature().fit_predictions(predictions)
    with pytest.raises(UnavailableError, match="density predictions have one map for all rows"):
        SafeTemperature().fit_predictions(predictions, by=np.arange(60) % 2)


def test_groups_when_applying() -> None:
    y, z = rows(400)
    group = np.repeat(["a", "b"], 200)
    model = Temperature().fit(y, logits=z, by=group)
    with pytest.raises(OptionError) as error:
        model.apply(logits=z[:4], by=["a", "c", "b", "c"])
    assert message(error) == (
        "`by` must be among those fitted ('a', 'b'); got 'c' at row 1 (2 of 4 rows).\n\n"
        "Hint: fit again with rows of that group, or without `by=` for one map that serves any row."
    )
    with pytest.raises(OptionError, match="`by` must be given: each group has a map of its own"):
        model.apply(logits=z)
    with pytest.raises(ShapeError, match="`by` must have as many rows as `logits`; got 3 and 400"):
        model.apply(logits=z, by=["a", "b", "a"])
    with pytest.raises(OptionError, match="`by` must not be given"):
        Temperature().fit(y, logits=z).apply(logits=z, by=group)
    with pytest.raises(ShapeError, match="`by` must have as many rows as `y_true`"):
        model.fit(y, logits=z, by=group[:5])
    x = np.random.default_rng(0).normal(size=(400, 2))
    model.fit_states(x, np.zeros((400, 2)), std=1.0, by=group)
    with pytest.raises(ShapeError, match=r"`std` must be given for each row when there is `by`; got shape \(\)"):
        model.apply_states(std=1.0, by=group)
    with pytest.raises(ShapeError, match=r"`cov` must be given for each row when there is `by`"):
        model.apply_states(cov=np.eye(2), by=group)
    with pytest.raises(ShapeError, match="`var` must have as many rows as `by`"):
        model.apply_states(var=np.ones((3, 2)), by=group)
    with pytest.raises(OptionError, match="`by` must be given"):
        model.apply_states(std=1.0)
    with pytest.raises(ShapeError, match="`by` must be a column of values"):
        model.apply_states(std=1.0, by="a")


def test_a_failed_fit_leaves_the_former_one() -> None:
    y, z = rows()
    model = Temperature().fit(y, logits=z)
    before = model.to_dict()
    with pytest.raises(UnavailableError):
        model.fit(y, logits=-z)
    assert model.to_dict() == before


def test_fit_comes_first_and_kinds_do_not_mix() -> None:
    y, z = rows()
    for call in (lambda m: m.apply(logits=z), lambda m: m.apply_states(std=1.0), lambda m: m.to_dict()):
        with pytest.raises(UnavailableError, match=r"^the map is not fitted yet\.\n\nHint: call `fit` first"):
            call(Temperature())
    with pytest.raises(AttributeError):
        _ = Temperature().temperature_
    with pytest.raises(
        UnavailableError, match=r"bernoulli predictions does not apply to states\.\n\nHint: call `apply`"
    ):
        Temperature().fit(y, logits=z).apply_states(std=1.0)
    states = Temperature().fit_states(z, np.zeros(200), std=1.0)
    with pytest.raises(UnavailableError, match=r"does not apply to classes\.\n\nHint: call `apply_states`"):
        states.apply(logits=z)


@pytest.mark.parametrize("alpha", [0.0, 0.5, -1, 1.5, "0.05", None, float("nan"), True])
def test_alpha(alpha: object) -> None:
    with pytest.raises(RangeError, match=r"`alpha` must lie strictly between 0 and 0\.5; got"):
        SafeTemperature(alpha)  # type: ignore[arg-type]


def test_other_options() -> None:
    with pytest.raises(RangeError, match="`level` must lie strictly between 0 and 1; got 95"):
        Temperature(95)
    with pytest.raises(OptionError, match="`sharpen` must be True or False; got 'no'"):
        SafeTemperature(sharpen="no")  # type: ignore[arg-type]


def test_arguments_are_checked() -> None:
    y, z = rows()
    model = Temperature().fit(y, logits=z)
    for call in (model.apply, lambda *a, **k: model.fit(y, *a, **k)):
        with pytest.raises(FormError, match="exactly one of them; got neither"):
            call()
        with pytest.raises(FormError, match="got both"):
            call(special.expit(z), logits=z)
        with pytest.raises(RangeError, match="these look like log-odds"):
            call(z)
        with pytest.raises(ShapeError, match=r"must have shape \(n,\)[^`]*pass `logits\[:, 0\]`"):
            call(logits=z[:, None])
        with pytest.raises(ShapeError, match="must have shape"):
            call(logits=np.zeros((2, 3, 4)))
    with pytest.raises(safecal.errors.NormalisationError):
        model.apply([[0.5, 0.6]])
    with pytest.raises(OptionError, match="`labels` names the columns"):
        model.fit(y, logits=z, labels=["a", "b"])
    with pytest.raises(OptionError, match="`pos_label` belongs to a prediction of shape"):
        model.fit(y, logits=np.stack([z, -z], axis=1), pos_label=1)
    states = Temperature().fit_states(z, np.zeros(200), std=1.0)
    with pytest.raises(FormError, match="exactly one of them; got none"):
        states.apply_states()
    with pytest.raises(RangeError, match="`std` must be greater than 0"):
        states.apply_states(std=[1.0, 0.0])
    with pytest.raises(ShapeError, match="`cov` must be one square matrix"):
        states.apply_states(cov=np.ones((2, 3)))
    with pytest.raises(CovarianceError, match="positive definite"):
        states.apply_states(cov=-np.eye(2))
    with pytest.raises(CovarianceError, match="lower triangular"):
        states.apply_states(chol=np.ones((2, 2)))


def test_documents_are_checked() -> None:
    y, z = rows()
    document = Temperature().fit(y, logits=z).to_dict()
    assert document["kind"] == "safecal.temperature"
    with pytest.raises(DocumentError, match=r"must be a safecal\.safe_temperature document"):
        SafeTemperature.from_dict(document)
    with pytest.raises(DocumentError, match="it lacks fit"):
        Temperature.from_dict({k: v for k, v in document.items() if k != "fit"})


@pytest.mark.parametrize("beta", [-1.0, 0.0, -0.0, float("nan"), float("inf"), 5e-324, "1", True, None])
def test_an_inverse_temperature_is_above_0_and_stays_so(beta: object) -> None:
    y, z = rows()
    model = Temperature().fit(y, logits=z)
    with pytest.raises(RangeError, match="`beta` must be an inverse temperature"):
        FittedTemperature(beta, model.interval_, 200)
    with pytest.raises(AttributeError):
        model.beta_ = beta


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beta", [-1.0, 0.0, float("nan"), float("inf"), 5e-324, "1", True, None])
def test_a_document_with_another_inverse_temperature_is_refused(kind: Kind, beta: object) -> None:
    y, z = rows()
    document = kind().fit(y, logits=z, by=np.arange(200) % 2).to_dict()
    for fit, path in ((document["fit"], "fit.beta"), (document["groups"][1]["fit"], r"groups\[1\].fit.beta")):
        right = fit["beta"]
        fit["beta"] = beta
        with pytest.raises(DocumentError, match=f"^`{path}` must be a number from 1e-300 to"):
            kind.from_dict(document)
        fit["beta"] = right
    assert kind.from_dict(document).to_dict() == document


@pytest.mark.parametrize("key", ["cluster", "sample_weight", "labels", "by", 3, ("a", 1)])
def test_a_column_of_groups_may_have_any_name(key: object) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, 400)
    y, group = rng.random(400) < 1 / (1 + np.exp(-z)), np.arange(400) % 2
    assert safecal.recalibrate(y, logits=z, by={key: group}).before.groups is not None
    named, plain = (safecal.Temperature().fit(y, logits=z, by=by) for by in ({key: group}, group))
    assert np.array_equal(named.apply(logits=z, by={key: group}), plain.apply(logits=z, by=group))


def test_axes_say_what_weights_are_worth() -> None:
    x, weight = np.random.default_rng(0).normal(size=(2000, 2)), np.zeros(2000)
    weight[:10] = 1.0
    states = safecal.gaussian(x, 0.0 * x, std=1.0)
    with pytest.raises(UnavailableError, match="Axes needs at least 20 rows; got weights worth 10"):
        safecal.maps.Axes().fit_predictions(states, sample_weight=weight)
