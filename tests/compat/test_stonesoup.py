"""The plug-in for Stone Soup: every type of state, association, plots, and studies with one manager a run."""

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.errors import CovarianceError, FormError, InputError, MissingExtraError, OptionError, ShapeError

pytest.importorskip("stonesoup")

from stonesoup.dataassociator.tracktotrack import TrackToTruth
from stonesoup.metricgenerator.manager import MultiManager, SimpleManager
from stonesoup.metricgenerator.ospametric import OSPAMetric
from stonesoup.models.measurement.linear import LinearGaussian
from stonesoup.models.measurement.nonlinear import CartesianToBearingRange
from stonesoup.models.transition.linear import CombinedLinearGaussianTransitionModel, ConstantVelocity
from stonesoup.predictor.kalman import KalmanPredictor
from stonesoup.types.angle import Bearing
from stonesoup.types.array import StateVector, StateVectors
from stonesoup.types.detection import Detection
from stonesoup.types.groundtruth import GroundTruthPath, GroundTruthState
from stonesoup.types.hypothesis import SingleHypothesis
from stonesoup.types.metric import SingleTimeMetric, TimeRangeMetric
from stonesoup.types.mixture import GaussianMixture
from stonesoup.types.state import (
    ASDGaussianState,
    CategoricalState,
    EnsembleState,
    GaussianState,
    InformationState,
    KernelParticleState,
    MultiModelParticleState,
    ParticleState,
    PointMassState,
    SqrtGaussianState,
    State,
    TaggedWeightedGaussianState,
    WeightedGaussianState,
)
from stonesoup.types.track import Track
from stonesoup.types.update import GaussianMixtureUpdate, GaussianStateUpdate
from stonesoup.updater.kalman import ExtendedKalmanUpdater, KalmanUpdater

from safecal.compat.stonesoup import ECDMetric, innovations, monte_carlo

NOON = datetime(2025, 1, 1, 12)
MEAN = np.array([1.0, -2.0, 0.5])
ROOT = np.array([[2.0, 0.3, 0.1], [0.0, 1.5, -0.4], [0.7, 0.0, 1.0]])
COV = ROOT @ ROOT.T
TRUTH = np.array([2.5, -1.0, 1.5])
RNG = np.random.default_rng(0)
POINTS = MEAN[:, None] + np.linalg.cholesky(COV) @ RNG.normal(size=(3, 5000))
LOG_WEIGHT = np.log(RNG.dirichlet(np.ones(5000)))


def manager(truth: Any, states: list[Any], *generators: Any, **options: Any) -> MultiManager:
    path = truth if isinstance(truth, GroundTruthPath) else GroundTruthPath([GroundTruthState(truth, timestamp=NOON)])
    made = MultiManager(list(generators) or [ECDMetric(**options)])
    made.add_data({"tracks": {Track(states)}, "groundtruth_paths": {path}})
    return made


def measured(state: Any, truth: Any = TRUTH, **options: Any) -> dict[str, Any]:
    metrics = manager(truth, [state], **options).generate_metrics()["ecd_generator"]
    return {title: metric.value for title, metric in metrics.items()}


EXACT = safecal.gaussian(TRUTH[None], MEAN[None], cov=COV).ecd
MIXTURE = [
    WeightedGaussianState(MEAN, COV, timestamp=NOON, weight=0.3),
    WeightedGaussianState(MEAN + 4.0, 2 * COV, timestamp=NOON, weight=0.9),
]

GAUSSIANS = {
    "gaussian": GaussianState(MEAN, COV, timestamp=NOON),
    "any square root": SqrtGaussianState(MEAN, ROOT, timestamp=NOON),
    "information": InformationState(np.linalg.solve(COV, MEAN), np.linalg.inv(COV), timestamp=NOON),
    "weighted": WeightedGaussianState(MEAN, COV, timestamp=NOON, weight=0.2),
    "tagged": TaggedWeightedGaussianState(MEAN, COV, timestamp=NOON, weight=0.2, tag="a"),
    "update": GaussianStateUpdate(MEAN, COV, timestamp=NOON, hypothesis=None),
    "accumulated": ASDGaussianState(
        np.concatenate([MEAN, MEAN + 1]),
        timestamps=[NOON, NOON - timedelta(seconds=1)],
        multi_covar=np.kron(np.eye(2), COV),
    ),
}


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_states_in_every_form(name: str) -> None:
    metrics = measured(GAUSSIANS[name])
    assert metrics["ECD"] == pytest.approx(EXACT, rel=1e-9)
    assert metrics["NEES"] == pytest.approx(3 + 2 * EXACT, rel=1e-9)
    assert metrics["ECD share lost"] == 0.0


