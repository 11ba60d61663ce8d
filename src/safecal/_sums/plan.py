"""How rows are binned: decided once, for every door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, final

from .._types import BinOn, Strategy
from .bins import Bins
from .tabulate import bins_for

if TYPE_CHECKING:
    from ..families.predictions import Predictions


__all__ = ["Plan"]


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The bins of an evaluation, and what they bin on; None for no table.

    Attributes
    ----------
    bins : Bins or None
        The bins.
    bin_on : str or None
        What rows are binned on.
    """

    bins: Bins | None = None
    bin_on: BinOn | None = None

    @classmethod
    def of(
        cls,
        predictions: Predictions,
        bins: int | Bins | Literal["auto"] | None = "auto",
        bin_on: BinOn | None = None,
        strategy: Strategy = "uniform",
    ) -> Self:
        """Resolve what a caller asked for.

        Parameters
        ----------
        predictions : Predictions
            The rows; for uniform or given bins any rows of the same family and the same classes do.
        bins : int, Bins, "auto" or None, default "auto"
            ``"auto"`` is ten bins for classifiers; for states and densities none, unless another option asks for them.
        bin_on : str, optional
            What rows are binned on.
        strategy : {"uniform", "quantile"}, default "uniform"
            Bins of equal width, or of about equally many rows.

        Returns
        -------
        Plan
            The bins themselves.
        """
        bins = cls.wanted(bins, predictions.binned_by_default, bin_on, strategy)
        return cls() if bins is None else cls(*bins_for(predictions, bins, bin_on, strategy))

    @staticmethod
    def wanted(
        bins: int | Bins | Literal["auto"] | None, by_default: bool, bin_on: BinOn | None, strategy: Strategy
    ) -> int | Bins | Literal["auto"] | None:
        """Say what ``"auto"`` means here."""
        if not isinstance(bins, str) or bins != "auto":
            return bins
        return 10 if by_default or bin_on is not None or strategy != "uniform" else None
