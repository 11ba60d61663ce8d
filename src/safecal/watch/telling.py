"""Who is told of an alarm: at least once, also when the first try fails or the watcher dies in between."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from ..errors import SafecalError
from .history import Raised
from .store import Store

__all__ = ["Teller", "channels"]


@final
@dataclass(slots=True)
class Teller:
    """Delivers the alarms that the store says have not been delivered.

    Attributes
    ----------
    store : Store
        Alarms stand in it before anyone is told.
    channels : dict of str to callable
        By name, what tells of an alarm, and raises when it could not.
    tell : callable
        Takes one line about what went wrong.
    pause : float
        Seconds after a failure before the channel is tried again.
    clock : callable
        Seconds that pass.
    """

    store: Store
    channels: dict[str, Callable[[Raised], None]]
    tell: Callable[[str], None]
    pause: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _again: dict[str, float] = field(default_factory=dict)

    def deliver(self, *, now: bool = False) -> int:
        """Try what is still to be delivered, and return how many deliveries failed.

        Parameters
        ----------
        now : bool, default False
            Whether to try a channel that has just failed.
        """
        failed = 0
        for name, send in self.channels.items():
            if not now and self.clock() < self._again.get(name, -math.inf):
                continue
            waiting = self.store.undelivered(name)
            for place, (number, raised) in enumerate(waiting):
                try:
                    send(raised)
                except (SafecalError, OSError) as error:
                    failed += len(waiting) - place
                    self._again[name] = self.clock() + self.pause
                    self.tell(f"an alarm was not delivered by {name}, and will be tried again: {error}")
                    break
                self.store.delivered(number, name)
        return failed


def channels(command: str | None, webhook: str | None) -> dict[str, Callable[[Raised], None]]:
    """Return the channels that were asked for."""
    from . import notify

    found: dict[str, Callable[[Raised], None]] = {}
    if command is not None:
        found["command"] = lambda raised: notify.run_command(command, raised, timeout=60.0)
    if webhook is not None:
        found["webhook"] = lambda raised: notify.post(webhook, raised, attempts=3, timeout=10.0)
    return found
