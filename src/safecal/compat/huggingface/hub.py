"""Names that lead to the Hugging Face hub or to this machine, and what to say when they lead nowhere."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import FileError, UnreachableError

__all__ = ["UnreachableError", "local_path", "reaching"]

_SUFFIXES = {".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson"}
_GATED = ("gatedrepoerror", "access a gated repo", "is a gated dataset")


def local_path(name: str | os.PathLike[str], what: str) -> Path | None:
    """Return the path of something on this machine, None for a name on the hub; refuse a path that leads nowhere."""
    text = os.fspath(name)
    path = Path(text).expanduser()
    if path.exists():
        return path
    meant = isinstance(name, os.PathLike) or text.startswith((".", "~", os.sep)) or "\\" in text
    if meant or text.count("/") > 1 or path.suffix.lower() in _SUFFIXES or not text:
        raise FileError(
            f"`{what}` must be a name on the Hugging Face hub, or a path that exists; got {text!r}.\n\n"
            f"Hint: relative paths start in the current folder, {os.getcwd()!r}."
        )
    return None


@contextmanager
def reaching(name: str, what: str, *, local: bool) -> Iterator[None]:
    """Turn what Transformers and Datasets say of a model or a data set that cannot be had into one clear error.

    Parameters
    ----------
    name : str
        Name on the hub, or path.
    what : {"model", "data"}
        The argument.
    local : bool
        Whether it lies on this machine.
    """
    try:
        yield
    except FileError:
        raise
    except (OSError, ValueError, ImportError) as error:  # those of the hub are among them, and differ by version
        if "trust_remote_code" in str(error):
            raise FileError(
                f"the {what} {name!r} brings code of its own, which safecal does not run.\n\n"
                f"Hint: read that code, save the predictions it makes, and give them to `safecal.evaluate`."
            ) from error
        if local:
            raise FileError(f"the {what} in {name!r} cannot be read: {_first_line(error)}.") from error
        if isinstance(error, ValueError | ImportError) and not _from_hub(error):
            raise FileError(f"the {what} {name!r} cannot be used: {_first_line(error)}.") from error
        raise UnreachableError(_unreachable(name, what, error)) from error


def _from_hub(error: BaseException) -> bool:
    return type(error).__module__.startswith("huggingface_hub")


def _unreachable(name: str, what: str, error: BaseException) -> str:
    chain: list[str] = []
    at: BaseException | None = error
    while at is not None and len(chain) < 5:
        chain.append(f"{type(at).__name__} {at}".lower())
        at = at.__cause__ or at.__context__
    kind = {"model": "model", "data": "data set"}[what]
    page = f"https://huggingface.co/{'datasets/' if what == 'data' else ''}{name}"
    copy = f"hf download {name} {'--repo-type dataset ' if what == 'data' else ''}--local-dir copy"
    here = (
        "a folder that `save_pretrained` wrote" if what == "model" else "a CSV or Parquet file, or a folder of images"
    )
    if any(word in text for text in chain for word in _GATED):
        return (
            f"the {kind} {name!r} is gated on the Hugging Face hub, and this machine is not let in.\n\n"
            f"Hint: accept the conditions at {page}, then `hf auth login`; or pass {here} as `{what}`."
        )
    return (
        f"the {kind} {name!r} could not be fetched from the Hugging Face hub: {_first_line(error)}.\n\n"
        f"Hint: pass a local copy as `{what}`, {here}. Where the hub can be reached: `{copy}`."
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".") or type(error).__name__
