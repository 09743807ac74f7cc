"""Whether requests were held against the providers' documents is said, and where they were to be they must be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests import provider_documents

ROOT: Final = Path(__file__).parent.parent


def test_what_was_held_against_the_providers_documents_is_said(record_property: Callable[[str, object], None]) -> None:
    """In the summary of every run; where the variable names their directory, all of them are there."""
    where, absent = provider_documents.directory(), provider_documents.missing()
    if not absent:
        record_property("summary", f"providers' documents: requests were held against those in {where}")
        return
    record_property(
        "summary",
        f"providers' documents: NOT CHECKED, requests were held against no {', '.join(absent)}: not in {where}; "
        f"{provider_documents.VARIABLE} names the directory that has them",
    )
    assert not os.environ.get(provider_documents.VARIABLE), f"{where} lacks {absent}"


def test_a_document_that_is_named_and_is_not_there_fails_its_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Skipped is only what nobody promised."""
    monkeypatch.setenv(provider_documents.VARIABLE, str(tmp_path))
    assert list(provider_documents.missing()) == list(provider_documents.DOCUMENTS)
    with pytest.raises(pytest.fail.Exception, match=r"retell_call\.json is not there"):
        provider_documents.load("retell_call")
    monkeypatch.delenv(provider_documents.VARIABLE)
    monkeypatch.setattr(provider_documents, "directory", lambda: tmp_path)
    with pytest.raises(pytest.skip.Exception, match=provider_documents.VARIABLE):
        provider_documents.load("retell_call")


def test_every_document_is_asked_for() -> None:
    """By a test of its own provider."""
    texts = [
        path.read_text(encoding="utf-8")
        for place in ("carriers", "voice")
        for path in (ROOT / "tests" / place).rglob("test_*.py")
    ]
    asked = {name for text in texts for name in re.findall(r'"(\w+)"', text)}
    assert set(provider_documents.DOCUMENTS) <= asked


GATES = (
    *("environments", "check", "test", "fuzz-tests"),
    *("demo", "contract", "contract-tools", "wheel-check", "binary-check"),
)


@pytest.mark.parametrize("there", [True, False])
def test_the_gates_say_whether_the_documents_are_there(tmp_path: Path, there: bool) -> None:
    """One line, before the gates, as of a browser; found ones are named to the tests, which then may skip none."""
    checkout = tmp_path / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    (checkout / ".pytest_cache" / "d" / "suite").mkdir(parents=True)
    (checkout / ".pytest_cache" / "d" / "suite" / "left").write_text("all is left\n")
    script = checkout / ".ci" / "run"
    script.write_text((ROOT / ".ci" / "run").read_text(encoding="utf-8"), encoding="utf-8")
    (checkout / "Makefile").write_text(
        f'{" ".join(GATES)}:\n\t@echo "$@ [$$OUTREACH_PROVIDER_DOCUMENTS]"\n',
        encoding="utf-8",
    )
    place = tmp_path / "shared" / "providers"
    if there:
        place.mkdir(parents=True)
    # What a make around this one has set would have the one in here say more.
    left_out = {provider_documents.VARIABLE, "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=True, env=environment)
    said, *lines = done.stdout.splitlines()
    # Some run at the same time.
    gates = sorted(line for line in lines if not line.startswith("==>"))
    browser = [line for line in lines if "Chromium: " in line]
    if shutil.which("chromium") or shutil.which("chromium-browser"):
        assert [line.partition("found")[1] for line in browser] == ["found"]
    else:
        # Once more as the last line, behind all else.
        assert browser == [browser[0], lines[-1]]
        assert "NOT CHECKED" in browser[0]
    if there:
        assert said == f"==> providers' documents: found in {place}; the tests that need them must run"
        assert gates == sorted(f"{gate} [{place}]" for gate in GATES)
    else:
        assert "NOT CHECKED" in said
        assert "OUTREACH_PROVIDER_DOCUMENTS" in said
        assert gates == sorted(f"{gate} []" for gate in GATES)
