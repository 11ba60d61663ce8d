"""Two demonstrations: for Gaussian states ECD is NEES; and three models of scikit-learn get three fair verdicts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import stats

from .._checks.columns import whole_number
from .._optional import require
from .._types import FloatArray
from ..families.gaussian import gaussian
from ..judge import evaluate
from ..judge.evaluation import Evaluation
from .cells import signed

__all__ = ["Modelled", "StateCase", "models_text", "nees_demonstration", "nees_text", "three_models"]

_SCALES = ((1.0, "as it should be"), (0.5, "half of what it should be"), (2.0, "twice what it should be"))
_FOLDS = 10


@final
@dataclass(frozen=True, slots=True)
class StateCase:
    """NEES and ECD of simulated states.

    Attributes
    ----------
    d : int
        Dimension.
    claim : str
        The covariance that the estimator claims.
    nees : float
        Mean normalised estimation error squared, from errors and covariances.
    ecd : float
        Mean of entropy and log-density of SciPy's multivariate normal law: the definition, term by term.
    ours : float
        What safecal gives.
    decision : str
        Of the verdict.

    Examples
    --------
    >>> from safecal.paper import nees_demonstration
    >>> case = nees_demonstration([3], n=100)[1]
    >>> case.d, case.claim, case.decision
    (3, 'half of what it should be', 'UNSAFE')
    """

    d: int
    claim: str
    nees: float
    ecd: float
    ours: float
    decision: str

    @property
    def predicted(self) -> float:
        """What NEES says ECD must be: ``(NEES - d) / 2``."""
        return 0.5 * (self.nees - self.d)


def nees_demonstration(dimensions: Sequence[int] = (1, 2, 4), *, n: int = 2000, seed: int = 0) -> tuple[StateCase, ...]:
    """Show on simulated states that ECD is half of what NEES exceeds the dimension by.

    Every state has a covariance of its own. Errors are drawn from it; the estimator claims it, half of it, or twice it.

    Parameters
    ----------
    dimensions : sequence of int, default (1, 2, 4)
        Dimensions of the states.
    n : int, default 2000
        States.
    seed : int, default 0
        Of NumPy's generator.

    Returns
    -------
    tuple of StateCase
        Three for each dimension.

    Examples
    --------
    >>> from safecal.paper import nees_demonstration
    >>> cases = nees_demonstration(n=200)
    >>> max(abs(case.ecd - case.predicted) for case in cases) < 1e-12
    True
    """
    cases = []
    for d in dimensions:
        whole_number(d, "dimensions", 1)
        rng = np.random.default_rng((seed, d))
        root = rng.normal(size=(n, d, d + 2))
        cov = root @ root.transpose(0, 2, 1) / (d + 2)
        mean = rng.normal(size=(n, d))
        state = mean + np.einsum("nij,nj->ni", np.linalg.cholesky(cov), rng.normal(size=(n, d)))
        cases += [_case(state, mean, cov, scale, claim) for scale, claim in _SCALES]
    return tuple(cases)


def _case(state: FloatArray, mean: FloatArray, cov: FloatArray, scale: float, claim: str) -> StateCase:
    claimed = scale * cov
    error = state - mean
    nees = float(np.einsum("ni,ni->n", error, np.linalg.solve(claimed, error[..., None])[..., 0]).mean())
    laws = [stats.multivariate_normal(m, c) for m, c in zip(mean, claimed, strict=True)]
    ecd = float(np.mean([-law.entropy() - law.logpdf(x) for law, x in zip(laws, state, strict=True)]))
    result = gaussian(state, mean, cov=claimed).evaluate()
    return StateCase(state.shape[1], claim, nees, ecd, result.ecd, result.verdict.decision)


def nees_text(cases: Sequence[StateCase]) -> str:
    """Return the demonstration as text.

    Parameters
    ----------
    cases : sequence of StateCase
        From `nees_demonstration`.

    Returns
    -------
    str
        A line for each case.

    Examples
    --------
    >>> from safecal.paper import nees_demonstration, nees_text
    >>> print(nees_text(nees_demonstration([2], n=100)))
     d  claimed covariance             NEES  (NEES - d)/2       ECD   safecal  verdict
    ----------------------------------------------------------------------------------
     2  as it should be              2.2430     +0.121524 +0.121524 +0.121524  UNDETERMINED
     2  half of what it should be    4.4861     +1.243048 +1.243048 +1.243048  UNSAFE
     2  twice what it should be      1.1215     -0.439238 -0.439238 -0.439238  SAFE
    Largest difference between the three: ...
    """
    head = f"{'d':>2}  {'claimed covariance':<26}{'NEES':>9}{'(NEES - d)/2':>14}{'ECD':>10}{'safecal':>10}  verdict"
    lines = [head, "-" * len(head)]
    for case in cases:
        cells = f"{case.nees:>9.4f}{case.predicted:>+14.6f}{case.ecd:>+10.6f}{case.ours:>+10.6f}"
        lines.append(f"{case.d:>2}  {case.claim:<26}{cells}  {case.decision}")
    largest_gap = max(max(abs(case.ecd - case.predicted), abs(case.ours - case.predicted)) for case in cases)
    lines.append(f"Largest difference between the three: {largest_gap:.0e}.")
    return "\n".join(lines)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Modelled:
    """A model and its evaluation on rows that it was not fitted to.

    Attributes
    ----------
    name : str
        The model.
    evaluation : Evaluation
        From the predictions of cross-validation.

    Examples
    --------
    >>> import safecal
    >>> from safecal.paper import Modelled
    >>> Modelled("a guess", safecal.evaluate([0, 1], [0.5, 0.5])).evaluation.ecd
    0.0
    """

    name: str
    evaluation: Evaluation


def three_models(seed: int = 0) -> tuple[Modelled, ...]:
    """Evaluate naive Bayes, a random forest and logistic regression on the digits that scikit-learn ships.

    The question is whether a handwritten digit is 5 or more. Every row is predicted by a model that did not see it.
    Naive Bayes takes pixels for independent and counts the same evidence many times, so it is over-confident. A forest
    averages trees that differ, so it is under-confident.

    Parameters
    ----------
    seed : int, default 0
        Of the folds and of the forest.

    Returns
    -------
    tuple of Modelled
        Naive Bayes, random forest, logistic regression.

    Raises
    ------
    MissingExtraError
        When scikit-learn is not installed.

    Examples
    --------
    >>> from safecal.paper import three_models
    >>> [model.evaluation.verdict.decision for model in three_models()]
    ['UNSAFE', 'SAFE', 'SAFE']
    """
    require("sklearn", "this example needs scikit-learn", "sklearn")
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    pixels, digit = load_digits(return_X_y=True)
    y = (digit >= 5).astype(int)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)

    def predicted(model: Any, method: str) -> Any:
        return cross_val_predict(model, pixels, y, cv=folds, method=method)

    bayes = predicted(MultinomialNB(), "predict_log_proba")
    # Leaves of twenty rows or more: no forest is certain of anything, so nothing it rules out can happen.
    forest = predicted(RandomForestClassifier(100, min_samples_leaf=20, random_state=seed), "predict_proba")
    logistic = predicted(make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=2000)), "decision_function")
    return (
        Modelled("naive Bayes", evaluate(y, logits=bayes[:, 1] - bayes[:, 0])),
        Modelled("random forest", evaluate(y, forest[:, 1])),
        Modelled("logistic regression", evaluate(y, logits=logistic)),
    )


def models_text(models: Sequence[Modelled]) -> str:
    """Return the models as one table, and their verdicts.

    Parameters
    ----------
    models : sequence of Modelled
        From `three_models`.

    Returns
    -------
    str
        Lines of at most 100 characters.

    Examples
    --------
    >>> import safecal
    >>> from safecal.paper import Modelled, models_text
    >>> timid = Modelled("timid", safecal.evaluate([1] * 1000, [0.6] * 1000))
    >>> print(models_text([timid]).splitlines()[-1])
    timid: SAFE, under-confident
    """
    head = f"{'model':<21}{'accuracy':>9}{'NLL':>9}{'ECE':>9}{'ESCE':>9}{'ECD':>9}  {'interval of ECD':<18}{'T':>6}"
    lines = [head, "-" * len(head)]
    for model in models:
        e = model.evaluation
        cells = f"{e.accuracy:>9.4f}{e.nll:>9.4f}{e.ece:>9.4f}{signed(e.esce):>9}{signed(e.ecd):>9}"
        span = f"{signed(e.interval.low)} to {signed(e.interval.high)}"
        lines.append(f"{model.name:<21}{cells}  {span:<18}{e.temperature.value:>6.2f}")
    lines.append("")
    for model in models:
        verdict = model.evaluation.verdict
        side = "" if math.isnan(model.evaluation.ecd) else f", {verdict.direction}"
        lines.append(f"{model.name}: {verdict.decision}{side}")
    return "\n".join(lines)
