"""Real documents of every kind, what is done to them, and how what is read is used."""

import copy
import json
import math
import random
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import safecal
from safecal import maps
from safecal.errors import DocumentError, SafecalError
from safecal.monitor import Monitor
from safecal.paper.study import Study
from safecal.report import report_html

STUDY = Path(__file__).resolve().parents[2] / "docs" / "paper" / "table1-study.json"


@cache
def originals() -> dict[str, Any]:
    """Return an object of every kind that is written, by a name."""
    rng = np.random.default_rng(5)
    z = rng.normal(0, 2, 300)
    y = (rng.random(300) < 1 / (1 + np.exp(-z))).astype(int)
    site, patient = rng.choice(["north", "south", "west"], 300), rng.integers(0, 12, 300)
    sharp = safecal.evaluate(y, logits=2.5 * z, by=site)
    plain = safecal.evaluate(y, logits=z, by={"site": site, "half": np.arange(300) % 2}, bins=4)
    weighted = safecal.evaluate(y, logits=z, sample_weight=rng.exponential(1.0, 300), bins=4)
    clustered = safecal.evaluate(y, logits=z, cluster=patient, bins=3)
    impossible = safecal.evaluate([1, 0, 1, 1], [0.0, 0.3, 0.8, 1.0])
    logits = rng.normal(0, 1.5, (200, 3))
    label = np.array([rng.choice(3, p=p) for p in np.exp(logits) / np.exp(logits).sum(axis=1)[:, None]])
    classes = safecal.evaluate(label, logits=2 * logits, labels=[0, 1, 2], by=np.arange(200) % 2)
    few = safecal.evaluate(label[:30], logits=logits[:30], cluster=np.arange(30) % 5)
    states = safecal.gaussian(rng.normal(size=(80, 2)), np.zeros((80, 2)), std=0.8)
    tracked = safecal.assess_consistency(states, run=np.repeat(np.arange(8), 10), step=np.tile(np.arange(10), 8))
    unnormalised = safecal.density(
        rng.normal(size=40), log_density=lambda x: -0.5 * x**2, sampler=lambda g: g.normal(size=40), rng=0
    )
    monitor = Monitor(run_length=2000, grouped=True, detect="both", judged_windows=2, max_windows=3)
    alarms = []
    for day in range(5):
        some = slice(60 * day, 60 * day + 60)
        alarms += monitor.update(
            y[some], logits=(1 + day) * z[some], by=site[some], window=f"day {day}", batch=f"b{day}"
        )
    other = Monitor()
    other.add(states, window="all")
    fitted = safecal.Temperature().fit(y, logits=2 * z, by=np.arange(300) % 2)
    found = {
        "sharp": sharp, "plain": plain, "weighted": weighted, "clustered": clustered, "impossible": impossible,
        "classes": classes, "few classes": few, "states": states.evaluate(), "unnormalised": unnormalised.evaluate(),
        "consistency": tracked, "monitor": monitor, "monitor of states": other, "new monitor": Monitor(),
        "alarm": alarms[0], "alarm since the start": alarms[-1], "temperature": fitted,
        "safe temperature": safecal.SafeTemperature().fit(y, logits=2 * z),
        "states' temperature": safecal.Temperature().fit_states(rng.normal(size=60), np.zeros(60), std=0.7),
        "comparison": safecal.compare(safecal.bernoulli(y, logits=2 * z), safecal.bernoulli(y, logits=z)),
        "comparison of states": safecal.compare(states, states),
        "baseline": safecal.Baseline.of(sharp, plain), "change": safecal.Baseline.of(sharp, plain).changes[0],
        "study": Study.from_dict(json.loads(STUDY.read_text(encoding="utf-8"))),
        "empty tally": safecal.Tally(), "empty summary": safecal.Summary(),
    }  # fmt: skip
    found |= {
        "affine map": maps.Affine().fit(y, logits=2 * z, by=np.arange(300) % 2),
        "map of classes": maps.Vector().fit(label, logits=2 * logits),
        "safe beta map": maps.Safe(maps.Beta()).fit(y, logits=2 * z),
        "isotonic map": maps.Isotonic().fit(y, logits=2 * z),
        "map of axes": maps.Axes().fit_states(rng.normal(size=(60, 2)), np.zeros((60, 2)), std=0.7),
        "slices": safecal.find_slices(safecal.bernoulli(y, logits=9 * z), {"site": site, "patient": patient}),
        "with slices": safecal.evaluate(y, logits=9 * z, features={"site": site}, bins=3),
    }
    stream, windows = monitor.stream(), monitor._windows
    found |= {"stream": stream, "process": stream.process, "detector": stream.detector, "windows": windows}
    found |= {"size": alarms[0].size, "limits": safecal.Limits(max_ratio=math.inf), "bins": safecal.Bins.uniform(4)}
    for name in ("sharp", "weighted", "clustered", "classes", "states"):
        tally = found[name].tally
        parts = {part: getattr(tally, part) for part in tally.__slots__ if part not in ("pairs", "cell_pairs")}
        found |= {f"{name}: {part}": x for part, x in parts.items() if hasattr(x, "to_dict")}
        found[f"{name}: tally"] = tally
    parts = ("verdict", "test", "interval", "temperature", "mistakes", "local", "reliability", "cox")
    found |= {f"sharp: {part}": getattr(sharp, part) for part in parts}
    verdict = sharp.verdict
    found |= {"diagnosis": verdict.diagnosis, "place": verdict.where[0], "too small": plain.verdict.too_small}
    return {name: x for name, x in found.items() if x is not None}


