"""Rows on which libraries are compared, the numbers that each makes of them, and what safecal answers."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Answer = tuple[str, str, str]  # the answer in a word or two; what was called; what came
Array = Any


def coins(count: int = 2000, sharp: float = 1.0, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return outcomes, log-odds and probabilities; the log-odds are ``sharp`` times too large."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, count)
    y = (rng.random(count) < 1.0 / (1.0 + np.exp(-z))).astype(int)
    return y, sharp * z, 1.0 / (1.0 + np.exp(-sharp * z))


@cache
def three_models() -> tuple[Array, list[Array]]:
    """Return the outcomes and probabilities behind `safecal paper models`."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    pixels, digit = load_digits(return_X_y=True)
    y = (digit >= 5).astype(int)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    models = [
        MultinomialNB(),
        RandomForestClassifier(100, min_samples_leaf=20, random_state=0),
        make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=2000)),
    ]
    return y, [cross_val_predict(one, pixels, y, cv=folds, method="predict_proba")[:, 1] for one in models]


def states(times: float = 1.0) -> tuple[Array, Array, Array]:
    """Return true states of two dimensions, means, and covariances that are ``times`` too small."""
    rng = np.random.default_rng(1)
    cov = np.array([[1.0, 0.6], [0.6, 2.0]])
    x = rng.multivariate_normal([0.0, 0.0], cov, 2000)
    return x, np.zeros_like(x), np.broadcast_to(cov / times, (2000, 2, 2)).copy()


def both(number: Callable[[Array, Array], float]) -> str:
    """Return what a number is for a calibrated model and for one whose log-odds are twice too large."""
    (y, _, good), (_, _, sharp) = coins(), coins(sharp=2.0)
    return f"{number(y, good):.2g} calibrated, {number(y, sharp):.2g} over-confident"


def one_hot(p: Array) -> Array:
    """Return the probabilities of both classes, a column each."""
    return np.stack([1.0 - p, p], axis=1)


# Numbers of probmetrics take some lines.


def probmetrics_number(name: str, y: Array, p: Array) -> float:
    """Return a number of probmetrics by its name."""
    import torch
    from probmetrics.metrics import Metrics

    given = (torch.from_numpy(y), torch.from_numpy(one_hot(p)))
    return float(Metrics.from_names([name]).compute_all_from_labels_probs(*given)[name])


def probmetrics_parts(y: Array, p: Array) -> tuple[float, float]:
    """Return the over- and the under-confident part of the calibration error, as probmetrics estimates them."""
    import torch
    from probmetrics import metrics as of
    from probmetrics.calibrators import get_calibrator
    from probmetrics.distributions import CategoricalDirac, CategoricalProbs
    from probmetrics.splitters import CVSplitter

    kinds = [of.TopClassLoss(kind(of.ProperLpLoss(p=1))) for kind in (of.OverConfidenceLoss, of.UnderConfidenceLoss)]
    calibrator = get_calibrator("isotonic", calibrate_with_mixture=True)
    parts = of.MetricsWithCalibration(of.CombinedMetrics(kinds), calibrator, CVSplitter(n_cv=5), random_state=0)
    given = (CategoricalDirac(torch.from_numpy(y), 2), CategoricalProbs(torch.from_numpy(one_hot(p))))
    values = parts.compute_all(*given)
    over, under = (float(value) for key, value in values.items() if key.startswith("calib-err"))
    return over, under


# What each makes of three models, and of one impossible event among 2000 rows.


def _probmetrics_over(y: Array, p: Array) -> float:
    return probmetrics_parts(y, p)[0]


def _netcal(y: Array, p: Array) -> float:
    from netcal.metrics import ECE

    return float(ECE(10).measure(p, y))


def _torchmetrics(y: Array, p: Array) -> float:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    return float(binary_calibration_error(torch.from_numpy(p), torch.from_numpy(y), n_bins=10))


def _mapie(y: Array, p: Array) -> float:
    from mapie.metrics.calibration import expected_calibration_error

    return float(expected_calibration_error(y, p, num_bins=11, split_strategy="uniform"))  # it counts edges


def _smooth(y: Array, p: Array) -> float:
    from relplot import smECE

    return float(smECE(p, y))


def _debiased(y: Array, p: Array) -> float:
    import calibration

    return float(calibration.get_calibration_error(p, y))


def _pycalib(y: Array, p: Array) -> float:
    from pycalib.metrics import binary_ECE

    return float(binary_ECE(y, p, bins=10))


def _log_loss(y: Array, p: Array) -> float:
    from sklearn.metrics import log_loss

    return float(log_loss(y, p))


def _brier(y: Array, p: Array) -> float:
    from sklearn.metrics import brier_score_loss

    return float(brier_score_loss(y, p))


def _ecd(y: Array, p: Array) -> float:
    import safecal

    return float(safecal.ecd(y, p))


