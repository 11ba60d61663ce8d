"""The step of `action.yml` that judges: run `safecal evaluate --gate` with the inputs of the action.

The inputs stand in variables `SAFECAL_FILE`, `SAFECAL_Y` and so on. The summary of the step shows the verdict, and the
status of this program is that of the gate.
"""

import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Mapping


def words(inputs: Mapping[str, str]) -> list[str]:
    """Return what to type after `safecal`.

    The options come first, since of an option that is given twice the last one counts: none undoes an input.
    """
    command = ["evaluate", *shlex.split(inputs.get("SAFECAL_OPTIONS", ""))]
    for name in ("y", "prob", "logits", "baseline", "report"):
        for value in _lines(inputs.get(f"SAFECAL_{name.upper()}", "")):
            command.append(f"--{name}={value}")
    if inputs.get("GITHUB_STEP_SUMMARY"):
        command.append(f"--summary={inputs['GITHUB_STEP_SUMMARY']}")
    return [*command, "--gate", "--", *_lines(inputs.get("SAFECAL_FILE", ""))]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def main() -> int:
    """Run the gate and return its status."""
    try:
        command = words(os.environ)
    except ValueError as error:  # a quote without its end: without the options, the gate would be another one
        print(f"safecal: the input `options` cannot be read: {error}.", file=sys.stderr)
        return _reported(2)
    # Names from the data may look like commands to the runner, such as "::add-mask::x": it obeys none until the token.
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", shlex.join(["safecal", *command]), sep="\n", flush=True)
    try:
        # -P: a module of the repository that is checked out here, named as one of ours, must not take its place.
        status = subprocess.run([sys.executable, "-P", "-m", "safecal", *command], check=False).returncode
    finally:
        print(f"::{token}::", flush=True)
    return _reported(status)


def _reported(status: int) -> int:
    if os.environ.get("GITHUB_OUTPUT"):
        with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
            file.write(f"status={status}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
