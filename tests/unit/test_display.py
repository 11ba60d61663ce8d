"""What a person sees: text that fits a terminal, HTML that is safe in a notebook."""

import math
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import safecal
from safecal import Interval
from safecal.html import unbroken
from safecal.judge.display import number, table_text
from safecal.judge.places import place_rows
from safecal.judge.verdict import direction

SCRIPT = "<script>alert(1)</script>"


def _text(result: safecal.Evaluation) -> str:
    """Return the text with VERDICT in the place of the verdict, and A to B in that of the ends of intervals."""
    text = repr(result)
    verdict = "\n".join(textwrap.wrap(str(result.verdict), 78))
    assert text.split("\n\n")[1] == verdict
    return re.sub(r"interval \S+ to [^:;]+([:;])", r"interval A to B\1", text.replace(verdict, "VERDICT"))


def test_an_evaluation_as_text() -> None:
    result = safecal.evaluate(
        [0, 1, 1, 0, 1, 0, 1],
        [0.1, 0.7, 0.9, 0.8, 0.6, 0.0, 0.0],
        bins=4,
        by=["north", None, "a name that is much too long", "south", "south", "south", "south"],
    )
    assert str(result.verdict).startswith("UNSAFE: 1 outcome happened that had probability 0.")
    assert _text(result) == (
        """\
safecal evaluation: 7 rows, two classes

VERDICT

where        rows     it says     happens  ECD from  allowed
------------------------------------------------------------
group south     4  15 % wrong  50 % wrong      +inf      0.1

What to do: Pass `logits=`, or probabilities with all their digits.

ECD              +inf  nat: an outcome the model called impossible happened
temperature    1.1987  95 % interval A to B; 1 is calibrated
mistakes            2  for 1.1 announced: 1.82 times, 0.22 to 6.57 at 95 %
p-value      < 0.0001  of calibration, exact test
impossible          1  of 7 rows had probability 0; ECD of the others +0.0422
NLL              +inf  nat, smaller is better; the model expected 0.4057
ECE            0.3286  (positive class) over-confident part 0.2286, under 0.1000
by chance      0.1714  ECE if calibrated; 95 % of the time at most 0.3000
ESCE          +0.1286  observed minus predicted
Brier          0.2729  smaller is better
accuracy       0.7143  at a mean confidence of 0.8429

probability   rows  predicted  observed     ECE     ESCE      ECD
-----------------------------------------------------------------
[0, 0.25)        3     0.0333    0.3333  0.3000  +0.3000     +inf
[0.5, 0.75)      2     0.6500    1.0000  0.3500  +0.3500  -0.2082
[0.75, 1]        2     0.8500    0.5000  0.3500  -0.3500  +0.4447
-----------------------------------------------------------------
weighted sum     7     0.4429    0.5714  0.3286  +0.1286     +inf
1 of 4 bins is empty, and not shown.

group                     rows  predicted  observed     ESCE      ECD
---------------------------------------------------------------------
south                        4     0.3500    0.5000  +0.1500     +inf
a name that is much t...     1     0.9000    1.0000  +0.1000  -0.2197
north                        1     0.1000    0.0000  -0.1000  -0.2197
missing                      1     0.7000    1.0000  +0.3000  -0.2542
---------------------------------------------------------------------
all rows                     7     0.4429    0.5714  +0.1286     +inf"""
    )