NUMBERS: tuple[tuple[str, str, Callable[[Array, Array], float]], ...] = (
    ("safecal", "ECD", _ecd),
    ("scikit-learn", "log loss", _log_loss),
    ("scikit-learn", "Brier score", _brier),
    ("netcal", "ECE", _netcal),
    ("torchmetrics", "ECE", _torchmetrics),
    ("MAPIE", "ECE", _mapie),
    ("relplot", "smooth ECE", _smooth),
    ("probmetrics", "over-confident part", _probmetrics_over),
    ("uncertainty-calibration", "debiased error", _debiased),
    ("pycalib", "ECE", _pycalib),
)


def impossible() -> list[tuple[Array, Array]]:
    """Return a calibrated model, and the same with one event that it calls impossible and that happens."""
    y, _, p = coins()
    return [(y, p), (np.append(y, 1), np.append(p, 0.0))]


# safecal itself. Each call names what exists: a test holds that.


def our_sign() -> Answer:
    import safecal

    bayes, forest, _ = (one.evaluation.ecd for one in safecal.paper.three_models())
    return "yes", "safecal.Evaluation.ecd", f"naive Bayes {bayes:+.2f}, forest {forest:+.2f}"


def our_test() -> Answer:
    import safecal

    return "yes", "safecal.calibration_test", both(lambda y, p: safecal.calibration_test(y, p).p_value)


def our_interval() -> Answer:
    import safecal

    interval = safecal.evaluate(*coins(sharp=2.0)[::2]).interval
    return "yes", "safecal.Evaluation.interval", f"ECD {interval.value:.2f}, {interval.low:.2f} to {interval.high:.2f}"


def our_verdict() -> Answer:
    import safecal

    (y, _, good), (_, _, sharp) = coins(), coins(sharp=2.0)
    decisions = [safecal.evaluate(y, p).verdict.decision for p in (good, sharp)]
    return "yes", "safecal.Evaluation.verdict", f"{decisions[0]} calibrated, {decisions[1]} over-confident"


def our_weights() -> Answer:
    import safecal

    y, _, p = coins(sharp=2.0)
    twice = np.arange(len(y)) % 2 + 1
    weighed = safecal.evaluate(y, p, sample_weight=twice).ecd
    repeated = safecal.evaluate(np.repeat(y, twice), np.repeat(p, twice)).ecd
    assert abs(weighed - repeated) < 1e-12
    return "yes", "safecal.evaluate", f"{weighed:.3f} with weight 2, {repeated:.3f} with the rows twice"


def our_clusters() -> Answer:
    import safecal

    y, _, p = coins(sharp=1.2)
    y, p, patient = np.tile(y[:100], 20), np.tile(p[:100], 20), np.tile(np.arange(100), 20)
    alone, together = safecal.evaluate(y, p).interval, safecal.evaluate(y, p, cluster=patient).interval
    widths = [one.high - one.low for one in (alone, together)]
    assert widths[1] > 2.0 * widths[0]
    return "yes", "safecal.evaluate", f"rows 20 times: an interval of {widths[0]:.2f} becomes one of {widths[1]:.2f}"


def our_logits() -> Answer:
    import safecal

    y, z, p = coins(sharp=2.0)
    values = [safecal.evaluate(y, p).ecd, safecal.evaluate(y, logits=z).ecd]
    return "by name", "safecal.evaluate", f"{values[0]:.3f} from probabilities, {values[1]:.3f} from logits"


def our_states() -> Answer:
    import safecal

    evaluations = []
    for times in (1.0, 3.0):
        x, mean, cov = states(times)
        evaluations.append(safecal.gaussian(x, mean, cov=cov).evaluate())
    words = [f"{one.verdict.decision} (ECD {one.ecd:.2f})" for one in evaluations]
    return "yes", "safecal.gaussian", f"{words[0]} calibrated, {words[1]} covariances three times too small"


def our_stream() -> Answer:
    import json

    import safecal

    sizes = []
    for count in (10_000, 100_000):
        y, _, p = coins(count)
        tally = safecal.bernoulli(y[::2], p[::2]).tally() + safecal.bernoulli(y[1::2], p[1::2]).tally()
        sizes.append(len(json.dumps(tally.to_dict())))
    assert sizes[1] < 2 * sizes[0]
    finding = f"{sizes[0] // 1000} kB after 10 000 rows, {sizes[1] // 1000} kB after 100 000"
    return "sums alone", "safecal.Predictions.tally", finding


def our_fix() -> Answer:
    import safecal

    y, z, _ = coins(sharp=2.0)
    fix = safecal.recalibrate(y, logits=z)
    ours = safecal.evaluate(*_fresh(lambda z: fix.map.apply(logits=z))).verdict.decision
    return "yes", "safecal.recalibrate", f"{ours} on new rows, after UNSAFE"


def _fresh(fixed: Callable[[Array], Array]) -> tuple[Array, Array]:
    y, z, _ = coins(20_000, sharp=2.0, seed=3)
    return y, fixed(z)


OURS: dict[str, Callable[[], Answer]] = {
    "sign": our_sign,
    "test": our_test,
    "interval": our_interval,
    "verdict": our_verdict,
    "weights": our_weights,
    "clusters": our_clusters,
    "logits": our_logits,
    "states": our_states,
    "stream": our_stream,
    "fix": our_fix,
}
