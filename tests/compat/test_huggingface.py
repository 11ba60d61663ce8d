"""Pretrained classifiers, without a hub: tiny ones are built from their configurations, saved, and loaded from disk."""

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.0")
pl = pytest.importorskip("polars")
Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.extra

from safecal.compat.huggingface import (  # noqa: E402
    ClassifierRun,
    UnreachableError,
    log_odds,
    read_outcomes,
    run_classifier,
)
from safecal.compat.huggingface.data import LabelledRows, LogitCache  # noqa: E402
from safecal.compat.huggingface.model import Classes, hub_errors, load_library  # noqa: E402
from safecal.errors import (  # noqa: E402
    EmptyError,
    FileError,
    LabelError,
    MissingExtraError,
    MissingValueError,
    OptionError,
)

WORDS = ["good", "bad", "film", "actor", "plot", "the", "a", "was", "is", "not", "very", "dull", "bright", "slow"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROWS = 41


def save_bert(folder: Path, names: list[str], **config: Any) -> Path:
    """Write a tiny BERT with random weights, spread so that its logits differ from row to row."""
    torch.manual_seed(5)
    (folder / "words").mkdir(parents=True)
    vocabulary = folder / "words" / "vocab.txt"
    vocabulary.write_text("\n".join(SPECIAL + WORDS))
    transformers.BertTokenizer(str(vocabulary)).save_pretrained(folder)
    made = transformers.BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, initializer_range=0.7,
        id2label=dict(enumerate(names)), label2id={name: k for k, name in enumerate(names)}, **config,
    )  # fmt: skip
    transformers.BertForSequenceClassification(made).save_pretrained(folder)
    return folder


def save_resnet(folder: Path, names: list[str]) -> Path:
    torch.manual_seed(6)
    made = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic",
        id2label=dict(enumerate(names)), label2id={name: k for k, name in enumerate(names)},
    )  # fmt: skip
    transformers.ResNetForImageClassification(made).save_pretrained(folder)
    transformers.ConvNextImageProcessorPil(size={"shortest_edge": 32}).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("models") / "bert", ["negative", "positive"])


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_resnet(tmp_path_factory.mktemp("models") / "resnet", ["cat", "dog"])


def sentences(n: int = ROWS) -> list[str]:
    draw = random.Random(1)
    return [" ".join(draw.choices([*WORDS, "unknown"], k=draw.randint(1, 40))) for _ in range(n)]


def write_csv(path: Path, labels: list[Any], texts: list[str] | None = None) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "label"])
        writer.writerows(zip(range(len(labels)), texts or sentences(len(labels)), labels, strict=True))
    return path


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("data") / "reviews.csv", ["positive", "negative", "Negative"] * 14)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(2)
    for k in range(13):
        target = folder / ("dog" if k % 3 else "cat")
        target.mkdir(exist_ok=True)
        pixels = rng.integers(0, 256, (30 + k, 40, 3) if k % 2 else (30 + k, 40), dtype=np.uint8)
        Image.fromarray(pixels).save(target / f"{k:02}.png")
    (folder / "cat" / "notes.txt").write_text("not an image")
    return folder


