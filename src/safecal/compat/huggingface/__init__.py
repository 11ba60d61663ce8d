"""Hugging Face: run a pretrained classifier of texts or images over a data set, and evaluate it.

It needs ``pip install "safecal[huggingface]"``. Predictions are kept on disk as they are made, so a run that was killed
goes on where it stopped. Code that comes with a model is never run.
"""

from .classifier import ClassifierRun, run_classifier
from .data import UnreachableError

__all__ = ["ClassifierRun", "UnreachableError", "run_classifier"]
