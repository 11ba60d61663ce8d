"""MLflow: log an evaluation to a run, with its metrics, its verdict and its report.

It needs ``pip install "safecal[mlflow]"``; ``mlflow-skinny`` is enough.
"""

import json
import math
from typing import Any

from .._checks import fail, show
from .._optional import require
from ..errors import InputError
from ..html import shortened
from ..inference import Interval
from ..judge.evaluation import Evaluation
from ..report import report_html

__all__ = ["log_evaluation"]

_LONGEST = 5000  # characters of a tag that every store of MLflow takes


def log_evaluation(
    evaluation: Evaluation,
    *,
    prefix: str = "safecal",
    report: bool = True,
    run_id: str | None = None,
    step: int | None = None,
) -> str:
    """Log an evaluation to a run of MLflow.

    Metrics are named ``safecal/ecd`` and so on: ``ecd``, ``temperature`` and ``mistakes_ratio`` with the ends of their
    intervals, ``worst_ecd_low`` (the lower bound of ECD in the worst place: a range of the predictions, or a group),
    ``nll``, ``ece``, ``esce``, ``brier``, ``accuracy``, ``p_value``, ``n`` and ``n_impossible``. One that does not
    exist for these predictions is left out. The tags ``safecal.decision`` and ``safecal.reason`` hold the verdict, and
    ``safecal.where`` the worst place that is over-confident or suspected to be, or ``nowhere``. The report and the JSON
    document, which `Evaluation.from_dict` reads, become artifacts in the folder ``safecal``.

    Parameters
    ----------
    evaluation : Evaluation
        What to log.
    prefix : str, default "safecal"
        What names begin with, and the folder of the artifacts.
    report : bool, default True
        Whether to log the HTML report, too.
    run_id : str, optional
        The run; by default the active one, and a new one where none is active.
    step : int, optional
        The step of the metrics, such as an epoch. The artifacts then lie in a folder of their own for each step.

    Returns
    -------
    str
        The id of the run.

    Raises
    ------
    MissingExtraError
        When MLflow is not installed.

    Examples
    --------
    >>> import safecal
    >>> from safecal.compat.mlflow import log_evaluation
    >>> result = safecal.evaluate([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6])
    >>> run_id = log_evaluation(result)  # doctest: +SKIP
    """
    if not isinstance(evaluation, Evaluation):
        hint = "make one with `safecal.evaluate(...)`."
        raise fail(InputError, "evaluation", "must be an Evaluation", got=show(evaluation), hint=hint)
    mlflow = require("mlflow", "logging to MLflow needs mlflow", "mlflow")
    if run_id is None and mlflow.active_run() is None:
        with mlflow.start_run() as run:
            return _log(mlflow.MlflowClient(), run.info.run_id, evaluation, prefix, report, step)
    run_id = run_id or mlflow.active_run().info.run_id
    return _log(mlflow.MlflowClient(), run_id, evaluation, prefix, report, step)


def _log(client: Any, run_id: Any, evaluation: Evaluation, prefix: str, report: bool, step: int | None) -> str:
    for name, value in _metrics(evaluation).items():
        client.log_metric(run_id, f"{prefix}/{name}", value, step=step)
    verdict = evaluation.verdict
    client.set_tag(run_id, f"{prefix}.decision", verdict.decision)
    client.set_tag(run_id, f"{prefix}.reason", shortened(verdict.reason, _LONGEST))
    client.set_tag(
        run_id, f"{prefix}.where", shortened(verdict.where[0].label, _LONGEST) if verdict.where else "nowhere"
    )
    folder = prefix if step is None else f"{prefix}/step-{step}"
    client.log_text(run_id, json.dumps(evaluation.to_dict(), allow_nan=False), f"{folder}/evaluation.json")
    if report:
        client.log_text(run_id, report_html(evaluation), f"{folder}/report.html")
    return str(run_id)


def _metrics(evaluation: Evaluation) -> dict[str, float]:
    """Return every number that exists."""
    intervals = {"ecd": evaluation.interval, "temperature": evaluation.temperature}
    if evaluation.mistakes is not None:
        intervals["mistakes_ratio"] = evaluation.mistakes.ratio
    ends = {f"{name}{end}": x for name, i in intervals.items() for end, x in _ends(i)}
    numbers = ends | {
        "worst_ecd_low": _worst(evaluation),
        "nll": evaluation.nll,
        "ece": evaluation.ece,
        "esce": evaluation.esce,
        "brier": evaluation.brier,
        "accuracy": evaluation.accuracy,
        "p_value": evaluation.test.p_value,
        "n": float(evaluation.n),
        "n_impossible": float(evaluation.summary.n_impossible),
    }
    return {name: value for name, value in numbers.items() if not math.isnan(value)}


def _ends(interval: Interval) -> tuple[tuple[str, float], ...]:
    return ("", interval.value), ("_low", interval.low), ("_high", interval.high)


def _worst(evaluation: Evaluation) -> float:
    """Return the lower bound of the worst place, or of the worst range where there is no such place."""
    places, worst = evaluation.verdict.where, evaluation.local.worst
    return places[0].ecd.low if places else math.nan if worst is None else worst.ecd.low
