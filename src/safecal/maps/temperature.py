"""Two ways to choose a temperature: the likeliest one, and the sharpest one that is safe."""

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from .. import documents
from .._checks import refused
from .._checks.columns import between, groups_refused, inverse_temperature, yes_or_no
from .._sums import Tally
from .._types import FloatArray, IndexArray
from ..families import family_named
from ..inference import Interval
from ..inference.bounds import Bounds, inverse
from ..inference.law import normal_score
from .base import FitRows, Grouping, PlainMap
from .inverse_temperature import (
    FEWEST,
    FEWEST_IN_GROUP,
    ClusteredRows,
    Refusal,
    TemperedRows,
    likeliest_beta,
    safe_beta,
    temper,
    why_unfit,
)
from .steps import Line, slope_words

__all__ = ["FittedTemperature", "SafeTemperature", "Temperature"]

_MANY = 100_000  # rows beyond which an interval is that of the normal law


@final
@dataclass(frozen=True, slots=True)
class FittedTemperature:
    """The temperature of some rows.

    Attributes
    ----------
    beta : float
        Inverse temperature that is applied.
    interval : Interval
        The implied temperature of the rows.
    n : int
        How many rows there were.
    """

    beta: float
    interval: Interval
    n: int

    def __post_init__(self) -> None:
        inverse_temperature(self.beta, "beta")

    @property
    def temperature(self) -> float:
        """The temperature that is applied."""
        return 1.0 / self.beta

    @property
    def size(self) -> int:
        """How many numbers were fitted."""
        return 1

    @property
    def step(self) -> Line:
        """The step on logits."""
        return Line(self.beta, fixed=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"beta": self.beta, "interval": self.interval.to_dict(), "n": self.n}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        beta = documents.between(1e-300, 1e300)  # below 0 it would turn every prediction round
        return cls(**documents.record({"beta": beta, "interval": Interval.from_dict, "n": documents.count(1)})(content))


class _Tempering(PlainMap[FittedTemperature]):
    """The base of both: everything but the choice of the inverse temperature."""

    _read_fit = FittedTemperature.from_dict

    @abstractmethod
    def _interval_level(self) -> float:
        """Return the level of the interval for the implied temperature."""

    def _accepts(self, rows: FitRows) -> None:
        """Take any family: one without a temperature says so itself."""

    @property
    def beta_(self) -> float:
        """The inverse temperature that is applied."""
        return self.fit_.beta

    @property
    def temperature_(self) -> float:
        """The temperature that is applied."""
        return self.fit_.temperature

    @property
    def interval_(self) -> Interval:
        """The implied temperature of the rows."""
        return self.fit_.interval

    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        return np.zeros(1), np.array(math.sqrt(self._fit_of(key).temperature))

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        family = family_named(self.family_)
        if family.mapped == "classes":
            return f"{'Log-odds' if self.classes_ == 2 else 'Logits'} are {slope_words(self.beta_)}."
        if family.mapped == "states":
            return f"Covariances are multiplied by {self.temperature_:.2g}."
        return f"Densities are raised to the power {self.beta_:.2g}."

    def _numbers(self) -> str:
        return f"T = {self.temperature_:.4g}"

    def _interval(self, own_rows: FitRows, codes: IndexArray | None, tempered_rows: TemperedRows) -> Interval:
        if codes is None and own_rows.n > _MANY and 0.0 < tempered_rows.beta < math.inf:
            return self._normal_interval(tempered_rows)
        bounds = Bounds(Tally.of_checked(own_rows.predictions, None, own_rows.weight, None, codes))
        return replace(bounds.temperature(self._interval_level()), value=inverse(tempered_rows.beta))

    def _normal_interval(self, tempered_rows: TemperedRows) -> Interval:
        """Return the interval of so many rows that its ends are normal to four digits, without a tally of them."""
        information, variance = tempered_rows.spread or tempered_rows.at(tempered_rows.beta)[2:4]
        level = self._interval_level()
        half = normal_score(0.5 - 0.5 * level) * math.sqrt(variance) / information
        low, high = (inverse(tempered_rows.beta + side * half) for side in (1.0, -1.0))
        return Interval(inverse(tempered_rows.beta), low, high, level, "normal")


