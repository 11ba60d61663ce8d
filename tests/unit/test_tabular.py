"""Tables as frames and as Arrow streams; and groups that answer with their verdict."""

import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import safecal
from safecal._sums.table_views import frame_of, key_columns
from safecal._types import BoolArray, FloatArray
from safecal.errors import MissingExtraError, OptionError, UnavailableError
from safecal.monitor import Monitor

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def _drawn() -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 900)
    return z, rng.random(900) < 1 / (1 + np.exp(-z))


Z, Y = _drawn()
SITE, YEAR = np.repeat(["north", "south", "east"], 300), np.tile([2024, 2025], 450)
RESULT = safecal.evaluate(Y, logits=2 * Z, by={"site": SITE, "year": YEAR})
SITES = safecal.evaluate(Y, logits=2 * Z, by={"site": SITE})


def watched() -> Monitor:
    monitor = Monitor()
    for day in ("monday", "tuesday"):
        monitor.update(Y, logits=Z, window=day, batch=day)
    return monitor


def runs() -> safecal.Consistency:
    x = np.random.default_rng(1).normal(size=(200, 2))
    run, step = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
    return safecal.assess_consistency(safecal.gaussian(x, 0 * x, std=1.0), run=run, step=step)


MADE: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "bins": (
        lambda: RESULT.bins,
        ["probability_low", "probability_high", "n", "n_impossible", "share", "predicted", "observed", "esce", "ecd"],
    ),
    "groups": (
        lambda: RESULT.groups,
        ["site", "year", "n", "n_impossible", "share", "predicted", "observed", "esce", "nll", "ecd"],
    ),
    "a comparison": (
        lambda: safecal.compare(safecal.bernoulli(Y, logits=Z), safecal.bernoulli(Y, logits=2 * Z)),
        ["metric", "a", "b", "difference", "low", "high", "p_value"],
    ),
    "two evaluations": (lambda: safecal.compare(RESULT, SITES), ["metric", "a", "a_low", "a_high", "b"]),
    "ranges": (lambda: RESULT.local, ["on", "label", "low", "high", "n", "share", "predicted", "observed"]),
    "steps": (runs, ["step", "n", "ecd", "median", "low", "high", "inside"]),
    "windows": (watched, ["window", "n", "n_impossible", "ecd", "ecd_low", "ecd_high"]),
}


@pytest.mark.parametrize("case", MADE)
def test_both_libraries_and_arrow_hold_the_same_columns(case: str) -> None:
    make, names = MADE[case]
    made = make()
    pandas, polars = made.to_frame("pandas"), made.to_frame("polars")
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert list(pandas.columns)[: len(names)] == polars.columns[: len(names)] == names
    pd.testing.assert_frame_equal(pandas, polars.to_pandas(), check_dtype=False)
    if hasattr(made, "__arrow_c_stream__"):
        assert pa.table(made).column_names == polars.columns
        assert pl.DataFrame(made).equals(polars)


def test_a_frame_holds_what_the_table_says() -> None:
    frame = RESULT.groups.to_frame(level=0.9)
    assert isinstance(frame, pd.DataFrame)
    assert frame["n"].sum() == 900
    assert frame["ecd"].tolist() == RESULT.groups.ecd.tolist()
    assert frame["ecd_low"].tolist() == [i.low for i in RESULT.groups.intervals(0.9)]
    assert frame["nll"].tolist() == [s.nll for s in RESULT.groups.summaries]
    first = frame.iloc[0]
    assert RESULT.groups[first["site"], first["year"]].n == first["n"]


def test_states_have_no_columns_of_classes(rng: np.random.Generator) -> None:
    x = rng.normal(size=50)
    frame = safecal.gaussian(x, 0 * x, std=1.0).evaluate(by=np.arange(50) % 2).groups.to_frame("polars")
    assert frame.columns == ["group", "n", "n_impossible", "share", "nll", "ecd", "ecd_low", "ecd_high"]


def test_keys_of_several_types_are_text() -> None:
    assert key_columns("k", [1, "one", None], ["1", "one", "None"]) == {"k": ["1", "one", None]}
    assert key_columns("k", [("a", 1), "b"], ["a / 1", "b"]) == {"k": ["a / 1", "b"]}


def test_an_unknown_library_is_refused() -> None:
    with pytest.raises(OptionError, match="`library` must be"):
        RESULT.bins.to_frame("vaex")


def test_without_pandas_polars_answers_and_without_both_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(frame_of({"n": [1]}), pl.DataFrame)
    with pytest.raises(MissingExtraError, match="needs pandas, which is not installed"):
        frame_of({"n": [1]}, "pandas")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match="needs pandas or Polars"):
        frame_of({"n": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="needs PyArrow"):
        RESULT.bins.__arrow_c_stream__()


# Groups answer with their verdict


def test_a_group_answers_with_its_verdict_and_is_a_summary_still() -> None:
    north = SITES.groups["north"]
    plain = safecal.Summary.from_dict(north.to_dict())
    assert north == plain
    assert plain == north
    alone = safecal.bernoulli(Y[:300], logits=2 * Z[:300]).summary()
    assert north.n == alone.n
    assert north.ecd == pytest.approx(alone.ecd, rel=1e-12)  # NumPy adds up the rows of a group in another order
    assert isinstance(north, safecal.Summary)
    assert north.verdict == SITES.group_verdict("north")
    assert (north.interval, north.temperature, north.ratio) == (
        north.verdict.ecd, north.verdict.temperature, north.verdict.ratio,
    )  # fmt: skip
    assert {key: s.verdict.decision for key, s in SITES.groups.items()}.keys() == set(SITES.groups.keys)


def test_a_verdict_of_a_group_is_found_once() -> None:
    assert SITES.groups["south"].verdict is SITES.groups["south"].verdict is SITES.group_verdict("south")


def test_sums_alone_have_no_verdict() -> None:
    both = SITES.groups["north"] + SITES.groups["south"]
    assert type(both) is safecal.Summary
    assert both.n == 600
    with pytest.raises(UnavailableError, match="only a group of an evaluation has a verdict"):
        _ = SITES.bins[0.0, 0.1].verdict


def test_a_group_travels_as_its_sums_and_an_evaluation_keeps_its_verdicts() -> None:
    again = pickle.loads(pickle.dumps(SITES.groups["north"]))
    assert again == SITES.groups["north"]
    assert hash(again) == hash(SITES.groups["north"])
    result = pickle.loads(pickle.dumps(SITES))
    assert result.groups["east"].verdict.decision == SITES.groups["east"].verdict.decision
