"""A copy of the packages that a test edits, with a database of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres import server

ROOT = Path(__file__).parents[1]


def copy_packages(root: Path) -> None:
    """Copy both packages, with the contract."""
    for package in ("outreach", "outreach_server"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "openapi.yaml", root)
    (root / "outreach_server" / "openapi.yaml").symlink_to(root / "openapi.yaml")


def apply_page(page: str, root: Path) -> list[str]:
    """Make the edits of a page's blocks in a tree; return the names of the files."""
    names = []
    for block in re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        head, _, changes = block.partition("\n")
        names.append(head.removeprefix("+++ "))
        file = root / names[-1]
        text = file.read_text("utf-8") if file.exists() else ""
        for change in changes.split("@@\n"):
            lines = change.splitlines(keepends=True)
            before, after = ("".join(line[1:] for line in lines if line[0] != sign) for sign in "+-")
            assert not before or text.count(before) == 1, f"{file.name} does not have once:\n{before}"
            text = text.replace(before, after, 1)
        file.write_text(text, "utf-8")
    return names


@contextmanager
def empty_database(kind: str) -> Iterator[str]:
    """Yield the URL of a database that has nothing yet."""
    if kind == "sqlite":
        yield "sqlite:///trial.db"
        return
    with server().database() as name:
        yield server().url(name)


def run_trial(root: Path, code: str, kind: str) -> str:
    """Run a program with the copied packages, and the URL of an empty database as its argument; return its output."""
    with empty_database(kind) as url:
        done = subprocess.run(
            [sys.executable, "-c", code, url],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout
