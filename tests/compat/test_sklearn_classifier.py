"""`SafeCalibratedClassifier`: any classifier, mended on rows it was not fitted to."""

import json
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import safecal
from safecal import maps
from safecal.compat.sklearn import SafeCalibratedClassifier, neg_nll_if_safe
from safecal.errors import OptionError, RangeError

Rows = tuple[np.ndarray, np.ndarray]


def twice(rng: np.random.Generator, n: int = 800, classes: int = 2) -> Rows:
    """Return columns that say everything three times, which naive Bayes takes for three witnesses."""
    z = rng.normal(size=(n, 2))
    X = np.column_stack([z + 0.1 * rng.normal(size=z.shape) for _ in range(3)])
    scores = np.column_stack([0 * z[:, 0], z[:, 0], z[:, 1]])[:, :classes]
    return X, np.array(["no", "yes", "zoo"])[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]


quick = {"method": "temperature", "cv": 3}


def test_an_over_confident_classifier_is_mended(rng: np.random.Generator) -> None:
    X, y = twice(rng, 3000)
    naive = GaussianNB().fit(X[:1500], y[:1500])
    model = SafeCalibratedClassifier(GaussianNB()).fit(X[:1500], y[:1500])
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 6
    assert model.recalibration_.before.verdict.decision == "UNSAFE"
    assert model.evaluation_.verdict.decision == "SAFE"
    happened, y_prob = y[1500:] == "yes", model.predict_proba(X[1500:])
    np.testing.assert_allclose(y_prob.sum(axis=1), 1.0)
    assert safecal.evaluate(happened, y_prob[:, 1]).verdict.decision == "SAFE"
    assert safecal.nll(happened, y_prob[:, 1]) < safecal.nll(happened, naive.predict_proba(X[1500:])[:, 1]) - 0.05
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.score(X[1500:], y[1500:]) > 0.6


def test_the_map_is_that_of_predictions_by_other_folds(rng: np.random.Generator) -> None:
    X, y = twice(rng)
    model = SafeCalibratedClassifier(GaussianNB(), method="affine", alpha=0.1, cv=4).fit(X, y)
    held_out = cross_val_predict(GaussianNB(), X, y, cv=StratifiedKFold(4), method="predict_proba")[:, 1]
    by_hand = safecal.recalibrate(y == "yes", held_out, method="affine", alpha=0.1)
    whole = GaussianNB().fit(X, y).predict_proba(X)[:, 1]
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], by_hand.apply(whole), rtol=1e-12)
    assert model.evaluation_.tally == by_hand.after.tally
    assert model.recalibration_.before.tally == by_hand.before.tally


@pytest.mark.proof
def test_more_classes(rng: np.random.Generator) -> None:
    X, y = twice(rng, 1000, classes=3)
    model = SafeCalibratedClassifier(GaussianNB(), **quick).fit(X, y)
    y_prob = model.predict_proba(X)
    assert y_prob.shape == (1000, 3)
    np.testing.assert_allclose(y_prob.sum(axis=1), 1.0)
    assert model.recalibration_.before.ecd > 0.1 > model.evaluation_.ecd
    assert model.predict(X[:5]).tolist() == model.classes_[y_prob[:5].argmax(axis=1)].tolist()


@pytest.mark.parametrize("labels", [[1, 2], pytest.param([False, True], marks=pytest.mark.proof), [0.0, 2.0]])
def test_labels_of_any_kind(labels: list[Any], rng: np.random.Generator) -> None:
    X, y = twice(rng, 300)
    named = SafeCalibratedClassifier(GaussianNB(), **quick).fit(X, y)
    other = SafeCalibratedClassifier(GaussianNB(), **quick).fit(X, np.array(labels)[(y == "yes").astype(int)])
    np.testing.assert_array_equal(other.predict_proba(X), named.predict_proba(X))
    assert other.predict(X[:1])[0] in labels


