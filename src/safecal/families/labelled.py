"""Several labels a row: each label of each row is a prediction of two outcomes, and the labels of a row go together."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .._checks.arrays import as_keys
from .._checks.classes import clip_value
from .._checks.columns import cluster_codes, weights
from .._checks.message import fail, same_rows
from .._checks.multilabel import label_matrix, label_names, label_values
from .._checks.rows import RowLabels, row_labels, same_labels
from .._types import AnyArray, ArrayLike, Labels
from ..errors import OptionError
from .bernoulli import Bernoulli

__all__ = ["Labelled"]


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
    ) -> Self:
        """Check matrices of outcomes and predictions."""
        rows = row_labels(y_true=y_true, y_prob=y_prob, logits=logits)
        values, name = label_values(y_prob, logits)
        happened = label_matrix(y_true, values.shape, name)
        names = label_names(y_true, y_prob if logits is None else logits, labels, values.shape[1], name)
        clip = clip_value(clip, name, 2)
        return cls(Bernoulli(happened.reshape(-1), values.reshape(-1), name == "logits", clip), names, rows)

    def beside(
        self, by: Any, cluster: ArrayLike | None, sample_weight: ArrayLike | None
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


def _columns(by: Any) -> dict[str, ArrayLike]:
    if by is None:
        return {}
    return dict(by) if isinstance(by, Mapping) else {str(getattr(by, "name", None) or "group"): by}
