"""The study of Table 1: candidates, draws, and the page they make."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from safecal.errors import DocumentError, FileError, OptionError
from safecal.paper import Study, find_draws, published_table1, read_study, run_study, simulate, study_text, write_study
from safecal.paper import processes as processes_module
from safecal.paper import study as study_module
from safecal.paper.cells import INFORMATIVE
from safecal.paper.pages import markers, page_with
from safecal.paper.processes import CANDIDATES, blend, draw
from safecal.paper.study import score, steps

pytestmark = pytest.mark.proof

DOCS = Path(__file__).resolve().parents[2] / "docs" / "paper"
BY_NAME = {candidate.name: candidate for candidate in CANDIDATES}


@pytest.fixture(scope="module")
def stored() -> Study:
    return read_study(DOCS)


def test_candidates_are_many_and_named_once() -> None:
    assert len(BY_NAME) == len(CANDIDATES) >= 20
    assert INFORMATIVE.sum() == 23


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.name)
def test_every_candidate_draws(candidate: processes_module.Candidate) -> None:
    for first in (False, True):
        labels, p, odds = draw(candidate, np.random.RandomState(1), 500, 0.5, labels_first=first)
        assert set(np.unique(labels)) == {0, 1}
        assert p.min() > 0.0
        assert p.max() < 1.0
        np.testing.assert_allclose(np.log(p / (1.0 - p)), odds, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "noise_on"),
    [("as written", "logit"), ("on the probability", "probability"), ("on both, the same noise", "both")],
)
def test_candidates_are_the_processes_of_the_simulation(name: str, noise_on: str) -> None:
    labels, p, _ = draw(BY_NAME[name], np.random.RandomState(4), 1000, 2.0)
    rows = simulate(1000, sd=2.0, noise_on=noise_on, rng=np.random.RandomState(4))
    np.testing.assert_array_equal(labels, rows.labels)
    np.testing.assert_allclose(p, rows.y_prob, rtol=1e-12)


def test_a_blend_of_both_is_both() -> None:
    a = draw(blend(1.0, 1.0), np.random.RandomState(4), 1000, 2.0)
    b = draw(BY_NAME["on both, the same noise"], np.random.RandomState(4), 1000, 2.0)
    np.testing.assert_array_equal(a[1], b[1])


def test_the_right_process_fits_and_gives_every_digit() -> None:
    scored = score(BY_NAME["on both, the same noise"], 150)
    assert scored.agreeing == 66
    assert scored.p_value > 0.05
    assert max(scored.chi2) < 60.0
    assert scored.outer == pytest.approx((0.576, 0.859), abs=0.003)


@pytest.mark.parametrize("name", ["as written", "on the probability", "noise before W", "on both, independent"])
def test_others_do_not_fit(name: str) -> None:
    scored = score(BY_NAME[name], 100)
    assert scored.p_value < 1e-4
    assert scored.agreeing <= 3


def test_the_fitted_scale_fits_but_gives_no_digits() -> None:
    scored = score(BY_NAME["on the probability, 1.13 σ"], 150)
    assert scored.p_value > 0.01
    assert scored.plain == pytest.approx((21.0, 23.0), abs=6.0)
    assert scored.agreeing == 0


def test_the_draws_are_found() -> None:
    matches = find_draws(range(90, 110))
    assert len(matches) == 20 * 8
    assert (matches[0].seed, matches[0].generator, matches[0].order) == (99, "np.random.seed", "u', binomial")
    assert matches[0].agreeing == 33
    assert matches[0].largest < 0.00005 < 0.01 < matches[1].largest


@pytest.mark.proof
def test_the_study_runs_and_makes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = (BY_NAME["as written"], BY_NAME["on both, the same noise"])
    monkeypatch.setattr(study_module, "CANDIDATES", few)
    monkeypatch.setattr(study_module, "ON_LOGIT", (1.0,))
    monkeypatch.setattr(study_module, "ON_PROBABILITY", (1.0,))
    monkeypatch.setattr(study_module, "CLIPS", (1e-5,))
    said: list[str] = []
    study = run_study(100, seeds=3, tick=said.append)
    assert len(said) == steps() == 5
    assert study.best.name == "on both, the same noise"
    assert run_study(100, seeds=3) == study
    assert Study.from_dict(json.loads(json.dumps(study.to_dict()))) == study
    for name, values in (("ON_LOGIT", (1.0,)), ("ON_PROBABILITY", (1.0,)), ("CLIPS", (1e-5,))):
        monkeypatch.setattr(f"safecal.paper.pages.{name}", values)
    source, page = write_study(tmp_path, study)
    assert json.loads(source.read_text(encoding="utf-8"))["kind"] == "safecal.study"
    text = page.read_text(encoding="utf-8")
    assert "| **on both, the same noise** |" in text
    assert "0.569 to 0.587 / 0.855 to 0.861" in text
    write_study(tmp_path, study)  # again, into the page that is there
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.proof
def test_the_page_shows_the_stored_study(stored: Study, tmp_path: Path) -> None:
    page = (DOCS / "table1-study.md").read_text(encoding="utf-8")
    assert page_with(page, stored) == page
    for name in ("table1-study.md", "table1-study.json"):
        shutil.copy(DOCS / name, tmp_path)
    write_study(tmp_path, stored)
    assert (tmp_path / "table1-study.md").read_text(encoding="utf-8") == page
    assert (tmp_path / "table1-study.json").read_text(encoding="utf-8") == (DOCS / "table1-study.json").read_text(
        encoding="utf-8"
    )


def test_the_stored_study_says_what_the_page_says(stored: Study) -> None:
    assert [one.name for one in stored.scores] == list(BY_NAME)
    assert stored.replications == 1000
    assert stored.seeds == 1000
    fits = {one.name for one in stored.scores if one.p_value > 0.01}
    assert fits == {
        "the same, Student noise",
        "on the probability, and W times more",
        "on the probability, 1.13 σ",
        "on both, the same noise",
    }
    assert (stored.best.name, stored.best.agreeing) == ("on both, the same noise", 66)
    written = stored.scores[0]
    for ours, column in zip(zip(written.ece, written.ecd, strict=True), published_table1()[1:], strict=True):
        assert [round(float(column.values[m, -1]) / x) for m, x in zip((0, 2), ours, strict=True)] in (
            [17, 98],
            [5, 20],
        )
    assert min(stored.clips) == stored.clips[3]  # 1e-5
    text = study_text(stored)
    assert max(map(len, text.splitlines())) <= 100
    assert "np.random.seed(99)" in text


@pytest.mark.no_cover
def test_the_stored_study_comes_from_the_command(stored: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    # A part of the cells, each with as many replications as the stored ones: no cell depends on another. What a
    # process gives from the draws of the paper takes no replications, and is asked of all.
    assert [one.agreeing for one in stored.scores] == [
        max(study_module._agreeing(candidate, first) for first in (False, True)) for candidate in CANDIDATES
    ]
    scores = [stored.scores[0], stored.best]
    monkeypatch.setattr(study_module, "CANDIDATES", [BY_NAME[one.name] for one in scores])
    for name in ("ON_LOGIT", "ON_PROBABILITY", "CLIPS"):
        monkeypatch.setattr(study_module, name, getattr(study_module, name)[1:2])
    again = run_study(stored.replications, seeds=1)
    for a, b in zip(again.scores, scores, strict=True):
        assert a.chi2 == pytest.approx(b.chi2, rel=1e-4)
        assert (a.name, a.agreeing) == (b.name, b.agreeing)
    assert again.blends[0] == pytest.approx(stored.blends[1][1:2], rel=1e-4)
    assert again.clips == pytest.approx(stored.clips[1:2], rel=1e-4)


def test_what_cannot_be_read(tmp_path: Path, stored: Study) -> None:
    with pytest.raises(FileError, match="safecal paper study --out"):
        read_study(tmp_path)
    with pytest.raises(FileError, match="lacks the markers"):
        page_with("# A page without markers", stored)
    with pytest.raises(DocumentError, match="lacks seeds"):
        Study.from_dict({k: v for k, v in stored.to_dict().items() if k != "seeds"})
    with pytest.raises(OptionError, match="at least 100"):
        run_study(10)
    assert markers("x") == ("<!-- study: x -->", "<!-- end: x -->")


def test_bins_that_a_process_leaves_empty_count_as_no_fit() -> None:
    empty = processes_module.Candidate(
        "", "", lambda r, e: (np.full(len(r), 0.05), np.full(len(r), np.log(0.05 / 0.95)))
    )
    scored = score(empty, 100)
    assert scored.chi2 == (np.inf, np.inf)
    assert scored.p_value == 0.0
