"""What a watcher must not forget, and the promise that a batch counts once."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from ..errors import OptionError
from ..monitor import Monitor
from .history import History, Point, Raised

__all__ = ["WHOLE", "Aside", "Known", "Store", "Taken", "check_settings"]

WHOLE = "all of it"  # the place of a batch that was set aside whole


@final
@dataclass(frozen=True, slots=True)
class Aside:
    """Something that could not be counted.

    Attributes
    ----------
    batch : str
        The batch it belongs to.
    digest : str
        SHA-256 of the content of that batch.
    place : str
        Where: a row, or "all of it".
    reason : str
        Why.
    """

    batch: str
    digest: str
    place: str
    reason: str


@final
@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a batch that was counted: the SHA-256 of its content, and how its file looked."""

    digest: str
    stamp: str


@final
@dataclass(frozen=True, slots=True)
class Taken:
    """A batch, ready to be kept: all of it in one transaction.

    Attributes
    ----------
    batch, digest, stamp : str
        Its id, the SHA-256 of its content, and how its file looked (empty where there is none).
    monitor : Monitor
        The state after it.
    settings : mapping
        The settings after it: columns that were found by name are then known.
    points : tuple of Point
        One for each window that the batch has rows of.
    alarms : tuple of Raised
        That it raised.
    asides : tuple of Aside
        Rows of it that were not counted.
    """

    batch: str
    digest: str
    stamp: str
    monitor: Monitor
    settings: Mapping[str, Any]
    points: tuple[Point, ...]
    alarms: tuple[Raised, ...] = ()
    asides: tuple[Aside, ...] = ()


class Store(ABC):
    """The memory of one watched model.

    A method that writes is one transaction: when it returns, what it wrote survives a kill, and when it raises,
    nothing has changed.
    """

    settings: Mapping[str, Any]

    @abstractmethod
    def monitor(self) -> Monitor:
        """Return the state."""

    @abstractmethod
    def known(self, batch: str) -> Known | None:
        """Return what is known of a batch, if it was counted."""

    @abstractmethod
    def restamp(self, batch: str, stamp: str) -> None:
        """Remember how the file of a batch looks that was counted, and came again."""

    @abstractmethod
    def batches(self, start: str) -> Iterator[str]:
        """Yield the ids of the batches that were counted and begin with some text, in their order."""

    @abstractmethod
    def commit(self, taken: Taken) -> None:
        """Keep a batch and everything that follows from it. A batch that was counted is refused."""

    @abstractmethod
    def quarantine(self, aside: Aside) -> None:
        """Remember that a batch was set aside; once, however often it is said."""

    @abstractmethod
    def quarantined(self, batch: str, digest: str) -> bool:
        """Tell whether a batch with this content was set aside whole."""

    @abstractmethod
    def asides(self) -> tuple[Aside, ...]:
        """Return all that was set aside, in its order."""

    @abstractmethod
    def count(self) -> int:
        """Return how many rows and batches were set aside."""

    @abstractmethod
    def alarms(self) -> tuple[Raised, ...]:
        """Return every alarm, in its order."""

    @abstractmethod
    def undelivered(self, channel: str) -> tuple[tuple[int, Raised], ...]:
        """Return the alarms that a channel has not delivered, with their numbers."""

    @abstractmethod
    def delivered(self, number: int, channel: str) -> None:
        """Remember that a channel has delivered an alarm."""

    @abstractmethod
    def request(self, group: Any) -> None:
        """Ask for the detector of a group, or of all rows (None), to be started anew."""

    @abstractmethod
    def grant(self) -> tuple[Any, ...]:
        """Start the detectors anew that were asked for, and return their groups."""

    @abstractmethod
    def last(self) -> Point | None:
        """Return the last point."""

    @abstractmethod
    def history(self) -> History:
        """Return everything."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_settings(stored: Mapping[str, Any], asked: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the settings to go on with; refuse what would mean another test than the one that was begun.

    Parameters
    ----------
    stored : mapping
        What the store was begun with.
    asked : mapping
        What is asked for now. A value of None asks for nothing.
    name : str
        Of the store, for the message.

    Returns
    -------
    dict
        The stored settings.

    Examples
    --------
    >>> from safecal.watch.store import check_settings
    >>> check_settings({"alpha": 0.05, "y": "label"}, {"alpha": 0.05, "y": None}, "watch.sqlite")
    {'alpha': 0.05, 'y': 'label'}
    """
    for key, value in asked.items():
        if value is not None and stored.get(key) != value:
            option = "--" + key.replace("_", "-")
            raise OptionError(
                f"{name} was begun with {_shown(option, stored.get(key))}; got {_shown(option, value)}.\n\n"
                "Hint: evidence counts under the settings it was begun with. Give those, or another `--store`."
            )
    return dict(stored)


def _shown(option: str, value: Any) -> str:
    if value is None or value == [] or value is False:
        return f"no `{option}`"
    if isinstance(value, list):
        return "`" + " ".join(f"{option} {x}" for x in value) + "`"
    return f"`{option}`" if value is True else f"`{option} {value}`"