def plain_texts(model: Path, texts: list[str], batch: int) -> Any:
    """Predict as a short script would: Transformers and nothing else."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(model).eval()
    written = []
    with torch.no_grad():
        for k in range(0, len(texts), batch):
            ready = tokenizer(texts[k : k + batch], padding=True, truncation=True, max_length=32, return_tensors="pt")
            written.append(network(**ready).logits.double().numpy())
    return np.concatenate(written)


def test_texts_equal_a_plain_loop(bert: Path, reviews: Path) -> None:
    seen: list[tuple[int, int]] = []
    run = run_classifier(bert, reviews, batch_size=8, progress=lambda done, total: seen.append((done, total)))
    plain = plain_texts(bert, sentences(42), 8)
    assert run.logits.dtype == np.float64
    np.testing.assert_array_equal(run.logits, plain[:, 1] - plain[:, 0])
    np.testing.assert_array_equal(run.y_true, [1, 0, 0] * 14)
    assert (run.positive, run.classes, run.resumed, run.cache) == ("positive", ("negative", "positive"), 0, None)
    assert seen == [(k, 42) for k in (0, 8, 16, 24, 32, 40, 42)]
    assert np.ptp(run.logits) > 0.5  # the rows differ, so equality says something


def test_images_equal_a_plain_loop(resnet: Path, photos: Path) -> None:
    run = run_classifier(resnet, photos, kind="image", positive="dog", batch_size=4)
    files = [*sorted((photos / "cat").glob("*.png")), *sorted((photos / "dog").glob("*.png"))]
    processor = transformers.AutoImageProcessor.from_pretrained(resnet, backend="pil")
    network = transformers.AutoModelForImageClassification.from_pretrained(resnet).eval()
    plain = []
    with torch.no_grad():
        for k in range(0, len(files), 4):
            images = [Image.open(file).convert("RGB") for file in files[k : k + 4]]
            plain.append(network(**processor(images=images, return_tensors="pt")).logits.double().numpy())
    logits = np.concatenate(plain)
    np.testing.assert_array_equal(run.logits, logits[:, 1] - logits[:, 0])
    np.testing.assert_array_equal(run.y_true, [0] * 5 + [1] * 8)
    assert run.evaluate().n == 13


def test_more_classes_keep_a_matrix(tmp_path: Path) -> None:
    names = ["low", "middle", "high"]
    model = save_bert(tmp_path / "three", names)
    data = write_csv(tmp_path / "rows.csv", ["low", "2", "middle", "high"] * 5)
    run = run_classifier(model, data, batch_size=7, cache=tmp_path / "cache")
    plain = plain_texts(model, sentences(20), 7)
    np.testing.assert_array_equal(run.logits, plain)
    np.testing.assert_array_equal(run.y_true, [0, 2, 1, 2] * 5)
    evaluation = run.evaluate(bins=5)
    assert (evaluation.n, evaluation.summary.n_impossible, run.positive) == (20, 0, None)
    # One class against the rest, from the same predictions on disk: log p - log(1 - p), without a p.
    one = run_classifier(model, data, batch_size=7, cache=tmp_path / "cache", positive="high", positive_class="high")
    assert one.resumed == 20
    np.testing.assert_array_equal(one.y_true, [0, 0, 0, 1] * 5)
    p = np.exp(plain[:, 2]) / np.exp(plain).sum(axis=1)
    np.testing.assert_allclose(one.logits, np.log(p / (1 - p)), rtol=1e-10)


def test_large_logits_do_not_saturate() -> None:
    far = np.array([[0.0, 900.0], [-900.0, 900.0]])
    assert log_odds(far, 1, Classes(("a", "b"), False)).tolist() == [900.0, 1800.0]
    assert log_odds(np.array([[0.0, 800.0, 0.0]]), 1, Classes(("a", "b", "c"), False)).tolist() == [800.0 - np.log(2)]
    assert log_odds(far, 0, Classes(("a", "b"), True)).tolist() == [0.0, -900.0]  # each class by itself
    assert log_odds(far[:, 1:], 1, Classes(("a",), True)).tolist() == [900.0, 900.0]  # one logit
    run = ClassifierRun("m", "d", np.array([1, 1]), np.array([900.0, 1800.0]), ("a", "b"), "b", 0, None)
    assert run.evaluate().ecd == 0.0
    assert run.to_csv() == "y,logit\n1,900.0\n1,1800.0\n"


def test_one_logit_and_several_labels(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "rows.csv", [0, 1, 1, 0, 1])
    single = save_bert(tmp_path / "one", ["LABEL_0"])
    with pytest.raises(OptionError, match="may be a regression"):
        run_classifier(single, data)
    run = run_classifier(single, data, positive=1)
    np.testing.assert_allclose(run.logits, plain_texts(single, sentences(5), 32)[:, 0])
    np.testing.assert_array_equal(run.y_true, [0, 1, 1, 0, 1])
    several = save_bert(tmp_path / "many", ["spam", "rude", "long"], problem_type="multi_label_classification")
    with pytest.raises(OptionError, match="judges each class by itself"):
        run_classifier(several, data)
    run = run_classifier(several, data, positive=1, positive_class="rude")
    np.testing.assert_allclose(run.logits, plain_texts(several, sentences(5), 32)[:, 1])
    with pytest.raises(FileError, match="regression"):
        run_classifier(save_bert(tmp_path / "r", ["x"], problem_type="regression"), data)


def test_files_of_other_kinds_give_the_same_rows(bert: Path, reviews: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(reviews)
    frame.write_parquet(tmp_path / "rows.parquet")
    frame.write_ndjson(tmp_path / "rows.jsonl")
    frame.write_csv(tmp_path / "rows.tsv", separator="\t")
    first = run_classifier(bert, reviews, cache=tmp_path / "cache")
    for name in ("rows.parquet", "rows.jsonl", "rows.tsv"):
        run = run_classifier(bert, tmp_path / name, cache=tmp_path / "cache")
        assert run.resumed == 42  # the inputs are the same, so the predictions are
        assert run.to_csv() == first.to_csv()


def test_images_in_files(resnet: Path, photos: Path, tmp_path: Path) -> None:
    folder = run_classifier(resnet, photos, kind="image", batch_size=4)
    files = [file for name in ("cat", "dog") for file in sorted((photos / name).glob("*.png"))]
    labels = [file.parent.name for file in files]
    table = tmp_path / "rows.csv"
    pl.DataFrame({"image": [str(file) for file in files], "label": labels}).write_csv(table)
    packed = tmp_path / "rows.parquet"
    records = [{"bytes": file.read_bytes(), "path": None} for file in files]
    pl.DataFrame({"image": records, "label": labels}).write_parquet(packed)
    for data in (table, packed):
        assert run_classifier(resnet, data, kind="image", batch_size=4).to_csv() == folder.to_csv()
    (photos.parent / "broken.csv").write_text("image,label\nnone.png,cat\n")
    with pytest.raises(FileError, match=r"row 0, .*none\.png"):
        run_classifier(resnet, photos.parent / "broken.csv", kind="image")
    (photos.parent / "none.png").write_text("text")
    with pytest.raises(FileError, match=r"row 0 .* no image"):
        run_classifier(resnet, photos.parent / "broken.csv", kind="image")


def test_a_data_set_saved_to_disk(bert: Path, resnet: Path, reviews: Path, photos: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    names = datasets.ClassLabel(names=["negative", "positive"])
    made = datasets.Dataset.from_dict(
        {"text": sentences(42), "label": [1, 0, 0] * 14},
        features=datasets.Features({"text": datasets.Value("string"), "label": names}),
    )
    made.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"test": made}).save_to_disk(tmp_path / "split")
    first = run_classifier(bert, reviews)
    for data in (tmp_path / "one", tmp_path / "split"):
        assert run_classifier(bert, data).to_csv() == first.to_csv()
    with pytest.raises(OptionError, match="`split` must be one of"):
        run_classifier(bert, tmp_path / "split", split="train")
    files = [file for name in ("cat", "dog") for file in sorted((photos / name).glob("*.png"))]
    pictures = datasets.Dataset.from_dict(
        {"image": [str(file) for file in files], "label": [int(file.parent.name == "dog") for file in files]},
        features=datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}),
    )
    pictures.save_to_disk(tmp_path / "pictures")
    run = run_classifier(resnet, tmp_path / "pictures", kind="image")
    assert run.to_csv() == run_classifier(resnet, photos, kind="image").to_csv()


SCRIPT = """
import sys
from safecal.compat.huggingface import run_classifier
run_classifier(sys.argv[1], sys.argv[2], batch_size=1, cache=sys.argv[3])
"""


@pytest.mark.no_cover
def test_a_killed_run_goes_on_where_it_stopped(bert: Path, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "rows.csv", [0, 1, 1] * 200)
    draw = random.Random(4)
    cache = tmp_path / "cache"
    command = [sys.executable, "-c", SCRIPT, str(bert), str(data), str(cache)]
    left = [0]
    for _ in range(2):
        process = subprocess.Popen(command, env={**os.environ}, stderr=subprocess.PIPE)
        wanted = left[-1] + draw.randint(48, 3000)  # bytes of some more batches, at any place in one
        while process.poll() is None and (not cache.is_dir() or _size(cache) < max(wanted, 700)):
            time.sleep(0.001)
        time.sleep(draw.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[1]
        assert process.returncode == -signal.SIGKILL, said.decode()
        left.append(_size(cache))
    assert left == sorted(set(left))  # each run went on, and none of them to the end
    resumed = run_classifier(bert, data, batch_size=1, cache=cache)
    whole = run_classifier(bert, data, batch_size=1, cache=tmp_path / "other")
    assert 0 < resumed.resumed < 600
    assert whole.resumed == 0
    assert resumed.to_csv() == whole.to_csv()
    assert resumed.logits.tobytes() == whole.logits.tobytes()
    assert resumed.cache is not None
    assert whole.cache is not None
    assert resumed.cache.read_bytes() == whole.cache.read_bytes()
    plain = plain_texts(bert, sentences(600), 1)
    np.testing.assert_array_equal(resumed.logits, plain[:, 1] - plain[:, 0])


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


WRITER = """
import sys
import numpy as np
from safecal.compat.huggingface.data import LogitCache
with LogitCache(sys.argv[1], {"of": "a test"}) as cache:
    print("begun", flush=True)
    while len(cache.batches) < 100_000:
        cache.append(np.random.default_rng(len(cache.batches)).normal(size=(50, 3)))
