"""Table 2 with real models: the registry, and the whole path with tiny models that the tests make."""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.0")
pl = pytest.importorskip("polars")
pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.extra

import safecal  # noqa: E402
from safecal.cli.paper import add_table2  # noqa: E402
from safecal.errors import FileError, LabelError, OptionError  # noqa: E402
from safecal.paper import published_table2  # noqa: E402
from safecal.paper.cells import cells_of  # noqa: E402
from safecal.paper.real_models import table2, table2_models, write_table2  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "bom", "ruim", "muito", "feio", "lindo"]
ROWS = 120


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "bert"
    (folder / "words").mkdir(parents=True)
    (folder / "words" / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(folder / "words" / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=16, initializer_range=0.9,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def comments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = random.Random(8)
    texts = [" ".join(draw.choices(WORDS[5:], k=draw.randint(1, 9))) for _ in range(ROWS)]
    path = tmp_path_factory.mktemp("data") / "comments.csv"
    labels = [draw.random() < 0.5 for _ in range(ROWS)]
    pl.DataFrame({"instagram_comments": texts, "offensive_language": labels}).write_csv(path)
    return path


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*words: object) -> str:
        parser = argparse.ArgumentParser("safecal")
        add_table2(parser.add_subparsers(required=True))
        options = parser.parse_args(["table2", *map(str, words)])
        capsys.readouterr()
        assert options.run(options) == 0
        said = capsys.readouterr()
        assert said.err == ""  # no progress line where nobody sees it
        return said.out

    return run


def test_the_registry_covers_the_published_table() -> None:
    entries = table2_models()
    assert [entry.published for entry in entries.values()] == list(published_table2())
    for entry in entries.values():
        assert entry.kind in ("text", "image")
        assert entry.model.count("/") == entry.data.count("/") == 1
        assert "split" in entry.guesses  # the paper names none
        assert "trust_remote_code" not in entry.settings
    entries.clear()
    assert table2_models()  # nobody changes it for others


def test_a_text_model_beside_the_published_cells(bert: Path, comments: Path, tmp_path: Path) -> None:
    table = table2("bertimbau", model=bert, data=comments, cache=tmp_path)
    y = pl.read_csv(comments)["offensive_language"].to_numpy()
    np.testing.assert_array_equal(table.run.y_true, y)
    p = 1 / (1 + np.exp(-table.run.logits))
    np.testing.assert_allclose(table.cells, cells_of(y, p, table.run.logits), atol=1e-12)
    same = safecal.evaluate(y, logits=table.run.logits)
    assert table.evaluation.to_dict() == same.to_dict()
    text = str(table)
    assert f"{bert} on {comments}, {ROWS} rows." in text
    assert "Guessed, where not replaced: model, data set, split" in text
    for printed in (*table.entry.published.ece, *table.entry.published.ecd):
        assert printed in text
    assert f"Ours: {same.verdict.decision}: {same.verdict.reason}" in text
    assert max(map(len, text.splitlines()[3:18])) <= 100


def test_an_image_model(tmp_path: Path) -> None:
    torch.manual_seed(2)
    names = {0: "dog", 1: "cat"}  # not in the order of the folders: names decide
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic",
        id2label=names, label2id={name: k for k, name in names.items()},
    )  # fmt: skip
    network = transformers.ResNetForImageClassification(config).eval()
    network.save_pretrained(tmp_path / "resnet")
    processor = transformers.ConvNextImageProcessorPil(size={"shortest_edge": 32})
    processor.save_pretrained(tmp_path / "resnet")
    rng = np.random.default_rng(2)
    images = []
    for k in range(10):
        folder = tmp_path / "photos" / ("cat" if k < 4 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        images.append(Image.fromarray(rng.integers(0, 256, (40, 36, 3), dtype=np.uint8)))
        images[-1].save(folder / f"{k}.png")
    table = table2("resnet18", model=tmp_path / "resnet", data=tmp_path / "photos", batch_size=10)
    with torch.no_grad():
        logits = network(**processor(images=images, return_tensors="pt")).logits.double().numpy()
    np.testing.assert_array_equal(table.run.y_true, [0] * 4 + [1] * 6)
    np.testing.assert_array_equal(table.run.logits, logits[:, 0] - logits[:, 1])
    assert table.run.positive == "dog"


def test_overriding_the_labels(bert: Path, comments: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.csv"
    pl.DataFrame({"text": ["bom", "ruim", "feio"], "#labels": [0, 2, 1]}).write_csv(counts)
    assert table2("roberta", model=bert, data=counts).run.y_true.tolist() == [0, 1, 1]
    assert table2("roberta", model=bert, data=counts, positive="2", positive_class=1).run.y_true.tolist() == [0, 1, 0]
    with pytest.raises(OptionError, match="`name` must be one of 'bertimbau', 'resnet18', 'roberta'"):
        table2("gpt")
    with pytest.raises(LabelError, match="`positive_class`"):
        table2("roberta", model=bert, data=counts, positive="2")


def test_files_are_written(bert: Path, comments: Path, tmp_path: Path) -> None:
    table = table2("bertimbau", model=bert, data=comments)
    files = write_table2(tmp_path / "made" / "here", table)
    stem = "table2-bertimbau"
    assert [f.name for f in files] == [f"{stem}{end}" for end in (".txt", "-rows.csv", ".json", ".png", ".svg")]
    assert files[0].read_text() == f"{table}\n"
    rows = pl.read_csv(files[1])
    np.testing.assert_array_equal(rows["logit"].to_numpy(), table.run.logits)
    assert safecal.Evaluation.from_dict(json.loads(files[2].read_text())).ecd == table.evaluation.ecd
    assert files[3].read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in files[4].read_text()
    with pytest.raises(FileError, match="must be a folder"):
        write_table2(files[0], table)


def test_the_command(command: Callable[..., str], bert: Path, comments: Path, tmp_path: Path) -> None:
    words = ["bertimbau", "--model", bert, "--data", comments, "--cache", tmp_path / "cache", "--batch-size", 16]
    first = command(*words, "--out", tmp_path / "out")
    assert "BERTimbau" in first
    assert first.count("written: ") == 5
    again = command(*words)
    assert f"{ROWS} of {ROWS} rows were predicted earlier: {tmp_path / 'cache'}" in again
    assert again.splitlines()[:20] == first.splitlines()[:20]


def test_the_command_finds_its_cache(
    command: Callable[..., str], bert: Path, comments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = ["--text-column", "instagram_comments", "--label-column", "offensive_language", "--positive", "true"]
    command("roberta", "--model", bert, "--data", comments, *names, "--device", "cpu", "--max-length", 8)
    assert len(list((tmp_path / "safecal").glob("*.logits"))) == 1


def test_an_interrupted_command_says_what_is_kept(
    bert: Path, comments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from safecal.cli.outputs import Progress

    def add(self: Any, rows: int) -> None:
        self.rows += rows
        if self.rows >= 64:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "add", add)
    parser = argparse.ArgumentParser("safecal")
    add_table2(parser.add_subparsers(required=True))
    words = ["table2", "bertimbau", "--model", str(bert), "--data", str(comments), "--cache", str(tmp_path)]
    options = parser.parse_args(words)
    assert options.run(options) == 130
    assert "interrupted; the predictions of 64 rows are kept" in capsys.readouterr().err


SCRIPT = """
import argparse, sys
from safecal.cli.paper import add_table2
parser = argparse.ArgumentParser("safecal")
add_table2(parser.add_subparsers(required=True))
options = parser.parse_args(sys.argv[1:])
sys.exit(options.run(options))
"""


def test_a_killed_command_writes_the_same_rows(
    command: Callable[..., str], bert: Path, comments: Path, tmp_path: Path
) -> None:
    frame = pl.concat([pl.read_csv(comments)] * 5)
    data = tmp_path / "long.csv"
    frame.write_csv(data)
    words = ["bertimbau", "--model", str(bert), "--data", str(data), "--batch-size", "1"]
    cache = tmp_path / "cache"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "table2", *words, "--cache", str(cache)],
        env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while process.poll() is None and not any(file.stat().st_size > 3000 for file in cache.glob("*.logits")):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    text = command(*words, "--cache", cache, "--out", tmp_path / "killed")
    assert f" of {5 * ROWS} rows were predicted earlier" in text
    command(*words, "--cache", tmp_path / "other", "--out", tmp_path / "whole")
    for name in ("table2-bertimbau.txt", "table2-bertimbau-rows.csv", "table2-bertimbau.json", "table2-bertimbau.svg"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_help_imports_nothing_heavy() -> None:
    code = SCRIPT.split("options =")[0] + (
        "\nparser.format_help()\nassert not {'numpy', 'torch', 'transformers', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
