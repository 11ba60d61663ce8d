"""How the report came about: parameters, versions, the way to make it again, the words, and the document itself."""

import json
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from .._sums.bins import Bins
from .._sums.table import Table
from .._versions import version
from ..html.markup import Markup, element, shortened, together
from ..html.numbers import grouped, percent, plain
from ..judge.evaluation import Evaluation
from ..options import Limits
from .numbers import test_name
from .words import CLASSIFIERS

__all__ = ["GLOSSARY", "embedded", "glossary", "parameters", "snippet", "versions"]

Pairs = Sequence[tuple[str, str]]

GLOSSARY = (
    ("nat", "the unit of surprise, with natural logarithms; 1 nat is 1.44 bits"),
    ("surprisal", "how surprised the model was: minus the logarithm of the probability it gave to what happened"),
    ("entropy", "how surprised it said it would be, on average"),
    ("excess", "surprisal minus entropy, for one row"),
    ("ECD", "entropic calibration difference: the mean excess; above 0 over-confident, below 0 under-confident"),
    (
        "temperature",
        "the power 1/T that makes the predictions fit best; above 1 over-confident, below 1 under-confident",
    ),
    ("mistake", "an outcome other than the likeliest; announced by what the model left to the others"),
    ("range", "a part of the predictions in their order: halves to sixteenths of the rows"),
    ("suspected", "beyond the limit by its estimate, but not by its bound: more rows would tell"),
    ("dimension", "two nats of spread of the surprise, at least one; for states their dimension, for two classes 1"),
    ("over-confident", "more surprised than announced; unsafe, because people rely on announced certainty"),
    ("under-confident", "less surprised than announced; cautious"),
    ("impossible", "an outcome happened to which the model had given probability 0: an infinite surprise"),
    ("NLL", "negative log-likelihood: the mean surprisal; a proper score, smaller is better"),
    (
        "ECE",
        "expected calibration error: the mean distance between predicted and observed, over bins; of the positive "
        "class, or of the confidence in the most likely class",
    ),
    ("ECE by chance", "the ECE that a calibrated model has with so many rows, because shares vary"),
    ("ESCE", "expected signed calibration error: as ECE with signs, so that opposite bins cancel"),
    ("Brier", "the mean squared distance between probabilities and outcome; a proper score, smaller is better"),
    ("p-value", "the probability, if the model is calibrated, of a surprise at least as extreme as the one seen"),
    ("interval", "at 95 %, a range that misses the truth in 1 of 20 data sets like this one"),
)


def versions() -> Pairs:
    """Return the versions that matter."""
    libraries = [(name, metadata.version(name)) for name in ("numpy", "scipy")]
    return [("safecal", version()), ("Python", platform.python_version()), *libraries]


def parameters(evaluation: Evaluation) -> Pairs:
    """Return what was asked, and by which methods it was answered."""
    e = evaluation
    limits, many = e.limits, e.verdict.dimensions
    found = [("family", e.family), ("rows", grouped(e.n))]
    if e.dimension > 1:
        found.append(("dimension", str(e.dimension)))
    unit = "nat" if many == 1.0 else f"nat a dimension, {plain(e.verdict.allowed)} nat for {plain(many)}"
    found += [
        ("threshold", f"{plain(limits.threshold)} {unit}"),
        ("max_temperature", plain(limits.max_temperature)),
        ("max_ratio", f"{plain(limits.max_ratio)} times as many mistakes as announced"),
        ("local_threshold", f"{plain(limits.local_threshold)} nat{'' if many == 1.0 else ' a dimension'}, in a range"),
        ("min_share", f"{percent(limits.min_share)} of the rows, in a range"),
        ("level", percent(limits.level)),
        ("rule", limits.rule),
        ("bins", "none" if e.bins is None else f"{len(e.bins)} on {e.bins.name}"),
        ("groups", "none" if e.groups is None else f"{grouped(len(e.groups))}, by {shortened(e.groups.name, 60)}"),
        ("test", test_name(e.test.method)),
        ("interval of ECD", e.interval.method),
        ("temperature", e.temperature.method),
    ]
    return found


def snippet(evaluation: Evaluation) -> str:
    """Return Python that makes the same evaluation from the data."""
    e = evaluation
    options = _bin_options(e.bins, e.family)
    options += ["by=groups"] if e.groups is not None else []
    options += ["cluster=clusters"] if e.test.method == "cluster" else []
    options += ["sample_weight=weights"] if e.summary.weight != e.n else []
    always = ("threshold", "max_temperature", "level")
    changed = [n for n in e.limits.__slots__ if n in always or getattr(e.limits, n) != getattr(Limits(), n)]
    options += [f"{name}={getattr(e.limits, name)!r}" for name in changed]
    calls = {
        "bernoulli": "safecal.evaluate(\n    y_true,\n    y_prob,{})",
        "categorical": "safecal.evaluate(\n    y_true,\n    y_prob,{})",
        "gaussian": "safecal.gaussian(x_true, mean, cov=cov).evaluate({})",
        "density": "safecal.density(x_true, dist).evaluate({})",
    }
    call = calls.get(e.family, "predictions.evaluate({})").format(
        "".join(f"\n    {option}," for option in options) + "\n"
    )
    return f"import safecal\n\nresult = {call}\nprint(result.verdict)\n"


def _bin_options(table: Table | None, family: str) -> list[str]:
    classifier = family in CLASSIFIERS
    if table is None or table.bins is None:
        return ["bins=None"] if classifier else []
    edges = table.bins.edges
    if edges == Bins.uniform(len(edges) - 1).edges:
        made = str(len(edges) - 1)
    else:
        made = f"safecal.Bins.from_edges({list(edges)!r})" if len(edges) <= 12 else "bins"
    default = {"bernoulli": "probability", "categorical": "confidence"}.get(family)
    return [f"bins={made}"] + ([] if table.name == default else [f"bin_on={table.name!r}"])


def glossary() -> Markup:
    """Return the words that the report uses."""
    items = (element("div", element("dt", word), element("dd", together(said))) for word, said in GLOSSARY)
    return element("dl", *items, class_="glossary")


def embedded(document: Any) -> Markup:
    """Return a JSON document as a block that no browser runs and nothing in it can close."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return element("script", Markup(text), type="application/json", id="evaluation")
