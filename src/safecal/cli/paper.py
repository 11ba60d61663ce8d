"""``safecal paper``: the paper's tables and figures, made again."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import FileError, OptionError, visible
from .options import Formatter, output, place, whole
from .outputs import INTERRUPTED, Progress, ReadFolder, Steps, check_outputs, write_plot

__all__ = ["_run_table2", "_run_tracking", "add_options", "add_table2", "add_tracking", "run"]

_EXAMPLES = """examples:
  safecal paper table1                          from the draws of the paper: all 99 cells
  safecal paper table1 --seed 7                 other draws, the same process
  safecal paper table1 --noise-on logit         the process as the paper writes it
  safecal paper table1 --replications 1000      where the published cells lie among a thousand tables
  safecal paper consistency                     do the cells of both published tables fit together?
  safecal paper study --out docs/paper          which process made Table 1? writes a page; two minutes
  safecal paper figures --out figures --predictions tweets=bilstm.csv

`safecal paper WHAT --help` explains each."""

_FILES = """examples:
  safecal paper figures --out figures
  safecal paper figures --out figures --predictions tweets=bilstm.csv --predictions games.csv --y won

Each file of real predictions adds a reliability diagram; its columns are found by name, or named as for
`safecal evaluate`."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what there is to reproduce; nothing is imported before it runs."""
    parser.epilog = _EXAMPLES
    subcommands = parser.add_subparsers(metavar="WHAT", required=True, title="what")

    def add(name: str, about: str, action: Callable[[argparse.Namespace], int], epilog: str = "") -> Any:
        about = f"{about[0].upper()}{about[1:]}."
        subparser = subcommands.add_parser(
            name, help=about, description=about, epilog=epilog, formatter_class=Formatter
        )
        subparser.set_defaults(run=run, action=action, command=f"paper {name}")
        return subparser

    table1 = add("table1", "Table 1, simulated: ours beside the published one", _table1)
    _process(table1)
    table1.add_argument("--n", type=whole(2, 10**7), default=10_000, help="rows of each simulation (default 10000)")
    replications = "simulate the table N times: mean, spread, and which cells lie in the central 99 %%"
    table1.add_argument("--replications", type=whole(1, 10**6), metavar="N", help=replications)
    add_table2(subcommands)
    add_tracking(subcommands)
    add("table2-published", "Table 2, real models, as published", _table2)
    add("consistency", "whether the cells of both published tables fit together", _consistency)
    add("readings", "ECE, ESCE and ECD of each published block, read together", _readings)
    study = add("study", "which process made the noise columns of Table 1", _study)
    replications = "simulations of each candidate (default 1000)"
    study.add_argument("--replications", type=whole(1, 10**6), default=1000, metavar="N", help=replications)
    study.add_argument(
        "--out", type=place, metavar="DIR", help="write table1-study.json and the tables of table1-study.md there"
    )
    study.add_argument("--render", action="store_true", help="run nothing: write the tables from the JSON in --out")
    figures = add("figures", "the figures, as PNG and SVG", _figures, _FILES)
    figures.add_argument(
        "--out", type=place, metavar="DIR", required=True, help="folder to write into; it is made if it does not exist"
    )
    _process(figures)
    _real(figures)
    nees = add("nees", "Gaussian ECD is (NEES - d) / 2, on simulated states", _nees)
    nees.add_argument("--n", type=whole(2, 10**7), default=2000, help="number of states (default 2000)")
    nees.add_argument("--seed", type=whole(0, 2**63), default=0, help="seed of the simulation (default 0)")
    models = add("models", "three models of scikit-learn, one table, three verdicts", _models)
    models.add_argument(
        "--seed", type=whole(0, 2**63), default=0, help="seed of the folds and of the forest (default 0)"
    )


def _process(parser: Any) -> None:
    parser.add_argument("--seed", type=whole(0, 2**63), metavar="N", help="seed of other draws than those of the paper")
    noise_on = "both: the process that made the published table (default); logit: as the paper writes it"
    parser.add_argument("--noise-on", choices=("both", "logit", "probability"), default="both", help=noise_on)


def _real(parser: Any) -> None:
    group = parser.add_argument_group("real predictions")
    group.add_argument(
        "--predictions", action="append", metavar="[NAME=]FILE", help="file of real predictions; can be repeated"
    )
    group.add_argument("--y", metavar="COL", help="column of what happened")
    group.add_argument("--prob", metavar="COL", help="column of probabilities")
    group.add_argument("--logits", metavar="COL", help="column of log-odds, instead of --prob")
    group.add_argument("--pos-label", metavar="LABEL", help="the outcome that --prob is the probability of")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    status: int = options.action(options)
    return status


