"""Features of every kind and from every library, and columns that no condition can be made of."""

import datetime as dt
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.errors import AlignmentError, DtypeError, MissingExtraError, ShapeError
from safecal.slices.discovery import BINS, code_feature
from safecal.slices.features import Unreadable, columns_of, read_feature

N = 3000


@pytest.fixture
def predictions(rng: np.random.Generator) -> safecal.Predictions:
    z = rng.normal(0, 2, N)
    return safecal.bernoulli(rng.random(N) < 1 / (1 + np.exp(-z)), logits=z)


def _left_out(predictions: safecal.Predictions, column: Any) -> str:
    slices = safecal.find_slices(predictions, {"odd": column, "even": np.arange(N) % 7})
    assert slices.features == ("even",)
    return dict(slices.left_out)["odd"]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (np.full(N, 3.5), "its values are all alike"),
        (["same"] * N, "its values are all alike"),
        (np.full(N, np.nan), "all its values are missing"),
        ([None] * N, "all its values are missing"),
        (np.array(["NaT"] * N, "M8[s]"), "all its values are missing"),
        ([f"a remark of its own, number {k}" for k in range(N)], "none of its 3000 values is frequent enough"),
        ([[1, 2]] * N, "it holds lists"),
        ([(1, 2)] * N, "it holds lists"),
        (np.zeros(N, complex), "it is of type complex128"),
        (np.zeros(N, "m8[s]"), "it is of type timedelta64[s]"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_column_that_parts_no_rows_is_left_out_and_said(
    predictions: safecal.Predictions, column: Any, why: str
) -> None:
    if isinstance(column, list) and isinstance(column[0], list | tuple):
        holes = np.empty(N, dtype=object)
        holes[:] = column
        column = holes
    assert _left_out(predictions, column) == why


def test_frequent_ones_among_very_many_categories_are_kept(rng: np.random.Generator) -> None:
    n = 100_000
    z = rng.normal(0, 2, n)
    often = rng.random(n) < 0.1
    wrong = np.where(often, 4.0, 1.0)
    predictions = safecal.bernoulli(rng.random(n) < 1 / (1 + np.exp(-z / wrong)), logits=z)
    names = np.where(often, "often", np.arange(n).astype(str)).tolist()
    slices = safecal.find_slices(predictions, {"name": names})
    assert [s.condition for s in slices] == ["name is often"]


def test_a_missing_value_is_a_value_of_its_own(rng: np.random.Generator) -> None:
    n = 6000
    z, lab = rng.normal(0, 2, n), rng.normal(size=n)
    lab[rng.random(n) < 0.15] = np.nan
    predictions = safecal.bernoulli(rng.random(n) < 1 / (1 + np.exp(-z / np.where(np.isnan(lab), 4, 1))), logits=z)
    slices = safecal.find_slices(predictions, {"lab": lab})
    assert slices[0].condition == "lab is missing"
    assert slices[0].n == np.isnan(lab).sum()


def test_a_feature_that_is_the_outcome_is_left_out_and_warned_of(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, N)
    y = rng.random(N) < 1 / (1 + np.exp(-z))
    with pytest.warns(UserWarning, match="`label` tells what happened"):
        slices = safecal.find_slices(safecal.bernoulli(y, logits=z), {"label": y, "x": rng.normal(size=N)})
    assert slices.left_out == (("label", "it tells what happened"),)
    assert not len(slices)
    x = rng.normal(size=(N, 2))
    states = safecal.gaussian(x + rng.normal(size=(N, 2)), x, std=np.ones(2))
    with pytest.warns(UserWarning, match="`truth` tells what happened"):
        slices = safecal.find_slices(states, {"truth": states.x_true[:, 1], "x": x[:, 0]})  # type: ignore[attr-defined]
    assert slices.features == ("x",)


def test_a_feature_that_the_model_knows_as_well_is_kept(rng: np.random.Generator) -> None:
    side = rng.random(N) < 0.5
    y = side ^ (rng.random(N) < 0.001)
    slices = safecal.find_slices(safecal.bernoulli(y, np.where(side, 0.999, 0.001)), {"side": side})
    assert slices.features == ("side",)


@pytest.mark.parametrize(
    ("raw", "kind", "categories"),
    [
        ([True, None, False], "truth", (False, True)),
        ([1, None, 3], "number", ()),
        ([Decimal("1.5"), Decimal(2), None], "number", ()),
        ([dt.date(2024, 1, 1), None, dt.date(2024, 1, 3)], "date", ()),
        ([dt.datetime(2024, 1, 1, 1, tzinfo=dt.UTC), None, dt.datetime(2024, 1, 3)], "date", ()),
        (["a", None, b"b"], "category", ("a", "b")),
        ([1, "1", None], "category", ("1",)),
        (np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]), "number", ()),
        (np.float16([1, np.nan, 3]), "number", ()),
    ],
)
def test_python_objects_become_plain_columns(raw: Any, kind: str, categories: tuple[Any, ...]) -> None:
    feature = read_feature(raw, "x", 3, "y_true")
    assert (feature.kind, feature.categories) == (kind, categories)
    assert feature.missing().sum() == (0 if categories == ("1",) else 1) + (categories == ("1",))


