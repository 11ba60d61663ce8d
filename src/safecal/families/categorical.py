"""Two or more outcomes, one column each."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

import numpy as np
from scipy import special

from .._checks import fail
from .._checks.arrays import RowLabels, block, row_labels
from .._checks.class_columns import FromOne, class_outcomes, decimals_of, refuse_other_order, row_sums
from .._checks.classes import any_zero, clip_note, clip_value, one_form, outcome_column, probabilities, real_logits
from .._checks.columns import spelled, steady
from .._kernels import classes as kernel
from .._kernels.compiled import available
from .._kernels.spectrum import confidence_cells, node_rows
from .._sums.causes import MOST_CLASSES, ClassSums
from .._sums.clusters import Near
from .._sums.nodes import Nodes
from .._sums.scored import Scored, possible_weight
from .._types import AnyArray, ArrayLike, BinOn, FloatArray, IndexArray, Labels, Mapped, Rows
from ..errors import ShapeError, UnavailableError
from . import Predictions
from .bernoulli import Bernoulli
from .family import AT_NEAR, BLOCK, Cumulants, FamilyWords, Partition, Spectral

__all__ = ["NAMED", "Categorical", "categorical", "checked_classes"]

_FAR_LOGIT = 1e4  # nats
_SMALL_ELEMENTS = 1 << 15  # elements of arrays that malloc need not map anew each time
_ELEMENTS = 1 << 18  # of the (rows, classes) working arrays: large enough for NumPy, small enough for a cache


NAMED = 128  # classes whose names are kept: no range is made of one of more


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Categorical(Predictions):
    """Checked predictions over K classes."""

    family: ClassVar[str] = "categorical"
    words: ClassVar[FamilyWords] = replace(Bernoulli.words, kind="{classes} classes")
    bin_choices: ClassVar[tuple[BinOn, ...]] = ("confidence", "entropy")
    binned_by_default: ClassVar[bool] = True
    discrete: ClassVar[bool] = True
    outcome: ClassVar[str] = "y_true"
    mapped: ClassVar[Mapped] = "classes"

    happened: IndexArray
    values: AnyArray
    logits: bool
    infinite: bool  # whether some gap may be: a probability of 0, or a logit of -inf
    clip: float | None
    row_labels: RowLabels | None = None
    names: tuple[str, ...] = ()  # of the classes, where they have any
    choices: IndexArray | None = None  # how many classes each row has, where they differ; the others are -inf
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return len(self.happened)

    @property
    def what_happened(self) -> AnyArray:
        return self.happened

    def take(self, index: IndexArray) -> Self:
        choices = None if self.choices is None else self.choices[index]
        return replace(self, happened=self.happened[index], values=self.values[index], row_labels=None, choices=choices)

    @classmethod
    def _joined(cls, parts: Sequence[Self]) -> Self | None:
        if len({(p.classes, p.logits, p.clip, p.names, p.notes, p.choices is None) for p in parts}) > 1:
            return None
        choices = [part.choices for part in parts if part.choices is not None]
        happened, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("happened", "values"))
        return replace(
            parts[0], happened=happened, values=values, infinite=any(part.infinite for part in parts), row_labels=None,
            choices=np.concatenate(choices) if choices else None,
        )  # fmt: skip

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.names

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.values.shape[1])

    def as_odds(self) -> Predictions:
        if self.classes != 2:
            return self
        gaps = self.log_gaps(slice(0, self.n))
        return Bernoulli(self.happened == 1, gaps[:, 0] - gaps[:, 1], True, None, self.row_labels, self.notes)

    def with_logits(self, logits: FloatArray) -> Predictions:
        infinite = bool(np.isneginf(logits).any())
        return replace(self, values=logits, logits=True, infinite=infinite, clip=None, row_labels=None)

    @property
    def least_excess(self) -> float:
        return -float(special.lambertw((self.classes - 1) / math.e).real)

    def room(self, weight: FloatArray | None) -> float | None:
        if self.choices is None:
            return None
        largest = np.log(self.choices)
        return float(largest.sum() if weight is None else largest @ weight)

    def bin_range(self, bin_on: str) -> tuple[float, float]:
        return (0.0, 1.0) if bin_on == "confidence" else (0.0, float(np.log(self.classes)))

    @property
    def _chunk(self) -> int:
        return max(1, _ELEMENTS // self.classes)

    def _probabilities(self, rows: Rows) -> FloatArray:
        p = block(self.values, rows)
        if self.clip is not None:
            p = np.clip(p, self.clip, 1.0 - self.clip)
            p /= p.sum(axis=1, keepdims=True)
        return p

    def _kernel_scores(self, rows: slice, nodes: bool = False) -> kernel.ClassScores:
        if not self.logits:
            p = self.values[rows] if self.clip is None else self._probabilities(rows)
            return kernel.from_probabilities(p, self.happened[rows], nodes)
        return kernel.from_logits(self.values[rows], self.happened[rows], self.infinite, nodes)

    def _score(self, rows: Rows) -> Scored:
        assert isinstance(rows, slice)
        step = self._block_rows if available() else self._chunk  # the compiled kernel has no working arrays to speak of
        parts = [self._kernel_scores(part) for part in _cut(rows, step)]
        return self._columns(parts[0] if len(parts) == 1 else _joined_scores(parts), rows)

    def _columns(self, s: kernel.ClassScores, rows: slice) -> Scored:
        correct = s.top == self.happened[rows]
        brier = s.brier / 2.0 if self.classes == 2 else s.brier  # two classes: the binary definition
        return Scored(
            s.excess, s.varentropy, s.third_cumulant, s.surprisal, s.entropy,
            s.confidence, correct, s.confidence, correct, brier,
        )  # fmt: skip

    def log_values(self, rows: Rows) -> FloatArray:
        """Return logits: those that were given, or the logarithms of the probabilities."""
        if self.logits:
            return block(self.values, rows)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._probabilities(rows)))

    def log_gaps(self, rows: Rows) -> FloatArray:
        """Return how much less likely each class is than the most likely one; 0 for that one itself."""
        z = self.log_values(rows)
        with np.errstate(over="ignore"):  # a gap beyond the largest float is a probability of 0
            return np.asarray(z.max(axis=1, keepdims=True) - z)

    def _partition(self, rows: slice) -> Partition:
        step = self._chunk
        parts = [self.log_gaps(part) for part in _cut(rows, step)]

        def at(beta: AnyArray | float) -> Cumulants:
            if np.min(beta) < 0.0 and self.certain(rows):
                raise UnavailableError("log_partition at beta < 0 is infinite where a probability is 0.")
            betas = np.split(beta, range(step, rows.stop - rows.start, step)) if np.ndim(beta) else [beta] * len(parts)
            cumulants = [kernel.cumulants(d, b) for d, b in zip(parts, betas, strict=True)]
            return Cumulants(*map(np.concatenate, zip(*cumulants, strict=True)))

        return at

    def gaps(self, rows: Rows) -> FloatArray:
        gaps = self.log_gaps(rows)
        gaps[np.arange(len(gaps)), gaps.argmin(axis=1)] = np.inf  # the most likely class itself is no surprise
        return gaps

    def scored_with_spectrum(self, rows: slice, weight: AnyArray | None) -> tuple[Scored, FloatArray | None, Spectral]:
        kernel_scores = self._kernel_scores(rows, True) if available() else None
        if kernel_scores is None or kernel_scores.nodes is None:
            return Predictions.scored_with_spectrum(self, rows, weight)  # `super` does not know a class with slots
        scored = self._columns(kernel_scores, rows)
        w = None if weight is None else block(weight, rows)
        return scored, w, self._spectral(kernel_scores.nodes, scored, w, kernel_scores.top)

    def spectral(self, rows: Rows, scored: Scored, weight: FloatArray | None) -> Spectral:
        assert isinstance(rows, slice)
        parts = [node_rows(self.gaps(part)) for part in _cut(rows, self._chunk)]
        at_nodes = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)
        return self._spectral(at_nodes, scored, weight, self.values[rows].argmax(axis=1))

    def _spectral(self, at_nodes: FloatArray, scored: Scored, weight: FloatArray | None, top: IndexArray) -> Spectral:
        """Return the spectrum and the order of rows from what `node_rows` gives of them."""
        assert scored.surprisal is not None
        assert scored.confidence is not None
        assert scored.correct is not None
        # An outcome as likely as the most likely one is no surprise either.
        above = ~scored.correct & (scored.surprisal > -np.log(scored.confidence) * (1.0 + 1e-9)) & ~scored.impossible
        spectrum = Nodes.of(at_nodes, possible_weight(scored, weight), int(above.sum()))
        order = confidence_cells(scored.confidence, top, self.classes)

        def near() -> Near:
            return Near(-at_nodes[AT_NEAR, 1], at_nodes[AT_NEAR, 2], at_nodes[AT_NEAR, 0])

        return Spectral(spectrum, near, order, lambda: at_nodes)

    def class_sums(self, rows: slice, scored: Scored, weight: FloatArray | None) -> ClassSums | None:
        if self.classes > MOST_CLASSES:
            return None
        assert scored.surprisal is not None
        assert scored.entropy is not None
        parts = []
        for chunk in _cut(rows, max(1, _SMALL_ELEMENTS // self.classes)):
            within = slice(chunk.start - rows.start, chunk.stop - rows.start)
            p, log_p = self._with_logarithms(chunk, scored.surprisal[within])
            w = None if weight is None else weight[within]
            parts.append(ClassSums.of(p, log_p, scored.entropy[within], self.happened[chunk], w))
        return parts[0] if len(parts) == 1 else ClassSums(np.add.reduce([part.sums for part in parts]))

    def _with_logarithms(self, rows: slice, surprisal: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return probabilities and their logarithms; 0 for that of an impossible class."""
        if not self.logits:
            p = self._probabilities(rows)
            return p, np.log(p, where=p > 0.0, out=np.zeros_like(p)) if self.infinite else np.log(p)
        z = block(self.values, rows)
        # What happened tells the normalising constant, unless it was impossible or so far away that rounding shows.
        at = z[np.arange(len(z)), self.happened[rows]]
        if self.infinite or max(map(float, (surprisal.max(initial=0.0), np.abs(at).max(initial=0.0)))) > _FAR_LOGIT:
            z = -self.log_gaps(rows)
            constant = np.log(np.exp(z).sum(axis=1))
        else:
            constant = at + surprisal
        log_p = z - constant[:, None]
        p = np.exp(log_p)
        return p, np.where(p > 0.0, log_p, 0.0) if self.infinite else log_p

    def decimals(self, rows: Rows) -> int:
        return 0 if self.logits or self.clip is not None else decimals_of(self.values[rows])

    def certain(self, rows: Rows) -> int:
        if not self.infinite or self.clip is not None:
            return 0
        values = self.values[rows]
        if self.choices is not None:  # a choice that a row does not have is not ruled out
            values = np.where(np.arange(self.classes) < self.choices[rows, None], values, np.inf)
        low = values.min(axis=1)
        if not self.logits:
            return int((low == 0).sum())
        with np.errstate(over="ignore"):
            return int(np.isneginf(low - self.values[rows].max(axis=1).astype(np.float64)).sum())

    @property
    def _block_rows(self) -> int:
        return min(BLOCK, 4 * self._chunk)


