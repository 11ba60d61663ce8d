"""``safecal evaluate`` and `evaluate_frame` of forecasts of a number: every form, as the library does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import safecal as library
from safecal.engines.frames import evaluate_frame
from safecal.errors import FormError

pl = pytest.importorskip("polars", minversion="1.38")

Safecal = Callable[..., Any]

RNG = np.random.default_rng(7)
N, M = 800, 25
MEAN, STD = RNG.normal(size=N), RNG.uniform(0.5, 2.0, N)
Y = MEAN + 1.46 * STD * RNG.normal(size=N)
DRAWS = MEAN[:, None] + STD[:, None] * RNG.normal(size=(N, M))
LEVELS = (0.05, 0.25, 0.75, 0.95)
QUANTILES = MEAN[:, None] + STD[:, None] * np.array([-1.645, -0.674, 0.674, 1.645])
FRAME = pl.DataFrame(
    {"truth": Y, "mean": MEAN, "std": STD, "var": STD**2}
    | {f"q{100 * level:02.0f}": QUANTILES[:, k] for k, level in enumerate(LEVELS)}
    | {f"draw_{k}": DRAWS[:, k] for k in range(M)}
)
GAUSSIAN = library.gaussian(Y, MEAN, std=STD)
INTERVALS = library.intervals(Y, QUANTILES[:, 0], QUANTILES[:, -1], level=0.9)
BETWEEN = library.quantiles(Y, QUANTILES, levels=LEVELS)
NAMED = [word for level in LEVELS for word in ("--quantile", f"{level}=q{100 * level:02.0f}")]

CASES: dict[str, tuple[list[str], dict[str, Any], Any]] = {
    "gaussian": (["--mean", "mean", "--std", "std"], {"mean": "mean", "std": "std"}, GAUSSIAN),
    "intervals": (
        ["--lower", "q05", "--upper", "q95", "--coverage", "0.9"],
        {"lower": "q05", "upper": "q95", "coverage": 0.9},
        INTERVALS,
    ),
    "quantiles": (NAMED, {"quantile": {level: f"q{100 * level:02.0f}" for level in LEVELS}}, BETWEEN),
    "ensemble": (["--draws", "draw_*"], {"draws": "draw_*"}, library.ensemble(Y, DRAWS)),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "forecasts.csv"
    FRAME.write_csv(path)
    return path


@pytest.mark.parametrize("case", CASES)
def test_every_form_has_the_verdict_of_the_library_at_every_door(case: str, table: Path, safecal: Safecal) -> None:
    words, names, predictions = CASES[case]
    wanted = predictions.evaluate()
    assert wanted.verdict.decision == "UNSAFE"
    said = safecal(
        "evaluate", table, "--x", "truth", *words, "--json", "--gate", "--report", table.with_suffix(".html")
    )
    assert (said.status, said.err) == (3, "")
    document = json.loads(said.out)
    jsonschema.Draft202012Validator(library.Evaluation.json_schema()).validate(document)
    evaluation = library.Evaluation.from_dict(document)
    assert evaluation.family == case
    assert evaluation.ecd == pytest.approx(wanted.ecd, rel=1e-9)
    assert evaluation.verdict.reason == wanted.verdict.reason
    assert "UNSAFE" in table.with_suffix(".html").read_text(encoding="utf-8")
    outcome = {"x_true": "truth"} if case == "gaussian" else {"y_true": "truth"}
    for rows in (FRAME, FRAME.lazy(), FRAME.to_pandas()):
        assert evaluate_frame(rows, **outcome, **names).verdict.reason == wanted.verdict.reason
    batches = evaluate_frame(FRAME, **outcome, **names, max_rows=0)
    assert batches.verdict.decision == "UNSAFE"


def test_mean_and_spread_are_found_by_name(table: Path, safecal: Safecal) -> None:
    FRAME.select("truth", "mean", "std").write_csv(table)
    assert "800 rows, forecasts of a number" in safecal("evaluate", table).out
    both = safecal("evaluate", table.with_name("missing.csv"))
    assert both.status != 0
    FRAME.select("truth", "mean", "std", "var").write_csv(table)
    assert "could be" in safecal("evaluate", table).err
    assert "is the probability" in safecal("recalibrate", table).err  # which knows probabilities alone


def test_draws_may_be_a_column_of_lists() -> None:
    frame = pl.DataFrame({"truth": Y, "draws": DRAWS.tolist()})
    evaluation = evaluate_frame(frame, y_true="truth", draws=["draws"])
    assert evaluation.ecd == pytest.approx(library.ensemble(Y, DRAWS).ecd, rel=1e-9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lower", "q05"], "no upper and no coverage"),
        (["--mean", "mean", "--std", "std", "--var", "var"], "std and var"),
        (["--draws", "draw_*", "--mean", "mean", "--std", "std"], "gaussian and ensemble"),
        (["--draws", "drw_*"], "no column 'drw_*'"),
        (["--draws", "draw_0", "--draws", "draw_1", "--draws", "draw_0"], "`--draws` must name each column once; got"),
        (["--quantile", "q05"], "0.05=q05"),
        (["--quantile", "5=q05"], "0.05=q05"),
        (["--prob", "mean", "--draws", "draw_*"], "two forms of one prediction"),
        (["--lower", "q95", "--upper", "q05", "--coverage", "0.9"], "`q95` must not exceed"),
    ],
)
def test_what_states_no_forecast_is_refused_with_a_way_out(
    words: list[str], message: str, table: Path, safecal: Safecal
) -> None:
    said = safecal("evaluate", table, "--y", "truth", *words)
    assert said.status != 0
    assert message in said.err


def test_a_frame_states_its_forecast_in_one_way() -> None:
    with pytest.raises(FormError, match="without probabilities"):
        evaluate_frame(FRAME, y_true="truth", draws="draw_*", y_prob="mean")
    with pytest.raises(FormError, match="no coverage"):
        evaluate_frame(FRAME, y_true="truth", lower="q05", upper="q95")


@pytest.mark.parametrize("case", CASES)
def test_a_forecast_of_one_number_is_not_told_of_covariances(case: str, table: Path, safecal: Safecal) -> None:
    words, _, predictions = CASES[case]
    page = table.with_suffix(".html")
    text = safecal("evaluate", table, "--y", "truth", *words, "--report", page).out
    result = predictions.evaluate()
    shown = re.sub(r'<script type="application/json".*?</script>', "", page.read_text(), flags=re.DOTALL)
    for said in (text, shown, result._repr_html_(), json.dumps(result.verdict.to_dict())):
        assert not re.search("variance|spectrum|[^a-z]states[^a-z.(]", said.replace("apply_states", ""))
        assert "positive class" not in said
    assert "standard deviation" in text or case in ("intervals", "quantiles")


def test_a_factor_of_standard_deviations_is_compared_with_one_of_its_kind() -> None:
    result = library.gaussian(Y, MEAN, std=1.02 * STD).evaluate(threshold=10.0, local_threshold=10.0)
    assert "its standard deviations are at least 1.3" in result.verdict.reason
    assert "where 1.22 is allowed" in result.verdict.reason
    assert "Multiply its standard deviations" in result.verdict.diagnosis.remedy
    aside = library.gaussian(Y, MEAN - 2.0, std=4.0 * STD).evaluate()
    assert "axis" not in str(aside)