def test_a_frozen_classifier_and_one_that_was_fitted_are_left_as_they_are(rng: np.random.Generator) -> None:
    X, y = twice(rng)
    naive = GaussianNB().fit(X[:400], y[:400])
    theta = naive.theta_.copy()
    frozen = SafeCalibratedClassifier(FrozenEstimator(naive), method="temperature").fit(X[400:], y[400:])
    prefit = SafeCalibratedClassifier(naive, method="temperature", cv="prefit").fit(X[400:], y[400:])
    by_hand = safecal.recalibrate(y[400:] == "yes", naive.predict_proba(X[400:])[:, 1], method="temperature")
    weighted = clone(frozen).fit(X[400:], y[400:], sample_weight=np.full(400, 2.0))  # nobody warns of them
    np.testing.assert_allclose(weighted.predict_proba(X), frozen.predict_proba(X), rtol=0.02)
    for model in (frozen, prefit):
        np.testing.assert_array_equal(naive.theta_, theta)
        mended = model.predict_proba(X)[:, 1]
        np.testing.assert_allclose(mended, by_hand.apply(naive.predict_proba(X)[:, 1]), rtol=1e-12)
        assert model.n_features_in_ == 6
    only = prefit.fit(X[400:][y[400:] == "yes"], y[400:][y[400:] == "yes"])
    assert only.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="the estimator does not know the class 'maybe'"):
        prefit.fit(X[:40], np.where(np.arange(40) == 7, "maybe", "yes"))
    with pytest.raises(TypeError, match="`mood` is for the classifier, which is fitted already"):
        frozen.fit(X, y, mood="good")
    with pytest.raises(NotFittedError):
        SafeCalibratedClassifier(GaussianNB(), cv="prefit").fit(X, y)


def test_decision_values_are_logits(rng: np.random.Generator) -> None:
    X, y = twice(rng, 600)
    model = SafeCalibratedClassifier(LinearSVC(), method="affine", cv=3).fit(X, y)
    assert model.clip_ is None
    held_out = cross_val_predict(LinearSVC(), X, y, cv=StratifiedKFold(3), method="decision_function")
    assert model.recalibration_.before.tally == safecal.evaluate(y == "yes", logits=held_out).tally
    assert model.evaluation_.verdict.decision != "UNSAFE"
    X, y = twice(rng, 600, classes=3)
    assert SafeCalibratedClassifier(LinearSVC(), **quick).fit(X, y).predict_proba(X).shape == (600, 3)


@pytest.mark.proof
@pytest.mark.parametrize("classes", [2, 3])
def test_a_forest_that_calls_things_impossible_is_mended(classes: int, rng: np.random.Generator) -> None:
    X, y = twice(rng, 400, classes)
    forest = RandomForestClassifier(8, random_state=0)
    model = SafeCalibratedClassifier(forest, **quick).fit(X, y)
    assert model.clip_ == pytest.approx(1 / 16)
    assert np.isfinite(model.evaluation_.nll)
    y_prob = model.predict_proba(X)
    assert y_prob.min() > 0
    np.testing.assert_allclose(y_prob.sum(axis=1), 1.0)
    chosen = SafeCalibratedClassifier(forest, clip=0.01, **quick).fit(X, y)
    assert chosen.clip_ == 0.01
    certain = SafeCalibratedClassifier(KNeighborsClassifier(1), **quick).fit(X, y)  # says 0 and 1 and nothing else
    assert certain.clip_ == 0.5 / 400
    assert certain.recalibration_.map.temperature_ > 1.0


