"""The front door."""

import datetime as dt
import itertools
import math

import numpy as np
import pytest

import safecal
from safecal import Bins, Evaluation, Tally

RNG = np.random.default_rng(6)
N = 60
P = RNG.random(N)
Y = RNG.integers(0, 2, N)
Z = RNG.normal(0, 1, (N, 3))
C = RNG.integers(0, 3, N)
STATES = safecal.gaussian(RNG.normal(0, 1, (N, 2)), np.zeros((N, 2)), std=np.exp(RNG.normal(0, 1, (N, 2))))


def test_a_column_is_bernoulli_and_a_matrix_categorical() -> None:
    assert safecal.evaluate(Y, P).family == "bernoulli"
    assert safecal.evaluate(Y, np.stack([1 - P, P], axis=1)).family == "categorical"
    assert safecal.evaluate(C, logits=Z).family == "categorical"


def test_predictions_evaluate_like_the_front_door() -> None:
    assert safecal.bernoulli(Y, P).evaluate() == safecal.evaluate(Y, P)
    assert safecal.categorical(C, logits=Z).evaluate(bins=3, by=Y) == safecal.evaluate(C, logits=Z, bins=3, by=Y)


def test_states_have_no_metric_of_classes() -> None:
    result = STATES.evaluate()
    assert result.family == "gaussian"
    assert result.bins is None
    for name in ("ece", "ece_overconfident", "ece_underconfident", "esce", "brier", "accuracy", "bias"):
        assert math.isnan(getattr(result, name)), name
    assert math.isfinite(result.ecd)
    assert math.isfinite(result.nll)
    assert result.n == N


def test_states_can_be_binned_on_entropy_by_quantiles_or_edges() -> None:
    for options in (
        {"strategy": "quantile"},
        {"bin_on": "entropy", "strategy": "quantile", "bins": 4},
        {"bins": Bins.from_edges([-math.inf, 1.0, math.inf])},
    ):
        result = STATES.evaluate(**options)
        assert sum(s.n for s in result.bins.summaries) == N
        assert math.isnan(result.ece)
        assert "ECE" not in repr(result)


@pytest.mark.parametrize("bins", [1, 3, 10, np.int64(4)])
@pytest.mark.parametrize("bin_on", ["probability", "confidence", "entropy"])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_two_classes_can_be_binned_on_anything(bins: int, bin_on: str, strategy: str) -> None:
    table = safecal.evaluate(Y, P, bins=bins, bin_on=bin_on, strategy=strategy).bins
    assert table.name == bin_on
    assert len(table) == bins
    assert sum(s.n for s in table.summaries) == N
    assert table.top_label == (bin_on != "probability")


def test_the_range_of_uniform_bins_is_that_of_the_value() -> None:
    assert safecal.evaluate(Y, P, bins=5, bin_on="confidence").bins.bins == Bins.uniform(5, 0.5, 1.0)
    assert safecal.evaluate(Y, P, bins=5, bin_on="entropy").bins.bins == Bins.uniform(5, 0.0, math.log(2))
    assert safecal.evaluate(C, logits=Z, bins=5).bins.bins == Bins.uniform(5)
    assert safecal.evaluate(C, logits=Z, bins=5, bin_on="entropy").bins.bins == Bins.uniform(5, 0.0, math.log(3))


def test_quantile_bins_hold_about_equally_many_rows() -> None:
    counts = [s.n for s in safecal.evaluate(Y, P, bins=7, strategy="quantile").bins.summaries]
    assert len(counts) == 7
    assert max(counts) - min(counts) <= 1


def test_no_bins_no_table_and_the_same_ecd() -> None:
    result = safecal.evaluate(Y, P, bins=None)
    assert result.bins is None
    assert math.isnan(result.ece)
    assert math.isnan(result.esce)
    assert result.ecd == pytest.approx(safecal.evaluate(Y, P).ecd, rel=1e-12)
    assert result.bias == pytest.approx(Y.mean() - P.mean())
    assert "bias" in repr(result)


