"""NEES, and three models of scikit-learn."""

import re
import sys
from pathlib import Path

import pytest

import safecal
from safecal.errors import MissingExtraError, OptionError
from safecal.paper import models_text, nees_demonstration, nees_text, three_models

DOCS = Path(__file__).resolve().parents[2] / "docs" / "paper"


@pytest.mark.proof
def test_gaussian_ecd_is_nees() -> None:
    cases = nees_demonstration(n=300, seed=3)
    assert [case.d for case in cases] == [1, 1, 1, 2, 2, 2, 4, 4, 4]
    for case in cases:
        assert case.ecd == pytest.approx(case.predicted, abs=1e-11)
        assert case.ours == pytest.approx(case.predicted, abs=1e-11)
    for right, half, twice in zip(cases[::3], cases[1::3], cases[2::3], strict=True):
        assert half.nees == pytest.approx(2.0 * right.nees)
        assert twice.nees == pytest.approx(0.5 * right.nees)
        assert (half.decision, twice.decision) == ("UNSAFE", "SAFE")
    text = nees_text(cases)
    assert max(map(len, text.splitlines())) <= 100
    assert nees_demonstration(n=300, seed=3) == cases
    with pytest.raises(OptionError, match="dimensions"):
        nees_demonstration([0])


@pytest.mark.proof
def test_three_models_have_three_verdicts() -> None:
    pytest.importorskip("sklearn")
    models = three_models()
    bayes, forest, logistic = (one.evaluation.verdict for one in models)
    assert (bayes.decision, bayes.direction) == ("UNSAFE", "over-confident")
    assert (forest.decision, forest.direction) == ("SAFE", "under-confident")
    assert logistic.decision == "SAFE"
    assert all(isinstance(one.evaluation, safecal.Evaluation) and one.evaluation.n == 1797 for one in models)
    text = models_text(models)
    assert max(map(len, text.splitlines())) <= 100
    page = (DOCS / "three-models.md").read_text(encoding="utf-8")
    shown = page.split("<!-- models -->")[1].split("<!-- end: models -->")[0]
    assert re.sub(r"[-\d.]+", "", text) in re.sub(r"[-\d.]+", "", shown)
    ours, theirs = (re.findall(r"-?\d+\.\d+", part) for part in (text, shown))
    assert [float(x) for x in ours] == pytest.approx([float(x) for x in theirs], rel=0.1, abs=0.02)


def test_without_scikit_learn_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match="scikit-learn"):
        three_models()
