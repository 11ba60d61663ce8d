"""Hugging Face: run a pretrained classifier over a data set, or a language model over texts, and evaluate it.

It needs ``pip install "safecal[huggingface]"``. Predictions are kept on disk as they are made, so a run that was killed
goes on where it stopped. Code that comes with a model is never run.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, final

import numpy as np
from scipy import special

from ..._checks import fail, show
from ..._checks.columns import spelled, whole_number
from ..._types import AnyArray, FloatArray
from ...errors import LabelError, OptionError, UnreachableError
from ...families import Predictions, classifier
from ...judge.evaluation import Evaluation, evaluate_predictions
from ...options import EvaluateOptions
from .data import LabelledRows, open_rows, resume
from .language_model import LanguageModelRun, run_language_model
from .model import Classes, PretrainedModel, canonical

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


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What happened, and the class whose log-odds are asked for; None where all classes count."""

    y_true: AnyArray
    column: int | None


def read_outcomes(rows: LabelledRows, classes: Classes, positive: Any, negative: Any, positive_class: Any) -> Outcomes:
    """Read the labels of the data, before any prediction is made; `run_classifier` describes the options."""
    if positive is not None and negative is not None:
        raise fail(OptionError, "negative", "cannot be given together with `positive`")
    binary = len(classes.names) <= 2 or any(x is not None for x in (positive, negative, positive_class))
    if len(classes.names) == 1 and not classes.sigmoid and positive is None and negative is None:
        hint = "name the label that is positive, if the output is its log-odds."
        raise fail(OptionError, "positive", "is needed for a model with one output: it may be a regression", hint=hint)
    if classes.sigmoid and len(classes.names) > 1 and not binary:
        hint = "name the label that is positive, and `positive_class` where the model calls it otherwise."
        raise fail(OptionError, "positive", "is needed for a model that judges each class by itself", hint=hint)
    if not binary:
        return Outcomes(_numbers(rows, classes), None)
    column = _column(classes, positive, positive_class)
    if positive is None and negative is None:
        return Outcomes((_numbers(rows, classes) == column).astype(np.int64), column)
    argument, named_label = ("positive", positive) if negative is None else ("negative", negative)
    words = [canonical(label) for label in rows.labels]
    if canonical(named_label) not in words:
        known_labels = ", ".join(map(repr, sorted(set(words))[:10]))
        raise fail(
            LabelError, argument, "must be a label of the data", got=show(named_label), hint=f"they are {known_labels}."
        )
    is_label = np.array([word == canonical(named_label) for word in words])
    return Outcomes((is_label if negative is None else ~is_label).astype(np.int64), column)


def _column(classes: Classes, positive: Any, positive_class: Any) -> int:
    """Find the class of the model that is positive; by default number 1."""
    if len(classes.names) == 1:
        return 1  # its only logit speaks of it, whatever its name
    label = positive if positive_class is None else positive_class
    if label is None and len(classes.names) == 2:
        return 1
    number = None if label is None else classes.number(label)
    if number is None:
        raise fail(
            LabelError, "positive_class", "must be a class of the model, by name or by number", got=show(label),
            hint=f"they are {_listed(classes.names)}.",
        )  # fmt: skip
    return number


def _numbers(rows: LabelledRows, classes: Classes) -> AnyArray:
    """Return the class of each row."""
    if rows.numbers is not None and classes.generic and max(rows.numbers) < max(len(classes.names), 2):
        return np.array(rows.numbers, dtype=np.int64)
    number_of = {word: classes.number(word) for word in {canonical(label) for label in rows.labels}}
    numbers = [number_of[canonical(label)] for label in rows.labels]
    unknown = [k for k, number in enumerate(numbers) if number is None]
    if unknown:
        raise fail(
            LabelError, "label_column", "must hold classes of the model, by name or by number",
            got=show(rows.labels[unknown[0]]), place=f"row {unknown[0]}", count=(len(unknown), rows.n),
            hint=f"they are {_listed(classes.names)}; or name the `positive` label and its `positive_class`.",
        )  # fmt: skip
    return np.array(numbers, dtype=np.int64)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name!r} ({k})" for k, name in enumerate(names[:10]))
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown


def log_odds(logits: FloatArray, column: int, classes: Classes) -> FloatArray:
    """Return the log-odds of one class; no probability is formed, so nothing saturates."""
    if logits.shape[1] == 1:
        return logits[:, 0]
    if classes.sigmoid:
        return logits[:, column]
    other_logits = np.delete(logits, column, axis=1)
    log_rest: FloatArray = other_logits[:, 0] if other_logits.shape[1] == 1 else special.logsumexp(other_logits, axis=1)
    return logits[:, column] - log_rest