def test_bins_as_an_object_are_used_as_given() -> None:
    bins = Bins.from_edges([0.0, 0.1, 0.9, 1.0])
    table = safecal.evaluate(Y, P, bins=bins).bins
    assert table.bins is bins
    assert [s.n for s in table.summaries] == [(P < 0.1).sum(), ((P >= 0.1) & (P < 0.9)).sum(), (P >= 0.9).sum()]


def test_groups_are_evaluated_each_by_itself(rng: np.random.Generator) -> None:
    by = rng.choice(["x", "y", "z"], N)
    groups = safecal.evaluate(Y, P, by=by, sample_weight=P + 1).groups
    assert groups.name == "group"
    assert groups.keys == ("x", "y", "z")
    for key in groups:
        inside = by == key
        assert groups[key].ecd == pytest.approx(safecal.ecd(Y[inside], P[inside], sample_weight=(P + 1)[inside]))


def test_groups_of_several_columns_have_tuples_for_keys(rng: np.random.Generator) -> None:
    site, year = rng.choice(["x", "y"], N), rng.choice([2023, 2024], N)
    groups = safecal.evaluate(Y, P, by={"site": site, "year": year}).groups
    assert groups.name == "site, year"
    assert groups.keys == (("x", 2023), ("x", 2024), ("y", 2023), ("y", 2024))
    assert groups[("y", 2023)].n == ((site == "y") & (year == 2023)).sum()
    assert groups.labels[0] == "x / 2023"


def test_a_mapping_of_one_column_is_that_column(rng: np.random.Generator) -> None:
    by = rng.choice(["x", "y"], N)
    groups = safecal.evaluate(Y, P, by={"site": by}).groups
    assert groups.name == "site"
    assert groups.keys == ("x", "y")


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ([1.0, math.nan, 2.0], (1.0, 2.0, None)),
        (["a", None, "b"], ("a", "b", None)),
        (np.array(["2024-01-02", "NaT", "2024-01-01"], dtype="M8[D]"), ("2024-01-01", "2024-01-02", None)),
        ([True, False, True], (False, True)),
        ([dt.date(2024, 1, 2), None, dt.date(2024, 1, 1)], ("2024-01-01", "2024-01-02", None)),
        (np.array([2, "a", 2], dtype=object), (2, "a")),
        ([-0.0, 0.0, 1.0], (0.0, 1.0)),
    ],
    ids=["float", "text", "datetime64", "bool", "date", "mixed", "signed zero"],
)
def test_keys_of_groups(by: object, keys: tuple[object, ...]) -> None:
    groups = safecal.evaluate([0, 1, 1], [0.2, 0.7, 0.9], by=by).groups
    assert groups.keys == keys
    assert sum(s.n for s in groups.summaries) == 3


def test_missing_values_of_a_mapping_are_keys_too() -> None:
    groups = safecal.evaluate([0, 1, 1], [0.2, 0.7, 0.9], by={"a": ["x", None, "x"], "b": [1.0, 2.0, math.nan]}).groups
    assert set(groups.keys) == {("x", 1.0), (None, 2.0), ("x", None)}


def test_a_column_with_a_name_names_the_table() -> None:
    pd = pytest.importorskip("pandas")
    assert safecal.evaluate([0, 1], [0.2, 0.7], by=pd.Series(["x", "y"], name="site")).groups.name == "site"


def test_an_evaluation_holds_no_raw_data() -> None:
    results = {"drawn", "tested", "_cache", "interval", "temperature", "mistakes", "local", "verdict", "slices"}
    assert set(Evaluation.__slots__) == {"tally", "limits"} | results
    sums = {"summary", "bins", "groups", "group_nodes", "clusters", "pairs", "cell_pairs", "spectrum", "spread"}
    sums |= {"ordered", "top", "axes", "class_sums", "others", "directions", "forecast"}
    numbers = {
        "family",
        "dimension",
        "most_entropy",
        "least_excess",
        "weighted",
        "n_certain",
        "decimals",
        "class_names",
        "room",
        "notes",
        "look",
    }
    assert set(Tally.__slots__) == sums | numbers


