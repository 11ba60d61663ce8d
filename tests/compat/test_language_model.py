"""Language models, without a hub: tiny ones are built from their configurations, saved, and loaded from disk."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal import errors
from safecal.cli import main

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.0")
pytestmark = pytest.mark.extra

from safecal.compat.huggingface import LanguageModelRun, run_language_model  # noqa: E402

WORDS = ["<s>", "the", "a", "cat", "dog", "7", ".", "sat", "ran", "on", "mat", "<unk>"]
TEXTS = [
    {"text": "the cat sat on the mat . a dog ran . 7 cat", "source": "books"},
    {"text": "a dog ran on the mat . the cat sat", "source": "web"},
    {"text": "7 dog sat on a cat . the mat ran . the dog", "source": "web"},
] * 4


def save_model(folder: Path, kind: str, sharper: float = 1.0) -> Path:
    """Write a tiny model with random weights, and a tokenizer of a few words."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: k for k, word in enumerate(WORDS)}, unk_token="<unk>")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", unk_token="<unk>", model_max_length=64
    ).save_pretrained(folder)
    torch.manual_seed(3)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=12, n_positions=16, n_embd=16, n_layer=1, n_head=2, initializer_range=0.5
        )
        model = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(
            vocab_size=12, max_position_embeddings=16, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
            num_attention_heads=2, initializer_range=0.5,
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config)
        with torch.no_grad():
            model.lm_head.weight *= sharper
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("llama"), "llama")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in TEXTS) + "\n", encoding="utf-8")
    return path


def by_hand(folder: Path, texts: list[str]) -> safecal.Evaluation:
    """Evaluate the logits of whole texts, one after the other."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    happened, logits, cluster = [], [], []
    for k, text in enumerate(texts):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            z = model(input_ids=ids).logits[0, :-1]
        happened.append(ids[0, 1:])
        logits.append(z)
        cluster += [k] * len(z)
    return safecal.evaluate(torch.cat(happened).numpy(), logits=torch.cat(logits).double().numpy(), cluster=cluster)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_the_run_is_that_of_its_logits(kind: str, tmp_path: Path) -> None:
    folder = save_model(tmp_path / kind, kind)
    run = run_language_model(folder, TEXTS, text="given", batch_size=5)
    wanted = by_hand(folder, [one["text"] for one in TEXTS])
    evaluation = run.evaluate()
    assert evaluation.n == wanted.n
    assert evaluation.verdict.decision == wanted.verdict.decision
    np.testing.assert_allclose(
        [evaluation.ecd, evaluation.nll, evaluation.brier], [wanted.ecd, wanted.nll, wanted.brier], rtol=1e-6
    )
    np.testing.assert_allclose(evaluation.temperature.value, wanted.temperature.value, rtol=1e-5)


def test_windows_score_every_token_once(llama: Path) -> None:
    text = " ".join(["the cat sat on a mat ."] * 9)
    for window, stride in ((16, 8), (16, 15), (5, 1), (16, None)):
        run = run_language_model(llama, [text], text="given", window=window, stride=stride)
        assert run.position.tolist() == list(range(1, 63))
    with pytest.raises(errors.OptionError, match="smaller than the window"):
        run_language_model(llama, [text], text="given", window=4, stride=4)


def test_a_run_that_was_stopped_goes_on_where_it_was(llama: Path, tmp_path: Path) -> None:
    whole = run_language_model(llama, TEXTS, text="given", batch_size=2)

    def stop(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_language_model(llama, TEXTS, text="given", batch_size=2, cache=tmp_path, progress=stop)
    again = run_language_model(llama, TEXTS, text="given", batch_size=2, cache=tmp_path)
    assert 0 < again.resumed < len(again.tokens)
    np.testing.assert_array_equal(again.columns, whole.columns)
    np.testing.assert_array_equal(again.tokens, whole.tokens)


def test_groups_are_positions_kinds_and_fields(llama: Path) -> None:
    run = run_language_model(llama, TEXTS, text="given")
    assert set(run.group("position")) == {"1 to 15"}
    assert set(run.group("kind")) == {"rest of a word", "number", "punctuation"}
    evaluation = run.evaluate(by=["source", "kind"])
    assert evaluation.groups is not None
    assert ("books", "number") in evaluation.groups.keys
    with pytest.raises(errors.OptionError, match="field of every text"):
        run.evaluate(by="author")
    assert "12 texts" in repr(run)


def test_the_worst_places_come_first_and_are_escaped(llama: Path) -> None:
    run = run_language_model(llama, TEXTS[:3], text="given")
    marked = run.marked(2)
    assert [max(e for _, e in one.tokens) for one in marked] == sorted(
        (max(run.excess[run.document == k]) for k in range(3)), reverse=True
    )[:2]
    strange = LanguageModelRun(
        run.model, run.columns, run.tokens, run.position, run.document, dict.fromkeys(range(12), "<b>"), run.special,
        run.fields, run.classes, 0,
    )  # fmt: skip
    from safecal.report import report_html

    page = report_html(strange.evaluate(), texts=strange.marked())
    assert "Where in the text?" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_generated_text_is_refused(llama: Path) -> None:
    with pytest.raises(errors.UnavailableError, match="its own samples"):
        run_language_model(llama, TEXTS, text="generated")
    with pytest.raises(errors.OptionError, match='"given"'):
        run_language_model(llama, TEXTS, text="mine")  # type: ignore[arg-type]


def test_bad_texts_are_refused(llama: Path, tmp_path: Path) -> None:
    for texts, error, words in (
        ([{"body": "the cat"}], errors.MissingValueError, "column="),
        ([3], errors.MissingValueError, "text in every row"),
        ([], errors.EmptyError, "at least one text"),
        (["the"], errors.EmptyError, "two or more tokens"),
        (tmp_path / "none.jsonl", errors.FileError, "could not be read"),
    ):
        with pytest.raises(error, match=words):
            run_language_model(llama, texts, text="given")
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "the cat"}\n\n{"text"\n')
    with pytest.raises(errors.FileError, match="line 3"):
        run_language_model(llama, bad, text="given")
    bad.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(errors.FileError, match="UTF-8"):
        run_language_model(llama, bad, text="given")
    plain = tmp_path / "plain.txt"
    plain.write_text("the cat sat")
    one = run_language_model(llama, plain, text="given")
    assert len(one.tokens) == 2
    with pytest.raises(errors.EmptyError, match="two or more"):
        one.evaluate()


def test_the_command_says_the_verdict_and_writes_a_report(
    llama: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, cache = tmp_path / "r.html", tmp_path / "scores"
    words = ["lm", str(llama), str(corpus), "--text", "given", "--by", "source", "--cache", str(cache)]
    status = main([*words, "--report", str(report), "--gate"])
    shown = capsys.readouterr().out
    assert status in (0, 3, 4)
    assert "books" in shown
    assert "Where in the text?" in report.read_text(encoding="utf-8")
    assert main(words) == 0
    assert "scored by an earlier run" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    document: Any = json.loads(capsys.readouterr().out)
    assert document["verdict"]["decision"] in ("SAFE", "UNSAFE", "UNDETERMINED")
    assert main(["lm", str(llama), str(corpus), "--text", "generated"]) == 2
    assert "people wrote" in capsys.readouterr().err
