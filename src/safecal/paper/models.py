"""Three real models that need nothing but scikit-learn: one too sure, one not sure enough, one about right."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from .._optional import require
from ..judge.evaluation import Evaluation
from ..judge.front_door import evaluate
from .layout import rule, signed

__all__ = ["Modelled", "models_text", "three_models"]

FOLDS = 10


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
    >>> [one.evaluation.verdict.decision for one in three_models()]
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
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)

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


def models_text(found: Sequence[Modelled]) -> str:
    """Return the models as one table, and their verdicts.

    Parameters
    ----------
    found : sequence of Modelled
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
    lines = [head, rule(len(head))]
    for one in found:
        e = one.evaluation
        cells = f"{e.accuracy:>9.4f}{e.nll:>9.4f}{e.ece:>9.4f}{signed(e.esce):>9}{signed(e.ecd):>9}"
        span = f"{signed(e.interval.low)} to {signed(e.interval.high)}"
        lines.append(f"{one.name:<21}{cells}  {span:<18}{e.temperature.value:>6.2f}")
    lines.append("")
    for one in found:
        verdict = one.evaluation.verdict
        side = "" if math.isnan(one.evaluation.ecd) else f", {verdict.direction}"
        lines.append(f"{one.name}: {verdict.decision}{side}")
    return "\n".join(lines)
