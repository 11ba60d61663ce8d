"""Make the links of README.md absolute, in place: PyPI shows it alone, without the repository around it.

It is for workflows of GitHub, which set GITHUB_REPOSITORY and GITHUB_SHA. Usage: python readme_for_pypi.py
"""

import os
import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def absolute(text: str, repository: str, commit: str) -> str:
    """Return a page whose pictures and links name the files of one commit."""
    pages = f"https://github.com/{repository}/blob/{commit}"
    pictures = f"https://raw.githubusercontent.com/{repository}/{commit}"
    text = re.sub(r"(!\[[^\]]*\]\()(?![a-z]+:|#)", rf"\g<1>{pictures}/", text)
    text = re.sub(r'(<img src=")(?![a-z]+:)', rf"\g<1>{pictures}/", text)
    return re.sub(r"((?<!!)\[[^\]]*\]\()(?![a-z]+:|#)", rf"\g<1>{pages}/", text)


def main() -> None:
    """Rewrite the README."""
    text = README.read_text(encoding="utf-8")
    text = absolute(text, os.environ["GITHUB_REPOSITORY"], os.environ["GITHUB_SHA"])
    README.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
