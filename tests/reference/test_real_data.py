"""Real predictions with real outcomes: regression numbers, and slow obvious loops on each file."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import safecal
from safecal.errors import LabelError

from . import loops


def columns(path: Path, *names: str) -> list[np.ndarray]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [np.array([row[name] for row in rows]) for name in names]


def games(folder: Path, sport: str) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes, ties included, and probabilities."""
    path = {"baseball": "baseball/mlb_games.csv", "football": "football/nfl_games.csv"}[sport]
    p, y = columns(folder / path, "prob1", "prob1_outcome")
    return y.astype(float), p.astype(float)


def images(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / "cifar" / name) as file:
        return file["ground_truth"], file["predictions"]


def cells(folder: Path, model: str) -> tuple[np.ndarray, np.ndarray]:
    p, y = columns(folder / "cells" / f"segment_{model}.csv", ".pred_poor", "Class")
    return y, p.astype(float)


def tweets(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y, p, logit = columns(folder / "toxicity" / "bilstm_tweets.csv", "y", "p", "logit")
    return y.astype(int), p.astype(float), logit.astype(float)


def assert_slow_loops_agree(result: safecal.Evaluation, lines: list[loops.Line]) -> None:
    table = result.bins
    assert table is not None
    assert [s.n for s in table.summaries] == [line.n for line in lines]
    assert table.predicted == pytest.approx([line.predicted for line in lines], rel=1e-12, nan_ok=True)
    assert table.observed == pytest.approx([line.observed for line in lines], rel=1e-12, nan_ok=True)
    assert table.ecd == pytest.approx([line.ecd for line in lines], rel=1e-9, abs=1e-12, nan_ok=True)
    assert result.ece == pytest.approx(loops.ece(lines), rel=1e-11)
    assert result.esce == pytest.approx(loops.esce(lines), rel=1e-11)
    n = sum(line.n for line in lines)
    assert result.ecd == pytest.approx(math.fsum(line.n / n * line.ecd for line in lines if line.n), rel=1e-11)


def binary_lines(y: np.ndarray, p: np.ndarray) -> list[loops.Line]:
    outcome, chance = [int(v) for v in y], p.tolist()
    return loops.table(
        chance, outcome, [loops.bernoulli_excess(a, b) for a, b in zip(chance, outcome, strict=True)], 10
    )


def test_wideresnet_on_cifar_10_is_over_confident(shared_data: Path) -> None:
    y, p = images(shared_data, "wideresnet-16-4-cifar-10.npz")
    result = safecal.evaluate(y, p)
    assert (result.ecd, result.nll, result.ece) == pytest.approx((0.2830, 0.3782, 0.0537), abs=5e-5)
    assert (result.esce, result.brier, result.accuracy) == pytest.approx((-0.0537, 0.1439, 0.9109), abs=5e-5)
    assert result.ece_underconfident == 0.0


@pytest.mark.proof
def test_densenet_on_cifar_100_is_over_confident(shared_data: Path) -> None:
    y, p = images(shared_data, "densenet-bc-100-cifar-100.npz")
    result = safecal.evaluate(y, p)
    assert (result.ecd, result.nll, result.ece) == pytest.approx((0.9270, 1.2256, 0.1422), abs=5e-5)
    assert (result.esce, result.brier, result.accuracy) == pytest.approx((-0.1422, 0.3845, 0.7541), abs=5e-5)


@pytest.mark.parametrize("name", ["wideresnet-16-4-cifar-10.npz", "densenet-bc-100-cifar-100.npz"])
def test_slow_loops_agree_on_images(shared_data: Path, name: str) -> None:
    y, p = images(shared_data, name)
    rows = slice(0, 3000)
    chances = p[rows].astype(float).tolist()
    top = [max(range(len(c)), key=c.__getitem__) for c in chances]
    confidence = [c[k] for c, k in zip(chances, top, strict=True)]
    correct = [k == v for k, v in zip(top, y[rows].tolist(), strict=True)]
    excess = [loops.categorical_excess(c, int(v)) for c, v in zip(chances, y[rows], strict=True)]
    assert_slow_loops_agree(safecal.evaluate(y[rows], p[rows]), loops.table(confidence, correct, excess, 10))


def test_bilstm_on_tweets_is_over_confident(shared_data: Path) -> None:
    y, p, _ = tweets(shared_data)
    result = safecal.evaluate(y, p)
    assert (result.ecd, result.nll, result.ece) == pytest.approx((0.2319, 0.4869, 0.1503), abs=5e-5)
    assert (result.esce, result.brier, result.accuracy) == pytest.approx((0.1503, 0.1423, 0.8160), abs=5e-5)
    assert_slow_loops_agree(result, binary_lines(y, p))


def test_probabilities_and_log_odds_of_the_tweets_agree_as_far_as_the_file_is_rounded(shared_data: Path) -> None:
    y, p, logit = tweets(shared_data)
    a, b = safecal.bernoulli(y, p).score(), safecal.bernoulli(y, logits=logit).score()
    assert a.surprisal is not None
    assert b.surprisal is not None
    # Both columns are float32 of one number, printed to 8 digits. An error dp moves the log-odds by dp / (p (1 - p)).
    rounding = 2.0**-24 + 5e-9
    log_odds = rounding * (p / (p * (1.0 - p)) + np.abs(logit)) * 2.0
    assert (np.abs(a.surprisal - b.surprisal) <= log_odds).all()
    assert (np.abs(a.excess - b.excess) <= log_odds * (1.0 + np.abs(logit) / 4.0)).all()
    assert safecal.ecd(y, p) == pytest.approx(safecal.ecd(y, logits=logit), abs=1e-8)
    assert safecal.nll(y, p) == pytest.approx(safecal.nll(y, logits=logit), abs=1e-8)
    assert safecal.brier(y, p) == pytest.approx(safecal.brier(y, logits=logit), abs=1e-8)


def test_baseball_forecasts_are_close_to_calibrated(shared_data: Path) -> None:
    y, p = games(shared_data, "baseball")
    decided = y != 0.5
    result = safecal.evaluate(y[decided], p[decided])
    assert result.n == 15747
    assert (result.ecd, result.nll, result.ece) == pytest.approx((-0.0022, 0.6726, 0.0070), abs=5e-5)
    assert (result.esce, result.brier, result.accuracy) == pytest.approx((0.0016, 0.2399, 0.5840), abs=5e-5)
    assert_slow_loops_agree(result, binary_lines(y[decided], p[decided]))


def test_football_forecasts_are_a_little_over_confident(shared_data: Path) -> None:
    y, p = games(shared_data, "football")
    decided = y != 0.5
    result = safecal.evaluate(y[decided], p[decided])
    assert result.n == 1882
    assert (result.ecd, result.nll, result.ece) == pytest.approx((0.0179, 0.6315, 0.0323), abs=5e-5)
    assert (result.esce, result.brier, result.accuracy) == pytest.approx((-0.0296, 0.2208, 0.6440), abs=5e-5)
    assert_slow_loops_agree(result, binary_lines(y[decided], p[decided]))


@pytest.mark.parametrize(("sport", "ties", "rows"), [("baseball", 1, 15748), ("football", 7, 1889)])
def test_a_tie_is_not_an_outcome(shared_data: Path, sport: str, ties: int, rows: int) -> None:
    y, p = games(shared_data, sport)
    with pytest.raises(LabelError, match=rf"0\.5 at row \d+ \({ties} of {rows} rows\)"):
        safecal.evaluate(y, p)


def test_logistic_regression_on_cells_takes_labels_as_text(shared_data: Path) -> None:
    y, p = cells(shared_data, "logistic")
    result = safecal.evaluate(y, p, pos_label="poor")
    assert (result.ecd, result.nll, result.ece) == pytest.approx((0.0645, 0.4384, 0.0566), abs=5e-5)
    assert (result.esce, result.brier, result.accuracy) == pytest.approx((0.0322, 0.1398, 0.7871), abs=5e-5)
    assert_slow_loops_agree(result, binary_lines(y == "poor", p))
    other = safecal.evaluate(y, 1.0 - p, pos_label="good")
    for name in ("ecd", "nll", "brier", "accuracy"):
        assert getattr(other, name) == pytest.approx(getattr(result, name), rel=1e-12)
    assert other.esce == pytest.approx(-result.esce, rel=1e-12)
    both = safecal.evaluate(y, np.column_stack([p, 1.0 - p]), labels=["poor", "good"])
    assert (both.ecd, both.nll, both.brier) == pytest.approx((result.ecd, result.nll, result.brier), rel=1e-12)


def test_naive_bayes_on_cells_met_the_impossible(shared_data: Path) -> None:
    y, p = cells(shared_data, "naive_bayes")
    predictions = safecal.bernoulli(y, p, pos_label="poor")
    summary = predictions.summary()
    impossible = [i for i in range(len(y)) if (p[i] == 0.0 and y[i] == "poor") or (p[i] == 1.0 and y[i] == "good")]
    assert np.flatnonzero(predictions.score().impossible).tolist() == impossible
    assert (summary.n, summary.n_impossible) == (1010, len(impossible)) == (1010, 4)
    assert summary.ecd == summary.nll == math.inf
    assert summary.ecd_possible == pytest.approx(2.3285, abs=5e-5)
    excess = [loops.bernoulli_excess(a, b == "poor") for a, b in zip(p.tolist(), y.tolist(), strict=True)]
    assert summary.ecd_possible == pytest.approx(loops.mean([e for e in excess if e < math.inf]), rel=1e-11)
    result = predictions.evaluate()
    assert (result.ece, result.brier, result.accuracy) == pytest.approx((0.2101, 0.2161, 0.7693), abs=5e-5)
    assert_slow_loops_agree(result, binary_lines(y == "poor", p))


def test_clipping_is_the_callers_choice_and_changes_the_answer(shared_data: Path) -> None:
    y, p = cells(shared_data, "naive_bayes")
    for clip in (1e-15, 1e-6):
        clipped = np.clip(p, clip, 1.0 - clip)
        slow = loops.mean([loops.bernoulli_excess(a, b == "poor") for a, b in zip(clipped.tolist(), y, strict=True)])
        assert safecal.ecd(y, p, pos_label="poor", clip=clip) == pytest.approx(slow, rel=1e-11)
