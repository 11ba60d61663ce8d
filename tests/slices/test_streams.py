"""Rows that come in parts have the slices that they have in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.cli import main
from safecal.engines.batches import Batch, evaluate_batches
from safecal.engines.frames import evaluate_frame
from safecal.errors import EngineError, FormError, OptionError
from safecal.slices import drawn_rows
from safecal.slices.features import Kinds, Unreadable
from safecal.slices.two_passes import Draw, SliceStream

N = 4000
FEATURES = ["age", "seen", "site", "lab", "smoker"]


def _rows(rng: np.random.Generator) -> dict[str, Any]:
    z, age = rng.normal(0, 2, N), rng.integers(20, 90, N)
    lab = rng.random(N).round(3).astype(object)
    lab[rng.random(N) < 0.1] = None
    return {
        "y": (rng.random(N) < 1 / (1 + np.exp(-z / np.where(age >= 60, 5, 1)))).astype(int),
        "p": 1 / (1 + np.exp(-z)),
        "age": age,
        "seen": np.datetime64("2024-01-01") + rng.integers(0, 365, N),
        "site": rng.choice(np.array(["north", "south", None]), N).tolist(),
        "lab": lab.tolist(),
        "smoker": rng.random(N) < 0.3,
        "patient": rng.integers(0, 600, N),
        "w": rng.integers(1, 4, N),
    }


def _same(a: safecal.Slices | None, b: safecal.Slices | None) -> None:
    """Sums of parts differ in their last digits, and nothing else."""
    assert a is not None
    assert b is not None
    assert len(a.candidates) == len(b.candidates) > 0
    assert (a.searched, a.left_out, a.features, a.reach) == (b.searched, b.left_out, b.features, b.reach)
    assert [s.conditions for s in a] == [s.conditions for s in b]
    for one, other in zip(a.candidates, b.candidates, strict=True):
        assert (one.conditions, one.n, one.estimated_on) == (other.conditions, other.n, other.estimated_on)
        for name in ("firm", "share", "elsewhere", "predicted", "dimensions"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9)
        for name in ("ecd", "beyond", "temperature"):
            for end in ("value", "low", "high"):
                assert getattr(getattr(one, name), end) == pytest.approx(getattr(getattr(other, name), end), rel=1e-6)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="rows"),
        pytest.param({"cluster": "patient", "sample_weight": "w"}, id="clusters", marks=pytest.mark.proof),
    ],
)
def test_rows_in_parts_have_the_slices_of_all_rows_in_memory(
    more: dict[str, Any], tmp_path: Path, rng: np.random.Generator
) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(_rows(rng), strict=False)
    frame.write_parquet(tmp_path / "rows.parquet", row_group_size=500)
    frame.write_csv(tmp_path / "rows.csv")
    given: dict[str, Any] = {"y_true": "y", "y_prob": "p", "features": FEATURES, **more}
    whole = evaluate_frame(frame, **given)
    assert whole.slices is not None
    assert whole.slices[0].conditions[0].feature == "age"
    lazily = pl.scan_parquet(tmp_path / "rows.parquet")
    text = pl.scan_csv(tmp_path / "rows.csv", infer_schema=False)
    for frame in (lazily, text):
        parts = evaluate_frame(frame, **given, max_rows=700)
        _same(parts.slices, whole.slices)
        assert parts.verdict.decision == whole.verdict.decision == "UNSAFE"


def test_the_command_line_searches_more_rows_than_it_holds(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    pl = pytest.importorskip("polars")
    pl.DataFrame(_rows(rng), strict=False).write_csv(tmp_path / "rows.csv")
    command = ["evaluate", str(tmp_path / "rows.csv"), "--y", "y", "--prob", "p", "--features", "age,site"]
    assert main(command) == 0
    whole = capsys.readouterr().out
    assert main([*command, "--max-rows", "500"]) == 0
    parts = capsys.readouterr().out
    assert "age >= " in whole
    assert parts[parts.index("over-confident slice") :] == whole[whole.index("over-confident slice") :]


def _batches(rng: np.random.Generator, features: Any = None) -> Any:
    z, x = rng.normal(0, 2, (4, 500)), rng.normal(size=(4, 500))
    y = rng.random((4, 500)) < 1 / (1 + np.exp(-z))

    def batches() -> Iterator[Batch]:
        for k in range(4):
            yield Batch(safecal.bernoulli(y[k], logits=z[k]), features=features(k) if features else {"x": x[k]})

    return batches


def test_rows_that_are_read_once_are_searched_as_long_as_they_fit(rng: np.random.Generator) -> None:
    evaluation = evaluate_batches(_batches(rng), once=True)
    assert evaluation.slices is not None
    assert evaluation.slices.features == ("x",)
    with pytest.raises(OptionError, match="can be read only once cannot be searched"):
        evaluate_batches(_batches(rng), max_rows=250, once=True)


@pytest.mark.parametrize("options", [{}, {"strategy": "quantile"}])
def test_batches_that_do_not_come_again_are_refused(rng: np.random.Generator, options: Any) -> None:
    spent = _batches(rng)()
    said = (
        "`batches` must return all batches, from the first, each time .* got 2000 rows the first time, and 0 the second"
    )
    with pytest.raises(FormError, match=said):
        evaluate_batches(lambda: spent, max_rows=250, **options)


def test_rows_that_come_in_another_order_are_refused(rng: np.random.Generator) -> None:
    batches = _batches(rng)
    turn = [0]

    def shuffled() -> Iterator[Batch]:
        turn[0] += 1
        parts = list(batches())
        yield from parts if turn[0] == 1 else parts[::-1]

    with pytest.raises(EngineError, match="another order when they were read again"):
        evaluate_batches(shuffled, max_rows=250)


def test_a_column_that_holds_words_in_some_part_is_text_in_all(rng: np.random.Generator) -> None:
    texts = [["1", "2"], ["3", "a few"], [None, None], ["1", "1"]]
    evaluation = evaluate_batches(
        _batches(rng, lambda k: {"x": rng.normal(size=500), "many": np.array(texts[k] * 250, dtype=object)}),
        max_rows=250,
    ).slices
    assert evaluation is not None
    assert evaluation.features == ("x", "many")
    kinds = Kinds("many", np.asarray)
    kinds.add(np.array([1.5, np.nan]))
    kinds.add(np.array(["a", None], dtype=object))
    assert kinds.column(np.array([1.5, 2.0])).categories == ("1.5", "2.0")
    assert kinds.column(np.array([None, None], dtype=object)).missing().all()
    numbers = Kinds("x", np.asarray)
    numbers.add(np.array([1.5, np.nan]))
    numbers.add(np.array([None, None], dtype=object))
    assert numbers.column(np.array([1.0, 2.0])).with_nan  # others of its rows have it
    assert numbers.column(np.array([None], dtype=object)).missing().all()
    assert isinstance(numbers.read(np.array([None], dtype=object)), Unreadable)


def test_a_draw_of_parts_is_a_draw_of_all_and_holds_little(rng: np.random.Generator) -> None:
    wanted = drawn_rows(10_000, 5, 300)
    assert len(wanted) == 300
    assert wanted.mean() == pytest.approx(5000, abs=600)
    parts = Draw(5, 300)
    p = rng.random(10_000)
    for start in range(0, 10_000, 70):
        rows = slice(start, min(start + 70, 10_000))
        parts.add(safecal.bernoulli(p[rows] > 0.5, p[rows]), p[rows], None, {"x": p[rows]})
        assert sum(len(part.rows) for part in parts._parts) <= 450
    drawn = parts.drawn()
    assert drawn.rows.tolist() == wanted.tolist()
    assert drawn.weight is not None
    assert drawn.weight.tolist() == drawn.features["x"].tolist() == p[wanted].tolist()
    assert drawn.predictions.n == 300


def test_a_stream_without_conditions_finds_nothing(rng: np.random.Generator) -> None:
    stream = SliceStream(0.95, 1000, np.asarray)
    p = rng.random(100)
    rows = safecal.bernoulli(p > 0.5, p)
    stream.add(rows, None, None, {"same": np.zeros(100)})
    stream.search(None)
    slices = stream.slices(rows.tally(by=stream.numbers(rows, None, {"same": np.zeros(100)})))
    assert not slices.candidates
    assert slices.left_out == (("same", "its values are all alike"),)
