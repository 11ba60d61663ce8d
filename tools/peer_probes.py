"""Small questions to safecal and to its peers, each asked by running it. `compare_peers.py` writes down the answers.

A probe returns `(answer, call, what came)`. Where a library has no probe for a question, `compare_peers.py` looks
through all its public names before it says no.
"""

from collections.abc import Callable
from unittest import mock

import numpy as np
from peer_rows import (
    OURS,
    Answer,
    Array,
    both,
    coins,
    one_hot,
    probmetrics_number,
    probmetrics_parts,
    states,
    three_models,
)  # fmt: skip


def sklearn_weights() -> Answer:
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss

    y, _, p = coins()
    twice = np.arange(len(y)) % 2 + 1
    repeated = brier_score_loss(np.repeat(y, twice), np.repeat(p, twice))
    assert np.isclose(brier_score_loss(y, p, sample_weight=twice), repeated)
    try:
        calibration_curve(y, p, sample_weight=twice)
    except TypeError:
        return "scores only", "sklearn.metrics.brier_score_loss", "`calibration_curve` has no `sample_weight`"
    return "yes", "sklearn.calibration.calibration_curve", "taken"


def sklearn_fix() -> Answer:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression

    y, z, _ = coins()
    CalibratedClassifierCV(LogisticRegression(), method="temperature").fit(z[:, None], y)
    return "yes", "sklearn.calibration.CalibratedClassifierCV", "sigmoid, isotonic, temperature, with the model"


def netcal_states() -> Answer:
    from netcal.metrics import QCE

    values = []
    for times in (1.0, 3.0):
        x, mean, cov = states(times)
        values.append(float(np.mean(QCE(bins=10, marginal=True).measure((mean, cov), x, q=[0.5, 0.9]))))
    return "yes", "netcal.metrics.QCE", f"{values[0]:.3f} calibrated, {values[1]:.3f} covariances three times too small"


def netcal_fix() -> Answer:
    from netcal.scaling import TemperatureScaling

    y, _, p = coins(sharp=2.0)
    TemperatureScaling().fit(p, y)
    return "yes", "netcal.scaling.TemperatureScaling", "and binning, beta, dependent and Gaussian-process maps"


def torchmetrics_interval() -> Answer:
    import torch
    from torchmetrics.classification import BinaryCalibrationError
    from torchmetrics.wrappers import BootStrapper

    torch.manual_seed(0)
    y, _, p = coins(sharp=2.0)
    metric = BootStrapper(BinaryCalibrationError(10), 200, quantile=torch.tensor([0.025, 0.975], dtype=torch.float64))
    metric.update(torch.from_numpy(p), torch.from_numpy(y))
    low, high = metric.compute()["quantile"].tolist()
    return "bootstrap", "torchmetrics.wrappers.BootStrapper", f"ECE {low:.3f} to {high:.3f}"


def torchmetrics_logits() -> Answer:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error as ece

    y, z = torch.tensor([1, 1, 0, 1, 1]), torch.tensor([0.2, 0.9, 0.4, 0.6, 3.0])
    assert np.isclose(float(ece(z, y, n_bins=10)), float(ece(torch.sigmoid(z), y, n_bins=10)))
    taken, true = (float(ece(given[:4], y[:4], n_bins=10)) for given in (z, torch.sigmoid(z)))
    finding = f"a batch of logits within 0 to 1 is taken for probabilities: {taken:.3f}, not {true:.3f}"
    return "guessed", "torchmetrics.functional.classification.binary_calibration_error", finding


def torchmetrics_stream() -> Answer:
    import torch
    from torchmetrics.classification import BinaryCalibrationError

    sizes = []
    for count in (10_000, 100_000):
        y, _, p = coins(count)
        metric = BinaryCalibrationError(10)
        for k in range(0, count, 1000):
            metric.update(torch.from_numpy(p[k : k + 1000]), torch.from_numpy(y[k : k + 1000]))
        kept = [*metric.confidences, *metric.accuracies]
        sizes.append(sum(one.element_size() * one.nelement() for one in kept))
    finding = f"{sizes[0] // 1000} kB after 10 000 rows, {sizes[1] // 1000} kB after 100 000"
    return "keeps every row", "torchmetrics.classification.BinaryCalibrationError", finding


