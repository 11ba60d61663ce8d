"""A pretrained model: where it is, what its classes are, its logits for some inputs, and which label is which class."""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from scipy import special

from ..._checks.message import fail, show
from ..._types import AnyArray, FloatArray
from ...errors import FileError, LabelError, OptionError
from .data import LabelledRows, hub_errors, load_library, local_path

__all__ = ["CausalModel", "Classes", "Outcomes", "PretrainedModel", "log_odds", "read_outcomes"]

_LONGEST = 512  # tokens, where neither the tokenizer nor the model says less
_WINDOW = 2048  # the same, of a language model


@final
@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of a model, and how its logits are read."""

    names: tuple[str, ...]
    sigmoid: bool  # each column by itself, not against the others

    @property
    def generic(self) -> bool:
        """Whether the names say nothing: LABEL_0, LABEL_1 and so on."""
        return all(name.upper() == f"LABEL_{k}" for k, name in enumerate(self.names))

    def number(self, label: Any) -> int | None:
        """Return the class that a label names, by its name or else by its number."""
        word = canonical(label)
        names = [canonical(name) for name in self.names]
        if word in names:
            return names.index(word)
        count = max(len(names), 2)  # one logit stands for two classes
        return int(word) if word.isascii() and word.isdigit() and int(word) < count else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What happened, and the class whose log-odds are asked for; None where all classes count."""

    y_true: AnyArray
    column: int | None


def canonical(label: Any) -> str:
    """Return a label as a word: ``True``, ``1``, ``1.0`` and ``"true"`` are one, capitals do not matter."""
    if isinstance(label, bool | np.bool_):
        return str(int(label))
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    word = str(label).strip().casefold()
    return {"true": "1", "false": "0"}.get(word, word)


def read_outcomes(rows: LabelledRows, classes: Classes, positive: Any, negative: Any, positive_class: Any) -> Outcomes:
    """Read the labels of the data, before any prediction is made.

    Parameters
    ----------
    rows : LabelledRows
        The data.
    classes : Classes
        Those of the model.
    positive, negative : object or None
        The label that is positive; or the one that is not, all others being so.
    positive_class : object or None
        The class of the model that speaks of the positive label; by default the one that it names.
    """
    if positive is not None and negative is not None:
        raise fail(OptionError, "negative", "cannot be given together with `positive`")
    binary = len(classes.names) <= 2 or any(x is not None for x in (positive, negative, positive_class))
    if len(classes.names) == 1 and not classes.sigmoid and positive is None and negative is None:
        hint = "name the label that is positive, if the output is its log-odds."
        raise fail(OptionError, "positive", "is needed for a model with one output: it may be a regression", hint=hint)
    if classes.sigmoid and len(classes.names) > 1 and not binary:
        hint = "name the label that is positive, and `positive_class` where the model calls it otherwise."
        raise fail(OptionError, "positive", "is needed for a model that judges each class by itself", hint=hint)
    if not binary:
        return Outcomes(_numbers(rows, classes), None)
    column = _column(classes, positive, positive_class)
    if positive is None and negative is None:
        return Outcomes((_numbers(rows, classes) == column).astype(np.int64), column)
    argument, named_label = ("positive", positive) if negative is None else ("negative", negative)
    words = [canonical(label) for label in rows.labels]
    if canonical(named_label) not in words:
        known_labels = ", ".join(map(repr, sorted(set(words))[:10]))
        raise fail(
            LabelError, argument, "must be a label of the data", got=show(named_label), hint=f"they are {known_labels}."
        )
    is_label = np.array([word == canonical(named_label) for word in words])
    return Outcomes((is_label if negative is None else ~is_label).astype(np.int64), column)


def _column(classes: Classes, positive: Any, positive_class: Any) -> int:
    """Find the class of the model that is positive; by default number 1."""
    if len(classes.names) == 1:
        return 1  # its only logit speaks of it, whatever its name
    label = positive if positive_class is None else positive_class
    if label is None and len(classes.names) == 2:
        return 1
    number = None if label is None else classes.number(label)
    if number is None:
        raise fail(
            LabelError, "positive_class", "must be a class of the model, by name or by number", got=show(label),
            hint=f"they are {_listed(classes.names)}.",
        )  # fmt: skip
    return number


def _numbers(rows: LabelledRows, classes: Classes) -> AnyArray:
    """Return the class of each row."""
    if rows.numbers is not None and classes.generic and max(rows.numbers) < max(len(classes.names), 2):
        return np.array(rows.numbers, dtype=np.int64)
    number_of = {word: classes.number(word) for word in {canonical(label) for label in rows.labels}}
    numbers = [number_of[canonical(label)] for label in rows.labels]
    unknown = [k for k, number in enumerate(numbers) if number is None]
    if unknown:
        raise fail(
            LabelError, "label_column", "must hold classes of the model, by name or by number",
            got=show(rows.labels[unknown[0]]), place=f"row {unknown[0]}", count=(len(unknown), rows.n),
            hint=f"they are {_listed(classes.names)}; or name the `positive` label and its `positive_class`.",
        )  # fmt: skip
    return np.array(numbers, dtype=np.int64)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name!r} ({k})" for k, name in enumerate(names[:10]))
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown


