"""Whatever holds the numbers, the result is that of a NumPy float64 copy of them, and the input stays as it was."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import safecal
from safecal._checks.columns import group_codes, numbered
from safecal.errors import DtypeError, LabelError, MissingValueError, RangeError, ShapeError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

N, K, D = 40, 3, 2


def _data() -> dict[str, np.ndarray]:
    """Values that float16 and bfloat16 hold exactly, so that no container has to round."""
    rng = np.random.default_rng(11)
    p = np.round(rng.random(N) * 64) / 64
    cuts = np.sort(rng.integers(1, 64, (N, K - 1)), axis=1)
    y_prob = np.diff(np.concatenate([np.zeros((N, 1)), cuts, np.full((N, 1), 64)], axis=1)) / 64
    factor = np.tril(rng.integers(-4, 5, (N, D, D))).astype(float)
    factor[:, np.arange(D), np.arange(D)] = rng.integers(1, 5, (N, D))
    return {
        "y": rng.integers(0, 2, N),
        "k": rng.integers(0, K, N),
        "p": np.clip(p, 1 / 64, 63 / 64),
        "z": np.round(rng.normal(0, 1, N) * 8) / 8,
        "P": y_prob,
        "Z": np.round(rng.normal(0, 2, (N, K)) * 8) / 8,
        "w": rng.integers(1, 9, N) / 8,
        "x": rng.integers(-8, 8, (N, D)).astype(float),
        "m": rng.integers(-8, 8, (N, D)).astype(float),
        "C": factor @ factor.transpose(0, 2, 1),
        "s": rng.integers(1, 9, N) / 8,
    }


DATA = _data()

# Each call takes the data by name, in whatever container.
CALLS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "binary": lambda d: safecal.evaluate(d["y"], d["p"], sample_weight=d["w"], by=d["k"]),
    "binary logits": lambda d: safecal.evaluate(d["y"], logits=d["z"], bins=5, strategy="quantile"),
    "classes": lambda d: safecal.evaluate(d["k"], d["P"], sample_weight=d["w"], bin_on="entropy"),
    "class logits": lambda d: safecal.evaluate(d["k"], logits=d["Z"]),
    "states": lambda d: safecal.gaussian(d["x"], d["m"], cov=d["C"]).evaluate(sample_weight=d["w"]),
    "scalar states": lambda d: safecal.gaussian(d["z"], d["p"], std=d["s"]).evaluate(),
}
WANTED = {name: call(DATA) for name, call in CALLS.items()}

# The same without the inference, which sees no container.
SUMS: dict[str, Callable[[dict[str, Any]], safecal.Summary]] = {
    "binary": lambda d: safecal.bernoulli(d["y"], d["p"]).summary(d["w"]),
    "binary logits": lambda d: safecal.bernoulli(d["y"], logits=d["z"]).summary(),
    "classes": lambda d: safecal.categorical(d["k"], d["P"]).summary(d["w"]),
    "class logits": lambda d: safecal.categorical(d["k"], logits=d["Z"]).summary(),
    "states": lambda d: safecal.gaussian(d["x"], d["m"], cov=d["C"]).summary(d["w"]),
    "scalar states": lambda d: safecal.gaussian(d["z"], d["p"], std=d["s"]).summary(),
}


def _strided(a: np.ndarray) -> np.ndarray:
    wide = np.full(tuple(3 * s for s in a.shape), 77, dtype=a.dtype)
    inner = wide[tuple(slice(1, None, 3) for _ in a.shape)]
    inner[...] = a
    return inner


def _reversed(a: np.ndarray) -> np.ndarray:
    flip = tuple(slice(None, None, -1) for _ in a.shape)
    return np.ascontiguousarray(a[flip])[flip]


def _read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def _floats(dtype: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda a: a.astype(dtype) if a.dtype.kind == "f" else a


def _nested(a: np.ndarray, kind: type) -> Any:
    return kind(_nested(v, kind) if v.ndim else v.item() for v in a)


def _pandas(a: np.ndarray) -> Any:
    return pd.Series(a) if a.ndim == 1 else pd.DataFrame(a) if a.ndim == 2 else a


def _polars(a: np.ndarray) -> Any:
    return pl.Series(a) if a.ndim == 1 else pl.DataFrame(a) if a.ndim == 2 else a


def _arrow(a: np.ndarray) -> Any:
    if a.ndim == 1:
        return pa.array(a)
    return pa.table({str(j): a[:, j] for j in range(a.shape[1])}) if a.ndim == 2 else a


CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda a: _nested(a, list),
    "tuple": lambda a: _nested(a, tuple),
    "read-only": _read_only,
    "strided": _strided,
    "negative strides": _reversed,
    "Fortran order": lambda a: np.asfortranarray(a),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "float16": _floats("float16"),
    "float32": _floats("float32"),
    "int8 labels": lambda a: a.astype(np.int8) if a.dtype.kind == "i" else a,
    "uint64 labels": lambda a: a.astype(np.uint64) if a.dtype.kind == "i" else a,
    "float labels": lambda a: a.astype(np.float32) if a.dtype.kind == "i" else a,
    "object labels": lambda a: a.astype(object) if a.dtype.kind == "i" else a,
    "masked array without a mask": lambda a: np.ma.array(a),
    "np.matrix-free subclass": lambda a: a.view(type("Sub", (np.ndarray,), {})),
    "pandas": _pandas,
    "pandas with another index": lambda a: _pandas(a).set_axis(range(N)[::-1]) if a.ndim < 3 else a,
    "pandas Float64": lambda a: _pandas(a).convert_dtypes() if a.ndim == 1 else a,
    "polars": _polars,
    "pyarrow": _arrow,
    "pyarrow chunks": lambda a: pa.chunked_array([a[:7], a[7:]]) if a.ndim == 1 else _arrow(a),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_any_container_gives_the_sums_of_numpy(container: str, call: str) -> None:
    given = {name: CONTAINERS[container](values) for name, values in DATA.items()}
    assert SUMS[call](given) == SUMS[call](DATA)


@pytest.mark.proof
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_any_container_gives_the_result_of_numpy(container: str, call: str) -> None:
    given = {name: CONTAINERS[container](values) for name, values in DATA.items()}
    assert CALLS[call](given).summary == WANTED[call].summary


@pytest.mark.parametrize("call", CALLS)
def test_groups_do_not_depend_on_the_container(call: str) -> None:
    for container in ("list", "pandas", "polars", "pyarrow", "int8 labels"):
        given = {name: CONTAINERS[container](values) for name, values in DATA.items()}
        groups, wanted = CALLS[call](given).groups, WANTED[call].groups
        assert (groups is None) == (wanted is None)
        assert groups is None or (groups.keys, groups.summaries) == (wanted.keys, wanted.summaries)


@pytest.mark.extra
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("grad", [False, True])
def test_tensors_give_the_result_of_numpy(call: str, dtype: str, grad: bool) -> None:
    torch = pytest.importorskip("torch")

    def tensor(a: np.ndarray) -> Any:
        held = torch.tensor(a)
        return held.to(getattr(torch, dtype)).requires_grad_(grad) if held.is_floating_point() else held

    given = {name: tensor(values) for name, values in DATA.items()}
    assert CALLS[call](given).summary == WANTED[call].summary


@pytest.mark.extra
def test_a_scalar_tensor_is_refused_like_any_scalar() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(
        ShapeError, match=r"^`y_prob` must be a column of values, one for each row; got 0\.3\d* of type Tensor"
    ):
        safecal.ecd([1], torch.tensor(0.3))
    assert safecal.gaussian([1.0], [0.0], std=torch.tensor(1.0)).ecd == 0.0


def test_a_masked_scalar_is_refused_like_any_scalar() -> None:
    with pytest.raises(ShapeError, match=r"^`y_true` must be a column of values, one for each row; got 1 of type"):
        safecal.ecd(np.ma.array(1), [0.3])


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("make", [np.copy, _strided, _reversed, _floats("float32")])
def test_inputs_are_never_changed(call: str, make: Callable[[np.ndarray], np.ndarray]) -> None:
    given = {name: make(values) for name, values in DATA.items()}
    before = {name: values.tobytes() for name, values in given.items()}
    CALLS[call](given)
    assert {name: values.tobytes() for name, values in given.items()} == before


@pytest.mark.parametrize("clip", [None, 0.01])
def test_scoring_summing_and_clipping_change_no_input(clip: float | None) -> None:
    p, y_prob, logits = DATA["p"].copy(), DATA["P"].copy(), np.array([[0.0, -np.inf, 1.0]] * N)
    before = p.tobytes(), y_prob.tobytes(), logits.tobytes()
    for predictions in (
        safecal.bernoulli(DATA["y"], p, clip=clip),
        safecal.categorical(DATA["k"], y_prob, clip=clip),
        safecal.categorical(np.zeros(N, dtype=int), logits=logits),
    ):
        predictions.score()
        predictions.tally()
        predictions.log_partition(0.5, deriv=3)
    assert (p.tobytes(), y_prob.tobytes(), logits.tobytes()) == before


def test_what_score_returns_can_be_changed_without_changing_the_input() -> None:
    p = np.array([0.2, 0.7, 0.9])
    scored = safecal.bernoulli([0, 1, 1], p).score()
    scored.predicted[:] = 0.0
    assert p.tolist() == [0.2, 0.7, 0.9]


TEXT = ["well", "sick", "sick", "well", "sick"]
P5 = [0.1, 0.8, 0.7, 0.4, 0.9]
LABELS: dict[str, Callable[[], Any]] = {
    "list": lambda: TEXT,
    "unicode": lambda: np.array(TEXT),
    "object": lambda: np.array(TEXT, dtype=object),
    "pandas": lambda: pd.Series(TEXT),
    "pandas category": lambda: pd.Series(TEXT, dtype="category"),
    "pandas string": lambda: pd.Series(TEXT, dtype="string"),
    "polars": lambda: pl.Series(TEXT),
    "polars category": lambda: pl.Series(TEXT, dtype=pl.Categorical),
    "pyarrow": lambda: pa.array(TEXT),
    "pyarrow dictionary": lambda: pa.array(TEXT).dictionary_encode(),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_text_in_any_container(kind: str) -> None:
    wanted = safecal.evaluate([0, 1, 1, 0, 1], P5)
    assert safecal.evaluate(LABELS[kind](), P5, pos_label="sick").summary == wanted.summary
    two = np.stack([1 - np.array(P5), P5], axis=1)
    named = safecal.evaluate(LABELS[kind](), two, labels=["well", "sick"])
    assert named.summary == safecal.evaluate([0, 1, 1, 0, 1], two).summary
    groups = safecal.evaluate([0, 1, 1, 0, 1], P5, by=LABELS[kind]()).groups
    assert groups.keys == ("sick", "well")


@pytest.mark.parametrize(
    "labels",
    [[False, True, True, False, True], np.array([0, 1, 1, 0, 1], dtype=np.uint8), [0.0, 1.0, 1.0, 0.0, 1.0]],
    ids=["bool", "uint8", "float"],
)
def test_labels_that_are_outcomes_already(labels: Any) -> None:
    assert safecal.evaluate(labels, P5).summary == safecal.evaluate([0, 1, 1, 0, 1], P5).summary
    assert safecal.evaluate(pd.Series(labels).astype("boolean"), P5).summary == safecal.evaluate(labels, P5).summary
    assert safecal.evaluate(pl.Series(labels), P5).summary == safecal.evaluate(labels, P5).summary


def test_labels_may_be_named_by_numbers_tuples_or_an_array() -> None:
    y_prob = [[0.2, 0.8], [0.6, 0.4]]
    wanted = safecal.categorical([1, 0], y_prob).summary()
    assert safecal.categorical([7, 5], y_prob, labels=[5, 7]).summary() == wanted
    assert safecal.categorical([7, 5], y_prob, labels=np.array([5, 7])).summary() == wanted
    assert safecal.categorical([7.0, 5.0], y_prob, labels=(5, 7)).summary() == wanted


def test_a_label_that_is_one_or_zero_may_be_positive() -> None:
    assert safecal.ecd([0, 1], [0.3, 0.8], pos_label=1) == safecal.ecd([0, 1], [0.3, 0.8])
    assert safecal.ecd([0, 1], [0.3, 0.8], pos_label=0) == safecal.ecd([1, 0], [0.3, 0.8])
    assert safecal.ecd([1, 2], [0.3, 0.8], pos_label=2) == safecal.ecd([0, 1], [0.3, 0.8])
    assert safecal.ecd([-1, 1], [0.3, 0.8], pos_label=1) == safecal.ecd([0, 1], [0.3, 0.8])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([0.1, None, 0.3]),
        pd.Series([0.1, None, 0.3], dtype="Float64"),
        pl.Series([0.1, None, 0.3]),
        pa.array([0.1, None, 0.3]),
        pa.chunked_array([[0.1], [None, 0.3]]),
        np.ma.array([0.1, 0.2, 0.3], mask=[0, 1, 0]),
        [0.1, None, 0.3],
    ],
    ids=["pandas", "pandas Float64", "polars", "pyarrow", "pyarrow chunks", "masked", "list"],
)
def test_missing_values_are_named_in_any_container(column: Any) -> None:
    with pytest.raises(MissingValueError, match=r"`y_prob` must not .* at row 1 \(1 of 3 rows\)"):
        safecal.ecd([0, 1, 1], column)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series(["a", None, "b"], dtype="string"),
        pl.Series(["a", None, "b"]),
        pa.array(["a", None, "b"]),
    ],
    ids=["pandas", "pandas category", "pandas string", "polars", "pyarrow"],
)
def test_missing_labels_are_named_and_missing_groups_are_a_group(column: Any) -> None:
    with pytest.raises(MissingValueError, match=r"`y_true` must not hold missing values; got .* at row 1"):
        safecal.ecd(column, [0.1, 0.2, 0.3], pos_label="a")
    groups = safecal.evaluate([0, 1, 1], [0.1, 0.2, 0.3], by=column).groups
    assert groups.keys == ("a", "b", None)
    assert groups[None].n == 1


def test_values_are_one_group_where_their_keys_are_equal() -> None:
    inf, nan = float("inf"), float("nan")
    plain = np.array([True, 1, 1.0, "1", None, nan, float("nan"), inf, "inf", -0.0, 0], dtype=object)
    _, keys, codes = group_codes(plain, len(plain))
    assert (keys, codes.tolist()) == ((True, "1", None, "inf", 0.0), [0, 0, 0, 1, 2, 2, 2, 3, 3, 4, 4])
    others = np.array([Decimal(1), 1, "1", (1, nan), (1, None), np.float64(1.0)], dtype=object)
    _, keys, codes = group_codes(others, len(others))
    assert (keys, codes.tolist()) == (("1", 1, (1, None)), [0, 1, 0, 2, 2, 1])


@pytest.mark.parametrize(
    "values", [[], [3], [3, 3, 5], [5, 3, 3, 4], [True, True], [True, False], ["b", "a", "b"]], ids=str
)
def test_values_are_numbered_as_numpy_does(values: list[Any]) -> None:
    distinct, index = numbered(np.array(values))
    wanted, places = np.unique(np.array(values), return_inverse=True)
    assert (distinct.tolist(), index.tolist()) == (wanted.tolist(), places.tolist())


@pytest.mark.parametrize(
    ("column", "got"),
    [
        (["a", None, "b", None], "None"),
        ([1.0, np.nan, 2.0, np.nan], "nan"),
        (np.array(["2024-01-01", "NaT", "2024-01-02", "NaT"], dtype="datetime64[D]"), None),
        (pd.Series([1, None, 2, None], dtype="Int64"), None),  # NA or nan, as pandas has it
        (pl.Series([1, None, 2, None]), "nan"),
        (pa.array(["a", None, "b", None]), "None"),
    ],
    ids=["objects", "floats", "dates", "pandas", "polars", "arrow"],
)
def test_rows_without_a_cluster_are_refused(column: Any, got: str | None) -> None:
    y, p = [0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4]
    said = re.escape(f"; got {got} at row 1 (2 of 4 rows).") if got is not None else r"\(2 of 4 rows\)"
    calls: list[Callable[[], Any]] = [
        lambda: safecal.evaluate(y, p, cluster=column),
        lambda: safecal.calibration_test(safecal.bernoulli(y, p), cluster=column),
        lambda: safecal.compare(safecal.bernoulli(y, p), safecal.bernoulli(y, p), cluster=column),
        lambda: safecal.gaussian([0.0, 1.0, 1.0, 2.0], p, std=1.0).evaluate(cluster=column),
    ]
    for call in calls:
        with pytest.raises(MissingValueError, match="`cluster` must not hold missing values.*" + said) as caught:
            call()
        assert "Hint: leave such rows out, or give each its own cluster." in str(caught.value)


def test_integer_probabilities_and_states_are_numbers() -> None:
    assert safecal.ecd([0, 1], np.array([0, 1], dtype=np.uint8)) == 0.0
    assert safecal.nees(np.array([1, -2]), np.array([0, 0]), std=np.array([1, 1])) == 2.5


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rows_of_narrow_floats_are_used_as_given(dtype: type) -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(0, 3, (200, 5))
    y_prob = (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)).astype(dtype)
    scores = safecal.categorical(np.arange(200) % 5, y_prob).score()
    p = y_prob.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(p > 0, p * np.log(p), 0.0).sum(axis=1)
    np.testing.assert_allclose(scores.entropy, entropy, rtol=1e-13)


def test_a_frame_of_objects_is_refused_with_a_way_out() -> None:
    with pytest.raises(DtypeError, match=r"Hint: convert the column first, for example `y_prob.astype\(float\)`"):
        safecal.evaluate([0, 1], pd.DataFrame({"a": [0.5, 0.5], "b": [0.5, 0.5]}, dtype=object))


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", ">f4", "<f2"])
@pytest.mark.parametrize("layout", ["together", "apart"])
def test_what_lies_between_0_and_1_is_seen_whatever_its_bits_are(dtype: str, layout: str) -> None:
    def given(*values: float) -> np.ndarray:
        numbers = np.array(values, dtype=dtype)
        return numbers if layout == "together" else np.repeat(numbers, 3)[::3]

    y = [0, 1, 0, 1]
    for edge in (0.0, -0.0, 1.0, float(np.finfo(dtype).tiny), float(np.finfo(dtype).smallest_subnormal)):
        assert safecal.bernoulli(y, given(0.5, 0.5, edge, 0.5)).n == 4
    beyond = float(np.nextafter(np.array(1, dtype=dtype[1:]), np.array(2, dtype=dtype[1:])))
    below = -float(np.finfo(dtype).smallest_subnormal)
    for bad in (beyond, below, -0.5, -1.0, float("inf"), -float("inf")):
        with pytest.raises(RangeError, match="at row 2"):
            safecal.bernoulli(y, given(0.5, 0.5, bad, 0.5))
    for nan in (float("nan"), -float("nan")):
        with pytest.raises(MissingValueError, match="at row 2"):
            safecal.bernoulli(y, given(0.5, 0.5, nan, 0.5))


@pytest.mark.parametrize("dtype", ["i1", "u1", "<i4", ">i4", "<i8", ">i8", "<u8", ">u8"])
def test_labels_beyond_0_and_1_are_seen_in_every_type(dtype: str) -> None:
    p = [0.2, 0.8, 0.4]
    assert safecal.bernoulli(np.array([0, 1, 1], dtype=dtype), p).happened.tolist() == [False, True, True]
    for bad in (2, 127, -1 if "i" in dtype else 200, -128 if "i" in dtype else 255):
        with pytest.raises(LabelError, match="must"):
            safecal.bernoulli(np.array([0, 1, bad], dtype=dtype), p)
