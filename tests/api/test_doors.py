"""The front doors as a caller with an editor meets them: what they take, what they refuse, and how they name it."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import safecal
from safecal import _types
from safecal.compat.huggingface import ClassifierRun, RunOptions, run_classifier
from safecal.compat.sklearn import evaluate_cv_results, evaluate_estimator, neg_nll_if_safe
from safecal.compat.stonesoup import monte_carlo
from safecal.engines.batches import evaluate_batches
from safecal.engines.frames import evaluate_frame
from safecal.errors import AlignmentError, FormError, OptionError
from safecal.judge.evaluation import evaluate_predictions
from safecal.options import EvaluateOptions, LimitOptions
from safecal.paper import simulate
from safecal.paper.real_models import table2
from safecal.plot import ReliabilityDisplay
from safecal.testing import assert_safe

mpl.use("Agg")
SOURCE = Path(safecal.__file__).parent
Y = [0, 1, 1, 0, 1, 0, 1, 1]
P = [0.2, 0.7, 0.9, 0.4, 0.6, 0.3, 0.8, 0.55]
W = [1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0]
PREDICTIONS = safecal.bernoulli(Y, P)
DOORS: dict[str, Callable[..., Any]] = {
    "calibration_test": safecal.calibration_test,
    "implied_temperature": safecal.implied_temperature,
    "assess_reliability": safecal.assess_reliability,
}

doors = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


@doors
def test_arrays_give_what_predictions_give(door: Callable[..., Any]) -> None:
    assert door(Y, P) == door(PREDICTIONS)
    assert door(Y, P, sample_weight=W) == door(PREDICTIONS, sample_weight=W)
    logits = np.log(P) - np.log1p(-np.array(P))
    assert door(Y, logits=logits) == door(safecal.bernoulli(Y, logits=logits))
    names = np.where(np.array(Y) == 1, "ill", "well")
    assert door(names, P, pos_label="ill") == door(PREDICTIONS)
    assert door(Y, np.round(P), clip=0.01) == door(safecal.bernoulli(Y, np.round(P), clip=0.01))


@doors
def test_arrays_of_more_classes_have_labels(door: Callable[..., Any]) -> None:
    q = np.column_stack([P, 0.7 * (1 - np.array(P)), 0.3 * (1 - np.array(P))])
    names = ["a", "b", "c", "a", "a", "b", "a", "b"]
    of_arrays = door(names, q, labels=["a", "b", "c"])
    assert of_arrays == door(safecal.categorical(names, q, labels=["a", "b", "c"]))


def test_clusters_go_with_arrays() -> None:
    cluster = [0, 0, 1, 1, 2, 2, 3, 3]
    for door in (safecal.calibration_test, safecal.implied_temperature):
        assert door(Y, P, cluster=cluster) == door(PREDICTIONS, cluster=cluster)


@doors
@pytest.mark.parametrize("given", [None, "rows.csv", Y, {"y": Y}, safecal.evaluate(Y, P), 0.5])
def test_a_door_refuses_what_is_neither_arrays_nor_predictions(door: Callable[..., Any], given: Any) -> None:
    with pytest.raises(FormError, match=r"^`y_true` must be predictions.*; got a \w+ alone\.\n\nHint: pass `y_true, "):
        door(given)


@doors
@pytest.mark.parametrize("more", [{"y_prob": P}, {"logits": P}, {"pos_label": 1}, {"labels": [0, 1]}, {"clip": 0.1}])
def test_predictions_hold_their_arrays_already(door: Callable[..., Any], more: dict[str, Any]) -> None:
    with pytest.raises(
        OptionError, match=rf"`{next(iter(more))}` belongs to arrays; got predictions, .*\n\nHint: leave"
    ):
        door(PREDICTIONS, **more)


def test_so_do_sums() -> None:
    for call in (
        lambda: safecal.calibration_test(PREDICTIONS.summary(), P),
        lambda: safecal.implied_temperature(PREDICTIONS.tally(), P),
    ):
        with pytest.raises(OptionError, match="`y_prob` belongs to arrays; got sums"):
            call()


@doors
def test_weights_of_other_rows_are_refused(door: Callable[..., Any]) -> None:
    weight = pd.Series(W, index=range(1, 9))
    with pytest.raises(AlignmentError, match="`sample_weight` must have the same index as `y_true`"):
        door(pd.Series(Y), P, sample_weight=weight)


def test_a_model_of_any_family_is_asserted_safe(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2000, 2))
    assert_safe(safecal.gaussian(x, 0 * x, std=1.0))
    with pytest.raises(AssertionError, match="UNSAFE"):
        assert_safe(safecal.gaussian(x, 0 * x, std=0.5))


def test_a_display_draws_predictions() -> None:
    drawn, same = ReliabilityDisplay.from_predictions(PREDICTIONS), ReliabilityDisplay.from_predictions(Y, P)
    assert np.array_equal(drawn.observed, same.observed, equal_nan=True)


def test_consistency_is_that_of_predictions() -> None:
    with pytest.raises(FormError, match=r"`predictions` must be predictions; got a list\.\n\nHint: build them with"):
        safecal.assess_consistency([1.0], run=[0], step=[0])


def test_evaluate_sends_predictions_to_their_own_method() -> None:
    with pytest.raises(FormError, match=r"`y_true` must be an array .*\n\nHint: call `\.evaluate\(\)` on them"):
        safecal.evaluate(PREDICTIONS)


def test_compare_shows_how_two_predictions_are_built() -> None:
    with pytest.raises(FormError, match=r"`a` must be predictions; got a list\.\n\nHint: build both, as in `compare\("):
        safecal.compare(Y, P)  # type: ignore[call-overload]


MISSPELLED: dict[str, tuple[Callable[..., Any], str, str]] = {
    "evaluate": (lambda **o: safecal.evaluate(Y, P, **o), "treshold", "threshold"),
    "evaluate_predictions": (lambda **o: evaluate_predictions(PREDICTIONS, **o), "treshold", "threshold"),
    "Predictions.evaluate": (PREDICTIONS.evaluate, "max_temprature", "max_temperature"),
    "Predictions.tally": (PREDICTIONS.tally, "sample_weights", "sample_weight"),
    "Evaluation.judge": (safecal.evaluate(Y, P).judge, "treshold", "threshold"),
    "assert_safe": (lambda **o: assert_safe(Y, P, **o), "levels", "level"),
    "calibration_test": (lambda **o: safecal.calibration_test(Y, P, **o), "alternativ", "alternative"),
    "implied_temperature": (lambda **o: safecal.implied_temperature(Y, P, **o), "clusters", "cluster"),
    "assess_reliability": (lambda **o: safecal.assess_reliability(Y, P, **o), "bin", "bins"),
    "compare": (lambda **o: safecal.compare(PREDICTIONS, PREDICTIONS, **o), "weight", "sample_weight"),
    "ece": (lambda **o: safecal.ece(Y, P, **o), "binon", "bin_on"),
    "bernoulli": (lambda **o: safecal.bernoulli(Y, P, **o), "poslabel", "pos_label"),
    "recalibrate": (lambda **o: safecal.recalibrate(Y, P, **o), "treshold", "threshold"),
    "rows_needed": (lambda **o: safecal.rows_needed(PREDICTIONS, **o), "treshold", "threshold"),
    "assess_consistency": (lambda **o: safecal.assess_consistency(PREDICTIONS, **o), "runs", "run"),
    "evaluate_batches": (lambda **o: evaluate_batches([(Y, P)], **o), "treshold", "threshold"),
    "evaluate_frame": (lambda **o: evaluate_frame(pd.DataFrame({"y": Y, "p": P}), **o), "treshold", "threshold"),
    "ClassifierRun.evaluate": (
        ClassifierRun("m", "d", np.array(Y), np.array(P), ("no", "yes"), "yes", 0, None).evaluate, "bin", "bins",
    ),
    "run_classifier": (lambda **o: run_classifier("model", "data", **o), "batchsize", "batch_size"),
    "table2": (lambda **o: table2("roberta", **o), "batchsize", "batch_size"),
    "Simulation.evaluate": (simulate(100).evaluate, "bin", "bins"),
    "evaluate_estimator": (lambda **o: evaluate_estimator(None, Y, Y, **o), "treshold", "threshold"),
    "evaluate_cv_results": (lambda **o: evaluate_cv_results({}, Y, Y, **o), "clusters", "cluster"),
    "ClassScorer.with_limits": (neg_nll_if_safe.with_limits, "treshold", "threshold"),
    "ReliabilityDisplay.from_cv_results": (
        lambda **o: ReliabilityDisplay.from_cv_results({}, Y, Y, **o), "stratgy", "strategy",
    ),
    "monte_carlo": (lambda **o: monte_carlo([], **o), "treshold", "threshold"),
    "ReliabilityDisplay.from_predictions": (
        lambda **o: ReliabilityDisplay.from_predictions(Y, P, **o), "stratgy", "strategy",
    ),
}  # fmt: skip


@pytest.mark.parametrize("door", MISSPELLED)
def test_a_misspelled_option_names_the_door_and_the_nearest_option(door: str) -> None:
    call, wrong, right = MISSPELLED[door]
    with pytest.raises(TypeError) as caught:
        call(**{wrong: None})
    assert str(caught.value) == f"`{wrong}` is not an argument of `{door}`.\n\nHint: did you mean `{right}`?"


def test_an_option_like_no_other_lists_them_all() -> None:
    with pytest.raises(TypeError, match=r"`zzz` is not an argument of `Predictions\.tally`\.\n\nHint: it takes `bin_"):
        PREDICTIONS.tally(zzz=1)  # type: ignore[call-arg]


# What is handed on to another library's class, or is no door.
UNTYPED = (
    "_checks/",
    "cli/",
    "compat/torchmetrics/",
    "compat/stonesoup/__init__.py",
    "compat/sklearn/classifier.py",
)


def test_no_door_hides_its_options() -> None:
    hidden = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.relative_to(SOURCE).as_posix().startswith(UNTYPED)
        if re.search(r"\*\*\w+: Any", text := path.read_text(encoding="utf-8"))  # few have such a line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.args.kwarg is not None and node.args.kwarg.annotation is not None
        if ast.unparse(node.args.kwarg.annotation) == "Any" and not node.name.startswith("_")
    ]
    assert not hidden, hidden


def _keywords(function: Callable[..., Any]) -> set[str]:
    return {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}


def test_the_typed_options_are_those_of_the_doors() -> None:
    assert set(LimitOptions.__annotations__) == set(safecal.Limits.__slots__)
    assert set(EvaluateOptions.__annotations__) == _keywords(evaluate_predictions) | set(LimitOptions.__annotations__)
    arrays = {"logits", "pos_label", "labels", "by_label", "clip"}
    assert _keywords(safecal.evaluate) == set(EvaluateOptions.__annotations__) | arrays


def test_what_table2_hands_on_is_what_a_run_takes() -> None:
    assert set(RunOptions.__annotations__) | {"kind"} == _keywords(run_classifier)


@pytest.mark.parametrize("option", ["batch_size", "max_length"])
@pytest.mark.parametrize("value", [0, 2.5, True])
def test_a_run_counts_in_whole_numbers(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"`{option}` must be a whole number, at least 1; got {value}"):
        run_classifier("model", "data", **{option: value})


def test_named_choices_are_those_that_are_checked() -> None:
    verdict = safecal.evaluate(Y, P).verdict
    assert verdict.decision in get_args(_types.Decision)
    assert verdict.direction in get_args(_types.Direction)
    for choices, call in (
        (_types.Strategy, lambda: safecal.ece(Y, P, strategy="?")),
        (_types.BinOn, lambda: safecal.ece(Y, P, bin_on="?")),
        (_types.Side, lambda: safecal.ece(Y, P, side="?")),
        (_types.Rule, lambda: safecal.evaluate(Y, P, rule="?")),
        (_types.TestMethod, lambda: safecal.calibration_test(Y, P, method="?")),
        (_types.Quantity, lambda: safecal.assess_consistency(PREDICTIONS, run=Y, step=Y, quantity="?")),
    ):
        with pytest.raises(OptionError, match=f"must be one of {', '.join(map(repr, get_args(choices)))}; got"):
            call()


@pytest.mark.parametrize("side", ["over", "under"])
def test_sides_are_hyphenated_and_the_old_spelling_stays(side: str) -> None:
    new, old = f"{side}-confident", f"{side}confident"
    assert safecal.ece(Y, P, side=new) == safecal.ece(Y, P, side=old)
    result = safecal.calibration_test(Y, P, alternative=new)
    assert result == safecal.calibration_test(Y, P, alternative=old)
    assert result.alternative == new
    document = result.to_dict()
    assert document["alternative"] == old
    assert safecal.TestResult.from_dict(document) == result


def test_several_labels_in_a_frame_go_neither_with_features_nor_with_intervals() -> None:
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [1, 0, 1], "p": [0.2, 0.7, 0.6], "q": [0.6, 0.8, 0.8], "g": list("xyx")})
    with pytest.raises(OptionError, match="`features` cannot be searched where a row has several labels"):
        evaluate_frame(frame, y_true=["a", "b"], y_prob=["p", "q"], by_label=True, features="g")
    with pytest.raises(OptionError, match="`by_label` is for labels with probabilities or log-odds"):
        evaluate_frame(frame, y_true="a", lower="p", upper="q", coverage=0.9, by_label=True)
