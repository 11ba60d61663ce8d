"""Text of strangers, as it may be shown: nothing in it moves the cursor, colours a line or turns the writing around."""

import unicodedata

__all__ = ["shortened", "visible"]

# They reorder the text around them.
_DIRECTIONS = {chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text with what cannot be seen written out: control characters, half characters, changes of direction.

    Examples
    --------
    >>> visible("one\x00two")
    'one\\x00two'
    """
    if text.isprintable():
        return text
    # A document has a hundred thousand characters, and a hundred different ones.
    return text.translate({ord(c): ascii(c)[1:-1] for c in set(text) if c not in keep and _unseen(c)})


def _unseen(character: str) -> bool:
    return character in _DIRECTIONS or unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp", "Cn"}


def shortened(text: str, most: int) -> str:
    """Return a text in one line with nothing invisible in it; where it is long, its middle is left out.

    Examples
    --------
    >>> shortened("a name that is long", 12)
    'a name t…ong'
    """
    text = visible(text)
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail].rstrip()}…{text[len(text) - tail :].lstrip()}"
