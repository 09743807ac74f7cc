from __future__ import annotations

import csv
import io
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from openpyxl import load_workbook

from outreach import Outreach
from tests.cli.conftest import Cli
from tests.cli.test_explained import campaign_id

__all__ = ["Outreach", "campaign_id"]


def test_a_report_is_text_json_or_a_page(
    cli: Cli, campaign_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One failed at the carrier, and two wait; all three forms say so."""
    text = cli.tell("campaigns", "report", campaign_id)
    assert "filtered" in text
    assert "Register" in text or "registered" in text
    assert "unknown: set the workspace's prices" in " ".join(text.split())
    document = cli.ask("campaigns", "report", campaign_id)
    assert (document["contacts"], document["cost"]) == (3, None)
    assert document["messages"]["refused"] == 1
    assert {one["status"]: one["contacts"] for one in document["results"]} == {"pending": 2, "failed": 1}
    assert json.loads(cli.tell("campaigns", "report", campaign_id, "--format", "json")) | {"at": ""} == document | {
        "at": ""
    }
    page = tmp_path / "report.html"
    assert str(page) in cli.tell("campaigns", "report", campaign_id, "--output", str(page))
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert cli.tell("campaigns", "report", campaign_id, "--format", "html").endswith("</html>\n")
    plain = tmp_path / "report.txt"
    # As at a terminal, whose colours are no part of a file.
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.ask("campaigns", "report", campaign_id, "--output", str(plain)) == {"file": str(plain)}
    written = plain.read_text(encoding="utf-8")
    assert "filtered" in written
    assert "\x1b" not in written
    assert " \n" not in written


def test_a_report_that_cannot_be_written_leaves_the_one_before(
    cli: Cli, campaign_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves no half of a page under the name, and nothing beside it."""
    page = tmp_path / "pages" / "report.html"
    page.parent.mkdir()
    page.write_text("before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        told = cli.refuse("campaigns", "report", campaign_id, "--format", "html", "--output", str(page))
    assert "No space left" in told
    assert page.read_text() == "before"
    assert list(page.parent.iterdir()) == [page]
    cli.tell("campaigns", "report", campaign_id, "--output", os.devnull)


def test_an_export_goes_to_a_file_or_to_standard_output(cli: Cli, campaign_id: str, tmp_path: Path) -> None:
    """The name of the file decides the format; the file is as private as the database."""
    result = cli.run("campaigns", "export", campaign_id)
    rows = list(csv.DictReader(io.StringIO(result.stdout_bytes.decode("utf-8-sig"), newline="")))
    assert [row["phone"] for row in rows] == ["+14155550101", "+14155550102", "+14155550103"]
    assert [row["status"] for row in rows] == ["pending", "failed", "pending"]
    assert rows[1]["error_code"] == "30034"
    lines = cli.run("campaigns", "export", campaign_id, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["status"] for line in lines] == ["pending", "failed", "pending"]
    assert [one["status"] for one in cli.ask("campaigns", "export", campaign_id)] == ["pending", "failed", "pending"]
    details = [one["detail"] for one in cli.ask("audit") if one["action"] == "campaign.export"]
    assert details == ["jsonl, rows: 3", "jsonl, rows: 3", "csv, rows: 3"]
    for command, form in (("export", "csv"), ("report", "html")):
        told = cli.refuse("campaigns", command, campaign_id, "--format", form, "--json", code=2)
        assert "--output" in told
    file = tmp_path / "contacts.xlsx"
    told = cli.ask("campaigns", "export", campaign_id, "--output", str(file))
    assert told == {"file": str(file), "format": "xlsx", "bytes": file.stat().st_size}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    sheet = load_workbook(file).active
    assert sheet is not None
    assert sheet.max_row == 4


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes with names in directories")
def test_an_export_goes_into_a_pipe_or_through_a_link_that_is_there(cli: Cli, campaign_id: str, tmp_path: Path) -> None:
    """Neither is replaced: for root it may be /dev/null or /dev/stdout."""
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "contacts.csv"
    os.mkfifo(pipe)
    link.symlink_to(file)
    # Both ends, so that neither side waits for the other.
    with os.fdopen(os.open(pipe, os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0) as reader:
        told = cli.ask("campaigns", "export", campaign_id, "--output", str(pipe), "--format", "csv")
        assert pipe.is_fifo()
        assert len(reader.read(2**16)) == told["bytes"]
    file.write_text("of before", encoding="utf-8")
    told = cli.ask("campaigns", "export", campaign_id, "--output", str(link), "--format", "csv")
    assert link.is_symlink()
    assert file.stat().st_size == told["bytes"]
    assert list(tmp_path.glob(".*")) == []


def test_a_file_that_cannot_be_written_is_named(cli: Cli, campaign_id: str, tmp_path: Path) -> None:
    """And nothing is left of it."""
    for command, name in (("export", "a.csv"), ("report", "a.html")):
        told = cli.refuse("campaigns", command, campaign_id, "--output", str(tmp_path / "missing" / name))
        assert "Could not write" in told
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize("command", ["report", "export"])
def test_a_campaign_that_is_not_there(cli: Cli, workspace_id: str, command: str) -> None:
    """It is said which."""
    assert "019a9f6e" in cli.refuse("campaigns", command, "019a9f6e-7c3b-7d1e-8f00-3a5b6c7d8e9f")
