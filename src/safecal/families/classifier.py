"""From the arrays of a classifier, or predictions as they are, to predictions; and several labels a row."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .._checks.arrays import RowLabels, as_keys, row_labels, same_labels, same_rows
from .._checks.class_columns import label_matrix, label_names, label_values
from .._checks.classes import clip_note, clip_value, refuse_arrays
from .._checks.columns import cluster_codes, weights
from .._checks.message import fail
from .._types import AnyArray, ArrayLike, By, Labels
from ..errors import FormError, OptionError
from .bernoulli import Bernoulli
from .predictions import Predictions, classifier

__all__ = ["Labelled", "predictions_of"]


def predictions_of(
    y_true: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
    also: str = "",
) -> Predictions:
    """Return predictions as they are, and arrays as those of a classifier; ``also`` names what else a door takes."""
    if isinstance(y_true, Predictions):
        refuse_arrays("predictions", y_prob=y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
        return y_true
    if y_prob is None and logits is None:
        raise fail(
            FormError,
            "y_true",
            f"must be predictions{also}, or outcomes beside `y_prob` or `logits`",
            got=f"a {type(y_true).__name__} alone",
            hint="pass `y_true, y_prob`, or predictions such as `safecal.gaussian(x_true, mean, cov=cov)`.",
        )
    return classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, whole=True)


@final
@dataclass(frozen=True, slots=True)
class Labelled:
    """Predictions of shape (n, L), row by row, and the names of the labels."""

    predictions: Bernoulli
    names: list[Hashable]
    row_labels: RowLabels | None

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_prob: ArrayLike | None,
        *,
        logits: ArrayLike | None,
        labels: Labels | None,
        clip: float | None,
        fewest: int = 2,
    ) -> Self:
        """Check matrices of outcomes and predictions; of a part of the rows, one is enough."""
        rows = row_labels(y_true=y_true, y_prob=y_prob, logits=logits)
        values, name = label_values(y_prob, logits)
        happened = label_matrix(y_true, values.shape, name, fewest)
        names = label_names(y_true, y_prob if logits is None else logits, labels, values.shape[1], name)
        clip = clip_value(clip, name, 2)
        columns = happened.reshape(-1), values.reshape(-1)
        return cls(Bernoulli(*columns, name == "logits", clip, notes=clip_note(clip)), names, rows)

    def beside(
        self, by: By | None, cluster: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[dict[str, AnyArray], AnyArray, AnyArray | None]:
        """Return the groups, the clusters and the weights of every label of every row."""
        same_labels(self.row_labels, by=by, cluster=cluster, sample_weight=sample_weight)
        count = len(self.names)
        n = self.predictions.n // count
        label = np.empty(count, dtype=object)
        label[:] = self.names
        groups = {"label": np.tile(label, n)}
        for name, column in _columns(by).items():
            if name == "label":
                raise fail(OptionError, "by", "must not have a column `label`: that is what `by_label` adds",
                           hint="name yours otherwise.")  # fmt: skip
            values = as_keys(column, "by")
            same_rows("by", len(values), n, "y_true")
            groups[name] = np.repeat(values, count, axis=0)
        row = np.arange(n) if cluster is None else cluster_codes(cluster, n)[1]
        weight = weights(sample_weight, n)
        return groups, np.repeat(row, count), None if weight is None else np.repeat(weight, count)


def _columns(by: By | None) -> dict[str, ArrayLike]:
    if by is None:
        return {}
    return dict(by) if isinstance(by, Mapping) else {str(getattr(by, "name", None) or "group"): by}
