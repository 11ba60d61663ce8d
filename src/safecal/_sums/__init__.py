"""All sums of one evaluation, the `Tally`: every door fills it in one pass (``sweep``), and a verdict is made of it.

``scored``         the columns of a block of rows; sums as arrays, made by key and put together; how excess is spread
``summary``        the sums of some rows: `Summary`, or an array with a row for each key
``splits``         which bin or group a row belongs to: `Bins`; the `Plan` of an evaluation
``table``          sums by bin or by group: `Table`; ``table_views``: what is read off it
``cells``          the spectrum of two outcomes, cells of their log-odds, and their order
``nodes``          that of more outcomes, the log-partition at five temperatures, also by group; and their order
``causes``         errors of states by axis and in every direction, classes as predicted and as they happened
``forecasts``      where outcomes fall in forecasts of numbers, of vectors and of draws, scores and widths
``clusters``       sums by cluster; ``cluster_pairs``: by cluster and group, and by cluster and cell
``tally_parts``    what belongs to a Tally beside sums: several looks at the same rows, groups by one column, documents
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, final

from .. import documents
from .._checks import fail
from .._checks.columns import steadied, weights
from .._types import AnyArray, ArrayLike, By
from ..errors import MergeError, ShapeError
from .causes import AxisSums, ClassSums, DirectionSums
from .cells import Cells, Order, Points, WeightedCells, order_of_cells
from .cluster_pairs import CellPairs, Clustering, Pairs, refuse_many
from .clusters import Clusters
from .forecasts import DrawSums, ForecastSums, VectorSums
from .nodes import NodeTable, Ordered, Spectrum
from .scored import Histogram, key_order, of_points, share_of_worst, union
from .splits import Plan, by_bin, by_group
from .summary import Summary, added_up
from .sweep import sweep_all, table_of
from .table import Table
from .tally_parts import FIELDS, LATER, PARTS, PLAIN, Look, unfitting

if TYPE_CHECKING:
    from ..families import Predictions

__all__ = ["MAX_KEYS", "Tally"]

MAX_KEYS = 1_000_000  # groups, or clusters


@final
@steadied
@dataclass(frozen=True, slots=True)
class Tally:
    """All sums of one evaluation. It holds no row; the empty ``Tally()`` changes nothing when it is added.

    Attributes
    ----------
    family : str
        ``"bernoulli"``, ``"categorical"``, ``"gaussian"``, ``"density"`` or the name of a family of your own.
    dimension : int
        Dimension of a state; 1 for classifiers.
    most_entropy : float
        Entropy of a prediction that says nothing; infinite for states and densities.
    least_excess : float
        The smallest excess that a prediction can have.
    weighted : bool
        Whether rows have weights.
    summary : Summary
        Sums over all rows.
    bins, groups : Table or None
        Sums by bin and by group.
    clusters : Clusters or None
        Sums by cluster.
    spectrum : Cells, WeightedCells, Nodes or None
        What tests, temperatures and bounds need beside the sums; Gaussian states need nothing.
    spread : Histogram or None
        How the excess is spread, where the spectrum does not say.
    ordered : Ordered or None
        Sums by cell of the predictions in their order, where the spectrum does not say.
    top : Cells or None
        More than two classes without weights: their likeliest class, happened or not, as if these were two outcomes.
    n_certain : int
        Rows that give some outcome a probability of exactly 0.
    decimals : int
        To how many decimals predictions were rounded, where some are certain; else 0.
    pairs : Pairs or None
        Sums by cluster and group, where there are both. Documents do not hold them.
    group_nodes : NodeTable or None
        What the temperature of each group needs beside its sums; Gaussian states need nothing. None where there are no
        groups, where the family has no temperature, or where an early document was read.
    cell_pairs : CellPairs or None
        Sums by cluster and coarse cell of the predictions in their order: what ranges are bounded by where rows come in
        clusters. Documents do not hold them, and there are none beyond 500 000 pairs.
    class_names : tuple of str
        What the classes are called, or the axes of states, where they have names; up to 128.
    axes : AxisSums or None
        Errors of Gaussian states along each axis.
    class_sums : ClassSums or None
        How often each class was predicted and happened, for up to 32 classes with a column each; None where an early
        document was read.
    room : float or None
        Sum of the largest entropy that each row can have, by weight, where rows have different numbers of classes;
        ``most_entropy`` is then that of the row with most.
    notes : tuple of str
        How the numbers came to be: sentences that stand beside every result.
    look : Look or None
        How these sums look at the rows, where there are several ways, or where they must not condemn or not acquit.
    others : tuple of Tally
        The sums of other looks at the same rows.
    forecast : ForecastSums, VectorSums, DrawSums or None
        What forecasters look at, of forecasts of a number, or of a vector of up to 16 components.
    directions : DirectionSums or None
        What directions of states of 2 to 16 components are judged by; None where an early document was read.

    Examples
    --------
    >>> import safecal
    >>> monday = safecal.bernoulli([1, 0, 1], [0.9, 0.2, 0.6]).tally()
    >>> tuesday = safecal.bernoulli([0, 0], [0.7, 0.1]).tally()
    >>> (monday + tuesday).n
    5
    """

    family: str = ""
    dimension: int = 1
    most_entropy: float = math.inf
    least_excess: float = -math.inf
    weighted: bool = False
    summary: Summary = field(default_factory=Summary)
    bins: Table | None = None
    groups: Table | None = None
    clusters: Clusters | None = None
    spectrum: Spectrum | None = None
    spread: Histogram | None = None
    ordered: Ordered | None = None
    top: Cells | None = None
    n_certain: int = 0
    decimals: int = 0
    pairs: Pairs | None = field(default=None, compare=False)
    group_nodes: NodeTable | None = None
    cell_pairs: CellPairs | None = field(default=None, compare=False)
    class_names: tuple[str, ...] = field(default=(), compare=False)
    axes: AxisSums | None = None
    class_sums: ClassSums | None = None
    room: float | None = None
    notes: tuple[str, ...] = ()
    look: Look | None = None
    others: tuple[Tally, ...] = ()
    forecast: ForecastSums | VectorSums | DrawSums | None = None
    directions: DirectionSums | None = None

    @classmethod
    def of(
        cls,
        predictions: Predictions,
        plan: Plan | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        by: By | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Sum rows, in one pass over them.

        Parameters
        ----------
        predictions : Predictions
            The rows.
        plan : Plan, optional
            How they are binned; by default they are not.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        by : array-like of shape (n,), or mapping of names to such, optional
            Groups.
        cluster : array-like of shape (n,), optional
            Rows that depend on each other share a cluster.

        Returns
        -------
        Tally
            Their sums.
        """
        weight = weights(sample_weight, predictions.n, predictions.outcome)
        return cls.of_checked(predictions, plan, weight, by, cluster)

    @classmethod
    def of_checked(
        cls,
        predictions: Predictions,
        plan: Plan | None,
        weight: AnyArray | None,
        by: By | None,
        cluster: ArrayLike | None,
    ) -> Self:
        """Sum rows whose weights were checked; those of one part of the rows may all be 0.

        Parameters
        ----------
        predictions, plan, weight, by, cluster
            As in `of`.

        Returns
        -------
        Tally
            Their sums.
        """
        splits = []
        if plan is not None and plan.bins is not None and plan.bin_on is not None:
            splits.append(by_bin(predictions, plan.bins, plan.bin_on))
        if by is not None:
            splits.append(by_group(predictions, by))
        clustering = None
        if cluster is not None:
            clustering = Clustering(predictions, cluster, None if by is None else splits[-1])
        swept = sweep_all(predictions, splits, weight, clustering)
        tables = [table_of(split, sums) for split, sums in zip(splits, swept.sums, strict=False)]
        most_entropy = predictions.bin_range("entropy")[1] if predictions.discrete else math.inf
        return cls(
            family=predictions.family,
            dimension=1 if predictions.discrete else predictions.dimension,
            most_entropy=most_entropy,
            least_excess=predictions.least_excess,
            weighted=weight is not None,
            summary=tables[0].total if tables else added_up(swept.sums[0]),
            bins=tables[0] if len(tables) > (by is not None) else None,
            groups=None if by is None else tables[-1],
            clusters=None if clustering is None else clustering.clusters(),
            spectrum=swept.spectrum,
            spread=None if swept.cells is None else Histogram.of(swept.cells),
            ordered=swept.ordered,
            top=swept.top,
            n_certain=swept.certain,
            decimals=swept.decimals,
            pairs=None if clustering is None or by is None else clustering.pairs(tables[-1].keys),
            group_nodes=None if swept.nodes is None else NodeTable(tables[-1].keys, swept.nodes, predictions.discrete),
            cell_pairs=None if clustering is None else clustering.cell_pairs(),
            class_names=() if predictions.has_odds else predictions.class_names,
            axes=swept.axes,
            class_sums=swept.class_sums,
            room=None if predictions.has_odds else predictions.room(weight),
            notes=predictions.notes,
            look=predictions.look,
            others=tuple(cls.of_checked(other, None, weight, by, cluster) for other in predictions.others),
            forecast=swept.forecast,
            directions=swept.directions,
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.summary.n

    @property
    def vague_entropy(self) -> float:
        """Entropy of predictions that say nothing, on average over the rows."""
        return self.most_entropy if self.room is None else self.room / self.summary.weight

    @property
    def points(self) -> Points | None:
        """Points that stand for two-class rows; None for other families."""
        return self.spectrum.points() if isinstance(self.spectrum, (Cells, WeightedCells)) else None

    @property
    def histogram(self) -> Histogram:
        """How the excess is spread over the rows."""
        points = self.points
        if points is None:
            return Histogram() if self.spread is None else self.spread
        return Histogram.of(of_points(points, self.summary.weight - self.summary.weight_impossible).T)

    @property
    def worst_share(self) -> float:
        """Share of all excess above 0 in the most surprising 1 % of the rows."""
        points = self.points
        if points is None:
            return self.histogram.worst_share()
        return share_of_worst(of_points(points, self.summary.weight - self.summary.weight_impossible))

    @property
    def orders(self) -> list[Order]:
        """Cells of the predictions in their order; none where there is no order."""
        if self.ordered is not None:
            return self.ordered.orders()
        return [order_of_cells(self.spectrum)] if isinstance(self.spectrum, (Cells, WeightedCells)) else []

    def in_order(self) -> Self:
        """Put the groups in the order of their keys, where they have one."""
        if self.groups is None:
            return self
        order = key_order(self.groups.keys)
        if order is None:
            return self
        nodes = None if self.group_nodes is None else self.group_nodes.take(order)
        return replace(self, groups=self.groups.take(order), group_nodes=nodes)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Tally):
            return NotImplemented
        if other.n == 0 or self.n == 0:
            return self if other.n == 0 else other
        for name in ("family", "dimension", "most_entropy", "weighted"):
            a, b = getattr(self, name), getattr(other, name)
            if a != b:
                hint = "keep families, numbers of classes and dimensions apart; give all rows weights, or none."
                raise MergeError(
                    f"tallies must be of the same kind; their `{name}` is {a!r} and {b!r}.\n\nHint: {hint}"
                )
        if self.class_names and other.class_names and self.class_names != other.class_names:
            hint = "give both the same `labels=`, in one order."
            raise MergeError(f"tallies must have the same classes in the same order.\n\nHint: {hint}")
        groups, group_nodes = _merge_groups(self, other)
        parts = {name: _merge_part(getattr(self, name), getattr(other, name), what) for name, what in _IN_ALL.items()}
        for name in _WHERE_IN_BOTH:
            a, b = getattr(self, name), getattr(other, name)
            parts[name] = None if a is None or b is None else a + b
        if len(self.others) != len(other.others):
            raise MergeError("tallies must look at their rows in the same ways.\n\nHint: keep such rows apart.")
        _refuse_many_keys(groups, "by")
        _refuse_many_keys(parts["clusters"], "cluster")
        if parts["pairs"] is not None:
            refuse_many(len(parts["pairs"]))
        ragged = self.room is not None or other.room is not None
        return replace(
            self,
            **parts,
            summary=self.summary + other.summary,
            groups=groups,
            n_certain=self.n_certain + other.n_certain,
            decimals=max(self.decimals, other.decimals),
            group_nodes=group_nodes,
            class_names=self.class_names or other.class_names,
            room=sum(tally.summary.weight * tally.vague_entropy for tally in (self, other)) if ragged else None,
            notes=tuple(dict.fromkeys((*self.notes, *other.notes))),
            others=tuple(mine + theirs for mine, theirs in zip(self.others, other.others, strict=True)),
        )

    def __radd__(self, other: object) -> Self:
        return self if other == 0 else NotImplemented  # so that sum() works

    def __repr__(self) -> str:
        return f"Tally({self.family}, n={self.n}, ecd={self.summary.ecd:+.6g})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document. It holds sums, no row, and no name of a cluster."""
        content: dict[str, Any] = {name: getattr(self, name) for name in PLAIN}
        content |= {name: documents.number(getattr(self, name)) for name in ("most_entropy", "least_excess")}
        for name in (*PARTS, "group_nodes", "class_sums"):
            part = getattr(self, name)
            content[name] = None if part is None else part.to_dict()
        content["class_names"] = list(self.class_names)
        content |= {} if self.room is None else {"room": self.room}
        content |= {"notes": list(self.notes)} if self.notes else {}
        for name in ("forecast", "directions"):
            content |= {} if getattr(self, name) is None else {name: getattr(self, name).to_dict()}
        if self.look is not None:
            content |= {"look": self.look.to_dict(), "others": [other.to_dict() for other in self.others]}
        return documents.document("tally", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        later = LATER | {"others": documents.list_of(cls.from_dict)}
        fields = documents.read("tally", document, FIELDS, later)
        tally = cls(**fields | {name: tuple(fields.get(name, ())) for name in ("class_names", "notes", "others")})
        for name, rule in unfitting(tally):
            with documents.at(name):
                documents.refuse(rule)
        return tally


# What either all tallies have or none, and what it is called; and what their sum has where both have it.
_IN_ALL = {
    **{name: name for name in ("bins", "clusters", "spectrum", "spread", "look")},
    "ordered": "cells in order",
    "top": "cells of the likeliest class",
    "axes": "errors by axis",
}
_WHERE_IN_BOTH = ("pairs", "cell_pairs", "class_sums", "forecast", "directions")


def _merge_part(a: Any, b: Any, name: str) -> Any:
    if (a is None) != (b is None):
        raise MergeError(f"tallies must hold the same parts; one of the two has no {name}.")
    return None if a is None else a + b


def _merge_groups(a: Tally, b: Tally) -> tuple[Table | None, NodeTable | None]:
    """Add up what is kept by group; to find a million keys among others takes seconds, so it is done once."""
    if a.groups is None or b.groups is None:
        return _merge_part(a.groups, b.groups, "groups"), None
    together = union(a.groups.keys, b.groups.keys)
    groups = a.groups.plus(b.groups, together)
    if a.group_nodes is None or b.group_nodes is None:
        return groups, None
    if (a.group_nodes.keys, b.group_nodes.keys) != (a.groups.keys, b.groups.keys):
        return groups, a.group_nodes + b.group_nodes
    return groups, a.group_nodes.plus(b.group_nodes, together)


def _refuse_many_keys(part: Table | Clusters | None, name: str) -> None:
    if part is not None and len(part) > MAX_KEYS:
        hint = "sums are kept for each of them; is it the right column?"
        raise fail(ShapeError, name, f"must have at most {MAX_KEYS} different values", got=f"{len(part)}", hint=hint)
