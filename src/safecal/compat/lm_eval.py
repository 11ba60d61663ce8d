"""lm-evaluation-harness: its logs as predictions, and ECD and temperature in its own table.

Logs are what ``lm_eval --log_samples --output_path DIR`` writes, ``samples_*.jsonl``, for tasks of the type
``multiple_choice``; `read_samples` reads those of Inspect, too. In the YAML file of a task::

    process_results: !function safecal.compat.lm_eval.process_results
    metric_list:
      - metric: acc
        aggregation: mean
        higher_is_better: true
      - metric: ecd
        aggregation: mean
        higher_is_better: false
      - metric: temperature
        aggregation: !function safecal.compat.lm_eval.temperature
        higher_is_better: false
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, final

import numpy as np

from .._checks import FRAME, fail, show
from .._checks.columns import steady
from .._types import AnyArray
from ..errors import FileError, InputError, LabelError, OptionError
from ..families import Predictions
from ..families.categorical import Categorical, categorical
from ..inputs import Reader, join_batches
from ..inputs.columns import Columns, about_columns, near_names
from ..inputs.logs import SampleLogs
from ..inputs.questions import LengthScale, Normalise
from ..inputs.sources import left_out
from ..judge.evaluation import Evaluation
from ..options import EvaluateOptions

__all__ = ["Samples", "process_results", "read_samples", "scored", "temperature"]

_RIGHT = ("gold", "answer", "label", "target", "answerKey")
_MOVE = "write a function that calls `scored(results, right)`."


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Samples:
    """Questions of logs: predictions, and what is known of each question.

    Attributes
    ----------
    predictions : Predictions
        Over the choices of each question.
    columns : mapping of names to ndarrays
        ``task``, ``doc_id``, and the fields of ``doc``.
    cluster : ndarray of shape (n,) or None
        The passage of each question, where questions share passages.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from safecal.compat.lm_eval import read_samples
    >>> line = {"doc_id": 0, "doc": {"subject": "art"}, "target": "1", "filtered_resps": [["-3.2", "x"], ["-0.9", "x"]]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "samples_quiz.jsonl")
    ...     size = path.write_text(json.dumps(line))
    ...     samples = read_samples(path)
    >>> samples
    1 question of quiz
    >>> samples.columns["subject"].tolist(), round(samples.predictions.ecd, 4)
    (['art'], -0.2096)
    """

    predictions: Predictions
    columns: Mapping[str, AnyArray]
    cluster: AnyArray | None = None

    def __repr__(self) -> str:
        tasks = list(dict.fromkeys(self.columns["task"].tolist()))
        named = ", ".join(tasks[:5]) + (f" and {len(tasks) - 5} more" if len(tasks) > 5 else "")
        n = self.predictions.n
        return f"{n} question{'' if n == 1 else 's'} of {named}"

    def evaluate(self, **options: Unpack[EvaluateOptions]) -> Evaluation:
        """Evaluate the questions.

        Parameters
        ----------
        **options
            Those of `safecal.evaluate`; ``by`` is one or more names of ``columns``, by default ``"task"`` where there
            are several, and ``cluster`` that of the passages.

        Returns
        -------
        Evaluation
            What `safecal.evaluate` returns.
        """
        by: Any = options.pop("by", None)
        if by is None:
            names = ["task"] if len(set(self.columns["task"].tolist())) > 1 else []
        else:
            names = [by] if isinstance(by, str) else list(by)
        missing = next((name for name in names if name not in self.columns), None)
        if missing is not None:
            raise fail(
                OptionError, "by", "must name columns of the samples", got=repr(missing),
                hint=near_names(missing, list(self.columns)),
            )  # fmt: skip
        groups: Any = {name: self.columns[name] for name in names} or None
        defaults: EvaluateOptions = {"cluster": self.cluster, "by": groups}
        return self.predictions.evaluate(**(defaults | options))


@steady
def read_samples(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    normalise: Normalise = "none",
    tokenizer: Any = None,
    drop_missing: bool = False,
) -> Samples:
    """Read logs of multiple choice: of lm-evaluation-harness, or of Inspect with ``inspect_ai``.

    Parameters
    ----------
    paths : path, or sequence of paths
        The files of one run: ``samples_*.jsonl``, ``.eval`` or JSON.
    normalise : {"none", "characters", "bytes", "tokens"}, default "none"
        What the log-likelihood of each choice is divided by. Nothing, by default: that is what the model says.
    tokenizer : callable or str, optional
        Needed for tokens: splits a text into tokens, or names a tokenizer of Hugging Face.
    drop_missing : bool, default False
        Whether questions without a target, or with a log-likelihood that is NaN, are left out instead of refused.

    Returns
    -------
    Samples
        Call ``.evaluate(by="task")`` on it. Questions may have different numbers of choices.

    Raises
    ------
    FileError
        Where a log is cut, holds questions twice, or holds what has no ECD.

    Examples
    --------
    >>> from safecal.compat.lm_eval import read_samples
    >>> read_samples("predictions.csv")
    Traceback (most recent call last):
    ...
    safecal.errors.FileError: predictions.csv does not exist.
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = [os.fspath(path) for path in listed]
    absent = next((path for path in files if not os.path.exists(path)), None)
    if absent is not None or not files:
        raise FileError("`paths` must name a file." if absent is None else f"{absent} does not exist.")
    source = SampleLogs(files, LengthScale.of(normalise, tokenizer))
    beside = tuple(name for name in source.columns if name not in ("target", "choices", "logits"))
    columns = source.chosen(Columns(None, (), "logits", by=beside, drop_missing=drop_missing))
    reader = Reader(columns)
    try:
        parts = list(reader.batches(source.batches(columns.names)))
    except InputError as error:
        raise about_columns(error, columns, FRAME) from error
    if not parts:
        raise FileError(f"every question of {source.name} has missing values; nothing is left.")
    joined = join_batches(parts)
    predictions: Any = joined.predictions
    predictions = replace(predictions, notes=(*left_out(source, reader), *predictions.notes))
    return Samples(predictions, dict(joined.by or {}), joined.cluster)


