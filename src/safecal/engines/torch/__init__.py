"""Predictions that lie in torch tensors: they are scored where they are.

On CUDA a Triton kernel reads each number once; elsewhere, and for float64, torch works on blocks of rows. No softmax is
stored. Numbers are in nats; float32 and shorter predictions are worked on in float32, float64 in float64, and sums over
rows are float64.

``tensors``     row formulas, and where a kernel may run
``rows``        what each row says, after its checks
``sums``        what rows add to the sums of an evaluation; a Summary
``evaluation``  the way to a verdict
``triton_*``    kernels: of two outcomes, of K, and of all columns of K
"""

from .evaluation import evaluate, tally
from .rows import binary_row_scores, differentiable_row_scores, ecd, nll, row_scores
from .sums import binary_summary, summary
from .tensors import RowScores

__all__ = [
    "RowScores", "binary_row_scores", "binary_summary", "differentiable_row_scores", "ecd", "evaluate", "nll",
    "row_scores", "summary", "tally",
]  # fmt: skip
