"""Labels, keys and columns that look alike and are not."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.cli import main
from safecal.engines.batches import Batch, evaluate_batches
from safecal.engines.frames import evaluate_frame
from safecal.errors import DtypeError, LabelError, MissingValueError, OptionError, SafecalError

SMALL, LARGE = 2**53, 2**53 + 1  # one float64
LABELS = np.array([SMALL, LARGE, SMALL, LARGE])
P = np.array([0.2, 0.7, 0.3, 0.8])
MATRIX = np.column_stack([1 - P, P])
UNSIGNED = LABELS.astype(np.uint64) + np.uint64(2**63)


@pytest.mark.parametrize("labels", [LABELS, UNSIGNED, LABELS.tolist(), [*LABELS.tolist()[:2], -1, LARGE][:2] * 2])
def test_neighbours_beyond_floats_are_two_labels(labels: Any) -> None:
    """As the positive label, as names of classes, as groups and as clusters."""
    small, large = (int(v) for v in labels[:2])
    wanted = [False, True, False, True]
    assert safecal.bernoulli(labels, P, pos_label=large).happened.tolist() == wanted
    assert safecal.categorical(labels, MATRIX, labels=[small, large]).happened.tolist() == [0, 1, 0, 1]
    assert safecal.evaluate([0, 1, 0, 1], P, by=labels).groups.keys == (small, large)
    assert safecal.evaluate([0, 1, 0, 1], P, cluster=labels).tally.clusters.keys == (small, large)


def test_whole_numbers_that_numpy_makes_floats_of_stay_whole() -> None:
    """Beside a missing one, beside floats, and beside a negative one beyond 63 bits."""
    pd = pytest.importorskip("pandas")
    for by in ([2**63, 2**63 + 1, -1, 2.5], [SMALL, LARGE, 0.5, None]):
        assert len(safecal.evaluate([0, 1, 0, 1], P, by=by).groups.keys) == 4
    for kind in ("Int64", "UInt64", "int64[pyarrow]"):
        column = pd.Series([SMALL, LARGE, None, LARGE], dtype=kind)
        assert set(safecal.evaluate([0, 1, 0, 1], P, by=column).groups.keys) == {SMALL, LARGE, None}
    mixed = [2**63 + 1, -1, 2**63 + 1, -1]
    with pytest.raises(LabelError, match="never occurs"):
        safecal.bernoulli(mixed, P, pos_label=2**63)


def test_a_float_is_no_neighbour_of_itself() -> None:
    """A whole number and a float are compared as Python compares them."""
    assert safecal.bernoulli(LABELS, P, pos_label=float(SMALL)).happened.tolist() == [True, False, True, False]
    assert safecal.bernoulli([2, 3, 2, 3], P, pos_label=3.0).happened.tolist() == [False, True, False, True]
    floats = np.array([SMALL, 1.0, SMALL, 1.0])
    assert safecal.bernoulli(floats, P, pos_label=SMALL).happened.tolist() == [True, False, True, False]
    for label in (LARGE, 2**2000):
        with pytest.raises(LabelError, match="never occurs"):
            safecal.bernoulli(floats, P, pos_label=label)
    with pytest.raises(LabelError):
        safecal.bernoulli(LABELS, P, pos_label=2.5)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_tell_neighbours_apart(library: str) -> None:
    module = pytest.importorskip(library)
    made = module.table if library == "pyarrow" else module.DataFrame
    frame = made({"y": LABELS, "p": P, "g": UNSIGNED})
    found = evaluate_frame(frame, y_true="y", y_prob="p", pos_label=LARGE, by="g", cluster="g")
    assert found.accuracy == 1.0
    assert found.groups is not None
    assert found.groups.keys == tuple(UNSIGNED[:2].tolist())


def test_decimals_of_arrow_are_whole_where_they_are() -> None:
    pa = pytest.importorskip("pyarrow")
    for kind in (pa.decimal128(38, 0), pa.decimal128(5, 2)):
        labels = [Decimal(SMALL), Decimal(LARGE)] * 2 if kind.scale == 0 else [Decimal(0), Decimal(1)] * 2
        table = pa.table({"y": pa.array(labels, kind), "p": P})
        assert evaluate_frame(table, y_true="y", y_prob="p", pos_label=int(labels[1])).accuracy == 1.0


def test_batches_tell_neighbours_apart() -> None:
    def batches() -> Any:
        for k in range(2):
            yield Batch(safecal.bernoulli(LABELS == LARGE, P), None, {"g": LABELS + 2 * k}, LABELS)

    found = evaluate_batches(batches, max_rows=1)
    assert found.groups is not None
    assert found.groups.keys == (SMALL, LARGE, SMALL + 2, SMALL + 3)
    assert found.tally.clusters.keys == (SMALL, LARGE)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_the_command_line_tells_neighbours_apart(
    suffix: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whole numbers of a file are not rounded, with and without missing ones, signed or not."""
    pytest.importorskip("polars")
    for n, (small, large) in enumerate([(SMALL, LARGE), (2**63, 2**63 + 1)]):
        file = tmp_path / f"{n}.{suffix}"
        rows = list(zip([small, large, small, large], P, strict=True))
        if suffix == "csv":
            file.write_text("y,p\n" + "".join(f"{y},{p}\n" for y, p in rows) + ",0.5\n")
        else:
            file.write_text("".join(f'{{"y": {y}, "p": {p}}}\n' for y, p in rows) + '{"y": null, "p": 0.5}\n')
        assert main(["evaluate", str(file), "--pos-label", str(large), "--drop-missing"]) == 0
        assert "accuracy      1.0000" in capfd.readouterr().out


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "arrow"])
def test_a_name_that_stands_for_two_columns_is_refused(
    suffix: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    file = tmp_path / f"twice.{suffix}"
    table = pa.Table.from_arrays([pa.array([0, 1] * 9), pa.array([0.2, 0.7] * 9), pa.array([0.9, 0.1] * 9)], "ypp")
    if suffix == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, file)
    elif suffix == "arrow":
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        file.write_text("y,p,p\n0,.2,.9\n1,.7,.1\n".replace(",", "," if suffix == "csv" else "\t"))
    assert main(["evaluate", str(file), "--y", "y", "--prob", "p"]) == 2
    told = capfd.readouterr().err
    assert "panicked" not in told
    assert "2 columns 'p'" in told or "more than one" in told


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_frames_with_two_columns_of_a_name_are_refused_where_it_is_chosen(library: str) -> None:
    module = pytest.importorskip(library)
    columns = [[0, 1] * 9, [0.2, 0.7] * 9, [1, 2] * 9, [3, 4] * 9]
    if library == "pandas":
        frame = module.DataFrame(np.column_stack(columns), columns=["y", "p", "g", "g"])
    else:
        frame = module.Table.from_arrays(list(map(module.array, columns)), ["y", "p", "g", "g"])
    with pytest.raises(OptionError, match="must have one column 'g'; got 2 of that name"):
        evaluate_frame(frame, y_true="y", y_prob="p", by="g")
    assert evaluate_frame(frame, y_true="y", y_prob="p").n == 18


