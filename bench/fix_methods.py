"""The methods that `fixes.py` measures: the maps of safecal, and those of peers that are installed, by name."""

import contextlib
import io
from collections.abc import Callable
from importlib import util
from typing import Any

import numpy as np
from scipy import special

import safecal
from safecal import maps

_WIDEST = 20  # classes, beyond which some peers take very long: netcal's logistic calibration, and probmetrics

Fixed = Callable[[np.ndarray], np.ndarray]  # logits -> probabilities of two classes or more, (n, K)
Method = Callable[[np.ndarray, np.ndarray], Fixed]  # logits (n, K), outcomes -> what fixes them


def _two(z: np.ndarray) -> np.ndarray:
    return z[:, 1] - z[:, 0]


def _safecal(map_: Callable[[], maps.Map]) -> Method:
    def method(z: np.ndarray, y: np.ndarray) -> Fixed:
        fitted = map_().fit(y, logits=z)
        return lambda x: fitted.apply(logits=x)

    return method


def _auto(safe: bool) -> Method:
    def method(z: np.ndarray, y: np.ndarray) -> Fixed:
        recalibration = safecal.recalibrate(y, logits=z, safe=safe)
        return lambda x: recalibration.apply(logits=x)

    return method


def _sklearn(method: str) -> Method:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            self.classes_ = np.arange(np.shape(X)[1])
            return self

        def decision_function(self, X: Any) -> Any:
            return _two(X) if X.shape[1] == 2 else X

        def predict(self, X: Any) -> Any:
            return X.argmax(axis=1)

    def fit(z: np.ndarray, y: np.ndarray) -> Fixed:
        model = CalibratedClassifierCV(FrozenEstimator(Given().fit(z, y)), method=method).fit(z, y)
        return lambda x: np.asarray(model.predict_proba(x))

    return fit


def _netcal(made: Callable[[], Any]) -> Method:
    def fit(z: np.ndarray, y: np.ndarray) -> Fixed:
        model = made()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if z.shape[1] == 2:
                model.fit(special.expit(_two(z)), y)
            else:
                model.fit(special.softmax(z, axis=1), y)

        def apply(x: np.ndarray) -> np.ndarray:
            if x.shape[1] > 2:
                p = np.asarray(model.transform(special.softmax(x, axis=1)))
                return p / p.sum(axis=1, keepdims=True)
            p = np.asarray(model.transform(special.expit(_two(x)))).reshape(-1)
            return np.stack([1.0 - p, p], axis=1)

        return apply

    return fit


def _probmetrics(name: str) -> Method:
    from probmetrics.calibrators import get_calibrator

    def fit(z: np.ndarray, y: np.ndarray) -> Fixed:
        model = get_calibrator(name)
        with contextlib.redirect_stdout(io.StringIO()):
            model.fit(special.softmax(z, axis=1), y)
        return lambda x: np.asarray(model.predict_proba(special.softmax(x, axis=1)))

    return fit


def methods(classes: int) -> dict[str, Method]:
    """Return what is measured, by name."""
    by_name: dict[str, Method] = {"as given": lambda z, y: lambda x: special.softmax(x, axis=1)}
    kinds = [maps.Temperature, maps.Affine, *([maps.Beta, maps.Isotonic] if classes == 2 else [maps.Vector])]
    for kind in kinds:
        by_name[kind.__name__] = _safecal(kind)
    by_name["SafeTemperature"] = _safecal(maps.SafeTemperature)
    for kind in kinds[1:]:
        by_name[f"Safe({kind.__name__})"] = _safecal(lambda kind=kind: maps.Safe(kind()))  # type: ignore[misc]
    by_name["auto, `safe=False`"] = _auto(False)
    by_name["auto"] = _auto(True)
    for name in ("sigmoid", "isotonic", "temperature"):
        by_name[f"scikit-learn {name}"] = _sklearn(name)
    if util.find_spec("netcal"):
        from netcal.binning import IsotonicRegression
        from netcal.scaling import BetaCalibration, LogisticCalibration, TemperatureScaling

        peers = {"temperature": TemperatureScaling}
        if classes <= _WIDEST:
            peers["logistic"] = LogisticCalibration
        if classes == 2:
            peers |= {"beta": BetaCalibration, "isotonic": IsotonicRegression}
        by_name |= {f"netcal {name}": _netcal(made) for name, made in peers.items()}
    if util.find_spec("probmetrics") and classes <= _WIDEST:
        for name in ("temp-scaling", "logistic", "quadratic-scaling" if classes == 2 else "svs"):
            by_name[f"probmetrics {name}"] = _probmetrics(name)
    return by_name