def test_an_evaluation_of_classes_names_the_bias_too() -> None:
    text = _text(safecal.evaluate([0, 1, 2], [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]], bins=2))
    assert text == (
        """\
safecal evaluation: 3 rows, 3 classes

VERDICT

ECD          +0.3486  nat, 95 % interval A to B: no clear direction
temperature   3.0496  95 % interval A to B; 1 is calibrated
mistakes           1  for 1.1 announced: 0.909 times, 0.023 to 5.07 at 95 %
p-value          0.5  of calibration, exact test
NLL           1.1919  nat, smaller is better; the model expected 0.8433
ECE           0.3667  (confidence) over-confident part 0.1667, under 0.2000
by chance     0.3467  ECE if calibrated; 95 % of the time at most 0.6333
ESCE         +0.0333  observed minus predicted
Brier         0.7133  smaller is better
accuracy      0.6667  at a mean confidence of 0.6333
bias         +0.0333  observed minus predicted, over all rows

confidence    rows  predicted  observed     ECE     ESCE      ECD
-----------------------------------------------------------------
[0, 0.5)         1     0.4000    1.0000  0.6000  +0.6000  -0.1726
[0.5, 1]         2     0.7500    0.5000  0.2500  -0.2500  +0.6092
-----------------------------------------------------------------
weighted sum     3     0.6333    0.6667  0.3667  +0.0333  +0.3486"""
    )


@pytest.mark.parametrize("bins", ["probability", "confidence"])
@pytest.mark.parametrize("columns", [1, 2])
def test_text_and_pages_say_which_ece_they_print(tmp_path: Path, columns: int, bins: str) -> None:
    p = np.array([0.2, 0.7, 0.9, 0.6] * 5)
    if columns == 2 and bins == "probability":
        bins = "confidence"
    y_prob = p if columns == 1 else np.column_stack([1 - p, p])
    result = safecal.evaluate([0, 1, 1, 0] * 5, y_prob, bin_on=bins, by=["a", "b"] * 10)
    which = "(positive class)" if columns == 1 and bins == "probability" else "(confidence)"
    other = {"(positive class)", "(confidence)"} - {which}
    result.report(tmp_path / "page.html")
    text, page, report = repr(result), result._repr_html_(), (tmp_path / "page.html").read_text()
    assert re.search(rf"^ECE +0\.\d{{4}}  {re.escape(which)} over-confident part", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 80
    assert f"{which} over-confident part" in page
    assert f"ECE {which}" in report
    assert not any(word in whole for word in other for whole in (text, page, report))


def test_a_table_of_groups_has_no_column_called_ece() -> None:
    result = safecal.evaluate([0, 1, 1, 0] * 5, [0.2, 0.7, 0.9, 0.6] * 5, by=["a", "b"] * 10)
    assert "ECE" in table_text(result.bins).splitlines()[0].split()
    assert "ECE" not in table_text(result.groups).split()
    assert ">ECE<" not in result.groups._repr_html_()


def test_states_have_fewer_columns() -> None:
    result = safecal.gaussian([[0.0, 1.0], [2.0, 3.0]], [[0.0, 0.0]] * 2, var=[1.0, 2.0]).evaluate(by=["a", "b"])
    assert _text(result) == (
        """\
safecal evaluation: 2 rows, states in 2 dimensions

VERDICT

where      rows  ECD from  allowed
----------------------------------
group b ?     1     -2.15      0.2
?  suspected: the estimate is beyond the limit, but its lower bound, which
   the table shows, is not: more rows would decide

ECD          +1.2500  nat, 95 % interval A to B: no clear direction
temperature   2.2500  95 % interval A to B; 1 is calibrated
p-value         0.12  of calibration, exact test
spread        1.5000  standard deviations 1.5 times too small (0.899 to 4.31)
by axis       1.5811  along axis 1 (0.755 to 14.1), the largest; smallest 1.41
coverage      0.5000  of ellipsoids of 90 %, 0.013 to 0.987
at 50 %       0.5000  coverage; 0.500 at 80 %, 0.500 at 95 %
NLL           4.4345  nat, smaller is better; the model expected 3.1845

group     rows      ECD
-----------------------
b            1  +3.2500
a            1  -0.7500
-----------------------
all rows     2  +1.2500"""
    )


def test_places_are_listed_after_the_verdict() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 3, (5000, 10))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    z[:, 3] += 2.5
    site = rng.choice(["\x1b[31mred", "a name that is much too long", *"bcdef"], 5000)
    result = safecal.evaluate(y, logits=1.3 * z, by=site)
    places = result.verdict.where
    assert len(places) > 5
    text = repr(result)
    table = text.split("\n\n")[2].splitlines()
    assert table[0].split() == ["where", "rows", "it", "says", "happens", "ECD", "from", "allowed"]
    assert [line[: len(place.brief)] for line, place in zip(table[2:7], places, strict=False)][:2] == [
        place.brief for place in places[:2]
    ]
    assert table[7] == f"and in {len(places) - 5} more places"
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    markup = result._repr_html_()
    assert f"<caption>Where it is over-confident, the worst 5 of {len(places)} places</caption>" in markup
    assert f">{unbroken(places[0].brief)}</th>" in markup