"""


def test_kills_at_any_moment_leave_whole_batches(tmp_path: Path) -> None:
    draw = random.Random(3)
    before = 0
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(draw.random() * 0.05)
        process.kill()
        process.communicate()
        with LogitCache(tmp_path, {"of": "a test"}) as cache:
            assert len(cache.batches) >= before
            before = len(cache.batches)
            for k, batch in enumerate(cache.batches):
                np.testing.assert_array_equal(batch, np.random.default_rng(k).normal(size=(50, 3)))
    assert before > 8


def test_a_torn_file_is_cut_after_its_last_whole_batch(tmp_path: Path) -> None:
    parts = [np.arange(2.0).reshape(2, 1) + k for k in range(3)]
    with LogitCache(tmp_path, {"a": 1}) as cache:
        ends = [cache.path.stat().st_size]
        for part in parts:
            cache.append(part)
            ends.append(cache.path.stat().st_size)
    whole = cache.path.read_bytes()
    for size in range(len(whole) + 1):
        cache.path.write_bytes(whole[:size])
        with LogitCache(tmp_path, {"a": 1}) as again:
            whole_batches = len(again.batches)
            assert whole_batches == max(sum(end <= size for end in ends) - 1, 0)
            for part in parts[whole_batches:]:
                again.append(part)
        assert cache.path.read_bytes() == whole


def test_a_damaged_byte_is_seen(tmp_path: Path) -> None:
    parts = [np.ones((1, 2)) * k for k in range(3)]
    with LogitCache(tmp_path, {"a": 1}) as cache:
        start = cache.path.stat().st_size
        for part in parts:
            cache.append(part)
    whole = cache.path.read_bytes()
    record = (len(whole) - start) // 3
    for at in range(start, len(whole)):
        cache.path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        with LogitCache(tmp_path, {"a": 1}) as again:
            assert len(again.batches) == (at - start) // record
    doubled = whole[: start + record] + whole[start:]  # a batch twice
    cache.path.write_bytes(doubled)
    with LogitCache(tmp_path, {"a": 1}) as again:
        assert len(again.batches) == 1


def test_a_torn_run_is_redone(bert: Path, reviews: Path, tmp_path: Path) -> None:
    first = run_classifier(bert, reviews, batch_size=5, cache=tmp_path)
    assert first.cache is not None
    content = first.cache.read_bytes()
    first.cache.write_bytes(content[:-30])
    again = run_classifier(bert, reviews, batch_size=5, cache=tmp_path)
    assert again.resumed == 40
    assert again.to_csv() == first.to_csv()
    assert first.cache.read_bytes() == content


def test_other_settings_are_not_mixed_in(bert: Path, reviews: Path, tmp_path: Path) -> None:
    def resumed(model: Path = bert, data: Path = reviews, **settings: Any) -> int:
        return run_classifier(model, data, cache=tmp_path / "cache", **settings).resumed

    assert resumed() == 0
    assert resumed() == 42
    assert resumed(batch_size=8) == 0
    assert resumed(max_length=4) == 0
    other = save_bert(tmp_path / "other", ["negative", "positive"], hidden_act="relu")
    assert resumed(other) == 0
    changed = write_csv(tmp_path / "rows.csv", ["positive", "negative", "negative"] * 14, [*sentences(41), "good"])
    assert resumed(bert, changed) == 0
    assert resumed() == 42
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in bert.iterdir():
        if file.is_file():
            (moved / file.name).write_bytes(file.read_bytes())
    assert resumed(moved) == 42  # the same files, elsewhere
    paths = []
    for settings in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}):
        with LogitCache(tmp_path, settings) as opened:
            paths.append(opened.path)
    assert paths[0] == paths[1] != paths[2]


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    first, second = LogitCache(tmp_path, {"a": 1}), LogitCache(tmp_path, {"a": 2})
    with first, second, pytest.raises(FileError, match="another run"):
        LogitCache(tmp_path, {"a": 1})
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="`cache` must be a folder"):
        LogitCache(tmp_path / "file" / "in", {"a": 1})


OFFLINE = """
from safecal.compat.huggingface import UnreachableError, run_classifier
import sys
for model, data in (("nobody/no-such-model", sys.argv[2]), (sys.argv[1], "nobody/no-such-data")):
    try:
        run_classifier(model, data)
    except UnreachableError as error:
        print(error)
        print("--")
