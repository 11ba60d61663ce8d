"""The history page as text: what it says, what it draws, and that nothing from the data becomes markup."""

import math
import re
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pytest

from safecal import Evaluation
from safecal.html import grouped
from safecal.monitor import Monitor
from safecal.watch.history import MOST_WINDOWS, History, Point, Raised, window_slots
from safecal.watch.page import history_page
from safecal.watch.page_pictures import STRETCHES, thinned

from .histories import CASES, HOSTILE, SCRIPT, history_of, watched

VOID = {"br", "meta", "link"}


class Reader(HTMLParser):
    """Read a page; every element must be closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.proof if case.startswith("many") else ()) for case in CASES]
)
def test_every_page_is_whole(case: str) -> None:
    text = history_page(history_of(case))
    page = Reader(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    named = [attributes["aria-labelledby"] for _, attributes in page.tags if "aria-labelledby" in attributes]
    assert {part for name in named for part in str(name).split()} <= set(ids)
    assert not re.search(r"\b(nan|NaN|None|inf)\b", page.text)
    assert "http:" not in text.replace("http-equiv", "")
    assert "https:" not in text
    assert len(text.encode()) < 250_000
    created = datetime(2026, 1, 2, tzinfo=UTC)
    assert history_page(history_of(case), created=created) == history_page(history_of(case), created=created)


@pytest.mark.parametrize(
    ("case", "title", "tone", "words"),
    [
        (
            "drift",
            "OVER-CONFIDENT",
            "unsafe",
            "It changed at about row 7204, too sharp: ECD 0.12, beyond the limit of 0.1.",
        ),
        ("small", "NOT CALIBRATED", "undetermined", "It was not calibrated since the start, too sharp: ECD 0.0"),
        ("small change", "CHANGED", "undetermined", "It is too sharp, but within the limits since then"),
        ("relaxed", "UNDER-CONFIDENT", "undetermined", "too vague: ECD -0."),
        ("relaxed", "UNDER-CONFIDENT", "undetermined", "evidence that it became under-confident; "),
        ("shifted", "SHIFTED", "undetermined", "The event happens more often than the model says"),
        ("badly shifted", "SHIFTED", "unsafe", "shifted up: the event happens more often than it says,"),
        ("quiet", "NO ALARM", "calm", "No alarm does not prove that the model is calibrated."),
        ("cautious", "UNDER-CONFIDENT", "undetermined", "right more often than it says"),
        ("one group", "OVER-CONFIDENT IN A GROUP", "unsafe", "All rows together raise no alarm"),
        ("impossible", "OVER-CONFIDENT", "unsafe", "1 row had an outcome of probability 0."),
        ("acknowledged", "WAS OVER-CONFIDENT", "undetermined", "The alarm since the start stays: it is about all rows"),
        ("one batch", "NO ALARM", "calm", "After 400 rows"),
        ("nothing", "NO ROWS YET", "undetermined", "No batch has been taken in."),
    ],
)
def test_the_state_in_words(case: str, title: str, tone: str, words: str) -> None:
    text = history_page(history_of(case))
    page = Reader(text)
    assert f"<title>{title}: Is this model still calibrated?</title>" in text
    assert ("body", {"class": tone}) in page.tags
    assert title in page.texts
    assert words in page.text


@pytest.mark.parametrize("case", ["small", "small change"])
def test_what_evaluate_calls_safe_may_be_relied_on(case: str) -> None:
    history = history_of(case)
    text = Reader(history_page(history)).text
    monitor = history.monitor
    assert {raised.alarm.direction for raised in history.alarms} == {"over-confident"}
    changed = [raised.alarm.began for raised in history.alarms if raised.alarm.kind == "change"]
    names = monitor.judged(changed[-1]) if changed else monitor.judged()
    verdict = Evaluation.of(sum(map(monitor.tally, names[1:]), monitor.tally(names[0]))).verdict
    assert verdict.decision == "SAFE"
    assert f"safecal.evaluate would judge windows {names[0]} to {names[-1]}: {verdict}" in re.sub(
        "[\xa0\u202f]", " ", text
    )
    assert "Do not rely on its certainty" not in text
    assert "You can still rely on its confidence, within the limits." in text
    assert "Do not rely on its confidence meanwhile." in Reader(history_page(history_of("drift"))).text


def test_a_group_within_the_limits_is_not_called_over_confident() -> None:
    rng = np.random.default_rng(3)
    monitor = Monitor(grouped=True, run_length=1e300)
    z = rng.normal(0, 2, 8000)
    y = (rng.random(8000) < 1 / (1 + np.exp(-z))).astype(int)
    small = np.arange(8000) % 2 == 0
    new_alarms = monitor.update(y, logits=np.where(small, 1.25, 0.9) * z, by=np.where(small, "a", "b"), window="all")
    assert {alarm.group for alarm in new_alarms if alarm.direction == "over-confident"} == {"a"}
    alarms = tuple(Raised(alarm, "2026-01-01T00:00:00+00:00", "1") for alarm in new_alarms)
    point = Point.of("1", "all", "2026-01-01T00:00:00+00:00", monitor.summary, monitor)
    text = Reader(history_page(History(monitor, (point,), alarms))).text
    assert "NOT CALIBRATED IN A GROUP" in text
    assert "too sharp, within the limits" in text
    assert "Do not rely on its certainty" not in text


def test_a_change_within_a_window_is_not_hidden_by_the_rows_before_it() -> None:
    history = watched([1.0] * 20 + [2.0], windows=["all"] * 21)
    assert Evaluation.of(history.monitor.tally("all")).verdict.decision == "SAFE"
    assert "Do not rely on its confidence meanwhile." in Reader(history_page(history)).text


def test_the_last_window_is_judged() -> None:
    history = history_of("drift")
    verdict = Evaluation.of(history.monitor.tally()).verdict
    row = f"verdict {verdict.decision} of window 2026-01-30, as safecal.evaluate would judge it: "
    row += verdict.reason
    assert row in re.sub("[\xa0\u202f]", " ", Reader(history_page(history)).text)


def test_since_when() -> None:
    history = history_of("drift")
    changed = next(raised for raised in history.alarms if raised.alarm.kind == "change")
    text = Reader(history_page(history)).text
    assert f"about row {changed.alarm.began}, too sharp" in text
    assert f"Row {changed.alarm.began} came in window {history.monitor.window_of(7204)} ." in text
    assert f"The alarm was raised at row {changed.alarm.row}, on 2026-01-05 18:00:00 UTC." in text
    assert "once in 100\N{NARROW NO-BREAK SPACE}000 rows" in history_page(history)


def test_the_numbers() -> None:
    text = Reader(history_page(history_of("drift"))).text
    assert "12 rows or files were set aside, because they could not be read" in text
    assert "last update 2026-01-08 06:00:00 UTC" in text
    assert "2 raised so far" in text


def test_alarms_are_marked_and_listed() -> None:
    history = history_of("drift")
    page = Reader(history_page(history))
    marks = [attributes for tag, attributes in page.tags if attributes.get("class") == "alarm-mark"]
    assert len(history.alarms) == 2
    assert len(marks) == 4  # each in the windows, and each in its own evidence
    described = re.findall(r"Raised at row ([^.]*)\.", page.text)  # for a screen reader: as the table of alarms says
    assert described == [grouped(raised.alarm.row) for raised in reversed(history.alarms)]
    assert "changed, too sharp" in page.text
    assert "not calibrated since the start, too sharp" in page.text
    assert "all along" not in page.text
    assert all(str(raised.alarm.size) in page.text for raised in history.alarms)
    assert "The alarms" not in Reader(history_page(history_of("quiet"))).text


def test_a_run_length_that_nobody_counts_is_a_power_of_ten() -> None:
    history = deepcopy(history_of("drift"))
    history.monitor.run_length = 1e300
    text = Reader(history_page(history)).text
    assert "10³⁰⁰ rows between two false alarms" in text
    assert not re.search(r"\d[\d\s]{40}", text)


def test_more_alarms_than_a_page_holds() -> None:
    history = history_of("drift")
    text = history_page(replace(history, alarms=history.alarms * 150))
    assert text.count('scope="row" class="n"') == 200
    assert "100 earlier alarms are left out." in text


@pytest.mark.proof
def test_groups_worst_first() -> None:
    history = history_of("groups")
    text = history_page(history)
    names = re.findall(r'<tr class="beyond"><th scope="row"><bdi>(.*?)</bdi>', text)
    assert sorted(names) == sorted(history.monitor.groups)
    margins = [history.monitor.log_change(group=g) - history.monitor.threshold(group=g).log_run_length for g in names]
    assert margins == sorted(margins, reverse=True)
    assert "3 groups are over-confident by themselves" in text
    many = history_page(history_of("many groups"))
    assert "50 of 250 groups are left out, none with stronger evidence than those shown." in many


def test_infinite_evidence_is_drawn_and_said() -> None:
    text = history_page(history_of("impossible"))
    assert "infinite" in Reader(text).text
    assert text.count('class="endless halo"') == 2
    assert ">∞</text>" in text
    points = re.findall(r'points="([^"]*)"', text)
    assert all(math.isfinite(float(x)) for path in points for pair in path.split() for x in pair.split(","))


@pytest.mark.proof
def test_many_windows_are_added_up() -> None:
    history = history_of("many windows")
    windows, unit = window_slots(history)
    assert unit == "window"
    assert len(windows) <= MOST_WINDOWS
    assert sum(slot.summary.n for slot in windows) == history.monitor.summary.n == 8000
    assert "The 200 windows are too many to draw: neighbours are added up to 67." in Reader(history_page(history)).text


def test_windows_that_were_closed_are_missed() -> None:
    monitor = Monitor(max_windows=2)
    for name in "abc":
        monitor.update([0, 1, 1], [0.2, 0.7, 0.9], window=name)
    points = tuple(Point(name, name, "2026-01-01T00:00:00Z", monitor.summary, 0.0, 0.0, 0.0) for name in "c")
    text = Reader(history_page(History(monitor, points))).text
    assert "3 rows of earlier windows, or without a window, are not drawn." in text


@pytest.mark.proof
def test_ten_thousand_batches_are_thinned_out() -> None:
    history = history_of("one batch")
    point = history.points[0]
    points = tuple(replace(point, batch=str(k), log_over=math.sin(k / 500.0), window=None) for k in range(10_000))
    text = history_page(replace(history, points=points))
    assert len(text.encode()) < 100_000
    note = "Of 10\N{NARROW NO-BREAK SPACE}000 batches, the highest and the last of each of 188 stretches are drawn."
    assert text.count(note) == 3
    assert "ECD by batch" in text


def test_thinning_keeps_what_matters() -> None:
    points = [(k, 0.0) for k in range(5000)]
    points[1234] = (1234, 9.0)
    kept = thinned(points)
    assert len(kept) <= 2 * STRETCHES + 1
    assert {(0, 0.0), (1234, 9.0), (4999, 0.0)} <= set(kept)
    assert kept == sorted(kept)
    assert thinned(points[:300]) == points[:300]
    assert thinned([(0, float(k)) for k in range(1000)])[-1] == (0, 999.0)


def test_what_comes_from_the_data_is_escaped() -> None:
    history = history_of("hostile")
    hostile = replace(history, points=tuple(replace(p, batch=SCRIPT) for p in history.points))
    text = history_page(hostile, title=SCRIPT)
    page = Reader(text)
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not any(tag in ("img", "iframe") for tag, _ in page.tags)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert SCRIPT in page.texts
    assert HOSTILE[1] in page.texts
    assert r"\ud800 half" in page.texts
    assert text.encode().decode() == text
