"""The glossary has every word that a verdict may send someone to look up."""

import inspect
import re
from pathlib import Path

import safecal

PAGE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def _rows() -> list[tuple[str, str]]:
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [row for row in rows if row[0] not in ("word", "---")]


def test_every_public_class_is_explained() -> None:
    explained = {name for _, meaning in _rows() for name in re.findall(r"`([A-Z]\w+)`", meaning)}
    names = {name for name in safecal.__all__ if inspect.isclass(getattr(safecal, name))}
    assert names - {"SafecalError"} <= explained
    assert explained <= names


def test_every_word_has_one_row_in_alphabetical_order() -> None:
    words = [word.lower() for word, _ in _rows()]
    assert words == sorted(set(words), key=lambda word: word.replace("-", ""))
    assert {"safe", "unsafe", "undetermined", "excess", "surprisal", "entropy", "ecd"} <= set(words)
