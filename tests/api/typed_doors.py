"""What a type checker makes of calls at the doors: `mypy` reads this file together with the package.

A call that must be refused carries an ignored error. Where the checker finds no error, it complains that the comment is
not needed.
"""

import array

import numpy as np

import safecal
from safecal.maps import Temperature


def accepted(column: np.ndarray, matrix: np.ndarray) -> None:
    """Arrays, lists, tuples, buffers; labels of any type; groups by one column or by several."""
    safecal.evaluate(column, column, by=column)
    safecal.evaluate([True, False], (0.2, 0.7), by={"site": ["a", "b"], "day": [1, 2]}, cluster=column)
    safecal.evaluate(["yes", None], logits=array.array("d", [0.2, 0.7]), sample_weight=range(2))
    safecal.evaluate(column, [[0.2, 0.8], [0.7, 0.3]], labels=["cat", "dog"])
    safecal.ecd(column, column)
    safecal.gaussian(matrix, matrix, std=1.0)
    safecal.gaussian(matrix, matrix, cov=np.eye(2)).evaluate(by=column)
    safecal.particles(column, (np.ones(5) for _ in range(3)))
    Temperature().fit(column, column, by=[1, 2]).apply([0.2, 0.7], by=[1, 2])


def refused(column: np.ndarray) -> None:
    """One number, a set, an iterator; an option that is none of a few."""
    safecal.evaluate(1, 0.5)  # type: ignore[arg-type]
    safecal.evaluate(column, {0.2, 0.7})  # type: ignore[arg-type]
    safecal.evaluate(column, (p for p in (0.2, 0.7)))  # type: ignore[arg-type]
    safecal.evaluate(column, column, by=1)  # type: ignore[arg-type]
    safecal.evaluate(column, column, strategy="equal")  # type: ignore[arg-type]
    safecal.evaluate(column, column, treshold=0.1)  # type: ignore[call-arg]
    safecal.ecd(column, 0.5)  # type: ignore[arg-type]
    safecal.gaussian(column, column, cov=1.0)  # type: ignore[arg-type]
    safecal.calibration_test(column, 0.5)  # type: ignore[arg-type]
    safecal.compare(column, column)  # type: ignore[call-overload]
    Temperature().fit(1, column)  # type: ignore[arg-type]
