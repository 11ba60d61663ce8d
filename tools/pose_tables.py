"""Make the table of docs/poses.md: NEES of right covariances where rotations are uncertain; and its picture.

    python tools/pose_tables.py
    python tools/pose_tables.py --picture poses.html    # the report of the page; needs Playwright and Chromium

The table stands between two comments in the page, and is replaced. The same seed gives the same table.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np

from safecal._kernels.states import Pose, exponential, logarithm, product, tangent_errors

PAGE = Path(__file__).resolve().parents[1] / "docs" / "poses.md"
PICTURE = PAGE.parent / "pictures" / "poses.png"
ROWS, STEPS, JITTER = 50_000, 10, 0.05
START, END = "<!-- tools/pose_tables.py: wide -->", "<!-- end of wide -->"


def nees(errors: np.ndarray, cov: np.ndarray) -> float:
    """Return the mean NEES a dimension."""
    white = np.linalg.solve(np.linalg.cholesky(cov), errors.T)
    return float((white * white).sum(axis=0).mean()) / len(cov)


def rotations(sigma: float, steps: int, rng: np.random.Generator) -> float:
    """Return what NEES a dimension is of rotations that are made of so many turns."""
    pose = exponential(np.zeros((ROWS, 3)))
    for _ in range(steps):
        pose = product(pose, exponential(sigma / np.sqrt(steps) * rng.normal(size=(ROWS, 3))))
    return nees(logarithm(pose), sigma**2 * np.eye(3))


def walk(sigma: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the same of a walk of ten metres in the plane, errors on the right and in the world."""
    noise = np.array([sigma / np.sqrt(STEPS), JITTER, JITTER])
    forward = np.array([[0.0, 1.0, 0.0]])
    truth, estimate, cov = exponential(np.zeros((ROWS, 3)), plane=True), exponential(np.zeros((1, 3)), plane=True), 0.0
    back = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])  # a turn one metre ago moves one to the left
    for _ in range(STEPS):
        step = product(exponential(np.repeat(forward, ROWS, axis=0), plane=True),
                       exponential(noise * rng.normal(size=(ROWS, 3)), plane=True))  # fmt: skip
        truth, estimate = product(truth, step), product(estimate, exponential(forward, plane=True))
        cov = back @ cov @ back.T + np.diag(noise**2) if np.ndim(cov) else np.diag(noise**2)
    assert estimate.position is not None
    all_ = Pose(np.repeat(estimate.rotation, ROWS), np.repeat(estimate.position, ROWS, axis=0))
    # It walked along x, so that the axes of the estimate are those of the world.
    right, world = (nees(tangent_errors(truth, all_, side), np.asarray(cov)) for side in ("right", "world"))
    return right, world


def wide() -> str:
    """Return the table."""
    lines = [
        "| rotation known to | one turn | ten turns | a walk, right | a walk, world |",
        "| --- | --- | --- | --- | --- |",
    ]
    for sigma in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5):
        rng = np.random.default_rng(0)
        cells = [rotations(sigma, 1, rng), rotations(sigma, STEPS, rng), *walk(sigma, rng)]
        lines.append(f"| {sigma:g} rad | {' | '.join(f'{cell:.2f}' for cell in cells)} |")
    return "\n".join(lines)


def photograph(report: str) -> None:
    """Take the pictures out of a report."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.goto(Path(report).resolve().as_uri())
        page.locator("section[aria-labelledby=track] .pictures").screenshot(path=str(PICTURE))


def main() -> None:
    """Replace the table in the page, or the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", metavar="REPORT", help="photograph this report instead")
    options = parser.parse_args()
    if options.picture is not None:
        photograph(options.picture)
        return
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    PAGE.write_text(f"{before}{START}\n\n{wide()}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
