from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.running import EXAMPLES, ROOT, run, suite

FUNCTIONS = re.compile(r"^    (?:async )?def (?!_(?!_a))(\w+)", re.MULTILINE)


def test_a_campaign_runs_on_it_and_its_file_is_encrypted(tmp_path: Path) -> None:
    """Nobody reads it without its key."""
    plain = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:asyncio", "-k", "not TestContract"]
    assert run("own_storage", tmp_path, "-m", "pytest", *plain).splitlines()[-1].startswith("3 passed")


@pytest.mark.nightly("the contract suites of examples")
def test_it_keeps_the_contract(tmp_path: Path) -> None:
    """By the suite that ships."""
    assert "passed" in suite("own_storage", tmp_path)


def test_the_page_counts_its_functions() -> None:
    """A reader is told how many functions a storage takes."""
    parts = {
        "EncryptedBackend": "encrypted_storage.py",
        "EncryptedStorage": "encrypted_storage.py",
        "FileLock": "file_lock.py",
    }
    counted = 0
    for name, file in parts.items():
        text = (EXAMPLES / "own_storage" / file).read_text("utf-8")
        body = re.split(r"^(?=\S)", text[text.index(f"class {name}:") :], flags=re.MULTILINE)[1]
        counted += len([found for found in FUNCTIONS.findall(body) if found != "__init__"])
    assert f"{counted} functions" in (ROOT / "docs" / "own-storage.md").read_text("utf-8")
