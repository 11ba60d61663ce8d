"""Several looks at the same rows: what each is called, what its verdict may do, and the decision of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self, final

from .. import documents
from .._types import Decision
from ..errors import MergeError

__all__ = ["Look", "are_ends", "decide"]


@final
@dataclass(frozen=True, slots=True)
class Look:
    """One way to look at rows: where there are several ways, or where one alone must not call the rows SAFE or UNSAFE.

    Attributes
    ----------
    name : str
        What it is called in a table: ``"moments"``.
    seen : str
        How it sees, inside a sentence: ``"by the moments of the draws"``.
    condemns : bool, default True
        Whether rows that are UNSAFE by this look are UNSAFE. A look that overstates over-confidence must not condemn.
    acquits : bool, default True
        Whether SAFE needs this look to be SAFE. If no look acquits, the rows are never SAFE. A look that understates
        over-confidence must not acquit.
    why : str, default ""
        A sentence that says why it does not both condemn and acquit.

    Examples
    --------
    >>> moments = Look("moments", "by the moments of the draws")
    >>> shape = Look("neighbours", "by neighbours among the draws", acquits=False)
    >>> decide([moments, shape], ["SAFE", "UNDETERMINED"])
    ('SAFE', 0)
    >>> decide([moments, shape], ["SAFE", "UNSAFE"])
    ('UNSAFE', 1)
    """

    name: str
    seen: str
    condemns: bool = True
    acquits: bool = True
    why: str = ""

    def __add__(self, other: Self) -> Self:
        """Look at rows of both: what one of them must not do, both together must not."""
        if self.name != other.name:
            hint = "keep such rows apart."
            raise MergeError(
                f"tallies must look at their rows in the same ways: {self.name}, {other.name}.\n\nHint: {hint}"
            )
        first = self if self.acquits + self.condemns <= other.acquits + other.condemns else other
        return replace(first, condemns=self.condemns and other.condemns, acquits=self.acquits and other.acquits)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """Read what `to_dict` wrote."""
        return cls(**_read(document))


_read: Any = documents.record({
    "name": documents.words,
    "seen": documents.words,
    "condemns": documents.flag,
    "acquits": documents.flag,
    "why": documents.text,
})  # fmt: skip


def decide(looks: Sequence[Look], decisions: Sequence[Decision]) -> tuple[Decision, int]:
    """Decide by all looks together.

    Parameters
    ----------
    looks : sequence of Look
        At least one.
    decisions : sequence of str
        What each of them says by itself.

    Returns
    -------
    decision : {"SAFE", "UNSAFE", "UNDETERMINED"}
        UNSAFE where a look that condemns says so; SAFE where each that acquits says so, and there is one.
    index : int
        The look that decided, the first of several.
    """
    pairs = list(enumerate(zip(looks, decisions, strict=True)))
    condemning = [i for i, (look, decision) in pairs if look.condemns and decision == "UNSAFE"]
    if condemning:
        return "UNSAFE", condemning[0]
    acquitting = [i for i, (look, _) in pairs if look.acquits]
    doubtful = [i for i in acquitting if decisions[i] != "SAFE"]
    if doubtful or not acquitting:
        return "UNDETERMINED", (doubtful or [0])[0]
    return "SAFE", acquitting[0]


def are_ends(looks: Sequence[Look | None]) -> bool:
    """Tell whether two looks are the ends of a bound: the larger one can only acquit, the smaller one only condemn."""
    may = [(look.acquits, look.condemns) for look in looks if look is not None]
    return may == [(True, False), (False, True)]
