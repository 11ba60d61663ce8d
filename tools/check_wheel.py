"""Check a wheel that is installed in this environment, and the source archive it was built from.

Usage: python -I check_wheel.py WHEEL SDIST
"""

import importlib
import importlib.metadata
import re
import shutil
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = {"numpy", "scipy"}


def faults(wheel: Path, sdist: Path) -> list[str]:
    """Return what is wrong, one line each."""
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        metadata = Parser().parsestr(archive.read(_only(inside, ".dist-info/METADATA")).decode())
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        *_contents(inside, packed),
        *_metadata(metadata.get_all("Requires-Dist") or [], metadata["License-Expression"], project),
        *_installed(project["version"]),
    ]


def _only(names: set[str], ending: str) -> str:
    (name,) = (name for name in names if name.endswith(ending))
    return name


def _contents(inside: set[str], packed: set[str]) -> list[str]:
    source = ROOT / "src"
    shipped = {
        path.relative_to(source).as_posix()
        for path in source.joinpath("safecal").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }
    code = {name for name in shipped if name.endswith(".c")}  # what is compiled is not shipped as it is
    found = [f"the wheel lacks {name}" for name in sorted(shipped - code - inside)]
    found += [f"the source archive lacks src/{name}" for name in sorted(shipped) if f"src/{name}" not in packed]
    kernel = "safecal/_kernels/_compiled.abi3.so"
    if kernel not in inside and shutil.which("cc"):
        found.append("the wheel holds no compiled kernel, although there is a compiler")
    strangers = {name for name in inside - shipped - {kernel} if ".dist-info/" not in name}
    found += [f"the wheel holds {name}" for name in sorted(strangers)]
    if "safecal/py.typed" not in inside:
        found.append("the wheel is not typed: safecal/py.typed is missing")
    if not any(re.fullmatch(r"safecal/schemas/[^/]+\.json", name) for name in inside):
        found.append("the wheel holds no schema")
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in inside):
        found.append("the wheel holds no licence")
    return found


def _metadata(requirements: list[str], licence: str | None, project: dict[str, object]) -> list[str]:
    core = {re.split(r"[^\w.-]", line)[0] for line in requirements if "extra ==" not in line}
    found = [] if core == CORE else [f"the wheel requires {sorted(core)}, not {sorted(CORE)}"]
    if licence != project["license"]:
        found.append(f"the wheel's licence is {licence}")
    return found


def _installed(version: str) -> list[str]:
    safecal = importlib.import_module("safecal")
    location = Path(safecal.__file__).resolve()
    if not location.is_relative_to(Path(sys.prefix).resolve()):
        return [f"safecal was imported from {location}, not from the wheel"]
    citation = re.search(r"^version: *(\S+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    versions = {
        "the installed package": importlib.metadata.version("safecal"),
        "safecal.__version__": safecal.__version__,
        "CITATION.cff": citation[1] if citation else None,
    }
    found = [f"{place} has version {value}, not {version}" for place, value in versions.items() if value != version]
    for name in safecal.__all__:
        getattr(safecal, name)
    compiled = importlib.import_module("safecal._kernels.compiled")
    if shutil.which("cc") and not compiled.available():
        found.append("the compiled kernel cannot be loaded")
    if (value := safecal.ecd([1, 0], [0.9, 0.9])) <= 0:
        found.append(f"safecal.ecd gave {value} for an over-confident model")
    return found


def main() -> int:
    """Check the two archives; return the exit status."""
    wheel, sdist = map(Path, sys.argv[1:])
    found = faults(wheel, sdist)
    print(*(found or [f"{wheel.name}: good"]), sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
