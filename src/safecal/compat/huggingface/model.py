"""What lies on the hub, or in a folder: whether it can be had; and a model, its classes, and its logits."""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from ..._checks import fail, show
from ..._optional import require
from ..._types import FloatArray
from ...errors import FileError, OptionError, UnreachableError
from ...inputs.sources import first_line

__all__ = ["CausalModel", "Classes", "PretrainedModel", "canonical", "hub_errors", "load_library", "local_path"]

_LONGEST = 512  # tokens, where neither the tokenizer nor the model says less
_WINDOW = 2048  # the same, of a language model
_LIBRARIES = {
    "transformers": "Transformers",
    "torch": "PyTorch",
    "datasets": "Datasets",
    "polars": "Polars",
    "PIL.Image": "Pillow",
}
_SUFFIXES = {".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson"}
_GATED = ("gatedrepoerror", "access a gated repo", "is a gated dataset")


def load_library(module: str, purpose: str) -> Any:
    """Import a library, or say what it is needed for and what to install."""
    return require(module, f"{purpose} needs {_LIBRARIES[module]}", "huggingface")


def local_path(name: str | os.PathLike[str], argument: str) -> Path | None:
    """Return the path of something on this machine, None for a name on the hub; refuse a path that leads nowhere."""
    text = os.fspath(name)
    path = Path(text).expanduser()
    if path.exists():
        return path
    meant = isinstance(name, os.PathLike) or text.startswith((".", "~", os.sep)) or "\\" in text
    if meant or text.count("/") > 1 or path.suffix.lower() in _SUFFIXES or not text:
        raise FileError(
            f"`{argument}` must be a name on the Hugging Face hub, or a path that exists; got {text!r}.\n\n"
            f"Hint: relative paths start in the current folder, {os.getcwd()!r}."
        )
    return None


@contextmanager
def hub_errors(name: str, argument: str, *, local: bool) -> Iterator[None]:
    """Turn the errors of Transformers and Datasets about a ``"model"`` or ``"data"`` into one clear error."""
    try:
        yield
    except FileError:
        raise
    except (OSError, ValueError, ImportError) as error:  # those of the hub are among them, and differ by version
        if "trust_remote_code" in str(error):
            raise FileError(
                f"the {argument} {name!r} brings code of its own, which safecal does not run.\n\n"
                f"Hint: read that code, save the predictions it makes, and give them to `safecal.evaluate`."
            ) from error
        if local:
            raise FileError(f"the {argument} in {name!r} cannot be read: {first_line(error)}.") from error
        of_the_hub = type(error).__module__.startswith("huggingface_hub")
        if isinstance(error, ValueError | ImportError) and not of_the_hub:
            raise FileError(f"the {argument} {name!r} cannot be used: {first_line(error)}.") from error
        raise UnreachableError(_unreachable(name, argument, error)) from error


def _unreachable(name: str, argument: str, error: BaseException) -> str:
    chain: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(chain) < 5:
        chain.append(f"{type(cause).__name__} {cause}".lower())
        cause = cause.__cause__ or cause.__context__
    kind, page, option, local_copy = "model", name, "", "a folder that `save_pretrained` wrote"
    if argument == "data":
        kind, page, option = "data set", f"datasets/{name}", "--repo-type dataset "
        local_copy = "a CSV or Parquet file, or a folder of images"
    if any(word in text for text in chain for word in _GATED):
        return (
            f"the {kind} {name!r} is gated on the Hugging Face hub, and this machine has no access to it.\n\n"
            f"Hint: accept the conditions at https://huggingface.co/{page}, then `hf auth login`; or pass {local_copy} "
            f"as `{argument}`."
        )
    return (
        f"the {kind} {name!r} could not be fetched from the Hugging Face hub: {first_line(error)}.\n\n"
        f"Hint: pass a local copy as `{argument}`, {local_copy}. Where the hub can be reached: `hf download {name} "
        f"{option}--local-dir copy`."
    )


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


def canonical(label: Any) -> str:
    """Return a label as a word: ``True``, ``1``, ``1.0`` and ``"true"`` are one, capitals do not matter."""
    if isinstance(label, bool | np.bool_):
        return str(int(label))
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    word = str(label).strip().casefold()
    return {"true": "1", "false": "0"}.get(word, word)


class Pretrained(ABC):
    """A model that is read in two steps: its configuration at once, its weights when they are needed."""

    def __init__(
        self, model: str | os.PathLike[str], revision: str | None, device: str | None, settings: dict[str, Any]
    ) -> None:
        self._settings = settings  # of this kind of model, as far as they fix the logits
        self.name = os.fspath(model)
        self.path = local_path(model, "model")
        if self.path is not None and not self.path.is_dir():
            raise FileError(f"`model` must be a folder that `save_pretrained` wrote; {self.name!r} is a file.")
        self._transformers = load_library("transformers", "running a pretrained model")
        self.torch = load_library("torch", "running a pretrained model")
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
            device = "cuda" if self.torch.cuda.is_available() else "cpu"
        try:
            chosen = self.torch.device(device)
            self.torch.empty(0, device=chosen)
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
    def _load(self) -> None:
        """Read the weights."""

    def identity(self) -> dict[str, Any]:
        """Return all that fixes the logits, except the inputs."""
        identity: dict[str, Any] = {
            **self._settings,
            "device": self.device.type,
            "torch": str(self.torch.__version__),
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
        super().__init__(model, revision, device, {"kind": kind, "max_length": max_length})
        self.kind, self.max_length = kind, max_length
        self.classes = self._classes()
        self._prepare: Any = None

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
        exact = self.torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
        with self.torch.inference_mode(), exact:
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
                f"the model {self.name!r} has no weights for {', '.join(missing[:3])}: it is not a classifier yet.\n\n"
                "Hint: name a model that was fine-tuned for this task."
            )
        self._network = network.float().to(self.device).eval()

    def _tokens(self) -> Any:
        tokenizer = self._tokenizer()
        longest = self.max_length or self._longest(tokenizer, _LONGEST)
        return partial(tokenizer, padding=True, truncation=True, max_length=longest, return_tensors="pt")

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
        super().__init__(model, revision, device, {"kind": "language model"})
        self.tokenizer = self._tokenizer()
        self.window = min(self._longest(self.tokenizer, _WINDOW), _WINDOW)
        self.classes = int(self.config.get_text_config().vocab_size)
        self.special = frozenset(map(int, self.tokenizer.all_special_ids))
        self._head: Any = None

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
        dtype = self.torch.bfloat16 if self.device.type == "cuda" else self.torch.float32
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
        if not isinstance(head, self.torch.nn.Linear) or self._network.base_model is self._network:
            return None
        tokens = self.torch.arange(8, device=self.device)[None] % self.classes
        with self.torch.inference_mode():
            expected = self._network(input_ids=tokens, use_cache=False).logits
            logits = head(self._network.base_model(input_ids=tokens, use_cache=False).last_hidden_state)
        return head if self.torch.equal(logits, expected.to(logits.dtype)) else None


def _digest(folder: Path) -> str:
    """Return a fingerprint of the files of a model."""
    digest = hashlib.sha256()
    for file in sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith(".")):
        with open(file, "rb") as opened:
            inner = hashlib.file_digest(opened, "sha256").hexdigest()
        digest.update(f"{file.name}\0{inner}\n".encode())
    return digest.hexdigest()
