"""A pretrained model: where it is, what its classes are, and its logits for some inputs."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import numpy as np

from ..._checks.message import fail, show
from ..._types import FloatArray
from ...errors import FileError, OptionError
from .hub import local_path, reaching
from .labels import Classes
from .libraries import library

__all__ = ["PretrainedModel"]

_LONGEST = 512  # tokens, where neither the tokenizer nor the model says less


@final
class PretrainedModel:
    """A model that is read in two steps: its configuration at once, its weights when they are needed."""

    def __init__(
        self, model: str | os.PathLike[str], kind: str, revision: str | None, device: str | None, max_length: int | None
    ) -> None:
        self.name, self.kind, self.max_length = os.fspath(model), kind, max_length
        self.path = local_path(model, "model")
        if self.path is not None and not self.path.is_dir():
            raise FileError(f"`model` must be a folder that `save_pretrained` wrote; {self.name!r} is a file.")
        self._transformers = library("transformers", "running a pretrained model")
        self._torch = library("torch", "running a pretrained model")
        self.device = self._chosen(device)
        self._place = str(self.path or self.name)
        # Code that comes with a model is never run; a local folder asks nobody.
        self._how: dict[str, Any] = {"trust_remote_code": False, "local_files_only": self.path is not None}
        if self.path is None:
            self._how["revision"] = revision or "main"
        with self._reading():
            self.config = self._transformers.AutoConfig.from_pretrained(self._place, **self._how)
        if self.path is None:  # weights and tokenizer come from the same commit, whatever is uploaded meanwhile
            self._how["revision"] = getattr(self.config, "_commit_hash", None) or self._how["revision"]
        self.classes = self._classes()
        self._network: Any = None
        self._prepare: Any = None

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

    def _classes(self) -> Classes:
        kind = getattr(self.config, "problem_type", None)
        names = tuple(str(self.config.id2label[k]) for k in sorted(self.config.id2label))
        if kind == "regression":
            raise FileError(f"the model {self.name!r} is a regression; a classifier is needed.")
        return Classes(names, kind == "multi_label_classification")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Name the model in errors, and show no progress bar but our own."""
        bars = self._transformers.utils.logging
        shown = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()
        try:
            with reaching(self.name, "model", local=self.path is not None):
                yield
        finally:
            if shown:
                bars.enable_progress_bar()

    def identity(self) -> dict[str, Any]:
        """Return what fixes the logits, but for the inputs."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "max_length": self.max_length,
            "device": self.device.type,
            "torch": str(self._torch.__version__),
            "transformers": str(self._transformers.__version__),
        }
        if self.path is None:
            return {**found, "model": self.name, "revision": self._how["revision"]}
        return {**found, "files": _digest(self.path)}

    def logits(self, inputs: list[Any]) -> FloatArray:
        """Return the logits of some inputs, one row each, as float64."""
        if self._network is None:
            self._load()
        # On a GPU, convolutions would be rounded to 10 bits and might differ from run to run.
        exact = self._torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
        with self._torch.inference_mode(), exact:
            ready = {key: value.to(self.device) for key, value in self._prepare(inputs).items()}
            found = self._network(**ready).logits
        return np.asarray(found.double().cpu().numpy(), dtype=np.float64).reshape(len(inputs), -1)

    def _load(self) -> None:
        t = self._transformers
        task = t.AutoModelForSequenceClassification if self.kind == "text" else t.AutoModelForImageClassification
        with self._reading():
            network, info = task.from_pretrained(self._place, config=self.config, output_loading_info=True, **self._how)
            self._prepare = self._tokens() if self.kind == "text" else self._pixels()
        missing = sorted(info["missing_keys"])
        if missing:
            raise FileError(
                f"the model {self.name!r} has no weights for {', '.join(missing[:3])}: it is no classifier yet.\n\n"
                "Hint: name a model that was fine-tuned for this task."
            )
        self._network = network.float().to(self.device).eval()

    def _tokens(self) -> Any:
        tokenizer = self._transformers.AutoTokenizer.from_pretrained(self._place, **self._how)
        says = tokenizer.model_max_length  # a huge number where it does not know
        positions = getattr(self.config, "max_position_embeddings", None) or -1  # relative ones have no end
        limits = [says if says < 1_000_000 else _LONGEST, positions if positions > 0 else says]
        longest = self.max_length or min(limits)

        def prepare(texts: list[str]) -> Any:
            return tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")

        return prepare

    def _pixels(self) -> Any:
        # Pillow resizes the same way everywhere; torchvision need not be installed.
        library("PIL.Image", "reading images")
        processor = self._transformers.AutoImageProcessor.from_pretrained(self._place, backend="pil", **self._how)
        return lambda images: processor(images=images, return_tensors="pt")


def _digest(folder: Path) -> str:
    """Return a fingerprint of the files of a model."""
    found = hashlib.sha256()
    for file in sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith(".")):
        with open(file, "rb") as opened:
            inner = hashlib.file_digest(opened, "sha256").hexdigest()
        found.update(f"{file.name}\0{inner}\n".encode())
    return found.hexdigest()
