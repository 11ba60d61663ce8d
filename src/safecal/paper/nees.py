"""For Gaussian states ECD is NEES: ``ECD = (NEES - d) / 2``, on simulated states."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import stats

from .._checks.columns import whole_number
from .._types import FloatArray
from ..families.gaussian import gaussian
from .layout import rule

__all__ = ["StateCase", "nees_demonstration", "nees_text"]

SCALES = ((1.0, "as it should be"), (0.5, "half of what it should be"), (2.0, "twice what it should be"))


@final
@dataclass(frozen=True, slots=True)
class StateCase:
    """NEES and ECD of simulated states.

    Attributes
    ----------
    d : int
        Dimension.
    claim : str
        The covariance that the estimator claims.
    nees : float
        Mean normalised estimation error squared, from errors and covariances.
    ecd : float
        Mean of entropy and log-density of SciPy's multivariate normal law: the definition, term by term.
    ours : float
        What safecal gives.
    decision : str
        Of the verdict.

    Examples
    --------
    >>> from safecal.paper import nees_demonstration
    >>> case = nees_demonstration([3], n=100)[1]
    >>> case.d, case.claim, case.decision
    (3, 'half of what it should be', 'UNSAFE')
    """

    d: int
    claim: str
    nees: float
    ecd: float
    ours: float
    decision: str

    @property
    def predicted(self) -> float:
        """What NEES says ECD must be: ``(NEES - d) / 2``."""
        return 0.5 * (self.nees - self.d)


def nees_demonstration(dimensions: Sequence[int] = (1, 2, 4), *, n: int = 2000, seed: int = 0) -> tuple[StateCase, ...]:
    """Show on simulated states that ECD is half of what NEES exceeds the dimension by.

    Every state has a covariance of its own. Errors are drawn from it; the estimator claims it, half of it, or twice it.

    Parameters
    ----------
    dimensions : sequence of int, default (1, 2, 4)
        Dimensions of the states.
    n : int, default 2000
        States.
    seed : int, default 0
        Of NumPy's generator.

    Returns
    -------
    tuple of StateCase
        Three for each dimension.

    Examples
    --------
    >>> from safecal.paper import nees_demonstration
    >>> cases = nees_demonstration(n=200)
    >>> max(abs(case.ecd - case.predicted) for case in cases) < 1e-12
    True
    """
    found = []
    for d in dimensions:
        whole_number(d, "dimensions", 1)
        rng = np.random.default_rng((seed, d))
        root = rng.normal(size=(n, d, d + 2))
        cov = root @ root.transpose(0, 2, 1) / (d + 2)
        mean = rng.normal(size=(n, d))
        state = mean + np.einsum("nij,nj->ni", np.linalg.cholesky(cov), rng.normal(size=(n, d)))
        found += [_case(state, mean, cov, scale, claim) for scale, claim in SCALES]
    return tuple(found)


def _case(state: FloatArray, mean: FloatArray, cov: FloatArray, scale: float, claim: str) -> StateCase:
    claimed = scale * cov
    error = state - mean
    nees = float(np.einsum("ni,ni->n", error, np.linalg.solve(claimed, error[..., None])[..., 0]).mean())
    laws = [stats.multivariate_normal(m, c) for m, c in zip(mean, claimed, strict=True)]
    ecd = float(np.mean([-law.entropy() - law.logpdf(x) for law, x in zip(laws, state, strict=True)]))
    result = gaussian(state, mean, cov=claimed).evaluate()
    return StateCase(state.shape[1], claim, nees, ecd, result.ecd, result.verdict.decision)


def nees_text(cases: Sequence[StateCase]) -> str:
    """Return the demonstration as text.

    Parameters
    ----------
    cases : sequence of StateCase
        From `nees_demonstration`.

    Returns
    -------
    str
        A line for each case.

    Examples
    --------
    >>> from safecal.paper import nees_demonstration, nees_text
    >>> print(nees_text(nees_demonstration([2], n=100)))
     d  claimed covariance             NEES  (NEES - d)/2       ECD   safecal  verdict
    ----------------------------------------------------------------------------------
     2  as it should be              2.2430     +0.121524 +0.121524 +0.121524  UNDETERMINED
     2  half of what it should be    4.4861     +1.243048 +1.243048 +1.243048  UNSAFE
     2  twice what it should be      1.1215     -0.439238 -0.439238 -0.439238  SAFE
    Largest difference between the three: ...
    """
    head = f"{'d':>2}  {'claimed covariance':<26}{'NEES':>9}{'(NEES - d)/2':>14}{'ECD':>10}{'safecal':>10}  verdict"
    lines = [head, rule(len(head))]
    for case in cases:
        cells = f"{case.nees:>9.4f}{case.predicted:>+14.6f}{case.ecd:>+10.6f}{case.ours:>+10.6f}"
        lines.append(f"{case.d:>2}  {case.claim:<26}{cells}  {case.decision}")
    off = max(max(abs(case.ecd - case.predicted), abs(case.ours - case.predicted)) for case in cases)
    lines.append(f"Largest difference between the three: {off:.0e}.")
    return "\n".join(lines)
