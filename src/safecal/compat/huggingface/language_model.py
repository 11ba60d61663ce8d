"""Run a causal language model over texts that people wrote, and evaluate what it said of each next token."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack, final

import numpy as np

from ..._checks import fail, show
from ..._checks.columns import spelled, whole_number
from ..._sums import Tally
from ..._sums.splits import Plan
from ..._types import AnyArray, FloatArray, IndexArray
from ...engines.torch import ScoredRows
from ...engines.torch.rows import hidden_columns
from ...engines.torch.tensors import COLUMNS, on_cuda, score_columns, widen
from ...errors import EmptyError, FileError, MissingValueError, OptionError, UnavailableError
from ...inputs.tokens import position_groups
from ...judge.evaluation import Evaluation
from ...options import LimitOptions, Limits
from ...report.page import MarkedText
from .data import resume
from .model import CausalModel

__all__ = ["LanguageModelRun", "run_language_model"]

_EXCERPT = 120  # tokens of a text that are shown around its worst place
_KINDS = ("special token", "space", "number", "punctuation", "start of a word", "rest of a word")


class _Pieces(dict[int, str]):
    """The text of each token, looked up when it is asked for."""

    def __init__(self, piece: Callable[[int], str]) -> None:
        super().__init__()
        self._piece = piece

    def __missing__(self, token: int) -> str:
        return self.setdefault(token, self._piece(token))


class _Window(NamedTuple):
    """Tokens that the model sees at once, of which those from ``first`` on are scored."""

    document: int
    begin: int
    end: int
    first: int


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LanguageModelRun:
    """What a language model said of each token of some texts; no logits are kept.

    Attributes
    ----------
    model : str
        Name on the hub, or path.
    columns : ndarray of shape (31, n)
        What an evaluation needs of each token.
    tokens, position, document : ndarray of shape (n,)
        The token that came, its place in its text, and the number of that text.
    pieces : mapping of int to str
        The text of each token.
    special : frozenset of int
        Tokens that are not text.
    fields : sequence of mapping
        What is known of each text.
    classes : int
        Size of the vocabulary.
    resumed : int
        Tokens that an earlier run had left in the cache.
    """

    model: str
    columns: FloatArray
    tokens: IndexArray
    position: IndexArray
    document: IndexArray
    pieces: Mapping[int, str]
    special: frozenset[int]
    fields: Sequence[Mapping[str, Any]]
    classes: int
    resumed: int

    def __repr__(self) -> str:
        return f"LanguageModelRun({self.model!r}, {len(self.tokens)} tokens of {len(self.fields)} texts)"

    @property
    def excess(self) -> FloatArray:
        """How much more surprised than announced the model was by each token, in nats."""
        return np.asarray(self.columns[COLUMNS.index("excess")])

    def group(self, by: str) -> AnyArray:
        """Return the group of each token.

        Parameters
        ----------
        by : str
            ``"position"`` in the text, ``"kind"`` of the token, or a field of the texts.

        Returns
        -------
        ndarray of shape (n,)
            Their names.
        """
        if by == "position":
            return position_groups(self.position)
        if by == "kind":
            distinct, index = np.unique(self.tokens, return_inverse=True)
            return np.array([self._kind(int(token)) for token in distinct])[index]
        missing = [k for k, fields in enumerate(self.fields) if by not in fields]
        if missing:
            hint = "use `position`, `kind`, or a field that every text has."
            place_of = f"text {missing[0]}"
            raise fail(OptionError, "by", "must be a field of every text", got=show(by), place=place_of, hint=hint)
        return np.array([str(fields[by]) for fields in self.fields])[self.document]

    def _kind(self, token: int) -> str:
        piece = self.pieces[token]
        bare = piece.strip()
        if token in self.special:
            return _KINDS[0]
        if not bare:
            return _KINDS[1]
        if any(c.isdigit() for c in bare):
            return _KINDS[2]
        if not any(c.isalpha() for c in bare):
            return _KINDS[3]
        return _KINDS[4] if piece[0].isspace() or bare[0].isupper() else _KINDS[5]

    @spelled(LimitOptions)
    def evaluate(
        self, *, by: str | Sequence[str] | None = None, bins: int | None = 10, **limits: Unpack[LimitOptions]
    ) -> Evaluation:
        """Evaluate the model. The tokens of a text depend on each other: each text is a cluster.

        Parameters
        ----------
        by : str or sequence of str, optional
            Evaluate each group by itself, too: ``"position"``, ``"kind"``, or fields of the texts.
        bins : int or None, default 10
            The bins of the table.
        **limits
            ``threshold``, ``max_temperature``, ``level`` and the other limits of `safecal.evaluate`.

        Returns
        -------
        Evaluation
            Print it for the verdict and the table.
        """
        if len(np.unique(self.document)) < 2:
            hint = "give many texts, one a line of a JSON Lines file; the tokens of one text depend on each other."
            raise fail(EmptyError, "texts", "must be two or more for a verdict", got="1", hint=hint)
        rows = ScoredRows(self.columns, self.classes)
        names = [by] if isinstance(by, str) else list(by or ())
        groups: Any = {name: self.group(name) for name in names} or None
        tally = Tally.of(rows, Plan.of(rows, bins), by=groups, cluster=self.document)
        return Evaluation.of(tally, Limits(**limits))

    def marked(self, most: int = 5) -> list[MarkedText]:
        """Return the places where the model was surprised the most beyond what it had announced, the worst first.

        Parameters
        ----------
        most : int, default 5
            How many; each is of another text.

        Returns
        -------
        list of MarkedText
            Some tokens around each place, with their excess. A report shows them.
        """
        excess = self.excess
        marked: list[MarkedText] = []
        worst_first = self.document[np.argsort(-excess, kind="stable")].tolist()
        for number in list(dict.fromkeys(worst_first))[:most]:
            places = np.flatnonzero(self.document == number)
            worst = int(np.argmax(excess[places]))
            shown = places[max(0, worst - _EXCERPT // 2) : worst + _EXCERPT // 2]
            tokens = tuple((self.pieces[int(self.tokens[k])], float(excess[k])) for k in shown)
            marked.append(MarkedText(f"text {number + 1}, from token {int(self.position[shown[0]]) + 1}", tokens))
        return marked


@spelled()
def run_language_model(
    model: str | os.PathLike[str],
    texts: str | os.PathLike[str] | Sequence[str] | Sequence[Mapping[str, Any]],
    *,
    text: Literal["given", "generated"],
    column: str = "text",
    window: int | None = None,
    stride: int | None = None,
    batch_size: int = 4,
    revision: str | None = None,
    device: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LanguageModelRun:
    """Run a causal language model over texts, and score each token given those before it.

    Logits are scored as they are made, and never stored. Code that comes with a model is never run. On a GPU the
    weights are used in bfloat16, elsewhere in float32. The first token of a text is not scored: nothing comes before.

    Parameters
    ----------
    model : str or os.PathLike
        Name on the Hugging Face hub, or a folder that ``save_pretrained`` wrote.
    texts : str, os.PathLike, sequence of str, or sequence of mapping
        A JSON Lines file with one text a line, a text file, or the texts themselves.
    text : {"given", "generated"}
        Whose text it is. Only text that people wrote, or that was held out, can show over-confidence.
    column : str, default "text"
        The field that holds the text.
    window : int, optional
        Tokens that the model sees at once; by default as many as it was made for, up to 2048.
    stride : int, optional
        How far the window moves over a longer text; by default half of it. Each token is scored once.
    batch_size : int, default 4
        Windows at a time.
    revision : str, optional
        Branch, tag or commit on the hub.
    device : str, optional
        Of torch; by default a GPU where there is one.
    cache : str or os.PathLike, optional
        A folder. A run that was interrupted, in whatever way, then goes on after its last batch.
    progress : callable, optional
        Called with the tokens done and all tokens.

    Returns
    -------
    LanguageModelRun
        Call ``.evaluate()`` on it.

    Examples
    --------
    >>> from safecal.compat.huggingface import run_language_model
    >>> run = run_language_model("my-model", "corpus.jsonl", text="given", cache="scores")  # doctest: +SKIP
    >>> run.evaluate(by="position").verdict.decision  # doctest: +SKIP
    'UNSAFE'
    """
    if text not in ("given", "generated"):
        raise fail(OptionError, "text", 'must be "given" or "generated"', got=show(text))
    if text == "generated":
        raise UnavailableError(
            "a model is calibrated on its own samples by construction, and greedy text looks under-confident. "
            "So its own text cannot show whether it is over-confident.\n\n"
            'Hint: score text that people wrote and that the model was not trained on, and say `text="given"`.'
        )
    whole_number(batch_size, "batch_size", 1)
    documents, fields = _read(texts, column)
    network = CausalModel(model, revision, device)
    size = whole_number(window, "window", 2) if window is not None else network.window
    step = whole_number(stride, "stride", 1) if stride is not None else max(1, size // 2)
    if step > size - 1:
        raise fail(OptionError, "stride", "must be smaller than the window", got=show(step))
    ids = [network.encode(document) for document in documents]
    windows = [piece for number, tokens in enumerate(ids) for piece in _windows(number, len(tokens), size, step)]
    total = sum(piece.end - piece.first for piece in windows)
    if total == 0:
        raise fail(EmptyError, "texts", "must hold a text of two or more tokens", got="none")
    report = progress or (lambda done, total: None)

    def score(number: int) -> FloatArray:
        return _scored(network, ids, windows[number * batch_size : (number + 1) * batch_size])

    def settings() -> dict[str, Any]:
        digest = hashlib.sha256(json.dumps([size, step, batch_size, *ids]).encode()).hexdigest()
        return {**network.identity(), "tokens": digest}

    run = resume(cache, settings, -(-len(windows) // batch_size), score, lambda done: report(done, total))
    rows = run.rows
    tokens, position, document = (rows[:, k].astype(np.intp) for k in range(3))
    columns = np.ascontiguousarray(rows[:, 3:].T)
    pieces = _Pieces(network.piece)
    return LanguageModelRun(
        network.name, columns, tokens, position, document, pieces, network.special, fields, network.classes, run.resumed
    )


def _read(texts: Any, column: str) -> tuple[list[str], list[Mapping[str, Any]]]:
    """Return the texts, and what is known of each."""
    if isinstance(texts, str | os.PathLike):
        path = Path(texts)
        try:
            content = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise FileError(f"`texts` must be text in UTF-8; {str(path)!r} is not.") from error
        except OSError as error:
            raise FileError(f"`texts` could not be read: {error}.") from error
        if path.suffix not in (".jsonl", ".ndjson"):
            return [content], [{}]
        texts = list(_lines(content, str(path)))
    documents: list[str] = []
    fields: list[Mapping[str, Any]] = []
    for k, entry in enumerate(texts):
        value = entry.get(column) if isinstance(entry, Mapping) else entry
        if not isinstance(value, str):
            hint = "name the field that holds the text: `column=`." if isinstance(entry, Mapping) else None
            rule = "must have a text in every row"
            raise fail(MissingValueError, "texts", rule, got=show(value), place=f"row {k}", hint=hint)
        documents.append(value)
        fields.append({name: x for name, x in entry.items() if name != column} if isinstance(entry, Mapping) else {})
    if not documents:
        raise fail(EmptyError, "texts", "must hold at least one text", got="none")
    return documents, fields


def _lines(content: str, name: str) -> Iterator[Any]:
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except ValueError as error:
            raise FileError(f"line {number} of {name!r} is not JSON: {error}.") from error


def _windows(document: int, length: int, size: int, stride: int) -> Iterator[_Window]:
    """Cut a text into windows so that each token but the first is scored once, after as many earlier tokens as fit."""
    begin, scored = 0, 1
    while scored < length:
        end = min(begin + size, length)
        yield _Window(document, begin, end, scored)
        scored = end
        begin += stride


def _scored(network: CausalModel, ids: Sequence[Sequence[int]], windows: Sequence[_Window]) -> FloatArray:
    """Score some windows: a row for each token, with the token, its position, its text, and the columns."""
    torch = network.torch
    longest = max(window.end - window.begin for window in windows)
    tokens = torch.zeros((len(windows), longest), dtype=torch.long)
    seen, scored = torch.zeros_like(tokens), torch.zeros_like(tokens, dtype=torch.bool)
    for k, window in enumerate(windows):
        size = window.end - window.begin
        tokens[k, :size] = torch.tensor(ids[window.document][window.begin : window.end])
        seen[k, :size] = 1
        scored[k, window.first - window.begin : size] = True
    is_scored, targets = scored[:, 1:], tokens[:, 1:]
    y = targets[is_scored].to(network.device)
    with torch.inference_mode():
        hidden, head = network.states(tokens.to(network.device), seen.to(network.device))
        rows = hidden[:, :-1][is_scored.to(network.device)]
        if head is not None:
            columns = hidden_columns(y, rows, head.weight, head.bias)
        else:
            columns = score_columns(y, rows if on_cuda(rows) else widen(rows), None, None, 2)
    where = torch.nonzero(is_scored)
    begin = torch.tensor([window.begin for window in windows])[where[:, 0]]
    document = torch.tensor([window.document for window in windows])[where[:, 0]]
    place = torch.stack([y.cpu(), where[:, 1] + 1 + begin, document]).double()
    return np.asarray(torch.cat([place, columns.double().cpu()]).T.numpy())
