"""A report: one HTML file that says whether a model is over-confident, and shows it."""

import os
from datetime import datetime

from .._checks.message import fail, show
from ..errors import InputError
from ..files import write_atomically
from ..html.markup import in_utc
from ..judge.evaluation import Evaluation
from ..maps.result import Recalibration
from .page import Context, page

__all__ = ["report_html", "write_report"]


def report_html(
    evaluation: Evaluation,
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    after: Evaluation | None = None,
    fix: Recalibration | None = None,
    fix_command: str | None = None,
    created: datetime | None = None,
) -> str:
    """Return a report as one HTML file.

    The verdict comes first, then what it means and what to do, the numbers, pictures, tables, and how to make it all
    again. The file asks the network for nothing, holds results only, and is smaller than 200 kB unless the texts given
    here are longer. Whatever comes from the data is escaped.

    Parameters
    ----------
    evaluation : Evaluation
        What to report.
    title : str, optional
        The heading; by default a question.
    source : str, optional
        Where the data come from, such as the name of a file.
    command : str, optional
        The command line that makes the report again.
    after : Evaluation, optional
        The same model after recalibration, to be shown beside it.
    fix : Recalibration, optional
        What `safecal.recalibrate` found for the same rows: the report says what it would win, and has the lines to
        paste. Without it, a report of a model that is not SAFE says how to try one.
    fix_command : str, optional
        The command line that finds the fix.
    created : datetime, optional
        When the report was made; by default now. Without a zone it is UTC. Given the same, reports are the same.

    Returns
    -------
    str
        The file.

    See Also
    --------
    write_report : Write it to a file.

    Examples
    --------
    >>> import safecal
    >>> from safecal.report import report_html
    >>> result = safecal.evaluate([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6])
    >>> report_html(result, title="Four rows").splitlines()[0]
    '<!DOCTYPE html>'
    """
    evaluated = "make one with `safecal.evaluate(...)`, or call `.evaluate()` on predictions."
    fixed = "make one with `safecal.recalibrate(...)`, from the rows that were evaluated."
    for name, given, kind, what, hint in (
        ("evaluation", evaluation, Evaluation, "an Evaluation", evaluated),
        ("after", after, Evaluation | None, "an Evaluation", evaluated),
        ("fix", fix, Recalibration | None, "a Recalibration", fixed),
    ):
        if not isinstance(given, kind):
            raise fail(InputError, name, f"must be {what}", got=show(given), hint=hint)
    if fix is not None and (fix.before.n, fix.before.family) != (evaluation.n, evaluation.family):
        got = f"one of {fix.before.n} {fix.before.family} rows, and {evaluation.n} {evaluation.family} ones"
        raise fail(InputError, "fix", "must be of the rows that were evaluated", got=got, hint=fixed)
    context = Context(title or "Is this model over-confident?", source, command, in_utc(created), fix_command)
    return page(evaluation, context, after, fix)


def write_report(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    after: Evaluation | None = None,
    fix: Recalibration | None = None,
    fix_command: str | None = None,
    created: datetime | None = None,
) -> None:
    """Write a report to one HTML file, whole or not at all.

    Parameters
    ----------
    evaluation : Evaluation
        What to report.
    path : str or os.PathLike
        Where to; a file that is there is replaced.
    title, source, command, after, fix, fix_command, created : optional
        As in `report_html`.

    Raises
    ------
    FileError
        When the folder does not exist, or the path is a folder.

    See Also
    --------
    report_html : The same as text.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import safecal
    >>> from safecal.report import write_report
    >>> result = safecal.evaluate([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(result, Path(folder, "report.html"))
    ...     Path(folder, "report.html").stat().st_size < 200_000
    True
    """
    text = report_html(
        evaluation, title=title, source=source, command=command, after=after, fix=fix, fix_command=fix_command,
        created=created,
    )  # fmt: skip
    write_atomically(path, text)