@pytest.mark.proof
def test_weights_reach_classifier_and_map(rng: np.random.Generator) -> None:
    X, y = twice(rng, 400)
    weight = rng.random(400)
    model = SafeCalibratedClassifier(GaussianNB(), **quick).fit(X, y, sample_weight=weight)
    held_out = np.empty(400)
    for train, test in StratifiedKFold(3).split(X, y):
        held_out[test] = GaussianNB().fit(X[train], y[train], weight[train]).predict_proba(X[test])[:, 1]
    by_hand = safecal.recalibrate(y == "yes", held_out, method="temperature", sample_weight=weight)
    assert model.evaluation_.tally == by_hand.after.tally
    with pytest.warns(
        UserWarning, match="KNeighborsClassifier takes no `sample_weight`: the weights are used for the map"
    ):
        SafeCalibratedClassifier(KNeighborsClassifier(20), **quick).fit(X, y, sample_weight=weight)


@pytest.mark.proof
def test_weights_and_groups_come_by_metadata_routing(rng: np.random.Generator) -> None:
    X, y = twice(rng, 400)
    weight, patient = rng.random(400), np.arange(400) // 4
    alone = SafeCalibratedClassifier(GaussianNB(), method="temperature", cv=GroupKFold(3))
    plain = alone.fit(X, y, sample_weight=weight, groups=patient)
    with config_context(enable_metadata_routing=True):
        asking = GaussianNB().set_fit_request(sample_weight=True)
        for cv in (GroupKFold(3), 3):
            model = SafeCalibratedClassifier(asking, method="temperature", cv=cv)
            model.set_fit_request(sample_weight=True).fit(X, y, sample_weight=weight, groups=patient)
            assert model.evaluation_.tally.clusters is not None
            if cv != 3:
                np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
        search = GridSearchCV(
            SafeCalibratedClassifier(GaussianNB(), **quick), {"alpha": [0.05, 0.2]},
            scoring=neg_nll_if_safe.set_score_request(cluster="groups"), cv=GroupKFold(2),
        )  # fmt: skip
        search.fit(X, y, groups=patient)
        assert search.best_estimator_.evaluation_.tally.clusters is not None


@pytest.mark.proof
def test_groups_are_kept_whole_and_widen_the_bound(rng: np.random.Generator) -> None:
    X, y = twice(rng, 100)
    X, y, patient = np.repeat(X, 8, axis=0), np.repeat(y, 8), np.repeat(np.arange(100), 8)
    grouped = SafeCalibratedClassifier(GaussianNB(), **quick).fit(X, y, groups=patient)
    rows = SafeCalibratedClassifier(GaussianNB(), **quick).fit(X, y)
    assert grouped.evaluation_.tally.clusters is not None
    assert grouped.recalibration_.map.beta_ < rows.recalibration_.map.beta_


@pytest.mark.proof
def test_frames_text_and_sparse_rows(rng: np.random.Generator) -> None:
    X, y = twice(rng, 200)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = SafeCalibratedClassifier(make_pipeline(StandardScaler(), GaussianNB()), **quick)
    model.fit(frame, pd.Series(y, index=np.arange(200)[::-1]))
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_allclose(model.predict_proba(frame), clone(model).fit(X, y).predict_proba(X), rtol=1e-9)
    thin = SafeCalibratedClassifier(LogisticRegression(), **quick)
    y_prob = thin.fit(sparse.csr_matrix(X), y).predict_proba(sparse.csr_matrix(X))
    np.testing.assert_allclose(y_prob, clone(thin).fit(X, y).predict_proba(X), rtol=1e-6)


@pytest.mark.proof
def test_few_rows_and_rare_classes(rng: np.random.Generator) -> None:
    X, y = twice(rng, 40)
    y[:] = "no"
    y[:3] = "yes"
    model = SafeCalibratedClassifier(LogisticRegression(), cv=5).fit(X, y)  # as many folds as the rare class has rows
    assert np.isfinite(model.evaluation_.nll)
    y[1:3] = "no"
    with pytest.raises(ValueError, match="each class must have two rows, one to be held out; class 'yes' has one"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="at least two classes; got one class, 'no'"):
        model.fit(X[1:], y[1:])
    with pytest.raises(ValueError, match="there must be at least one row"):
        model.fit(X[:0], y[:0])
    X, y = twice(rng, 16)
    y[:8], y[8:] = "yes", "no"
    tiny = SafeCalibratedClassifier(LogisticRegression()).fit(X, y)
    np.testing.assert_allclose(tiny.predict_proba(X), tiny.estimator_.predict_proba(X))
    assert "too few" in tiny.recalibration_.reason


