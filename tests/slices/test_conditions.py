"""Conditions mean the same rows in words, in SQL, for Polars and for pandas."""

from typing import Any

import numpy as np
import pytest

from safecal.errors import DocumentError
from safecal.slices.conditions import Condition, write_conditions
from safecal.slices.features import columns_of, read_feature

FRAME: dict[str, list[Any]] = {
    "age": [20.0, 63.0, 70.5, None, 40.0, 63.5],
    "visits": [0, 1, 2, 3, None, 2],
    'the "site"': ["north", "it's", None, "", "north", "south"],
    "smoker": [True, False, None, True, True, False],
    "seen": np.array(["2024-01-05", "2024-03-01", "NaT", "2023-12-31", "2024-02-29", "2024-03-02"], "M8[D]").tolist(),
}
CONDITIONS = [
    (Condition("age", ">=", 63, "number"),),
    (Condition("age", "<", 63.25, "number"),),
    (Condition("age", "missing", None, "number"),),
    (Condition("visits", "is", 2, "number"),),
    (Condition('the "site"', "is", "it's", "category"),),
    (Condition('the "site"', "is", "", "category"),),
    (Condition('the "site"', "missing", None, "category"),),
    (Condition("smoker", "is", True, "truth"),),
    (Condition("seen", ">=", "2024-03-01", "date"),),
    (Condition("seen", "<", "2024-03-01T00:00:00.000001", "date"), Condition("age", ">=", 30, "number")),
]


def _own(frame: Any, conditions: tuple[Condition, ...]) -> list[bool]:
    columns = columns_of(frame)
    mask = np.ones(6, dtype=bool)
    for condition in conditions:
        mask &= read_feature(columns[condition.feature], condition.feature, 6, "y_true").where(condition)
    return mask.tolist()


@pytest.mark.parametrize("conditions", CONDITIONS, ids=lambda conditions: write_conditions(conditions, "text"))
def test_a_condition_means_the_same_rows_everywhere(conditions: tuple[Condition, ...]) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    wanted = _own(FRAME, conditions)
    assert any(wanted)
    frame = pd.DataFrame(FRAME).astype({"seen": "datetime64[ns]"})
    in_pandas = eval(write_conditions(conditions, "pandas"), {"frame": frame})
    assert in_pandas.fillna(False).astype(bool).tolist() == wanted
    assert _own(frame, conditions) == wanted
    polars = pl.DataFrame(FRAME)
    in_polars = (
        polars.select(eval(write_conditions(conditions, "polars"), {"pl": pl}).fill_null(False)).to_series().to_list()
    )
    assert in_polars == wanted
    assert _own(polars, conditions) == wanted


@pytest.mark.parametrize("conditions", CONDITIONS, ids=lambda conditions: write_conditions(conditions, "text"))
def test_sql_means_the_same_rows(conditions: tuple[Condition, ...]) -> None:
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    rows = pa.table({**FRAME, "row": list(range(6))})
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        selected = connection.sql(
            f"SELECT row FROM rows WHERE {write_conditions(conditions, 'sql')} ORDER BY row"
        ).fetchall()
        assert [row for (row,) in selected] == np.flatnonzero(_own(rows, conditions)).tolist()
        assert _own(connection.table("rows"), conditions) == _own(FRAME, conditions)


def test_nan_is_missing_in_polars_and_in_sql() -> None:
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    frame = pl.DataFrame({"age": [20.0, float("nan"), 70.0, None]})
    feature = read_feature(frame["age"], "age", 4, "y_true")
    assert feature.with_nan
    for operator, value, wanted in ((">=", 63, [2]), ("missing", None, [1, 3])):
        condition = Condition("age", operator, value, "number", feature.with_nan)  # type: ignore[arg-type]
        assert np.flatnonzero(feature.where(condition)).tolist() == wanted
        chosen = frame.with_row_index("row").filter(eval(condition.polars, {"pl": pl}))
        assert chosen["row"].to_list() == wanted
        rows = frame.with_row_index("row").to_arrow()
        with duckdb.connect() as connection:
            connection.register("rows", rows)
            selected = connection.sql(f"SELECT row FROM rows WHERE {condition.sql} ORDER BY row").fetchall()
        assert [row for (row,) in selected] == wanted


def test_words_escape_what_a_terminal_would_obey() -> None:
    assert "\x1b" not in str(Condition("a\x1b[31m", "is", "b\x1b", "category"))
    assert str(Condition("a", "is", "", "category")) == "a is ''"


def test_conditions_are_read_back_and_checked() -> None:
    for conditions in CONDITIONS:
        for one in conditions:
            assert Condition.from_dict(one.to_dict()) == one
    wrong = Condition("age", ">=", 63, "number").to_dict()
    for change in ({"value": "63"}, {"value": True}, {"operator": "missing"}, {"value": [1]}, {"type": "text"}):
        with pytest.raises(DocumentError):
            Condition.from_dict(wrong | change)
    with pytest.raises(DocumentError):
        Condition.from_dict(Condition("seen", ">=", "2024-03-01", "date").to_dict() | {"value": "in March"})
