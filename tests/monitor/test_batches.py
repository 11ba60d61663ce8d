"""Windows, groups, ids, and the state that is written down."""

import json
import math

import numpy as np
import pytest
from scipy import special

import safecal
from safecal import errors
from safecal.monitor import Monitor


def rows(n: int, factor: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, n)
    return (rng.random(n) < special.expit(z)).astype(int), factor * z


def _one(monitor: Monitor, n: int, window: str) -> None:
    y, z = rows(n)
    monitor.update(y, logits=z, window=window)


def test_windows_hold_their_rows_whenever_they_come() -> None:
    monitor = Monitor()
    for name, seed in (("2026-01-02", 1), ("2026-01-01", 2), ("2026-01-02", 3)):
        y, z = rows(100, seed=seed)
        monitor.update(y, logits=z, window=name)
    windows = monitor.windows()
    assert [(name, summary.n) for name, (summary, _) in windows.items()] == [("2026-01-01", 100), ("2026-01-02", 200)]
    assert all(interval.low < summary.ecd < interval.high for summary, interval in windows.values())
    name, summary, interval = monitor.last_window()
    assert (name, (summary, interval)) == ("2026-01-02", windows["2026-01-02"])
    assert Monitor().last_window() is None
    assert monitor.window_of(0) == "2026-01-02"
    assert monitor.window_of(150) == "2026-01-01"


def test_a_batch_counts_once() -> None:
    monitor = Monitor()
    y, z = rows(100)
    for _ in range(3):
        monitor.update(y, logits=z, window="a", batch="one")
    assert monitor.summary.n == 100
    monitor.update(y, logits=z, window="a", batch="two")
    assert monitor.summary.n == 200
    again = Monitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    again.update(y, logits=z, window="a", batch="two")
    assert again.summary.n == 200


def test_old_windows_are_closed() -> None:
    monitor = Monitor(max_windows=2)
    y, z = rows(10)
    for name in "abcd":
        monitor.update(y, logits=z, window=name)
    assert list(monitor.windows()) == ["c", "d"]
    assert monitor.summary.n == 40
    with pytest.raises(errors.OptionError, match="later than 'b'"):
        monitor.update(y, logits=z, window="b")
    assert monitor.summary.n == 40


def test_a_window_is_judged_as_its_rows_are() -> None:
    monitor = Monitor()
    batches = [rows(700, 2.0, seed) for seed in range(3)]
    for y, z in batches:
        monitor.update(y, logits=z, window="monday")
    _one(monitor, 50, window="tuesday")
    y, z = (np.concatenate(column) for column in zip(*batches, strict=True))
    evaluation, wanted = safecal.Evaluation.of(monitor.tally("monday")), safecal.evaluate(y, logits=z, bins=None)
    assert (evaluation.verdict.decision, evaluation.verdict.reason) == ("UNSAFE", wanted.verdict.reason)
    for name in ("interval", "temperature"):
        a, b = getattr(evaluation, name), getattr(wanted, name)
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), rel=1e-9)
    assert monitor.tally() == monitor.tally("tuesday")
    assert monitor.tally().summary == monitor.windows()["tuesday"][0]


def test_the_last_windows_keep_all_their_sums() -> None:
    monitor = Monitor(judged_windows=2)
    for name in ("b", "c", "a", "d", "b"):  # two of them late
        _one(monitor, 10, window=name)
    assert [name for name, window in monitor._windows.kept.items() if window.tally is not None] == ["c", "d"]
    assert monitor.windows()["b"][0].n == 20
    for window in ("b", "x"):
        with pytest.raises(errors.OptionError) as caught:
            monitor.tally(window)
        assert str(caught.value) == (
            f"`window` must be one of the last 2, which keep all their sums; got {window!r}.\n\n"
            "Hint: there are 'c' to 'd'. `judged_windows` keeps more."
        )
    with pytest.raises(errors.OptionError, match="there is none yet"):
        Monitor().tally()


@pytest.mark.parametrize("windows", [1, 4, 6, 7, 9])
def test_every_window_keeps_its_sums_until_there_are_too_many(windows: int) -> None:
    monitor = Monitor(judged_windows=7)
    for k in range(windows):
        _one(monitor, 10, window=f"{k}")
    wanted = tuple(f"{k}" for k in range(windows))[-7:]
    assert monitor.judged() == wanted
    assert [monitor.tally(name).n for name in wanted] == [10] * len(wanted)
    assert monitor.judged(since=10 * (windows - 1)) == wanted[-1:]
    assert monitor.judged(since=10 * windows) == ()


def test_tallies_are_written_down_and_merge() -> None:
    whole, first, second = Monitor(), Monitor(), Monitor()
    y, z = rows(200)
    whole.update(y, logits=z, window="a")
    first.update(y[:90], logits=z[:90], window="a")
    second.update(y[90:], logits=z[90:], window="a")
    second.update(y, logits=z, window="b")
    first.merge(Monitor.from_dict(json.loads(json.dumps(second.to_dict()))))
    assert first.tally("a").spectrum.moments == pytest.approx(whole.tally("a").spectrum.moments, rel=1e-9, abs=1e-12)
    assert first.tally("b") == second.tally("b")


