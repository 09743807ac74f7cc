"""Running an example as its reader would: in a copy of its directory, with the Python that this suite has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"


def run(example: str, place: Path, *arguments: str, **variables: str) -> str:
    """Run Python with arguments in a copy of an example's directory, and return what it prints.

    Raises:
        AssertionError: It failed.
    """
    copy = place / example
    if not copy.exists():
        shutil.copytree(EXAMPLES / example, copy, ignore=shutil.ignore_patterns("__pycache__", "*.db*"))
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def suite(example: str, place: Path) -> str:
    """Run the tests of an example, and return the last line of what pytest says."""
    return run(
        example, place, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:asyncio"
    ).splitlines()[-1]
