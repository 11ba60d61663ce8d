"""Names of columns that say another order than their places do."""

from collections.abc import Sequence
from os.path import commonprefix
from typing import Any

from ..errors import LabelError
from .message import fail, phrase, show

_SAID = (("false", "true"), ("no", "yes"), ("neg", "pos"), ("negative", "positive"))  # 0 and 1, in words


def refuse_reversed(columns: Sequence[str], name: str) -> None:
    """Refuse two columns whose names say that the first is that of 1, where outcomes are 0 and 1: by place it is 0."""
    if len(columns) != 2:
        return
    first, second = (column.lower() for column in columns)
    for no, yes in _SAID:
        ends = first.endswith(yes) and second.endswith(no) and first[: -len(yes)] == second[: -len(no)]
        begins = first.startswith(yes) and second.startswith(no) and first[len(yes) :] == second[len(no) :]
        if ends or begins:
            option = "--prob" if name == "y_prob" else "--logits"
            hint = phrase("reversed", name=name, option=option, first=columns[1], second=columns[0])
            rule = "must name the column of 0 before that of 1, where outcomes are 0 and 1"
            raise fail(LabelError, name, rule, got=f"{columns[0]!r} before {columns[1]!r}", hint=hint)


def refuse_other_order(frame: Any, labels: Any, name: str) -> None:
    """Refuse a frame, without importing its library, whose columns name the classes in another order than is meant.

    ``labels`` are the names of the classes, in their order; None where outcomes are their numbers.
    """
    columns = getattr(frame, "columns", None)
    if columns is None or callable(columns):
        return
    names = list(columns)
    if not all(isinstance(column, str) for column in names):
        return
    if labels is None:
        refuse_reversed(names, name)
        return
    wanted = list(labels)
    common = commonprefix(names)  # noqa: RUF071 (character by character is what is meant)
    for ends in (names, [column[len(common) :] for column in names]):
        if ends != wanted and set(ends) == set(wanted):
            hint = f"pass `labels={show(ends)}`, or `{name}[{show([names[ends.index(label)] for label in wanted])}]`."
            rule = f"must name the classes in the order of the columns of `{name}`"
            raise fail(LabelError, "labels", rule, got=f"{show(wanted)} and {show(names)}", hint=hint)