def log_odds(logits: FloatArray, column: int, classes: Classes) -> FloatArray:
    """Return the log-odds of one class; no probability is formed, so nothing saturates."""
    if logits.shape[1] == 1:
        return logits[:, 0]
    if classes.sigmoid:
        return logits[:, column]
    other_logits = np.delete(logits, column, axis=1)
    log_rest: FloatArray = other_logits[:, 0] if other_logits.shape[1] == 1 else special.logsumexp(other_logits, axis=1)
    return logits[:, column] - log_rest


class Pretrained(ABC):
    """A model that is read in two steps: its configuration at once, its weights when they are needed."""

    def __init__(self, model: str | os.PathLike[str], revision: str | None, device: str | None) -> None:
        self.name = os.fspath(model)
        self.path = local_path(model, "model")
        if self.path is not None and not self.path.is_dir():
            raise FileError(f"`model` must be a folder that `save_pretrained` wrote; {self.name!r} is a file.")
        self._transformers = load_library("transformers", "running a pretrained model")
        self._torch = load_library("torch", "running a pretrained model")
        self.device = self._chosen(device)
        self._source = str(self.path or self.name)
        # Code that comes with a model is never run; a local folder asks nobody.
        self._load_options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": self.path is not None}
        if self.path is None:
            self._load_options["revision"] = revision or "main"
        with self._reading():
            self.config = self._transformers.AutoConfig.from_pretrained(self._source, **self._load_options)
        if self.path is None:  # weights and tokenizer come from the same commit, whatever is uploaded meanwhile
            self._load_options["revision"] = (
                getattr(self.config, "_commit_hash", None) or self._load_options["revision"]
            )
        self._network: Any = None

    def _chosen(self, device: str | None) -> Any:
        if device is None:
            device = "cuda" if self._torch.cuda.is_available() else "cpu"
        try:
            chosen = self._torch.device(device)
            self._torch.empty(0, device=chosen)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            hint = "use 'cpu', or one that torch finds: 'cuda', 'cuda:1', 'mps'."
            raise fail(
                OptionError, "device", "must be a device of this machine", got=show(device), hint=hint
            ) from error
        return chosen

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Name the model in errors, and show no progress bar but our own."""
        bars = self._transformers.utils.logging
        shown = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()
        try:
            with hub_errors(self.name, "model", local=self.path is not None):
                yield
        finally:
            if shown:
                bars.enable_progress_bar()

    @abstractmethod
    def kind_of_run(self) -> dict[str, Any]:
        """Return the settings of this kind of model that fix the logits."""

    def identity(self) -> dict[str, Any]:
        """Return all that fixes the logits, except the inputs."""
        identity: dict[str, Any] = {
            **self.kind_of_run(),
            "device": self.device.type,
            "torch": str(self._torch.__version__),
            "transformers": str(self._transformers.__version__),
        }
        if self.path is None:
            return {**identity, "model": self.name, "revision": self._load_options["revision"]}
        return {**identity, "files": _digest(self.path)}

    def _tokenizer(self) -> Any:
        with self._reading():
            return self._transformers.AutoTokenizer.from_pretrained(self._source, **self._load_options)

    def _longest(self, tokenizer: Any, otherwise: int) -> int:
        """Return how many tokens the model takes; ``otherwise`` where its tokenizer does not know."""
        says = tokenizer.model_max_length  # a huge number where it does not know
        positions = getattr(self.config, "max_position_embeddings", None) or -1  # relative ones have no end
        return min(says if says < 1_000_000 else otherwise, positions if positions > 0 else says)


@final
class PretrainedModel(Pretrained):
    """A classifier of texts or images."""

    def __init__(
        self, model: str | os.PathLike[str], kind: str, revision: str | None, device: str | None, max_length: int | None
    ) -> None:
        super().__init__(model, revision, device)
        self.kind, self.max_length = kind, max_length
        self.classes = self._classes()
        self._prepare: Any = None

    def kind_of_run(self) -> dict[str, Any]:
        return {"kind": self.kind, "max_length": self.max_length}

    def _classes(self) -> Classes:
        kind = getattr(self.config, "problem_type", None)
        names = tuple(str(self.config.id2label[k]) for k in sorted(self.config.id2label))
        if kind == "regression":
            raise FileError(f"the model {self.name!r} is a regression; a classifier is needed.")
        return Classes(names, kind == "multi_label_classification")

    def logits(self, inputs: list[Any]) -> FloatArray:
        """Return the logits of some inputs, one row each, as float64."""
        if self._network is None:
            self._load()
        # On a GPU, convolutions would be rounded to 10 bits and might differ from run to run.
        exact = self._torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
        with self._torch.inference_mode(), exact:
            ready = {key: value.to(self.device) for key, value in self._prepare(inputs).items()}
            logits = self._network(**ready).logits
        return np.asarray(logits.double().cpu().numpy(), dtype=np.float64).reshape(len(inputs), -1)

    def _load(self) -> None:
        t = self._transformers
        task = t.AutoModelForSequenceClassification if self.kind == "text" else t.AutoModelForImageClassification
        with self._reading():
            network, info = task.from_pretrained(
                self._source, config=self.config, output_loading_info=True, **self._load_options
            )
            self._prepare = self._tokens() if self.kind == "text" else self._pixels()
        missing = sorted(info["missing_keys"])
        if missing:
            raise FileError(
                f"the model {self.name!r} has no weights for {', '.join(missing[:3])}: it is no classifier yet.\n\n"
                "Hint: name a model that was fine-tuned for this task."
            )
        self._network = network.float().to(self.device).eval()

    def _tokens(self) -> Any:
        tokenizer = self._tokenizer()
        longest = self.max_length or self._longest(tokenizer, _LONGEST)

        def prepare(texts: list[str]) -> Any:
            return tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")

        return prepare

    def _pixels(self) -> Any:
        # Pillow resizes the same way everywhere; torchvision need not be installed.
        load_library("PIL.Image", "reading images")
        processor = self._transformers.AutoImageProcessor.from_pretrained(
            self._source, backend="pil", **self._load_options
        )
        return lambda images: processor(images=images, return_tensors="pt")


@final
class CausalModel(Pretrained):
    """A model of the next token."""

    def __init__(self, model: str | os.PathLike[str], revision: str | None, device: str | None) -> None:
        super().__init__(model, revision, device)
        self.torch = self._torch
        self.tokenizer = self._tokenizer()
        self.window = min(self._longest(self.tokenizer, _WINDOW), _WINDOW)
        self.classes = int(self.config.get_text_config().vocab_size)
        self.special = frozenset(map(int, self.tokenizer.all_special_ids))
        self._head: Any = None

    def kind_of_run(self) -> dict[str, Any]:
        return {"kind": "language model"}

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, with those that the tokenizer puts around it."""
        return list(map(int, self.tokenizer(text, verbose=False)["input_ids"]))

    def piece(self, token: int) -> str:
        """Return the text of one token."""
        raw = self.tokenizer.convert_ids_to_tokens(token)
        if isinstance(raw, str) and "\u2581" in raw:  # how SentencePiece writes a space, which decoding would drop
            return raw.replace("\u2581", " ")
        return str(self.tokenizer.decode([token]))

    def states(self, tokens: Any, seen: Any) -> tuple[Any, Any]:
        """Return the states before the last layer, and that layer; or the logits and None, where more follows it."""
        if self._network is None:
            self._load()
        if self._head is None:
            return self._network(input_ids=tokens, attention_mask=seen, use_cache=False).logits, None
        outputs = self._network.base_model(input_ids=tokens, attention_mask=seen, use_cache=False)
        return outputs.last_hidden_state, self._head

    def _load(self) -> None:
        dtype = self._torch.bfloat16 if self.device.type == "cuda" else self._torch.float32
        with self._reading():
            network = self._transformers.AutoModelForCausalLM.from_pretrained(
                self._source, config=self.config, dtype=dtype, **self._load_options
            )
        self._network = network.to(self.device).eval()
        self._head = self._plain_head()

    def _plain_head(self) -> Any:
        """Return the last layer, where applying it to the states gives the logits to the last digit; else None.

        Some models scale or bend their logits after it.
        """
        head = self._network.get_output_embeddings()
        if not isinstance(head, self._torch.nn.Linear) or self._network.base_model is self._network:
            return None
        tokens = self._torch.arange(8, device=self.device)[None] % self.classes
        with self._torch.inference_mode():
            expected = self._network(input_ids=tokens, use_cache=False).logits
            logits = head(self._network.base_model(input_ids=tokens, use_cache=False).last_hidden_state)
        return head if self._torch.equal(logits, expected.to(logits.dtype)) else None


def _digest(folder: Path) -> str:
    """Return a fingerprint of the files of a model."""
    digest = hashlib.sha256()
    for file in sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith(".")):
        with open(file, "rb") as opened:
            inner = hashlib.file_digest(opened, "sha256").hexdigest()
        digest.update(f"{file.name}\0{inner}\n".encode())
    return digest.hexdigest()
