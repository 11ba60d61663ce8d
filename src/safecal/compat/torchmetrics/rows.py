"""Row formulas on tensors, in float64: those of `safecal.bernoulli` and `safecal.categorical`.

A row without an answer (NaN, a value out of range, an unknown label) has an excess of NaN: the device is not waited
for.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..._checks.row_sums import row_tolerance
from ...engines.torch.rows import formulas
from ...engines.torch.tensors import load_torch, widened

__all__ = ["FORMS", "Columns"]

_TINY = 1e-300  # below it, |2p - 1| / m could overflow


class Columns(NamedTuple):
    """What each row adds to the sums; tensors of shape (n,)."""

    excess: Any
    varentropy: Any
    third_cumulant: Any
    entropy: Any
    predicted: Any
    observed: Any
    confidence: Any
    correct: Any
    brier: Any
    certain: Any


def _binary(torch: Any, m: Any, M: Any, L: Any, c: Any, contrast: Any, y: Any, over: Any, certain: Any) -> Columns:
    """Return the columns, from the smaller probability, the larger, the log-odds of the larger and ``-log M``."""
    agree = over == (y == 1)
    residual = torch.where(agree, -m, M)
    mL = m * L
    varentropy = mL * L * M
    excess = torch.where(certain & ~agree, torch.inf, residual * L)
    unknown = (y != 0) & (y != 1)
    return Columns(
        torch.where(unknown, torch.nan, excess), varentropy, varentropy * L * contrast, mL + c,
        torch.where(over, M, m), y == 1, M, agree, residual * residual, certain,
    )  # fmt: skip


def binary_probabilities(values: Any, y: Any) -> Columns:
    """Score probabilities of the positive class."""
    torch = load_torch()
    p = widened(values)
    q = 1.0 - p
    m, M, contrast = torch.minimum(p, q), torch.maximum(p, q), (2.0 * p - 1.0).abs()
    L = torch.where(m < _TINY, -m.log(), (contrast / m).log1p())
    certain = m == 0.0
    L = torch.where(certain, 0.0, L)
    found = _binary(torch, m, M, L, -(-m).log1p(), contrast, y.to(p.device), p > 0.5, certain)
    return found._replace(predicted=p)


def binary_logits(values: Any, y: Any) -> Columns:
    """Score log-odds of the positive class."""
    torch = load_torch()
    logit = widened(values)
    far = logit.abs()
    t = (-far).exp()
    M = 1.0 / (1.0 + t)
    contrast = -torch.expm1(-far) * M
    certain = far.isinf()
    L = torch.where(certain, 0.0, far)
    return _binary(torch, t * M, M, L, t.log1p(), contrast, y.to(logit.device), logit > 0.0, certain)


def class_probabilities(values: Any, y: Any) -> Columns:
    """Score (n, K) probabilities, used as given."""
    torch = load_torch()
    p = widened(values)
    y = y.to(p.device)
    K = p.shape[-1]
    known = (y >= 0) & (y < K)
    at = torch.where(known, y, 0)[:, None]
    z = torch.where(p > 0.0, p, 1.0).log()
    entropy = -(p * z).sum(-1)
    p_y, z_y = p.gather(-1, at)[:, 0], z.gather(-1, at)[:, 0]
    others = p.scatter(-1, at, 0.0)
    # Where p_y is near 1 the shorter formula cancels.
    confident = (others * others).sum(-1) + (1.0 - p_y) ** 2
    brier = torch.where(p_y > 0.5, confident, (p * p).sum(-1) - 2.0 * p_y + 1.0)
    centred = z + entropy[:, None]
    weighted = p * centred * centred
    normal = (p.sum(-1) - 1.0).abs() <= row_tolerance(K)
    fine = known & normal & (p.amin(-1) >= 0.0) & (p.amax(-1) <= 1.0)
    excess = torch.where(p_y == 0.0, torch.inf, -entropy - z_y)
    confidence, top = p.amax(-1), p.argmax(-1)
    return Columns(
        torch.where(fine, excess, torch.nan), weighted.sum(-1), -(weighted * centred).sum(-1), entropy,
        confidence, top == y, confidence, top == y, brier / 2.0 if K == 2 else brier, (p == 0.0).any(-1),
    )  # fmt: skip


def class_logits(values: Any, y: Any) -> Columns:
    """Score (n, K) logits."""
    z = widened(values)
    y = y.to(z.device)
    _, entropy, varentropy, excess, third, brier, confidence, _ = formulas(z, y, True)
    correct = z.argmax(-1) == y  # of equals the first, as in NumPy
    brier = brier / 2.0 if z.shape[-1] == 2 else brier
    certain = (z.amin(-1) - z.amax(-1)).isneginf()
    return Columns(excess, varentropy, third, entropy, confidence, correct, confidence, correct, brier, certain)


FORMS: dict[tuple[str, bool], Callable[[Any, Any], Columns]] = {
    ("bernoulli", False): binary_probabilities,
    ("bernoulli", True): binary_logits,
    ("categorical", False): class_probabilities,
    ("categorical", True): class_logits,
}
