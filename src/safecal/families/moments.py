"""Weighted central moments that grow a batch at a time, without cancellation."""

from typing import final

import numpy as np

from .._types import FloatArray
from .predictions import Cumulants

__all__ = ["Moments"]


@final
class Moments:
    """Running total weight, mean, and second and third central moments of several rows of values.

    Weights are logarithms, because those of a tempered density span more than the range of a float. Batches are merged
    by the formulas for a mixture of two populations, so only differences of means are ever raised to a power.
    """

    __slots__ = ("log_total", "mean", "second", "third")

    def __init__(self, rows: int) -> None:
        self.log_total = np.full(rows, -np.inf)
        self.mean = np.zeros(rows)
        self.second = np.zeros(rows)
        self.third = np.zeros(rows)

    def add(self, log_weight: FloatArray, values: FloatArray) -> None:
        """Take in a (batch, rows) array of values; a log-weight of -inf leaves a value out, whatever it is."""
        top = log_weight.max(axis=0)
        top = np.where(np.isneginf(top), 0.0, top)
        weight = np.exp(log_weight - top)
        total = weight.sum(axis=0)
        if np.isneginf(values).any():
            values = np.where(weight == 0.0, 0.0, values)
        weight /= np.where(total > 0.0, total, 1.0)
        mean = np.einsum("ij,ij->j", weight, values)
        gap = values - mean
        weight *= gap
        with np.errstate(divide="ignore"):
            log_total = top + np.log(total)
        second = np.einsum("ij,ij->j", weight, gap)
        weight *= gap
        self._merge(log_total, mean, second, np.einsum("ij,ij->j", weight, gap))

    def _merge(self, log_total: FloatArray, mean: FloatArray, second: FloatArray, third: FloatArray) -> None:
        both = np.logaddexp(self.log_total, log_total)
        reach = np.where(np.isneginf(both), 0.0, both)
        old, new = np.exp(self.log_total - reach), np.exp(log_total - reach)
        gap = mean - self.mean
        cross = old * new
        self.third = (
            old * self.third
            + new * third
            + cross * (old - new) * gap**3
            + 3.0 * cross * gap * (second - self.second)
        )  # fmt: skip
        self.second = old * self.second + new * second + cross * gap * gap
        self.mean = np.where(old >= new, self.mean + new * gap, mean - old * gap)
        self.log_total = both

    def cumulants(self) -> Cumulants:
        """Return what has been taken in so far, as a population."""
        return Cumulants(self.log_total, self.mean, self.second, self.third)
