"""Frames of every engine: the same sums, the same refusals."""

import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import fields
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import safecal
from safecal import Bins, Evaluation, Limits, Summary, _sums
from safecal._kernels.spectrum import CELLS, CENTRES, LOWEST, cell_moments, cell_numbers
from safecal._sums import Tally
from safecal._sums.cells import Cells, WeightedCells
from safecal._sums.scored import _cell_numbers
from safecal._sums.splits import Plan
from safecal.engines.batches import evaluate_batches
from safecal.errors import (
    BinsError,
    DtypeError,
    EmptyError,
    FormError,
    LabelError,
    MissingExtraError,
    MissingValueError,
    OptionError,
    RangeError,
    ShapeError,
    WeightError,
)
from safecal.judge.evaluation import evaluate_predictions

nw = pytest.importorskip("narwhals")
pa = pytest.importorskip("pyarrow")

from safecal.engines import frames as frames_module  # noqa: E402
from safecal.engines.expressed import express  # noqa: E402
from safecal.engines.expressed.cells import add_histogram_cell, add_odds_cell, add_weighted_cell  # noqa: E402
from safecal.engines.expressed.formulas import log1p, one_minus_exp  # noqa: E402
from safecal.engines.expressed.language import collect_numbers  # noqa: E402
from safecal.engines.frames import evaluate_frame  # noqa: E402
from safecal.engines.partitions import rows_of, tables  # noqa: E402
from safecal.inputs import Reader  # noqa: E402
from safecal.inputs.columns import Columns  # noqa: E402

