"""An evaluation in MLflow: a real store in a folder."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.compat.mlflow import log_evaluation
from safecal.errors import InputError, MissingExtraError

pytestmark = pytest.mark.extra


def evaluation(factor: float = 2.0) -> safecal.Evaluation:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 3, 2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-z))).astype(int)
    return safecal.evaluate(y, logits=factor * z)


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return MLflow with an empty store."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    module = pytest.importorskip("mlflow")
    before = module.get_tracking_uri()
    module.set_tracking_uri((tmp_path / "runs").as_uri())
    yield module
    while module.active_run() is not None:
        module.end_run()
    module.set_tracking_uri(before)


def files(mlflow: Any, run_id: str, folder: str = "safecal") -> set[str]:
    return {entry.path for entry in mlflow.MlflowClient().list_artifacts(run_id, folder)}


def test_a_new_run(mlflow: Any, tmp_path: Path) -> None:
    result = evaluation()
    run_id = log_evaluation(result)
    assert mlflow.active_run() is None
    run = mlflow.MlflowClient().get_run(run_id)
    assert run.info.status == "FINISHED"
    metrics = run.data.metrics
    assert metrics["safecal/ecd"] == result.ecd
    assert (metrics["safecal/ecd_low"], metrics["safecal/ecd_high"]) == (result.interval.low, result.interval.high)
    assert metrics["safecal/temperature"] == result.temperature.value
    assert metrics["safecal/nll"] == result.nll
    assert metrics["safecal/ece"] == result.ece
    assert metrics["safecal/n"] == 2000
    assert metrics["safecal/n_impossible"] == 0
    assert run.data.tags["safecal.decision"] == result.verdict.decision == "UNSAFE"
    assert run.data.tags["safecal.reason"] == result.verdict.reason
    assert run.data.tags["safecal.where"] == result.verdict.where[0].name
    assert metrics["safecal/worst_ecd_low"] == result.verdict.where[0].ecd.low
    assert result.mistakes is not None
    ratio = result.mistakes.ratio
    ratios = [metrics[f"safecal/mistakes_ratio{end}"] for end in ("", "_low", "_high")]
    assert ratios == [ratio.value, ratio.low, ratio.high]
    assert files(mlflow, run_id) == {"safecal/evaluation.json", "safecal/report.html"}
    text = Path(mlflow.MlflowClient().download_artifacts(run_id, "safecal/evaluation.json", str(tmp_path))).read_text()
    assert safecal.Evaluation.from_dict(json.loads(text)).ecd == result.ecd
    page = Path(mlflow.MlflowClient().download_artifacts(run_id, "safecal/report.html", str(tmp_path))).read_text()
    assert "UNSAFE" in page


def test_the_active_run_and_steps(mlflow: Any) -> None:
    with mlflow.start_run() as run:
        for step, factor in enumerate((3.0, 2.0)):
            assert log_evaluation(evaluation(factor), step=step, report=False, prefix="valid") == run.info.run_id
        assert mlflow.active_run().info.run_id == run.info.run_id
    path = mlflow.MlflowClient().get_metric_history(run.info.run_id, "valid/ecd")
    assert [point.step for point in path] == [0, 1]
    assert path[0].value > path[1].value
    assert files(mlflow, run.info.run_id, "valid") == {"valid/step-0", "valid/step-1"}
    assert files(mlflow, run.info.run_id, "valid/step-1") == {"valid/step-1/evaluation.json"}


def test_a_named_run(mlflow: Any) -> None:
    with mlflow.start_run() as run:
        pass
    with mlflow.start_run():
        assert log_evaluation(evaluation(), run_id=run.info.run_id) == run.info.run_id
    assert "safecal/ecd" in mlflow.MlflowClient().get_run(run.info.run_id).data.metrics


def test_what_does_not_exist_is_left_out_and_what_is_infinite_is_not(mlflow: Any) -> None:
    states = safecal.gaussian([[0.1], [2.0], [-0.3]], [[0.0], [0.0], [0.0]], cov=np.ones((3, 1, 1))).evaluate()
    metrics = mlflow.MlflowClient().get_run(log_evaluation(states)).data.metrics
    assert "safecal/ece" not in metrics
    assert metrics["safecal/ecd"] == states.ecd
    impossible = safecal.evaluate([0, 1, 1], [1.0, 0.5, 0.7])
    metrics = mlflow.MlflowClient().get_run(log_evaluation(impossible)).data.metrics
    assert metrics["safecal/ecd"] == np.inf
    assert metrics["safecal/n_impossible"] == 1


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="`evaluation` must be an Evaluation"):
        log_evaluation(3)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"safecal\[mlflow\]"):
        log_evaluation(evaluation())