def mapie_test() -> Answer:
    from mapie.metrics.calibration import spiegelhalter_p_value

    p_values = both(lambda y, p: float(spiegelhalter_p_value(y, p)))
    return "yes", "mapie.metrics.calibration.spiegelhalter_p_value", f"{p_values}; also Kolmogorov-Smirnov and Kuiper"


def mapie_weights() -> Answer:
    from mapie.calibration import TopLabelCalibrator
    from mapie.metrics.calibration import expected_calibration_error
    from sklearn.linear_model import LogisticRegression

    y, z, p = coins()
    weights = np.ones(len(y))
    TopLabelCalibrator(LogisticRegression().fit(z[:, None], y), cv="prefit").fit(z[:, None], y, sample_weight=weights)
    try:
        expected_calibration_error(y, p, sample_weight=weights)
    except TypeError:
        return "fits only", "mapie.calibration.TopLabelCalibrator", "its ECE has no `sample_weight`"
    return "yes", "mapie.metrics.calibration.expected_calibration_error", "taken"


def mapie_fix() -> Answer:
    from mapie.calibration import TopLabelCalibrator
    from sklearn.linear_model import LogisticRegression

    y, z, _ = coins()
    TopLabelCalibrator(LogisticRegression().fit(z[:, None], y), cv="prefit").fit(z[:, None], y)
    return "yes", "mapie.calibration.TopLabelCalibrator", "one map for each predicted class"


def relplot_interval() -> Answer:
    from relplot import prepare_rel_diagram

    y, _, p = coins(sharp=2.0)
    diagram = prepare_rel_diagram(p, y)
    return (
        "bootstrap",
        "relplot.prepare_rel_diagram",
        f"smooth ECE {diagram['ce']:.3f} ± {diagram['ce_ci_width'] / 2:.3f}",
    )


def relplot_logits() -> Answer:
    from relplot import multiclass_logits_to_confidences

    _, z, _ = coins()
    f, _ = multiclass_logits_to_confidences(np.stack([0.0 * z, z], axis=1), (z > 0).astype(int))
    assert np.allclose(f, 1.0 / (1.0 + np.exp(-np.abs(z))))
    return "converted", "relplot.multiclass_logits_to_confidences", "confidences and accuracies"


def relplot_fix() -> Answer:
    from relplot.estimators import RecalibratedEstimator
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    y, z, _ = coins()
    fixed = RecalibratedEstimator(LogisticRegression(), IsotonicRegression())
    fixed.fit(z[:, None], y)
    assert np.isfinite(fixed.predict_proba(z[:5, None])).all()
    return "yes", "relplot.estimators.RecalibratedEstimator", "any regression, on the rows that the model was fitted to"


def probmetrics_sign() -> Answer:
    y, (bayes, forest, _) = three_models()
    parts = [probmetrics_parts(y, p)[0] for p in (bayes, forest)]
    words = f"over-confident part: naive Bayes {parts[0]:.2f}, forest {parts[1]:.2f}"
    return "yes", "probmetrics.metrics.OverConfidenceLoss", words


def probmetrics_logits() -> Answer:
    import torch
    from probmetrics.metrics import Metrics

    y, z, p = coins()
    given = (torch.from_numpy(y), torch.from_numpy(np.stack([0.0 * z, z], axis=1)))
    logits = float(Metrics.from_names(["logloss"]).compute_all_from_labels_logits(*given)["logloss"])
    assert np.isclose(logits, probmetrics_number("logloss", y, p))
    return "by name", "probmetrics.metrics.Metrics.compute_all_from_labels_logits", f"log loss {logits:.3f} from both"


def probmetrics_weights() -> Answer:
    import torch
    from probmetrics.distributions import CategoricalDirac, CategoricalProbs
    from probmetrics.metrics import BrierLoss, CalibrationError

    y, _, p = coins()
    given = (CategoricalDirac(torch.from_numpy(y), 2), CategoricalProbs(torch.from_numpy(one_hot(p))))
    weights = torch.ones(len(y), dtype=torch.float64)
    assert np.isfinite(float(BrierLoss().compute(*given, weights=weights)))
    try:
        CalibrationError(10).compute(*given, weights=weights)
    except NotImplementedError as error:
        return "scores only", "probmetrics.metrics.BrierLoss", f"its ECE with weights: `{type(error).__name__}`"
    return "yes", "probmetrics.metrics.CalibrationError", "taken"


