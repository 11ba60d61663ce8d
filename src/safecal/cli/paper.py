"""``safecal paper``: the paper's tables and figures, made again."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..visible import visible
from .paper_table2 import add_parser as add_table2
from .paper_tracking import add_parser as add_tracking
from .streams import draw
from .values import place, whole

__all__ = ["add_papers", "run"]

_EXAMPLES = """examples:
  safecal paper table1                          from the draws of the paper: all 99 cells
  safecal paper table1 --seed 7                 other draws, the same process
  safecal paper table1 --noise-on logit         the process as the paper writes it
  safecal paper table1 --replications 1000      where the published cells lie among a thousand tables
  safecal paper consistency                     do the cells of both published tables fit together?
  safecal paper study --out docs/paper          which process made Table 1? writes a page; two minutes
  safecal paper figures --out figures --predictions tweets=bilstm.csv

`safecal paper WHAT --help` tells more about each."""

_FILES = """examples:
  safecal paper figures --out figures
  safecal paper figures --out figures --predictions tweets=bilstm.csv --predictions games.csv --y won

Each file of real predictions adds a reliability diagram; its columns are found by name, or named as for
`safecal evaluate`."""


def add_papers(parser: argparse.ArgumentParser, formatter: Any = argparse.RawDescriptionHelpFormatter) -> None:
    """Add what there is to reproduce; nothing is imported before it runs."""
    parser.epilog = _EXAMPLES
    whats = parser.add_subparsers(metavar="WHAT", required=True, title="what")

    def add(name: str, about: str, action: Callable[[argparse.Namespace], int], epilog: str = "") -> Any:
        about = f"{about[0].upper()}{about[1:]}."
        one = whats.add_parser(name, help=about, description=about, epilog=epilog, formatter_class=formatter)
        one.set_defaults(run=run, action=action, command=f"paper {name}")
        return one

    table1 = add("table1", "Table 1, simulated: ours beside the published one", _table1)
    _process(table1)
    table1.add_argument("--n", type=whole(2, 10**7), default=10_000, help="rows of each simulation (default 10000)")
    table1.add_argument(
        "--replications",
        type=whole(1, 10**6),
        metavar="N",
        help="simulate it so often: mean, spread, and what lies in the central 99 %%",
    )
    add_table2(whats, formatter)
    add_tracking(whats, formatter)
    add("table2-published", "Table 2, real models, as published", _table2)
    add("consistency", "whether the cells of both published tables fit together", _consistency)
    add("readings", "ECE, ESCE and ECD of each published block, read together", _readings)
    study = add("study", "which process made the noise columns of Table 1", _study)
    study.add_argument(
        "--replications", type=whole(1, 10**6), default=1000, metavar="N", help="of each candidate (default 1000)"
    )
    study.add_argument(
        "--out", type=place, metavar="DIR", help="write table1-study.json and the tables of table1-study.md there"
    )
    study.add_argument("--render", action="store_true", help="run nothing: write the tables from the JSON in --out")
    figures = add("figures", "the figures, as PNG and SVG", _figures, _FILES)
    figures.add_argument(
        "--out", type=place, metavar="DIR", required=True, help="where to; made where it does not exist"
    )
    _process(figures)
    _real(figures)
    nees = add("nees", "Gaussian ECD is (NEES - d) / 2, on simulated states", _nees)
    nees.add_argument("--n", type=whole(2, 10**7), default=2000, help="states (default 2000)")
    nees.add_argument("--seed", type=whole(0, 2**63), default=0, help="of the simulation (default 0)")
    models = add("models", "three models of scikit-learn, one table, three verdicts", _models)
    models.add_argument("--seed", type=whole(0, 2**63), default=0, help="of the folds and of the forest (default 0)")


def _process(parser: Any) -> None:
    parser.add_argument("--seed", type=whole(0, 2**63), metavar="N", help="other draws than those of the paper")
    parser.add_argument(
        "--noise-on",
        choices=("both", "logit", "probability"),
        default="both",
        help="both: the process that made the published table (default); logit: as the paper writes it",
    )


def _real(parser: Any) -> None:
    group = parser.add_argument_group("real predictions")
    group.add_argument("--predictions", action="append", metavar="[NAME=]FILE", help="may be repeated")
    group.add_argument("--y", metavar="COL", help="what happened")
    group.add_argument("--prob", metavar="COL", help="probability of the positive class")
    group.add_argument("--logits", metavar="COL", help="log-odds, instead of --prob")
    group.add_argument("--pos-label", metavar="LABEL", help="the value of --y that --prob speaks of")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    found: int = options.action(options)
    return found


def _table1(options: argparse.Namespace) -> int:
    from ..paper import replicate_table1, table1

    if options.replications is None:
        print(table1(options.seed, n=options.n, noise_on=options.noise_on))
        return 0
    with _Steps(3 * options.replications) as steps:
        found = replicate_table1(
            options.replications, n=options.n, noise_on=options.noise_on, seed=options.seed or 0, tick=steps.add
        )
    print(found)
    return 0


def _table2(options: argparse.Namespace) -> int:
    from ..paper import beside, published_table2

    print("\n\n".join(["Table 2, as published.", *(beside(column) for column in published_table2())]))
    return 0


def _consistency(options: argparse.Namespace) -> int:
    from ..paper import check_column, checks_text, published_table1, published_table2

    print(checks_text(check_column(column) for column in (*published_table1(), *published_table2())))
    return 0


def _readings(options: argparse.Namespace) -> int:
    from ..paper import readings_text

    print(readings_text())
    return 0


def _study(options: argparse.Namespace) -> int:
    from ..errors import FileError, OptionError
    from ..paper import read_study, run_study, study_text, write_study
    from ..paper.pages import NAME
    from ..paper.study import steps
    from .outputs import check_outputs

    if options.render and not options.out:
        raise OptionError("`--render` needs `--out`, where the JSON of a study lies.")
    if options.out:
        if not options.render and not Path(options.out).is_dir():
            raise FileError(f"the folder {options.out} does not exist.\n\nHint: mkdir -p {shlex.quote(options.out)}")
        check_outputs(out=[Path(options.out) / f"{NAME}{end}" for end in (".json", ".md")])
    if options.render:
        study = read_study(options.out)
    else:
        with _Steps(steps()) as progress:
            study = run_study(options.replications, tick=progress.add)
    print(study_text(study))
    if options.out:
        for path in write_study(options.out, study):
            print(f"written: {visible(str(path))}")
    return 0


def _figures(options: argparse.Namespace) -> int:
    from ..paper import write_figures
    from ..paper.figures import FILES
    from .outputs import check_outputs

    files = _named(options.predictions or ())
    inputs = {f"--predictions {name}": file for name, file in files.items()}
    check_outputs(inputs=inputs, out=[Path(options.out) / name for name in FILES])
    tables = _tables(options, files)
    for path in write_figures(options.out, options.seed, noise_on=options.noise_on, real=tables):
        print(f"written: {visible(str(path))}")
    return 0


def _named(words: Sequence[str]) -> dict[str, str]:
    """Return the files of predictions by their names."""
    from ..errors import OptionError

    found: dict[str, str] = {}
    for word in words:
        name, _, file = ("", "", word) if Path(word).exists() else word.rpartition("=")
        name = name or Path(file).stem
        if name in found:
            raise OptionError(
                f"`--predictions` must have a name for each file; got {name!r} for {found[name]} and {file}.\n\n"
                f"Hint: name one of them: `--predictions {shlex.quote(f'other={file}')}`."
            )
        found[name] = file
    return found


def _tables(options: argparse.Namespace, files: Mapping[str, str]) -> dict[str, Any]:
    """Read files of real predictions, and bin them."""
    from ..inputs.sources import open_source
    from .table import TableFile, chosen_columns

    found = {}
    for name, file in files.items():
        source = open_source(file, None)
        prob, logits = ([c] if c else None for c in (options.prob, options.logits))
        columns = chosen_columns(
            source, "paper", y=options.y, prob=prob, logits=logits, pos_label=options.pos_label
        )  # fmt: skip
        found[name] = TableFile(source, columns).whole().predictions.table(10)
    return found


def _nees(options: argparse.Namespace) -> int:
    from ..paper import nees_demonstration, nees_text

    print(nees_text(nees_demonstration(n=options.n, seed=options.seed)))
    return 0


def _models(options: argparse.Namespace) -> int:
    from ..paper import models_text, three_models

    print(models_text(three_models(options.seed)))
    return 0


class _Steps:
    """A line on standard error that counts steps; on a terminal only."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self._last = 0.0
        self._shown = sys.stderr.isatty()

    def add(self, name: str = "") -> None:
        """Count a step, and name it."""
        self.done += 1
        now = time.monotonic()
        if self._shown and now - self._last >= 0.1:
            self._last = now
            bar = "#" * (30 * self.done // self.total)
            draw(f"\r[{bar:<30}] {self.done} of {self.total}  {name[:40]}\x1b[K")

    def __enter__(self) -> "_Steps":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            draw("\r\x1b[K")