"""


def test_an_unreachable_hub_is_named(bert: Path, reviews: Path, tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(bert), str(reviews)], capture_output=True, text=True, env=env, check=True
    )
    model, data, rest = said.stdout.split("--\n")
    assert rest == ""
    assert model.startswith("the model 'nobody/no-such-model' could not be fetched from the Hugging Face hub: ")
    assert "Hint: pass a local copy as `model`, a folder that `save_pretrained` wrote." in model
    assert data.startswith("the data set 'nobody/no-such-data' could not be fetched from the Hugging Face hub: ")
    assert "hf download nobody/no-such-data --repo-type dataset --local-dir copy" in data


class GatedRepoError(OSError):
    pass


def test_gated_and_strange_repositories() -> None:
    gated = r"is gated .*\n\nHint: accept .*/datasets/a/b, then `hf auth login`"
    with pytest.raises(UnreachableError, match=gated), hub_errors("a/b", "data", local=False):
        raise OSError("no") from GatedRepoError("403")
    with pytest.raises(FileError, match="code of its own"), hub_errors("a/b", "model", local=False):
        raise ValueError("pass trust_remote_code=True")
    strange = r"^the model 'a/b' cannot be used: strange\.$"
    with pytest.raises(FileError, match=strange), hub_errors("a/b", "model", local=False):
        raise ValueError("strange")


def test_code_of_a_model_is_not_run(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine"}}')
    (model / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(FileError, match="code of its own"):
        run_classifier(model, write_csv(tmp_path / "rows.csv", [0, 1]))
    assert not (tmp_path / "ran").exists()
    source = Path(str(sys.modules["safecal.compat.huggingface"].__file__)).parent
    assert "trust_remote_code=True" not in "".join(file.read_text() for file in source.glob("*.py"))


def test_a_model_without_a_classifier(tmp_path: Path) -> None:
    model = save_bert(tmp_path / "bert", ["a", "b"])
    config = transformers.AutoConfig.from_pretrained(model)
    transformers.BertModel(config).save_pretrained(model)
    with pytest.raises(FileError, match=r"no weights for classifier\.bias, classifier\.weight"):
        run_classifier(model, write_csv(tmp_path / "rows.csv", [0, 1]))


def test_missing_libraries_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("transformers", "torch", "datasets", "polars", "PIL.Image"):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError, match=r'pip install "safecal\[huggingface\]"'):
            load_library(module, "this")


def rows_of(labels: list[Any], numbers: list[int] | None = None) -> LabelledRows:
    return LabelledRows("rows", "text", labels, numbers, lambda k: b"")


def test_which_label_is_which_class() -> None:
    named, generic = Classes(("Cat", "dog"), False), Classes(("LABEL_0", "LABEL_1"), False)

    def y(labels: list[Any], classes: Classes, numbers: list[int] | None = None, **said: Any) -> tuple[list[int], Any]:
        options = {"positive": None, "negative": None, "positive_class": None, **said}
        outcomes = read_outcomes(rows_of(labels, numbers), classes, **options)
        return outcomes.y_true.tolist(), outcomes.column

    assert y(["cat", "DOG"], named) == ([0, 1], 1)
    assert y([True, 0, 1.0, "false"], generic) == ([1, 0, 1, 0], 1)
    assert y(["a", "b"], generic, [0, 1]) == ([0, 1], 1)  # folders in their order, where names say nothing
    assert y(["cat", "dog"], named, positive="cat") == ([1, 0], 0)
    assert y([0, 3, 1], named, negative=0) == ([0, 1, 1], 1)
    assert y(["yes", "no"], named, positive="yes", positive_class="cat") == ([1, 0], 0)
    assert y(["cat", "dog"], named, positive_class=0) == ([1, 0], 0)
    with pytest.raises(LabelError, match=r"`label_column` .*got 'bird' at row 1 \(1 of 2 rows\)"):
        y(["cat", "bird"], named)
    with pytest.raises(LabelError, match=r"`positive` must be a label of the data; got 'bird'(.|\n)*'cat', 'dog'"):
        y(["cat", "dog"], named, positive="bird", positive_class=1)
    with pytest.raises(LabelError, match=r"`positive_class` .* got 'yes'(.|\n)*'Cat' \(0\), 'dog' \(1\)"):
        y(["yes", "no"], named, positive="yes")
    with pytest.raises(OptionError, match="together"):
        y(["cat", "dog"], named, positive="cat", negative="dog")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "sound"}, OptionError, "`kind`"),
        ({"batch_size": 0}, OptionError, "`batch_size`"),
        ({"max_length": 1.5}, OptionError, "`max_length`"),
        ({"device": "toaster"}, OptionError, "`device`"),
        ({"column": "body"}, OptionError, r"`column` must name a column(.|\n)*'id', 'text', 'label'"),
        ({"label_column": "y"}, OptionError, "`label_column` must name"),
        ({"model": "./nowhere"}, FileError, "`model` must be a name on the Hugging Face hub, or a path that exists"),
        ({"data": "none.csv"}, FileError, r"`data` must be a name .* got 'none\.csv'"),
    ],
)
def test_bad_arguments(
    bert: Path, reviews: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run_classifier(**{"model": bert, "data": reviews, **options})


def test_bad_data(bert: Path, tmp_path: Path) -> None:
    def data(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    for name, text, error, message in (
        ("empty.csv", "text,label\n", EmptyError, "at least one row"),
        ("label.csv", "text,label\ngood,\n", MissingValueError, r"a label in every row; got None at row 0"),
        ("text.csv", "text,label\n,1\n", MissingValueError, "a text in every row"),
        ("zero.csv", "", FileError, "cannot be read"),
        ("rows.xls", "text", FileError, "CSV, TSV, JSON Lines or Parquet"),
    ):
        with pytest.raises(error, match=message):
            run_classifier(bert, data(name, text))
    with pytest.raises(FileError, match="must be a file for texts"):
        run_classifier(bert, tmp_path)
    with pytest.raises(FileError, match="sub-folder of images for each class"):
        run_classifier(bert, bert, kind="image")
    with pytest.raises(FileError, match="is a file"):
        run_classifier(tmp_path / "rows.xls", tmp_path / "text.csv")
    (tmp_path / "no model").mkdir()
    with pytest.raises(FileError, match="cannot be read"):
        run_classifier(tmp_path / "no model", tmp_path / "text.csv")
