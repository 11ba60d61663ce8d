"""Check a wheel that is installed in this environment, and the source archive it was built from.

Usage: python -I check_wheel.py [--kernel] WHEEL [SDIST]

The wheel must hold the compiled kernel where there is a compiler, and with --kernel everywhere.
"""

import argparse
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
LARGEST = 1_500_000  # bytes
KERNELS = {"safecal/_kernels/_compiled.abi3.so", "safecal/_kernels/_compiled.pyd"}


def faults(wheel: Path, sdist: Path | None, kernel: bool) -> list[str]:
    """Return what is wrong, one line each."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if not name.endswith("/")}  # a repaired wheel lists its folders
        metadata = Parser().parsestr(archive.read(_only(inside, ".dist-info/METADATA")).decode())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        *_size(wheel),
        *_contents(inside, kernel),
        *([] if sdist is None else _archived(sdist)),
        *_metadata(metadata.get_all("Requires-Dist") or [], metadata["License-Expression"], project),
        *_installed(project["version"], kernel),
    ]


def _only(names: set[str], ending: str) -> str:
    (name,) = (name for name in names if name.endswith(ending))
    return name


def _size(wheel: Path) -> list[str]:
    size = wheel.stat().st_size
    return [] if size <= LARGEST else [f"the wheel has {size} bytes, more than {LARGEST}"]


def _shipped() -> set[str]:
    source = ROOT / "src"
    return {
        path.relative_to(source).as_posix()
        for path in source.joinpath("safecal").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".so", ".pyd"}
    }


def _archived(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    return [f"the source archive lacks src/{name}" for name in sorted(_shipped()) if f"src/{name}" not in packed]


def _contents(inside: set[str], kernel: bool) -> list[str]:
    shipped = _shipped()
    code = {name for name in shipped if name.endswith(".c")}  # what is compiled is not shipped as it is
    complaints = [f"the wheel lacks {name}" for name in sorted(shipped - code - inside)]
    if kernel and not KERNELS & inside:
        complaints.append("the wheel holds no compiled kernel")
    strangers = {name for name in inside - shipped - KERNELS if ".dist-info/" not in name}
    complaints += [f"the wheel holds {name}" for name in sorted(strangers)]
    if "safecal/py.typed" not in inside:
        complaints.append("the wheel is not typed: safecal/py.typed is missing")
    if not any(re.fullmatch(r"safecal/schemas/[^/]+\.json", name) for name in inside):
        complaints.append("the wheel holds no schema")
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in inside):
        complaints.append("the wheel holds no licence")
    return complaints


def _metadata(requirements: list[str], licence: str | None, project: dict[str, object]) -> list[str]:
    core = {re.split(r"[^\w.-]", line)[0] for line in requirements if "extra ==" not in line}
    complaints = [] if core == CORE else [f"the wheel requires {sorted(core)}, not {sorted(CORE)}"]
    if licence != project["license"]:
        complaints.append(f"the wheel's licence is {licence}")
    return complaints


def _installed(version: str, kernel: bool) -> list[str]:
    safecal = importlib.import_module("safecal")
    location = Path(safecal.__file__).resolve()
    if not location.is_relative_to(Path(sys.prefix).resolve()):
        return [f"safecal was imported from {location}, not from the wheel"]
    versions = {
        "the installed package": importlib.metadata.version("safecal"),
        "safecal.__version__": safecal.__version__,
    }
    complaints = [
        f"{place} has version {value}, not {version}" for place, value in versions.items() if value != version
    ]
    for name in safecal.__all__:
        getattr(safecal, name)
    compiled = importlib.import_module("safecal._kernels.compiled")
    if kernel and not compiled.available():
        complaints.append("the compiled kernel cannot be loaded")
    if (value := safecal.ecd([1, 0], [0.9, 0.9])) <= 0:
        complaints.append(f"safecal.ecd gave {value} for an over-confident model")
    return complaints


def main() -> int:
    """Check the archives; return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", action="store_true")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("sdist", type=Path, nargs="?")
    given = parser.parse_args()
    complaints = faults(given.wheel, given.sdist, given.kernel or shutil.which("cc") is not None)
    print(*(complaints or [f"{given.wheel.name}: good"]), sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
