"""The law of Gaussian states: half of NEES is a gamma variable, whatever the covariance."""

from typing import final

from .._sums.summary import Summary
from .law import Law, Tails, Tilt
from .tails import pearson3

__all__ = ["StatesLaw"]


@final
class StatesLaw(Law):
    """Gaussian states, from their sums alone: exact without weights, Pearson III with them."""

    def __init__(self, summary: Summary) -> None:
        self._variance, self._third = summary.sum_varentropy_weight2, summary.sum_third_cumulant_weight3
        half = summary.sum_varentropy  # d / 2 a row: what half of NEES is expected to be
        self._weighted = summary.weight2 != summary.weight - summary.weight_impossible
        one = Tilt(0.0, half, half, self._variance, self._third)
        super().__init__(summary.sum_excess + half, summary.weight - summary.weight_impossible, one)

    @property
    def method(self) -> str:
        return "Pearson III" if self._weighted else "exact chi-square"

    def at(self, beta: float) -> Tilt:
        one = self.one
        return Tilt(0.0, one.mean / beta, one.information / beta**2, self._variance / beta**2, self._third / beta**3)

    def tails(self, beta: float) -> Tails:
        at = self.at(beta)
        return Tails(*pearson3(self.seen - at.mean, at.variance, at.third))