def test_any_byte_but_zero_is_true(rng: np.random.Generator) -> None:
    """Truths that other programs wrote may be any byte; C and NumPy count them alike."""
    raw = rng.integers(0, 256, 400, dtype=np.uint8) * (rng.random(400) < 0.6)
    views, plain = np.frombuffer(raw.astype(np.uint8).tobytes(), dtype=np.bool_), raw != 0
    p = rng.uniform(0.01, 0.99, 400)
    for weight in (None, rng.random(400)):
        for by in (None, "outcomes"):
            options: dict[str, Any] = {"sample_weight": weight}
            a = safecal.evaluate(views, p, by=None if by is None else views, **options)
            b = safecal.evaluate(plain, p, by=None if by is None else plain, **options)
            assert a.to_dict() == b.to_dict()
    assert safecal.bernoulli(views, p).score().observed.view(np.uint8).max() == 1
    assert safecal.bernoulli(views[::2], p[::2]).ecd == safecal.bernoulli(plain[::2], p[::2]).ecd


@pytest.mark.parametrize(
    "labels",
    [
        np.zeros(4, dtype=[("a", "f8"), ("b", "i4")]),
        np.zeros(4, dtype="V3"),
        np.array([0, 1, 0, 1], dtype=complex),
        np.array([0, 1, 0, 1j], dtype=object),
        np.array([0, 1, 0, np.complex64(1)], dtype=object),
        [0, 1, 0, 1 + 0j],
    ],
    ids=["structure", "raw", "complex", "object", "complex64", "list"],
)
def test_what_is_no_label_is_refused(labels: Any) -> None:
    for call in (
        lambda: safecal.bernoulli(labels, P),
        lambda: safecal.bernoulli(labels, P, pos_label=1),
        lambda: safecal.categorical(labels, MATRIX),
        lambda: safecal.categorical(labels, MATRIX, labels=[0, 1]),
        lambda: safecal.evaluate(labels, P),
    ):
        with pytest.raises(DtypeError, match="must hold labels"):
            call()


def test_times_are_no_class_numbers() -> None:
    for kind in ("m8[s]", "M8[D]"):
        with pytest.raises(SafecalError):
            safecal.categorical(np.array([0, 1, 0, 1]).astype(kind), MATRIX)


@pytest.mark.parametrize("kind", [Decimal, Fraction])
def test_exact_numbers_are_named_for_what_they_are(kind: type) -> None:
    values = np.array([kind("0.2"), kind("0.7"), kind("0.3"), kind("0.8")])
    with pytest.raises(DtypeError, match=rf"got {kind.__name__} objects.\n\nHint: .*np.asarray\(y_prob, dtype=float\)"):
        safecal.bernoulli([0, 1, 0, 1], values)
    assert safecal.bernoulli([0, 1, 0, 1], np.asarray(values, dtype=float)).n == 4
    with pytest.raises(DtypeError, match=kind.__name__):
        safecal.evaluate([0, 1, 0, 1], P, sample_weight=values)
    assert safecal.bernoulli([kind(0), kind(1)] * 2, P).happened.tolist() == [False, True] * 2


def test_a_signalling_nan_is_missing() -> None:
    with pytest.raises(MissingValueError):
        safecal.bernoulli([Decimal("sNaN"), Decimal(1)] * 2, P)
    assert None in safecal.evaluate([0, 1, 0, 1], P, by=[Decimal("sNaN"), 1, 2, 3]).groups.keys


def test_a_negative_zero_is_a_probability_of_zero() -> None:
    for y in (0, 1):
        assert safecal.evaluate([y, 1], [-0.0, 0.5]).ecd == safecal.evaluate([y, 1], [0.0, 0.5]).ecd
        assert safecal.ecd([y], [-0.0]) == (np.inf if y else 0.0)