def test_every_library_gives_the_same_slices(rng: np.random.Generator) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    n = 4000
    z = rng.normal(0, 2, n)
    columns: dict[str, Any] = {
        "age": rng.integers(20, 90, n),
        "site": rng.choice(["a", "b", "c"], n),
        "smoker": rng.random(n) < 0.5,
        "dose": rng.normal(size=n).round(2),
        "seen": np.datetime64("2024-01-01", "us") + rng.integers(0, 365, n) * np.timedelta64(86_400_000_000, "us"),
    }
    wrong = (columns["age"] >= 60) & columns["smoker"]
    predictions = safecal.bernoulli(rng.random(n) < 1 / (1 + np.exp(-z / np.where(wrong, 4, 1))), logits=z)
    plain = {name: column.tolist() if name in ("site",) else column for name, column in columns.items()}
    wanted = safecal.find_slices(predictions, plain)
    assert len(wanted)
    frame = pd.DataFrame(columns)
    coded_frame = frame.astype({"site": "category", "age": "Int64", "smoker": "boolean"})
    table = pa.Table.from_pandas(frame)
    with duckdb.connect() as connection:
        connection.register("table", table)
        relation = connection.table("table")
        for features in (frame, coded_frame, pl.DataFrame(columns), pl.LazyFrame(columns), table, relation):
            assert safecal.find_slices(predictions, features) == wanted
    encoded = table.set_column(1, "site", table.column("site").dictionary_encode())
    assert safecal.find_slices(predictions, encoded) == wanted
    assert safecal.find_slices(predictions, table.combine_chunks().to_batches()[0]) == wanted


def test_arrow_columns_of_other_types() -> None:
    pa = pytest.importorskip("pyarrow")
    assert read_feature(pa.array([Decimal("1.5"), None]), "x", 2, "y").kind == "number"
    assert read_feature(pa.array([dt.date(2024, 1, 1), None]), "x", 2, "y").kind == "date"
    numbers = pa.array([3, 7, 3], pa.int64()).dictionary_encode()
    assert read_feature(numbers, "x", 3, "y").values.tolist() == [3.0, 7.0, 3.0]
    dates = pa.array([dt.date(2024, 1, 1), None]).dictionary_encode()
    assert read_feature(dates, "x", 2, "y").kind == "date"
    for odd, why in (
        (pa.array([[1], [2]]), "it holds lists"),
        (pa.array([None, None]), "all its values are missing"),
        (pa.array([None, None], pa.int8()), "all its values are missing"),
        (pa.array([None, None], pa.string()), "all its values are missing"),
        (pa.array([b"a", b"b"]), "it is of type binary"),
    ):
        with pytest.raises(Unreadable, match=why):
            read_feature(odd, "x", 2, "y")


def test_features_that_are_no_columns_are_refused(predictions: safecal.Predictions) -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(DtypeError, match="must be a frame, or a mapping of names to columns"):
        safecal.find_slices(predictions, np.zeros((N, 2)))
    with pytest.raises(ShapeError, match="must have at least one column"):
        safecal.find_slices(predictions, {})
    with pytest.raises(ShapeError, match=r"must have names that differ; got '1' twice"):
        safecal.find_slices(predictions, {1: np.zeros(N), "1": np.zeros(N)})
    twice = pd.DataFrame(np.zeros((N, 2)), columns=["age", "age"])
    with pytest.raises(ShapeError, match=r"must have names that differ; got 'age' twice"):
        safecal.find_slices(predictions, twice)
    with pytest.raises(ShapeError, match="must have as many rows"):
        safecal.find_slices(predictions, {"age": np.arange(N - 1)})
    with pytest.raises(ShapeError, match="must be one value for each row"):
        safecal.find_slices(predictions, {"age": np.zeros((N, 2))})
    y, p = pd.Series([0, 1] * 50), pd.Series([0.4, 0.6] * 50)
    other = pd.DataFrame({"x": range(100)}, index=range(100, 200))
    with pytest.raises(AlignmentError):
        safecal.find_slices(safecal.bernoulli(y, p), other)


