"""Sums pushed down into a dataframe engine as expressions: nothing but aggregates leaves it."""

from .pipeline import express

__all__ = ["express"]
