"""Two models side by side."""

import json
import math
import re

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal import Comparison, Difference, SideBySide, compare
from safecal.errors import FormError, LabelError, OptionError, RangeError, SafecalError, ShapeError
from safecal.judge.paired import equality, rows_of_law

RNG = np.random.default_rng(13)
N = 500
LOG_ODDS = RNG.normal(0, 2, N)
Y = RNG.random(N) < 1 / (1 + np.exp(-LOG_ODDS))
HONEST = safecal.bernoulli(Y, logits=LOG_ODDS)
LOUD = safecal.bernoulli(Y, logits=2 * LOG_ODDS)
MUTE = safecal.bernoulli(Y, logits=0.3 * LOG_ODDS)


def test_values_are_those_of_each_model() -> None:
    comparison = compare(LOUD, HONEST)
    for name in ("ecd", "nll", "brier"):
        d = getattr(comparison, name)
        a, b = getattr(LOUD.summary(), name), getattr(HONEST.summary(), name)
        assert (d.a, d.b, d.interval.value) == pytest.approx((a, b, a - b), rel=1e-12)
        assert d.interval.low < d.interval.value < d.interval.high


def test_plain_t_where_nothing_is_skewed() -> None:
    # Differences +c and -c in equal number around a mean, at 200 rows: Hall's correction vanishes with the skewness.
    d = np.tile([0.3, -0.1], 150)
    comparison = compare(*_gaussians(d))
    low, high = stats.t.interval(0.95, 299, d.mean(), d.std(ddof=1) / math.sqrt(300))
    assert (comparison.nll.interval.low, comparison.nll.interval.high) == pytest.approx((low, high), rel=1e-6)
    assert comparison.nll.p_value == pytest.approx(stats.ttest_1samp(d, 0.0).pvalue, rel=1e-6)
    assert comparison.nll.statistic == pytest.approx(stats.ttest_1samp(d, 0.0).statistic)
    assert comparison.brier is None


def _gaussians(d: np.ndarray) -> tuple[safecal.Predictions, safecal.Predictions]:
    """Return two predictions whose surprisals, and excesses, differ by ``d``."""
    x = np.sqrt(2 * (d - d.min()))
    return safecal.gaussian(x, np.zeros(len(d)), std=1.0), safecal.gaussian(
        x, x - math.sqrt(-2 * d.min()), std=1.0
    )  # fmt: skip


@pytest.mark.parametrize("n", [30, 199, 200, 400])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_interval_and_test_agree(n: int, level: float) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        d = rng.exponential(size=n) - 1 + rng.normal(0, 0.3)
        difference = compare(*_gaussians(d), level=level).nll
        excluded = not difference.interval.low <= 0.0 <= difference.interval.high
        assert difference.shown == excluded == (difference.p_value < 1 - level)


def test_a_model_against_itself_is_no_difference() -> None:
    for other in (HONEST, safecal.bernoulli(Y, 1 / (1 + np.exp(-LOG_ODDS)))):
        comparison = compare(HONEST, other)
        for d in (comparison.ecd, comparison.nll, comparison.brier):
            assert d.interval.value == pytest.approx(0.0, abs=1e-12)
            assert d.p_value > 0.05
        assert comparison.verdict == "No difference is shown, neither in NLL nor in over-confidence."


def test_swapping_changes_signs_alone() -> None:
    one, two = compare(LOUD, HONEST), compare(HONEST, LOUD)
    for d, e in ((one.ecd, two.ecd), (one.nll, two.nll), (one.brier, two.brier)):
        assert (d.a, d.b, d.p_value) == pytest.approx((e.b, e.a, e.p_value))
        at, to = d.interval, e.interval
        assert (at.value, at.low, at.high) == pytest.approx((-to.value, -to.high, -to.low))


def test_clusters_of_one_row_are_rows() -> None:
    plain, one = compare(LOUD, HONEST), compare(LOUD, HONEST, cluster=np.arange(N))
    assert (plain.ecd.interval.low, plain.ecd.p_value) == (one.ecd.interval.low, one.ecd.p_value)
    assert one.clusters == N
    assert "500 clusters" in repr(one)


