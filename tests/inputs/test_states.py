"""States of several components: the same rows have the same answer at every door, and odd matrices the same refusal."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal import errors
from safecal.cli import build_parser
from safecal.cli.table_file import TableFile
from safecal.engines.batches import evaluate_batches
from safecal.errors import CovarianceError, FormError, MissingValueError, RangeError, SafecalError, ShapeError
from safecal.inputs.states import split_names

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pytest.importorskip("narwhals")

from safecal.engines.frames import evaluate_frame  # noqa: E402

N, D = 400, 3
AXES = ("e", "n", "u")


@dataclass(frozen=True)
class States:
    """True states, means, and covariances."""

    x: Any
    mean: Any
    cov: Any

    @property
    def std(self) -> Any:
        return np.sqrt(np.diagonal(self.cov, axis1=1, axis2=2))

    def columns(self) -> dict[str, Any]:
        """Return one column a number: x_e, m_e, s_e, v_e, c_ee, c_en, ..."""
        found = {f"x_{a}": self.x[:, k] for k, a in enumerate(AXES)}
        found |= {f"m_{a}": self.mean[:, k] for k, a in enumerate(AXES)}
        found |= {f"s_{a}": self.std[:, k] for k, a in enumerate(AXES)}
        found |= {f"v_{a}": self.std[:, k] ** 2 for k, a in enumerate(AXES)}
        return found | {f"c_{a}{b}": self.cov[:, i, j] for i, a in enumerate(AXES) for j, b in enumerate(AXES)}


@cache
def good() -> States:
    rng = np.random.default_rng(23)
    factor = np.tril(rng.normal(0.0, 0.4, (N, D, D))) + np.eye(D)
    mean = rng.normal(size=(N, D))
    x = mean + 1.3 * np.einsum("nij,nj->ni", factor, rng.normal(size=(N, D)))
    return States(x, mean, factor @ np.swapaxes(factor, 1, 2))


def _named(stem: str) -> list[str]:
    return [f"{stem}_{a}" for a in AXES]


LOWER = [f"c_{AXES[i]}{AXES[j]}" for i in range(D) for j in range(i + 1)]
FULL = [f"c_{a}{b}" for a in AXES for b in AXES]
UPPER = [f"c_{AXES[i]}{AXES[j]}" for i in range(D) for j in range(i, D)]
FORMS: dict[str, tuple[str, list[str]]] = {
    "std": ("std", _named("s")),
    "var": ("var", _named("v")),
    "lower triangle": ("cov", LOWER),
    "whole matrix": ("cov", FULL),
}
Door = Callable[[dict[str, Any], str, list[str], Path], safecal.Evaluation]


def _frame(make: Callable[[Any], Any]) -> Door:
    def evaluate(columns: dict[str, Any], form: str, names: list[str], _: Path) -> safecal.Evaluation:
        return evaluate_frame(make(columns), x_true=_named("x"), mean=_named("m"), **{form: names})

    return evaluate


def _command(kind: str, *, joined: bool = True) -> Door:
    def evaluate(columns: dict[str, Any], form: str, names: list[str], folder: Path) -> safecal.Evaluation:
        path = folder / f"rows.{kind}"
        if kind == "npz":
            np.savez(path, **columns)
        else:
            frame = pl.DataFrame(columns)
            {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[kind](path)
        words: list[str] = []
        for option, named in (("--x", _named("x")), ("--mean", _named("m")), (f"--{form}", names)):
            words += [option, ",".join(named)] if joined else [word for name in named for word in (option, name)]
        return evaluate_batches(_opened(path, words).batches, bins=None)

    return evaluate


def _opened(path: Path, words: list[str]) -> TableFile:
    options: argparse.Namespace = build_parser("evaluate").parse_args(["evaluate", str(path), *words])
    return TableFile.opened(options.file, options, options.prob, options.logits)


DOORS: dict[str, Door] = {
    "pandas": _frame(lambda columns: pl.DataFrame(columns).to_pandas()),
    "polars": _frame(pl.DataFrame),
    "lazy polars": _frame(lambda columns: pl.DataFrame(columns).lazy()),
    "pyarrow": _frame(pa.table),
    "csv": _command("csv"),
    "csv, one by one": _command("csv", joined=False),
    "jsonl": _command("jsonl"),
    "parquet": _command("parquet"),
    "npz": _command("npz"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("form", FORMS)
def test_every_door_has_the_verdict_of_the_library(form: str, door: str, tmp_path: Path) -> None:
    states = good()
    name, columns = FORMS[form]
    given = {"std": states.std, "var": states.std**2, "cov": states.cov}[name]
    wanted = safecal.gaussian(states.x, states.mean, **{name: given}).evaluate()
    evaluation = DOORS[door](states.columns(), name, columns, tmp_path)
    assert wanted.verdict.decision == "UNSAFE"
    assert (evaluation.verdict.reason, evaluation.dimension, evaluation.n) == (wanted.verdict.reason, D, N)
    assert evaluation.ecd == pytest.approx(wanted.ecd, rel=1e-12)
    assert evaluation.temperature.high == pytest.approx(wanted.temperature.high, rel=1e-12)


def _spoiled(change: Callable[[Any, Any], None]) -> dict[str, Any]:
    states = good()
    x, cov = states.x[:6].copy(), states.cov[:6].copy()
    change(x, cov)
    return States(x, states.mean[:6], cov).columns()


def _indefinite(_: Any, cov: Any) -> None:
    cov[4] = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def _lopsided(_: Any, cov: Any) -> None:
    cov[2, 0, 1] += 0.3


def _unknown(x: Any, _: Any) -> None:
    x[3, 1] = np.nan


def _endless(x: Any, _: Any) -> None:
    x[1, 2] = np.inf


ODD: dict[str, tuple[Callable[[Any, Any], None], type[SafecalError], str]] = {
    "not positive definite": (
        _indefinite, CovarianceError,
        "must be positive definite; got a matrix whose smallest eigenvalue is -1 at row 4",
    ),
    "not symmetric": (
        _lopsided, CovarianceError, "must be symmetric; got entries that differ by 0.3 from their mirror at row 2",
    ),
    "missing": (_unknown, MissingValueError, "`x_n` must not hold missing values; got nothing at row 3"),
    "infinite": (_endless, RangeError, "`x_e x_n x_u` must be finite; got inf at row 1"),
}  # fmt: skip


@pytest.mark.parametrize("door", [name for name in DOORS if name != "jsonl"])  # which has no infinity
@pytest.mark.parametrize("odd", ODD)
def test_every_door_refuses_alike(odd: str, door: str, tmp_path: Path) -> None:
    change, error, words = ODD[odd]
    with pytest.raises(error) as refusal:
        DOORS[door](_spoiled(change), "cov", FULL, tmp_path)
    assert words in str(refusal.value)
    complaint = refusal.value.complaint
    assert complaint is not None
    assert complaint.count == (1, 6)
    if error is CovarianceError:
        assert "np." not in str(refusal.value)


def test_a_lower_triangle_is_never_lopsided(tmp_path: Path) -> None:
    evaluation = DOORS["polars"](_spoiled(_lopsided), "cov", LOWER, tmp_path)
    states = good()
    assert evaluation.ecd == pytest.approx(safecal.gaussian(states.x[:6], states.mean[:6], cov=states.cov[:6]).ecd)


def test_matrices_may_lie_in_one_column(tmp_path: Path) -> None:
    states = good()
    wanted = safecal.gaussian(states.x, states.mean, cov=states.cov).evaluate().verdict.reason
    path = tmp_path / "rows.npz"
    np.savez(path, x=states.x, m=states.mean, c=states.cov)
    words = ["--x", "x", "--mean", "m", "--cov", "c"]
    assert evaluate_batches(_opened(path, words).batches, bins=None).verdict.reason == wanted
    line, column = np.tril_indices(D)
    shapes = {
        "nested": states.cov.tolist(),
        "whole": states.cov.reshape(N, -1).tolist(),
        "lower": states.cov[:, line, column].tolist(),
    }
    frame = pl.DataFrame({"x": states.x.tolist(), "m": states.mean.tolist(), **shapes})
    for name in shapes:
        assert evaluate_frame(frame, x_true="x", mean="m", cov=name).verdict.reason == wanted
    with pytest.raises(ShapeError, match="`x` must be 9 numbers, the matrix row by row, or 6"):
        evaluate_frame(frame, x_true="x", mean="m", cov="x")


def test_a_pattern_names_the_columns_of_a_matrix(tmp_path: Path) -> None:
    states = good()
    path = tmp_path / "rows.csv"
    pl.DataFrame({name: states.columns()[name] for name in (*_named("x"), *_named("m"), *LOWER)}).write_csv(path)
    words = ["--x", "x_e,x_n,x_u", "--mean", "m_e,m_n,m_u", "--cov", "c_*"]
    evaluation = evaluate_batches(_opened(path, words).batches, bins=None)
    assert evaluation.ecd == pytest.approx(safecal.gaussian(states.x, states.mean, cov=states.cov).ecd)
    assert evaluate_frame(
        pl.read_csv(path), x_true=_named("x"), mean=_named("m"), cov="c_*"
    ).ecd == pytest.approx(evaluation.ecd)  # fmt: skip


def test_one_component_may_have_a_covariance() -> None:
    states = good()
    frame = pl.DataFrame(states.columns())
    wanted = safecal.gaussian(states.x[:, 0], states.mean[:, 0], std=states.std[:, 0]).evaluate()
    for names in ({"x_true": "x_e", "mean": "m_e"}, {"x_true": ["x_e"], "mean": ["m_e"]}):
        assert evaluate_frame(frame, **names, cov="v_e").verdict.reason == wanted.verdict.reason
        assert evaluate_frame(frame, **names, std=["s_e"]).verdict.reason == wanted.verdict.reason


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mean": ["m_e", "m_n"], "std": _named("s")}, "`m_e m_n` must be as many columns as `x_true` names; got 2"),
        ({"mean": _named("m"), "std": ["s_e"]}, "`s_e` must be as many columns as `x_true` names; got 1 and 3"),
        ({"mean": _named("m"), "cov": FULL[:4]}, "must be 9 columns, the matrix row by row, or 6, its lower triangle"),
        ({"mean": _named("m"), "cov": UPPER}, "must name its lower triangle row by row, ee, ne, nn, ue, un, uu; got"),
        ({"mean": _named("m"), "std": _named("s"), "var": _named("v")}, "got `std` and `var`"),
        ({"mean": _named("m")}, "`cov` must name the spread"),
        ({"mean": ["m_e"] * 3, "std": _named("s")}, "must name each column once; got 'm_e' twice"),
        ({"mean": _named("m"), "cov": ["s_e"] * 6}, "`cov` must name each column once; got 's_e' twice"),
    ],
)  # fmt: skip
def test_columns_that_do_not_belong_together_are_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    columns = good().columns()
    with pytest.raises(FormError) as refusal:
        evaluate_frame(pl.DataFrame(columns), x_true=_named("x"), **given)
    assert message in str(refusal.value)
    path = tmp_path / "rows.csv"
    pl.DataFrame(columns).write_csv(path)
    words = [word for name, value in given.items() for word in (f"--{name}", ",".join(value))]
    with pytest.raises(FormError) as refusal:
        _opened(path, ["--x", ",".join(_named("x")), *words])
    assert "x_true" not in str(refusal.value)


def test_names_in_another_order_pass_where_they_do_not_say_which() -> None:
    frame = pl.DataFrame({f"{name[0]}{k}": column for k, (name, column) in enumerate(good().columns().items())})
    numbered = [name for name in frame.columns if name[0] == "c"]
    names = {"x_true": ["x0", "x1", "x2"], "mean": ["m3", "m4", "m5"]}
    assert evaluate_frame(frame, **names, cov=numbered).dimension == D
    turned = {"x_true": ["x_u", "x_e", "x_n"], "mean": ["m_u", "m_e", "m_n"]}
    whole = pl.DataFrame(good().columns())
    assert evaluate_frame(whole, **turned, cov=["c_uu", "c_ue", "c_ee", "c_un", "c_en", "c_nn"]).dimension == D


def test_draws_and_intervals_are_of_one_number(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pl.DataFrame(good().columns()).write_csv(path)
    with pytest.raises(errors.FormError, match="of one number"):
        _opened(path, ["--x", "x_e", "--x", "x_n", "--draws", "m_*"])


def test_a_name_with_a_comma_stands() -> None:
    assert split_names(["a,b", "c"], ["a,b", "c, d"]) == ("a,b", "c", "d")
