"""Scorers, evaluations and displays for scikit-learn's estimators and cross-validations."""

import pickle
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn import config_context
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import safecal
from safecal import plot
from safecal.compat.sklearn import (
    ClassScorer,
    evaluate_cv_results,
    evaluate_estimator,
    neg_abs_ecd,
    neg_nll,
    neg_nll_if_safe,
)
from safecal.errors import EmptyError, LabelError, MissingExtraError, OptionError, ShapeError

mpl.use("Agg")

Rows = tuple[np.ndarray, np.ndarray]


def binary(rng: np.random.Generator, n: int = 600) -> Rows:
    X = rng.normal(size=(n, 2))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 * X[:, 0])), "yes", "no")


def three(rng: np.random.Generator, n: int = 600) -> Rows:
    X = rng.normal(size=(n, 3))
    return X, np.array(["a", "b", "c"])[(X + rng.gumbel(size=(n, 3))).argmax(axis=1)]


class Times(LogisticRegression):
    """A logistic regression whose log-odds are multiplied: 0 says nothing, 5 is bold."""

    def __init__(self, times: float = 1.0) -> None:
        super().__init__()
        self.times = times

    def predict_proba(self, X: Any) -> Any:
        p = 1 / (1 + np.exp(-self.times * self.decision_function(X)))
        return np.column_stack([1 - p, p])


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.mark.parametrize("rows", [binary, three])
def test_scores_of_text_labels_are_those_of_numbers(rows: Any, rng: np.random.Generator) -> None:
    X, y = rows(rng)
    _, codes = np.unique(y, return_inverse=True)
    text, number = LogisticRegression().fit(X, y), LogisticRegression().fit(X, codes)
    for scorer in (neg_abs_ecd, neg_nll, neg_nll_if_safe):
        assert scorer(text, X, y) == pytest.approx(scorer(number, X, codes))
        assert scorer(text, X, pd.Series(y)) == scorer(text, X, list(y)) == scorer(text, X, y)
    assert neg_nll(text, X, y) == pytest.approx(-log_loss(y, text.predict_proba(X)))
    assert neg_abs_ecd(text, X, y) == pytest.approx(-abs(safecal.ecd(codes, _positive(text, X))))


def _positive(model: Any, X: np.ndarray) -> np.ndarray:
    p = model.predict_proba(X)
    return p[:, 1] if p.shape[1] == 2 else p


def test_neither_the_emptiest_nor_the_boldest_model_wins_a_search(rng: np.random.Generator) -> None:
    X, y = binary(rng, 2000)
    grid = {"times": [0.0, 5.0, 1.0]}

    def best(scorer: Any) -> float:
        return float(GridSearchCV(Times(), grid, scoring=scorer, cv=3).fit(X, y).best_params_["times"])

    assert best(neg_abs_ecd) == 0.0  # which is why it is not searched with alone
    assert best(neg_nll_if_safe) == 1.0
    assert best(neg_nll) == 1.0


def test_an_unsafe_model_is_worth_no_more_than_saying_nothing(rng: np.random.Generator) -> None:
    X, y = binary(rng, 2000)
    nothing = -safecal.nll(y == "yes", np.full(2000, (y == "yes").mean()))
    bold, bolder = Times(2.0).fit(X, y), Times(6.0).fit(X, y)
    assert evaluate_estimator(bold, X, y).verdict.decision == "UNSAFE"
    assert neg_nll_if_safe(bold, X, y) == pytest.approx(nothing)
    assert neg_nll_if_safe(bold, X, y) < neg_nll(bold, X, y)
    assert neg_nll_if_safe(bolder, X, y) == neg_nll(bolder, X, y) < nothing
    assert neg_nll_if_safe(bolder, X, y) < neg_nll_if_safe(DummyClassifier().fit(X, y), X, y)


def test_limits_can_be_chosen(rng: np.random.Generator) -> None:
    X, y = binary(rng, 2000)
    warm = Times(1.4).fit(X, y)
    loose = neg_nll_if_safe.with_limits(threshold=1.0, max_temperature=3.0, local_threshold=2.0)
    tight = neg_nll_if_safe.with_limits(threshold=1e-3, max_temperature=1.01)
    assert loose(warm, X, y) == neg_nll(warm, X, y) > tight(warm, X, y)
    assert repr(tight) == "neg_nll_if_safe.with_limits(threshold=0.001, max_temperature=1.01)"
    assert tight.limits.threshold == 1e-3
    assert neg_nll_if_safe.limits.threshold == 0.1
    with pytest.raises(TypeError, match=r"did you mean `threshold`\?"):
        neg_nll_if_safe.with_limits(treshold=0.1)  # type: ignore[call-arg]