def test_folds_that_cannot_serve_are_refused(rng: np.random.Generator) -> None:
    X, y = twice(rng, 60)
    with pytest.raises(ValueError, match=r"`cv` must predict every row once; row \d+ is predicted \d times"):
        SafeCalibratedClassifier(GaussianNB(), cv=ShuffleSplit(3, random_state=0)).fit(X, y)
    halves = [(np.flatnonzero(y != name), np.flatnonzero(y == name)) for name in ("no", "yes")]
    with pytest.raises(ValueError, match="every class must occur outside each fold; 'no' occurs in one fold only"):
        SafeCalibratedClassifier(GaussianNB(), cv=halves).fit(X, y)
    with pytest.raises(OptionError, match="`method` must be one of 'auto'"):
        SafeCalibratedClassifier(GaussianNB(), method="platt").fit(X, y)
    with pytest.raises(RangeError, match="`alpha` must lie strictly between"):
        SafeCalibratedClassifier(GaussianNB(), alpha=2).fit(X, y)


@pytest.mark.proof
def test_other_parameters_go_to_the_classifier(rng: np.random.Generator) -> None:
    class Noted(GaussianNB):
        def fit(self, X: Any, y: Any, sample_weight: Any = None, mood: str = "", site: Any = None) -> Any:
            self.mood_, self.sites_ = mood, site
            assert len(site) == len(X)
            return super().fit(X, y)

    X, y = twice(rng, 60)
    model = SafeCalibratedClassifier(Noted(), cv=KFold(3)).fit(X, y, mood="good", site=np.arange(60))
    assert model.estimator_.mood_ == "good"
    assert model.estimator_.sites_.tolist() == list(range(60))


def test_it_is_shown_cloned_and_pickled(rng: np.random.Generator) -> None:
    X, y = twice(rng, 100)
    model = SafeCalibratedClassifier(GaussianNB(var_smoothing=0.5), **quick)
    page = model._repr_html_()
    assert "SafeCalibratedClassifier" in page
    assert "var_smoothing" in page
    fitted = clone(model).fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize(
    "one",
    [
        safecal.Temperature(),
        safecal.SafeTemperature(alpha=0.1),
        maps.Affine(),
        maps.Vector(),
        maps.Beta(),
        maps.Isotonic(),
        maps.Identity(),
        maps.Axes(),
        maps.Safe(maps.Affine(), alpha=0.2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_maps_can_be_cloned(one: Any) -> None:
    other = clone(one)
    assert other is not one
    assert repr(other) == repr(one)
    assert not hasattr(other, "n_")


# A classifier by folds cannot be the same with weight 2 as with a row twice, or with weight 0 as without a row: the
# folds differ. scikit-learn expects its own CalibratedClassifierCV to fail these two, for this reason.
EXPECTED = {"check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"}


@pytest.mark.proof
@pytest.mark.no_cover
def test_scikit_learn_finds_nothing_else_to_complain_of() -> None:
    code = """
import json, warnings
warnings.simplefilter("ignore")
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator
from safecal.compat.sklearn import SafeCalibratedClassifier
model = SafeCalibratedClassifier(LogisticRegression())
print(json.dumps([(r["check_name"], r["status"]) for r in check_estimator(model, on_fail=None, on_skip=None)]))
"""
    env = {**os.environ, "SCIPY_ARRAY_API": "1"}  # without it a check is skipped
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    complaints = json.loads(done.stdout)
    assert len(complaints) > 55
    assert {name for name, status in complaints if status != "passed"} <= EXPECTED
    assert {status for _, status in complaints} <= {"passed", "failed"}
