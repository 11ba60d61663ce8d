"""The same odd table through every door: the same answer, or the same refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import safecal
from safecal import errors
from safecal.cli import build_parser
from safecal.cli.table_file import TableFile
from safecal.cli.watch_session import BatchContent
from safecal.engines.batches import evaluate_batches
from safecal.errors import SafecalError
from safecal.watch import Arrival

pl = pytest.importorskip("polars", minversion="1.38")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

P = [0.2, 0.7, 0.9, 0.1, 0.4]
Y = [0, 1, 1, 0, 1]


class Table(NamedTuple):
    """Columns, how they are named, and what comes of them: a refusal, or the answer that plain columns give."""

    columns: dict[str, list[Any]]
    refused: type[SafecalError] | None = None
    options: dict[str, Any] = {}  # noqa: RUF012  (never changed)
    row: int | None = None
    rows: int | None = None


def _with(**changed: list[Any]) -> dict[str, list[Any]]:
    return {"y": list(Y), "p": list(P), **changed}


WORDS = ["no", "yes", "yes", "no", "yes"]
TABLES = {
    "plain": Table(_with()),
    "labels as floats": Table(_with(y=[0.0, 1.0, 1.0, 0.0, 1.0])),
    "labels as truths": Table(_with(y=[False, True, True, False, True])),
    "labels as text": Table(_with(y=["0", "1", "1", "0", "1"])),
    "labels as text with a point": Table(_with(y=["0.0", "1.0", "1.0", "0.0", "1.0"])),
    "probabilities as text": Table(_with(p=["0.2", "0.7", ".9", "1e-1", " 0.4"])),
    "words with the positive one named": Table(_with(y=WORDS), options={"pos_label": "yes"}),
    "words without": Table(_with(y=WORDS), errors.LabelError),
    "a positive label that never occurs": Table(_with(y=WORDS), errors.LabelError, {"pos_label": "Yes"}),
    "three words": Table(_with(y=["no", "yes", "maybe", "no", "yes"]), errors.LabelError, {"pos_label": "yes"}),
    "a number as the positive label": Table(_with(y=[3, 7, 7, 3, 7]), options={"pos_label": 7}),
    "numbers that are words": Table(_with(y=["03", "7", "7", "03", "7"]), options={"pos_label": "7"}),
    "a label without its outcome": Table(_with(y=[0, 1, None, 0, 1]), errors.MissingValueError, row=2, rows=1),
    "a word that is missing": Table(
        _with(y=["no", None, "yes", None, "yes"]), errors.MissingValueError, {"pos_label": "yes"}, 1, 2
    ),
    "a probability that is missing": Table(
        _with(p=[0.2, None, 0.9, 0.1, None]), errors.MissingValueError, row=1, rows=2
    ),
    "NaN": Table(_with(p=[0.2, 0.7, float("nan"), 0.1, 0.4]), errors.MissingValueError, row=2, rows=1),
    "a probability above 1": Table(_with(p=[0.2, 0.7, 1.2, 0.1, 1.4]), errors.RangeError, row=2, rows=2),
    "percentages": Table(_with(p=[20.0, 70.0, 90.0, 10.0, 40.0]), errors.RangeError, row=0, rows=5),
    "a word among probabilities": Table(_with(p=["0.2", "high", "0.9", "0.1", "0.4"]), errors.DtypeError),
    "dates as probabilities": Table(_with(p=[date(2025, 1, k) for k in range(1, 6)]), errors.DtypeError),
    "truths as probabilities": Table(_with(p=[True, False, True, True, False]), errors.DtypeError),
    "a tie": Table(_with(y=[0.0, 1.0, 0.5, 0.0, 1.0]), errors.LabelError, row=2, rows=1),
    "another number": Table(_with(y=[0, 1, 2, 0, 1]), errors.LabelError, row=2, rows=1),
    "large whole numbers": Table(
        _with(y=[9007199254740992, 9007199254740993, 9007199254740993, 9007199254740992, 9007199254740993]),
        options={"pos_label": 9007199254740993},
    ),
    "swapped columns": Table({"y": [0.2, 0.7, 0.9, 0.1, 0.4], "p": [0, 1, 1, 0, 1]}, errors.LabelError),
    "decimals": Table(_with(p=[Decimal(str(p)) for p in P])),
    "no rows": Table({"y": [], "p": []}, errors.SafecalError),
}
LISTS = {
    "lists": Table({"y": [0, 1, 2], "p": [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]}),
    "lists of two lengths": Table({"y": [0, 1, 1], "p": [[0.7, 0.3], [0.1, 0.8, 0.1], [0.4, 0.6]]}, errors.ShapeError),
    "a list that is missing": Table({"y": [0, 1, 1], "p": [[0.7, 0.3], None, [0.4, 0.6]]}, errors.MissingValueError),
    "lists that do not sum to 1": Table(
        {"y": [0, 1, 1], "p": [[0.7, 0.2]] * 3}, errors.NormalisationError, row=0, rows=3
    ),
}

Door = Callable[[Table, Path], safecal.Evaluation]


def _arrays(table: Table, _: Path) -> safecal.Evaluation:
    y, p = (np.array(column) for column in table.columns.values())
    return safecal.evaluate(y, p, **table.options)


def _frame(table: Table, make: Callable[[Any], Any]) -> safecal.Evaluation:
    from safecal.engines.frames import evaluate_frame

    return evaluate_frame(make(table.columns), y_true="y", y_prob="p", **table.options)


def _categories(columns: Any) -> Any:
    frame = pd.DataFrame(columns)
    return frame.astype({"y": "category"}) if frame["y"].dtype in (object, "str", "string") else frame


def _enums(columns: Any) -> Any:
    frame = pl.DataFrame(columns)
    names = frame["y"].drop_nulls().unique().to_list()
    return frame.with_columns(pl.col("y").cast(pl.Enum(names))) if frame["y"].dtype == pl.String else frame


def _file(table: Table, folder: Path, kind: str) -> Path:
    path = folder / f"rows.{kind}"
    frame = pl.DataFrame(table.columns, strict=False)
    if kind == "csv":
        frame.write_csv(path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in frame.iter_rows(named=True)))
        if not frame.height:
            path.write_text("")
    else:
        frame.write_parquet(path)
    return path


def _command(table: Table, folder: Path, kind: str) -> safecal.Evaluation:
    words = ["evaluate", str(_file(table, folder, kind)), "--y", "y", "--prob", "p"]
    words += [word for name, value in table.options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    options = build_parser("evaluate").parse_args(words)
    return evaluate_batches(TableFile.opened(options.file, options, options.prob, options.logits).batches)


def _watch(table: Table, folder: Path) -> safecal.Evaluation:
    path = _file(table, folder, "parquet")
    begun = {"y": "y", "prob": ["p"], **{name: str(value) for name, value in table.options.items()}}
    parts = [part.predictions for part in BatchContent(Arrival("rows", "0", "parquet", path=path), begun).parts()]
    if table.options and not any(part.happened.any() for part in parts):
        raise errors.LabelError("a batch need not hold the positive label")
    return parts[0].evaluate()


DOORS: dict[str, Door] = {
    "arrays": _arrays,
    "pandas": lambda table, _: _frame(table, pd.DataFrame),
    "pandas categories": lambda table, _: _frame(table, _categories),
    "polars": lambda table, _: _frame(table, pl.DataFrame),
    "polars enums": lambda table, _: _frame(table, _enums),
    "pyarrow": lambda table, _: _frame(table, pa.table),
    "csv": lambda table, folder: _command(table, folder, "csv"),
    "jsonl": lambda table, folder: _command(table, folder, "jsonl"),
    "parquet": lambda table, folder: _command(table, folder, "parquet"),
    "watch": _watch,
}
# JSON has no NaN; and NumPy knows decimals as objects alone.
OTHER = {("NaN", "jsonl"): errors.FileError, ("decimals", "arrays"): errors.DtypeError}


def _pairs() -> Iterator[Any]:
    """Yield each table with each door; in the fast tier each table comes to two doors or three, and so on in turn."""
    for i, name in enumerate([*TABLES, *LISTS]):
        for j, door in enumerate(DOORS):
            yield pytest.param(name, door, marks=() if (i + j) % 4 == 0 else pytest.mark.proof)


@pytest.mark.parametrize(("name", "door"), list(_pairs()))
def test_every_door_answers_alike(name: str, door: str, tmp_path: Path) -> None:
    table = (TABLES | LISTS)[name]
    if name in LISTS and door == "csv":
        with pytest.raises(pl.exceptions.PolarsError):
            _file(table, tmp_path, "csv")  # no such file can be written
        return
    if name in LISTS and door == "arrays" and name != "lists that do not sum to 1" and table.refused is not None:
        with pytest.raises(SafecalError):
            safecal.evaluate(table.columns["y"], table.columns["p"])
        return
    if (name, door) in OTHER:
        table = Table(table.columns, OTHER[name, door])
    _holds(table, lambda: DOORS[door](table, tmp_path))


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("name", [*TABLES, *LISTS])
def test_nothing_but_numpy_answers_alike(name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = (TABLES | LISTS)[name]
    if name in LISTS and kind == "csv":
        return
    path = _file(table, tmp_path, kind)
    monkeypatch.setattr(sys.modules[__name__], "_file", lambda *_: path)
    if (name, kind) in OTHER:
        table = Table(table.columns, OTHER[name, kind])
    monkeypatch.setitem(sys.modules, "polars", None)
    _holds(table, lambda: _command(table, tmp_path, kind))


def _holds(table: Table, ask: Callable[[], safecal.Evaluation]) -> None:
    if table.refused is None:
        k = np.ndim(table.columns["p"][0]) > 0
        p: Any = table.columns["p"] if k else P
        wanted = safecal.evaluate([0, 1, 2] if k else Y, p)
        answer = ask()
        assert answer.ecd == pytest.approx(wanted.ecd, rel=1e-14)
        assert answer.tally.summary == wanted.tally.summary
        return
    with pytest.raises(table.refused) as refusal:
        ask()
    complaint = getattr(refusal.value, "complaint", None)
    if table.rows is not None:
        assert complaint.count == (table.rows, len(table.columns["y"]))
    if table.row is not None:
        assert complaint.place.startswith(f"row {table.row}")


@pytest.mark.parametrize("truths", [[True, False, True], ["true", "false", "true"], ["TRUE", "FALSE", "TRUE"]])
@pytest.mark.parametrize("order", [("p_true", "p_false"), ("p_false", "p_true"), (".pred_TRUE", ".pred_FALSE")])
def test_truths_belong_to_the_columns_that_are_named_so(truths: list[Any], order: tuple[str, str]) -> None:
    from safecal.engines.frames import evaluate_frame

    p = np.array([0.9, 0.2, 0.7])
    columns = {name: p if name.lower().endswith("true") else 1 - p for name in order}
    evaluation = evaluate_frame(pl.DataFrame({"y": truths, **columns}), y_true="y", y_prob=list(order))
    assert evaluation.nll == pytest.approx(safecal.evaluate([1, 0, 1], p).nll)


@pytest.mark.parametrize("order", [(".pred_0", ".pred_1"), (".pred_1", ".pred_0"), ("p1", "p0")])
def test_numbers_belong_to_the_columns_that_end_in_them(order: tuple[str, str]) -> None:
    from safecal.engines.frames import evaluate_frame

    p = np.array([0.9, 0.2, 0.7])
    columns = {name: p if name.endswith("1") else 1 - p for name in order}
    evaluation = evaluate_frame(pl.DataFrame({"y": [1, 0, 1], **columns}), y_true="y", y_prob=list(order))
    assert evaluation.nll == pytest.approx(safecal.evaluate([1, 0, 1], p).nll)


@pytest.mark.parametrize("names", [("p_true", "p_false"), (".pred_yes", ".pred_no"), ("pos_prob", "neg_prob")])
def test_names_that_say_which_is_which_are_not_matched_by_place(names: tuple[str, str], tmp_path: Path) -> None:
    from safecal.engines.frames import evaluate_frame

    yes, no = names
    frame = pl.DataFrame({"y": [0, 1, 1, 0], yes: [0.2, 0.7, 0.9, 0.1], no: [0.8, 0.3, 0.1, 0.9]})
    wanted = evaluate_frame(frame, y_true="y", y_prob=yes)
    for outcomes in (frame, *([] if yes == "p_true" else [frame.with_columns(y=pl.col("y") == 1)])):
        with pytest.raises(errors.LabelError, match=f"must name the column of 0 before.*; got '{yes}' before '{no}'"):
            evaluate_frame(outcomes, y_true="y", y_prob=[yes, no])
        assert evaluate_frame(outcomes, y_true="y", y_prob=[no, yes]).ecd == pytest.approx(wanted.ecd)
    assert evaluate_frame(frame, y_true="y", y_prob=[yes, no], labels=[1, 0]).ecd == pytest.approx(wanted.ecd)
    frame.write_csv(tmp_path / "rows.csv")
    words = ["evaluate", str(tmp_path / "rows.csv"), "--y", "y", "--prob", yes, "--prob", no]
    said = subprocess.run([sys.executable, "-m", "safecal", *words], capture_output=True, text=True)
    assert said.returncode == 2
    assert f"swap them, `--prob {no} --prob {yes}`" in " ".join(said.stderr.split())
    words += ["--label", "1", "--label", "0", "--json"]
    assert subprocess.run([sys.executable, "-m", "safecal", *words], capture_output=True).returncode == 0