def test_clusters_of_copies_widen_the_interval() -> None:
    tracks = np.repeat(np.arange(N), 9)
    nine = [safecal.bernoulli(np.repeat(Y, 9), logits=np.repeat(c * LOG_ODDS, 9)) for c in (2.0, 1.0)]
    wide, plain = compare(*nine, cluster=tracks).ecd.interval, compare(LOUD, HONEST).ecd.interval
    assert (wide.low, wide.high) == pytest.approx((plain.low, plain.high), rel=1e-9)


def test_weight_zero_is_no_row_and_scale_is_nothing(rng: np.random.Generator) -> None:
    w = rng.integers(0, 3, N) / 2
    some = compare(LOUD, HONEST, sample_weight=w).nll
    few = compare(
        *(safecal.bernoulli(Y[w > 0], logits=c * LOG_ODDS[w > 0]) for c in (2, 1)), sample_weight=w[w > 0]
    ).nll
    assert (some.interval.low, some.p_value) == pytest.approx((few.interval.low, few.p_value), rel=1e-10)
    more = compare(LOUD, HONEST, sample_weight=2.0**60 * w).nll
    assert more == some


@pytest.mark.parametrize(
    ("a", "b", "pattern"),
    [
        (LOUD, HONEST, r"b has lower NLL \(.*\) and is less over-confident \(ECD .* for a, .* for b\)\."),
        (HONEST, LOUD, r"a has lower NLL \(.*\) and is less over-confident"),
        (LOUD, MUTE, r"b is less over-confident \(.*\); no difference in NLL is shown\."),
        (HONEST, MUTE, r"b is more under-confident \(.*\): its NLL is higher"),
        (MUTE, safecal.bernoulli(Y, logits=0.01 * LOG_ODDS), r"a has lower NLL \(.*\) though it is more under-conf"),
    ],
)
def test_the_verdict_reads_both(a: safecal.Predictions, b: safecal.Predictions, pattern: str) -> None:
    verdict = compare(a, b).verdict
    assert re.search(pattern, verdict), verdict
    assert "ECD" in verdict


def _written(ecd: tuple[float, float, float], nll: tuple[float, float, float] | None) -> str:
    def difference(a: float, b: float, p: float) -> Difference:
        return Difference(a, b, safecal.Interval(a - b, -9.0, 9.0, 0.95, "by hand"), 0.0, p)

    return Comparison(9, None, 0, 0, difference(*ecd), None if nll is None else difference(*nll), None).verdict


@pytest.mark.parametrize(
    ("ecd", "nll", "words"),
    [
        (
            (0.3, 0.0, 0.01),
            (0.5, 0.6, 0.01),
            "b is less over-confident (*) only because it says less: its NLL is higher (*).",
        ),
        ((0.0, 0.3, 0.01), (0.5, 0.6, 0.01), "a has lower NLL (*) and is less over-confident (*)."),
        ((-0.1, -0.3, 0.01), (0.6, 0.5, 0.01), "b has lower NLL (*) though it is more under-confident (*)."),
        ((-0.1, -0.3, 0.01), (0.5, 0.6, 0.01), "b is more under-confident (*): its NLL is higher (*)."),
        ((0.3, 0.0, 0.01), (0.5, 0.6, 0.5), "b is less over-confident (*); no difference in NLL is shown."),
        ((0.3, 0.0, 0.5), (0.5, 0.6, 0.01), "a has lower NLL (*); no difference in over-confidence is shown."),
        ((0.3, 0.0, 0.5), (0.5, 0.6, 0.5), "No difference is shown, neither in NLL nor in over-confidence."),
        ((0.3, 0.0, 0.01), None, "b is less over-confident (*); without NLL nothing says which is better."),
        ((0.3, 0.0, 0.5), None, "No difference in over-confidence is shown; without NLL nothing says which is better."),
    ],
)  # fmt: skip
def test_every_sentence(ecd: tuple[float, float, float], nll: tuple[float, float, float] | None, words: str) -> None:
    assert re.sub(r"\([^)]*\)", "(*)", _written(ecd, nll)) == words


