"""A minute with safecal."""

import re

import pytest

from safecal import demo


def test_the_demo_shows_a_calibrated_and_an_over_confident_model(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    text = capsys.readouterr().out
    first, second = (float(value) for value in re.findall(r"^ECD +([+-]\d\.\d+)", text, re.MULTILINE))
    assert abs(first) < 0.02
    assert second > 0.05
    assert "over-confident" in text
    assert max(map(len, text.splitlines())) <= 80
