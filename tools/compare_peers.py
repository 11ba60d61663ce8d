"""Ask safecal and its peers the same questions, and write docs/comparison.md and the table of the README.

python tools/compare_peers.py            # asks, with the Python of `make bench`: bench/results/peers.json, both pages
python tools/compare_peers.py --render   # writes the pages anew from bench/results/peers.json

A yes is what a probe of `peer_probes.py` has run, on the rows of `peer_rows.py`. A no is said where a library has no
probe for the question and none of its public names and arguments looks like an answer; one that does must be tried, or
be named in `NOT_THAT`.
"""

import argparse
import importlib
import inspect
import json
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "peers.json"
PAGE, README = ROOT / "docs" / "comparison.md", ROOT / "README.md"

# What is installed, and the modules in which measures of calibration may lie.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "safecal": ("safecal",),
    "scikit-learn": ("sklearn.calibration",),
    "netcal": ("netcal",),
    "torchmetrics": (
        "torchmetrics.classification.calibration_error", "torchmetrics.functional.classification.calibration_error",
        "torchmetrics.wrappers",
    ),
    "MAPIE": ("mapie.metrics", "mapie.calibration"),
    "relplot": ("relplot",),
    "probmetrics": ("probmetrics",),
    "uncertainty-calibration": ("calibration",),
    "pycalib": ("pycalib",),
    "uncertainty-toolbox": ("uncertainty_toolbox",),
    "scoringrules": ("scoringrules",),
}  # fmt: skip

# Heading, the question, and what a name would look like that answers it.
QUESTIONS: dict[str, tuple[str, str, str]] = {
    "sign": ("over or under", "Is there a number that tells over-confident from cautious?", r"over_?conf|under_?conf"),
    "test": ("p-value", "Is there a test of calibration with a p-value?", r"p_?val|_test\b|hypothes|spiegelhalter"),
    "interval": ("interval", "Is there an interval of its number?", r"bootstrap|uncertainties|ce_interval|_ci\b"),
    "verdict": ("verdict", "Is there a decision, with its reason?", r"verdict|is_safe|is_calibrated|\bdecide|assert_"),
    "weights": ("weights", "Do rows have weights?", r"weight"),
    "clusters": ("clusters", "May rows depend on each other, as those of a patient do?", r"cluster|\(groups?\)"),
    "logits": ("logits", "Are logits taken?", r"logit"),
    "states": ("states", "Are covariances of several dimensions judged?", r"nees|mahalanobis|multivariate|\(cov"),
    "stream": ("batches", "Do rows come in batches, and what is kept of them?", r"\.update\b|partial_fit|\.merge"),
    "fix": ("recalibrates", "Is there something that corrects it?", r"recalib|platt|temperature|isotonic|calibrator"),
}

# Names that look like an answer and are none, and why.
NOT_THAT: dict[str, dict[str, str]] = {
    "scikit-learn: clusters": {r"LeaveOneOut|cross_val_predict": "folds of a cross-validation"},
    "netcal: weights": {r"\.regularization\.": "the weight of a penalty"},
    "uncertainty-toolbox: verdict": {r"assert_is_(flat|positive)": "checks of its own input"},
}


def names(modules: tuple[str, ...]) -> Iterator[str]:
    """Yield the public names of modules and of what lies below them, and those of their arguments and methods."""
    for top in modules:
        module = importlib.import_module(top)
        below = [one.name for one in pkgutil.walk_packages(getattr(module, "__path__", []), f"{top}.")]
        for name in [top, *below]:
            if re.search(r"\._|\.tests?\b|util_test", name):
                continue
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue
            for key, value in vars(module).items():
                inside = str(getattr(value, "__module__", "")).startswith(top.split(".")[0])
                if not key.startswith("_") and inside and (inspect.isroutine(value) or inspect.isclass(value)):
                    yield from _of(f"{name}.{key}", value)


def _of(name: str, value: Any) -> Iterator[str]:
    yield name
    members = vars(value).items() if inspect.isclass(value) else ()
    asked = [(name, value), *((f"{name}.{key}", one) for key, one in members if key[0] != "_" and callable(one))]
    for called, one in asked:
        try:
            arguments = [key for key in inspect.signature(one).parameters if key != "self"]
        except (TypeError, ValueError):
            continue
        yield called
        yield from (f"{called}({key})" for key in arguments)


def looks_like(library: str, question: str) -> list[str]:
    """Return the names of a library that look like an answer and were not looked at."""
    known = NOT_THAT.get(f"{library}: {question}", {})
    candidates = {name for name in names(LIBRARIES[library]) if re.search(QUESTIONS[question][2], name, re.IGNORECASE)}
    return sorted(name for name in candidates if not any(re.search(pattern, name) for pattern in known))


def ask() -> dict[str, Any]:
    """Ask every question, and return the answers."""
    import peer_probes as probes
    import peer_rows

    warnings.simplefilter("ignore")  # what peers warn of is theirs
    results: dict[str, Any] = {"versions": {name: metadata.version(name) for name in LIBRARIES if name != "safecal"}}
    open_questions = []
    answers: dict[str, dict[str, list[str]]] = {}
    for library in LIBRARIES:
        answers[library] = {}
        for question in QUESTIONS:
            probe = probes.PROBES[library].get(question)
            print(f"{library}: {question}", file=sys.stderr, flush=True)
            if probe is not None:
                answers[library][question] = list(probe())
                continue
            open_questions += [f"{library}: {question}: {name}" for name in looks_like(library, question)]
            answers[library][question] = ["no", "", ""]
    if open_questions:
        raise SystemExit("\n".join(["These look like answers: try them, or name them in NOT_THAT.", *open_questions]))
    results["answers"] = answers
    results["numbers"] = numbers(peer_rows)
    results["beyond"] = {library: [list(one) for one in many] for library, many in probes.BEYOND.items()}
    for many in probes.BEYOND.values():
        for name, _ in many:
            module, _, attribute = name.rpartition(".")
            getattr(importlib.import_module(module), attribute)
    results["memory"] = {library: memory(entry) for library, entry in MEMORY.items()}
    return results


