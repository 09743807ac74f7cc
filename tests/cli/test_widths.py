"""What a terminal of 80 columns shows: no word, time or id is broken."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pytest
from rich.console import Console

from outreach_server.cli.output import Document, listing
from tests.cli.conftest import Cli, Write
from tests.cli.test_explained import campaign_id

__all__ = ["campaign_id"]

ID = "01a21c84-142d-7000-85b9-9d4189bbf90f"
HEADS = {
    *("at", "default_region", "detail", "due_at", "external_id", "id", "phone", "rate_per_minute", "Times", "trunk_id"),
    "UTC",
}
"""What may stand above a column only: a block has no name for its head, and none for what is missing."""

AT = "2026-11-27T10:19:07.693789Z"


def printed(documents: Sequence[Document], columns: Sequence[str], *, width: int, zone: str = "UTC") -> str:
    """Return a list as a terminal of that width shows it."""
    out = io.StringIO()
    Console(file=out, width=width, markup=False, highlight=False).print(listing(documents, columns, zone))
    return out.getvalue()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the output that of a terminal with 80 columns and no colours."""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")


def words_of(text: str) -> set[str]:
    """Return the words of a text that have a letter or digit."""
    return {word.rstrip(":") for word in text.split() if word[:1].isalnum()}


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_word_is_broken_whatever_the_width(width: int) -> None:
    """A table where all fit, else a block for each."""
    documents = [
        {"id": ID, "name": "Herbsterinnerung an alle Patienten", "effective_status": "completed", "created_at": AT},
        {"id": ID, "name": "Spring", "effective_status": "paused", "created_at": AT},
    ]
    columns = ("id", "name", "effective_status", "created_at")
    shown = printed(documents, columns, width=width, zone="Europe/Berlin")
    assert max(map(len, shown.splitlines())) <= width
    for word in (ID, "Herbsterinnerung", "Patienten", "effective_status", "completed", "2026-11-27 11:19:07"):
        assert word in shown
    assert "Europe/Berlin" in shown


def test_what_fits_is_a_table() -> None:
    """Long texts wrap at spaces, and a time stays on a line."""
    shown = printed([{"at": AT, "why": "because of " * 20}], ("at", "why"), width=80)
    assert [line.split() for line in shown.splitlines()[1:3]] == [["at"], ["UTC", "why"]]
    assert "2026-11-27 10:19:07   because" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_block_leaves_out_what_is_missing_and_wraps_long_texts() -> None:
    """Each field has its name, and the first one is the head."""
    shown = printed([{"id": ID, "name": None, "why": "a long explanation " * 8}], ("id", "name", "why"), width=50)
    assert shown.startswith(f"{ID}\n  why: a long explanation")
    assert "name" not in shown
    assert max(map(len, shown.splitlines())) <= 50


@pytest.mark.usefixtures("narrow")
def test_the_columns_of_an_import_keep_their_words(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """What each column is, and its first values, also where a table has no room for them."""
    file = csv_file(
        "Telefonnummer,Vorname,Behandlungszimmer\n"
        "+14155550101,Ann,Untersuchungsraum\n+14155550102,Ben,Untersuchungsraum\n+14155550103,Cy,Labor im Erdgeschoss\n"
    )
    told = cli.tell("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi")
    for word in ("phone_number", "first_name", "{{Behandlungszimmer}}", "Untersuchungsraum", "Erdgeschoss", "row 4"):
        assert word in told
    assert not [line for line in told.splitlines() if len(line) > 80 and "Telefonnummer" in line]


@pytest.mark.usefixtures("narrow")
def test_long_texts_of_a_register_are_wrapped_below_their_line(
    cli: Cli, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By words, and indented; a pipe gets one line each."""
    evidence = "wrote to us that all calls have to end, " * 12 + "x" * 100
    cli.ask("unsubscribes", "add", workspace_id, "+14155550108", "--evidence", evidence)
    cli.ask("unsubscribes", "add", workspace_id, "+14155550109", "--evidence", "by phone")
    _, _, first, *below, last = cli.tell("unsubscribes", "list", workspace_id).splitlines()
    assert first.startswith("+14155550108")
    assert last.startswith("+14155550109")
    assert all(line.startswith("    ") and len(line) <= 80 for line in below)
    assert " ".join(line.strip() for line in below).startswith("wrote to us that all calls have to end, wrote")
    assert "".join(below).count("x") == 100
    monkeypatch.delenv("TTY_COMPATIBLE")
    assert any(line.endswith(evidence) for line in cli.tell("unsubscribes", "list", workspace_id).splitlines())


@pytest.mark.usefixtures("narrow")
def test_every_list_fits_into_80_columns(
    cli: Cli, workspace_id: str, campaign_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`why`, `list`, `recipients`, and all others that have an id."""
    cli.tell("campaigns", "update", campaign_id, "--name", "Herbsterinnerung an alle Patienten der Praxis am Park")
    cli.tell("unsubscribes", "add", workspace_id, "+14155550109", "--evidence", "asked by phone")
    for command in (
        ("campaigns", "list", workspace_id),
        ("campaigns", "why", campaign_id, "+14155550102"),
        ("campaigns", "show", campaign_id),
        ("campaigns", "report", campaign_id),
        ("campaigns", "recipients", campaign_id),
        ("campaigns", "forecast", campaign_id),
        ("campaigns", "preflight", campaign_id),
        ("workspaces", "list"),
        ("numbers", "list", workspace_id),
        ("unsubscribes", "list", workspace_id),
        ("audit", workspace_id),
    ):
        shown = cli.tell(*command)
        assert not [line for line in shown.splitlines() if len(line) > 80], (command, shown)
        with monkeypatch.context() as piped:
            piped.delenv("TTY_COMPATIBLE")
            wide = cli.tell(*command)
        # Files, diffs and other programs would keep spaces at the ends.
        assert [line for line in wide.splitlines() if line != line.rstrip()] == []
        expected, words = _words_without_figures(wide), _words_without_figures(shown)
        assert words >= expected - HEADS, (command, expected - words)


def _words_without_figures(text: str) -> set[str]:
    """Return the words of a text with each digit as a zero: the time goes on between two calls."""
    return {re.sub("[0-9]", "0", word) for word in words_of(text)}
