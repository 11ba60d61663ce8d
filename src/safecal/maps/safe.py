"""No map at all; and any map, with the sharpest temperature after it at which over-confidence is ruled out.

That temperature is found on predictions that were recalibrated by maps fitted to other rows. Any map is read here, too.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar, Self, final

import numpy as np

from .. import documents
from .._checks import plain_map, refused
from .._checks.columns import between, whole_number, yes_or_no
from .._types import FloatArray, IndexArray
from ..errors import UnavailableError
from ..families import Predictions, family_named
from ..families.gaussian import Gaussian
from ..inference import Interval
from .base import OPTIONS, FitRows, Fitted, Grouping, Map, PlainMap, reader_of_fits
from .classes import Affine, Beta, Isotonic, Vector
from .states import Axes
from .steps import MapStep, Unchanged, by_group, log_values_of, moved_states, two_columns
from .temperature import SafeTemperature, Temperature

__all__ = ["MAPS", "PLAIN_MAPS", "Identity", "Safe", "cross_fitted", "folds_of", "from_dict", "kind_of", "read_plain"]


@final
class Identity(PlainMap[Fitted[Unchanged]]):
    """Leave predictions as they are: the map that every other one has to beat.

    See Also
    --------
    safecal.SafeTemperature : The same as ``Safe(Identity())``.

    Examples
    --------
    >>> from safecal.maps import Identity
    >>> Identity().fit([0, 1, 1], [0.2, 0.7, 0.9]).apply([0.25, 0.5]).tolist()
    [0.25, 0.5]
    """

    _kind: ClassVar[str] = "identity"
    _read_fit = reader_of_fits(Unchanged.from_dict)

    def _accepts(self, rows: FitRows) -> None:
        """Take any family."""

    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> Fitted[Unchanged]:
        return Fitted(Unchanged(), own_rows.n)

    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        return np.zeros(1), np.array(1.0)

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        return "Predictions are left as they are."

    def _numbers(self) -> str:
        return "nothing changed"


PLAIN_MAPS: dict[str, type[Map]] = {
    kind._kind: kind for kind in (Identity, Temperature, SafeTemperature, Affine, Beta, Isotonic, Vector, Axes)
}
MAPS = (*PLAIN_MAPS, "safe")


@final
class Safe(Map):
    """Any map, then the sharpest temperature at which over-confidence is ruled out.

    The temperature is chosen on rows that the map was not fitted to, and no row is wasted: each fold is predicted by
    the map fitted to the other folds, the safe temperature is that of all those predictions, and it follows the map
    fitted to all rows. Where the map can correct what is wrong, the recalibrated predictions are over-confident, on new
    rows of the same kind, with a probability of about ``alpha`` at most.

    Parameters
    ----------
    map : Map
        The map to fit first: `Affine`, `Beta`, `Isotonic`, `Vector`, `Axes`, `safecal.Temperature` or `Identity`.
    alpha : float, default 0.05
        Accepted probability that the recalibrated predictions are over-confident; where there are groups, that those
        of any group are.
    folds : int, default 5
        How many parts the rows are cut into. Clusters are never cut.
    sharpen : bool, default True
        Whether the temperature may be below 1.
    shared : bool, default True
        Whether groups share ``alpha``, in equal parts.

    Attributes
    ----------
    map_ : Map
        The map, fitted to all rows.
    temperature_, beta_ : float
        The temperature that follows it, and its inverse.
    interval_ : Interval
        The implied temperature of the cross-fitted predictions.
    n_ : int
        Rows it was fitted to.

    See Also
    --------
    safecal.SafeTemperature : The same after no map at all.
    safecal.recalibrate : Chooses the map.

    Notes
    -----
    Chosen on the same rows as the map, the temperature would not be safe: after isotonic regression 20 to 47 % would
    be over-confident. ``docs/validation/maps.md`` has the rates of the cross-fitted one.

    With ``cluster``, folds are made of clusters and the bound is that of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.maps import Affine, Safe
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 2000)
    >>> happened = rng.random(2000) < 1 / (1 + np.exp(-(0.5 * z + 1)))
    >>> model = Safe(Affine()).fit(happened, logits=z)
    >>> model.map_
    Affine(): slope 0.559, shift +1.11 from 2000 rows
    >>> model.temperature_ > 1
    True
    >>> safecal.ecd(happened, model.apply(logits=z)) < 0
    True
    """

    _kind: ClassVar[str] = "safe"
    _options: ClassVar[tuple[str, ...]] = ("map", "alpha", "folds", "sharpen", "shared")

    map_: Map
    safe_: SafeTemperature

    def __init__(
        self,
        map: Map | None = None,  # noqa: A002  # what it is called everywhere
        alpha: float = 0.05,
        *,
        folds: int = 5,
        sharpen: bool = True,
        shared: bool = True,
    ) -> None:
        self.map: Map = Identity() if map is None else plain_map(map, (Safe, SafeTemperature), Map)
        self.alpha = between(alpha, "alpha", 0.0, 0.5)
        self.folds = whole_number(folds, "folds", 2)
        self.sharpen = yes_or_no(sharpen, "sharpen")
        self.shared = yes_or_no(shared, "shared")

    def _fit_rows(self, rows: FitRows, grouping: Grouping | None) -> None:
        whole_map = self.map._copy()
        whole_map._fit_rows(rows, grouping)
        held_out = rows
        if not isinstance(self.map, Identity):
            held_out = rows._replace(predictions=cross_fitted(whole_map, rows, grouping, folds_of(rows, self.folds)))
        self._follow(whole_map, held_out, grouping)

    def _follow(self, whole_map: Map, held_out: FitRows, grouping: Grouping | None) -> None:
        """Let a safe temperature of held-out predictions follow a map that was fitted to all rows."""
        safe = SafeTemperature(self.alpha, sharpen=self.sharpen, shared=self.shared)
        safe._fit_rows(held_out, grouping)
        p = held_out.predictions
        for map_ in (whole_map, safe, self):
            map_.family_, map_.classes_, map_.n_ = p.family, p.classes, p.n
            map_.names_ = () if p.classes is None else p.class_names
            map_.by_ = () if grouping is None else grouping.names
        self.map_, self.safe_ = whole_map, safe

    def _keys(self) -> tuple[Hashable, ...] | None:
        return self.safe_._keys()

    def _steps(self, key: Hashable = None) -> tuple[MapStep, ...]:
        return (*self.map_._steps(key), *self.safe_._steps(key))

    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        bias, factor = self.map_._axes(key)
        return bias, np.asarray(factor * self.safe_._axes(key)[1])

    @property
    def beta_(self) -> float:
        """The inverse temperature that follows the map."""
        return self.safe_.beta_

    @property
    def temperature_(self) -> float:
        """The temperature that follows the map."""
        return self.safe_.temperature_

    @property
    def interval_(self) -> Interval:
        """The implied temperature of the cross-fitted predictions."""
        return self.safe_.interval_

    @property
    def parameters_(self) -> int:
        """How many numbers were fitted, in all groups together."""
        return self.map_.parameters_ + self.safe_.parameters_

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence or two."""
        if isinstance(self.map_, Identity):
            return f"{self.safe_.sentence_.removesuffix('.')}, so that over-confidence is ruled out."
        family = family_named(self.family_)
        number = self.temperature_ if family.mapped == "states" else self.beta_
        scaled = "log-odds" if family.mapped == "classes" and self.safe_.classes_ == 2 else family.words.scaled
        return (
            f"{self.map_.sentence_} Then {scaled} are multiplied by {number:.3g}, so that over-confidence is ruled out."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document of the options and of the fit."""
        self._fitted_family()
        options = {name: getattr(self, name) for name in self._options if name != "map"}
        return documents.document(
            self._kind, {**options, "map": self.map_.to_dict(), "temperature": self.safe_.to_dict()}
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        options = {name: OPTIONS[name] for name in cls._options if name != "map"}
        parts = {"map": read_plain, "temperature": SafeTemperature.from_dict}
        fields = documents.read(cls._kind, document, options | parts)
        inner, safe = fields["map"], fields["temperature"]
        of_map, of_safe = ((x.family_, x.classes_, x.names_, x.by_, x._keys()) for x in (inner, safe))
        documents.every([(of_map == of_safe, "must have a map and a temperature of the same rows")])
        safe_map = cls(inner._copy(), **{name: fields[name] for name in options})
        safe_map.map_, safe_map.safe_ = inner, safe
        safe_map.family_, safe_map.classes_, safe_map.n_ = safe.family_, safe.classes_, safe.n_
        safe_map.names_, safe_map.by_ = safe.names_, safe.by_
        return safe_map

    def _numbers(self) -> str:
        return f"{self.map_._numbers()}, then T = {self.temperature_:.4g}"


def folds_of(rows: FitRows, folds: int) -> IndexArray:
    """Return the number of the fold of each row; rows of a cluster stay together. The same rows, the same folds."""
    rng = np.random.default_rng(0)
    if rows.cluster is None:
        return np.asarray(rng.permutation(rows.n) % folds)
    keys, codes = np.unique(rows.cluster, return_inverse=True)
    return np.asarray((rng.permutation(len(keys)) % folds)[codes])


def cross_fitted(map_: Map, rows: FitRows, grouping: Grouping | None, fold: IndexArray) -> Predictions:
    """Return each row recalibrated by a map that was fitted to the other folds; ``map_`` is the one fitted to all."""
    p = rows.predictions
    folds = [k for k in range(int(fold.max()) + 1) if (fold == k).any()]
    if len(folds) < 2:
        refused(
            "all rows are in one fold, so that none are left to fit a map to",
            "there must be at least two rows or clusters.",
        )
    if p.mapped not in ("states", "classes"):
        raise UnavailableError(f"{p.family} predictions cannot be fitted in part.\n\nHint: use `SafeTemperature`.")
    keys = (None,) if grouping is None else grouping.keys
    fold_maps = _fold_maps(map_, rows, grouping, fold, folds)
    if isinstance(p, Gaussian):
        bias, factor = np.zeros((rows.n, p.dimension)), np.ones((rows.n, p.dimension))
        for inside, codes, fold_map in fold_maps:
            for code, key in enumerate(keys):
                own = inside if codes is None else inside[codes == code]
                bias[own], factor[own] = fold_map._axes(key)
        return moved_states(p, bias, factor)
    z = log_values_of(p)
    mapped = np.empty_like(z)
    for inside, codes, fold_map in fold_maps:
        mapped[inside] = by_group([fold_map._steps(key) for key in keys], z[inside], codes)
    return p.with_logits(two_columns(mapped) if mapped.ndim == 1 and not p.has_odds else mapped)


def _fold_maps(
    map_: Map, rows: FitRows, grouping: Grouping | None, fold: IndexArray, folds: list[int]
) -> Iterator[tuple[IndexArray, IndexArray | None, Map]]:
    """Yield the rows of each fold, their groups, and the map that was fitted to the other folds."""
    for k in folds:
        inside, others = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        other_groups = None if grouping is None else grouping.take(others)
        fold_map = map_._similar_copy()._fit_checked(rows.take(others), other_groups)
        yield inside, None if grouping is None else grouping.codes[inside], fold_map


def kind_of(document: Any) -> str:
    """Return the kind of a document without its prefix ``safecal.``; empty where there is no kind."""
    kind = document.get("kind") if isinstance(document, dict) else None
    return kind.removeprefix("safecal.") if isinstance(kind, str) else ""


def read_plain(document: Any) -> Map:
    """Read the document of a map that is not `Safe`."""
    kind = kind_of(document)
    if kind not in PLAIN_MAPS:
        documents.refuse("must be the document of a map", kind or type(document).__name__)
    return PLAIN_MAPS[kind].from_dict(document)


def from_dict(document: Mapping[str, Any]) -> Map:
    """Read a map that any ``to_dict`` of a map wrote.

    Parameters
    ----------
    document : mapping
        The JSON document.

    Returns
    -------
    Map
        Fitted, and of the kind that was written.

    Examples
    --------
    >>> from safecal import maps
    >>> written = maps.Identity().fit([0, 1, 1], [0.2, 0.7, 0.9]).to_dict()
    >>> maps.from_dict(written)
    Identity(): nothing changed from 3 rows
    """
    return Safe.from_dict(document) if kind_of(document) == Safe._kind else read_plain(document)
