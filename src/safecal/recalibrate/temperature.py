"""Two ways to choose a temperature: the likeliest one, and the sharpest one that is safe."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

from .._checks.recalibration import between, yes_or_no
from .dependent import Dependent
from .fitting import PRECISION, Refusal, likeliest, safe
from .recalibration import Recalibration
from .tempered import Tempered

__all__ = ["SafeTemperature", "Temperature"]


@final
class Temperature(Recalibration):
    """Temperature scaling: the temperature at which the outcomes are the likeliest.

    On the rows it was fitted to, the ECD of the recalibrated predictions is 0: they are as surprised as they say they
    would be. On other rows it is over-confident about as often as not; `SafeTemperature` is not.

    Fitted for classes it divides the logits by T; for Gaussian states it multiplies the covariances by T, which is
    then the mean NEES over the dimension.

    Parameters
    ----------
    level : float, default 0.95
        Confidence level of ``interval_``.

    Attributes
    ----------
    temperature_ : float
        The implied temperature T of all rows: above 1 where the model is over-confident.
    beta_ : float
        Its inverse.
    interval_ : Interval
        T with its confidence interval.
    n_ : int
        Rows it was fitted to.
    family_ : str
        Family of the predictions it was fitted to.
    groups_ : dict or None
        For each group ``beta``, ``temperature``, ``interval`` and ``n``; None where no groups were given.

    See Also
    --------
    SafeTemperature : Rules over-confidence out.

    Notes
    -----
    No temperature exists, and an error says so, where there are fewer than 10 rows; where an outcome of probability 0
    happened; where every prediction is a coin toss or a certainty; where the most likely outcome happened in every row
    (T = 0); and where confidence carries no information (T = infinity).

    A group has one of its own if it has 30 rows, and if the standard error of the logarithm of its T is at most 1/2:
    two of them either way are a factor of e. What is known less well is better estimated together with other groups.

    Rows are taken to be independent, unless ``cluster`` says which are not; T is the same, its interval wider.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 1000)
    >>> y_true = rng.random(1000) < 1 / (1 + np.exp(-log_odds))
    >>> model = safecal.Temperature().fit(y_true, logits=2 * log_odds)
    >>> model
    Temperature(level=0.95): T = 2.3 from 1000 rows
    >>> abs(safecal.ecd(y_true, model.apply(logits=2 * log_odds))) < 1e-8
    True

    Covariances that are four times too small:

    >>> states = safecal.Temperature().fit_states(rng.normal(0, 2, (500, 3)), np.zeros((500, 3)), std=1.0)
    >>> states.apply_states(std=[1.0, 2.0]).round(1).tolist()
    [2.0, 4.0]
    """

    _kind = "temperature"
    _options = ("level",)

    def __init__(self, level: float = 0.95) -> None:
        self.level = between(level, "level", 0.0, 1.0)

    def _choose(self, rows: Tempered, groups: int, clusters: Dependent | None) -> float | Refusal:
        return likeliest(rows, PRECISION if groups else math.inf, clusters)

    def _interval_level(self) -> float:
        return self.level


@final
class SafeTemperature(Recalibration):
    """The sharpest temperature at which over-confidence is ruled out.

    Where a temperature is all that is wrong with the model, the recalibrated predictions are over-confident, on new
    rows of the same kind, with a probability of at most ``alpha``. The price is some confidence: T is larger than that
    of `Temperature`, by less the more rows there are.

    Parameters
    ----------
    alpha : float, default 0.05
        Accepted probability that the recalibrated predictions are over-confident; where there are groups, that those
        of any group are.
    sharpen : bool, default True
        Whether T may be below 1. An under-confident model is then made sharper, as far as that is safe. With False it
        is left as it is.
    shared : bool, default True
        Whether groups share ``alpha``, in equal parts. With False each group has all of it: of ten groups some one is
        then over-confident with a probability of up to ``1 - (1 - alpha)**10``, 40 % at 5 %.

    Attributes
    ----------
    temperature_ : float
        The safe temperature T of all rows.
    beta_ : float
        Its inverse.
    interval_ : Interval
        The implied temperature, the likeliest one, with its interval at the level ``1 - 2 * alpha``.
    n_ : int
        Rows it was fitted to.
    family_ : str
        Family of the predictions it was fitted to.
    groups_ : dict or None
        For each group ``beta``, ``temperature``, ``interval`` and ``n``; None where no groups were given.

    See Also
    --------
    Temperature : The likeliest temperature.

    Notes
    -----
    Upward from 0, one inverse temperature after another is tested for over-confidence, and the last at which it is
    rejected is taken. The test is Student's with the larger of the variance that the model states and the one that is
    seen, so that surprises which are due but have not come yet are counted.

    Nothing can be promised without assumptions, since one row may surprise without bound. At ``alpha=0.05``, and with
    50 to 1000 rows, the rate was at most 5.9 % where a temperature was all that was wrong; up to 7 % with 5 % of wrong
    labels; up to 8 % where 1 % of the rows were confidently random; but 39, 29 and 12 % (50, 200 and 1000 rows) where
    1 % of states had errors five times larger than the others: samples often hold none of those.
    ``tools/validate_recalibration.py`` measures it.

    Rows are taken to be independent, unless ``cluster`` says which are not. Rows of a cluster may then all surprise at
    once: 30 clusters of 50 rows that do were over-confident in 37 % when taken as independent, and in less than 1 %
    with ``cluster``. The price is a flatter temperature where clusters are few; with fewer than five there is none.

    Where the most likely outcome happened in every row, there is a safe temperature nevertheless: the one at which
    some surprise would have been due. Where there are fewer than 10 rows (30 in a group), where an outcome of
    probability 0 happened, where confidence carries no information, or where over-confidence is not ruled out at any
    temperature, an error says so.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 1000)
    >>> y_true = rng.random(1000) < 1 / (1 + np.exp(-log_odds))
    >>> model = safecal.SafeTemperature().fit(y_true, logits=2 * log_odds)
    >>> round(model.temperature_, 2), round(model.interval_.value, 2)
    (2.58, 2.3)
    >>> safecal.ecd(y_true, model.apply(logits=2 * log_odds)) < 0
    True
    """

    _kind = "safe_temperature"
    _options = ("alpha", "sharpen", "shared")
    _before: ClassVar[Mapping[str, Any]] = {"shared": False}

    def __init__(self, alpha: float = 0.05, *, sharpen: bool = True, shared: bool = True) -> None:
        self.alpha = between(alpha, "alpha", 0.0, 0.5)
        self.sharpen = yes_or_no(sharpen, "sharpen")
        self.shared = yes_or_no(shared, "shared")

    def _choose(self, rows: Tempered, groups: int, clusters: Dependent | None) -> float | Refusal:
        beta = safe(rows, self.alpha / max(groups, 1) if self.shared else self.alpha, clusters)
        return beta if self.sharpen or isinstance(beta, Refusal) else min(beta, 1.0)

    def _interval_level(self) -> float:
        return 1.0 - 2.0 * self.alpha