def written(thing: Any) -> Any:
    """Return the document of an object, through text and back."""
    return json.loads(json.dumps(thing.to_dict(), allow_nan=False))


VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, -0.0, 2, 3.7, 1e308, -1e308, 1e-308, 5e-324, 2**53 + 1, 10**400,
    math.nan, math.inf, -math.inf, "", "inf", "-inf", "nan", "1", "text", "\ud800\x1b[31m\n", "x" * 5000,
    [], [[]], [None], ["a", 1], {}, {"": 0}, {"kind": "safecal.summary", "version": 1},
)  # fmt: skip


def _deep() -> Any:
    found: Any = []
    for _ in range(20_000):
        found = [found]
    return found


DEEP = _deep()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*path, name))


def _parent(root: Any, path: tuple[Any, ...]) -> Any:
    for step in path[:-1]:
        root = root[step]
    return root


def replaced(root: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Put a value in a place; the document itself is changed."""
    if not path:
        return value
    _parent(root, path)[path[-1]] = value
    return root


def mutant(document: Any, paths: list[tuple[Any, ...]], draw: random.Random) -> Any:
    """Return a copy of a document with one thing done to it, or two."""
    root = copy.deepcopy(document)
    path = draw.choice(paths)
    parent, here = (_parent(root, path), root) if path else (None, root)
    for step in path:
        here = here[step]
    what = draw.randrange(11)
    if what == 0 and isinstance(parent, dict | list):
        del parent[path[-1]]
    elif what == 1 and isinstance(here, list) and here:
        del here[draw.randrange(len(here)) :]
    elif what == 2 and isinstance(here, list) and len(here) > 1:
        draw.shuffle(here)
    elif what == 3 and isinstance(here, list) and here:
        here.append(copy.deepcopy(draw.choice(here)))
    elif what == 4 and isinstance(here, dict):
        here[draw.choice(["surprise", "", "kind ", "n", "9999", "-1", "1e3", " 1", "٣"])] = draw.choice(VALUES)
    elif what == 5 and isinstance(here, dict) and len(here) > 1:
        a, b = draw.sample(list(here), 2)
        here[a], here[b] = here[b], here[a]
    elif what == 6 and isinstance(here, int | float) and not isinstance(here, bool):
        here = draw.choice([-here, here * 1.5, here + 1, here * 1e6, here / 1e6, str(here), [here], float(here) + 1e-3])
        root = replaced(root, path, here)
    elif what == 7:
        other = draw.choice(paths)
        value: Any = copy.deepcopy(document)
        for step in other:
            value = value[step]
        root = replaced(root, path, value)
    else:
        root = replaced(root, path, draw.choice(VALUES))
    return root


def _properties(thing: Any) -> None:
    for kind in type(thing).__mro__:
        for name, member in vars(kind).items():
            if isinstance(member, property):
                _may(lambda name=name: getattr(thing, name))


def _may(do: Callable[[], Any]) -> Any:
    """Do something that may be refused, by an error of ours."""
    try:
        return do()
    except SafecalError:
        return None


def use(thing: Any) -> None:
    """Ask a thing for everything it has to say; only errors of ours may come of it."""
    _properties(thing)
    for do in (repr, str):
        _may(lambda do=do: do(thing))
    if hasattr(thing, "_repr_html_"):
        _may(thing._repr_html_)
    if hasattr(thing, "__add__"):
        both = _may(lambda: thing + thing)
        if both is not None:
            _properties(both)
            repr(both)
            json.dumps(both.to_dict(), allow_nan=False)
    _more(thing)


def _more(thing: Any) -> None:
    match thing:
        case safecal.Evaluation():
            _may(lambda: report_html(thing))
            _may(lambda: thing.judge(level=0.9, threshold=0.05))
            _may(lambda: safecal.Baseline.of(thing, thing))
        case safecal.Tally():
            found = _may(lambda: safecal.Evaluation.of(thing))
            if found is not None:
                repr(found)
                json.dumps(found.to_dict(), allow_nan=False)
        case safecal.Table():
            _may(thing.intervals)
            list(thing.items())
        case Monitor():
            _watch(thing)
        case safecal.Temperature() | safecal.SafeTemperature():
            groups = None if thing.groups_ is None else list(thing.groups_)[:1]
            found = _may(lambda: thing.apply([0.3], by=groups))
            assert found is None or 0.0 <= found[0] <= 0.5, "the order of classes is turned round"
            _may(lambda: thing.apply_states(std=[1.0], by=groups))
        case maps.Map():
            groups = None if thing._keys() is None else list(thing._keys())[:1]
            for found in (_may(lambda: thing.apply([0.3], by=groups)), _may(lambda: thing.apply([[0.5, 0.3, 0.2]]))):
                assert found is None or ((found >= 0.0) & (found <= 1.0)).all()
            for do in (thing.to_python, thing.to_sql):
                _may(do)
            _may(lambda: thing.apply_states(std=[[1.0, 1.0]]))
        case safecal.Slices():
            thing.columns()


def _watch(monitor: Monitor) -> None:
    again = Monitor.from_dict(monitor.to_dict())
    _may(lambda: monitor.merge(again))
    json.dumps(monitor.to_dict(), allow_nan=False)
    for group in (None, *monitor.groups):
        for direction in monitor.directions:
            _may(lambda g=group, d=direction: again.log_e_value(d, group=g))
        _may(lambda g=group: again.log_change(group=g))
        _may(lambda g=group: again.threshold(group=g))
    _may(again.windows)
    _may(again.last_window)
    _may(again.tally)
    by = ["north", "south"] if again.grouped else None
    _may(lambda: again.update([1, 0], [0.9, 0.2], by=by, window="day 9", batch="new"))
    _may(again.acknowledge)
    json.dumps(again.to_dict(), allow_nan=False)


# What is found anew and need not be equal: words, which a later release may choose otherwise.
DERIVED = {("comparison", "verdict"), ("baseline", "reason"), ("evaluation", "baseline")}


def same(given: Any, found: Any, kind: str = "") -> bool:
    """Tell whether what is written again is what was given."""
    if isinstance(given, dict) and isinstance(found, dict):
        kind = str(found.get("kind", kind)).removeprefix("safecal.")
        names = {name for name in given.keys() | found.keys() if (kind, name) not in DERIVED}
        names -= {name for name in names - given.keys() if name in LATER}
        return all(name in given and name in found and same(given[name], found[name], kind) for name in names)
    if isinstance(given, list) and isinstance(found, list):
        return len(given) == len(found) and all(map(same, given, found))
    if isinstance(given, bool) != isinstance(found, bool):
        return kind == "stream"  # early documents said yes or no of a change
    close = isinstance(given, int | float) and isinstance(found, int | float) and kind == "evaluation"
    return bool(given == found) or (close and math.isclose(given, found, rel_tol=1e-6))


# Fields that may be absent: early documents lack them, or they are found anew.
LATER = {
    "group_nodes", "temperature", "size", "sums", "other", "limits", "detect", "judged_windows", "judged", "up", "down",
    "tally", "verdict", "decision", "reason", "n", "family", "metrics", "log_up", "log_down", "log_other",
    "ecd", "nll", "ece", "ece_overconfident", "ece_underconfident", "esce", "brier", "accuracy", "bias", "classes",
    "shared", "class_shifts", "uneven",
}  # fmt: skip


@dataclass
class Counts:
    """How many documents were tried, and what came of them."""

    tried: int = 0
    refused: int = 0
    accepted: int = 0
    tracebacks: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.tried} documents tried: {self.refused} refused, {self.accepted} accepted and used, "
            f"{len(self.tracebacks)} tracebacks, {len(self.wrong)} silently other than given"
        )


def attack(name: str, tries: int, seed: int, counts: Counts) -> None:
    """Change a document of a kind again and again; read what comes of it, and use it."""
    thing = originals()[name]
    document = written(thing)
    paths = list(places(document))
    draw = random.Random(f"{name} {seed}")
    for _ in range(tries):
        changed = mutant(document, paths, draw)
        how = draw.randrange(50)
        if how == 0:
            changed = replaced(copy.deepcopy(document), draw.choice(paths), DEEP)
        elif how < 6 and isinstance(changed, dict) and changed:
            changed = mutant(changed, list(places(changed))[:2000], draw)
        counts.tried += 1
        try:
            found = type(thing).from_dict(changed)
        except DocumentError as error:
            counts.refused += 1
            if not str(error).startswith("`") or len(str(error)) > 1000:
                counts.wrong.append(f"{name}: {str(error)[:200]!r} is no message")
            continue
        except Exception as error:  # noqa: BLE001 (whatever it is, it is counted)
            counts.tracebacks.append(f"{name}: reading: {_told(error)}")
            continue
        counts.accepted += 1
        try:
            again = written(found)
            if not same(changed, again):
                counts.wrong.append(f"{name}: {difference(changed, again)}")
            use(found)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is counted)
            counts.tracebacks.append(f"{name}: using: {_told(error)}")


def _told(error: BaseException) -> str:
    last = [frame for frame in traceback.extract_tb(error.__traceback__) if "safecal" in frame.filename]
    where = "; ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in last[-4:])
    return f"{type(error).__name__}: {error!s:.200} ({where})"


def difference(given: Any, found: Any, path: str = "") -> str:
    """Say where two documents differ first."""
    if isinstance(given, dict) and isinstance(found, dict):
        for key in given.keys() | found.keys():
            if key not in given or key not in found:
                if key not in LATER:
                    return f"{path}.{key} is in one of them"
            elif not same(given[key], found[key]):
                return difference(given[key], found[key], f"{path}.{key}")
    if isinstance(given, list) and isinstance(found, list) and len(given) == len(found):
        for k, (a, b) in enumerate(zip(given, found, strict=True)):
            if not same(a, b):
                return difference(a, b, f"{path}[{k}]")
    return f"{path}: {str(given)[:80]!r} became {str(found)[:80]!r}"
