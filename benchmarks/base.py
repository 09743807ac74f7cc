"""An earlier version in a place of its own: its files, an environment for it, and the benchmark's sides of today."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from benchmarks.settings import ROOT, Base


def check_out(ref: str, kept: Path) -> Base:
    """Put a version where it can be run; one that is there from an earlier run is used again.

    Args:
        ref: Anything that git knows as a commit.
        kept: Where it is put, below its commit.

    Raises:
        RuntimeError: git knows no such commit, or it could not be installed.
    """
    commit = _run("git", "-C", str(ROOT), "rev-parse", "--verify", f"{ref}^{{commit}}").decode().strip()
    root = kept / f"base-{commit[:12]}"
    python = root / ".venv" / "bin" / "python"
    installed = root / ".installed"
    if not installed.exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        with tarfile.open(fileobj=BytesIO(_run("git", "-C", str(ROOT), "archive", commit))) as archive:
            archive.extractall(root, filter="data")
        _run(sys.executable, "-m", "venv", str(root / ".venv"))
        _run(str(python), "-m", "pip", "install", "--quiet", "--no-input", "--editable", f"{root}[all]")
        installed.touch()
    # What is measured is that version; what measures it is ours.
    shutil.rmtree(root / "benchmarks", ignore_errors=True)
    shutil.copytree(ROOT / "benchmarks", root / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))
    return Base(ref=ref, root=root, python=python)


def _run(*command: str) -> bytes:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