def _cut(rows: slice, step: int) -> Iterator[slice]:
    for start in range(rows.start, rows.stop, step):
        yield slice(start, min(start + step, rows.stop))


def _joined_scores(parts: list[kernel.ClassScores]) -> kernel.ClassScores:
    return kernel.ClassScores(*map(np.concatenate, zip(*(part[:-1] for part in parts), strict=True)))


@steady
@spelled()
def categorical(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    labels: Labels | None = None,
    clip: float | None = None,
) -> Categorical:
    """Check predictions over K >= 2 classes and their outcomes.

    With ``z = log p``, the excess of a row is ``sum(p * z) - z[y]``: positive when a class happened that the model
    thought less likely than it expected of outcomes, never below ``-W((K - 1)/e)``, and 0 when all classes are equally
    likely.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The class that happened: a column number from 0 to K - 1, or one of ``labels``.
    y_prob : array-like of shape (n, K)
        Probability of each class; each row sums to 1, within ``0.005 / (log K + 0.01)``: so near that
        ECD moves by at most 0.005 nat. Values are used as given.
    logits : array-like of shape (n, K)
        Unnormalised log-probabilities, instead of ``y_prob``; ``-inf`` is a probability of 0.
    labels : sequence of K hashables, optional
        The names of the columns, in their order.
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``, then divide each row by its sum; at most ``0.02 / (K - 1)``. Off
        by default.

    Returns
    -------
    Predictions
        Call ``.evaluate()``, ``.ecd`` or ``.score()`` on it.

    See Also
    --------
    bernoulli : One probability, of the positive class.

    Examples
    --------
    >>> import safecal
    >>> y_prob = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    >>> safecal.categorical([0, 1], y_prob).ecd
    0.6092...
    >>> safecal.categorical(["cat", "dog"], y_prob, labels=["cat", "dog", "eel"]).ecd
    0.6092...
    """
    rows = row_labels(y_true=y_true, y_prob=y_prob, logits=logits)
    values, name = one_form(y_prob, logits)
    original = y_prob if logits is None else logits
    return checked_classes(outcome_column(y_true, values, name), values, name, original, labels, clip, rows)