def probmetrics_fix() -> Answer:
    from probmetrics.calibrators import get_calibrator

    y, _, p = coins(sharp=2.0)
    get_calibrator("ts-mix").fit(one_hot(p), y)
    return "yes", "probmetrics.calibrators.get_calibrator", "temperature, isotonic, vector and matrix maps and more"


def calibration_interval() -> Answer:
    import calibration

    y, _, p = coins(500, sharp=2.0)
    np.random.seed(0)  # noqa: NPY002 - it draws from this state
    with mock.patch("numpy.percentile", wraps=np.percentile) as asked:
        low, _, high = calibration.get_calibration_error_uncertainties(p, y, alpha=0.1)
    at = sorted(float(call.args[1]) for call in asked.call_args_list)
    finding = f"{low:.3f} to {high:.3f}, asked for 90 %; the percentiles are {at[0]} and {at[-1]}"
    return "bootstrap", "calibration.get_calibration_error_uncertainties", finding


def calibration_fix() -> Answer:
    import calibration

    y, _, p = coins(sharp=2.0)
    scaled = calibration.PlattBinnerMarginalCalibrator(len(y), num_bins=10)
    scaled.train_calibration(one_hot(p), y)
    return "yes", "calibration.PlattBinnerMarginalCalibrator", "scaling and binning"


def _ece_of_the_second_class(y: Array, p: Array) -> float:
    from pycalib.metrics import binary_ECE

    return float(binary_ECE(y[:, 1], p[:, 1]))


def pycalib_test() -> Answer:
    from pycalib.metrics import pECE

    def value(y: Array, p: Array) -> float:
        np.random.seed(0)  # noqa: NPY002 - it draws from this state
        ece = _ece_of_the_second_class  # it goes to other processes
        return float(pECE(one_hot(y), one_hot(p), samples=500, ece_function=ece, processes=1))

    return "by simulation", "pycalib.metrics.pECE", both(value)


def pycalib_interval() -> Answer:
    import matplotlib as mpl

    mpl.use("agg")
    from pycalib.visualisations import plot_reliability_diagram

    y, _, p = coins()
    drawn = plot_reliability_diagram(labels=y, scores=one_hot(p), errorbar_interval=0.95)
    assert drawn is not None
    return "bins only", "pycalib.visualisations.plot_reliability_diagram", "error bars in the diagram; none of ECE"


def pycalib_fix() -> Answer:
    try:
        from pycalib.models import IsotonicCalibration
    except ModuleNotFoundError as error:
        return "with more", "pycalib.models", f"`{error.name}` must be installed first"
    y, _, p = coins(sharp=2.0)
    IsotonicCalibration().fit(p, y)
    return "yes", "pycalib.models.IsotonicCalibration", "and logistic, sigmoid and binning maps"


def toolbox_sign() -> Answer:
    from uncertainty_toolbox.metrics_calibration import mean_absolute_calibration_error as mace

    x = np.random.default_rng(2).normal(size=2000)
    values = [mace(0.0 * x, 0.0 * x + std, x) for std in (0.5, 2.0)]
    assert all(value > 0 for value in values)
    finding = f"standard deviations halved {values[0]:.2f}, doubled {values[1]:.2f}"
    return "no", "uncertainty_toolbox.metrics_calibration.mean_absolute_calibration_error", finding


def toolbox_states() -> Answer:
    from uncertainty_toolbox.metrics_calibration import mean_absolute_calibration_error as mace

    x, mean, cov = states()
    try:
        mace(mean, cov, x)
    except (AssertionError, ValueError, RuntimeError):
        return "no", "uncertainty_toolbox.metrics_calibration.mean_absolute_calibration_error", "refused: one dimension"
    return "yes", "uncertainty_toolbox.metrics_calibration.mean_absolute_calibration_error", "taken"


def toolbox_fix() -> Answer:
    from uncertainty_toolbox.recalibration import optimize_recalibration_ratio

    x = np.random.default_rng(2).normal(size=200)
    ratio = optimize_recalibration_ratio(0.0 * x, 0.0 * x + 0.5, x)
    return "yes", "uncertainty_toolbox.recalibration.optimize_recalibration_ratio", f"spread times {ratio:.2f}"