@pytest.mark.parametrize("kind", [GaussianMixture, GaussianMixtureUpdate])
def test_mixtures_register_as_gaussian_and_count_as_mixtures(kind: Any) -> None:
    options = {"hypothesis": None} if kind is GaussianMixtureUpdate else {}
    state = kind(components=MIXTURE, **options)
    assert isinstance(state, GaussianState)
    metrics = measured(state, draws=5000, seed=1)
    from safecal.families.mixtures import gaussian_mixture

    wanted = gaussian_mixture(TRUTH[None], [0.25, 0.75], [MEAN, MEAN + 4.0], cov=[COV, 2 * COV], draws=5000, rng=2).ecd
    assert metrics["ECD"] == pytest.approx(wanted, abs=0.03)
    matched = safecal.nees(TRUTH[None], np.asarray(state.mean, dtype=float).T, cov=np.asarray(state.covar, dtype=float))
    assert metrics["NEES"] == pytest.approx(matched, rel=1e-9)
    assert abs(metrics["NEES"] - 3 - 2 * metrics["ECD"]) > 0.1


PARTICLES = {
    "particles": ParticleState(StateVectors(POINTS), log_weight=LOG_WEIGHT, timestamp=NOON),
    "several models": MultiModelParticleState(
        StateVectors(POINTS), log_weight=LOG_WEIGHT, timestamp=NOON, dynamic_model=np.zeros(5000, dtype=int)
    ),
}


@pytest.mark.parametrize("name", PARTICLES)
def test_particles_are_matched_by_their_moments(name: str) -> None:
    state = PARTICLES[name]
    metrics = measured(state)
    weight = np.exp(LOG_WEIGHT)
    mean, cov = np.average(POINTS, axis=1, weights=weight), np.cov(POINTS, ddof=0, aweights=weight)
    assert metrics["NEES"] == pytest.approx(safecal.nees(TRUTH[None], mean[None], cov=cov), rel=1e-9)
    assert metrics["ECD"] == pytest.approx((metrics["NEES"] - 3) / 2, rel=1e-9)
    shaped = measured(state, particles="neighbours", seed=0)
    assert shaped["ECD"] == pytest.approx(EXACT, abs=1.2)
    assert shaped["ECD"] != metrics["ECD"]


def test_an_ensemble_is_the_gaussian_of_its_members() -> None:
    metrics = measured(EnsembleState(StateVectors(POINTS[:, :50]), timestamp=NOON))
    wanted = safecal.nees(TRUTH[None], POINTS[:, :50].mean(axis=1)[None], cov=np.cov(POINTS[:, :50]))
    assert metrics["NEES"] == pytest.approx(wanted, rel=1e-9)