def process_results(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Give each question to the metrics ``acc``, ``ecd`` and ``temperature`` of a task.

    The right choice is the field ``gold``, ``answer``, ``label``, ``target`` or ``answerKey`` of the document: its
    number from 0, its letter, or its text among ``choices``. For other documents, write a function that calls `scored`.

    Parameters
    ----------
    doc : mapping
        The document.
    results : sequence of (float, bool)
        Log-likelihood of each choice, and whether it is the likeliest text of all.

    Returns
    -------
    dict
        What the harness hands to the aggregation of each metric.

    Examples
    --------
    >>> from safecal.compat.lm_eval import process_results
    >>> process_results({"answer": "B"}, [(-3.2, False), (-0.9, True)])["acc"]
    1.0
    """
    name = next((name for name in _RIGHT if name in doc), None)
    if name is None:
        raise fail(
            LabelError, "doc", f"must name the right choice in one of the fields {', '.join(_RIGHT)}",
            got=f"the fields {', '.join(map(str, doc))}", hint=_MOVE,
        )  # fmt: skip
    right, texts, size = doc[name], doc.get("choices"), len(results)
    if isinstance(texts, Mapping):  # as ARC has them
        texts = texts.get("label") if right in texts.get("label", ()) else texts.get("text")
    if isinstance(texts, Sequence) and isinstance(right, str) and right in texts:
        worded = list(texts).index(right)
        if right.strip().isdigit() and int(right) != worded:
            got = f"{right!r}, the number of one and the text of another"
            raise fail(LabelError, f'doc["{name}"]', "must name one choice", got=got, hint=_MOVE)
        right = worded
    elif isinstance(right, str) and right.strip().isdigit():
        right = int(right)
    elif isinstance(right, str) and len(right.strip()) == 1:
        right = ord(right.strip().upper()) - ord("A")
    if isinstance(right, bool) or not isinstance(right, int) or not 0 <= right < size:
        raise fail(
            LabelError, f'doc["{name}"]', f"must be the number, the letter or the text of one of {size} choices",
            got=show(doc[name]), hint=_MOVE,
        )  # fmt: skip
    return scored(results, right)


def scored(results: Sequence[tuple[float, bool]], right: int) -> dict[str, Any]:
    """Give one question to the metrics, where the right choice is known.

    Parameters
    ----------
    results : sequence of (float, bool)
        As the harness hands them to ``process_results``.
    right : int
        Number of the right choice, from 0.

    Returns
    -------
    dict
        ``acc``; ``ecd``, the excess of this question, whose mean is ECD; and ``temperature``, for its aggregation.

    Examples
    --------
    >>> from safecal.compat.lm_eval import scored
    >>> metrics = scored([(-3.2, False), (-0.9, True)], 0)
    >>> metrics["acc"], round(metrics["ecd"], 4), metrics["temperature"]
    (0.0, 2.0904, [0, [-3.2, -0.9]])
    """
    values = [float(value) for value, _ in results]
    question = _Question([right, values])
    accurate = 1.0 if int(np.argmax(values)) == right else 0.0
    return {"acc": accurate, "ecd": _predictions([question]).ecd, "temperature": question}


@final
class _Question(list[Any]):
    """The right choice and the log-likelihoods. The harness averages metrics that a task does not list: here to NaN."""

    def __radd__(self, other: float) -> float:
        return math.nan

    def __sub__(self, other: float) -> float:
        return math.nan


def _predictions(items: Sequence[Sequence[Any]]) -> Categorical:
    sizes = np.array([len(values) for _, values in items])
    logits = np.full((len(items), int(sizes.max(initial=2))), -np.inf)
    for row, (_, values) in zip(logits, items, strict=True):
        row[: len(values)] = values
    predictions = categorical([right for right, _ in items], logits=logits)
    return replace(predictions, choices=sizes) if (sizes < logits.shape[1]).any() else predictions


def temperature(items: Sequence[Sequence[Any]]) -> float:
    """Return the temperature that all questions of a task ask for: how many times too large the log-likelihoods are.

    Parameters
    ----------
    items : sequence of (int, sequence of float)
        The right choice of each question, and its log-likelihoods.

    Returns
    -------
    float
        1 is calibrated; more than 1 is over-confident; infinite where confidence carries no information.

    Examples
    --------
    >>> from safecal.compat.lm_eval import temperature
    >>> round(temperature([(0, [-1.0, -3.0])] * 7 + [(1, [-1.0, -3.0])] * 3), 2)
    2.36
    """
    return _predictions(items).evaluate(bins=None).temperature.value
