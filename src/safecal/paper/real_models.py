"""Table 2, real models: the likely models and data of the paper, run again, beside the published cells.

The paper prints no names of the hub. Those here are guesses, from what its text says of each model; all of them can be
replaced, by other names or by what lies on this machine.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Unpack, final

from .._checks import fail, show
from .._checks.columns import spelled
from .._types import FloatArray
from ..compat.huggingface import ClassifierRun, RunOptions, run_classifier
from ..errors import OptionError
from ..files import write_atomically
from ..judge.evaluation import Evaluation
from .cells import beside, cells_of_table
from .figures import draw_reliability, made_folder, new_figure, picture_bytes
from .published import BINS, PublishedColumn, published_table2

__all__ = ["RealModel", "Table2", "table2", "table2_files", "table2_models", "write_table2"]


@final
@dataclass(frozen=True, slots=True)
class RealModel:
    """One model of Table 2: what to run, and what of it is a guess.

    Attributes
    ----------
    name : str
        As the published block is called.
    model, data : str
        Names on the hub, or paths.
    kind : {"text", "image"}
        What is classified.
    settings : mapping
        Further arguments of `safecal.compat.huggingface.run_classifier`.
    guesses : str
        What the paper does not say.
    others : tuple of str
        Other models that fit its words.

    Examples
    --------
    >>> from safecal.paper.real_models import table2_models
    >>> table2_models()["resnet18"].model
    'hilmansw/resnet18-catdog-classifier'
    """

    name: str
    model: str
    data: str
    kind: Literal["text", "image"]
    settings: Mapping[str, Any]
    guesses: str
    others: tuple[str, ...] = ()

    @property
    def published(self) -> PublishedColumn:
        """The published cells."""
        return next(column for column in published_table2() if column.name == self.name)


def table2_models() -> dict[str, RealModel]:
    """Return the models of Table 2, by the words that `table2` knows them by.

    Returns
    -------
    dict of str to RealModel
        ``"bertimbau"``, ``"resnet18"`` and ``"roberta"``.

    Examples
    --------
    >>> from safecal.paper.real_models import table2_models
    >>> list(table2_models())
    ['bertimbau', 'resnet18', 'roberta']
    """
    return {
        "bertimbau": RealModel(
            "BERTimbau",
            "ruanchaves/bert-base-portuguese-cased-hatebr",
            "ruanchaves/hatebr",
            "text",
            # The data came with a script; the hub keeps a copy without one.
            {
                "column": "instagram_comments", "label_column": "offensive_language", "positive": True,
                "positive_class": 1, "split": "test", "data_revision": "refs/convert/parquet",
            },
            "model, data set, split, and that offensive comments are positive, class 1 of the model",
            ("ruanchaves/bert-large-portuguese-cased-hatebr", "cassiasilvaR/bertimbau-hate-detector"),
        ),
        "resnet18": RealModel(
            "ResNet18",
            "hilmansw/resnet18-catdog-classifier",
            "microsoft/cats_vs_dogs",
            "image",
            {"column": "image", "label_column": "labels", "positive": "dog", "positive_class": 1, "split": "train"},
            "model, data set, and that dogs are positive, class 1 of the model; "
            "the data have one split, train, with 23410 images, while the "
            "published cells look like 123 to 163 images",
        ),
        "roberta": RealModel(
            "RoBERTa",
            "cardiffnlp/twitter-roberta-large-sensitive-binary",
            "cardiffnlp/x_sensitive",
            "text",
            {"column": "text", "label_column": "#labels", "negative": 0, "positive_class": 1, "split": "test"},
            "model, data set, split, and that any label makes a post positive, class 1 of the model; gated",
            ("cardiffnlp/twitter-roberta-base-sensitive-binary",),
        ),
    }  # fmt: skip


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table2:
    """One block of Table 2, ours beside the published one. Print it.

    Attributes
    ----------
    entry : RealModel
        What was run.
    run : ClassifierRun
        The rows.
    evaluation : Evaluation
        With ten bins of the probability of the positive label.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.compat.huggingface import ClassifierRun
    >>> from safecal.paper.real_models import Table2, table2_models
    >>> run = ClassifierRun("m", "d", np.array([0, 1]), np.array([-2.0, 1.0]), ("no", "yes"), "yes", 0, None)
    >>> print(str(Table2(table2_models()["roberta"], run, run.evaluate())).splitlines()[0])
    Table 2, RoBERTa: m on d, 2 rows.
    """

    entry: RealModel
    run: ClassifierRun
    evaluation: Evaluation

    @property
    def cells(self) -> FloatArray:
        """Our cells, shape (3, 11); NaN where a bin is empty."""
        assert self.evaluation.bins is not None
        return cells_of_table(self.evaluation.bins)

    def __repr__(self) -> str:
        assert self.evaluation.bins is not None
        rows = [s.n for s in self.evaluation.bins.summaries]
        verdict = self.evaluation.verdict
        return "\n".join(
            [
                f"Table 2, {self.entry.name}: {self.run.model} on {self.run.data}, {self.evaluation.n} rows.",
                f"Guessed, where not replaced: {self.entry.guesses}.",
                "",
                beside(self.entry.published, self.cells, rows),
                "",
                f"The paper's reading of its own cells: {self.entry.published.reading}.",
                f"Ours: {verdict.decision}: {verdict.reason}",
            ]
        )

    def figure(self) -> Any:
        """Draw the reliability diagram.

        Returns
        -------
        matplotlib.figure.Figure
            With numbered bins and their counts.
        """
        assert self.evaluation.bins is not None
        return draw_reliability(new_figure(), {self.entry.name: self.evaluation.bins})


@spelled(RunOptions)
def table2(
    name: str,
    *,
    model: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    **options: Unpack[RunOptions],
) -> Table2:
    """Run a model of Table 2, or another in its place.

    Parameters
    ----------
    name : {"bertimbau", "resnet18", "roberta"}
        The block.
    model, data : str or os.PathLike, optional
        In place of the guessed ones: names on the hub, folders or files.
    **options
        Arguments of `safecal.compat.huggingface.run_classifier` that replace those of the registry: column,
        label_column, positive, negative, positive_class, split, batch_size, device, cache, progress and the others.

    Returns
    -------
    Table2
        Print it; it holds the rows, the evaluation and the cells.

    Examples
    --------
    >>> from safecal.paper.real_models import table2
    >>> print(table2("roberta", cache="predictions"))  # doctest: +SKIP
    """
    models = table2_models()
    if name not in models:
        raise fail(OptionError, "name", f"must be one of {', '.join(map(repr, models))}", got=show(name))
    entry = models[name]
    settings = dict(entry.settings)
    if data is not None:  # a revision and a split belong to the data that they were meant for
        settings.pop("data_revision", None)
        entry = replace(entry, data=os.fspath(data))
    if model is not None:  # its classes may be in another order: they must go by their names
        settings.pop("positive_class", None)
        entry = replace(entry, model=os.fspath(model))
    if {"positive", "negative"} & set(options):  # one of them replaces the other, and the class that went with it
        for key in ("positive", "negative", "positive_class"):
            settings.pop(key, None)
    settings.update(options)
    entry = replace(entry, settings=settings)
    run = run_classifier(entry.model, entry.data, kind=entry.kind, **settings)
    if run.logits.ndim != 1:
        raise fail(OptionError, "positive", "is needed: Table 2 is about one class", got="none")
    return Table2(entry, run, run.evaluate(bins=BINS))


def write_table2(folder: str | os.PathLike[str], table: Table2) -> tuple[Path, ...]:
    """Write a block of Table 2: the text, the rows, the evaluation, and the reliability diagram as PNG and SVG.

    Parameters
    ----------
    folder : str or os.PathLike
        Where to; it is made where it does not exist.
    table : Table2
        From `table2`.

    Returns
    -------
    tuple of Path
        The files.

    Examples
    --------
    >>> from safecal.paper.real_models import table2, write_table2
    >>> write_table2("table2", table2("roberta", cache="predictions"))  # doctest: +SKIP
    """
    target = made_folder(folder)
    figure = table.figure()
    contents: tuple[str | bytes, ...] = (
        f"{table}\n",
        table.run.to_csv(),
        json.dumps(table.evaluation.to_dict(), indent=1, ensure_ascii=False) + "\n",
        picture_bytes(figure, "png"),
        picture_bytes(figure, "svg"),
    )
    paths = tuple(target / name for name in table2_files(table.entry.name.lower()))
    for path, content in zip(paths, contents, strict=True):
        write_atomically(path, content)
    return paths


def table2_files(name: str) -> tuple[str, ...]:
    """Return the names of the files that `write_table2` writes.

    Parameters
    ----------
    name : str
        The word of the model, as for `table2`.

    Returns
    -------
    tuple of str
        Their names, without the folder.
    """
    return tuple(f"table2-{name}{end}" for end in (".txt", "-rows.csv", ".json", ".png", ".svg"))
