"""One alpha for many: shards of a monitor, groups of a recalibration. The union keeps what each by itself does not."""

import numpy as np
import pytest
from models import error
from scipy import special

from safecal import SafeTemperature
from safecal.monitor import Monitor

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]
ALPHA = 0.05


def _alarms(monitors: tuple[Monitor, ...], rng: np.random.Generator, n: int = 300) -> bool:
    """Watch calibrated rows in parts, then together; tell whether any monitor called the model uncalibrated."""
    found = False
    for monitor in (*monitors, monitors[0]):
        z = rng.normal(0.0, 2.0, n)
        alarms = monitor.update(rng.random(n) < special.expit(z), logits=z)
        found |= any(alarm.kind == "since the start" for alarm in alarms)
        if monitor is monitors[-1]:
            for other in monitors[1:]:
                monitors[0].merge(other)
    return found


def test_shards_and_what_they_are_merged_into_keep_alpha() -> None:
    repeats = 400
    rng = np.random.default_rng(1)
    shared = sum(_alarms(Monitor().shards(4), rng) for _ in range(repeats)) / repeats
    each = sum(_alarms(tuple(Monitor() for _ in range(4)), rng) for _ in range(repeats)) / repeats
    assert shared <= ALPHA + error(ALPHA, repeats)
    assert each > 2.0 * shared


def _over_confident_group(shared: bool, rng: np.random.Generator, groups: int = 10, n: int = 100) -> bool:
    z = rng.normal(0.0, 2.0, groups * n)
    y = rng.random(groups * n) < special.expit(z)
    fitted = SafeTemperature(ALPHA, shared=shared).fit(y, logits=2.0 * z, by=np.arange(groups * n) % groups)
    assert fitted.groups_ is not None
    return any(group.temperature < 2.0 for group in fitted.groups_.values())  # sharper than the truth


def test_of_ten_groups_that_share_alpha_none_is_over_confident() -> None:
    repeats = 30
    rng = np.random.default_rng(2)
    shared, each = (sum(_over_confident_group(s, rng) for _ in range(repeats)) / repeats for s in (True, False))
    assert shared <= ALPHA + error(ALPHA, repeats)
    assert each > ALPHA + error(ALPHA, repeats)
