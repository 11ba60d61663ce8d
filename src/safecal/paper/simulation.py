"""The simulation of the paper: true log-odds, labels, and estimates that noise has moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, Unpack, final

import numpy as np
from scipy import special

from .._checks import fail, show
from .._checks.columns import choice, fraction, positive, spelled, whole_number
from .._types import FloatArray, IndexArray
from ..errors import RangeError
from ..families import Predictions
from ..families.bernoulli import bernoulli
from ..judge.evaluation import Evaluation
from ..options import EvaluateOptions

__all__ = ["CLIP", "NOISE_ON", "PAPER_SEED", "Draws", "Simulation", "paper_draws", "simulate"]

CLIP = 1e-5
NOISE_ON = ("logit", "probability", "both")
PAPER_SEED = 99

Draws: TypeAlias = np.random.Generator | np.random.RandomState


@final
@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Labels, estimates and the truth of simulated rows.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        What happened, 0 or 1.
    y_prob : ndarray of shape (n,)
        The estimated probability of label 1.
    logits : ndarray of shape (n,)
        Its log-odds: exact where the noise is on the log-odds, else those of the clipped probability.
    truth : ndarray of shape (n,)
        The probability that the labels were drawn with.
    sd : float
        Standard deviation of the noise.
    noise_on : {"logit", "probability", "both"}
        What the noise was added to.

    Examples
    --------
    >>> from safecal.paper import simulate
    >>> rows = simulate(1000, sd=2.0, rng=1)
    >>> rows
    Simulation: 1000 rows, noise of standard deviation 2 on the log-odds
    >>> rows.evaluate().verdict.direction
    'over-confident'
    """

    labels: IndexArray
    y_prob: FloatArray
    logits: FloatArray
    truth: FloatArray
    sd: float
    noise_on: str

    def __repr__(self) -> str:
        where = {"logit": "on the log-odds", "probability": "on the probability", "both": "on both"}[self.noise_on]
        return f"Simulation: {len(self.labels)} rows, noise of standard deviation {self.sd:g} {where}"

    def predictions(self) -> Predictions:
        """Return labels and estimates as predictions."""
        return bernoulli(self.labels, logits=self.logits)

    @spelled(EvaluateOptions)
    def evaluate(self, **options: Unpack[EvaluateOptions]) -> Evaluation:
        """Evaluate the estimates.

        Parameters
        ----------
        **options
            As for ``evaluate`` of any predictions: ``bins``, ``threshold`` and so on.

        Returns
        -------
        Evaluation
            Verdict, metrics and bins.
        """
        return self.predictions().evaluate(**options)


def paper_draws() -> np.random.RandomState:
    """Return a fresh generator that draws what the published Table 1 was made from.

    NumPy's older generator with the seed 99, made anew for each of the three noises. NumPy promises that its draws
    never change. The page of the study says how it was found.

    Returns
    -------
    numpy.random.RandomState
        For the argument ``rng`` of `simulate`.

    Examples
    --------
    >>> from safecal.paper import paper_draws, simulate
    >>> result = simulate(sd=2.0, noise_on="both", rng=paper_draws()).evaluate()
    >>> round(result.ece, 4), round(result.esce, 4), round(result.ecd, 4)  # published: 0.4042, 0.0064, 4.2405
    (0.4042, 0.0064, 4.2405)
    """
    return np.random.RandomState(PAPER_SEED)


def simulate(
    n: int = 10_000,
    *,
    W: float = 0.5,
    mean: float = 0.0,
    sd: float = 0.0,
    noise_on: str = "logit",
    clip: float = CLIP,
    rng: Draws | int | Sequence[int] | None = None,
) -> Simulation:
    """Simulate labels with known probabilities, and estimates that noise has moved.

    Log-odds ``u = W u'`` are drawn with ``u'`` uniform on (-10, 10); a label is 1 with probability ``logistic(u)``. The
    noise ``ε`` is normal. It is drawn after ``u'`` and before the labels, and not at all where its standard deviation
    is 0.

    Parameters
    ----------
    n : int, default 10000
        Rows.
    W : float, default 0.5
        Sharpness: the log-odds lie between ``-10 W`` and ``10 W``.
    mean, sd : float, default 0
        Mean and standard deviation of the noise.
    noise_on : {"logit", "probability", "both"}, default "logit"
        What the noise is added to. ``"logit"``: the estimate is ``logistic(u + ε)``, as the paper writes.
        ``"both"``: ``logistic(u + ε) + ε``, clipped, which is what made the published Table 1.
        ``"probability"``: ``logistic(u) + ε``, clipped; with 1.13 times the standard deviation it comes close, too.
    clip : float, default 1e-5
        Where noise is added to a probability, the sum is moved into ``[clip, 1 - clip]``.
    rng : Generator, RandomState, int or sequence of int, optional
        Where the draws come from. By default the same every time; `paper_draws` gives those of the paper.

    Returns
    -------
    Simulation
        Labels, estimates and the truth.

    Examples
    --------
    >>> from safecal.paper import simulate
    >>> clean, noisy = simulate(rng=1).evaluate(), simulate(sd=2.0, rng=1).evaluate()
    >>> clean.verdict.decision, noisy.verdict.decision
    ('SAFE', 'UNSAFE')
    """
    whole_number(n, "n", 1)
    positive(W, "W")
    if isinstance(sd, bool) or not sd >= 0.0:
        raise fail(RangeError, "sd", "must not be negative", got=show(sd))
    choice(noise_on, "noise_on", NOISE_ON)
    fraction(clip, "clip")
    draws = rng if isinstance(rng, Draws) else np.random.default_rng(0 if rng is None else rng)
    u = W * draws.uniform(-10.0, 10.0, n)
    noise = draws.normal(mean, sd, n) if sd > 0.0 else np.full(n, float(mean))
    truth: FloatArray = special.expit(u)
    labels = draws.binomial(1, truth).astype(np.intp)
    if noise_on == "logit":
        logits = u + noise
        y_prob: FloatArray = special.expit(logits)
    else:
        estimate = special.expit(u + noise) if noise_on == "both" else truth
        y_prob = np.clip(estimate + noise, clip, 1.0 - clip)
        logits = special.logit(y_prob)
    return Simulation(labels, y_prob, logits, truth, float(sd), noise_on)