def test_what_one_model_called_impossible_is_infinite() -> None:
    y, good, bad = [1, 0, 1, 1], [0.9, 0.2, 0.6, 0.7], [0.9, 0.2, 0.6, 0.0]
    comparison = compare(safecal.bernoulli(y, bad), safecal.bernoulli(y, good))
    assert (comparison.n_impossible_a, comparison.n_impossible_b) == (1, 0)
    assert (comparison.ecd.interval.low, comparison.nll.interval.value, comparison.nll.p_value) == (
        math.inf,
        math.inf,
        0.0,
    )
    assert math.isfinite(comparison.brier.interval.value)
    assert comparison.verdict.startswith("In 1 row something happened that a had called impossible. b has lower NLL")
    back = compare(safecal.bernoulli(y, good), safecal.bernoulli(y, bad))
    assert back.ecd.interval.high == -math.inf
    assert back.verdict.startswith("In 1 row something happened that b had called impossible")
    for result in (comparison, back):
        assert Comparison.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False))) == result
        assert "nan" not in repr(result).lower()
        assert max(map(len, repr(result).splitlines())) < 80


def test_what_both_called_impossible_stands_apart() -> None:
    y = np.append(Y, [True, True])
    loud, honest = (1 / (1 + np.exp(-c * LOG_ODDS)) for c in (2, 1))
    both = compare(safecal.bernoulli(y, np.append(loud, [0, 0.5])), safecal.bernoulli(y, np.append(honest, [0.5, 0])))
    assert (both.n_impossible_a, both.n_impossible_b) == (1, 1)
    assert both.ecd.a == both.ecd.b == math.inf
    assert both.ecd.interval.value == pytest.approx(compare(LOUD, HONEST).ecd.interval.value)
    assert "In 1 and 1 rows something happened that a and b had called impossible" in both.verdict
    none = compare(safecal.bernoulli([1], [0.0]), safecal.bernoulli([1], [0.0]))
    assert (none.nll.interval.value, none.nll.interval.low, none.nll.p_value) == (0.0, -math.inf, 1.0)


def test_an_impossible_row_of_weight_zero_does_not_count() -> None:
    comparison = compare(safecal.bernoulli([1, 0, 1], [0.0, 0.3, 0.6]), HONEST_THREE, sample_weight=[0, 1, 1])
    assert comparison.n_impossible_a == 0
    assert math.isfinite(comparison.ecd.interval.value)


HONEST_THREE = safecal.bernoulli([1, 0, 1], [0.5, 0.2, 0.7])


def test_one_row_and_equal_differences_are_defined() -> None:
    one = compare(safecal.bernoulli([1], [0.9]), safecal.bernoulli([1], [0.6]))
    assert (one.nll.interval.low, one.nll.interval.high, one.nll.p_value) == (-math.inf, math.inf, 1.0)
    assert one.verdict.endswith("These rows cannot tell the NLL and the ECD of a from that of b.")
    d, other, fewest = math.log(0.6 / 0.9), math.log(0.4 / 0.1), {7: False, 40: True}
    for n, shown in fewest.items():  # by what happens to equal models, seven are too few
        same = compare(safecal.bernoulli([1] * n, [0.9] * n), safecal.bernoulli([1] * n, [0.6] * n))
        law = stats.pearson3(skew=(d + other) / math.sqrt(-d * other * n), scale=math.sqrt(-d * other * n))
        assert same.nll.p_value == pytest.approx(2.0 * law.cdf(n * d), rel=1e-9)
        assert same.nll.shown == shown
        assert same.nll.interval.high == pytest.approx(d - law.ppf(0.025) / n)
        assert same.nll.interval.method == "what equal models do by chance"
    states = [safecal.gaussian([1.0] * 9, [m] * 9, std=1.0) for m in (0.0, 2.5)]
    assert compare(*states).nll.interval.method == "none: every difference is the same"
    assert compare(*states).nll.p_value == 1.0
    none = compare(safecal.bernoulli([1] * 5, [0.9] * 5), safecal.bernoulli([1] * 5, [0.9] * 5))
    assert (none.nll.p_value, none.nll.interval.low, none.nll.interval.high) == (1.0, 0.0, 0.0)


