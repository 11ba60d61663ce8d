"""The tables of the study: as text for a terminal, as Markdown between the markers of a page, as JSON beside it."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from .. import documents
from ..errors import FileError
from ..files import parsed_json, write_atomically
from .column_checks import check_column
from .published import published_table1
from .study import CLIPS, ON_LOGIT, ON_PROBABILITY, Score, Study

__all__ = ["NAME", "markers", "page_with", "read_study", "study_text", "write_study"]

NAME = "table1-study"


def study_text(study: Study) -> str:
    """Return the scores of the candidates as text of at most 100 columns, and the draws that were found.

    Parameters
    ----------
    study : Study
        From `run_study`.

    Returns
    -------
    str
        The candidates in the order of their fit.
    """
    head = f"{'process':<38}{'estimate':<26}{'χ², σ = .5':>11}{'σ = 2':>8}{'p-value':>9}{'cells':>7}"
    lines = [head, "-" * len(head)]
    for score in sorted(study.scores, key=lambda s: (-s.agreeing, sum(s.chi2))):
        chi2 = f"{_large(score.chi2[0]):>11}{_large(score.chi2[1]):>8}"
        lines.append(f"{score.name:<38}{score.formula:<26}{chi2}{_p(score.p_value):>9}{score.agreeing:>4}/66")
    best = study.matches[0]
    closest = f"{best.generator}({best.seed}), {best.order}: {best.agreeing} of 33 cells without noise"
    lines += ["", f"χ² of 23 cells each, {study.replications} replications. Cells: equal to the printed digits."]
    return "\n".join([*lines, f"The closest draws of {study.seeds} seeds: {closest}."])


def write_study(folder: str | os.PathLike[str], study: Study) -> tuple[Path, Path]:
    """Write the study as JSON, and its tables between the markers of the page beside it.

    Parameters
    ----------
    folder : str or os.PathLike
        Of the page; a page that does not exist is made.
    study : Study
        From `run_study`.

    Returns
    -------
    tuple of Path
        The document and the page.
    """
    source, page = Path(folder) / f"{NAME}.json", Path(folder) / f"{NAME}.md"
    write_atomically(source, json.dumps(_rounded(study.to_dict()), indent=1, ensure_ascii=False) + "\n")
    blank = "# Table 1: the study\n\n" + "".join("{}\n{}\n\n".format(*markers(name)) for name in _RENDER)
    text = page.read_text(encoding="utf-8") if page.exists() else blank
    write_atomically(page, page_with(text, read_study(folder)))
    return source, page


def read_study(folder: str | os.PathLike[str]) -> Study:
    """Read the study that `write_study` wrote.

    Parameters
    ----------
    folder : str or os.PathLike
        Where it lies.

    Returns
    -------
    Study
        As it was written.
    """
    path = Path(folder) / f"{NAME}.json"
    if not path.is_file():
        raise FileError(f"{path} does not exist.\n\nHint: safecal paper study --out {os.fspath(folder)!r}")
    with documents.of_file(path):
        return Study.from_dict(parsed_json(path.read_bytes()))


def markers(name: str) -> tuple[str, str]:
    """Return the comments between which a table stands."""
    return f"<!-- study: {name} -->", f"<!-- end: {name} -->"


def page_with(text: str, study: Study) -> str:
    """Return a page with the tables of a study between its markers."""
    for name, render in _RENDER.items():
        begin, end = markers(name)
        if begin not in text or end not in text:
            raise FileError(f"the page lacks the markers {begin} and {end}.")
        text_before, text_after = text.split(begin)
        text = f"{text_before}{begin}\n\n{render(study)}\n\n{end}{text_after.split(end)[1]}"
    return text


def _candidates(study: Study) -> str:
    head = ["process", "estimate", "fitted", "χ²", "uncorrelated χ²", "p-value", "ECE", "ECD", "outer share", "cells"]
    published = published_table1()[1:]
    outer = [check_column(column).outer for column in published]
    published_line = [
        "**published**",
        "",
        "",
        "",
        "",
        "",
        _pair(c.ece[-1] for c in published),
        _pair(c.ecd[-1] for c in published),
    ]
    lines = [[*published_line, _pair(f"{low:.3f} to {high:.3f}" for low, high in outer), "66"]]
    lines += [_line(score, bold=score == study.best) for score in study.scores]
    text = (
        "Each pair is for σ = 0.5 / σ = 2. χ² is the squared distance of 23 published cells (ESCE and ECD of ten bins, "
        f"three weighted sums) from their mean over {study.replications} simulations of 10 000 rows, in the covariance "
        "that they have there; about 23 for the true process. The p-value is that of both columns together. ECE, ECD "
        "and the share of rows in bins 1 and 10 are means. The last column counts the cells, of 66, that come out to "
        "the printed digits from the draws found below."
    )
    return f"{text}\n\n{_table(head, lines)}"


def _line(score: Score, bold: bool) -> list[str]:
    cells = [
        f"**{score.name}**" if bold else score.name,
        score.formula,
        str(score.fitted or ""),
        _pair(map(_large, score.chi2)),
        _pair(map(_large, score.plain)),
        _p(score.p_value),
        _pair(f"{x:.4f}" for x in score.ece),
        _pair(f"{x:.4f}" for x in score.ecd),
        _pair(f"{x:.3f}" for x in score.outer),
    ]
    return [*cells, f"**{score.agreeing}**" if bold else str(score.agreeing)]


def _blends(study: Study) -> str:
    head = ["a", *(f"b = {b:g}" for b in ON_PROBABILITY)]
    pairs = zip(ON_LOGIT, study.blends, strict=True)
    return _table(head, [[f"{a:g}", *map(_large, line)] for a, line in pairs])


def _clips(study: Study) -> str:
    return _table(["clip", *(f"{clip:g}" for clip in CLIPS)], [["χ²", *map(_large, study.clips)]])


def _draws(study: Study) -> str:
    head = ["seed", "generator", "drawn in this order", "largest deviation of an ESCE", "cells of 33"]
    lines = [[m.seed, f"`{m.generator}`", m.order, f"{m.largest:.5f}", m.agreeing] for m in study.matches]
    text = f"The closest of {study.seeds} seeds, two generators and four ways to draw:"
    return f"{text}\n\n{_table(head, lines)}"


_RENDER: dict[str, Callable[[Study], str]] = {
    "candidates": _candidates,
    "blends": _blends,
    "clips": _clips,
    "draws": _draws,
}


def _table(head: Sequence[object], lines: Iterable[Sequence[object]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(x) for x in row) + " |" for row in rows)


def _pair(texts: Iterable[str]) -> str:
    return " / ".join(texts)


def _large(value: float) -> str:
    return f"{value:.1f}" if value < 1000.0 else "> 1000"


def _p(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else "< 0.01"


def _rounded(value: Any) -> Any:
    """Return a document with six significant digits, so that it hardly differs between machines."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value
