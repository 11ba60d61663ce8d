"""Documents of maps: which class reads which."""

from typing import Any

from .. import documents
from .affine import Affine
from .base import Map
from .beta import Beta
from .identity import Identity
from .isotonic import Isotonic
from .states import Axes
from .temperature import SafeTemperature, Temperature
from .vector import Vector

__all__ = ["MAPS", "PLAIN", "kind_of", "read_plain"]

PLAIN: dict[str, type[Map]] = {
    kind._kind: kind for kind in (Identity, Temperature, SafeTemperature, Affine, Beta, Isotonic, Vector, Axes)
}


MAPS = (*PLAIN, "safe")


def kind_of(document: Any) -> str:
    """Return the kind of a document, without what all of them begin with; empty for what is none."""
    kind = document.get("kind") if isinstance(document, dict) else None
    return kind.removeprefix("safecal.") if isinstance(kind, str) else ""


def read_plain(document: Any) -> Map:
    """Read the document of a map that is not `Safe`."""
    kind = kind_of(document)
    if kind not in PLAIN:
        documents.refuse("must be the document of a map", kind or type(document).__name__)
    return PLAIN[kind].from_dict(document)