def test_mistakes_that_were_announced_stand_beside_those_that_were_made() -> None:
    text = repr(safecal.evaluate(np.arange(10**6) < 1921, np.full(10**6, 105e-6), bins=None))
    assert "mistakes         1921  for 105 announced: 18.3 times, 17.5 to 19.1 at 95 %\n" in text
    assert "mistakes" not in repr(safecal.gaussian([0.1, 0.2], [0.0, 0.0], std=1.0).evaluate())
    assert "for 0 announced\n" in repr(safecal.evaluate([1, 0], [1.0, 0.0], bins=None))


def test_one_row_is_one_row() -> None:
    assert repr(safecal.evaluate([1], [0.7])).startswith("safecal evaluation: 1 row, two classes\n")


def test_a_table_fits_80_columns() -> None:
    rng = np.random.default_rng(0)
    n = 10_000
    by = np.array(["x" * 60, "short"])[rng.integers(0, 2, n)]
    result = safecal.evaluate(rng.integers(0, 2, n), rng.random(n), by={"a long name of a column": by, "b": by})
    assert max(map(len, repr(result).splitlines())) <= 80


def test_group_keys_of_any_kind() -> None:
    keys = [1, 2.5, True, "text", None, ("a", 1), 10**12]
    by = np.empty(len(keys), dtype=object)
    by[:] = keys
    result = safecal.evaluate([1] * 7, [0.7] * 7, by=by, bins=None)
    lines = repr(result.groups).splitlines()
    for label in ("2.5", "text", "missing", "a / 1", "1000000000000"):
        assert any(line.startswith(f"{label} ") for line in lines), label
    assert len({len(line) for line in lines}) == 1


def test_rows_without_a_group_are_called_missing() -> None:
    n = 2000
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, n)
    y = rng.random(n) < 1 / (1 + np.exp(-z))
    by = np.where(np.arange(n) % 2 == 0, "north", None)
    result = safecal.evaluate(y, logits=np.where(np.arange(n) % 2 == 0, 1.0, 4.0) * z, by={"depot": by})
    assert "depot missing" in result.verdict.reason
    for text in (str(result.verdict), repr(result), result._repr_html_(), str(result.group_verdict(None))):
        assert "depot None" not in text
    assert result.groups.keys == ("north", None)
    assert safecal.Evaluation.from_dict(result.to_dict()).verdict == result.verdict


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31mred", "tab\there", "\u202eright to left"])
def test_names_that_would_garble_a_terminal_are_written_out(name: str) -> None:
    text = repr(safecal.evaluate([1, 0], [0.7, 0.2], by=[name, "b"]).groups)
    assert len(text.splitlines()) == 6
    assert len({len(line) for line in text.splitlines()}) == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)


def test_html_escapes_whatever_comes_from_the_data() -> None:
    result = safecal.evaluate([1, 0], [0.7, 0.2], by={SCRIPT: [SCRIPT, "a & b"]})
    for markup in (result._repr_html_(), result.groups._repr_html_()):
        assert "<script" not in markup
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in markup
        assert "a &amp; b" in markup


