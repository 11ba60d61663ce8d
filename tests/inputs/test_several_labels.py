"""Several labels a row, as columns of a table: the same evaluation at every door, and errors that lead there."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import safecal
from safecal.cli import main
from safecal.engines.frames import evaluate_frame
from safecal.errors import FormError, InputError, LabelError, OptionError, ShapeError
from safecal.inputs.columns import label_pairs

LABELS = ("rain", "fog", "snow")
Y, P = [f"y_{name}" for name in LABELS], [f"p_{name}" for name in LABELS]


def days(n: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, (n, 3)) + rng.normal(0.0, 1.0, (n, 1))
    p = 1.0 / (1.0 + np.exp(-z))
    y = rng.random((n, 1)) < p  # labels of a row share what decides them
    columns: dict[str, Any] = {name: y[:, k].astype(int) for k, name in enumerate(Y)}
    columns |= {name: p[:, k] for k, name in enumerate(P)}
    return pl.DataFrame(columns | {"site": np.resize(["a", "b", "c"], n), "w": rng.uniform(0.5, 2.0, n)})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "days.csv"
    days().write_csv(path)
    return path


def said(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str, str]:
    status = main(shlex.split(command))
    out, err = capsys.readouterr()
    return status, out, err


def test_arrays_frames_files_and_streams_agree(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = days()
    arrays = safecal.evaluate(
        frame[Y].to_numpy(), frame[P].to_numpy(), by_label=True, labels=Y, by={"site": frame["site"].to_numpy()},
        sample_weight=frame["w"].to_numpy(),
    )  # fmt: skip
    options: dict[str, Any] = {"y_true": Y, "y_prob": P, "by_label": True, "by": "site", "sample_weight": "w"}
    whole = evaluate_frame(frame, **options)
    streamed = evaluate_frame(frame.lazy(), **options, max_rows=10)
    status, out, _ = said(capsys, f"evaluate {file} --by-label --by site --sample-weight w --json")
    assert status == 0
    shell = safecal.Evaluation.from_dict(json.loads(out))
    for evaluation in (whole, streamed, shell):
        assert evaluation.verdict.decision == arrays.verdict.decision
        assert evaluation.ecd == pytest.approx(arrays.ecd)
        assert (evaluation.interval.low, evaluation.interval.high) == pytest.approx(
            (arrays.interval.low, arrays.interval.high)
        )
        assert "400 clusters" in evaluation.interval.method  # a row is one, whatever its labels
        assert set(evaluation.groups.keys) == set(arrays.groups.keys)


def test_labels_of_a_row_are_no_independent_rows(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = days()
    together = evaluate_frame(frame, y_true=Y, y_prob=P, by_label=True, labels=LABELS)
    apart = safecal.evaluate(frame[Y].to_numpy().reshape(-1), frame[P].to_numpy().reshape(-1))
    assert together.interval.high - together.interval.low > 1.2 * (apart.interval.high - apart.interval.low)
    assert set(together.groups.keys) == set(LABELS)
    one = safecal.evaluate(frame["y_fog"].to_numpy(), frame["p_fog"].to_numpy())
    assert together.groups["fog"].ecd == pytest.approx(one.ecd)
    words = " ".join(f"--y {y} --prob {p} --label {name}" for y, p, name in zip(Y, P, LABELS, strict=True))
    _, out, _ = said(capsys, f"evaluate {file} --by-label {words}")
    assert "\nlabel     rows" in out
    assert "\nrain " in out


def test_a_row_that_is_left_out_takes_its_labels_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "holes.csv"
    frame = days(50).with_columns(y_fog=pl.when(pl.int_range(50) == 7).then(None).otherwise(pl.col("y_fog")))
    frame.write_csv(path)
    status, _, err = said(capsys, f"evaluate {path} --by-label")
    assert (status, "`y_fog` must not hold missing values; got nothing at row 7" in err) == (2, True)
    _, out, _ = said(capsys, f"evaluate {path} --by-label --drop-missing --json")
    assert json.loads(out)["tally"]["summary"]["n"] == 3 * 49


def test_a_report_is_written_of_labels(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = days().with_columns(p_snow=1.0 - pl.col("p_snow"))
    frame.write_csv(file)
    status, _, _ = said(capsys, f"evaluate {file} --by-label --gate --report {tmp_path / 'report.html'}")
    assert status == 3
    assert "y_snow" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--y y_rain --y y_fog --prob p_rain", "`--y` names 2 columns"),
        ("--by-label --y y_rain --y y_fog --prob p_rain", "got 2 and 1"),
        ("--by-label --y y_rain --prob p_rain", "got 1 and 1"),
        ("--by-label --prob p_rain --logits p_fog", "two forms of one prediction"),
        ("--by-label --y y_rain --prob p_rain --y site --prob p_fog", "`site` must be 0 or 1, where a row has several"),
        ("--by-label --y y_rain --prob p_rain --y nothing --prob p_fog", "has no column 'nothing'"),
        ("--by-label --pos-label 1", "`--pos-label` belongs to one column"),
        ("--by-label --features site", "cannot be searched where a row has several labels"),
        ("--by-label --label one", "`--label` must name each of the 3 labels; got 1 names"),
    ],
)
def test_what_does_not_go_together_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str], options: str, error: str
) -> None:
    status, _, err = said(capsys, f"evaluate {file} {options}")
    assert (status, error in err) == (2, True), err


def test_pairs_of_columns_lead_to_the_command(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = said(capsys, f"evaluate {file}")
    line = err.partition("Hint: safecal ")[2].strip()
    assert "--by-label --y y_rain --prob p_rain --y y_fog" in line
    assert said(capsys, line)[0] == 0
    days().select("site", "w").write_csv(file)
    assert "which columns of" in said(capsys, f"evaluate {file} --by-label")[2]


def test_pairs_are_found_by_name_where_nothing_else_is_possible() -> None:
    assert label_pairs(["rain", "fog", "rain_logit", "fog_logit"]) == (
        ("rain", "fog"), ("rain_logit", "fog_logit"), "logits",
    )  # fmt: skip
    assert label_pairs(["rain_label", "fog_label", "rain_prob", "fog_prob"]) is not None
    assert label_pairs(["y_rain", "p_rain"]) is None
    assert label_pairs(["y_a", "y_b", "p_a", "p_b", "logit_a", "logit_b"]) is None


def test_frames_say_what_is_missing() -> None:
    frame = days(50)
    with pytest.raises(FormError, match=r"pass `by_label=True`"):
        evaluate_frame(frame, y_true=Y, y_prob=P)
    with pytest.raises(ShapeError, match="must name two columns or more"):
        evaluate_frame(frame, y_true="y_rain", y_prob=P, by_label=True)
    with pytest.raises(OptionError, match="must not have a column `label`"):
        evaluate_frame(frame.with_columns(label=1), y_true=Y, y_prob=P, by="label", by_label=True)
    with pytest.raises(OptionError, match="belongs to classifiers"):
        evaluate_frame(frame, x_true="w", mean="w", std="w", by_label=True)
    with pytest.raises(LabelError, match=r"`y_fog` must be 0 or 1, .*; got 2 at row 2"):
        evaluate_frame(frame.with_columns(y_fog=pl.int_range(50)), y_true=Y, y_prob=P, by_label=True)
    with pytest.raises(InputError, match=r"must lie in \[0, 1\]"):
        evaluate_frame(frame.with_columns(p_fog=2.0 * pl.col("p_fog")), y_true=Y, y_prob=P, by_label=True)


@pytest.mark.extra
def test_partitions_of_a_cluster_do_not_number_their_rows() -> None:
    import dask.dataframe as dd

    frame = dd.from_pandas(days(60).to_pandas(), npartitions=2)
    whole = evaluate_frame(frame, y_true=Y, y_prob=P, by_label=True)
    assert "60 clusters" in whole.interval.method
    with pytest.raises(OptionError, match="partitions do not number their rows"):
        evaluate_frame(frame, y_true=Y, y_prob=P, by_label=True, max_rows=20)