def test_the_fields_of_each_family() -> None:
    binary, classes, states = safecal.evaluate(Y, P), safecal.evaluate(C, logits=Z), STATES.evaluate()
    assert (binary.dimension, classes.dimension, states.dimension) == (1, 1, 2)
    assert binary.tally.most_entropy == pytest.approx(math.log(2))
    assert classes.tally.most_entropy == pytest.approx(math.log(3))
    assert states.tally.most_entropy == math.inf
    assert (binary.threshold, binary.max_temperature, binary.level) == (0.1, 1.5, 0.95)
    assert safecal.evaluate([1, 0, 1, 1], [1.0, 0.0, 0.5, 0.3]).n_certain == 2
    assert states.n_certain == 0


def test_the_parts_agree_with_each_other() -> None:
    result = safecal.evaluate(Y, P, level=0.9, threshold=0.2, max_temperature=2.0)
    assert result.interval == result.confidence_interval(0.9) == result.verdict.ecd
    assert result.temperature == result.verdict.temperature
    assert result.interval.value == pytest.approx(result.ecd, rel=1e-12)
    alone = safecal.calibration_test(safecal.bernoulli(Y, P))
    assert result.test.p_value == pytest.approx(alone.p_value, rel=1e-6)
    assert (result.test.method, result.test.reason) == (alone.method, alone.reason)
    alone_t = safecal.implied_temperature(safecal.bernoulli(Y, P))
    assert result.temperature.value == pytest.approx(alone_t.value, rel=1e-9)
    assert result.verdict == result.judge(threshold=0.2, max_temperature=2.0, level=0.9)
    assert (result.verdict.threshold, result.verdict.max_temperature, result.verdict.level) == (0.2, 2.0, 0.9)
    assert result.judge(level=0.5).level == 0.5


def test_intervals_are_nested_in_the_level() -> None:
    for result in (safecal.evaluate(Y, P), safecal.evaluate(C, logits=Z), STATES.evaluate()):
        intervals = [result.confidence_interval(level) for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
        assert all(i.low <= i.value <= i.high for i in intervals)
        assert all(a.low >= b.low and a.high <= b.high for a, b in itertools.pairwise(intervals))


def test_the_same_data_give_the_same_answer() -> None:
    assert safecal.evaluate(Y, P) == safecal.evaluate(Y, P)
    assert safecal.evaluate(Y, P, rng=5) == safecal.evaluate(Y, P, rng=np.random.default_rng(5))


def test_clusters_reach_the_test_and_the_interval() -> None:
    codes = np.repeat(np.arange(12), 5)
    result = safecal.evaluate(Y, P, cluster=codes)
    assert result.test.method == "cluster"
    assert result.test.n == 12
    assert result.temperature.method == "cluster t"


def test_the_histogram_counts_the_rows() -> None:
    result = safecal.evaluate([1, 0, 1, 1], [0.9, 0.8, 0.3, 0.0], sample_weight=[1.0, 2.0, 3.0, 4.0])
    assert sum(result.histogram.counts) == 6.0  # the impossible row is not in it
    assert sum(result.histogram.sums) == pytest.approx(result.summary.sum_excess)


def test_masked_logits_of_a_language_model() -> None:
    # The usual mask is the smallest number of the dtype: a probability of 0, without an infinity in it.
    free = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0]])
    for dtype in (np.float32, np.float64):
        mask = np.full((2, 1), np.finfo(dtype).min, dtype=dtype)
        masked = np.concatenate([free.astype(dtype), mask], axis=1)
        summary = safecal.evaluate([0, 1], logits=masked).summary
        wanted = safecal.evaluate([0, 1], logits=free.astype(dtype)).summary
        assert summary == wanted
        assert safecal.evaluate([0, 1], logits=np.concatenate([free, [[-np.inf]] * 2], axis=1)).summary == wanted


def test_far_logits_of_light_rows_are_evaluated() -> None:
    """The cube of their mean excess is beyond the largest float, and its weighted sum is not."""
    logits = 1e150 * np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [0.5, 0.1, 0.2], [2.0, 1.0, 0.0]])
    evaluation = safecal.evaluate(
        [0, 1, 2, 2], logits=logits, labels=[0, 1, 2], sample_weight=[1e-70, 2e-70, 1e-70, 3e-70]
    )
    assert evaluation.verdict.decision == "UNSAFE"
