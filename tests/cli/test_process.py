"""The end of a process of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT

SCRIPT = """
import atexit
import sys
from outreach_server import cli
from outreach_server.__main__ import run

class Kept:
    def __del__(self):
        print("deleted")

kept = Kept()

def main(**_):
    atexit.register(print, "registered")
    print("done")
    {ending}

cli.main = main
run()
"""


@pytest.mark.parametrize(("ending", "status"), [("sys.exit(0)", 0), ("sys.exit(130)", 130), ("raise ValueError", 1)])
def test_it_ends_with_the_status_of_the_command_and_deletes_nothing_before(ending: str, status: int) -> None:
    """What others registered for the end is called, and what was printed is there."""
    script = SCRIPT.format(ending=ending)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "done\nregistered\n")
    assert ("Traceback" in done.stderr) == (ending == "raise ValueError")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_what_cannot_be_written_at_the_end_is_reported() -> None:
    """As Python does."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(ending="sys.exit(0)")],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 120
    assert "No space left on device" in done.stderr
