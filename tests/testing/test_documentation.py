from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from outreach.testing import plugin, virtual_time
from outreach.testing.scripted import Step

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "pytest_shop"
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


def test_the_example_project_passes(tmp_path: Path) -> None:
    """A reader who copies the project runs it with pytest alone."""
    project = shutil.copytree(EXAMPLE, tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-W", "error", "-c", os.devnull, "--rootdir", str(project)),
            *("-p", "no:asyncio", "-p", "no:cacheprovider"),
        ],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert re.search(r"^\d+ passed in", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_names_each_fixture() -> None:
    """The table of fixtures is that of the plugin."""
    fixtures = {name for name in vars(plugin) if name.startswith("outreach_")}
    assert set(re.findall(r"^\| `(outreach_\w+)` \|", PAGE, re.MULTILINE)) == fixtures


def test_the_page_names_each_way_to_script() -> None:
    """What a step can be followed by is in the tables."""
    methods = {name for name in vars(Step) if not name.startswith("_")} & {
        name for name in dir(Step) if callable(getattr(Step, name))
    }
    assert set(re.findall(r"`\.(\w+)\(", PAGE)) == methods


def test_the_page_shows_the_defaults_of_virtual_time() -> None:
    """Start and bounds are those of the loop."""
    assert f"Monday {virtual_time.START:%Y-%m-%d, %H:%M} UTC" in PAGE
    assert f"| {virtual_time.MAX_RUN.days} days |" in PAGE
    assert f"| {virtual_time.MAX_THREAD_SECONDS:g} |" in PAGE
    assert f"`change_poll_seconds` is {plugin.ENGINE_CONFIG.change_poll_seconds:g} there" in PAGE
