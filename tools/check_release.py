"""Check that every place that names the version names the one in pyproject.toml, and the tag of a release with them.

Usage: python check_release.py [TAG]
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where the version stands beside pyproject.toml, which alone decides: a file, and the line that holds it.
PLACES = {"CITATION.cff": r"^version: *(\S+)$", "conda/recipe.yaml": r'^  version: "(\S+)"$'}
RELEASED = r"^## \[(\d\S*)\] - \d{4}-\d\d-\d\d$"


def faults(root: Path = ROOT, tag: str | None = None) -> list[str]:
    """Return what disagrees, one line each; without a tag, the changelog may have no release yet."""
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    named = {place: _first(root / place, line) for place, line in PLACES.items()}
    released = _first(root / "CHANGELOG.md", RELEASED)
    if tag is not None or released is not None:
        named["CHANGELOG.md"] = released
    if tag is not None:
        named["the tag"] = tag.removeprefix("v")
    return [f"{place} names version {value}, not {version}" for place, value in named.items() if value != version]


def _first(path: Path, line: str) -> str | None:
    match = re.search(line, path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else None


def main() -> int:
    """Check the places; return the exit status."""
    disagreements = faults(tag=sys.argv[1] if len(sys.argv) > 1 else None)
    print(*(disagreements or ["the versions agree"]), sep="\n")
    return 1 if disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
