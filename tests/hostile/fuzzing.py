"""Calls that are drawn from a seed, one after the other; what came of them is counted and printed."""

import sys
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from safecal.errors import SafecalError

Draw = Callable[[np.random.Generator], tuple[str, Callable[[], bool]]]


def tried(draw: Draw, seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """Try so many calls, each of which tells whether its answer is right; return the counts, and what went wrong."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for k in range(count):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is drawn, not of what is done with it
            name, call = draw(np.random.default_rng([seed, k]))
        counts["tried"] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                right = call()
            counts["accepted" if right else "silent wrong"] += 1
            if not right:
                faults.append(f"[{seed}, {k}] {name}: a wrong answer")
        except SafecalError:
            counts["refused"] += 1
        except Exception as error:  # noqa: BLE001 - what is looked for
            counts["tracebacks"] += 1
            faults.append(f"[{seed}, {k}] {name}: {type(error).__name__}: {error}")
    return counts, faults


def fuzz(draw: Draw, seed: int, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Try so many calls, and print the counts; none may be wrong, or raise what is not ours."""
    counts, faults = tried(draw, seed, count)
    names = ("tried", "accepted", "refused", "silent wrong", "tracebacks")
    with capsys.disabled():
        sys.stdout.write("\n" + ", ".join(f"{name} {counts[name]}" for name in names) + "\n")
    assert not faults, "\n".join(faults[:20])
    assert counts["accepted"] > 0.1 * counts["tried"]
