"""The section of a report that says what a fix would gain, and the lines to paste."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal as library
from safecal import Evaluation, maps
from safecal.errors import InputError
from safecal.report import report_html, steps

from .browsing import assert_it_fits, assert_it_is_accessible, needs_axe, started, visited

Safecal = Callable[..., Any]


@cache
def rows(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Return what happened, and probabilities that are too sharp and too low."""
    rng = np.random.default_rng(3)
    z = rng.normal(0, 2, n)
    return (rng.random(n) < 1 / (1 + np.exp(-(0.8 * z + 1.3)))).astype(np.int64), 1 / (1 + np.exp(-1.8 * z))


@cache
def evaluated(n: int = 2000) -> Evaluation:
    return library.evaluate(*rows(n))


@cache
def fixed(n: int = 2000) -> maps.Recalibration:
    return library.recalibrate(*rows(n))


def section(page: str) -> str:
    """Return the section as markup; empty where there is none."""
    match = re.search(r'<section aria-labelledby="fix">.*?</section>', page, re.DOTALL)
    return "" if match is None else match[0]


def text(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", markup)).replace("\N{NO-BREAK SPACE}", " ")


def codes(page: str) -> list[str]:
    return [unescape(code) for code in re.findall(r"<pre><code>(.*?)</code></pre>", section(page), re.DOTALL)]


def test_it_says_what_the_best_map_wins() -> None:
    fix = fixed()
    shown = section(report_html(evaluated(), fix=fix, fix_command="safecal recalibrate rows.csv"))
    words = text(shown)
    assert f"NLL goes from {fix.before.nll:.4f} to {fix.after.nll:.4f}" in words
    assert "the verdict is SAFE instead of UNSAFE." in words
    assert fix.reason in words
    assert "<strong>affine</strong>, taken" in shown
    assert [row.name for row in fix.table if f"{row.nll:.4f}" not in words] == []
    assert "Warning" not in words
    assert "not about" not in words


def test_its_lines_do_what_they_say(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    y, p = rows()
    command, python, function = codes(report_html(evaluated(), fix=fixed(), fix_command="safecal recalibrate rows.csv"))
    assert command == "safecal recalibrate rows.csv"
    names: dict[str, Any] = {"y_true": y, "y_prob": p}
    exec(python, names)
    assert names["fixed"].map.to_dict() == fixed().map.to_dict()
    assert capsys.readouterr().out == f"{fixed()!r}\n"
    exec(function, names)
    assert [names["recalibrate"](x) for x in p[:9].tolist()] == pytest.approx(names["better"][:9].tolist(), rel=1e-12)


def test_a_result_alone_says_how_to_try_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = report_html(evaluated())
    assert "No fix was tried here: a result holds no rows" in text(section(page))
    (python,) = codes(page)
    monkeypatch.chdir(tmp_path)
    exec(python, {"y_true": rows()[0], "y_prob": rows()[1], "result": evaluated()})
    assert "the verdict is SAFE instead of UNSAFE." in text(section((tmp_path / "report.html").read_text("utf-8")))


def test_what_is_safe_needs_no_fix() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < p
    safe = library.evaluate(y, p)
    assert safe.verdict.decision == "SAFE"
    assert not section(report_html(safe))
    same = section(report_html(safe, fix=library.recalibrate(y, p)))  # but whoever asks is told
    assert "the verdict stays SAFE." in text(same)


def test_few_rows_are_left_as_they_are() -> None:
    y, p = (column[:15] for column in rows())
    page = report_html(library.evaluate(y, p), fix=library.recalibrate(y, p))
    assert "No map is known to help." in text(section(page))
    assert "15 rows are too few to try maps on" in text(section(page))
    assert "What was tried" not in section(page)
    assert len(codes(page)) == 1  # nothing to paste that changes nothing


def test_a_map_that_was_refused_says_why() -> None:
    y, p = (column[:40] for column in rows())
    page = report_html(library.evaluate(y, p), fix=library.recalibrate(y, p))
    assert "not fitted: Isotonic needs at least 50 rows; got 40" in text(section(page))


@pytest.mark.proof
def test_groups_have_a_map_each() -> None:
    by = np.arange(2000) % 3
    evaluation, fix = library.evaluate(*rows(), by=by), library.recalibrate(*rows(), by=by)
    page = report_html(evaluation, fix=fix)
    python, function = codes(page)
    names: dict[str, Any] = {"y_true": rows()[0], "y_prob": rows()[1], "groups": by}
    exec(python, names)
    assert names["better"] == pytest.approx(fix.apply(rows()[1], by=by))
    exec(function, names)
    pairs = zip(rows()[1][:9].tolist(), by[:9].tolist(), strict=True)
    assert [names["recalibrate"](p, group) for p, group in pairs] == pytest.approx(names["better"][:9])
    assert "not about groups" not in text(section(page))
    assert "not about groups. " in text(section(report_html(evaluation, fix=fixed())))


def test_clusters_and_weights_are_in_the_line() -> None:
    cluster, weight = np.arange(2000) // 5, np.linspace(0.5, 1.0, 2000)
    evaluation = library.evaluate(*rows(), cluster=cluster, sample_weight=weight)
    (python,) = codes(report_html(evaluation))
    assert "recalibrate(y_true, y_prob, cluster=clusters, sample_weight=weights)" in python


def test_states_are_fixed_too() -> None:
    x = np.random.default_rng(0).normal(0, 2, (300, 2))
    mean, cov = np.zeros_like(x), np.broadcast_to(np.eye(2), (300, 2, 2))
    states = library.gaussian(x, mean, cov=cov)
    page = report_html(states.evaluate(), fix=library.recalibrate(states))
    (python,) = codes(page)
    names: dict[str, Any] = {"x_true": x, "mean": mean, "cov": cov}
    exec(python, names)
    assert names["better"][0, 0, 0] > 3.0
    assert "ECE goes" not in section(page)


def test_densities_have_no_section() -> None:
    from scipy import stats

    t = np.random.default_rng(0).standard_t(2, 300)
    made = library.density(t, stats.norm(0.0, 0.3)).evaluate()
    assert made.verdict.decision == "UNSAFE"
    assert not section(report_html(made))
    with_fix = report_html(made, fix=library.recalibrate(library.density(t, stats.norm(0.0, 0.3))))
    assert codes(with_fix) == []


def test_warnings_are_told() -> None:
    page = report_html(evaluated(), fix=replace(fixed(), warnings=("accuracy falls: <b> & more.",)))
    assert "Warning:  accuracy falls: <b> & more." in text(section(page))


def test_a_long_function_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_FUNCTION_LENGTH", 100)
    assert len(codes(report_html(evaluated(), fix=fixed()))) == 1


def test_the_fix_of_other_rows_is_refused() -> None:
    with pytest.raises(InputError, match="`fix` must be a Recalibration"):
        report_html(evaluated(), fix=evaluated())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"`fix` must be of the rows that were evaluated.*40 bernoulli rows, and 2000"):
        report_html(evaluated(), fix=fixed(40))


# On the command line


def written(folder: Path, **more: Any) -> Path:
    y, p = rows()
    columns: dict[str, Any] = {"label": y, "my score": p, **more}
    path = folder / "rows.csv"
    lines = zip(*(map(repr, np.asarray(column).tolist()) for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *map(",".join, lines)]) + "\n", encoding="utf-8")
    return path