def test_the_largest_floats_do_not_overflow() -> None:
    y = [0, 0, 1]
    comparison = compare(
        safecal.bernoulli(y, logits=[1e308, 1e308, 1.0]), safecal.bernoulli(y, logits=[1.0, -1.0, 1.0])
    )
    assert comparison.nll.interval.value == pytest.approx(1e308 / 1.5)
    assert max(map(len, repr(comparison).splitlines())) < 80


def test_rows_without_a_surprise_cannot_tell() -> None:
    y = np.ones(50, dtype=bool)
    sharp, vague = (safecal.bernoulli(y, np.full(50, p)) for p in (0.999, 0.99))
    comparison = compare(sharp, vague)
    assert comparison.nll.p_value > 0.5
    assert not comparison.nll.can_tell
    assert comparison.verdict.endswith(
        "These rows cannot tell the NLL of a from that of b: the models differ in rare, large surprises, and "
        "too few of these have happened."
    )
    # Whatever happens, the excess of 0.999 is above that of 0.99: no chance is in that.
    assert comparison.ecd.interval.low == pytest.approx(comparison.ecd.interval.value)
    assert comparison.ecd.interval.method == "the same sign whatever happens"
    assert comparison.ecd.p_value == 0.0


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("n", [6, 30, 250])
def test_intervals_of_classes_agree_with_their_tests(n: int, level: float, rng: np.random.Generator) -> None:
    for k in range(20):
        z = rng.normal(3.0, 1.5, (n, 4)) * [1, 0, 0, 0] + rng.normal(0, 1, (n, 4))
        w = rng.integers(1, 4, n) if k % 2 else None
        cluster = rng.permutation(np.arange(n) % (n // 3)) if k % 3 == 0 else None
        y = (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)).cumsum(axis=1) < rng.random((n, 1))
        y = np.minimum(y.sum(axis=1), 3)
        many = [safecal.categorical(y, logits=z * t) for t in (1.3, rng.uniform(0.3, 1.2))]
        two = [safecal.bernoulli(y == 0, logits=z[:, 0] * t + s) for t, s in ((1.4, 0.0), (0.8, rng.normal(0, 1)))]
        for a, b in (many, two):
            comparison = compare(a, b, level=level, cluster=cluster, sample_weight=w)
            for d in (comparison.ecd, comparison.nll, comparison.brier):
                assert d.shown == (not d.interval.low <= 0.0 <= d.interval.high)


def test_clusters_surprise_together_unless_their_rows_show_that_they_do_not(rng: np.random.Generator) -> None:
    # Vague rows: so many surprises are expected that independent rows are seen to be so.
    clusters, rows = 200, 10
    z, cluster = rng.normal(0, 1, clusters * rows), np.repeat(np.arange(clusters), rows)
    models = {}
    for name, u in (("apart", rng.random(clusters * rows)), ("together", rng.random(clusters)[cluster])):
        odds = z if name == "apart" else z[cluster]
        y = u < 1 / (1 + np.exp(-odds))
        models[name] = [safecal.bernoulli(y, logits=c * odds) for c in (1.5, 0.5)]
    width = {}
    for name, (a, b) in models.items():
        law = rows_of_law(a, b)["surprisal"]
        share, d = np.full(a.n, 1 / a.n), a.score().surprisal - b.score().surprisal
        alone, joint = equality(law, share, d, None), equality(law, share, d, cluster)
        width[name] = math.sqrt(joint.variance / alone.variance)
    assert width["apart"] < 1.5
    assert width["together"] == pytest.approx(math.sqrt(rows), rel=0.15)
    # Sharp rows: a storm may hide, so all rows of a cluster are taken for one.
    y = np.ones(clusters * rows, dtype=bool)
    sharp = rows_of_law(*(safecal.bernoulli(y, np.full(len(y), p)) for p in (0.9999, 0.999)))["surprisal"]
    share = np.full(len(y), 1 / len(y))
    joint = equality(sharp, share, np.zeros(len(y)), cluster)
    assert joint.variance == pytest.approx(rows * equality(sharp, share, np.zeros(len(y)), None).variance)
    assert joint.third == pytest.approx(rows**2 * equality(sharp, share, np.zeros(len(y)), None).third)


def test_two_columns_and_one_have_the_same_law() -> None:
    two = [safecal.categorical(Y.astype(int), logits=np.stack([np.zeros(N), c * LOG_ODDS], axis=1)) for c in (2.0, 1.0)]
    for name in ("ecd", "nll", "brier"):
        one, other = getattr(compare(LOUD, HONEST), name), getattr(compare(*two), name)
        assert (one.interval.low, one.p_value) == pytest.approx((other.interval.low, other.p_value), rel=1e-9)


def test_the_law_of_many_classes_is_that_of_two_where_all_others_are_one(rng: np.random.Generator) -> None:
    top, y = rng.uniform(0.7, 0.999, 60), (rng.random(60) < 0.1).astype(int)
    other = rng.uniform(0.7, 0.999, 60)
    many = [safecal.categorical(3 * y, np.column_stack([p, *[(1 - p) / 4] * 4])) for p in (top, other)]
    two = [safecal.bernoulli(1 - y, p) for p in (top, other)]
    a, b = rows_of_law(*many)["surprisal"], rows_of_law(*two)["surprisal"]
    assert a.variance == pytest.approx(b.variance, rel=1e-5)
    assert a.third == pytest.approx(b.third, rel=1e-5)
    assert not rows_of_law(safecal.gaussian([0.0], [0.0], std=1.0), safecal.gaussian([0.0], [1.0], std=1.0))
    assert not rows_of_law(many[0], safecal.categorical(y, np.full((60, 3), 1 / 3)))


def test_probabilities_of_zero_are_left_out_of_the_law_and_said() -> None:
    y = [1, 1, 0, 1, 0, 1]
    comparison = compare(
        safecal.bernoulli(y, [1.0, 0.9, 0.2, 0.7, 0.3, 0.8]), safecal.bernoulli(y, [0.9, 0.8, 0.4, 0.9, 0.1, 0.7])
    )
    assert comparison.nll.interval.method.endswith(
        "what equal models do by chance (1 row with a probability of 0 left out)"
    )
    assert comparison.brier.interval.method.endswith("what equal models do by chance")
    both = compare(
        safecal.bernoulli(y, [1.0, 0.9, 0.2, 0.7, 0.3, 0.8]), safecal.bernoulli(y, [1.0, 0.8, 0.4, 0.9, 0.1, 0.7])
    )
    assert both.nll.interval.method.endswith("what equal models do by chance")
    classes = [[1.0, 0.0, 0.0], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.0, 0.4, 0.6]]
    other = [[0.9, 0.1, 0.0], [0.4, 0.3, 0.3], [0.1, 0.5, 0.4], [0.0, 0.7, 0.3]]
    comparison = compare(safecal.categorical([0, 1, 2, 1], classes), safecal.categorical([0, 1, 2, 1], other))
    assert "(1 row with a probability of 0 left out)" in comparison.nll.interval.method
    assert "left out" not in comparison.brier.interval.method


