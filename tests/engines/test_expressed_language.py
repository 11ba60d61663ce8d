"""Expressions in SQL: what they are written as. What Spark makes of them is tested with the frames."""

from typing import Any

import pytest

pytest.importorskip("narwhals")

from safecal.engines.expressed.language import SqlFrame, in_sql, language


class Rows:
    """Stands for a Spark DataFrame."""

    def select(self, *names: str) -> "Rows":
        return self


def in_text(make: Any) -> str:
    frame = SqlFrame(Rows(), ("p", "y"))
    with in_sql(frame):
        return str(frame.select(x=make(language())).text)


def test_sql_is_written_for_frames_of_sql_alone() -> None:
    with in_sql(SqlFrame(Rows(), ("p",))):
        assert language().col("p").text == "`p`"
    assert language().__name__ == "narwhals"
    with in_sql("another frame"):
        assert language().__name__ == "narwhals"


@pytest.mark.parametrize(
    ("make", "written"),
    [
        (lambda nw: 1.0 - nw.col("p"), "(1.0D - `p`)"),
        (lambda nw: nw.col("a`b{c}") != 2, "(`a``b{{c}}` <> 2.0D)"),
        (
            lambda nw: nw.when(nw.col("y") == "it's {so}").then(1.0),
            "CASE WHEN (`y` = decode(unhex('69742773207b736f7d'), 'UTF-8')) THEN 1.0D END",
        ),
        (lambda nw: nw.col("p") < float("inf"), "(`p` < double('Infinity'))"),
        (
            lambda nw: nw.when(~nw.col("p").is_null()).then(None).otherwise(True),
            "CASE WHEN (NOT isnull(`p`)) THEN NULL ELSE true END",
        ),
    ],
)
def test_expressions_are_written_so_that_nothing_in_them_is_taken_for_sql(make: Any, written: str) -> None:
    assert f"SELECT {written} AS `x` FROM {{rows}}" in in_text(make)


def test_a_text_has_each_step_once() -> None:
    frame = SqlFrame(Rows(), ("p",))
    with in_sql(frame):
        nw = language()
        base = frame.with_columns(q=1.0 - nw.col("p"))
        both = nw.concat([base.select("q"), base.select(q=nw.col("p"))], how="vertical").head(3)
    assert both.text.count("(1.0D - `p`)") == 1
    assert both.columns == ("q",)


def test_steps_are_nested_a_few_at_a_time() -> None:
    frame = SqlFrame(Rows(), ("p",))
    with in_sql(frame):
        nw = language()
        frame = frame.with_columns(q0=nw.col("p") + 0.0)
        for k in range(1, 9):  # each is read twice, so that no step can be written into the next
            before = nw.col(f"q{k - 1}")
            frame = frame.with_columns(**{f"q{k}": before * before + float(k)})
    assert [frame.text.count(f"+ {k}.0D) AS `q{k}`") for k in range(9)] == [1] * 9
    assert frame.text.count(" AS (SELECT") == 3
    assert frame.text.count("FROM (SELECT") == 6
    assert frame.text.endswith(f"SELECT * FROM {frame.last}")


def test_a_step_is_written_into_the_next_where_nothing_is_computed_twice() -> None:
    frame = SqlFrame(Rows(), ("p",))
    with in_sql(frame):
        nw = language()
        once = frame.with_columns(q=nw.col("p") + 1.0, one=nw.lit(1.0)).select(r=nw.col("q") * nw.col("p"))
        plain = frame.with_columns(q=nw.col("p"), one=nw.lit(1.0))
        plain = plain.select(r=nw.col("q") * nw.col("q") + nw.col("one") * nw.col("one"))
        twice = frame.with_columns(q=nw.col("p") + 1.0).select(r=nw.col("q") * nw.col("q"))
        summed = frame.with_columns(q=nw.col("p").floor()).group_by("q").agg(nw.col("p").sum().alias("s"))
        both = frame.with_columns(q=nw.col("p") + 1.0)
        both = nw.concat([both.select("q"), both.select("q")], how="vertical")
    assert "SELECT ((`p` + 1.0D) * `p`) AS `r` FROM {rows}" in once.text
    assert "SELECT ((`p` * `p`) + (1.0D * 1.0D)) AS `r` FROM {rows}" in plain.text
    assert "SELECT (`q` * `q`) AS `r` FROM (SELECT (`p` + 1.0D) AS `q` FROM {rows})" in twice.text
    assert "floor(`p`) AS `q`" in summed.text
    assert "GROUP BY `q`" in summed.text
    assert both.text.count("(`p` + 1.0D)") == 1


def test_powers_of_two_are_shifted() -> None:
    assert "(CAST(shiftleft(1L, CAST(`p` AS INT)) AS DOUBLE) * 0.00390625D)" in in_text(
        lambda nw: nw.power_of_two(nw.col("p"), -8)
    )


def test_columns_that_no_later_step_reads_are_left_out() -> None:
    frame = SqlFrame(Rows(), ("p", "y", "odd `name` {x}"))
    with in_sql(frame):
        nw = language()
        frame = frame.with_columns(a=nw.col("p") + 1.0, b=nw.col("y") * 2.0, c=nw.col("odd `name` {x}"))
        frame = frame.with_columns(d=nw.col("a") * nw.col("a") + nw.col("c"))
        summed = frame.group_by("y").agg(nw.col("d").sum().alias("d"))
        kept = frame.filter(nw.col("d") > 0.0)
    assert "AS `b`" not in summed.text
    assert "(`p` + 1.0D) AS `a`" in summed.text
    assert "((`a` * `a`) + `c`)" in summed.text
    assert "`odd ``name`` {{x}}` AS `c`" in summed.text
    assert summed.columns == ("y", "d")
    assert "AS `b`" in kept.text  # whoever reads a row reads all of it