def scoringrules_interval() -> Answer:
    import matplotlib as mpl

    mpl.use("agg")
    from scoringrules.visualization import reliability_diagram

    y, _, p = coins(500)
    assert reliability_diagram(y, p, uncertainty_band="consistency", n_bootstrap=20) is not None
    return "diagram only", "scoringrules.visualization.reliability_diagram", "a band about the diagonal; no number"


def scoringrules_states() -> Answer:
    import scoringrules

    x, mean, cov = states()
    rng = np.random.default_rng(0)
    draws = mean[:200, None] + rng.multivariate_normal([0.0, 0.0], cov[0], (200, 100))
    value = float(np.mean(scoringrules.es_ensemble(x[:200], draws)))
    return "scores of draws", "scoringrules.es_ensemble", f"energy score {value:.2f}: no calibration"


def scoringrules_rows() -> Answer:
    import scoringrules

    x = np.random.default_rng(2).normal(size=5)
    assert scoringrules.crps_normal(x, 0.0 * x, 1.0 + 0.0 * x).shape == (5,)
    return "yes", "scoringrules.crps_normal", "a score for each row, to be averaged as one likes"


PROBES: dict[str, dict[str, Callable[[], Answer]]] = {
    "safecal": OURS,
    "scikit-learn": {"weights": sklearn_weights, "fix": sklearn_fix},
    "netcal": {"states": netcal_states, "fix": netcal_fix},
    "torchmetrics": {"interval": torchmetrics_interval, "logits": torchmetrics_logits, "stream": torchmetrics_stream},
    "MAPIE": {"test": mapie_test, "weights": mapie_weights, "fix": mapie_fix},
    "relplot": {"interval": relplot_interval, "logits": relplot_logits, "fix": relplot_fix},
    "probmetrics": {
        "sign": probmetrics_sign, "logits": probmetrics_logits, "weights": probmetrics_weights, "fix": probmetrics_fix,
    },
    "uncertainty-calibration": {"interval": calibration_interval, "fix": calibration_fix},
    "pycalib": {"test": pycalib_test, "interval": pycalib_interval, "fix": pycalib_fix},
    "uncertainty-toolbox": {"sign": toolbox_sign, "states": toolbox_states, "fix": toolbox_fix},
    "scoringrules": {
        "interval": scoringrules_interval, "weights": scoringrules_rows, "states": scoringrules_states,
        "stream": scoringrules_rows,
    },
}  # fmt: skip

# What they do and safecal does not: names that must exist, and what they are.
BEYOND: dict[str, tuple[tuple[str, str], ...]] = {
    "scikit-learn": (
        ("sklearn.model_selection.cross_val_predict", "trains and cross-validates the models themselves"),
        ("sklearn.metrics.roc_auc_score", "ranking metrics, and dozens more"),
    ),
    "netcal": (
        ("netcal.binning.ENIR", "many more maps, among them BBQ, ENIR and near-isotonic ensembles"),
        ("netcal.regularization.MMCEPenalty", "penalties for training"),
        ("netcal.metrics.MMCE", "a kernel calibration error"),
        ("netcal.scaling.LogisticCalibrationDependent", "calibration of detectors by where a box lies"),
    ),
    "torchmetrics": (
        ("torchmetrics.classification.BinaryFairness", "fairness"),
        ("torchmetrics.detection.mean_ap.MeanAveragePrecision", "metrics of detection, images, audio and text"),
    ),
    "MAPIE": (
        ("mapie.classification.SplitConformalClassifier", "conformal prediction sets and intervals"),
        ("mapie.risk_control.BinaryClassificationController", "thresholds that control a risk"),
    ),
    "relplot": (("relplot.rel_diagram", "a smooth reliability diagram without bins"),),
    "probmetrics": (
        ("probmetrics.metrics.MetricsWithCalibration", "a proper loss split into calibration and refinement"),
    ),
    "uncertainty-calibration": (("calibration.get_calibration_error", "a debiased calibration error"),),
    "pycalib": (("pycalib.metrics.classwise_ECE", "ECE of each class"),),
    "uncertainty-toolbox": (
        ("uncertainty_toolbox.metrics_calibration.adversarial_group_calibration", "the worst of random groups"),
        ("uncertainty_toolbox.viz.plot_residuals_vs_stds", "more plots of regression"),
    ),
    "scoringrules": (
        ("scoringrules.crps_gev", "CRPS and log score in closed form for some 30 distributions"),
        ("scoringrules.vs_ensemble", "energy, variogram and weighted scores of ensembles"),
    ),
}
