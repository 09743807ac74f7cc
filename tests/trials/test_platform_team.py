from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.examples.running import EXAMPLES, ROOT

SCRIPT = Path(__file__).with_name("platform_team.py")


def test_a_platform_team_gets_by_without_a_fork(tmp_path: Path) -> None:
    """Its own carrier and dispatcher, over HTTP with its own identities, and each contact is billed once."""
    path = os.pathsep.join([str(ROOT), str(EXAMPLES / "own_dispatcher")])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        *("401 201 ready", "401 201 ready"),
        *("403", "204"),
        "50 messages, 50 billed: completed",
    ]


def test_its_program_is_typed(tmp_path: Path) -> None:
    """Under `mypy --strict`, with nothing of this project's settings."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", str(SCRIPT)],
        env={**os.environ, "MYPYPATH": os.pathsep.join([str(ROOT), str(EXAMPLES / "own_dispatcher")])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
