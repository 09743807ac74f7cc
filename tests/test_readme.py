"""The README's example is the example that runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_readme_shows_the_example_that_is_run() -> None:
    """The README's code block is examples/embed.py, to the letter."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert blocks == [(ROOT / "examples" / "embed.py").read_text(encoding="utf-8")]


def test_the_embedding_example_sends_its_message(tmp_path: Path) -> None:
    """A reader who pastes the example into a file and runs it gets what the README says."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "embed.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    assert (done.returncode, done.stdout) == (0, "completed 1\n"), done.stderr
    assert (tmp_path / "app.db").exists()


def test_the_example_of_events_prints_a_campaign_to_its_end(tmp_path: Path) -> None:
    """It subscribes, and ends when the campaign has."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "events.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    told = "campaign active by operator\nrecipient 0 completed by provider_answer\ncampaign completed by ledger\n"
    assert (done.returncode, done.stdout) == (0, told), done.stderr


def test_the_two_commands_come_first() -> None:
    """The first commands of the README are `make demo` and `make test`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"```sh\n(.*?)```", readme, re.DOTALL)
    assert first is not None
    assert [line.partition("#")[0].strip() for line in first[1].splitlines()] == ["make demo", "make test"]
