"""The published values, against a second transcription of them."""

import numpy as np
import pytest

from safecal.paper import PublishedColumn, joint_reading, published_table1, published_table2, readings_text

# Another transcription, in another form: bins 1 to 10, then the weighted sum.
TABLE_1 = """
.0074 .0181 .0066 .0306 .0059 .0193 .0011 .0015 .0131 .0007 .0077
.0074 -.0181 .0066 .0306 -.0059 -.0193 .0011 .0015 -.0131 .0007 .0003
.0231 -.0334 .0069 .0153 .0019 .0036 -.0057 .0012 .0242 -.0037 .0057
.2194 .2214 .1432 .0743 .0399 .0294 .0911 .1010 .1574 .2171 .1702
.2194 .2214 .1432 .0743 .0399 -.0294 -.0911 -.1010 -.1574 -.2171 .0035
2.1406 .3860 .1582 .0488 .0099 .0045 .0597 .1143 .2771 2.1415 1.2901
.4473 .3115 .2158 .1749 .0936 .0817 .0803 .2672 .3439 .4287 .4042
.4473 .3115 .2158 .1749 .0936 -.0817 -.0803 -.2672 -.3439 -.4287 .0064
4.995 .5701 .2529 .1148 .0264 .0246 .0534 .3034 .6044 4.8069 4.2405
"""
TABLE_2 = """
.0504 .2234 .1548 .2265 .0723 .0792 .1515 .2721 .4006 .2953 .0772
.0504 .2234 .1548 .2265 -.0723 -.0792 -.1515 -.2721 -.4006 -.2953 .0203
.3927 .3900 .1718 .1417 -.0213 .0019 .0952 .3014 .7424 1.5816 .4767
.0252 nan nan nan nan nan .3800 .2132 nan .0127 .0231
.0252 nan nan nan nan nan .3800 .2132 nan -.0127 .0109
.0640 nan nan nan nan nan -.1860 -.2784 nan .0649 .0602
.0384 .4531 .0882 .0192 .2952 .5455 .0880 .2696 .0266 .0439 .0456
.0384 .4531 -.0882 .0192 .2952 -.5455 .0880 -.2696 -.0266 -.0439 -.0049
.1407 .7836 -.0476 -.0006 .0408 .1008 -.0239 .2623 .0105 .1799 .1629
"""


def _again(text: str) -> np.ndarray:
    return np.array([line.split() for line in text.strip().splitlines()], dtype=float).reshape(3, 3, 11)


@pytest.mark.parametrize(("columns", "text"), [(published_table1(), TABLE_1), (published_table2(), TABLE_2)])
def test_every_cell_is_as_published(columns: tuple[PublishedColumn, ...], text: str) -> None:
    assert len(columns) == 3
    for column, expected in zip(columns, _again(text), strict=True):
        np.testing.assert_array_equal(column.values, expected)
        assert [len(row) for row in column.printed] == [11, 11, 11]


def test_the_noises_and_names() -> None:
    assert [column.sd for column in published_table1()] == [0.0, 0.5, 2.0]
    assert [column.sd for column in published_table2()] == [None, None, None]
    assert [column.name for column in published_table2()] == ["BERTimbau", "ResNet18", "RoBERTa"]


def test_one_cell_has_three_decimals() -> None:
    rounding = np.array([column.rounding for column in published_table1()])
    assert np.isclose(rounding, 0.00005, rtol=1e-9).sum() == 98
    assert rounding[2, 2, 0] == pytest.approx(0.0005)


def test_agreeing_is_rounding_to_the_printed_digits() -> None:
    column = published_table1()[0]
    assert column.agreeing(column.values).all()
    assert column.agreeing(column.values + 0.00004).all()
    assert not column.agreeing(column.values + 0.00006).any()
    resnet = published_table2()[1]
    assert resnet.agreeing(resnet.values).all()  # an empty bin agrees with an empty one
    assert not resnet.agreeing(np.zeros((3, 11)))[:, 1].any()


def test_joint_readings_agree_with_those_of_the_paper() -> None:
    unsafe = {"ε ~ N(0, 0.5²)", "ε ~ N(0, 2²)", "BERTimbau", "RoBERTa"}
    for column in (*published_table1(), *published_table2()):
        assert ("unsafe" in joint_reading(column)) == (column.name in unsafe)
        assert ("safe" in column.reading and "not safe" not in column.reading) == ("and safe" in joint_reading(column))
    text = readings_text()
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("paper:") == 6
    large_and_safe = PublishedColumn("x", None, ("0.2",) * 11, ("0.2",) * 11, ("-0.1",) * 11, "")
    assert joint_reading(large_and_safe) == "large gaps, but safe"
