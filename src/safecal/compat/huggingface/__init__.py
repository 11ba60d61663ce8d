"""Hugging Face: run a pretrained classifier over a data set, or a language model over texts, and evaluate it.

It needs ``pip install "safecal[huggingface]"``. Predictions are kept on disk as they are made, so a run that was killed
goes on where it stopped. Code that comes with a model is never run.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, final

from ..._checks.columns import spelled, whole_number
from ..._checks.message import fail, show
from ..._types import AnyArray, FloatArray
from ...errors import OptionError
from ...families.predictions import Predictions, classifier
from ...judge.evaluation import Evaluation, evaluate_predictions
from ...options import EvaluateOptions
from .cache import resume
from .data import UnreachableError, open_rows
from .language_model import LanguageModelRun, run_language_model
from .model import PretrainedModel, log_odds, read_outcomes

__all__ = ["ClassifierRun", "LanguageModelRun", "UnreachableError", "run_classifier", "run_language_model"]


class RunOptions(TypedDict, total=False):
    """What `run_classifier` takes beside the model, the data and their kind."""

    column: str | None
    label_column: str
    positive: Any
    negative: Any
    positive_class: Any
    subset: str | None
    split: str
    model_revision: str | None
    data_revision: str | None
    max_length: int | None
    batch_size: int
    device: str | None
    cache: str | os.PathLike[str] | None
    progress: Callable[[int, int], None] | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassifierRun:
    """What a pretrained classifier said of each row.

    Attributes
    ----------
    model, data : str
        Names on the hub, or paths.
    y_true : ndarray of shape (n,)
        What happened: 1 for the positive label, or the number of the class.
    logits : ndarray of shape (n,) or (n, K)
        Log-odds of the positive class, or one logit for each class; as the model gave them.
    classes : tuple of str
        Names of the model's classes.
    positive : str or None
        The class that ``logits`` speak of; None for all of them.
    resumed : int
        Rows that an earlier run had left in the cache.
    cache : Path or None
        The file that holds the predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.compat.huggingface import ClassifierRun
    >>> run = ClassifierRun("m", "d", np.array([0, 1]), np.array([-2.0, 1.0]), ("no", "yes"), "yes", 0, None)
    >>> round(run.evaluate().ecd, 3)
    -0.254
    """

    model: str
    data: str
    y_true: AnyArray
    logits: FloatArray
    classes: tuple[str, ...]
    positive: str | None
    resumed: int
    cache: Path | None

    @property
    def predictions(self) -> Predictions:
        """The rows, checked."""
        return classifier(self.y_true, None, logits=self.logits, pos_label=None, labels=None, clip=None)

    @spelled(EvaluateOptions)
    def evaluate(self, **options: Unpack[EvaluateOptions]) -> Evaluation:
        """Evaluate the classifier.

        Parameters
        ----------
        **options
            As for `safecal.evaluate`: bins, by, cluster, threshold and the others.

        Returns
        -------
        Evaluation
            Print it for the verdict and the table.
        """
        return evaluate_predictions(self.predictions, **options)

    def to_csv(self) -> str:
        """Return the rows as CSV, every digit kept: the outcome, then one column of logits or one for each class.

        Returns
        -------
        str
            A header and one line for each row.
        """
        columns = self.logits.reshape(len(self.y_true), -1)
        names = ["logit"] if self.logits.ndim == 1 else [f"logit_{k}" for k in range(columns.shape[1])]
        lines = [",".join(["y", *names])]
        pairs = zip(self.y_true.tolist(), columns.tolist(), strict=True)
        lines += [",".join([str(y), *map(repr, row)]) for y, row in pairs]
        return "\n".join(lines) + "\n"


@spelled()
def run_classifier(
    model: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    kind: Literal["text", "image"] = "text",
    column: str | None = None,
    label_column: str = "label",
    positive: Any = None,
    negative: Any = None,
    positive_class: Any = None,
    subset: str | None = None,
    split: str = "test",
    model_revision: str | None = None,
    data_revision: str | None = None,
    max_length: int | None = None,
    batch_size: int = 32,
    device: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ClassifierRun:
    """Run a pretrained classifier of texts or images over a labelled data set.

    Code that comes with a model is never run (``trust_remote_code`` stays off). Weights are used in float32.

    Parameters
    ----------
    model : str or os.PathLike
        Name on the Hugging Face hub, or a folder that ``save_pretrained`` wrote.
    data : str or os.PathLike
        Name on the hub; or a CSV, TSV, JSON Lines or Parquet file; or a folder with one sub-folder of images for each
        class; or a folder that ``save_to_disk`` wrote.
    kind : {"text", "image"}, default "text"
        What is classified.
    column : str, optional
        Where the texts or images are; by default ``"text"`` or ``"image"``. In a file, images are paths, relative to
        its folder, or bytes.
    label_column : str, default "label"
        Where the labels are: classes of the model, by name or by number. A folder of images needs none.
    positive : object, optional
        The label that is positive, for log-odds of one class. Two classes need none: number 1 is positive.
    negative : object, optional
        Instead, the one label that is not positive, when all others are.
    positive_class : object, optional
        The class of the model that speaks of the positive label, by name or by number, when it has another name.
    subset, split : str, optional
        Of a data set on the hub. The split may be a slice: ``"train[:10%]"``.
    model_revision, data_revision : str, optional
        Branch, tag or commit on the hub.
    max_length : int, optional
        Longest text, in tokens; the rest is cut off. By default the longest that the model takes.
    batch_size : int, default 32
        Rows at a time.
    device : str, optional
        Of torch; by default a GPU where there is one.
    cache : str or os.PathLike, optional
        A folder for predictions. A run that was interrupted, in whatever way, then goes on after its last batch.
        Predictions of another model, other data or other settings are never mixed in.
    progress : callable, optional
        Called with the rows done and all rows: at the start, and after each batch.

    Returns
    -------
    ClassifierRun
        Call ``.evaluate()`` on it.

    Raises
    ------
    MissingExtraError
        When Transformers, PyTorch, Datasets, Polars or Pillow is needed and not installed.
    UnreachableError
        When the model or the data cannot be fetched from the hub.
    FileError
        When a path leads nowhere, or to something else.

    Examples
    --------
    >>> from safecal.compat.huggingface import run_classifier
    >>> run = run_classifier("my-model", "reviews.csv", column="review", cache="predictions")  # doctest: +SKIP
    >>> run.evaluate().verdict.decision  # doctest: +SKIP
    'SAFE'
    """
    if kind not in ("text", "image"):
        raise fail(OptionError, "kind", 'must be "text" or "image"', got=show(kind))
    whole_number(batch_size, "batch_size", 1)
    if max_length is not None:
        whole_number(max_length, "max_length", 1)
    network = PretrainedModel(model, kind, model_revision, device, max_length)
    rows = open_rows(
        data,
        kind=kind,
        column=column or kind,
        label_column=label_column,
        subset=subset,
        split=split,
        revision=data_revision,
    )
    outcomes = read_outcomes(rows, network.classes, positive, negative, positive_class)
    report = progress or (lambda done, total: None)

    def score(number: int) -> FloatArray:
        start = number * batch_size
        return network.logits(rows.inputs(start, min(start + batch_size, rows.n)))

    def settings() -> dict[str, Any]:
        return {**network.identity(), "rows": rows.n, "inputs": rows.digest(), "batch_size": batch_size}

    run = resume(cache, settings, -(-rows.n // batch_size), score, lambda done: report(done, rows.n))
    logits = run.rows
    name = None
    if outcomes.column is not None:
        logits = log_odds(logits, outcomes.column, network.classes)
        name = network.classes.names[min(outcomes.column, len(network.classes.names) - 1)]
    names = network.classes.names
    return ClassifierRun(network.name, rows.name, outcomes.y_true, logits, names, name, run.resumed, run.path)