def test_html_holds_every_number_of_the_text() -> None:
    result = safecal.evaluate([0, 1, 1], [0.2, 0.7, 0.9], bins=3, by=["a", "b", "b"])
    numbers = re.findall(r"[+-]?\d\.\d{4}|N/A", repr(result))
    markup = result._repr_html_()
    assert all(n in markup for n in numbers)
    assert markup.count("<table>") == 3
    assert len(re.findall(r"<t[hd][ >]", markup)) == len(re.findall(r"</t[hd]>", markup))


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (math.nan, False, "N/A"),
        (math.inf, False, "+inf"),
        (-math.inf, True, "-inf"),
        (0.12345, False, "0.1235"),
        (0.12345, True, "+0.1235"),
        (-0.5, True, "-0.5000"),
        (1234567.0, True, "+1.235e+06"),
    ],
)
def test_numbers(value: float, signed: bool, text: str) -> None:
    assert number(value, signed=signed) == text


@pytest.mark.parametrize(
    ("low", "value", "high", "words"),
    [
        (0.01, 0.1, 0.2, "over-confident"),
        (-0.2, -0.1, -0.01, "under-confident"),
        (-0.1, 0.1, 0.3, "no clear direction"),
        (0.0, 0.0, 0.0, "no clear direction"),
        (math.inf, math.inf, math.inf, "an outcome the model called impossible happened"),
        (math.nan, math.nan, math.nan, "no rows"),
    ],
)
def test_the_direction_in_words(low: float, value: float, high: float, words: str) -> None:
    assert direction(Interval(value, low, high, 0.95, "")) == words


@pytest.mark.parametrize(
    ("y_true", "y_prob"),
    [([1, 0, 1], [0.0, 0.3, 0.8]), ([0, 0, 0], [0.99, 0.999, 0.9999]), ([1, 0], [0.5, 0.5]), ([1], [1.0])],
)
def test_an_evaluation_fits_80_columns_at_the_edge(y_true: list[int], y_prob: list[float]) -> None:
    lines = repr(safecal.evaluate(y_true, y_prob)).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].startswith(("SAFE: ", "UNSAFE: ", "UNDETERMINED: "))


def test_a_temperature_that_does_not_exist_is_not_shown() -> None:
    assert "temperature" in repr(safecal.evaluate([1, 0], [0.7, 0.2], bins=None))
    assert "temperature" not in repr(safecal.evaluate([1, 0], [0.5, 0.5], bins=None))


def test_empty_bins_are_counted_and_not_shown() -> None:
    result = safecal.evaluate([0, 1, 1], [0.2, 0.7, 0.9])
    lines = repr(result.bins).splitlines()
    assert "N/A" not in repr(result.bins)
    assert [line.split()[0] for line in lines[2:-3]] == ["[0.2,", "[0.7,", "[0.9,"]
    assert lines[-1] == "7 of 10 bins are empty, and not shown."
    assert "<p>7 of 10 bins are empty, and not shown.</p>" in result.bins._repr_html_()
    assert "bins" not in repr(safecal.evaluate([0, 1], [0.2, 0.7], bins=2).bins)


# Notebooks


def noted(**options: object) -> safecal.Evaluation:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 1000)
    y = rng.random(1000) < 1 / (1 + np.exp(-z))
    return safecal.evaluate(y, logits=2 * z, by={SCRIPT: rng.choice(["north", SCRIPT], 1000)}, **options)  # type: ignore[arg-type]


def test_a_notebook_shows_verdict_reason_pictures_and_numbers_in_this_order() -> None:
    result = noted()
    markup = result._repr_html_()
    order = ['<svg viewBox="0 0 48 48"', "<strong>UNSAFE</strong>", "Reliability diagram", "ECD along the predictions"]
    order += ["ECD of each group", ">temperature</th>", "<summary>10 bins by probability</summary>"]
    places = [markup.index(part) for part in order]
    assert places == sorted(places)
    assert markup.count('role="img"') == 3
    assert "<script" not in markup
    assert result.verdict.reason.split(":")[0][1:] in markup


def test_the_style_of_a_notebook_touches_nothing_outside_the_output() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", noted()._repr_html_(), re.DOTALL)
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", style)
    assert len(rules) > 40
    assert all(".safecal" in name for rule in rules for name in rule.split(","))
    assert re.sub(r"[^{}]+\{[^{}]*\}", "", style).strip() == "", "nothing but plain rules"


