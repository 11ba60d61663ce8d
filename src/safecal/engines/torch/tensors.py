"""What every engine on torch tensors shares: torch itself, wide sums, and where a kernel may run."""

from typing import Any, NamedTuple

from ...errors import MissingExtraError

__all__ = ["RowScores", "block_rows", "load_torch", "on_cuda", "widened"]

_ELEMENTS = {"cpu": 1 << 18}  # of a block: what a cache holds
_ELEMENTS_ELSEWHERE = 1 << 26


class RowScores(NamedTuple):
    """What each row says, in nats; tensors of the shape of ``y_true``, on its device.

    ``excess`` is surprisal minus entropy, taken without their difference. Where the outcome was impossible, surprisal
    and excess are ``+inf``. Ignored rows are NaN in all of them.

    Examples
    --------
    The ten most surprising tokens, given what the model announced::

        row_scores(tokens, logits).excess.topk(10)
    """

    surprisal: Any
    entropy: Any
    varentropy: Any
    excess: Any


def load_torch() -> Any:
    """Import torch, or name the extra that brings it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            'scoring tensors needs torch, which is not installed.\n\nHint: pip install "safecal[torch]"'
        ) from error
    return torch


def widened(values: Any) -> Any:
    """Return float64, on the CPU where the device has none."""
    return values.cpu().double() if values.device.type == "mps" else values.double()


def on_cuda(values: Any) -> bool:
    """Tell whether a Triton kernel may read the tensor: it lies on CUDA, and is float32 or shorter."""
    return bool(values.device.type == "cuda" and values.element_size() <= 4)


def block_rows(device: Any, width: int) -> int:
    """Return how many rows of so many values to work on at once."""
    return max(1, _ELEMENTS.get(device.type, _ELEMENTS_ELSEWHERE) // width)
