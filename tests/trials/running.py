"""Running a trial as its team would: its own tests, and `mypy --strict` without this project's settings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.examples.running import ROOT

HERE: Final = Path(__file__).parent


def passed(trial: str, place: Path) -> int:
    """Run the tests of a trial in a directory of its own, and return how many have passed: all of them."""
    home = _copied(trial, place)
    # pytest-asyncio is installed for this project's own tests.
    told = _run(["-W", "error", "-m", "pytest", "-q", "-W", "error", "-p", "no:asyncio"], home, PYTHONPATH=str(ROOT))
    found = re.search(r"^(\d+) passed in", told, re.MULTILINE)
    assert found is not None, told
    return int(found[1])


def check_types(trial: str, place: Path) -> None:
    """Check the types of a trial strictly."""
    home = _copied(trial, place)
    files = [str(file) for file in sorted(home.rglob("*.py"))]
    path = os.pathsep.join([str(ROOT), str(home)])
    _run(["-m", "mypy", "--strict", "--config-file=", f"--cache-dir={place / 'cache'}", *files], place, MYPYPATH=path)


def _copied(trial: str, place: Path) -> Path:
    return Path(shutil.copytree(HERE / trial, place / trial, ignore=shutil.ignore_patterns("__pycache__")))


def _run(arguments: list[str], place: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=place,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
