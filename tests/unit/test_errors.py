"""The exception tree."""

import inspect
import re

import pytest

from safecal import errors


def test_every_error_is_a_safecal_error_and_a_value_error() -> None:
    for name in errors.__all__:
        error = getattr(errors, name)
        assert issubclass(error, errors.SafecalError)
        assert issubclass(error, ValueError)
        assert error.__doc__


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    classes = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    assert set(errors.__all__) == set(classes)
    drawn = re.findall(r"^([ │]*)[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE)
    assert {name for _, name in drawn} == set(classes)
    parents: list[str] = ["ValueError"]
    for indent, name in drawn:
        depth = len(indent) // 4 - 1
        base = classes[name].__bases__[0].__name__
        assert base == parents[depth], name
        parents[depth + 1 :] = [name]


@pytest.mark.parametrize("name", ["FormError", "ShapeError", "LabelError", "CovarianceError", "BinsError"])
def test_what_is_wrong_with_an_argument_is_an_input_error(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.InputError)
    assert not issubclass(errors.MergeError, errors.InputError)
