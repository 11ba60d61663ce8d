"""Rows as expressions: which of them break a rule, and the row formulas of the others; the same in every engine.

Engines disagree about NaN: some take it for the largest number, some for a missing value. So missing values are told
apart first and replaced by a harmless number, and only then compared. A frame with a bad row is refused as `evaluate`
refuses it: the check of the core sees the values that break the rule, and the engine counts their rows.

The formulas are those of the NumPy kernels, step by step: each function adds columns that the next one reads. Names are
in lower case, because SQL engines take ``m`` and ``M`` for the same column. Functions that engines lack, or refuse at
the edge of their range, are made from those that every engine has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from ..._checks import fail, phrase
from ..._checks.classes import binary_outcomes, probabilities, real_logits
from ..._checks.columns import cluster_codes, weights
from ..._checks.states import spread_column, state_columns
from ..._kernels.states import LOG_2PI
from ..._types import AnyArray
from ...errors import DtypeError, InputError, MissingValueError
from ...inputs.columns import Columns
from ...inputs.values import not_numbers
from .language import as_number, language

__all__ = ["Flagged", "flag", "log1p", "one_minus_exp", "score_binary", "score_gaussian"]

_TINY = 1e-300  # below it, |2p - 1| / m could overflow
_ROOT = 1.3407807929942596e154  # its square is the largest float
_LEAST, _MOST = 1e-75, 1e75  # weights between them have cubes that are floats
_CHECKED_LAST = ("weight", "cluster")  # columns that are looked at after the predictions and their outcomes
_LABELS = 8  # distinct labels that are asked for: three are too many


class ColumnRule(NamedTuple):
    """A rule that a column may break, and the check of the core that refuses it; ``broken`` None is a missing value."""

    name: str
    column: str
    check: Callable[[AnyArray], Any]
    broken: Any = None


@final
@dataclass(frozen=True, slots=True)
class Flagged:
    """A lazy frame with a flag for every rule, and the means to refuse it."""

    frame: Any
    rules: tuple[ColumnRule, ...]
    fills: dict[str, float]
    naming: InputError | None  # what is wrong with labels that are names, if anything is
    named: dict[str, str]  # the columns of the user, by the names they have here

    @property
    def rows(self) -> Any:
        """The rows, with ``bad`` 1 and harmless values where a rule is broken."""
        nw = language()
        broken = nw.col(self.rules[0].name)
        for rule in self.rules[1:]:
            broken = broken | nw.col(rule.name)
        frame = self.frame.with_columns(bad=as_number(broken))
        broken = nw.col("bad") == 1.0
        return frame.with_columns(
            **{
                name: nw.when(broken).then(nw.lit(fill)).otherwise(nw.col(name)).fill_null(fill)  # now none is missing
                for name, fill in self.fills.items()
            }
        )

    @property
    def _missing(self) -> Any:
        nw = language()
        missing, *flags = (nw.col(rule.name) for rule in self.rules if rule.broken is None)
        for flag_of in flags:
            missing = missing | flag_of
        return missing

    def refuse(self, n: int) -> None:
        """Raise for the first rule that one of ``n`` rows breaks."""
        nw = language()
        columns: dict[str, Any] = {"missing": as_number(self._missing)}
        for rule in self.rules:
            broken = nw.col(rule.name)
            columns[rule.name] = as_number(broken)
            if rule.broken is not None:
                columns |= {f"{rule.name}_{end}": nw.when(broken).then(nw.col(rule.column)) for end in ("min", "max")}
        aggregates = [
            getattr(nw.col(name), name[-3:] if name[-4:] in ("_min", "_max") else "sum")() for name in columns
        ]
        result = self.frame.select(**columns).select(*aggregates).collect("pyarrow").to_dict(as_series=False)
        holes = [rule.column for rule in self.rules if rule.broken is None and result[rule.name][0]]
        if holes:
            name = next(column for column in self.named if column in holes)
            raise fail(
                MissingValueError, self.named[name], "must not hold missing values", got="none",
                count=(int(result["missing"][0]), n), hint=phrase("drop"),
            )  # fmt: skip
        for rule in self.rules:
            if rule.column in _CHECKED_LAST and self.naming is not None:
                raise self.naming
            count = int(result[rule.name][0] or 0)
            if count:
                ends = np.array([result[f"{rule.name}_{end}"][0] for end in ("min", "max")])
                error = _refusal(partial(rule.check, ends), (count, n))
                assert error is not None, f"an engine and the core disagree about {ends}"
                raise error
        if self.naming is not None:
            raise self.naming


def _refusal(check: Callable[[], Any], count: tuple[int, int] | None = None) -> InputError | None:
    """Return the error of a check, if there is one, with the rows that the engine counted."""
    try:
        check()
    except InputError as error:
        c = error.complaint
        return fail(type(error), c.argument, c.rule, got=c.got, count=count, hint=c.hint)
    return None


def _numeric(schema: Any, name: str) -> Any:
    """Return a column as float64."""
    nw = language()
    kind = schema[name]
    if not kind.is_numeric():
        raise not_numbers(name, str(kind))
    return nw.col(name).cast(nw.Float64)


def flag(frame: Any, columns: Columns) -> Flagged:
    """Choose and name the columns of a lazy frame, and flag the rows that break a rule."""
    nw = language()
    schema = frame.collect_schema()
    chosen = {f"by{k}": nw.col(name) for k, name in enumerate(columns.by)}
    naming = None
    turned: dict[str, Any] = {}
    assert columns.y_true is not None
    if columns.form == "gaussian":
        assert columns.spread is not None
        form, spread = columns.spread
        chosen["outcome"] = _numeric(schema, columns.y_true)
        chosen["value"] = _numeric(schema, columns.values[0])
        chosen["spread"] = _numeric(schema, spread)
        rules, fills = _state_rules(form), {"outcome": 0.5, "value": 0.5, "spread": 1.0}
    else:
        chosen["value"] = _numeric(schema, columns.values[0])
        chosen["outcome"], turned["outcome"], plain = _outcome(schema[columns.y_true], columns)
        if not plain:
            naming = _naming(frame, chosen["outcome"], columns)
        rules, fills = _class_rules(columns.form, plain), {"value": 0.5, "outcome": 0.0}
    if columns.sample_weight is not None:
        chosen["weight"] = _numeric(schema, columns.sample_weight)
        rules, fills = rules + _weight_rules(), fills | {"weight": 1.0}
    if columns.cluster is not None:
        chosen["cluster"] = nw.col(columns.cluster)
        rules = (*rules, ColumnRule("cluster_missing", "cluster", lambda a: cluster_codes(a.astype(object), len(a))))
    frame = frame.select(**chosen)
    numbers = {name for name in fills if name not in turned}
    missing = [rule for rule in rules if rule.broken is None]
    if columns.cluster is not None and schema[columns.cluster].is_float():
        numbers.add("cluster")
    flags = {r.name: _missing(nw.col(r.column), r.column in numbers) for r in missing}
    frame = frame.with_columns(**flags)
    filled = {
        name: nw.when(nw.col(f"{name}_missing")).then(nw.lit(fill)).otherwise(turned.get(name, nw.col(name)))
        for name, fill in fills.items()
    }
    frame = frame.with_columns(**filled)
    broken = {rule.name: rule.broken for rule in rules if rule.broken is not None}
    named: dict[str, Any] = {
        "outcome": columns.y_true, "value": columns.values[0], "spread": columns.spread and columns.spread[1],
        "weight": columns.sample_weight, "cluster": columns.cluster,
    }  # fmt: skip
    return Flagged(frame.with_columns(**broken) if broken else frame, rules, fills, naming, named)


def _missing(column: Any, number: bool) -> Any:
    return column.is_null() | column.is_nan() if number else column.is_null()


def _outcome(kind: Any, columns: Columns) -> tuple[Any, Any, bool]:
    """Return the outcomes, the expression that turns them into 1 and 0, and whether they are plain numbers."""
    nw = language()
    column, outcome, label = nw.col(columns.y_true), nw.col("outcome"), columns.pos_label
    if kind.is_numeric() and label is None:
        column = column.cast(nw.Float64)
        return column, outcome, True
    if kind == nw.Boolean:
        truth = True if label is None else bool(label)
        return column, as_number(outcome if truth else ~outcome), label is None
    if kind.is_numeric():
        column = column.cast(nw.Float64)
        same = outcome == (float(label) if isinstance(label, int | float | np.number) else np.inf)
        return nw.when(column.is_nan()).then(None).otherwise(column), as_number(same), False
    if kind in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    elif kind != nw.String:
        rule = f"must be numbers, text, or true and false in column {columns.y_true!r}"
        raise fail(DtypeError, "y_true", rule, got=f"type {kind}", hint="is it the right column?")
    return column, as_number(outcome == (label if isinstance(label, str) else "")), False


def _naming(frame: Any, column: Any, columns: Columns) -> InputError | None:
    """Tell what is wrong with labels that are names."""
    nw = language()
    distinct = frame.select(outcome=column).filter(~nw.col("outcome").is_null()).unique().head(_LABELS)
    labels = np.array(distinct.collect("pyarrow")["outcome"].to_list())
    if labels.dtype.kind == "f" and bool((labels == np.rint(labels)).all()):
        labels = np.sort(labels.astype(np.int64))  # as they were typed, before they became floats
    if not labels.size:
        return None
    return _refusal(partial(binary_outcomes, labels, len(labels), columns.form, columns.pos_label, whole=True))


def _class_rules(form: str, plain: bool) -> tuple[ColumnRule, ...]:
    nw = language()
    value, outcome = nw.col("value"), nw.col("outcome")

    def label(a: AnyArray) -> Any:
        return binary_outcomes(a, len(a), form)

    if form == "y_prob":
        rules = [
            ColumnRule("value_missing", "value", lambda a: probabilities(a, form)),
            ColumnRule("value_range", "value", lambda a: probabilities(a, form), (value < 0.0) | (value > 1.0)),
        ]
    else:
        rules = [ColumnRule("value_missing", "value", lambda a: real_logits(a, form))]
    rules.append(ColumnRule("outcome_missing", "outcome", label))
    if plain:
        rules.append(ColumnRule("outcome_label", "outcome", label, (outcome != 0.0) & (outcome != 1.0)))
    return tuple(rules)


def _state_rules(form: str) -> tuple[ColumnRule, ...]:
    nw = language()

    def infinite(name: str) -> Any:
        return nw.col(name).abs() == np.inf

    checks: dict[str, Callable[[AnyArray], Any]] = {
        "outcome": lambda a: state_columns(a, np.zeros(len(a))),
        "value": lambda a: state_columns(np.zeros(len(a)), a),
        "spread": lambda a: spread_column(a, form, a.shape),
    }
    rules = []
    for name, check in checks.items():
        rules.append(ColumnRule(f"{name}_missing", name, check))
        rules.append(ColumnRule(f"{name}_infinite", name, check, infinite(name)))
    return (*rules, ColumnRule("spread_range", "spread", checks["spread"], ~(nw.col("spread") > 0.0)))


def _weight_rules() -> tuple[ColumnRule, ...]:
    w = language().col("weight")

    def check(a: AnyArray) -> Any:
        return weights(a, len(a))

    return (
        ColumnRule("weight_missing", "weight", check),
        ColumnRule("weight_infinite", "weight", check, w.abs() == np.inf),
        ColumnRule("weight_negative", "weight", check, w < 0.0),
        ColumnRule("weight_range", "weight", check, (w > 0.0) & ((w < _LEAST) | (w > _MOST))),
    )


def log1p(x: Any, u: Any) -> Any:
    """Return ``log(1 + x)`` where ``u = 1 + x``, to the last digit or two also where x is small."""
    nw = language()
    return u.log() + nw.when(x < 1.0).then(x - (u - 1.0)).otherwise(nw.lit(0.0))  # what rounding took from u


def one_minus_exp(x: Any, t: Any, log_t: Any) -> Any:
    """Return ``1 - exp(-x)`` where ``t = exp(-x)``, to the last digit or two also where x is small.

    ``log_t`` is ``log(t)``; it matters above one half only.
    """
    nw = language()
    return 1.0 - t + nw.when(t > 0.5).then(t * (x + log_t)).otherwise(nw.lit(0.0))


def _odds_from_probability(frame: Any) -> Any:
    """Add the smaller probability, the larger one, their difference, the log-odds and ``-log`` of the larger one."""
    nw = language()
    p = nw.col("value")
    frame = frame.with_columns(
        predicted=p,
        likely=p > 0.5,
        m_small=nw.when(p > 0.5).then(1.0 - p).otherwise(p),
        m_large=nw.when(p > 0.5).then(p).otherwise(1.0 - p),
        contrast=(2.0 * p - 1.0).abs(),
    )
    m = nw.col("m_small")
    frame = frame.with_columns(certain=m == 0.0, divisor=nw.when(m < _TINY).then(nw.lit(1.0)).otherwise(m))
    ratio = nw.col("ratio")
    frame = frame.with_columns(ratio=nw.col("contrast") / nw.col("divisor"))
    frame = frame.with_columns(whole=1.0 + ratio)
    tiny_log = nw.lit(0.0) - nw.when(m > 0.0).then(m).otherwise(nw.lit(1.0)).log()
    return frame.with_columns(
        odds=nw.when(m < _TINY).then(tiny_log).otherwise(log1p(ratio, nw.col("whole"))),
        loss=0.0 - log1p(0.0 - m, nw.col("m_large")),
    )


def _odds_from_logit(frame: Any) -> Any:
    """Add the same columns from log-odds, infinite ones included."""
    nw = language()
    z = nw.col("value")
    frame = frame.with_columns(certain=z.abs() == float("inf"), likely=z > 0.0)
    certain = nw.col("certain")
    frame = frame.with_columns(odds=nw.when(certain).then(nw.lit(0.0)).otherwise(z.abs()))
    odds = nw.col("odds")
    frame = frame.with_columns(t=nw.when(certain).then(nw.lit(0.0)).otherwise((0.0 - odds).exp()))
    t = nw.col("t")
    frame = frame.with_columns(whole=1.0 + t, upper=nw.when(t > 0.5).then(t).otherwise(nw.lit(1.0)))
    whole = nw.col("whole")
    frame = frame.with_columns(
        m_large=1.0 / whole, gap=one_minus_exp(odds, t, nw.col("upper").log()), loss=log1p(t, whole)
    )
    large = nw.col("m_large")
    frame = frame.with_columns(m_small=t * large, contrast=nw.col("gap") * large)
    return frame.with_columns(predicted=nw.when(nw.col("likely")).then(large).otherwise(nw.col("m_small")))


def score_binary(frame: Any, form: str, clip: float | None) -> Any:
    """Score predictions of two outcomes: ``value`` and ``happened`` become the columns of a scored row."""
    nw = language()
    if clip is not None:
        frame = frame.with_columns(value=nw.col("value").clip(clip, 1.0 - clip))
    frame = _odds_from_probability(frame) if form == "y_prob" else _odds_from_logit(frame)
    agree = nw.col("likely") == nw.col("happened")
    m, large, odds = nw.col("m_small"), nw.col("m_large"), nw.col("odds")
    frame = frame.with_columns(agree=agree, residual=nw.when(agree).then(0.0 - m).otherwise(large), mixed=m * odds)
    residual, mixed = nw.col("residual"), nw.col("mixed")
    varentropy = mixed * odds * large
    return frame.with_columns(
        impossible=nw.col("certain") & ~nw.col("agree"),
        excess=residual * odds,
        varentropy=varentropy,
        third=varentropy * odds * nw.col("contrast"),
        entropy=mixed + nw.col("loss"),
        observed=as_number(nw.col("happened")),
        confidence=large,
        correct=as_number(nw.col("agree")),
        brier=residual * residual,
    )


def score_gaussian(frame: Any, form: str) -> Any:
    """Score scalar Gaussians: ``outcome``, ``value`` (the mean) and ``spread`` become the columns of a scored row."""
    nw = language()
    spread = nw.col("spread")
    frame = frame.with_columns(deviation=spread if form == "std" else spread.sqrt())
    frame = frame.with_columns(white=(nw.col("outcome") - nw.col("value")).abs() / nw.col("deviation"))
    white = nw.col("white")
    frame = frame.with_columns(impossible=white > _ROOT)
    white = nw.when(nw.col("impossible")).then(nw.lit(1.0)).otherwise(white)
    return frame.with_columns(
        certain=nw.col("impossible") & ~nw.col("impossible"),
        excess=(white * white - 1.0) * 0.5,
        error=nw.when(nw.col("outcome") < nw.col("value")).then(0.0 - white).otherwise(white),
        varentropy=nw.lit(0.5),
        third=nw.lit(1.0),
        entropy=(LOG_2PI + 2.0 * nw.col("deviation").log() + 1.0) * 0.5,
    )
