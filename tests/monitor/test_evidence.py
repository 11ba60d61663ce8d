"""The evidence is what the formulas say, merges, and keeps its promises."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import safecal
from safecal import errors
from safecal.monitor import Alarm, Monitor
from safecal.monitor.alarm import Size
from safecal.monitor.evidence import FORMS, OVER, SHIFTS, UNDER, Detector, Process, blocks

RNG = np.random.default_rng(8)


def stream(rows: int, factor: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, rows)
    return (rng.random(rows) < special.expit(z)).astype(int), factor * z


def block_of(predictions: safecal.Predictions):
    (block,) = blocks(predictions)
    return block


@pytest.mark.parametrize(
    "predictions",
    [
        safecal.bernoulli(RNG.integers(0, 2, 50), RNG.random(50)),
        safecal.categorical(RNG.integers(0, 4, 50), logits=RNG.normal(0, 2, (50, 4))),
        safecal.gaussian(RNG.normal(size=(50, 2)), np.zeros((50, 2)), std=1.5),
    ],
    ids=["bernoulli", "categorical", "gaussian"],
)
def test_e_values_are_ratios_of_densities(predictions: safecal.Predictions) -> None:
    block = block_of(predictions)
    surprisal = predictions.score().surprisal
    for betas, logs in ((OVER, block.over), (UNDER, block.under)):
        for k, beta in enumerate(betas):
            wanted = (1.0 - beta) * surprisal - predictions.log_partition(beta)
            np.testing.assert_allclose(logs[k], wanted, rtol=1e-12, atol=1e-12)


@given(st.floats(0.001, 0.999))
def test_each_e_value_has_the_mean_one(p: float) -> None:
    both = block_of(safecal.bernoulli([1, 0], [p, p]))
    for logs in (both.over, both.under, both.up, both.down):
        np.testing.assert_allclose(p * np.exp(logs[:, 0]) + (1.0 - p) * np.exp(logs[:, 1]), 1.0, rtol=1e-10)


@pytest.mark.parametrize("form", ["logits", "y_prob"])
def test_e_values_of_shifts_are_ratios_of_shifted_models(form: str) -> None:
    y, z = stream(500, 1.7)
    z[:4] = (-700.0, 700.0, 40.0, -40.0)
    y[:4] = (0, 1, 1, 0)  # those that can hardly be otherwise
    values = z if form == "logits" else special.expit(z)
    block = block_of(safecal.bernoulli(y, **{form: values}))
    surprisal = safecal.bernoulli(y, logits=z).score().surprisal
    for sign, logs in ((1.0, block.up), (-1.0, block.down)):
        for k, c in enumerate(SHIFTS):
            wanted = surprisal - safecal.bernoulli(y, logits=z + sign * c).score().surprisal
            np.testing.assert_allclose(logs[k], wanted, rtol=1e-10, atol=1e-13)


def test_the_process_of_a_shift_is_a_mean_of_likelihood_ratios() -> None:
    y, z = stream(3000)
    monitor = Monitor()
    monitor.update(y, logits=z - 0.2)
    surprisal = safecal.bernoulli(y, logits=z - 0.2).score().surprisal.sum()
    for sign, direction in ((1.0, "shifted up"), (-1.0, "shifted down")):
        shifted = [safecal.bernoulli(y, logits=z - 0.2 + sign * c).score().surprisal.sum() for c in SHIFTS]
        wanted = special.logsumexp(surprisal - np.array(shifted)) - math.log(len(SHIFTS))
        assert monitor.log_e_value(direction) == pytest.approx(wanted, rel=1e-9)
    assert monitor.e_value("shifted up") > 10.0 > 1.0 > monitor.e_value("shifted down")


@pytest.mark.parametrize(("shift", "direction"), [(-0.5, "shifted up"), (0.5, "shifted down")])
def test_a_shift_is_told_where_no_temperature_shows_it(shift: float, direction: str) -> None:
    y, z = stream(2000)
    (alarm,) = Monitor().update(y, logits=z + shift)
    assert (alarm.kind, alarm.direction) == ("since the start", direction)
    assert alarm.row < 600


@pytest.mark.parametrize("form", ["logits", "y_prob"])
def test_two_columns_have_the_shifts_of_one(form: str) -> None:
    rng = np.random.default_rng(3)
    z = np.append(rng.normal(0.0, 2.0, 800), [60.0, np.inf])
    y = np.append(rng.random(800) < special.expit(z[:-2] + 0.7), [True, True]).astype(int)
    both = np.stack([np.zeros_like(z), z], axis=1) if form == "logits" else special.expit(np.stack([-z, z], axis=1))
    if form == "logits":
        both[-1] = [-np.inf, 0.0]
    one, two = Monitor(), Monitor()
    (a,), (b,) = one.update(y, logits=z), two.update(y, **{form: both})
    assert (a.direction, a.row) == (b.direction, b.row)
    assert two.directions == one.directions
    for direction in one.directions:
        assert two.log_e_value(direction) == pytest.approx(one.log_e_value(direction), abs=1e-9)
    document = two.to_dict()
    assert Monitor.from_dict(document).directions == one.directions


def test_a_state_that_was_begun_with_two_columns_goes_on_with_them() -> None:
    old = Monitor()
    old.update([0, 2], y_prob=[[0.5, 0.3, 0.2], [0.3, 0.1, 0.6]])
    old = Monitor.from_dict(old.to_dict())
    old.update([0, 1], y_prob=[[0.5, 0.5], [0.3, 0.7]])
    assert old.directions == ("over-confident", "under-confident")


@pytest.mark.proof
def test_what_is_too_sharp_is_not_called_shifted() -> None:
    y, z = stream(3000, 3.0, seed=5)
    monitor = Monitor()
    directions, peak = set(), 0.0
    for k in range(0, 3000, 10):
        directions |= {alarm.direction for alarm in monitor.update(y[k : k + 10], logits=z[k : k + 10])}
        peak = max(peak, *(monitor.log_e_value(direction) for direction in ("shifted up", "shifted down")))
    assert peak > monitor.threshold().log_thresholds["shifted up"]  # and yet
    assert directions == {"over-confident"}
    assert {alarm.direction for alarm in Monitor().update(y, logits=z)} == directions


def test_directions_share_alpha() -> None:
    two, three = Monitor(alpha=0.1), Monitor(alpha=0.1)
    two.update([1, 0], [0.6, 0.3])
    three.update([1, 0], [[0.2, 0.5, 0.3]] * 2)
    for monitor, shares in ((two, [0.04, 0.02, 0.02, 0.02]), (three, [0.05, 0.05])):
        limits = monitor.threshold().log_thresholds
        assert tuple(limits) == monitor.directions
        np.testing.assert_allclose([math.exp(-log) for log in limits.values()], shares)
    assert two.threshold().log_threshold == pytest.approx(math.log(25.0))
    with pytest.raises(errors.OptionError, match="direction"):
        three.log_e_value("shifted up")


def test_a_state_from_before_there_were_shifts_goes_on_without_them() -> None:
    y, z = stream(400)
    monitor = Monitor(grouped=True)
    monitor.update(y, logits=z, by=["a"] * 400)
    document = json.loads(json.dumps(monitor.to_dict()))
    for part in (document["total"], document["groups"][0][1]):
        del part["process"]["up"], part["process"]["down"]
    again = Monitor.from_dict(document)
    assert again.directions == ("over-confident", "under-confident")
    assert math.exp(-again.threshold().log_threshold) == pytest.approx(0.0125)  # as it was begun
    assert again.update(y, logits=z - 0.5, by=["b"] * 400) == ()
    assert Monitor.from_dict(again.to_dict()).directions == again.directions
    with pytest.raises(errors.MergeError, match="before there were shifts"):
        again.merge(monitor)
    fresh = Monitor().to_dict()
    del fresh["total"]["process"]["up"], fresh["total"]["process"]["down"]
    assert Monitor.from_dict(fresh).directions == Monitor().directions  # nothing was looked at yet


def test_the_process_is_a_mean_of_likelihood_ratios_of_tempered_models() -> None:
    y, z = stream(3000, 1.3)
    monitor = Monitor()
    monitor.update(y, logits=z)
    surprisal = safecal.bernoulli(y, logits=z).score().surprisal.sum()
    tempered = [safecal.bernoulli(y, logits=b * z).score().surprisal.sum() for b in OVER]
    wanted = special.logsumexp(surprisal - np.array(tempered)) - math.log(len(OVER))
    assert monitor.log_e_value() == pytest.approx(wanted, rel=1e-9)
    assert monitor.e_value() == pytest.approx(math.exp(wanted), rel=1e-6)


def test_recursions_of_the_detector(rng: np.random.Generator) -> None:
    logs = rng.normal(-0.05, 0.4, (len(OVER), 200))
    r = np.zeros(len(OVER))
    c = np.zeros(len(OVER))
    for row in np.exp(logs.T):
        r, c = row * (r + 1.0), row * np.maximum(c, 1.0)
    whole, crossing = Detector().advance(logs, "shiryaev-roberts", math.inf)
    assert crossing is None
    np.testing.assert_allclose(np.exp(whole.log_r), r, rtol=1e-10)
    np.testing.assert_allclose(np.exp(whole.log_c), c, rtol=1e-10)
    steps = Detector()
    for begin in (0, 1, 70, 131):
        end = {0: 1, 1: 70, 70: 131, 131: 200}[begin]
        steps, _ = steps.advance(logs[:, begin:end], "cusum", math.inf)
    np.testing.assert_allclose(steps.log_r, whole.log_r, rtol=1e-9)
    np.testing.assert_allclose(steps.log_c, whole.log_c, rtol=1e-9)
    assert steps.began == whole.began
    assert steps.n == whole.n == 200


def test_long_blocks_keep_every_term() -> None:
    logs = np.full((len(OVER), 5000), -2.0)  # falls by far more than the range of a float
    logs[:, 2500:] = 3.0
    detector, _ = Detector().advance(logs, "shiryaev-roberts", math.inf)
    wanted = -math.inf
    for step in logs[0]:
        wanted = step + np.logaddexp(wanted, 0.0)
    np.testing.assert_allclose(detector.log_r, wanted, rtol=1e-12)


@pytest.mark.proof
@pytest.mark.parametrize("form", ["shiryaev-roberts", pytest.param("cusum", marks=pytest.mark.no_cover)])
def test_alarms_come_at_the_row_however_the_rows_are_cut(form: str) -> None:
    y, z = stream(6000)
    z[4000:] *= 2.5
    whole = Monitor(run_length=1e6, form=form)
    wanted = whole.update(y, logits=z)
    cut = Monitor(run_length=1e6, form=form)
    alarms = [alarm for k in range(0, 6000, 7) for alarm in cut.update(y[k : k + 7], logits=z[k : k + 7])]
    assert [(a.kind, a.row, a.began) for a in alarms] == [(a.kind, a.row, a.began) for a in wanted]
    for a, b in zip(alarms, wanted, strict=True):
        assert a.log_e_value == pytest.approx(b.log_e_value, rel=1e-8)
    change = next(alarm for alarm in wanted if alarm.kind == "change")
    assert 4000 <= change.row < 4200
    assert abs(change.began - 4000) < 100
    assert cut.summary.n == whole.summary.n == 6000


def test_one_alarm_until_it_is_acknowledged() -> None:
    monitor = Monitor(run_length=1000)

    def kinds(seed: int) -> list[str]:
        y, z = stream(3000, 3.0, seed)
        return sorted(a.kind for a in monitor.update(y, logits=z) if a.direction == "over-confident")

    assert kinds(1) == ["change", "since the start"]
    assert kinds(2) == []
    assert monitor.direction == "over-confident"
    monitor.acknowledge()
    assert kinds(3) == ["change"]


@pytest.mark.parametrize("form", ["shiryaev-roberts", pytest.param("cusum", marks=pytest.mark.proof)])
@pytest.mark.parametrize(("factor", "direction"), [(2.5, "over-confident"), (0.4, "under-confident")])
def test_the_detector_looks_both_ways_if_asked(factor: float, direction: str, form: str) -> None:
    y, z = stream(6000)
    z[4000:] *= factor

    def changes(detect: str, step: int) -> list[Alarm]:
        monitor = Monitor(run_length=1e5, form=form, detect=detect, alpha=1e-9)
        parts = [monitor.update(y[k : k + step], logits=z[k : k + step]) for k in range(0, 6000, step)]
        return [alarm for part in parts for alarm in part if alarm.kind == "change"]

    (alarm,) = changes("both", 6000)
    assert alarm.direction == direction
    assert alarm.log_threshold == pytest.approx(math.log(2e5))
    assert 4000 <= alarm.row < 4700
    assert abs(alarm.began - 4000) < 200
    assert [(a.row, a.began) for a in changes("both", 37)] == [(alarm.row, alarm.began)]
    assert [a.direction for a in changes("over", 6000)] == [direction] * (direction == "over-confident")


def test_both_detectors_are_written_down_merge_and_start_anew() -> None:
    y, z = stream(3000, 0.4)
    first, second = Monitor(run_length=1000, detect="both"), Monitor(run_length=1000, detect="both")
    first.update(y[:1000], logits=z[:1000])
    second.update(y[1000:], logits=z[1000:])
    assert first.stream().changes == second.stream().changes == ("under-confident",)
    assert not first.stream().changed  # to over-confidence
    again = Monitor.from_dict(json.loads(json.dumps(first.to_dict())))
    assert (again.to_dict(), again.detect) == (first.to_dict(), "both")
    again.merge(second)
    logs = [monitor.log_change("under-confident") for monitor in (first, second, again)]
    assert logs[2] == pytest.approx(np.logaddexp(*logs[:2]))
    again.acknowledge()
    assert (again.stream().changes, again.log_change("under-confident")) == ((), -math.inf)
    with pytest.raises(errors.MergeError):
        again.merge(Monitor(run_length=1000))
    with pytest.raises(errors.OptionError, match="direction"):
        Monitor().log_change("under-confident")


def test_a_state_with_one_detector_is_read() -> None:
    y, z = stream(1000, 3.0)
    monitor = Monitor(run_length=1000)
    monitor.update(y, logits=z)
    document = json.loads(json.dumps(monitor.to_dict()))
    del document["detect"]
    for changed in (True, False):
        document["total"]["changed"] = changed
        again = Monitor.from_dict(document)
        assert (again.detect, again.stream().changed) == ("over", changed)


def test_under_confidence_is_told() -> None:
    y, z = stream(3000, 0.4)
    monitor = Monitor()
    (alarm,) = monitor.update(y, logits=z)
    assert (alarm.kind, alarm.direction) == ("since the start", "under-confident")
    assert monitor.e_value("under-confident") > 1e6 > 1.0 > monitor.e_value("over-confident")


def test_an_impossible_outcome_is_certain_evidence() -> None:
    monitor = Monitor()
    alarms = monitor.update([1, 0, 1], [0.5, 0.5, 0.0], window="a")
    assert {(a.kind, a.row, a.log_e_value) for a in alarms} == {
        ("since the start", 2, math.inf),
        ("change", 2, math.inf),
    }
    assert monitor.e_value() == math.inf
    assert {monitor.log_e_value(direction) for direction in monitor.directions[1:]} == {-math.inf}
    assert "infinite" in str(alarms[0])
    again = Monitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert again.update([1], [0.9]) == ()
    assert again.summary.n_impossible == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("y", [0, 1])
def test_log_odds_at_the_end_of_the_floats_keep_evidence_a_number(form: str, y: int) -> None:
    monitor = Monitor(form=form, detect="both")
    monitor.update([y, 1, 0, 1], logits=[1.7e308, 0.5, -1.0, 2.0])
    monitor.update([1, 0, 1], logits=[0.5, -1.0, 2.0])
    logs = [monitor.log_e_value(direction) for direction in monitor.directions]
    logs += [monitor.log_change(side) for side in ("over-confident", "under-confident")]
    assert np.isfinite(logs).all()


def test_shards_merge() -> None:
    y, z = stream(4000, 1.2)
    whole, first, second = Monitor(), Monitor(), Monitor()
    whole.update(y, logits=z, window="a")
    first.update(y[:1500], logits=z[:1500], window="a")
    second.update(y[1500:], logits=z[1500:], window="a")
    first.merge(second)
    assert first.summary.n == 4000
    for direction in whole.directions:
        assert first.log_e_value(direction) == pytest.approx(whole.log_e_value(direction), rel=1e-9)
    assert first.windows()["a"][0].sum_excess == pytest.approx(whole.windows()["a"][0].sum_excess, rel=1e-9)
    assert second.summary.n == 2500
    with pytest.raises(errors.MergeError):
        first.merge(Monitor(alpha=0.01))


def test_monitors_of_too_many_groups_together_are_not_merged() -> None:
    one, two = Monitor(grouped=True), Monitor(grouped=True)
    for monitor, name in ((one, "a"), (two, "b")):
        monitor.update([1, 0] * 300, [0.9, 0.2] * 300, by=[f"{name}{k}" for k in range(600)])
    before = one.to_dict()
    with pytest.raises(errors.MergeError, match="at most 1000 groups together to merge; got 1200"):
        one.merge(two)
    assert one.to_dict() == before


def test_shards_share_alpha_and_what_they_are_merged_into_has_the_rest() -> None:
    y, z = stream(400, 1.0)
    shards = Monitor(grouped=True, alpha=0.1, detect="both").shards(4)
    assert len(shards) == 4
    for k, shard in enumerate(shards):
        some = slice(100 * k, 100 * k + 100)
        shard.update(y[some], logits=z[some], by=np.arange(100) % 2)
        assert (shard.share, shard.risk, shard.detect) == (0.125, pytest.approx(0.0125), "both")
    whole, part = Monitor(grouped=True, alpha=0.1, detect="both"), shards[0]
    assert part.threshold().log_threshold == pytest.approx(whole.threshold().log_threshold + math.log(8))
    assert part.threshold().log_run_length == pytest.approx(whole.threshold().log_run_length + math.log(8))
    for shard in shards[1:]:
        part.merge(Monitor.from_dict(json.loads(json.dumps(shard.to_dict()))))
    assert (part.summary.n, part.share, part.risk) == (400, 0.5, pytest.approx(0.1))
    assert Monitor.from_dict(part.to_dict()).risk == part.risk
    assert "risk" not in repr(part)
    whole.merge(part)  # without rows, it is as if it were not there
    assert (whole.share, whole.risk) == (part.share, part.risk)


def test_monitors_that_had_all_of_alpha_each_say_so_when_merged() -> None:
    y, z = stream(200, 1.0)
    first, second = Monitor(), Monitor()
    first.merge(second)
    assert first.risk == 0.05
    for monitor, some in ((first, slice(100)), (second, slice(100, 200))):
        monitor.update(y[some], logits=z[some])
        assert monitor.risk == 0.05
    before = {name: value for name, value in second.to_dict().items() if name not in ("share", "spent", "looked")}
    first.merge(Monitor.from_dict(before))
    assert first.risk == pytest.approx(0.15)
    assert "risk 0.15" in repr(first)
    with pytest.raises(errors.OptionError, match="without rows"):
        first.shards(2)
    for share in (0.0, 1.5, True, "all"):
        with pytest.raises(errors.RangeError):
            Monitor(share=share)  # type: ignore[arg-type]


def test_merged_detectors_add_up(rng: np.random.Generator) -> None:
    a, _ = Detector().advance(rng.normal(0, 0.3, (len(OVER), 50)), "cusum", math.inf)
    b, _ = Detector().advance(rng.normal(0, 0.3, (len(OVER), 70)), "cusum", math.inf)
    np.testing.assert_allclose(np.exp((a + b).log_r), np.exp(a.log_r) + np.exp(b.log_r))
    assert (a + b).n == 120
    assert Process() + Process() == Process()


@pytest.mark.parametrize("family", ["categorical", "gaussian"])
def test_other_families(family: str) -> None:
    rng = np.random.default_rng(3)
    if family == "gaussian":
        predictions = safecal.gaussian(2.0 * rng.normal(size=(500, 2)), np.zeros((500, 2)), std=1.0)
    else:
        predictions = safecal.categorical(rng.integers(0, 3, 500), logits=rng.normal(0, 3, (500, 3)))
    monitor = Monitor()
    assert "over-confident" in {a.direction for a in monitor.add(predictions)}
    with pytest.raises(errors.OptionError, match="one family"):
        monitor.update([1], [0.5])


def test_an_unnormalised_density_has_no_e_value() -> None:
    predictions = safecal.density(
        np.zeros(5), log_density=lambda x: -0.5 * x**2, sampler=lambda rng: rng.normal(size=5), rng=1
    )  # fmt: skip
    monitor = Monitor()
    with pytest.raises(errors.UnavailableError):
        monitor.add(predictions)
    monitor.update([1], [0.5])  # a refusal leaves no family behind


@pytest.mark.proof
@pytest.mark.no_cover
def test_false_alarms_stay_below_alpha() -> None:
    """Over 600 calibrated streams of 10 000 rows, looked at after every row; 7 % would be seen."""
    alarms, streams = 0, 600
    rng = np.random.default_rng(5)
    for _ in range(streams):
        z = rng.normal(0.0, 2.0, 10_000)
        y = (rng.random(10_000) < special.expit(z)).astype(int)
        alarms += any(a.kind == "since the start" for a in Monitor(run_length=1e9).update(y, logits=z))
    assert alarms <= 0.05 * streams


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("detect", ["over", "both"])
@pytest.mark.parametrize("form", ["shiryaev-roberts", "cusum"])
def test_run_lengths_are_what_was_promised(form: str, detect: str) -> None:
    rng = np.random.default_rng(6)
    rows = []
    for _ in range(300):
        z = rng.normal(0.0, 2.0, 4000)
        y = (rng.random(4000) < special.expit(z)).astype(int)
        alarms = Monitor(run_length=500, form=form, detect=detect).update(y, logits=z)
        rows.append(min((a.row for a in alarms if a.kind == "change"), default=4000))
    assert np.mean(rows) >= 500  # those that were watched no longer count as if they had ended


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("slope", "shift", "rows"), [(1.0, 0.5, 300), (1.0, -0.5, 300), (1 / 1.5, 0.0, 215)], ids=["up", "down", "sharp"]
)
def test_a_shift_is_seen_early_and_sharpness_hardly_later(slope: float, shift: float, rows: int) -> None:
    """The median row of the first alarm since the start, over 200 streams."""
    rng = np.random.default_rng(7)
    first = []
    for _ in range(200):
        z = rng.normal(0.0, 2.0, 2000)
        y = (rng.random(2000) < special.expit(slope * z + shift)).astype(int)
        alarms = Monitor().update(y, logits=z)
        first.append(min((a.row + 1 for a in alarms if a.kind == "since the start"), default=2000))
    assert np.median(first) <= rows


@pytest.mark.parametrize("step", [7000, pytest.param(11, marks=pytest.mark.proof)])
def test_alarms_tell_the_size_of_the_rows_they_speak_of(step: int) -> None:
    y, z = stream(7000)
    z[5000:] *= 1.6
    monitor = Monitor(run_length=1e4)
    parts = [monitor.update(y[k : k + step], logits=z[k : k + step]) for k in range(0, 7000, step)]
    alarms = {alarm.kind: alarm for part in parts for alarm in part}
    for alarm, start in ((alarms["change"], alarms["change"].began), (alarms["since the start"], 0)):
        rows = slice(start, alarm.row + 1)
        whole = safecal.evaluate(y[rows], logits=z[rows])
        size = alarm.size
        assert size is not None
        assert (size.n, size.ecd) == (whole.n, pytest.approx(whole.ecd, rel=1e-9))
        assert size.allowed == whole.verdict.allowed == 0.1
        assert (size.seen, size.announced) == pytest.approx((whole.mistakes.seen, whole.mistakes.announced))
        assert size.within == (size.ecd <= 0.1)
        assert f": ECD {size.ecd:.2g}, {'within' if size.within else 'beyond'} the limit of 0.1; e-value" in str(alarm)
    assert str(alarms["change"]).startswith(f"changed at about row {alarms['change'].began}, too sharp: ECD ")
    assert str(alarms["since the start"]).startswith("not calibrated since the start, too sharp: ECD ")


def test_sizes_are_told_beside_the_limits_that_were_asked_for() -> None:
    y, z = stream(3000, 1.5)
    wide, tight = (Monitor(limits=safecal.Limits(threshold=t)).update(y, logits=z)[0] for t in (0.5, 0.01))
    assert (wide.row, wide.log_e_value) == (tight.row, tight.log_e_value)
    assert ", within the limit of 0.5; " in str(wide)
    assert ", beyond the limit of 0.01; " in str(tight)
    monitor = Monitor(limits=safecal.Limits(threshold=0.01))
    assert Monitor.from_dict(monitor.to_dict()).limits == monitor.limits
    with pytest.raises(errors.OptionError, match="limits"):
        Monitor(limits=0.1)
    with pytest.raises(errors.MergeError):
        monitor.merge(Monitor())


def test_a_shift_tells_how_often_it_happens_and_rare_events_their_mistakes() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(-6.0, 0.3, 20_000)
    y = (rng.random(20_000) < special.expit(z + 1.5)).astype(int)
    alarms = {alarm.direction: alarm for alarm in Monitor().update(y, logits=z)}
    text = str(alarms["shifted up"])
    size = alarms["shifted up"].size
    assert "shifted up: the event happens more often than it says, " in text
    assert f" % where {100 * size.predicted:.2g} % is predicted: ECD " in text
    assert size.ecd < size.allowed
    assert not size.within
    assert f"but {size.seen:.0f} mistakes where {size.announced:.3g} were announced, more than 3 times as many" in text


def test_sizes_of_states_have_dimensions_and_no_mistakes() -> None:
    rng = np.random.default_rng(3)
    predictions = safecal.gaussian(2.0 * rng.normal(size=(500, 4)), np.zeros((500, 4)), std=1.0)
    size = Monitor().add(predictions)[0].size
    assert size.allowed == pytest.approx(0.4)
    assert math.isnan(size.seen)
    assert not size.within
    assert "beyond the limit of 0.4" in str(size)
    again = type(size).from_dict(json.loads(json.dumps(size.to_dict(), allow_nan=False)))
    assert str(again) == str(size)
    assert math.isnan(again.seen)


def test_a_size_that_is_not_known_is_not_told() -> None:
    y, z = stream(1000, 2.0)
    monitor = Monitor(run_length=1e4, alpha=1e-9)
    monitor.update(y[:100], logits=z[:100])
    document = json.loads(json.dumps(monitor.to_dict()))
    del document["total"]["detector"]["sums"], document["limits"]
    again = Monitor.from_dict(document)
    alarm = next(a for a in again.update(y[100:], logits=z[100:]) if a.kind == "change")
    assert alarm.began < 100
    assert alarm.size is None
    assert "ECD" not in str(alarm)
    old = alarm.to_dict()
    del old["size"]
    assert Alarm.from_dict(old) == alarm


def test_alarm_documents() -> None:
    for alarm in (
        Alarm("change", "over-confident", ("a", 1), 10, math.inf, 3.0, 2, None),
        Alarm("change", "shifted up", None, 9, 4.0, 3.0, 2, None, Size(8, 0.1, 0.2, 3.0, 2.5, 3.0, 0.25, 0.5)),
        Alarm("since the start", "under-confident", None, 10, 800.0, 3.0, 0, "w"),
    ):
        assert Alarm.from_dict(json.loads(json.dumps(alarm.to_dict()))) == alarm
    assert "1e+347" in str(alarm)
