"""``safecal paper table2``: real models, run again, beside the published cells."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from ..visible import visible
from .values import place, whole

__all__ = ["add_parser", "run"]

_NAMES = ("bertimbau", "resnet18", "roberta")
_ABOUT = "Table 2, real models of the Hugging Face hub: ours beside the published one"
_EXAMPLES = """examples:
  safecal paper table2 bertimbau --out table2
  safecal paper table2 resnet18 --model my-resnet --data photos --positive dog       folders on this machine
  safecal paper table2 roberta --data posts.csv --text-column post --label-column sensitive --positive 1

The paper prints no names of the hub, so model and data are guesses until you replace them. Predictions are kept as they
are made: the same command, after an interruption, goes on where it stopped. Code that comes with a model is never run.
Needs `pip install "safecal[huggingface]"`."""


def add_parser(commands: Any, formatter: Any = argparse.RawDescriptionHelpFormatter) -> Any:
    """Add the command to those of ``safecal paper``; nothing is imported before it runs."""
    about = f"{_ABOUT}."
    parser = commands.add_parser("table2", help=about, description=about, epilog=_EXAMPLES, formatter_class=formatter)
    parser.add_argument("name", choices=_NAMES, metavar="NAME", help=", ".join(_NAMES))
    data = parser.add_argument_group("model and data", "Left out, they are those of the registry.")
    data.add_argument("--model", metavar="PATH", help="name on the hub, or a folder that `save_pretrained` wrote")
    data.add_argument("--data", metavar="PATH", help="name on the hub, a CSV or Parquet file, or a folder of images")
    data.add_argument("--split", metavar="NAME", help="of data on the hub; may be a slice, such as train[:10%%]")
    data.add_argument("--text-column", "--image-column", dest="column", metavar="COL", help="what is classified")
    data.add_argument("--label-column", metavar="COL", help="what happened")
    data.add_argument("--positive", metavar="LABEL", help="the label that is positive")
    data.add_argument("--negative", metavar="LABEL", help="instead: the one that is not, when all others are")
    data.add_argument(
        "--positive-class", metavar="CLASS", help="the class of the model that speaks of it, if not named so"
    )
    running = parser.add_argument_group("running")
    running.add_argument("--batch-size", type=whole(1, 10**6), metavar="N", help="rows at a time (default 32)")
    running.add_argument("--max-length", type=whole(1, 10**6), metavar="N", help="longest text, in tokens")
    running.add_argument("--device", metavar="NAME", help="of torch: cpu, cuda, mps (default a GPU where there is one)")
    running.add_argument(
        "--cache", type=place, metavar="DIR", help="where predictions are kept (default ~/.cache/safecal)"
    )
    running.add_argument(
        "--out", type=place, metavar="DIR", help="write the table, the rows, the evaluation and the figure there"
    )
    parser.set_defaults(run=run, command="paper table2")
    return parser


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "safecal"


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from ..compat.huggingface.data import IMAGES
    from ..paper.real_models import table2, table2_files, write_table2
    from .apart import ReadFolder
    from .main import INTERRUPTED
    from .outputs import check_outputs
    from .terminal import Progress

    names = ("split", "column", "label_column", "positive", "negative", "positive_class", "batch_size", "max_length")
    given = {name: getattr(options, name) for name in (*names, "device") if getattr(options, name) is not None}
    cache = options.cache or _cache()
    if options.out:
        data = options.data if options.data and Path(options.data).exists() else None
        images = [ReadFolder("--data", data, IMAGES)] if data and Path(data).is_dir() else []
        out = [Path(options.out) / name for name in table2_files(options.name)]
        check_outputs(inputs={"--data": data}, folders=images, out=out)
    with Progress(None) as shown:

        def progress(done: int, total: int) -> None:
            shown.total = total
            shown.add(done - shown.rows)

        try:
            found = table2(
                options.name, model=options.model, data=options.data, cache=cache, progress=progress, **given
            )
        except KeyboardInterrupt:
            if not shown.rows:
                raise
            kept = f"the predictions of {shown.rows:,} rows are kept in {cache}"
            print(f"safecal: interrupted; {kept}. The same command goes on from there.", file=sys.stderr)
            return INTERRUPTED
    print(found)
    if found.run.resumed:
        print(f"\n{found.run.resumed} of {found.evaluation.n} rows were predicted earlier: {found.run.cache}")
    if options.out:
        print()
        for path in write_table2(options.out, found):
            print(f"written: {visible(str(path))}")
    return 0