def checked_classes(
    y_true: AnyArray,
    values: AnyArray,
    name: str,
    original: ArrayLike | None,
    labels: Labels | None,
    clip: float | None,
    rows: RowLabels | None,
    whole: bool = False,
) -> Categorical:
    """Check an (n, K) array and its outcomes.

    ``original`` is the argument that became the array; ``whole`` tells that no other rows will follow.
    """
    if values.ndim != 2 or values.shape[1] < 2:
        hint = None
        if values.ndim == 1:
            hint = "for one probability a row, of the positive class, use `bernoulli`."
        elif values.ndim == 2 and values.shape[1] == 1:
            hint = f"if it belongs to the positive class, pass `{name}[:, 0]` to `bernoulli`."
        raise fail(
            ShapeError, name, "must have one column for each of two or more classes, shape (n, K)",
            got=f"shape {values.shape}", hint=hint,
        )  # fmt: skip
    if name == "logits":
        infinite = real_logits(values, name)
    else:
        probabilities(values, name)
        row_sums(values, name, original)
        infinite = any_zero(values)
    n, classes = values.shape
    happened = class_outcomes(y_true, n, classes, name, labels)
    refuse_other_order(original, labels, name)
    if labels is None and whole:
        FromOne().add(happened, values, name).refuse()
    names = () if labels is None or classes > NAMED else tuple(map(str, labels))
    clip = clip_value(clip, name, classes)
    return Categorical(
        happened, values, name == "logits", infinite, clip, rows, names, notes=clip_note(clip)
    )  # fmt: skip
