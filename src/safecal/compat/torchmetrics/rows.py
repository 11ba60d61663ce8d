"""Columns of rows on tensors, in float64: those of `safecal.bernoulli` and `safecal.categorical`.

A row without an answer (NaN, a value out of range, an unknown label) has an excess of NaN: the device is not waited
for.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..._checks.classes import row_tolerance
from ...engines.torch.binary import binary_columns
from ...engines.torch.rows import formulas
from ...engines.torch.tensors import load_torch, widened

__all__ = ["FORMS", "Columns", "Gaps", "Odds"]


class Odds(NamedTuple):
    """What inference needs of two-class rows beside the columns; tensors of shape (n,)."""

    log_odds: Any  # of the likelier class; 0 where it is certain
    positive: Any  # whether that is the positive one


class Gaps(NamedTuple):
    """What inference needs of rows of K classes beside the columns."""

    gaps: Any  # of log-probability below the likeliest class, (n, K); infinite for that class itself
    surprised: Any  # whether the outcome was less likely than another, (n,)
    top: Any  # the likeliest class, (n,)
    happened: Any  # the class that happened, (n,)


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
    certain: Any  # whether some class has a probability of exactly 0
    more: Odds | Gaps


def _binary(values: Any, y: Any, logits: bool) -> Columns:
    torch = load_torch()
    found = binary_columns(y, values, logits)
    excess = torch.where(found["impossible"], torch.inf, found["excess"])
    found["excess"] = torch.where(found["bad"], torch.nan, excess)
    return Columns(
        **{name: found[name] for name in Columns._fields if name != "more"},
        more=Odds(found["log_odds"], found["positive"]),
    )


def binary_probabilities(values: Any, y: Any) -> Columns:
    """Score probabilities of the positive class."""
    return _binary(values, y, False)


def binary_logits(values: Any, y: Any) -> Columns:
    """Score log-odds of the positive class."""
    return _binary(values, y, True)


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
    correct = top == y
    log_top = confidence.log()
    gaps = torch.where(p > 0.0, log_top[:, None] - z, torch.inf)
    return Columns(
        torch.where(fine, excess, torch.nan), weighted.sum(-1), -(weighted * centred).sum(-1), entropy,
        confidence, correct, confidence, correct, brier / 2.0 if K == 2 else brier, (p == 0.0).any(-1),
        _more(gaps, top, y, -z_y, log_top),
    )  # fmt: skip


def class_logits(values: Any, y: Any) -> Columns:
    """Score (n, K) logits."""
    z = widened(values)
    y = y.to(z.device)
    surprisal, entropy, varentropy, excess, third, brier, confidence, _ = formulas(z, y, True)
    largest, top = z.amax(-1), z.argmax(-1)  # of equals the first, as in NumPy
    correct = top == y
    brier = brier / 2.0 if z.shape[-1] == 2 else brier
    certain = (z.amin(-1) - largest).isneginf()
    more = _more(largest[:, None] - z, top, y, surprisal, confidence.log())
    return Columns(excess, varentropy, third, entropy, confidence, correct, confidence, correct, brier, certain, more)


def _more(gaps: Any, top: Any, y: Any, surprisal: Any, log_top: Any) -> Gaps:
    # An outcome as likely as the most likely one is no surprise.
    surprised = (top != y) & (surprisal > -log_top * (1.0 + 1e-9))
    return Gaps(gaps.scatter(-1, top[:, None], float("inf")), surprised, top, y)


FORMS: dict[tuple[str, bool], Callable[[Any, Any], Columns]] = {
    ("bernoulli", False): binary_probabilities,
    ("bernoulli", True): binary_logits,
    ("categorical", False): class_probabilities,
    ("categorical", True): class_logits,
}
