"""States of Stone Soup, seen as predictions of safecal."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np
from stonesoup.types.angle import Angle
from stonesoup.types.mixture import GaussianMixture
from stonesoup.types.state import (
    ASDGaussianState,
    EnsembleState,
    GaussianState,
    InformationState,
    KernelParticleState,
    ParticleState,
    SqrtGaussianState,
)

from ..._checks import fail
from ..._kernels.states import marginal_factor
from ..._sums.scored import Scored
from ..._types import FloatArray
from ...errors import FormError, InputError, ShapeError
from ...families import Predictions
from ...families.density import Density
from ...families.gaussian import gaussian
from ...families.mixtures import gaussian_mixture, particles

__all__ = ["States"]


class _Row(NamedTuple):
    kind: str  # "cov", "chol", "precision", "mixture", "particles" or "neighbours"
    truth: FloatArray
    mean: FloatArray
    spread: FloatArray
    extra: Any  # of mixtures their components, of neighbours their scores
    angles: tuple[int, ...]
    where: str


def _vector(values: Any) -> FloatArray:
    return np.asarray(values, dtype=np.float64).reshape(-1)


def _angles(*vectors: Any) -> set[int]:
    """Return which components are angles: bearings, elevations and the like are types of their own."""
    angles: set[int] = set()
    for vector in vectors:
        values = np.asarray(vector)
        if values.dtype == object:
            first = values.reshape(len(values), -1)[:, 0]
            angles |= {i for i, value in enumerate(first) if isinstance(value, Angle)}
    return angles


def _refused(state: Any, why: str) -> InputError:
    hint = "Gaussian states (also square-root and information form), mixtures, particles and ensembles can be scored."
    return fail(
        FormError, "state", "must be of a type with a density", got=f"a {type(state).__name__}: {why}", hint=hint
    )


@final
class States:
    """Pairs of truth and estimate, taken in one at a time; only what is needed to score them is kept.

    `ECDMetric` describes the options: ``method`` is how particles are scored.
    """

    def __init__(
        self,
        mapping: Sequence[int] | None,
        truth_mapping: Sequence[int] | None,
        method: str,
        draws: int,
        rng: np.random.Generator,
    ) -> None:
        self.mapping = None if mapping is None else tuple(int(i) for i in mapping)
        self.truth_mapping = self.mapping if truth_mapping is None else tuple(int(i) for i in truth_mapping)
        self.method, self.draws, self.rng = method, draws, rng
        self._rows: list[_Row] = []

    def add(self, truth: Any, state: Any, where: str) -> None:
        """Take in a truth and its estimate; ``where`` names them in errors."""
        kind, mean, spread, extra = self._parts(state)
        vector = state[0].state_vector if isinstance(state, GaussianMixture) else state.state_vector
        x = self._truth(_vector(truth.state_vector), len(mean), where)
        angles = _angles(truth.state_vector, vector)
        if kind == "neighbours":
            extra = self._neighbours(x, extra, angles).score()
        self._rows.append(_Row(kind, x, mean, spread, extra, tuple(sorted(angles)), where))

    def _truth(self, truth: FloatArray, d: int, where: str) -> FloatArray:
        """Return the truth in the coordinates of the estimate; components that do not matter are left open."""
        if self.mapping is None or self.truth_mapping is None:
            if len(truth) != d:
                hint = (
                    "name the components that matter: `mapping=`, and where they stand in the truth, `truth_mapping=`."
                )
                raise fail(
                    ShapeError, "truth", f"must have {d} components", got=f"{len(truth)}", place=where, hint=hint
                )
            return truth
        if len(self.mapping) != len(self.truth_mapping):
            got = f"{self.truth_mapping} and {self.mapping}"
            raise fail(ShapeError, "truth_mapping", "must be as long as `mapping`", got=got)
        if max(self.truth_mapping) >= len(truth) or max(self.mapping) >= d:
            got = f"{len(truth)} components in the truth, {d} in the estimate"
            raise fail(ShapeError, "mapping", "must name components that exist", got=got, place=where)
        x = np.full(d, np.nan)
        x[list(self.mapping)] = truth[list(self.truth_mapping)]
        return x

    def _parts(self, state: Any) -> tuple[str, FloatArray, FloatArray, Any]:
        """Return the kind of a state, its mean and spread, and what else is needed. Mixtures register as Gaussian."""
        if isinstance(state, GaussianMixture):
            weight = np.array([float(component.weight) for component in state])
            means = np.stack([_vector(component.mean) for component in state])
            covs = np.stack([np.asarray(component.covar, dtype=np.float64) for component in state])
            cov = np.asarray(state.covar, dtype=np.float64)
            return "mixture", _vector(state.mean), cov, (weight / weight.sum(), means, covs)
        if isinstance(state, KernelParticleState):
            raise _refused(state, "its particles are a kernel mean embedding, not draws from a density")
        if isinstance(state, SqrtGaussianState):
            # Any square root will do: its lower factor is found without squaring the condition number.
            root = np.asarray(state.sqrt_covar, dtype=np.float64)
            return "chol", _vector(state.mean), marginal_factor(root, tuple(range(len(root)))), None
        if isinstance(state, InformationState):
            precision = np.asarray(state.precision, dtype=np.float64)
            return "precision", _vector(np.linalg.solve(precision, _vector(state.state_vector))), precision, None
        if isinstance(state, ParticleState) and state.log_weight is None:
            raise _refused(state, "its particles have no weights")
        if isinstance(state, ParticleState | GaussianState | ASDGaussianState | EnsembleState):
            d = int(state.ndim)
            cov = np.asarray(state.covar, dtype=np.float64).reshape(d, d)
            if not isinstance(state, ParticleState):
                return "cov", _vector(state.mean), cov, None
            extra = None if self.method == "moments" else (state.state_vector, state.log_weight)
            return "particles" if extra is None else "neighbours", _vector(state.mean), cov, extra
        raise _refused(state, "it states no uncertainty, or none that has a density")

    def _neighbours(self, x: FloatArray, extra: Any, angles: set[int]) -> Predictions:
        points, log_weight = extra
        cloud = np.asarray(points, dtype=np.float64).T[None]
        logs = np.asarray(log_weight, dtype=np.float64)[None]
        options: dict[str, Any] = {"mapping": self.mapping, "angles": sorted(angles), "rng": self.rng}
        return particles(x[None], cloud, log_weight=logs, method="neighbours", **options)

    def gaussian(self) -> Predictions:
        """Return every state as the Gaussian of its mean and covariance: what NEES is about."""
        return self._joined([row._replace(kind="cov") if row.kind in _MATCHED else row for row in self._rows])

    def predictions(self) -> Predictions:
        """Return every state in its own shape."""
        return self._joined(self._rows)

    def _joined(self, rows: list[_Row]) -> Predictions:
        places: dict[Any, list[int]] = {}
        for i, row in enumerate(rows):
            places.setdefault((row.kind, len(row.mean), row.angles), []).append(i)
        parts = [self._part([rows[i] for i in index], *key) for key, index in places.items()]
        if len(parts) == 1:
            return parts[0]
        dimensions = {part.dimension for part in parts}
        if len(dimensions) > 1:
            got = f"states of {' and '.join(map(str, sorted(dimensions)))} components"
            hint = "name the components that matter: `mapping=`."
            raise fail(ShapeError, "tracks", "must hold states of one dimension", got=got, hint=hint)
        scored = Scored.concatenate([_bare(part.score()) for part in parts])
        back = np.argsort(np.concatenate(list(places.values())))
        return _density(scored, back, dimensions.pop())

    def _part(self, rows: list[_Row], kind: str, size: int, angles: tuple[int, ...]) -> Predictions:
        x = np.stack([row.truth for row in rows])
        options: dict[str, Any] = {"mapping": self.mapping, "angles": angles}
        if kind == "neighbours":
            scored = Scored.concatenate([row.extra for row in rows])
            return _density(scored, np.arange(len(rows)), size if self.mapping is None else len(self.mapping))
        try:
            if kind == "mixture":
                weight, mean, cov = _padded([row.extra for row in rows])
                return gaussian_mixture(x, weight, mean, cov=cov, draws=self.draws, rng=self.rng, **options)
            form = "cov" if kind == "particles" else kind
            spread: dict[str, Any] = {form: np.stack([row.spread for row in rows])}
            states = gaussian(x, np.stack([row.mean for row in rows]), **spread, **options)
            return states if kind != "particles" else replace(states, method="moment match of particles")
        except InputError as error:
            raise _placed(error, rows) from None


_MATCHED = ("mixture", "particles", "neighbours")


def _padded(mixtures: list[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Put mixtures of different sizes into arrays; a component of weight 0 is absent."""
    n, largest, d = len(mixtures), max(len(w) for w, _, _ in mixtures), mixtures[0][1].shape[1]
    weight, mean, cov = np.zeros((n, largest)), np.zeros((n, largest, d)), np.zeros((n, largest, d, d))
    for i, (w, m, c) in enumerate(mixtures):
        weight[i, : len(w)], mean[i, : len(w)], cov[i, : len(w)] = w, m, c
    return weight, mean, cov


def _bare(scored: Scored) -> Scored:
    """Keep what every family has, with a numerical variance that may be 0."""
    noise = np.zeros(len(scored)) if scored.numerical_variance is None else scored.numerical_variance
    return Scored(scored.excess, scored.varentropy, scored.third_cumulant, numerical_variance=noise)


def _density(scored: Scored, order: Any, d: int) -> Predictions:
    columns = (scored.excess, scored.varentropy, scored.third_cumulant)
    excess, varentropy, third = (column[order] for column in columns)
    noise = None if scored.numerical_variance is None else scored.numerical_variance[order]
    return Density(excess, varentropy, third, "states of Stone Soup", d, numerical_variance=noise)


def _placed(error: InputError, rows: list[_Row]) -> InputError:
    """Name the track and the time of a state that is refused."""
    c = error.complaint
    if c is None or c.place is None or not c.place.startswith("row "):
        return error
    row = rows[int(c.place.split(",")[0].split()[1])]
    return fail(type(error), c.argument, c.rule, got=c.got, place=f"{c.place}, {row.where}", hint=c.hint)