@final
class Temperature(_Tempering):
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

    In the fit of a group, all rows together count as 30 more rows, so that the T of a small group stays near that of
    all.

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

    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> FittedTemperature:
        tempered_rows = temper(rows.predictions, rows.weight)
        beta = why_unfit(tempered_rows, FEWEST) or likeliest_beta(tempered_rows)
        if isinstance(beta, Refusal):
            refused(beta.text, beta.hint)
        return FittedTemperature(beta, self._own_interval(tempered_rows, rows, own_rows), own_rows.n)

    def _own_interval(self, tempered_rows: TemperedRows, rows: FitRows, own_rows: FitRows) -> Interval:
        """Return the implied temperature of the rows themselves, without those that a group was lent."""
        codes = None if own_rows.cluster is None else np.unique(own_rows.cluster, return_inverse=True)[1]
        why_none = "" if codes is None or codes.max() > 0 else "all rows are of one cluster"
        if own_rows.weight is not None and not (own_rows.weight > 0).any():
            why_none = "no row has a weight"
        if why_none:
            return Interval(inverse(tempered_rows.beta), 0.0, math.inf, self.level, f"none: {why_none}")
        if own_rows is not rows:
            tempered_rows = temper(own_rows.predictions, own_rows.weight)
        return self._interval(own_rows, codes, tempered_rows)

    def _interval_level(self) -> float:
        return self.level


@final
class SafeTemperature(_Tempering):
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

    Nothing can be promised without assumptions, since one row can surprise without bound. At ``alpha=0.05``, and with
    50 to 1000 rows, the rate was at most 5.9 % where a temperature was all that was wrong; up to 7 % with 5 % of wrong
    labels; up to 8 % where 1 % of the rows were confidently random; but 39, 29 and 12 % (50, 200 and 1000 rows) where
    1 % of states had errors five times larger than the others: samples often hold none of those.
    ``tools/validate_recalibration.py`` measures it.

    Rows are taken to be independent, unless ``cluster`` says which are not. Rows of a cluster can then all surprise at
    once: 30 clusters of 50 rows that do were over-confident in 37 % when taken as independent, and in less than 1 %
    with ``cluster``. The price is a flatter temperature where clusters are few; with fewer than five there is none.

    Where the most likely outcome happened in every row, there is still a safe temperature: the one at which
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
    _early_defaults: ClassVar[Mapping[str, Any]] = {"shared": False}

    def __init__(self, alpha: float = 0.05, *, sharpen: bool = True, shared: bool = True) -> None:
        self.alpha = between(alpha, "alpha", 0.0, 0.5)
        self.sharpen = yes_or_no(sharpen, "sharpen")
        self.shared = yes_or_no(shared, "shared")

    def _fit_rows(self, rows: FitRows, grouping: Grouping | None) -> None:
        # Groups first: an error that names a group says more than one about all rows.
        groups = None if grouping is None else self._fit_safe_groups(rows, grouping)
        self.fit_, self.groups_ = self._fit_to(rows, rows), groups

    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> FittedTemperature:
        fit = self._safe_fit(own_rows, 0)
        if isinstance(fit, Refusal):
            refused(fit.text, fit.hint)
        return fit

    def _fit_safe_groups(self, rows: FitRows, grouping: Grouping) -> dict[Hashable, FittedTemperature]:
        fits: dict[Hashable, FittedTemperature] = {}
        refusals: dict[Hashable, tuple[int, str]] = {}
        for k, key in enumerate(grouping.keys):
            own_rows = rows.take(np.flatnonzero(grouping.codes == k))
            if own_rows.weight is not None and not (own_rows.weight > 0).any():
                fit: FittedTemperature | Refusal = Refusal("", None, "their weights are all 0")
            else:
                fit = self._safe_fit(own_rows, len(grouping.keys))
            if isinstance(fit, Refusal):
                refusals[key] = own_rows.n, fit.short
            else:
                fits[key] = fit
        if refusals:
            groups_refused(refusals, len(grouping.keys))
        return fits

    def _safe_fit(self, own_rows: FitRows, groups: int) -> FittedTemperature | Refusal:
        """Return the safe temperature of some rows, of one of so many groups, or why there is none."""
        tempered_rows = temper(own_rows.predictions, own_rows.weight)
        clustered = codes = None
        if own_rows.cluster is not None:
            keys, codes = np.unique(own_rows.cluster, return_inverse=True)
            if len(keys) < 2:
                return Refusal("all rows are of one cluster", None, "all its rows are of one cluster")
            clustered = ClusteredRows(tempered_rows, codes, len(keys))
        alpha = self.alpha / max(groups, 1) if self.shared else self.alpha
        beta = why_unfit(tempered_rows, FEWEST_IN_GROUP if groups else FEWEST) or safe_beta(
            tempered_rows, alpha, clustered
        )
        if isinstance(beta, Refusal):
            return beta
        beta = beta if self.sharpen else min(beta, 1.0)
        return FittedTemperature(beta, self._interval(own_rows, codes, tempered_rows), own_rows.n)

    def _interval_level(self) -> float:
        return 1.0 - 2.0 * self.alpha
