"""`python -m tests.fuzz`, which `make fuzz` calls."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.document import operations

pytestmark = pytest.mark.turn(2, "starts a server and fuzzes it")

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = len(list(operations()))


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "tests.fuzz", "--no-color", "--phases", "examples", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_it_fuzzes_a_sandbox_and_says_how_that_went() -> None:
    """A run without findings ends with 0, and has used the hooks."""
    done = fuzz("--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Selected: {OPERATIONS}/{OPERATIONS}" in done.stdout
    assert re.search(r"(\d+) generated, \1 passed", done.stdout)


def test_what_it_finds_shows_in_the_exit_status() -> None:
    """A run with findings ends with the status of Schemathesis: no answer comes within a microsecond."""
    done = fuzz("--max-response-time", "0.000001")
    assert done.returncode == 1, done.stdout + done.stderr