def test_a_state_without_tallies_is_read_and_goes_on() -> None:
    monitor = Monitor()
    _one(monitor, 100, window="a")
    document = json.loads(json.dumps(monitor.to_dict()))
    del document["judged_windows"], document["windows"]["judged"], document["windows"]["kept"]["a"]["tally"]
    again = Monitor.from_dict(document)
    assert again.windows() == monitor.windows()
    with pytest.raises(errors.OptionError, match="which keep all their sums"):
        again.tally("a")
    for window in ("a", "b"):
        _one(again, 100, window=window)
    assert (again.windows()["a"][0].n, again.tally("b").n) == (200, 100)


def test_rows_of_another_kind_leave_the_window_as_it_was() -> None:
    monitor = Monitor()
    monitor.update([0, 2], [[0.5, 0.3, 0.2], [0.2, 0.1, 0.7]], window="a")
    before = monitor.to_dict()
    with pytest.raises(errors.MergeError, match="tallies must be of the same kind"):
        monitor.update([0, 3], [[0.5, 0.2, 0.2, 0.1], [0.2, 0.1, 0.3, 0.4]], window="a")
    assert monitor.to_dict() == before


def test_shards_must_not_share_batches() -> None:
    y, z = rows(10)
    first, second = Monitor(), Monitor()
    for monitor in (first, second):
        monitor.update(y, logits=z, window="a", batch="one")
    with pytest.raises(errors.OptionError, match="'one' in both"):
        first.merge(second)


def test_groups_share_the_error_rate() -> None:
    monitor = Monitor(grouped=True)
    y, z = rows(4000)
    site = np.arange(4000) % 3
    z[site == 2] *= 3.0
    alarms = monitor.update(y, logits=z, by=np.array(["a", "b", "c"])[site])
    assert monitor.groups == ("a", "b", "c")
    assert {alarm.group for alarm in alarms} <= {None, "c"}
    assert any(alarm.group == "c" for alarm in alarms)
    shares = [math.exp(-monitor.threshold(group=g).log_threshold) for g in (None, "a", "b", "c")]
    np.testing.assert_allclose(shares, [0.01, 0.005, 0.005 / 3, 0.005 / 6])
    every = [log for g in (None, "a", "b", "c") for log in monitor.threshold(group=g).log_thresholds.values()]
    assert len(every) == 16
    assert sum(math.exp(-log) for log in every) <= 0.05
    assert monitor.e_value(group="c") > 1e6 > monitor.e_value(group="a")
    again = Monitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert again.to_dict() == monitor.to_dict()
    monitor.acknowledge(group="c")
    assert not monitor.stream("c").changed


def test_a_refusal_leaves_the_monitor_as_it_was() -> None:
    monitor = Monitor(grouped=True)
    y, z = rows(100)
    monitor.update(y, logits=z, by=["a"] * 100, window="w")
    before = monitor.to_dict()
    with pytest.raises(errors.InputError):
        monitor.update([1, 2], [0.5, 0.5], by=["a", "a"], window="w")
    with pytest.raises(errors.ShapeError):
        monitor.update(np.ones(1001, int), np.full(1001, 0.5), by=np.arange(1001), window="w")
    assert monitor.to_dict() == before


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"alpha": 0.0}, errors.RangeError),
        ({"run_length": 1}, errors.RangeError),
        ({"run_length": math.inf}, errors.RangeError),
        ({"form": "page"}, errors.OptionError),
        ({"max_windows": 0}, errors.OptionError),
        ({"judged_windows": -1}, errors.OptionError),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        Monitor(**settings)


def test_bad_calls_are_refused() -> None:
    with pytest.raises(errors.OptionError, match="grouped=True"):
        Monitor().update([1], [0.5], by=["a"])
    with pytest.raises(errors.OptionError, match="must be given"):
        Monitor(grouped=True).update([1], [0.5])
    with pytest.raises(errors.OptionError, match="window"):
        Monitor().update([1], [0.5], batch="one")
    with pytest.raises(errors.OptionError, match="appeared"):
        Monitor().log_e_value(group="a")
    with pytest.raises(errors.MissingValueError, match=r"row 1 \(1 of 2 rows\)"):  # None stands for all rows
        Monitor(grouped=True).update([1, 0], [0.5, 0.5], by=["a", None])
    for given in ({"window": 3}, {"window": "a", "batch": 3}):
        with pytest.raises(errors.OptionError, match="must be text; got 3"):
            Monitor().update([1], [0.5], **given)
    with pytest.raises(errors.MergeError, match="does not merge with itself"):
        (same := Monitor()).merge(same)
    with pytest.raises(errors.MergeError, match="got int"):
        Monitor().merge(3)
    assert Monitor(run_length=np.int64(1000)).run_length == 1000.0
    with pytest.raises(errors.OptionError, match="direction"):
        Monitor().log_e_value("sideways")
    with pytest.raises(errors.DocumentError):
        Monitor.from_dict({})


@pytest.mark.proof
def test_the_state_stays_small() -> None:
    monitor = Monitor(max_windows=10)
    sizes = []
    for day in range(40):
        y, z = rows(500, seed=day)
        monitor.update(y, logits=z, window=f"{day:03d}")
        sizes.append(len(json.dumps(monitor.to_dict())))
    assert max(sizes[20:]) < 1.1 * sizes[19]


def test_repr_says_where_it_stands() -> None:
    y, z = rows(2000, 2.5)
    monitor = Monitor()
    assert "0 rows" in repr(monitor)
    monitor.update(y, logits=z)
    assert "over-confident, changed" in repr(monitor)
