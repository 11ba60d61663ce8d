"""Maps where they are used: run in Python, DuckDB and torch, they give what `apply` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from safecal import maps
from safecal.errors import OptionError, RangeError, ShapeError, UnavailableError

TWO: list[Callable[[], maps.Map]] = [
    maps.Identity,
    maps.Temperature,
    maps.Affine,
    maps.Beta,
    maps.Isotonic,
    lambda: maps.Safe(maps.Affine()),
    lambda: maps.Safe(maps.Beta()),
    lambda: maps.Safe(maps.Isotonic()),
]
MANY: list[Callable[[], maps.Map]] = [
    maps.Identity,
    maps.Temperature,
    maps.Affine,
    maps.Vector,
    lambda: maps.Safe(maps.Vector()),
]
P = np.r_[0.0, 1e-300, 1e-9, np.linspace(0.001, 0.999, 97), 1 - 1e-9, 1.0]


def two(kind: Callable[[], maps.Map], sign: float = 1.0) -> maps.Map:
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, 1000)
    return kind().fit(rng.random(1000) < special.expit(0.5 * z + sign), logits=z)


def flat_beta(sign: float) -> maps.Beta:
    """Return a curve with one flat end."""
    rng = np.random.default_rng(3)
    z = sign * rng.normal(0.0, 2.0, 3000)
    y = rng.random(3000) < special.expit(sign * np.where(sign * z > 0.0, -0.3 * sign * z, 2.0 * sign * z))
    model = maps.Beta().fit(y, logits=z)
    assert 0.0 in (model.a_, model.b_)
    return model


def many(kind: Callable[[], maps.Map]) -> tuple[maps.Map, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, (1000, 3))
    y = (0.5 * z + [0.0, 0.5, 1.0] + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = np.r_[special.softmax(z[:50], axis=1), [[0.0, 0.25, 0.75], [1.0, 0.0, 0.0], [1e-200, 1.0, 0.0]]]
    return kind().fit(y, logits=z), p


def run(text: str, name: str = "recalibrate") -> Callable[[Any], Any]:
    space: dict[str, Any] = {}
    exec(text, space)
    return space[name]  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", TWO)
def test_python_of_two_classes(kind: Callable[[], maps.Map]) -> None:
    model = two(kind)
    function = run(model.to_python("mend"), "mend")
    assert [function(p) for p in P.tolist()] == pytest.approx(model.apply(P), rel=1e-12, abs=1e-300)
    with pytest.raises(ValueError, match="a probability lies"):
        function(1.5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_python_of_a_curve_with_a_flat_end(sign: float) -> None:
    model = flat_beta(sign)
    function = run(model.to_python())
    assert [function(p) for p in P.tolist()] == pytest.approx(model.apply(P), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("kind", MANY)
def test_python_of_many_classes(kind: Callable[[], maps.Map]) -> None:
    model, p = many(kind)
    function = run(model.to_python())
    assert np.array([function(row) for row in p.tolist()]) == pytest.approx(model.apply(p), rel=1e-10, abs=1e-300)
    with pytest.raises(ValueError, match="3 probabilities that sum to 1"):
        function([0.5, 0.5])


def stairs_to_1() -> maps.Map:
    """Return stairs whose last step is for certainties alone."""
    p = np.r_[np.zeros(100), np.full(100, 0.5), np.ones(100)]
    y = np.r_[np.arange(100) < 5, np.arange(100) < 40, np.arange(100) < 95]
    return maps.Isotonic().fit(y, p)


@pytest.mark.parametrize("kind", [*TWO, lambda: flat_beta(1.0), lambda: flat_beta(-1.0), stairs_to_1])
def test_sql_of_two_classes(kind: Callable[[], maps.Map]) -> None:
    duckdb = pytest.importorskip("duckdb")
    map_ = kind()
    model = map_ if hasattr(map_, "family_") else two(lambda: map_)
    with duckdb.connect() as db:
        db.execute('CREATE TABLE t (i INTEGER, "my ""p" DOUBLE)')
        db.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(P.tolist())))
        expression = model.to_sql('my "p')
        selected = db.execute(f"SELECT {expression} FROM t ORDER BY i").fetchall()
    assert [row[0] for row in selected] == pytest.approx(model.apply(P), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("kind", TWO[1:])
def test_what_is_no_probability_has_none_in_sql(kind: Callable[[], maps.Map]) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as db:
        db.execute("CREATE TABLE t AS SELECT * FROM (VALUES (NULL), ('NaN'::DOUBLE), (1.3), (-0.1)) AS t(p)")
        assert db.execute(f"SELECT {two(kind).to_sql('p')} FROM t").fetchall() == [(None,)] * 4
        rows = "SELECT 'NaN'::DOUBLE AS a, 0.3 AS b, 0.7 AS c UNION ALL SELECT NULL, 0.3, 0.7"
        calibrated = db.execute(f"SELECT {many(maps.Affine)[0].to_sql('a', 'b', 'c')} FROM ({rows})").fetchall()
    assert calibrated == [(None, None, None)] * 2


@pytest.mark.parametrize("kind", MANY)
def test_sql_of_many_classes(kind: Callable[[], maps.Map]) -> None:
    duckdb = pytest.importorskip("duckdb")
    model, p = many(kind)
    with duckdb.connect() as db:
        db.execute("CREATE TABLE t (i INTEGER, a DOUBLE, b DOUBLE, c DOUBLE)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(i, *row) for i, row in enumerate(p.tolist())])
        result = db.execute(f"SELECT {model.to_sql('a', 'b', 'c')} FROM t ORDER BY i")
        assert [column[0] for column in result.description] == ["calibrated_a", "calibrated_b", "calibrated_c"]
        recalibrated = np.array(result.fetchall(), dtype=float)
    assert recalibrated == pytest.approx(model.apply(p), rel=1e-9, abs=1e-200)


@pytest.mark.extra
@pytest.mark.parametrize("kind", TWO)
def test_torch_keeps_nan(kind: Callable[[], maps.Map]) -> None:
    torch = pytest.importorskip("torch")
    assert two(kind).to_torch()(torch.tensor([float("nan"), 0.0])).isnan().tolist() == [True, False]


@pytest.mark.extra
@pytest.mark.parametrize("kind", TWO)
def test_torch_of_two_classes(kind: Callable[[], maps.Map]) -> None:
    import torch

    model = two(kind)
    z = np.linspace(-30.0, 30.0, 101)
    module = model.to_torch()
    assert module(torch.tensor(z)).numpy() == pytest.approx(model.apply_logits(logits=z), rel=1e-12, abs=1e-12)
    columns = np.stack([0 * z, z], axis=1)
    recalibrated = module(torch.tensor(columns)).numpy()
    assert recalibrated == pytest.approx(model.apply_logits(logits=columns), rel=1e-12, abs=1e-12)
    assert module(torch.tensor(z, dtype=torch.float32)).dtype == torch.float32
    again = model.to_torch()
    again.load_state_dict(module.state_dict())


@pytest.mark.extra
@pytest.mark.parametrize("classes", [2, 3])
def test_torch_by_group_is_the_map_of_each_group(classes: int) -> None:
    import torch

    rng = np.random.default_rng(0)
    z = 2.0 * rng.normal(size=(400, classes))
    y = np.argmax(z + rng.gumbel(size=z.shape), axis=1)
    z = z[:, 1] - z[:, 0] if classes == 2 else z
    site = np.array(["north", "south", "west"])[np.arange(400) % 3]
    model = maps.Affine().fit(y, logits=z, by=site)
    module = model.to_torch()
    group = torch.tensor([module.groups.index(name) for name in site.tolist()])
    wanted = model.apply_logits(logits=z, by=site)
    assert module(torch.tensor(z), group).numpy() == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    assert module(torch.tensor(z, dtype=torch.float32), group).dtype == torch.float32
    again = model.to_torch()
    again.load_state_dict(module.state_dict())
    with pytest.raises(RangeError, match="`group` must lie in 0 to 2: another group was not fitted; got 3"):
        module(torch.tensor(z), group + 1)
    with pytest.raises(ShapeError, match="`group` must hold a whole number for each row"):
        module(torch.tensor(z), group[:5])
    with pytest.raises(ShapeError, match="`group` must hold a whole number for each row"):
        module(torch.tensor(z), group.double())


@pytest.mark.extra
@pytest.mark.parametrize("kind", MANY)
def test_torch_of_many_classes(kind: Callable[[], maps.Map]) -> None:
    import torch

    model, p = many(kind)
    z = np.log(p[:50])
    recalibrated = torch.softmax(model.to_torch()(torch.tensor(z)), dim=-1).numpy()
    assert recalibrated == pytest.approx(model.apply(logits=z), rel=1e-12)


GROUPS: dict[str, list[Any]] = {
    "text": ["north", "o'south", None],
    "whole": [1, 2, 3],
    "number": [0.5, -1.5, 1e300],
    "truth": [True, False],
}


@pytest.mark.parametrize("column", GROUPS)
@pytest.mark.parametrize("kind", [maps.Affine, lambda: maps.Safe(maps.Isotonic(), 0.2)])
def test_each_group_has_its_own_map_in_python_and_sql(kind: Callable[[], maps.Map], column: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    keys = GROUPS[column]
    rng = np.random.default_rng(1)
    z, group = rng.normal(0.0, 2.0, 900), np.resize(np.array(keys, dtype=object), 900)
    y = rng.random(900) < special.expit(0.5 * z + np.resize(np.arange(len(keys)), 900))
    model = kind().fit(y, logits=z, by=group)
    rows = [(p, key) for p in P.tolist() for key in keys]
    wanted = model.apply([p for p, _ in rows], by=np.array([key for _, key in rows], dtype=object))
    function = run(model.to_python())
    assert [function(p, key) for p, key in rows] == pytest.approx(wanted, rel=1e-12, abs=1e-300)
    with pytest.raises(ValueError, match="no map was fitted to the group 'elsewhere'"):
        function(0.5, "elsewhere")
    kinds = {"text": "VARCHAR", "whole": "BIGINT", "number": "DOUBLE", "truth": "BOOLEAN"}
    with duckdb.connect() as db:
        db.execute(f'CREATE TABLE t (i INTEGER, p DOUBLE, "my group" {kinds[column]})')
        db.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, *row) for i, row in enumerate(rows)])
        selected = db.execute(f"SELECT {model.to_sql('p', by='my group')} FROM t ORDER BY i").fetchall()
        assert [row[0] for row in selected] == pytest.approx(wanted, rel=1e-9, abs=1e-300)
        if column == "whole":  # a group that was not fitted has no probability
            unknown = "SELECT 0.5 AS p, 7 AS site"
            assert db.execute(f"SELECT {model.to_sql('p', by='site')} FROM ({unknown})").fetchone() == (None,)


def test_groups_of_two_columns_and_many_classes_are_written() -> None:
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, (800, 3))
    site, year = np.resize(["a", "b"], 800), np.resize([1, 1, 2, 2], 800)
    y = (0.5 * z + np.outer(year, [0.0, 0.5, 1.0]) + rng.gumbel(size=z.shape)).argmax(axis=1)
    model = maps.Vector().fit(y, logits=z, by={"site": site, "year": year})
    p = special.softmax(z[:40], axis=1)
    wanted = model.apply(p, by={"site": site[:40], "year": year[:40]})
    groups = list(zip(site[:40].tolist(), year[:40].tolist(), strict=True))
    function = run(model.to_python())
    assert np.array([function(row, group) for row, group in zip(p.tolist(), groups, strict=True)]) == pytest.approx(
        wanted
    )
    with duckdb.connect() as db:
        db.execute("CREATE TABLE t (i INTEGER, a DOUBLE, b DOUBLE, c DOUBLE, site VARCHAR, year INTEGER)")
        rows = [(i, *row, *group) for i, (row, group) in enumerate(zip(p.tolist(), groups, strict=True))]
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
        result = db.execute(f"SELECT {model.to_sql('a', 'b', 'c', by=['site', 'year'])} FROM t ORDER BY i")
        assert [column[0] for column in result.description] == ["calibrated_a", "calibrated_b", "calibrated_c"]
        assert np.array(result.fetchall(), dtype=float) == pytest.approx(wanted)


def test_what_cannot_be_exported_is_refused() -> None:
    model = two(maps.Affine)
    with pytest.raises(OptionError, match="`name` must be the name of a function"):
        model.to_python("not a name")
    with pytest.raises(ShapeError, match="`columns` must be one column, of the positive class; got 2"):
        model.to_sql("a", "b")
    with pytest.raises(ShapeError, match="`columns` must be 3 columns, one for each class; got 1"):
        many(maps.Affine)[0].to_sql("a")
    with pytest.raises(OptionError, match="`columns` must be names of columns"):
        model.to_sql(3)  # type: ignore[arg-type]
    z = np.random.default_rng(0).normal(size=100)
    grouped = maps.Temperature().fit(np.arange(100) % 3 > 0, logits=z, by=np.arange(100) % 2)
    with pytest.raises(OptionError, match="`by` must name the column of the groups"):
        grouped.to_sql("p")
    with pytest.raises(OptionError, match="`by` must be names of columns; got 3"):
        grouped.to_sql("p", by=[3])  # type: ignore[list-item]
    with pytest.raises(ShapeError, match="`by` must name 1 columns, those of the groups; got 2"):
        grouped.to_sql("p", by=["a", "b"])
    with pytest.raises(OptionError, match="`by` belongs to maps that were fitted with `by=`"):
        model.to_sql("p", by="site")
    with pytest.raises(UnavailableError, match="does not apply to classes"):
        maps.Axes().fit_states(z, 0 * z, std=1.0).to_python()
    with pytest.raises(UnavailableError, match="not fitted yet"):
        maps.Affine().to_sql("p")


def test_torch_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="`to_torch` needs torch"):
        two(maps.Affine).to_torch()
