"""Running a trial as its team would: as a program, and under `mypy --strict` without this project's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.examples.running import EXAMPLES, ROOT

HERE: Final = Path(__file__).parent
_PATH: Final = os.pathsep.join([str(ROOT), str(EXAMPLES / "own_dispatcher")])


def run(script: str, place: Path) -> list[str]:
    """Run a script in a directory, and return the lines that it prints."""
    return _run(["-W", "error", str(HERE / script), str(place)], place, PYTHONPATH=_PATH).splitlines()


def check_types(script: str, place: Path) -> None:
    """Check a script's types strictly."""
    _run(
        ["-m", "mypy", "--strict", "--config-file=", f"--cache-dir={place}", str(HERE / script)], place, MYPYPATH=_PATH
    )


def _run(arguments: list[str], place: Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=place,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