def _table1(options: argparse.Namespace) -> int:
    from ..paper import replicate_table1, table1

    if options.replications is None:
        print(table1(options.seed, n=options.n, noise_on=options.noise_on))
        return 0
    with Steps(3 * options.replications) as steps:
        replications = replicate_table1(
            options.replications, n=options.n, noise_on=options.noise_on, seed=options.seed or 0, tick=steps.add
        )
    print(replications)
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
    from ..paper import read_study, run_study, study_text, write_study
    from ..paper.pages import NAME
    from ..paper.study import steps

    if options.render and not options.out:
        raise OptionError("`--render` needs `--out`, where the JSON of a study lies.")
    if options.out:
        if not options.render and not Path(options.out).is_dir():
            raise FileError(f"the folder {options.out} does not exist.\n\nHint: mkdir -p {shlex.quote(options.out)}")
        check_outputs(out=[Path(options.out) / f"{NAME}{end}" for end in (".json", ".md")])
    if options.render:
        study = read_study(options.out)
    else:
        with Steps(steps()) as progress:
            study = run_study(options.replications, tick=progress.add)
    print(study_text(study))
    if options.out:
        for path in write_study(options.out, study):
            print(f"written: {visible(str(path))}")
    return 0


def _figures(options: argparse.Namespace) -> int:
    from ..paper import write_figures
    from ..paper.figures import FILES

    files = _named(options.predictions or ())
    inputs = {f"--predictions {name}": file for name, file in files.items()}
    check_outputs(inputs=inputs, out=[Path(options.out) / name for name in FILES])
    tables = _tables(options, files)
    for path in write_figures(options.out, options.seed, noise_on=options.noise_on, real=tables):
        print(f"written: {visible(str(path))}")
    return 0


def _named(words: Sequence[str]) -> dict[str, str]:
    """Return the files of predictions by their names."""
    files: dict[str, str] = {}
    for word in words:
        name, _, file = ("", "", word) if Path(word).exists() else word.rpartition("=")
        name = name or Path(file).stem
        if name in files:
            raise OptionError(
                f"`--predictions` must have a name for each file; got {name!r} for {files[name]} and {file}.\n\n"
                f"Hint: name one of them: `--predictions {shlex.quote(f'other={file}')}`."
            )
        files[name] = file
    return files


def _tables(options: argparse.Namespace, files: Mapping[str, str]) -> dict[str, Any]:
    """Read files of real predictions, and bin them."""
    from ..inputs.sources import open_source
    from .table_file import TableFile, chosen_columns

    tables = {}
    for name, file in files.items():
        source = open_source(file, None)
        prob, logits = ([c] if c else None for c in (options.prob, options.logits))
        columns = chosen_columns(source, "paper", y=options.y, prob=prob, logits=logits, pos_label=options.pos_label)
        tables[name] = TableFile(source, columns).whole().predictions.table(10)
    return tables


def _nees(options: argparse.Namespace) -> int:
    from ..paper import nees_demonstration, nees_text

    print(nees_text(nees_demonstration(n=options.n, seed=options.seed)))
    return 0


def _models(options: argparse.Namespace) -> int:
    from ..paper import models_text, three_models

    print(models_text(three_models(options.seed)))
    return 0


_NAMES = ("bertimbau", "resnet18", "roberta")
_TABLE2 = "Table 2, real models of the Hugging Face hub: ours beside the published one."
_TABLE2_EXAMPLES = """examples:
  safecal paper table2 bertimbau --out table2
  safecal paper table2 resnet18 --model my-resnet --data photos --positive dog       folders on this machine
  safecal paper table2 roberta --data posts.csv --text-column post --label-column sensitive --positive 1

The paper prints no names of the hub, so model and data are guesses until you replace them. Predictions are kept as they
are made: the same command, after an interruption, goes on where it stopped. Code that comes with a model is never run.
Needs `pip install "safecal[huggingface]"`."""


def add_table2(commands: Any) -> Any:
    """Add the command to those of ``safecal paper``; nothing is imported before it runs."""
    parser = commands.add_parser(
        "table2", help=_TABLE2, description=_TABLE2, epilog=_TABLE2_EXAMPLES, formatter_class=Formatter
    )
    parser.add_argument("name", choices=_NAMES, metavar="NAME", help=", ".join(_NAMES))
    data = parser.add_argument_group("model and data", "By default those that the paper seems to have used.")
    data.add_argument("--model", metavar="PATH", help="name on the hub, or a folder that `save_pretrained` wrote")
    data.add_argument("--data", metavar="PATH", help="name on the hub, a CSV or Parquet file, or a folder of images")
    data.add_argument(
        "--split", metavar="NAME", help="split of data on the hub, or a part of one, such as train[:10%%]"
    )
    data.add_argument(
        "--text-column", "--image-column", dest="column", metavar="COL", help="column of what is classified"
    )
    data.add_argument("--label-column", metavar="COL", help="column of what happened")
    data.add_argument("--positive", metavar="LABEL", help="the label that is positive")
    data.add_argument("--negative", metavar="LABEL", help="instead of --positive: the only label that is not positive")
    positive_class = "class of the model that means the positive label, if it has another name"
    data.add_argument("--positive-class", metavar="CLASS", help=positive_class)
    running = parser.add_argument_group("running")
    running.add_argument("--batch-size", type=whole(1, 10**6), metavar="N", help="rows at a time (default 32)")
    running.add_argument("--max-length", type=whole(1, 10**6), metavar="N", help="longest text, in tokens")
    running.add_argument(
        "--device", metavar="NAME", help="device of torch: cpu, cuda, mps (default: a GPU if there is one)"
    )
    running.add_argument(
        "--cache", type=place, metavar="DIR", help="where predictions are kept (default ~/.cache/safecal)"
    )
    running.add_argument(
        "--out", type=place, metavar="DIR", help="write the table, the rows, the evaluation and the figure there"
    )
    parser.set_defaults(run=_run_table2, command="paper table2")
    return parser


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "safecal"