pytestmark = [
    pytest.mark.proof,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
LIMITS = Limits()


def _pandas(table: Any) -> Any:
    pytest.importorskip("pandas")
    return table.to_pandas()


def _polars(table: Any) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def _duckdb(table: Any) -> Any:
    return pytest.importorskip("duckdb").from_arrow(table)


def _ibis(table: Any) -> Any:
    pytest.importorskip("duckdb")
    return pytest.importorskip("ibis").memtable(table)


def _dask(table: Any) -> Any:
    return pytest.importorskip("dask.dataframe").from_pandas(table.to_pandas(), npartitions=2)


ENGINES: dict[str, Callable[[Any], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "polars-lazy": lambda table: _polars(table).lazy(),
    "pyarrow": lambda table: table,
    "duckdb": _duckdb,
    "ibis": _ibis,
    "dask": _dask,
}


# Whose engine computes the sums itself: the formulas are written in its language.
ASKED = ("duckdb", "polars-lazy", "ibis", "spark")
EXTRA = ("ibis", "dask", "spark")


def _marked(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.extra if name in EXTRA else ())


def with_asked(cases: Iterable[Any], on_spark: Iterable[Any]) -> list[Any]:
    """Return each engine that is asked for sums with each case; those that plan longer than they work with some."""
    cases, some = list(cases), list(on_spark)
    assert all(case in cases for case in some)
    # The formulas are the same for every engine: DuckDB and Polars run each line.
    slow = [pytest.mark.extra, pytest.mark.no_cover]
    return [pytest.param(name, case) for name in ASKED if name not in EXTRA for case in cases] + [
        pytest.param(name, case, marks=slow) for name in ASKED if name in EXTRA for case in some
    ]


def _maker(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        return lambda table: session.createDataFrame(table)
    return ENGINES[request.param]


@pytest.fixture(params=[_marked(name) for name in (*ENGINES, "spark")])
def engine(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Turn an Arrow table into a frame of an engine."""
    return _maker(request)


@pytest.fixture(params=[_marked(name) for name in ASKED])
def asked(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Turn an Arrow table into a frame of an engine that is asked for sums."""
    return _maker(request)


def _table() -> Any:
    rng = np.random.default_rng(7)
    n = 4000
    z = rng.normal(0, 2, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-z))
    p[:100] = np.round(p[:100], 1)  # at the edges of bins
    p[100:110], y[100:110] = 0.0, 0
    p[110:120], y[110:120] = 1.0, 1
    y[100] = 1  # an impossible outcome
    p[120:126] = 0.5, 1e-310, 1e-20, 1 - 1e-16, 0.5 + 1e-12, np.nextafter(0.3, 0)
    happened = y.copy()
    z[:5], happened[:5] = np.inf, 1
    z[5:8], happened[5:8] = -np.inf, 0
    happened[5] = 1  # another one
    z[8:16] = 800.0, -800.0, 1e-9, 0.0, 1e-200, 40.0, -1e200, 1e-17
    happened[9] = 1
    share = rng.random(n)
    site = [None if u < 0.1 else f"site {int(u * 5)}" for u in share]
    year = [None if u < 0.05 else 2000 + int(u * 4) for u in rng.random(n)]
    return pa.table({
        "y": y, "p": p, "happened": happened, "z": z, "site": site, "year": year,
        "reading": [float("nan") if u < 0.2 else round(u, 1) for u in share],
        "day": rng.integers(0, 40, n), "w": rng.random(n) * (rng.random(n) > 0.1),
        "truth": happened.astype(bool), "name": ["sick" if k else "well" for k in happened],
        "x": rng.normal(0, 1, n), "mu": rng.normal(0, 0.1, n), "sd": 0.5 + rng.random(n),
    })  # fmt: skip


TABLE = _table()
FINITE = TABLE.filter(pa.compute.is_finite(TABLE["z"]))
CASES: dict[str, tuple[Columns, Any, str | None]] = {
    "probabilities": (Columns("y", ("p",), "y_prob", by=("site", "year")), 10, "probability"),
    "confidence": (Columns("y", ("p",), "y_prob", by=("year",), sample_weight="w", clip=1e-3), 7, "confidence"),
    "logits": (Columns("happened", ("z",), "logits", by=("site",)), 10, "entropy"),
    "weighted logits": (Columns("happened", ("z",), "logits", sample_weight="w"), 10, "probability"),
    "labels": (Columns("name", ("z",), "logits", by=("reading",), pos_label="sick"), None, None),
    "edges": (Columns("truth", ("z",), "logits"), Bins.from_edges([-0.5, 0.1, 0.25, 0.9, 2.0]), "probability"),
    "gaussian": (Columns("x", ("mu",), "gaussian", ("std", "sd"), by=("site",)), None, None),
    "weighted gaussian": (
        Columns("x", ("mu",), "gaussian", ("var", "sd"), by=("site",), sample_weight="w"),
        None,
        None,
    ),
}


def one_batch(columns: Columns, table: Any) -> Any:
    return Reader(columns).batch(next(rows_of([table], columns.names)))


def _close(actual: Summary, whole: Summary) -> None:
    assert (actual.n, actual.n_impossible) == (whole.n, whole.n_impossible)
    for field in fields(Summary):
        a, b = getattr(actual, field.name), getattr(whole, field.name)
        assert (a is None) == (b is None), field.name
        if a is not None and np.isfinite(b):
            assert abs(a - b) <= 1e-12 * _terms(whole, field.name, b), field.name
        elif a is not None:
            assert a == b


def _terms(whole: Summary, name: str, value: float) -> float:
    """Return about what the terms of a sum are together, without their signs."""
    if name in ("sum_excess", "sum_excess_weight2", "sum_excess_weight3", "sum_entropy"):
        return whole.weight + abs(value)
    return max(abs(value), 1e-300)


def _tally(columns: Columns, table: Any, plan: Plan) -> Tally:
    rows = one_batch(columns, table)
    return Tally.of_checked(rows.predictions, plan, rows.sample_weight, rows.by, rows.cluster)


# Of the others, the clusters below and the front door hold the sums.
ON_SPARK = ("confidence", "weighted gaussian")


@pytest.mark.parametrize(("asked", "case"), with_asked(CASES, ON_SPARK), indirect=["asked"])
def test_the_same_sums_from_every_engine(asked: Callable[[Any], Any], case: str) -> None:
    columns, bins, on = CASES[case]
    plan = Plan.of(one_batch(columns, TABLE).predictions, bins, on)
    whole = _tally(columns, TABLE, plan).in_order()
    tally = express(nw.from_native(asked(TABLE)).lazy(), columns).tally(plan).in_order()
    _close(tally.summary, whole.summary)
    for name in ("family", "dimension", "most_entropy", "least_excess", "weighted", "n_certain"):
        assert getattr(tally, name) == getattr(whole, name), name
    for table, other in ((tally.bins, whole.bins), (tally.groups, whole.groups)):
        assert (table is None) == (other is None)
        if table is not None and other is not None:
            assert (table.name, table.keys, table.bins, table.top_label) == (
                other.name, other.keys, other.bins, other.top_label
            )  # fmt: skip
            for a, b in zip(table.summaries, other.summaries, strict=True):
                _close(a, b)
    _same_spectrum(tally, whole)


def _same_spectrum(actual: Tally, whole: Tally) -> None:
    """Hold cells to those of the rows; the last digit of a logarithm may carry a row over an edge, and none does."""
    if isinstance(whole.spectrum, Cells):
        assert isinstance(actual.spectrum, Cells)
        np.testing.assert_array_equal(actual.spectrum.moments[..., 0], whole.spectrum.moments[..., 0])
        scale = whole.spectrum.moments[..., :1] * (CENTRES - LOWEST)[:, None, None, None] ** np.arange(4)
        assert (np.abs(actual.spectrum.moments - whole.spectrum.moments) <= 1e-12 * scale)[:-1].all()
        np.testing.assert_allclose(actual.spectrum.moments[-1], whole.spectrum.moments[-1], rtol=1e-12)
    elif isinstance(whole.spectrum, WeightedCells):
        assert isinstance(actual.spectrum, WeightedCells)
        np.testing.assert_array_equal(actual.spectrum.keys, whole.spectrum.keys)
        np.testing.assert_array_equal(actual.spectrum.moments[:, 0], whole.spectrum.moments[:, 0])
        np.testing.assert_allclose(actual.spectrum.moments, whole.spectrum.moments, rtol=1e-9, atol=1e-12)
    else:
        assert actual.spectrum is whole.spectrum is None
        assert actual.spread is not None
        assert whole.spread is not None
    assert actual.histogram.counts == pytest.approx(whole.histogram.counts, rel=1e-12, abs=1e-9)
    assert actual.histogram.sums == pytest.approx(whole.histogram.sums, rel=1e-9, abs=1e-9)


CLUSTERED = list(product(["y_prob", "logits", "gaussian"], [False, True]))


@pytest.mark.parametrize(("asked", "case"), with_asked(CLUSTERED, [("y_prob", True)]), indirect=["asked"])
def test_the_same_clusters_from_every_engine(asked: Callable[[Any], Any], case: tuple[str, bool]) -> None:
    form, weighted = case
    names = {"y_prob": ("y", ("p",)), "logits": ("happened", ("z",)), "gaussian": ("x", ("mu",))}[form]
    columns = Columns(
        *names,
        form,
        ("std", "sd") if form == "gaussian" else None,
        by=("site", "year"),
        cluster="day",
        sample_weight="w" if weighted else None,
    )
    tally = express(nw.from_native(asked(TABLE)).lazy(), columns).tally(Plan())
    whole = _tally(columns, TABLE, Plan())
    assert tally.clusters is not None
    assert whole.clusters is not None
    assert tally.clusters.keys == whole.clusters.keys
    np.testing.assert_allclose(tally.clusters.sums, whole.clusters.sums, rtol=1e-12, atol=1e-12)
    assert tally.pairs is not None
    assert whole.pairs is not None
    assert (tally.pairs.clusters, tally.pairs.keys) == (whole.pairs.clusters, whole.pairs.keys)
    np.testing.assert_array_equal(tally.pairs.cluster, whole.pairs.cluster)
    np.testing.assert_array_equal(tally.pairs.key, whole.pairs.key)
    np.testing.assert_allclose(tally.pairs.sums, whole.pairs.sums, rtol=1e-12, atol=1e-12)


def test_quantiles_from_every_engine(asked: Callable[[Any], Any]) -> None:
    columns = Columns("happened", ("z",), "logits", cluster="day", sample_weight="w")
    evaluation = express(nw.from_native(asked(FINITE)).lazy(), columns).evaluate(6, None, "quantile", LIMITS)
    cut = [one_batch(columns, FINITE.slice(start, 1000)) for start in range(0, 4000, 1000)]
    batched = evaluate_batches(lambda: cut, bins=6, strategy="quantile", max_rows=100)
    assert evaluation.bins is not None
    assert batched.bins is not None
    assert evaluation.bins.keys == batched.bins.keys
    assert [s.n for s in evaluation.bins.summaries] == [s.n for s in batched.bins.summaries]
    assert evaluation.test.p_value == pytest.approx(batched.test.p_value, rel=1e-9)
    assert evaluation.interval.high == pytest.approx(batched.interval.high, rel=1e-9)
    assert evaluation.verdict.decision == batched.verdict.decision


BAD: list[tuple[str, dict[str, Any], dict[str, Any], type[Exception], int]] = [
    ("null", {"p": [None, 0.2]}, {}, MissingValueError, 2),
    ("nan", {"p": [float("nan")]}, {}, MissingValueError, 1),
    ("infinite", {"p": [float("inf"), 0.5]}, {}, RangeError, 1),
    ("above", {"p": [1.0000001, 0.1, -0.2]}, {}, RangeError, 2),
    ("percent", {"p": [30.0, 55.0]}, {}, RangeError, 2),
    ("nan logit", {"p": [float("nan"), float("inf")]}, {"form": "logits"}, MissingValueError, 1),
    ("label", {"y": [2, 1, 0, 3]}, {}, LabelError, 2),
    ("no label", {"y": [None, 1]}, {}, MissingValueError, 1),
    ("text", {"y": ["a", "b", "a", "b", "a"]}, {}, LabelError, 0),
    ("three names", {"y": ["a", "b", "a", "c", "a"]}, {"pos_label": "a"}, LabelError, 0),
    ("other kind", {}, {"pos_label": "a"}, LabelError, 0),
    ("negative weight", {"w": [-1.0, 1.0, -2.0]}, {"sample_weight": "w"}, WeightError, 2),
    ("nan weight", {"w": [float("nan")]}, {"sample_weight": "w"}, MissingValueError, 1),
    ("infinite weight", {"w": [float("inf")]}, {"sample_weight": "w"}, RangeError, 1),
    ("large weight", {"w": [1e80, 1.0]}, {"sample_weight": "w"}, RangeError, 1),
    ("no weight", {"w": [0.0] * 5}, {"sample_weight": "w"}, WeightError, 0),
    ("no cluster", {"c": ["a", None, "b"]}, {"cluster": "c"}, MissingValueError, 1),
    ("one cluster", {"c": ["a"] * 5}, {"cluster": "c"}, ShapeError, 0),
    ("text values", {"p": ["high"] * 5}, {}, DtypeError, 0),
    ("infinite state", {"p": [float("inf")]}, {"form": "gaussian"}, RangeError, 1),
    ("no state", {"y": [None, 0.5]}, {"form": "gaussian"}, MissingValueError, 1),
    ("no spread", {"w": [0.0, -1.0]}, {"form": "gaussian"}, RangeError, 2),
]


def _evaluated(columns: Columns, table: Any) -> Evaluation:
    rows = one_batch(columns, table)
    return evaluate_predictions(
        rows.predictions, by=rows.by, sample_weight=rows.sample_weight, cluster=rows.cluster, bins=None
    )


# One of each kind of error, of each argument, and of what engines may take for missing.
BAD_ON_SPARK = ("null", "infinite", "three names", "negative weight", "no spread")  # fmt: skip


@pytest.mark.parametrize(("asked", "bad"), with_asked([b[0] for b in BAD], BAD_ON_SPARK), indirect=["asked"])
def test_bad_rows_are_refused_alike(asked: Callable[[Any], Any], bad: str) -> None:
    change, options, error, count = next(b[1:] for b in BAD if b[0] == bad)
    data: dict[str, list[Any]] = {
        "y": [0, 1, 1, 0, 1], "p": [0.2, 0.7, 0.9, 0.1, 0.4], "w": [1.0, 2.0, 0.0, 1.0, 3.0], "c": list("abcab")
    }  # fmt: skip
    for name, values in change.items():
        data[name][: len(values)] = values
        if name == "p" and count == 2 and values[0] is None:
            data[name][4] = None
    if change.get("y", [None])[0] == "a":
        data["y"] = change["y"]
    options = {"form": "y_prob", **options}
    if options["form"] == "gaussian":
        options["spread"] = ("std", "w")
        data["w"] = [1.0 if w == 0.0 and "w" not in change else w for w in data["w"]]
        data["w"][2] = 1.0
    columns = Columns("y", ("p",), **options)
    table = pa.table(data)
    with pytest.raises(error) as core:
        _evaluated(columns, table)
    with pytest.raises(error) as refusal:
        express(nw.from_native(asked(table)).lazy(), columns).evaluate(None, None, "uniform", LIMITS)
    a, b = core.value.complaint, refusal.value.complaint  # type: ignore[attr-defined]
    assert type(refusal.value) is type(core.value)
    if error is MissingValueError:
        assert a.argument in columns.names
    assert (a.argument, a.rule) == (b.argument, b.rule)
    if error is not DtypeError:
        assert a.hint == b.hint
    if count:
        assert a.count == b.count == (count, 5)


def test_values_outside_the_bins_are_refused() -> None:
    columns = Columns("y", ("p",), "y_prob")
    work = express(nw.from_native(TABLE).lazy(), columns)
    with pytest.raises(BinsError, match=r"must lie within the bins, 0.1 to 0.9 \(\d+ of 4000 rows\)"):
        work.evaluate(Bins.from_edges([0.1, 0.5, 0.9]), None, "uniform", LIMITS)


def test_small_numbers_keep_their_digits(asked: Callable[[Any], Any]) -> None:
    x = 10.0 ** np.arange(-320.0, 1.0, 2.5)
    near = np.where(np.exp(-x) > 0.5, np.exp(-x), 1.0)
    frame = nw.from_native(asked(pa.table({"x": x, "t": np.exp(-x), "near": near}))).lazy()
    c, t = nw.col("x"), nw.col("t")
    sums = collect_numbers(
        frame.select(
            up=log1p(c, 1.0 + c),
            down=0.0 - log1p(0.0 - 0.5 * c, 1.0 - 0.5 * c),
            far=log1p(1e300 * c, 1.0 + 1e300 * c),
            gap=one_minus_exp(c, t, nw.col("near").log()),
        )
    )
    expected = {"up": np.log1p(x), "down": -np.log1p(-0.5 * x), "far": np.log1p(1e300 * x), "gap": -np.expm1(-x)}
    for name, values in expected.items():
        np.testing.assert_allclose(np.sort(sums[name]), values, rtol=1e-15)


def _edges(per_octave: int, low: int, high: int) -> Any:
    """Return where cells begin, and the floats next to it on both sides."""
    starts = np.ldexp(1.0 + np.arange(per_octave) / per_octave, np.arange(low, high)[:, None]).ravel()
    return np.concatenate([starts, np.nextafter(starts, 0.0), np.nextafter(starts, np.inf)])


def test_cells_are_those_of_the_histogram(asked: Callable[[Any], Any]) -> None:
    sizes = np.concatenate([_edges(8, -24, 18), [0.0, 1e-300, 1e300]])
    excess = np.concatenate([sizes, -sizes])
    frame = nw.from_native(asked(pa.table({"excess": excess}))).lazy()
    sums = collect_numbers(add_histogram_cell(frame).select("excess", "cell"))
    np.testing.assert_array_equal(sums["cell"], _cell_numbers(sums["excess"]))


def _rows(asked: Callable[[Any], Any], **columns: Any) -> Any:
    n = len(columns["odds"])
    sides = {"agree": np.arange(n) % 2 == 0, "likely": np.arange(n) % 3 == 0, "certain": np.zeros(n, dtype=bool)}
    return nw.from_native(asked(pa.table(columns | sides))).lazy()


def test_cells_are_those_of_the_log_odds(asked: Callable[[Any], Any]) -> None:
    edges = np.concatenate([_edges(16, -10, 23), 2.0 ** np.arange(-1074.0, 1024.0), 0.1 * np.arange(500)])
    near = [edges * (1.0 - k * 2.0**-43) for k in range(1, 10)]  # where cells begin, and beside it
    near += [np.nextafter(beside, side) for beside in near for side in (0.0, np.inf)]
    odds = np.concatenate([edges, *near, [0.0, 1e300]])
    assert np.isin(LOWEST, odds).all()
    frame, size = add_odds_cell(_rows(asked, odds=odds))
    assert size == 4 * CELLS
    sums = collect_numbers(frame.select("odds", "cell", "inside", "d1", "d2", "d3", "agree", "likely"))
    number = cell_numbers(sums["odds"])
    wrong, positive = 1.0 - sums["agree"], sums["likely"]
    np.testing.assert_array_equal(sums["cell"], 4 * number + 2 * wrong + positive)
    for k in range(0, len(odds), 41):  # each alone in its cell, so that moments are the row's own
        one = cell_moments(sums["odds"][k : k + 1], wrong[k : k + 1] == 1.0, positive[k : k + 1] == 1.0)
        moments = [sums[name][k] for name in ("inside", "d1", "d2", "d3")]
        np.testing.assert_array_equal(one.reshape(-1, 4)[int(sums["cell"][k])], moments)


def test_cells_are_those_of_log_odds_and_weights(asked: Callable[[Any], Any]) -> None:
    w = np.concatenate([_edges(4, -249, 249), 0.1 * np.arange(1, 300), [1e-75, 1e75]])
    odds = np.resize(np.concatenate([_edges(8, -10, 23), [0.0, 1e300]]), len(w))
    frame, size = add_weighted_cell(_rows(asked, odds=odds, weight=w))
    names = ("inside", "dl", "dw", "dl2", "dw2", "dlw")
    sums = collect_numbers(frame.select("odds", "weight", "cell", "agree", "likely", *names))
    for k in range(len(w)):
        one = slice(k, k + 1)
        whole = WeightedCells.of(sums["odds"][one], sums["weight"][one], sums["agree"][one] == 0.0,
                                 sums["likely"][one] == 1.0)  # fmt: skip
        assert whole.keys[0] == sums["cell"][k] < size
        np.testing.assert_array_equal(whole.moments[0], [sums[name][k] for name in names])


def _front(frame: Any, **options: Any) -> Evaluation:
    return evaluate_frame(frame, y_true="happened", logits="z", by=["site", "year"], sample_weight="w", **options)


def test_what_fits_is_evaluated_whole(engine: Callable[[Any], Any]) -> None:
    evaluation = _front(engine(FINITE))
    rows = one_batch(Columns("happened", ("z",), "logits", by=("site", "year"), sample_weight="w"), FINITE)
    whole = evaluate_predictions(rows.predictions, by=rows.by, sample_weight=rows.sample_weight)
    assert evaluation.groups is not None
    assert whole.groups is not None
    assert evaluation.groups.keys == whole.groups.keys
    assert evaluation.ecd == pytest.approx(whole.ecd, rel=1e-12)
    assert evaluation.test.method == whole.test.method
    assert evaluation.reliability is not None
    assert evaluation.temperature.low == pytest.approx(whole.temperature.low, rel=1e-9)


def test_what_does_not_fit_is_evaluated_from_sums(engine: Callable[[Any], Any]) -> None:
    evaluation, whole = _front(engine(FINITE), max_rows=1000), _front(FINITE)
    for name in ("ecd", "nll", "ece", "esce", "brier", "accuracy"):
        assert getattr(evaluation, name) == pytest.approx(getattr(whole, name), rel=1e-11)
    assert evaluation.groups is not None
    assert whole.groups is not None
    assert evaluation.groups.keys == whole.groups.keys
    assert (evaluation.n_certain, evaluation.family) == (whole.n_certain, whole.family)
    assert evaluation.tally.most_entropy == whole.tally.most_entropy
    assert evaluation.temperature.value == pytest.approx(whole.temperature.value, rel=1e-9)
    assert evaluation.temperature.high == pytest.approx(whole.temperature.high, rel=1e-9)
    assert evaluation.verdict.decision == whole.verdict.decision


def test_gaussians_through_the_front_door(engine: Callable[[Any], Any]) -> None:
    names = {"x_true": "x", "mean": "mu", "std": "sd"}
    whole = safecal.gaussian(TABLE["x"], TABLE["mu"], std=np.array(TABLE["sd"])).evaluate()
    for options in ({}, {"max_rows": 1000}):
        evaluation = evaluate_frame(engine(TABLE), **names, **options)
        assert evaluation.ecd == pytest.approx(whole.ecd, rel=1e-11)
        assert evaluation.temperature.value == pytest.approx(whole.temperature.value, rel=1e-9)
        assert evaluation.temperature.low == pytest.approx(whole.temperature.low, rel=1e-9)
        assert evaluation.bins is None
    binned = evaluate_frame(engine(TABLE), **names, bins=4, strategy="quantile", max_rows=1000)
    assert binned.bins is not None
    assert [s.n for s in binned.bins.summaries] == pytest.approx([1000] * 4, abs=5)


def test_what_the_front_door_refuses() -> None:
    def refused(error: type[Exception], match: str, **options: Any) -> None:
        with pytest.raises(error, match=match):
            evaluate_frame(TABLE, **({"y_true": "y"} | options))

    refused(FormError, "exactly one of them; got none")
    refused(FormError, "got `y_prob` and `logits`", y_prob="p", logits="z")
    refused(OptionError, "must have the column 'y_true'", y_true="y_true", y_prob="p")
    refused(OptionError, r"(?s)'yaer'; got none of that name.*did you mean 'year'\?", y_prob="p", by="yaer")
    refused(OptionError, r"(?s)there are 'y', 'p', .*\.\.\.", y_prob="qqqqqq")
    refused(ShapeError, "two columns or more", y_prob=["p"])
    refused(OptionError, "`std` belongs to Gaussians", y_prob="p", std="sd")
    refused(OptionError, "`clip` belongs to classifiers", x_true="x", mean="mu", std="sd", clip=0.1)
    refused(FormError, "`x_true` must name a column", mean="mu", std="sd")
    refused(FormError, "`std` or `var`", x_true="x", mean="mu")
    refused(RangeError, "`clip` must lie strictly", y_prob="p", clip=2.0)
    refused(RangeError, "`mu` must lie in", y_prob="mu")
    refused(OptionError, "`labels` names the columns", y_prob="p", labels=["a"])
    refused(OptionError, "cannot be uniform", x_true="x", mean="mu", std="sd", bins=10)
    refused(OptionError, "max_rows", y_prob="p", max_rows=-1)
    with pytest.raises(DtypeError, match="must be a dataframe; got list"):
        evaluate_frame([1, 2], y_prob="p")


def test_refusals_name_the_column_beyond_memory() -> None:
    frame = _duckdb(TABLE)
    with pytest.raises(RangeError, match=r"`mu` must lie in \[0, 1\]; got .* of 4000 rows"):
        evaluate_frame(frame, y_true="y", y_prob="mu", max_rows=0)
    with pytest.raises(OptionError, match="`labels` names the columns"):
        evaluate_frame(frame, y_true="y", y_prob="p", labels=["a", "b"], max_rows=0)
    with pytest.raises(DtypeError, match="must be numbers, text, or true and false"):
        express(nw.from_native(frame.project("p, DATE '2024-01-01' AS y")).lazy(), Columns("y", ("p",), "y_prob"))


def test_an_empty_frame_is_refused(engine: Callable[[Any], Any]) -> None:
    for rows in (0, 1_000_000):
        with pytest.raises(EmptyError, match="`frame` must have at least one row"):
            evaluate_frame(engine(TABLE.schema.empty_table()), y_true="y", y_prob="p", max_rows=rows)
    with pytest.raises(EmptyError, match="`frame` must have at least one row"):
        express(nw.from_native(engine(TABLE.schema.empty_table())).lazy(), Columns("y", ("p",), "y_prob"))


def test_keys_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sums, "MAX_KEYS", 20)
    frame = nw.from_native(_duckdb(FINITE)).lazy()
    for option in ({"by": ("day",)}, {"cluster": "day"}):
        with pytest.raises(ShapeError, match="must have at most 20 different values; got more"):
            express(frame, Columns("happened", ("z",), "logits", **option)).tally(Plan())


def test_frames_of_narwhals_are_taken() -> None:
    evaluation = evaluate_frame(nw.from_native(FINITE), y_true="happened", logits="z")
    assert evaluation == evaluate_frame(FINITE, y_true="happened", logits="z")


def test_one_class_a_column(engine: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(6)
    z = rng.normal(0, 2, (500, 3))
    kind = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    frame = engine(pa.table({"kind": kind, "a": z[:, 0], "b": z[:, 1], "c": z[:, 2]}))
    for rows in (1000, 100):
        evaluation = evaluate_frame(frame, y_true="kind", logits=["a", "b", "c"], max_rows=rows)
        assert evaluation.ecd == pytest.approx(safecal.evaluate(kind, logits=z).ecd, rel=1e-11)


def test_narwhals_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtraError, match=r"safecal\[frames\]"):
        evaluate_frame(FINITE, x_true="x", mean="mu", std="sd", strategy="quantile")


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["spark", "dask"])
def test_empty_and_tiny_partitions(kind: str, request: pytest.FixtureRequest) -> None:
    few = FINITE.slice(0, 10 if kind == "spark" else 40)
    whole = evaluate_frame(few, y_true="happened", logits="z", by="site")
    if kind == "spark":
        frame = request.getfixturevalue("spark").createDataFrame(few).repartition(13)  # of which three are empty
    else:
        dd = pytest.importorskip("dask.dataframe")
        rows, cuts = few.to_pandas(), [0, 0, 0, 1, 2, 2, 30, 40]
        frame = dd.concat([dd.from_pandas(rows.iloc[a:b], npartitions=1) for a, b in pairwise(cuts)])
    evaluation = evaluate_frame(frame, y_true="happened", logits="z", by="site", max_rows=0)
    _close(evaluation.summary, whole.summary)
    assert evaluation.groups is not None
    assert whole.groups is not None
    assert evaluation.groups.keys == whole.groups.keys


@pytest.mark.extra
def test_spark_runs_the_formulas_without_python(spark: Any) -> None:
    for columns in (Columns("y", ("p",), "y_prob", by=("site",)), Columns("x", ("mu",), "gaussian", ("std", "sd"))):
        work = express(nw.from_native(spark.createDataFrame(TABLE)).lazy(), columns)
        query = work.main(Plan())[0].to_native()
        plan = query._jdf.queryExecution().toString()
        assert "HashAggregate" in plan
        for worker in ("Python", "ArrowEval", "MapInArrow", "BatchEval"):
            assert worker not in plan


def test_rows_of_this_machine_are_streamed(engine: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked(Exception):
        pass

    def asked(*given: Any) -> None:
        raise Asked  # what it is asked for, and answers, is tested above

    monkeypatch.setattr(frames_module, "express", asked)
    frame = engine(FINITE)
    elsewhere = type(frame).__module__.startswith("pyspark")
    with pytest.raises(Asked) if elsewhere else nullcontext():
        assert evaluate_frame(frame, y_true="happened", logits="z", max_rows=100).n == len(FINITE)


@pytest.mark.extra
def test_databases_elsewhere_are_asked_for_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(frames_module, "express", lambda *given: calls.append(given) or express(*given))
    frame = _ibis(FINITE)
    monkeypatch.setattr(frames_module, "_LOCAL_BACKENDS", ())  # as if it were a server
    far = evaluate_frame(frame, y_true="happened", logits="z", max_rows=100)
    assert len(calls) == 1
    whole = evaluate_frame(FINITE, y_true="happened", logits="z")
    assert far.verdict.reason == whole.verdict.reason
    assert far.temperature.high == pytest.approx(whole.temperature.high, rel=1e-9)


@pytest.mark.extra
def test_a_query_of_ibis_is_read_a_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    ibis = pytest.importorskip("ibis")
    rows = ibis.memtable(FINITE)
    monkeypatch.setattr(ibis.expr.types.Table, "to_pyarrow", _not_whole(ibis.expr.types.Table.to_pyarrow))
    frame = rows.filter(rows.p > 0.5).mutate(double=2 * rows.z)
    row_counts = [part.num_rows for part in tables(frame, ["happened", "double"], 500)]
    assert sum(row_counts) == int((FINITE["p"].to_numpy() > 0.5).sum())
    assert len(row_counts) > 1


def _not_whole(real: Callable[..., Any]) -> Callable[..., Any]:
    def to_pyarrow(frame: Any, *given: Any, **options: Any) -> Any:
        result = real(frame, *given, **options)
        assert result.num_rows == 0
        return result

    return to_pyarrow