REFUSED = {
    "kernel": (
        KernelParticleState(StateVectors(POINTS[:, :9]), weight=np.full(9, 1 / 9), timestamp=NOON),
        "a KernelParticleState: its particles are a kernel mean embedding, not draws from a density",
    ),
    "no uncertainty": (State(MEAN, timestamp=NOON), "a State: it states no uncertainty, or none that has a density"),
    "grid": (
        PointMassState(StateVectors(POINTS[:, :8]), weight=np.full(8, 1 / 8), timestamp=NOON),
        "a PointMassState: it states no uncertainty, or none that has a density",
    ),
    "classes": (
        CategoricalState([0.2, 0.3, 0.5], timestamp=NOON),
        "a CategoricalState: it states no uncertainty, or none that has a density",
    ),
    "no weights": (
        ParticleState(StateVectors(POINTS), timestamp=NOON),
        "a ParticleState: its particles have no weights",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_states_without_a_density_are_refused(name: str) -> None:
    state, words = REFUSED[name]
    with pytest.raises(FormError) as caught:
        measured(state)
    assert str(caught.value) == (
        f"`state` must be of a type with a density; got {words}.\n\nHint: Gaussian states (also square-root and "
        "information form), mixtures, particles and ensembles can be scored."
    )


def test_bearings_are_wrapped() -> None:
    state = GaussianState(StateVector([Bearing(3.1), 5.0]), np.diag([0.01, 1.0]), timestamp=NOON)
    metrics = measured(state, StateVector([Bearing(-3.1), 5.0]))
    assert metrics["NEES"] == pytest.approx((2 * np.pi - 6.2) ** 2 / 0.01, rel=1e-9)
    plain = measured(GaussianState([3.1, 5.0], np.diag([0.01, 1.0]), timestamp=NOON), [-3.1, 5.0])
    assert plain["NEES"] == pytest.approx(6.2**2 / 0.01, rel=1e-9)  # a number is not an angle


def test_components_that_matter_and_truths_of_another_layout() -> None:
    state = GAUSSIANS["gaussian"]
    wanted = safecal.nees(TRUTH[None, [0, 2]], MEAN[None, [0, 2]], cov=COV[np.ix_([0, 2], [0, 2])])
    assert measured(state, mapping=[0, 2])["NEES"] == pytest.approx(wanted, rel=1e-9)
    other = np.array([TRUTH[2], 99.0, TRUTH[0], -1.0])
    assert measured(state, other, mapping=[0, 2], truth_mapping=[2, 0])["NEES"] == pytest.approx(wanted, rel=1e-9)
    with pytest.raises(ShapeError, match=r"`truth` must have 3 components; got 4 at track .* at 2025-01-01 12:00:00"):
        measured(state, other)
    with pytest.raises(ShapeError, match="`mapping` must name components that exist"):
        measured(state, mapping=[0, 7])
    with pytest.raises(ShapeError, match="`truth_mapping` must be as long as `mapping`"):
        measured(state, mapping=[0, 1], truth_mapping=[1])


def test_a_bad_covariance_names_its_track_and_time() -> None:
    times = [NOON + timedelta(seconds=k) for k in range(3)]
    states = [
        GaussianState(MEAN, COV if k != 1 else np.diag([1.0, -1.0, 1.0]), timestamp=t) for k, t in enumerate(times)
    ]
    path = GroundTruthPath([GroundTruthState(TRUTH, timestamp=t) for t in times])
    with pytest.raises(CovarianceError, match=r"is -1 at row 1, track [-0-9a-f]+ at 2025-01-01 12:00:01"):
        manager(path, states).generate_metrics()


def test_states_of_several_kinds_in_one_track() -> None:
    times = [NOON + timedelta(seconds=k) for k in range(3)]
    path = GroundTruthPath([GroundTruthState(TRUTH, timestamp=t) for t in times])
    states = [
        GaussianState(MEAN, COV, timestamp=times[0]),
        SqrtGaussianState(MEAN, 2 * ROOT, timestamp=times[1]),
        GaussianMixture([WeightedGaussianState(MEAN, 9 * COV, timestamp=times[2], weight=1.0)]),
    ]
    metric = manager(path, states).generate_metrics()["ecd_generator"]["ECD at times"]
    nees = 3 + 2 * EXACT
    wanted = [(nees / scale - 3) / 2 for scale in (1, 4, 9)]
    np.testing.assert_allclose([m.value for m in metric.value], wanted, rtol=1e-9)
    assert [m.timestamp for m in metric.value] == times


# End to end: simulate, track, associate, measure, plot.

MOTION = CombinedLinearGaussianTransitionModel([ConstantVelocity(0.1), ConstantVelocity(0.1)])
SENSOR = LinearGaussian(4, (0, 2), 4.0 * np.eye(2))
PRIOR = GaussianState([0.0, 1.0, 0.0, -1.0], np.diag([25.0, 1.0, 25.0, 1.0]), timestamp=NOON)


def one_run(rng: np.random.Generator, steps: int = 12, shift: float = 0.0, optimism: float = 1.0) -> tuple[Any, Any]:
    """Return a truth and the track of a Kalman filter whose covariances are too small by a factor."""
    second = timedelta(seconds=1)
    step, root = MOTION.matrix(time_interval=second), np.linalg.cholesky(MOTION.covar(time_interval=second))
    x = np.asarray(PRIOR.mean).ravel() + np.linalg.cholesky(PRIOR.covar) @ rng.normal(size=4) + [shift, 0, shift, 0]
    start = np.asarray(PRIOR.mean).ravel() + [shift, 0, shift, 0]
    state = GaussianState(start, PRIOR.covar, timestamp=NOON)
    predictor, updater = KalmanPredictor(MOTION), KalmanUpdater(SENSOR)
    truth, track = GroundTruthPath(), Track()
    for k in range(steps):
        time = NOON + (k + 1) * second
        x = step @ x + root @ rng.normal(size=4)
        truth.append(GroundTruthState(x, timestamp=time))
        detection = Detection(x[[0, 2]] + rng.normal(0, 2, 2), timestamp=time, measurement_model=SENSOR)
        state = updater.update(SingleHypothesis(predictor.predict(state, timestamp=time), detection))
        track.append(
            GaussianStateUpdate(state.mean, state.covar / optimism, timestamp=time, hypothesis=state.hypothesis)
        )
    return truth, track


def in_manager(truth: Any, track: Any) -> MultiManager:
    made = MultiManager([])
    made.add_data({"tracks": {track}, "groundtruth_paths": {truth}})
    return made


def test_end_to_end_through_multimanager_with_association_and_plot() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot as plt
    from stonesoup.plotter import MetricPlotter

    rng = np.random.default_rng(1)
    pairs = [one_run(rng, shift=200.0 * k) for k in range(3)]
    bold = [Track([GaussianState(s.mean, s.covar / 4, timestamp=s.timestamp) for s in track]) for _, track in pairs]
    generators = [
        ECDMetric(generator_name="honest"),
        ECDMetric(generator_name="bold", tracks_key="bold"),
        OSPAMetric(c=10, p=1, generator_name="ospa"),
    ]
    made = MultiManager(generators, associator=TrackToTruth(association_threshold=30))
    made.add_data({
        "tracks": {track for _, track in pairs}, "bold": set(bold), "groundtruth_paths": {truth for truth, _ in pairs},
    })  # fmt: skip
    metrics = made.generate_metrics()
    honest, over = metrics["honest"], metrics["bold"]
    assert set(honest) == {"ECD", "ECD at times", "NEES", "NEES at times", "ECD share lost"}
    assert over["NEES"].value == pytest.approx(4 * honest["NEES"].value, rel=1e-9)
    assert over["ECD"].value > 2.0
    at = honest["ECD at times"]
    assert isinstance(at, TimeRangeMetric)
    assert all(isinstance(m, SingleTimeMetric) for m in at.value)
    assert [m.timestamp for m in at.value] == sorted(m.timestamp for m in at.value)
    assert at.time_range.start_timestamp == NOON + timedelta(seconds=1)
    x = np.stack([np.asarray(s.state_vector).ravel() for truth, _ in pairs for s in truth])
    mean = np.stack([np.asarray(s.mean).ravel() for _, track in pairs for s in track])
    cov = np.stack([np.asarray(s.covar) for _, track in pairs for s in track])
    assert honest["ECD share lost"].value == 0.0
    assert honest["ECD"].value == pytest.approx(safecal.gaussian(x, mean, cov=cov).ecd, rel=1e-9)

    plotter = MetricPlotter()
    plotter.plot_metrics(metrics, metric_names=["ECD at times", "NEES at times"])
    try:
        assert [axis.get_title() for axis in plotter.axes] == ["ECD", "NEES"]
        for axis, title in zip(plotter.axes, ("ECD at times", "NEES at times"), strict=True):
            lines = axis.get_lines()
            assert len(lines) == 2
            for line, name in zip(lines, ("honest", "bold"), strict=True):
                np.testing.assert_allclose(line.get_ydata(), [m.value for m in metrics[name][title].value])
    finally:
        plt.close(plotter.fig)


def test_titles_are_unique_for_a_simple_manager() -> None:
    truth, track = one_run(np.random.default_rng(2))
    simple = SimpleManager([ECDMetric(), OSPAMetric(c=10, p=1)])
    simple.add_data({truth}, {track})
    titles = list(simple.generate_metrics())
    assert len(titles) == len(set(titles))
    assert {"ECD", "NEES", "ECD at times", "OSPA distances"} <= set(titles)


def test_true_states_without_an_estimate_are_lost() -> None:
    truth, track = one_run(np.random.default_rng(3))
    shorter = Track(track.states[:9])
    metrics = manager(truth, shorter.states).generate_metrics()["ecd_generator"]
    assert metrics["ECD share lost"].value == pytest.approx(3 / 12)
    assert len(metrics["ECD at times"].value) == 9


def test_several_tracks_need_an_associator() -> None:
    rng = np.random.default_rng(4)
    (a, one), (b, two) = one_run(rng), one_run(rng)
    made = MultiManager([ECDMetric()])
    made.add_data({"tracks": {one, two}, "groundtruth_paths": {a, b}})
    with pytest.raises(FormError, match=r"^`manager` must have an associator.*got 2 tracks and 2 truths"):
        made.generate_metrics()


def test_a_track_that_is_far_from_every_truth_is_measured_as_lost() -> None:
    truth, _ = one_run(np.random.default_rng(5))
    _, far = one_run(np.random.default_rng(6), shift=5000.0)
    made = MultiManager([ECDMetric()], associator=TrackToTruth(association_threshold=30))
    made.add_data({"tracks": {far}, "groundtruth_paths": {truth}})
    metrics = made.generate_metrics()["ecd_generator"]
    assert metrics["ECD share lost"].value == 1.0
    assert np.isnan(metrics["ECD"].value)
    assert metrics["ECD at times"].value == []


@pytest.mark.proof
def test_monte_carlo_with_one_manager_a_run() -> None:
    rng = np.random.default_rng(7)
    kept: list[tuple[Any, Any]] = []

    def managers() -> Iterator[MultiManager]:
        for _ in range(40):
            kept.append(one_run(rng))
            yield in_manager(*kept[-1])

    study = monte_carlo(managers())
    assert len(study.runs) == 40
    assert study.steps.keys == tuple(float(k) for k in range(12))
    assert study.lost == 0
    x = np.stack([np.asarray(s.state_vector).ravel() for truth, _ in kept for s in truth])
    mean = np.stack([np.asarray(s.mean).ravel() for _, track in kept for s in track])
    cov = np.stack([np.asarray(s.covar) for _, track in kept for s in track])
    assert study.ecd == pytest.approx(safecal.gaussian(x, mean, cov=cov).ecd, rel=1e-9)
    assert study.share_inside > 0.6
    assert study.test.p_value > 0.01
    bold = monte_carlo((in_manager(*one_run(rng, optimism=3.0)) for _ in range(20)), ECDMetric(mapping=[0, 2]))
    assert bold.dimension == 2
    assert bold.verdict.decision == "UNSAFE"
    nis, owner = innovations([track for _, track in kept])
    assert nis.n == 40 * 12
    assert nis.dimension == 2
    assert abs(nis.ecd) < 0.25
    assert np.bincount(owner).tolist() == [12] * 40


def test_innovations_of_bearings_are_wrapped() -> None:
    sensor = CartesianToBearingRange(4, (0, 2), np.diag([0.01, 1.0]))
    prior = GaussianState([-100.0, 0.0, 0.5, 0.0], np.eye(4), timestamp=NOON)
    prediction = KalmanPredictor(MOTION).predict(prior, timestamp=NOON + timedelta(seconds=1))
    z = StateVector([Bearing(-3.1), 100.0])
    detection = Detection(z, timestamp=prediction.timestamp, measurement_model=sensor)
    state = ExtendedKalmanUpdater(None).update(SingleHypothesis(prediction, detection))
    predictions, _ = innovations([Track([prior, state])])
    assert predictions.n == 1
    assert predictions.ecd < 0.0
    with pytest.raises(FormError, match="must hold updates with a Gaussian prediction"):
        innovations([Track([prior])])


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="`particles` must be one of 'moments', 'neighbours'; got 'kde'"):
        ECDMetric(particles="kde")
    with pytest.raises(OptionError, match="`draws` must be a whole number, at least 3; got 1"):
        ECDMetric(draws=1)
    with pytest.raises(InputError, match="must hold a track that is associated with a truth"):
        monte_carlo([])


def test_the_plug_in_loads_as_stone_soup_loads_it() -> None:
    entry = EntryPoint("safecal", "safecal.compat.stonesoup", "stonesoup.plugins")
    assert entry.load().ECDMetric is ECDMetric


def test_without_stone_soup_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("stonesoup", "safecal.compat.stonesoup"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stonesoup", None)
    with pytest.raises(MissingExtraError, match=r"pip install \"safecal\[stonesoup\]\""):
        import safecal.compat.stonesoup  # noqa: F401
    from safecal.paper.tracking import run_tracking

    with pytest.raises(MissingExtraError, match=r"pip install \"safecal\[stonesoup\]\""):
        run_tracking(runs=2)
