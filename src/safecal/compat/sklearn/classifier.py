"""A classifier whose probabilities are mended on rows it was not fitted to, so that it is not over-confident."""

import warnings
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..._checks import show
from ..._types import AnyArray, ArrayLike, FloatArray, IndexArray
from ...families import Predictions
from ...families.bernoulli import bernoulli
from ...families.categorical import categorical
from ...judge.evaluation import Evaluation
from ...maps import recalibrate

__all__ = ["SafeCalibratedClassifier"]


class _Scores(NamedTuple):
    """What estimators say of some rows: probabilities, or decision values that are taken for logits."""

    values: FloatArray  # (n,) for two classes, else (n, K)
    logits: bool

    def clipped(self, clip: float | None) -> "_Scores":
        """Move probabilities away from 0 and 1."""
        if clip is None or self.logits:
            return self
        if self.values.ndim == 1:
            return _Scores(np.clip(self.values, clip, 1.0 - clip), False)
        values = np.maximum(self.values, clip)
        return _Scores(values / values.sum(axis=1, keepdims=True), False)

    def form(self) -> dict[str, Any]:
        """Return them as an argument of `evaluate`."""
        return {"logits" if self.logits else "y_prob": self.values}

    def predictions(self, happened: IndexArray) -> Predictions:
        """Return them beside the numbers of the classes that happened."""
        if self.values.ndim == 1:
            return bernoulli(happened == 1, **self.form())
        return categorical(happened, **self.form(), labels=range(self.values.shape[1]))


class SafeCalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Any classifier, with probabilities for which over-confidence is ruled out.

    The classifier predicts each fold after it was fitted to the other folds. A map is fitted to those predictions, and
    after it the sharpest temperature at which over-confidence is ruled out; then the classifier is fitted to all rows.
    A classifier in a `sklearn.frozen.FrozenEstimator` is left as it is, and predicts all rows, which it must not have
    been fitted to; ``cv="prefit"`` says the same of a fitted classifier.

    Parameters
    ----------
    estimator : estimator
        A classifier with ``predict_proba``, or with ``decision_function``, whose values are then taken for logits.
    method : {"auto", "identity", "temperature", "affine", "beta", "isotonic", "vector"}, default "auto"
        The map that corrects the probabilities, one of `safecal.maps`. ``"auto"`` tries all on held-out rows and takes
        the simplest that is as good as the best; below 20 rows it leaves the probabilities as they are. Another
        map is fitted or refused: rows that are all predicted right, for example, have no temperature.
    alpha : float, default 0.05
        Accepted probability that the corrected probabilities are over-confident.
    cv : int, splitter, iterable or "prefit", default 5
        The folds, each row in one of them. A number makes stratified folds, of whole groups where there are groups; it
        makes fewer where the rarest class has fewer rows.
    clip : float, optional
        Move the probabilities of the classifier into ``[clip, 1 - clip]`` before they are corrected. By default this is
        done only where it gives some class a probability of exactly 0, as forests do: 0 is replaced by half of the
        smallest other probability, but by no less than ``1 / (2 n)``, which n rows cannot tell from 0.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    estimator_ : estimator
        The classifier, fitted to all rows.
    recalibration_ : Recalibration
        What corrects its probabilities: the map, what else was tried, why it was taken, and ``before``, the evaluation
        of the classifier's own predictions for rows that it was not fitted to.
    evaluation_ : Evaluation
        The same after the map, fitted for each part of the rows to the others, and after the temperature that rules
        over-confidence out. ``evaluation_.verdict`` is the verdict.
    clip_ : float or None
        The value at which probabilities were clipped.
    n_features_in_ : int
        How many features there are, where the classifier says so.
    feature_names_in_ : ndarray
        Their names, where the classifier says so.

    See Also
    --------
    safecal.recalibrate : The same for probabilities that are there already.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from safecal.compat.sklearn import SafeCalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SafeCalibratedClassifier(GaussianNB()).fit(X, y)
    >>> model.recalibration_.before.verdict.decision
    'UNSAFE'
    >>> model.evaluation_.verdict.decision != "UNSAFE"
    True
    """

    # Groups are those of the folds and the clusters of the rows: who passes them to a search means them for both.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self, estimator: Any, *, method: Any = "auto", alpha: float = 0.05, cv: Any = 5, clip: float | None = None
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.alpha = alpha
        self.cv = cv
        self.clip = clip

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit the classifier, and what corrects its probabilities.

        Parameters
        ----------
        X : array-like of shape (n, features)
            The rows.
        y : array-like of shape (n,)
            Their classes.
        sample_weight : array-like of shape (n,), optional
            Weight of each row; for the classifier, where it takes weights, and for the map.
        groups : array-like of shape (n,), optional
            Rows that depend on each other share a group: a patient, a day. Folds are made of whole groups, and
            over-confidence is ruled out as for clusters.
        **params
            For the ``fit`` of the classifier; by metadata routing, where that is enabled.

        Returns
        -------
        self
            Fitted.
        """
        check_classification_targets(y)
        labels = column_or_1d(y, warn=True)
        if not len(labels):
            raise ValueError("there must be at least one row; got 0 sample(s).")
        X, labels, sample_weight, groups = indexable(X, labels, sample_weight, groups)
        prefit = self.cv == "prefit" if isinstance(self.cv, str) else isinstance(self.estimator, FrozenEstimator)
        self.classes_, happened = self._classes(labels, prefit)
        if prefit:  # weights are for the map alone, and nothing else is fitted
            if params:
                raise TypeError(f"`{min(params)}` is for the classifier, which is fitted already.")
            self.estimator_ = self.estimator
            scores = self._scores(self.estimator_, X)
        else:
            fitting, splitting = self._routed(sample_weight, groups, params)
            scores = self._held_out(X, labels, happened, fitting, splitting)
            self.estimator_ = clone(self.estimator).fit(X, labels, **fitting)
        self.clip_ = self._chosen_clip(scores, len(labels))
        self.recalibration_ = recalibrate(
            scores.clipped(self.clip_).predictions(happened),
            method=self.method,
            alpha=self.alpha,
            cluster=groups,
            sample_weight=sample_weight,
        )
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _routed(
        self, sample_weight: ArrayLike | None, groups: ArrayLike | None, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what goes to the ``fit`` of the classifier, and to the ``split`` of the folds."""
        beside = {} if groups is None else {"groups": groups}
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, groups=groups, **params)
            numbered = isinstance(self.cv, int)  # the folds are made here, and nobody asks for their groups
            return dict(routed.estimator.fit), beside if numbered else dict(routed.splitter.split)
        fitting = dict(params)
        if sample_weight is not None:
            if has_fit_parameter(self.estimator, "sample_weight"):
                fitting["sample_weight"] = sample_weight
            else:
                warnings.warn(
                    f"{type(self.estimator).__name__} takes no `sample_weight`: the weights are used for the map only.",
                    stacklevel=3,
                )
        return fitting, beside

    def _classes(self, labels: AnyArray, prefit: bool) -> tuple[AnyArray, IndexArray]:
        """Return the classes, and for each row the number of its own."""
        if not prefit:
            classes, happened = np.unique(labels, return_inverse=True)
            if len(classes) < 2:
                raise ValueError(f"there must be at least two classes; got one class, {show(classes[0])}.")
            return classes, np.asarray(happened, dtype=np.intp)
        check_is_fitted(self.estimator)
        classes = np.asarray(self.estimator.classes_)
        number = {name: k for k, name in enumerate(classes.tolist())}
        happened = np.array([number.get(label, -1) for label in labels.tolist()], dtype=np.intp)
        if (happened < 0).any():
            raise ValueError(f"the estimator does not know the class {show(labels[happened.argmin()])}.")
        return classes, happened

    def _held_out(
        self, X: Any, labels: AnyArray, happened: IndexArray, fitting: dict[str, Any], splitting: dict[str, Any]
    ) -> _Scores:
        """Return what is predicted for each row by classifiers that were not fitted to it."""
        folds = self._folds(X, labels, happened, splitting)
        values: FloatArray | None = None
        logits = False
        for train, test in folds:
            fold_params = {name: _rows(value, train, len(labels)) for name, value in fitting.items()}
            model = clone(self.estimator).fit(_safe_indexing(X, train), labels[train], **fold_params)
            scores = self._scores(model, _safe_indexing(X, test))
            if values is None:
                values, logits = np.empty((len(labels), *scores.values.shape[1:])), scores.logits
            values[test] = scores.values
        assert values is not None
        return _Scores(values, logits)

    def _folds(
        self, X: Any, labels: AnyArray, happened: IndexArray, splitting: dict[str, Any]
    ) -> list[tuple[IndexArray, IndexArray]]:
        """Return the rows to fit to and the rows to predict, for each fold."""
        cv = self.cv
        if isinstance(cv, int):
            counts = np.bincount(happened)
            if counts.min() < 2:
                alone = self.classes_[counts.argmin()]
                raise ValueError(f"each class must have two rows, one to be held out; class {show(alone)} has one.")
            cv = min(cv, int(counts.min()))
            cv = cv if splitting.get("groups") is None else StratifiedGroupKFold(cv)
        cv = check_cv(cv, labels, classifier=True)
        folds = [(np.asarray(train), np.asarray(test)) for train, test in cv.split(X, labels, **splitting)]
        tested = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(labels))
        if (tested != 1).any():
            raise ValueError(
                f"`cv` must predict every row once; row {(tested != 1).argmax()} is predicted"
                f" {tested[(tested != 1).argmax()]} times.\n\nHint: pass a number, or folds such as `StratifiedKFold`."
            )
        for train, _ in folds:
            unmet = np.setdiff1d(np.arange(len(self.classes_)), happened[train])
            if unmet.size:
                name = show(self.classes_[unmet[0]])
                raise ValueError(
                    f"every class must occur outside each fold; {name} occurs in one fold only."
                    "\n\nHint: pass folds that spread every class, as `StratifiedKFold` makes them."
                )
        return folds

    def _scores(self, model: Any, X: Any) -> _Scores:
        """Return what a fitted classifier says of some rows."""
        if hasattr(model, "predict_proba"):
            values, logits = np.asarray(model.predict_proba(X), dtype=np.float64), False
            return _Scores(values[:, 1] if values.shape[1] == 2 else values, logits)
        return _Scores(np.asarray(model.decision_function(X), dtype=np.float64), True)

    def _chosen_clip(self, scores: _Scores, n: int) -> float | None:
        """Return the value at which to clip probabilities; None where no probability is 0 or 1."""
        if self.clip is not None or scores.logits:
            return None if scores.logits else self.clip
        small = np.minimum(scores.values, 1.0 - scores.values)
        if small.min() > 0.0:
            return None
        between = small[small > 0.0]
        smallest = float(between.min()) if between.size else 0.0
        return min(max(0.5 * smallest, 0.5 / n), 0.5 / len(self.classes_))

    @property
    def evaluation_(self) -> Evaluation:
        """The evaluation of the corrected predictions for rows that neither classifier nor map was fitted to."""
        return self.recalibration_.after

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the corrected probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, features)
            The rows.

        Returns
        -------
        ndarray of shape (n, K)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        scores = self._scores(self.estimator_, X).clipped(self.clip_)
        y_prob = self.recalibration_.apply(**scores.form())
        return np.column_stack([1.0 - y_prob, y_prob]) if y_prob.ndim == 1 else y_prob

    def predict(self, X: Any) -> AnyArray:
        """Return the likeliest class.

        Parameters
        ----------
        X : array-like of shape (n, features)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            Labels.
        """
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where arguments of ``fit`` go, in the form of scikit-learn.

        Returns
        -------
        MetadataRouter
            For the classifier, the folds and the map.
        """
        to = MethodMapping().add(caller="fit", callee="fit")
        folds = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to).add(splitter=self.cv, method_mapping=folds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _rows(value: Any, rows: IndexArray, n: int) -> Any:
    """Return the part of a parameter that belongs to some rows; anything but a column stays whole."""
    whole = isinstance(value, str | bytes) or not hasattr(value, "__len__") or len(value) != n
    return value if whole else _safe_indexing(value, rows)