def test_a_class_that_is_missing_among_the_rows_is_no_hindrance(rng: np.random.Generator) -> None:
    X, y = three(rng)
    model, some = LogisticRegression().fit(X, y), y != "b"
    assert neg_nll(model, X[some], y[some]) == pytest.approx(
        -log_loss(y[some], model.predict_proba(X[some]), labels=["a", "b", "c"])
    )
    X, y = binary(rng)
    assert np.isfinite(neg_nll_if_safe(LogisticRegression().fit(X, y), X[y == "no"], y[y == "no"]))


def test_rows_of_a_class_that_the_model_never_met_are_left_out_with_a_warning(rng: np.random.Generator) -> None:
    X, y = three(rng)
    known = y != "c"
    model = LogisticRegression().fit(X[known], y[known])
    weight = rng.random(600)
    with pytest.warns(UserWarning, match=rf"not fitted to the class 'c': {(~known).sum()} of 600 rows are left out"):
        score = neg_nll(model, X, y, sample_weight=weight)
    assert score == neg_nll(model, X[known], y[known], sample_weight=weight[known])
    with pytest.warns(UserWarning, match="left out"), pytest.raises(EmptyError, match="got other classes only"):
        neg_nll(model, X[~known], y[~known])
    scores = {"nll": neg_nll, "safe": neg_nll_if_safe}
    order = np.argsort(y, kind="stable")
    with pytest.warns(UserWarning, match="left out"):
        results = cross_validate(LogisticRegression(), X[order], y[order], cv=KFold(2), scoring=scores)
    assert np.isfinite(results["test_nll"]).all()


def test_what_a_model_calls_impossible_is_minus_infinity(rng: np.random.Generator) -> None:
    X, y = binary(rng)
    tree = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    for scorer in (neg_abs_ecd, neg_nll, neg_nll_if_safe):
        assert scorer(tree, X[300:], y[300:]) == -np.inf


def test_weights_come_by_metadata_routing(rng: np.random.Generator) -> None:
    X, y = binary(rng, 300)
    weight = rng.random(300)
    with config_context(enable_metadata_routing=True):
        for asked, name in ((True, "sample_weight"), ("importance", "importance")):
            search = GridSearchCV(
                LogisticRegression().set_fit_request(sample_weight=False),
                {"C": [1.0]},
                scoring=neg_nll.set_score_request(sample_weight=asked),
                cv=KFold(3),
            )
            search.fit(X, y, **{name: weight})
            by_hand = [
                neg_nll(LogisticRegression().fit(X[a], y[a]), X[b], y[b], sample_weight=weight[b])
                for a, b in KFold(3).split(X)
            ]
            assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(by_hand), rel=1e-9)
        with pytest.raises(ValueError, match="sample_weight"):  # neither asked for nor declined
            GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=neg_nll).fit(X, y, sample_weight=weight)
    with pytest.raises(TypeError, match=r"`weights` cannot be asked for\.\n\nHint: it takes `sample_weight`"):
        neg_nll.set_score_request(weights=True)


def test_clusters_widen_what_a_verdict_rests_on(rng: np.random.Generator) -> None:
    X, y = binary(rng, 200)
    X, y = np.repeat(X, 20, axis=0), np.repeat(y, 20)
    bold = Times(1.8).fit(X, y)
    assert neg_nll_if_safe(bold, X, y) < neg_nll(bold, X, y)
    assert neg_nll_if_safe(bold, X, y, cluster=np.repeat(np.arange(200), 20)) == neg_nll(bold, X, y)


def test_scorers_travel_to_other_processes() -> None:
    scorer = neg_nll_if_safe.with_limits(level=0.9).set_score_request(cluster="patient")
    copy = pickle.loads(pickle.dumps(scorer))
    assert isinstance(copy, ClassScorer)
    assert repr(copy) == repr(scorer) == "neg_nll_if_safe.with_limits(level=0.9)"
    assert str(copy.get_metadata_routing()) == str(scorer.get_metadata_routing())


def test_a_pipeline_is_scored(rng: np.random.Generator) -> None:
    X, y = three(rng)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    results = cross_validate(model, X, y, scoring={"ecd": neg_abs_ecd, "safe": neg_nll_if_safe})
    assert (results["test_safe"] > -np.log(3)).all()


# Cross-validations


