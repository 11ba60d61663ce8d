"""The figures, by their data."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import safecal
from safecal.errors import FileError, MissingExtraError
from safecal.paper import ecd_range, paper_figures, table1, write_figures
from safecal.paper.figures import FILES


@pytest.fixture(scope="module")
def figures():  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    p = rng.random(300)
    tables = {f"model {k}": safecal.bernoulli(rng.random(300) < p, p).table(10) for k in range(4)}
    return paper_figures(real=tables)


def test_the_range_of_a_single_datum() -> None:
    curve = ecd_range()
    assert (curve.p[0], curve.p[-1]) == pytest.approx((0.0001, 0.9999))
    for p, happened, failed in zip(curve.p[::200], curve.happened[::200], curve.failed[::200], strict=True):
        assert happened == pytest.approx(safecal.ecd([1], [p]), abs=1e-10)
        assert failed == pytest.approx(safecal.ecd([0], [p]), abs=1e-10)
    assert curve.lowest == pytest.approx(-0.2784645427610738)
    assert safecal.ecd([1], [curve.lowest_at]) == pytest.approx(curve.lowest, abs=1e-15)
    assert curve.lowest <= min(curve.happened.min(), curve.failed.min()) < curve.lowest + 1e-5


@pytest.mark.proof
def test_the_figure_of_the_range_marks_the_minimum(figures) -> None:  # type: ignore[no-untyped-def]
    for ax in figures["ecd-range"].axes:
        marked = next(line for line in ax.get_lines() if line.get_label() == "minimum")
        assert marked.get_ydata() == pytest.approx([-0.2784645427610738] * 2)
        assert sorted(marked.get_xdata()) == pytest.approx([0.21781, 0.78219], abs=1e-5)
    texts = [text.get_text() for text in figures["ecd-range"].axes[1].texts]
    assert "-0.27846\nat p = 0.78219" in texts


def test_histograms_show_the_counts_of_the_table(figures) -> None:  # type: ignore[no-untyped-def]
    for ax, rows in zip(figures["histograms-simulated"].axes, table1().rows, strict=True):
        assert [round(bar.get_height()) for bar in ax.patches] == list(rows)
        assert [text.get_text() for text in ax.texts] == list(map(str, rows))


def test_reliability_diagrams_number_the_bins(figures) -> None:  # type: ignore[no-untyped-def]
    for name, panels in (("reliability-simulated", 3), ("reliability-well-calibrated", 1), ("reliability-real", 4)):
        axes = [ax for ax in figures[name].axes if ax.axison]
        assert len(axes) == panels
        for ax in axes:
            numbers = [text for text in ax.texts if getattr(text, "xy", None) is not None]
            assert [text.get_text() for text in numbers] == list(map(str, range(1, 11)))
            diagonal = next(line for line in ax.get_lines() if line.get_label() == "calibrated")
            assert (list(diagonal.get_xdata()), list(diagonal.get_ydata())) == ([0.0, 1.0], [0.0, 1.0])
            assert ax.get_legend() is None
    cells = table1().cells
    for ax, column in zip(figures["reliability-simulated"].axes, cells, strict=True):
        gaps = [text.xy[1] - text.xy[0] for text in ax.texts if getattr(text, "xy", None) is not None]
        assert gaps == pytest.approx(column[1, :10].tolist())
        assert any(f"ECD {column[2, -1]:+.4f}" in text.get_text() for text in ax.texts)


@pytest.mark.proof
def test_files_are_written_and_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    before, settings = plt.get_fignums(), dict(plt.rcParams)
    small = {"ecd-range": paper_figures(seed=1)["ecd-range"]}
    monkeypatch.setattr("safecal.paper.figures.paper_figures", lambda *_, **__: small)
    first = write_figures(tmp_path / "a" / "b")
    assert [path.name for path in first] == ["ecd-range.png", "ecd-range.svg"]
    assert first[0].read_bytes()[:4] == b"\x89PNG"
    small["ecd-range"] = paper_figures(seed=1)["ecd-range"]
    second = write_figures(tmp_path / "c")
    assert [a.read_bytes() for a in first] == [b.read_bytes() for b in second]
    assert plt.get_fignums() == before
    assert dict(plt.rcParams) == settings
    with pytest.raises(FileError, match="must be a folder"):
        write_figures(first[0])


def test_every_file_of_a_figure_is_known(figures) -> None:  # type: ignore[no-untyped-def]
    named = {f"{name}.{kind}" for name in figures for kind in ("png", "svg")}
    assert named == set(FILES)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with pytest.raises(MissingExtraError, match=r"safecal\[plot\]"):
        paper_figures()
