"""What to paste into a bug report."""

from importlib import metadata

import pytest

import safecal
from safecal import _optional


def test_show_versions_names_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert safecal.show_versions() is None
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["numpy"] == metadata.version("numpy")
    assert {"python", "system", "safecal", "scipy", "torch"} <= set(lines)


def test_a_library_that_is_absent_is_said_to_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(_optional.metadata, "version", absent)
    safecal.show_versions()
    assert "torch         not installed" in capsys.readouterr().out
    assert _optional.version() == "not installed"


def test_the_version_is_that_of_the_package() -> None:
    assert safecal.__version__ == _optional.version()