@pytest.mark.parametrize("rows", [binary, pytest.param(three, marks=pytest.mark.proof)])
def test_each_row_is_evaluated_by_the_model_that_did_not_see_it(rows: Any, rng: np.random.Generator) -> None:
    X, y = rows(rng, 200)
    beside = {"by": {"site": rng.integers(0, 2, 200)}, "sample_weight": rng.random(200), "cluster": np.arange(200) // 2}
    results = cross_validate(LogisticRegression(), X, y, cv=KFold(4), return_estimator=True, return_indices=True)
    folds = zip(results["estimator"], KFold(4).split(X), strict=True)
    y_prob = np.concatenate([_positive(model, X[test]) for model, (_, test) in folds])
    by_hand = safecal.evaluate(np.unique(y, return_inverse=True)[1], y_prob, **beside)
    evaluation = evaluate_cv_results(results, X, pd.Series(y), **beside)
    assert evaluation.tally == by_hand.tally
    assert evaluation.verdict == by_hand.verdict


def test_a_row_that_is_predicted_twice_is_one_cluster(rng: np.random.Generator) -> None:
    X, y = binary(rng, 200)
    results = cross_validate(
        LogisticRegression(), X, y, cv=RepeatedKFold(n_splits=4, n_repeats=2, random_state=0),
        return_estimator=True, return_indices=True,
    )  # fmt: skip
    evaluation = evaluate_cv_results(results, X, y)
    assert evaluation.n == 400
    assert evaluation.tally.clusters is not None
    assert len(evaluation.tally.clusters) == 200


def test_folds_with_other_classes_are_put_together(rng: np.random.Generator) -> None:
    X, y = three(rng, 300)
    without = [np.flatnonzero(y != name) for name in ("b", "c")]
    rest = np.arange(300)
    results = {
        "estimator": [LogisticRegression().fit(X[rows], y[rows]) for rows in without],
        "indices": {"test": [rest[:100], rest[100:]]},
    }
    with pytest.warns(UserWarning, match="not fitted to the class"):
        evaluation = evaluate_cv_results(results, X, y)
    assert evaluation.n == (y[:100] != "b").sum() + (y[100:] != "c").sum()
    assert f"{300 - evaluation.n} rows of classes that the estimator was not fitted to were left out." in str(
        evaluation
    )
    with pytest.warns(UserWarning, match="left out"):
        two = evaluate_estimator(results["estimator"][0], X, y)
    assert f"{(y == 'b').sum()} rows of classes that the estimator was not fitted to were left out." in str(two)
    assert evaluation.tally.family == "categorical"
    assert np.isfinite(evaluation.nll)


def test_what_is_no_cross_validation_is_refused(rng: np.random.Generator) -> None:
    X, y = binary(rng, 60)
    plain = cross_validate(LogisticRegression(), X, y)
    for given in (plain, [1, 2]):
        with pytest.raises(
            OptionError, match=r"(?s)`cv_results` must hold `estimator` and `indices`.*return_indices=True"
        ):
            evaluate_cv_results(given, X, y)  # type: ignore[arg-type]
    whole = cross_validate(LogisticRegression(), X, y, return_estimator=True, return_indices=True)
    with pytest.raises(ShapeError, match="`by` must have as many rows as `y`; got 59 and 60"):
        evaluate_cv_results(whole, X, y, by=y[1:])
    with pytest.raises(ShapeError, match="`y` must have the rows of `cv_results`; got 50 for 60"):
        evaluate_cv_results(whole, X[:50], y[:50])
    with pytest.raises(LabelError, match="`pos_label` must be one of the classes"):
        evaluate_cv_results(whole, X, y, pos_label="maybe")
    with pytest.raises(OptionError, match="`pos_label` is for two classes; got 3 classes"):
        evaluate_estimator(LogisticRegression().fit(*three(rng)), *three(rng), pos_label="a")


def test_cross_validations_share_axes(rng: np.random.Generator) -> None:
    X, y = binary(rng)
    figure, ax = plt.subplots()
    for name, times in (("plain", 1.0), ("bold", 3.0)):
        results = cross_validate(Times(times), X, y, return_estimator=True, return_indices=True)
        drawn = plot.ReliabilityDisplay.from_cv_results(results, X, y, ax=ax, name=name, bins=5)
        assert drawn.figure_ is figure
        whole = plot.ReliabilityDisplay.from_evaluation(evaluate_cv_results(results, X, y, bins=5))
        np.testing.assert_array_equal(drawn.observed, whole.observed)
    groups = plot.GroupsDisplay.from_cv_results(results, X, y, by=np.arange(600) % 2, name="bold")
    assert set(groups.labels) == {"0", "1"}
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [sum(text.startswith(name) for text in said) for name in ("plain", "bold")] == [1, 1]


def test_the_extra_is_named_where_scikit_learn_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("safecal.compat.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r'pip install "safecal\[sklearn\]"'):
        import safecal.compat.sklearn  # noqa: F401
