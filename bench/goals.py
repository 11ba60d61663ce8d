"""What safecal must hold beside its peers, each as a ratio of two numbers that were measured in one run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import files
import first
import groups
import multiclass
import slices
import spark
from peers import EVALUATE, EVALUATE_ONE, RELPLOT, TABLE, THREE

Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Goal:
    """A number that must not exceed another."""

    what: str
    beside: str
    ratio: Callable[[Results], float | None]
    most: float | None = None  # without it the ratio is told alone
    needs: str | None = None  # an instruction set

    def applies(self, results: Results) -> bool:
        """Tell whether the processor has what the goal needs."""
        return self.needs is None or self.needs in results["machine"]["instructions"]

    def reached(self, results: Results) -> tuple[float | None, bool]:
        """Return the ratio, None where it was not measured, and whether the goal was met or does not apply here."""
        value = self.ratio(results)
        return value, value is None or self.most is None or not self.applies(results) or value <= self.most


def _at(results: Results, name: str, rows: int) -> dict[str, Any] | None:
    entries = results.get("binary", {}).get("entries", [])
    sizes = next((entry["measured"] for entry in entries if entry["name"] == name), [])
    return next((one for one in sizes if one["rows"] == rows and "seconds" in one), None)


def _binary(name: str, peer: str, rows: int) -> Callable[[Results], float | None]:
    def ratio(results: Results) -> float | None:
        a, b = _at(results, name, rows), _at(results, peer, rows)
        return None if a is None or b is None else a["seconds"] / b["seconds"]

    return ratio


def _a_row(results: Results) -> float | None:
    a, b = (_at(results, EVALUATE, rows) for rows in (10**8, 10**7))
    return None if a is None or b is None else a["seconds"] / b["seconds"] / 10.0


def _memory(results: Results) -> float | None:
    at = _at(results, EVALUATE, 10**8)
    return None if at is None else at["megabytes"] / 64.0


def _listed(section: str, name: str, peer: str, key: str = "seconds") -> Callable[[Results], float | None]:
    def ratio(results: Results) -> float | None:
        by_name = {one["name"]: one.get(key) for one in results.get(section, [])}
        a, b = by_name.get(name), by_name.get(peer)
        return None if a is None or b is None else a / b

    return ratio


def _a_group(results: Results) -> float | None:
    """Return how much longer a group takes where there are the most of them."""
    by_name = {one["name"]: one for one in results.get("groups", [])}
    if groups.MOST not in by_name or groups.PLAIN not in by_name:
        return None
    most, plain = (by_name[name]["seconds"] / by_name[name]["groups"] for name in (groups.MOST, groups.PLAIN))
    return float(most / plain)


def _states(results: Results) -> float | None:
    return results["states"]["seconds"] / results["states"]["peer_seconds"] if "states" in results else None


def _slices(name: str, key: str, beside: str) -> Callable[[Results], float | None]:
    def ratio(results: Results) -> float | None:
        one = next((one for one in results.get("slices", []) if one["name"] == name), None)
        return None if one is None else one[key] / one[beside]

    return ratio


def _power(rows: int) -> str:
    return f"10<sup>{len(str(rows)) - 1}</sup> rows"


def _goals() -> Iterator[Goal]:
    table = "`safecal.bernoulli(y, p).table()`, one thread"
    for rows, most in ((10**5, 2.5), (10**6, 1.5), (10**7, 1.5)):
        what = f"`safecal.evaluate(y, p)`, one thread, {_power(rows)}"
        yield Goal(what, table, _binary(EVALUATE_ONE, TABLE, rows), most)
    three = "scikit-learn's `log_loss`, `brier_score_loss` and `calibration_curve`"
    for rows, most in ((10**3, 1.0), (10**4, 1.0), (10**7, 1.0 / 25.0)):
        yield Goal(f"`safecal.evaluate(y, p)`, {_power(rows)}", three, _binary(EVALUATE, THREE, rows), most)
    large = f"`safecal.evaluate(y, p)`, {_power(10**8)}"
    yield Goal(f"{large}, time of a row", f"the same at {_power(10**7)}", _a_row, 1.2)
    yield Goal(f"{large}, memory beyond the rows", "64 MB", _memory, 1.0)
    yield Goal(f"the table, one thread, {_power(10**7)}", "relplot's `binnedECE`", _binary(TABLE, RELPLOT, 10**7), 0.93,
               "avx512f")  # fmt: skip
    answer = _listed("first", first.OURS, first.PEER, "processor")
    yield Goal(f"`{first.OURS}`", f"`{first.PEER}`", answer, 1.3)
    for name, most in ((groups.GATE, 1.2), (groups.REPORT, 2.0)):
        yield Goal(f"`{name}`", f"`{groups.PLAIN}`", _listed("groups", name, groups.PLAIN), most)
    yield Goal("10<sup>6</sup> groups, time of a group", "the same of 50 000 groups", _a_group, 1.2)
    yield Goal(f"`{files.COMMAND}`, Parquet", "Polars reading and summing both columns",
               _listed("files", files.COMMAND, files.PEER), 2.0)  # fmt: skip
    yield Goal("`evaluate_frame`, Spark", "Spark's own `groupBy`, three sums and a logarithm",
               _listed("spark", spark.OURS, spark.PEER), 2.5)  # fmt: skip
    yield Goal("logits of many classes to a verdict", "their table alone",
               _listed("multiclass", multiclass.VERDICT, multiclass.TABLE), 2.5)  # fmt: skip
    for name, size in ((slices.OURS, "10<sup>6</sup> rows, 50 features"), (slices.WIDE, "10<sup>5</sup> rows, 100")):
        yield Goal(f"`{slices.OURS}`, {size}", "sorting the features", _slices(name, "seconds", "sorting"), 10.0)
        yield Goal(
            f"`{slices.OURS}`, {size}, memory", "the features", _slices(name, "megabytes", "features_megabytes"), 2.0
        )
    yield Goal("`safecal.gaussian(...).score()`", "filterpy's `NEES`", _states, 1.0 / 40.0)


GOALS = tuple(_goals())