def test_two_evaluations_stand_side_by_side_without_a_test() -> None:
    a, b = LOUD.evaluate(), HONEST.evaluate(level=0.9)
    comparison = compare(a, b)
    assert isinstance(comparison, SideBySide)
    assert comparison.n == (N, N)
    assert comparison.level == (0.95, 0.9)
    assert comparison.decisions == (a.verdict.decision, b.verdict.decision)
    assert comparison.metrics["ECD"] == (a.interval, b.interval)
    assert list(comparison.metrics) == ["ECD", "temperature", "mistakes", "NLL", "ECE (positive class)", "Brier"]
    text, page = repr(comparison), comparison._repr_html_()
    assert max(map(len, text.splitlines())) <= 80
    for words in ("No test is possible: evaluations hold no rows", "p-value"):
        assert (words in " ".join(text.split())) == (words in page) == (words != "p-value")
    states = safecal.gaussian([0.0, 1.0], [0.0, 0.0], std=1.0).evaluate()
    assert list(compare(states, states).metrics) == ["ECD", "temperature", "NLL"]
    top = LOUD.evaluate(bin_on="confidence")
    assert not any(name.startswith("ECE") for name in compare(top, b).metrics)
    with pytest.raises(OptionError, match="`cluster` belongs to rows; got two evaluations, which hold no rows"):
        compare(a, b, cluster=np.arange(N))
    with pytest.raises(FormError, match="`b` must be predictions; got a Evaluation"):
        compare(LOUD, b)