def test_what_is_named_in_a_picture_is_named_once_in_a_notebook() -> None:
    outputs = noted()._repr_html_() + noted(bins=5, threshold=0.2)._repr_html_() + result_of_states()._repr_html_()
    names = re.findall(r' id="([^"]*)"', result_of_states()._repr_html_() + noted()._repr_html_())
    assert names
    assert len(names) == len(set(names))
    assert set(re.findall(r'aria-labelledby="([^" ]*)', outputs)) <= set(re.findall(r' id="([^"]*)"', outputs))


def result_of_states() -> safecal.Evaluation:
    x = np.random.default_rng(1).normal(size=(100, 2))
    return safecal.gaussian(x, 0 * x, std=0.7).evaluate()


@pytest.mark.parametrize(
    "result",
    [
        safecal.evaluate([1], [0.7]),
        safecal.evaluate([1, 0], [1.0, 0.0]),
        safecal.evaluate([1, 0, 1], [0.5] * 3, bins=None),
        safecal.evaluate([1, 1], [0.0, 0.0], by=["a", "b"]),
        result_of_states(),
    ],
)
def test_a_notebook_shows_every_kind(result: safecal.Evaluation) -> None:
    markup = result._repr_html_()
    assert f"<strong>{result.verdict.decision}</strong>" in markup
    assert "nan" not in re.sub(r"<[^>]*>", "", markup.lower()).split()


def test_a_verdict_is_shown_by_itself() -> None:
    verdict = noted().verdict
    markup = verdict._repr_html_()
    assert "<strong>UNSAFE</strong>" in markup
    assert 'class="unsafe"' in markup
    assert "<table" not in markup


def test_a_column_that_no_place_fills_is_left_out(rng: np.random.Generator) -> None:
    p = rng.random(3000)
    wrong = safecal.evaluate(rng.random(len(p)) < np.where(p > 0.9, 0.5, p), p)
    assert set(place_rows(wrong.verdict.where, wrong.summary.weight)[0]) > {"it says", "happens"}
    errors = rng.multivariate_normal(np.zeros(2), [[1.0, 0.9], [0.9, 1.0]], 3000)
    states = safecal.gaussian(errors, np.zeros_like(errors), std=1.0).evaluate()
    rows = place_rows(states.verdict.where, states.summary.weight)
    assert list(rows[0]) == ["place", "rows", "share", "ECD at least", "allowed", "finding"]
    assert all(all(row.values()) for row in rows)
    assert ">it says<" not in states._repr_html_()


def test_groups_are_wrong_in_percent_with_weights_too(rng: np.random.Generator) -> None:
    z, group = rng.normal(0, 2, 4000), rng.choice(["a", "b"], 4000)
    y, weight = rng.random(4000) < 1 / (1 + np.exp(-z)), np.where(z > 0.0, 7.0, 3.0)
    result = safecal.evaluate(y, logits=3.0 * z, by=group, sample_weight=weight)
    (row,) = (row for row in place_rows(result.verdict.where, result.summary.weight) if row["place"] == "group a")
    wrong = np.average(y != (z > 0.0), weights=weight * (group == "a"))
    assert row["happens"] == f"{100.0 * wrong:.3g} % wrong"


def test_no_line_is_wider_than_a_terminal(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, (40_000, 2))
    y = rng.random(40_000) < 1 / (1 + np.exp(-z[:, 0]))
    sites = rng.choice([f"the {word} site of the company" for word in ("northern", "southern")], 40_000)
    tokens = safecal.bounded(np.full(300, -4.0), np.full((300, 3), -1.2), vocabulary=10, text="given")
    states = safecal.gaussian(3.0 * z, 0.0 * z, cov=np.tile(np.eye(2), (40_000, 1, 1)))
    for result in (safecal.evaluate(y, logits=3.0 * z[:, 0], by=sites), tokens.evaluate(), states.evaluate(by=sites)):
        assert max(map(len, repr(result).splitlines())) <= 80