def test_cuts_are_round_numbers_and_dates(rng: np.random.Generator) -> None:
    x = rng.normal(50, 10, 5000)
    coded = code_feature(read_feature(x, "x", 5000, "y"), 100)
    assert all(len(f"{cut}") <= 4 for cut in coded.cuts)
    assert not coded.values
    for k, cut in enumerate(coded.cuts):
        assert ((coded.codes <= k) == (x < cut)).all()
    days = np.datetime64("2020-01-01") + rng.integers(0, 2000, 5000)
    coded = code_feature(read_feature(days, "day", 5000, "y"), 100)
    assert all(cut.endswith("-01") for cut in coded.cuts[2:-2])
    few = code_feature(read_feature(np.array([1, 2, 2, 5, 9] * 100), "few", 500, "y"), 100)
    assert few.values == (1, 2, 5, 9)
    assert few.codes.max() < BINS


def test_infinite_numbers_and_moments_make_no_odd_cut() -> None:
    x = np.array([-np.inf, 0.0, 1.0, np.inf] * 100)
    coded = code_feature(read_feature(x, "x", 400, "y"), 10)
    assert all(np.isfinite(cut) for cut in coded.cuts)
    moments = np.datetime64("2024-01-01T00:00:00", "us") + np.arange(400)
    coded = code_feature(read_feature(moments, "at", 400, "y"), 10)
    assert coded.cuts[0].startswith("2024-01-01T00:00:00.0000")


def test_whole_numbers_too_large_to_be_told_apart_as_floats_make_no_cut() -> None:
    keys = np.arange(400) + 2**62
    coded = code_feature(read_feature(np.concatenate([keys, keys + 2**40]), "key", 800, "y"), 10)
    assert coded.cuts
    assert all(2**62 <= cut <= 2**62 + 2**41 for cut in coded.cuts)
    assert "alike" in _left_out(safecal.bernoulli(np.arange(N) % 2, np.full(N, 0.4)), np.arange(N) % 3 + 2**62)


def test_other_things_that_hold_columns() -> None:
    pa = pytest.importorskip("pyarrow")

    class Stream:
        def __arrow_c_stream__(self, schema: object = None) -> object:
            return pa.table({"x": [1, 2]}).__arrow_c_stream__(schema)

    assert list(columns_of(Stream())) == ["x"]
    parts = pa.chunked_array([pa.array(["a", "b"]), pa.array(["b", None])])
    assert read_feature(parts, "x", 4, "y").values.tolist() == [0, 1, 1, -1]
    with pytest.raises(Unreadable, match="it holds lists"):
        read_feature([[1, 2], [3]], "x", 2, "y")


def test_arrow_columns_without_pyarrow_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def __arrow_c_stream__(self, schema: object = None) -> object:
            raise AssertionError

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"safecal\[frames\]"):
        columns_of(Stream())


def test_a_density_has_slices_and_perhaps_no_temperature(rng: np.random.Generator) -> None:
    site = np.repeat(["a", "b"], 300)
    x = rng.laplace(size=600) * np.where(site == "b", 5.0, 1.0)
    predictions = safecal.density(
        x, log_density=lambda x: -np.abs(x), sampler=lambda rng: rng.laplace(size=600), draws=100, rng=0
    )
    slices = safecal.find_slices(predictions, {"site": site})
    assert [s.condition for s in slices] == ["site is b"]
    assert np.isnan(slices[0].temperature.value)
    assert slices.reach is None


def test_very_many_classes_are_not_compared_with_features(rng: np.random.Generator) -> None:
    n, classes = 60, 10_001
    happened = np.arange(n) * (classes - 1) // (n - 1)
    predictions = safecal.categorical(happened, logits=rng.normal(size=(n, classes)))
    slices = safecal.find_slices(predictions, {"x": np.arange(n) % 2})
    assert slices.features == ("x",)