def _run_table2(options: argparse.Namespace) -> int:
    """Run the command."""
    from ..compat.huggingface.data import IMAGES
    from ..paper.real_models import table2, table2_files, write_table2

    names = ("split", "column", "label_column", "positive", "negative", "positive_class", "batch_size", "max_length")
    settings = {name: getattr(options, name) for name in (*names, "device") if getattr(options, name) is not None}
    cache = options.cache or _cache()
    if options.out:
        data = options.data if options.data and Path(options.data).exists() else None
        images = [ReadFolder("--data", data, IMAGES)] if data and Path(data).is_dir() else []
        out = [Path(options.out) / name for name in table2_files(options.name)]
        check_outputs(inputs={"--data": data}, folders=images, out=out)
    with Progress(None) as counter:

        def progress(done: int, total: int) -> None:
            counter.total = total
            counter.add(done - counter.rows)

        try:
            block = table2(
                options.name, model=options.model, data=options.data, cache=cache, progress=progress, **settings
            )
        except KeyboardInterrupt:
            if not counter.rows:
                raise
            kept = f"the predictions of {counter.rows:,} rows are kept in {cache}"
            print(f"safecal: interrupted; {kept}. The same command goes on from there.", file=sys.stderr)
            return INTERRUPTED
    print(block)
    if block.run.resumed:
        print(f"\n{block.run.resumed} of {block.evaluation.n} rows were predicted earlier: {block.run.cache}")
    if options.out:
        print()
        for path in write_table2(options.out, block):
            print(f"written: {visible(str(path))}")
    return 0


_TRACKING = "Track targets by range and bearing with EKF, UKF and particle filter."
_TRACKING_EXAMPLES = """examples:
  safecal paper tracking                                  100 runs of 40 steps; a minute
  safecal paper tracking --plot tracking.png              ECD and NEES over time, and the banana
  safecal paper tracking --setting hard --seed 7
  safecal paper tracking --runs 20 --particles 5000       a quick look

RMSE is the same for all filters, and the innovations of the EKF look right (NIS near 2). ECD is not: its covariances
are far too small at first, because the posterior is bent like a banana. Needs `pip install "safecal[stonesoup]"`."""


def add_tracking(commands: Any) -> Any:
    """Add the command to those of ``safecal paper``; nothing is imported before it runs."""
    parser = commands.add_parser(
        "tracking", help=_TRACKING, description=_TRACKING, epilog=_TRACKING_EXAMPLES, formatter_class=Formatter
    )
    parser.add_argument(
        "--setting", choices=("standard", "hard"), default="standard", help="how hard the task is (default standard)"
    )
    parser.add_argument(
        "--runs", type=whole(1, 10**6), default=100, metavar="N", help="number of targets (default 100)"
    )
    parser.add_argument(
        "--particles", type=whole(1, 10**8), default=20_000, metavar="N", help="number of particles (default 20000)"
    )
    parser.add_argument(
        "--seed", type=whole(0, 2**63), default=4, metavar="N", help="seed of the simulation (default 4)"
    )
    parser.add_argument("--plot", type=output, metavar="FILE", help="draw the picture: .svg, .png or .pdf")
    parser.set_defaults(run=_run_tracking, command="paper tracking")
    return parser


def _run_tracking(options: argparse.Namespace) -> int:
    """Run the command."""
    from ..paper.tracking import run_tracking
    from ..paper.tracking_views import tracking_text

    check_outputs(plot=options.plot)
    filters = 5 if options.runs >= 30 else 4  # with enough runs, fresh ones of the EKF are inflated
    with Progress(40 * filters * options.runs) as progress:
        study = run_tracking(
            options.setting, runs=options.runs, particles=options.particles, seed=options.seed, progress=progress.add
        )
    print(tracking_text(study))
    if options.plot:
        from ..paper.tracking_views import tracking_figure

        write_plot(tracking_figure(study), options.plot)
        print(f"\npicture: {visible(options.plot)}")
    return 0