def numbers(rows: Any) -> list[list[Any]]:
    """Return what each number is of three models, and of a model before and after one impossible event."""
    import safecal

    y, models = rows.three_models()
    ours = [one.evaluation.ecd for one in safecal.paper.three_models()]  # from logits
    lines = []
    for library, name, number in rows.NUMBERS:
        three = ours if library == "safecal" else [number(y, p) for p in models]
        rounded = [float(f"{value:.4g}") for value in (*three, *(number(*given) for given in rows.impossible()))]
        lines.append([library, name, *(str(value) if value == float("inf") else value for value in rounded)])
    return lines


# The entries of `bench/peers.py` whose memory is measured.
MEMORY = {
    "safecal": "safecal.evaluate",
    "scikit-learn": "scikit-learn calibration_curve",
    "netcal": "netcal ECE",
    "torchmetrics": "torchmetrics BinaryCalibrationError",
    "MAPIE": "MAPIE expected_calibration_error",
    "relplot": "relplot smECE",
    "uncertainty-calibration": "uncertainty-calibration get_ece",
    "pycalib": "pycalib binary_ECE",
}
_MEASURE = """
import json
from measuring import forget_peak, peak, status
from peers import ENTRIES, rows
work = ENTRIES[{entry!r}].load()
work(*rows(1000))
given = rows(10_000_000)
forget_peak()
before = status("VmRSS")
work(*given)
print(json.dumps(max(peak() - before, 0.0)))
"""


def memory(entry: str) -> int:
    """Return the megabytes beyond the rows that an entry of the benchmark needs for ten million rows."""
    sys.path.insert(0, str(ROOT / "bench"))
    from measuring import in_its_own_process

    print(f"memory: {entry}", file=sys.stderr, flush=True)
    return round(in_its_own_process(["-c", _MEASURE.format(entry=entry)]))


# Pages

NUMBERS = ["", "number", "naive Bayes", "forest", "logistic regression", "calibrated", "with the impossible event"]


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(value: float | str, *, sign: bool = False) -> str:
    """Return a number as a cell."""
    if isinstance(value, str):
        return value
    return f"{value:+.2f}" if sign else f"{value:.3f}"


def render(results: dict[str, Any]) -> dict[str, str]:
    """Return the text between each pair of markers, by the name of the marker."""
    versions, answers = results["versions"], results["answers"]
    heads = ["", *(head for head, _, _ in QUESTIONS.values()), "MB for 10<sup>7</sup> rows"]
    matrix = []
    for library in LIBRARIES:
        name = "**safecal**" if library == "safecal" else f"{library} {versions[library]}"
        cells = [answers[library][question][0] for question in QUESTIONS]
        matrix.append([name, *cells, str(results["memory"].get(library, "–"))])
    asked = [f"- *{head}*: {sentence}" for head, sentence, _ in QUESTIONS.values()]
    calls = [
        [library, QUESTIONS[question][0], f"`{call}`", came]
        for library, of in answers.items()
        for question, (_, call, came) in of.items()
        if call
    ]
    models = [
        [library, name, *(shown(value, sign=library == "safecal") for value in values)]
        for library, name, *values in results["numbers"]
    ]
    beyond = [
        f"- **{library}**: " + "; ".join(f"{words} (`{name}`)" for name, words in many) + "."
        for library, many in results["beyond"].items()
    ]
    return {
        "answers": "\n".join([table(heads, matrix), "", *asked]),
        "numbers": table(NUMBERS, models),
        "calls": table(["library", "question", "called", "what came"], calls),
        "beyond": "\n".join(beyond),
        "short": short(results),
    }


SHORT = ("safecal", "scikit-learn", "netcal", "torchmetrics", "MAPIE", "relplot", "probmetrics")
PLAIN = {
    "sign": "tells over-confident from cautious",
    "test": "a test with a p-value",
    "interval": "an interval of its number",
    "verdict": "a verdict, with its reason",
    "weights": "weights",
    "clusters": "rows that depend on each other",
    "logits": "logits",
    "states": "covariances of states",
    "stream": "rows in batches",
    "fix": "recalibrates",
}


def short(results: dict[str, Any]) -> str:
    """Return the table of the README."""
    rows = [[words, *(results["answers"][library][key][0] for library in SHORT)] for key, words in PLAIN.items()]
    rows.append(["MB for 10<sup>7</sup> rows", *(str(results["memory"].get(library, "–")) for library in SHORT)])
    return table(["", *SHORT], rows)


def written(text: str, parts: dict[str, str]) -> str:
    """Return a page with the parts between its markers."""
    for name, part in parts.items():
        begin, end = f"<!-- peers: {name} -->", f"<!-- end: {name} -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\n\n{part}\n\n{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    """Ask, unless only the pages are to be written, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--render", action="store_true", help="write the pages from what was asked before")
    if not parser.parse_args().render:
        RESULTS.write_text(json.dumps(ask(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    parts = render(json.loads(RESULTS.read_text(encoding="utf-8")))
    for page in (PAGE, README):
        page.write_text(written(page.read_text(encoding="utf-8"), parts), encoding="utf-8")
    print(parts["answers"], parts["numbers"], sep="\n\n")


if __name__ == "__main__":
    main()
