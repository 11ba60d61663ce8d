"""Sums of partitions: each is turned into sums where it lies, and the sums are merged."""

from .front import evaluate_partitions, fetch

__all__ = ["evaluate_partitions", "fetch"]