def test_unnormalised_densities_have_ecd_alone(rng: np.random.Generator) -> None:
    x = rng.normal(size=50)

    def model(s: float) -> safecal.Predictions:
        return safecal.density(
            x, log_density=lambda v: -0.5 * (v / s) ** 2, sampler=lambda rng: s * rng.normal(size=50), rng=1
        )

    models = [model(0.5), model(1.0)]
    comparison = compare(*models)
    assert comparison.nll is None
    assert comparison.brier is None
    assert "without NLL" in comparison.verdict
    assert Comparison.from_dict(comparison.to_dict()) == comparison
    assert compare(models[0], safecal.gaussian(x, np.zeros(50), std=1.0)).nll is None


def test_families_of_one_kind_compare() -> None:
    p = 1 / (1 + np.exp(-LOG_ODDS))
    two = safecal.categorical(Y.astype(int), np.stack([1 - p, p], axis=1))
    assert compare(LOUD, two).ecd.interval.value == pytest.approx(compare(LOUD, HONEST).ecd.interval.value)


def test_classes_of_both_must_be_the_same(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, (60, 3))
    y = np.array(["a", "b", "c"])[z.argmax(axis=1)]
    one = safecal.categorical(y, logits=z, labels=["a", "b", "c"])
    with pytest.raises(LabelError, match="must have the classes of `a`, in the same order"):
        compare(one, safecal.categorical(y, logits=z[:, [1, 0, 2]], labels=["b", "a", "c"]))
    with pytest.raises(LabelError, match="must have the classes of `a`"):
        compare(one, safecal.categorical(y, logits=np.column_stack([z, z]), labels=["a", "b", "c", "d", "e", "f"]))


def test_what_happened_must_be_the_same_in_one_column_and_in_two() -> None:
    p = 1 / (1 + np.exp(-LOG_ODDS))
    two = np.stack([1 - p, p], axis=1)
    turned = safecal.categorical(1 - Y.astype(int), two[:, ::-1])  # the positive class comes first
    assert compare(LOUD, turned).ecd.interval.value == pytest.approx(compare(LOUD, HONEST).ecd.interval.value)
    with pytest.raises(LabelError, match="`b` must have the same `y_true` as `a`"):
        compare(LOUD, safecal.categorical(Y[::-1].astype(int), two[::-1]))


def test_what_happened_must_be_the_same() -> None:
    with pytest.raises(LabelError, match=r"`b` must have the same `y_true` as `a`; got .* at row 1 \(1 of 3 rows\)"):
        compare(HONEST_THREE, safecal.bernoulli([1, 1, 1], [0.5, 0.5, 0.5]))
    with pytest.raises(ShapeError, match="as many rows"):
        compare(HONEST_THREE, HONEST)
    with pytest.raises(LabelError, match="`x_true`"):
        compare(safecal.gaussian([0.0], [0.0], std=1.0), safecal.gaussian([1.0], [0.0], std=1.0))
    with pytest.raises(ShapeError, match="same shape"):
        compare(safecal.gaussian([0.0], [0.0], std=1.0), safecal.gaussian([[0.0, 1.0]], [[0.0, 0.0]], std=1.0))
    with pytest.raises(FormError, match="same kind of outcome"):
        compare(safecal.bernoulli([1], [0.5]), safecal.gaussian([0.0], [0.0], std=1.0))
    with pytest.raises(FormError, match="`b` must be predictions; got a list"):
        compare(HONEST, [0.5])


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1, math.nan, "0.95", True])
def test_level_lies_between(level: object) -> None:
    with pytest.raises(RangeError, match="`level` must lie strictly between 0 and 1"):
        compare(LOUD, HONEST, level=level)
    assert issubclass(RangeError, SafecalError)


def test_documents_and_html() -> None:
    comparison = compare(LOUD, HONEST)
    document = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert document["kind"] == "safecal.comparison"
    assert document["verdict"] == comparison.verdict
    assert Comparison.from_dict(document) == comparison
    page = comparison._repr_html_()
    assert "<td" in page
    assert "&lt; 0.0001" in page
    assert max(map(len, repr(comparison).splitlines())) < 80