OPTIONS = ("--y", "label", "--prob", "my score")


def test_a_report_of_a_file_has_the_fix_and_its_command(
    tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, page = written(tmp_path, day=np.arange(2000) // 5, site=np.arange(2000) % 3), tmp_path / "page.html"
    more = ["--cluster", "day", "--threshold", "0.05", "--rule", "average", "--clip", "0.001"]
    asked = [*more, "--by", "site", "--drop-missing", "--pos-label", "1", "--report", page]
    result = safecal("evaluate", path, *OPTIONS, *asked)
    assert result.status == 0, result.err
    assert "the verdict is SAFE instead of UNSAFE." in text(section(page.read_text("utf-8")))
    command, _, function = codes(page.read_text("utf-8"))
    assert "def recalibrate(p):" in function  # no group is special, so none has a map of its own
    assert "--by" not in shlex.split(command)
    monkeypatch.chdir(tmp_path)
    result = safecal(*shlex.split(command)[1:])
    assert result.status == 0, result.err
    reason = json.loads((tmp_path / "calibrator.json").read_text("utf-8"))
    map_ = maps.from_dict(reason)
    assert isinstance(map_, maps.Safe)
    assert f"{map_.map_.sentence_}" in text(section(page.read_text("utf-8")))
    for word in more:
        assert word in shlex.split(command)


def test_groups_that_alone_are_wrong_have_maps_of_their_own(tmp_path: Path, safecal: Safecal) -> None:
    rng = np.random.default_rng(0)
    z, west = rng.normal(0, 2, 4000), rng.random(4000) < 0.4
    y = (rng.random(4000) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-np.where(west, 2.5, 1.0) * z))
    path, page = tmp_path / "rows.csv", tmp_path / "page.html"
    lines = [f"{a},{b!r},{'west' if c else 'east'}" for a, b, c in zip(y, p.tolist(), west, strict=True)]
    path.write_text("\n".join(["y,p,site", *lines]), encoding="utf-8")
    said = safecal("evaluate", path, "--by", "site", "--report", page).out
    assert "Cause: only a group" in " ".join(said.split())
    assert "--by site" in said.splitlines()[-1]
    assert "def recalibrate(p, group):" in codes(page.read_text("utf-8"))[-1]


def test_rows_that_are_too_many_are_not_kept(tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch) -> None:
    path, page = written(tmp_path), tmp_path / "page.html"
    safecal("evaluate", path, *OPTIONS, "--max-rows", "1999", "--report", page)
    assert "these are too many for that beside a report" in text(section(page.read_text("utf-8")))
    assert codes(page.read_text("utf-8"))[0].startswith("safecal recalibrate ")
    monkeypatch.setattr("safecal.cli.commands.KeptRows", lambda *_: pytest.fail("kept without a report"))
    assert safecal("evaluate", path, *OPTIONS).status == 0


def test_more_groups_than_twenty_share_a_map(tmp_path: Path, safecal: Safecal) -> None:
    path, page = written(tmp_path, site=np.arange(2000) % 21), tmp_path / "page.html"
    safecal("evaluate", path, *OPTIONS, "--by", "site", "--report", page)
    html = page.read_text("utf-8")
    assert "not about groups. " in text(section(html))
    assert "--by" not in codes(html)[0]


def test_a_safe_file_has_no_fix(tmp_path: Path, safecal: Safecal) -> None:
    path, page = tmp_path / "rows.csv", tmp_path / "page.html"
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = (rng.random(20_000) < p).astype(int)
    path.write_text("y,p\n" + "".join(f"{a},{b:.6f}\n" for a, b in zip(y, p, strict=True)))
    safecal("evaluate", path, "--report", page)
    assert not section(page.read_text("utf-8"))


def test_classes_are_named_in_the_command(tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(0, 1, (500, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    path, page = tmp_path / "rows.csv", tmp_path / "page.html"
    lines = (",".join(["abc"[k], *map(repr, row)]) for k, row in zip(y, (4 * z).tolist(), strict=True))
    path.write_text("\n".join(["y,l0,l1,l2", *lines]))
    words = ["--y", "y", "--logits", "l0", "--logits", "l1", "--logits", "l2"]
    words += ["--label", "a", "--label", "b", "--label", "c"]
    result = safecal("evaluate", path, *words, "--report", page)
    assert result.status == 0, result.err
    command = codes(page.read_text("utf-8"))[0]
    assert all(word in shlex.split(command) for word in words)
    monkeypatch.chdir(tmp_path)
    assert safecal(*shlex.split(command)[1:]).status == 0


# In a browser

browser = pytest.fixture(scope="module")(started)


@pytest.mark.extra
@pytest.mark.no_cover
def test_it_fits_a_phone_and_is_accessible(browser: Any, tmp_path: Path) -> None:
    needs_axe()
    path = tmp_path / "page.html"
    path.write_text(report_html(evaluated(), fix=fixed(), fix_command="safecal recalibrate rows.csv"), encoding="utf-8")
    with visited(browser, path, width=360) as page:
        assert page.get_by_role("heading", name="What a fix would gain").is_visible()
        assert_it_fits(page)
        assert_it_is_accessible(page, 20)


def verdict_text(page: str) -> str:
    match = re.search(r'<section aria-labelledby="verdict".*?</section>', page, re.DOTALL)
    assert match is not None
    return " ".join(text(match[0]).split())


def test_what_to_do_names_the_map_that_the_report_took() -> None:
    taken = type(fixed().map.map).__name__.lower()
    said = verdict_text(report_html(evaluated(), fix=fixed(), command="safecal evaluate rows.csv"))
    assert f"Take the {taken} map below, and judge it by rows that it was not fitted to." in said
    assert f"{taken} , taken" in text(section(report_html(evaluated(), fix=fixed())))


def test_what_to_do_is_typed_as_at_the_door_of_the_report() -> None:
    in_python = verdict_text(report_html(evaluated()))
    in_shell = verdict_text(report_html(evaluated(), command="safecal evaluate rows.csv"))
    assert "safecal.recalibrate(y_true, y_prob) fits a shift" in in_python
    assert "safecal recalibrate fits a shift" in in_shell
    assert "safecal." not in in_shell
