"""Every command that the documentation shows is one that the command line takes: nobody copies a line that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from tests.cli.test_commands import COMMANDS, options
from tests.documents import blocks
from tests.documents.blocks import ALL, ROOT, SHELL
from tests.documents.commands import PROGRAM, arguments_of, check, command_lines

PAGES: Final = [str(path.relative_to(ROOT)) for path in blocks.PAGES]


def mentions(page: str) -> Iterator[str]:
    """Yield what a page names within its text, which may leave out what a command needs."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in re.findall(rf"`{PROGRAM}\s+([^`]+)`", text):
        yield " ".join(found.split())
    if page == "docs/cli.md":
        first = "|".join({name.partition(" ")[0] for name in COMMANDS})
        yield from re.findall(rf"`((?:{first}) [^`]+)`", text)


SHOWN: Final = [
    (block.page, arguments)
    for block in ALL
    if block.language in SHELL
    for line in command_lines(block.text)
    if (arguments := arguments_of(line)) is not None
]
NAMED: Final = [(page, text) for page in PAGES for text in mentions(page)]


@pytest.mark.parametrize(("page", "text"), SHOWN)
def test_what_is_shown_can_be_typed(page: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Command, arguments, options and the kinds of their values."""
    monkeypatch.chdir(tmp_path)
    check(text, tmp_path)


@pytest.mark.parametrize(("page", "text"), NAMED)
def test_what_is_named_in_a_sentence_is_there(page: str, text: str) -> None:
    """A command or a group of them, and each option that stands behind it."""
    words = [word for word in text.split() if not word.isupper()]
    path = " ".join(word for word in words if re.fullmatch(r"[a-z][a-z-]*", word))
    named = {word for word in words if word.startswith("--")}
    if path in COMMANDS:
        assert named <= options(COMMANDS[path])
    else:
        assert any(name.startswith(f"{path} ") for name in COMMANDS), path


@pytest.mark.parametrize(
    "wrong",
    [
        "serve --public-urls https://outreach.example.com",
        "accounts connects WORKSPACE_ID twilio",
        "test-send WORKSPACE_ID --to",
        "numbers create WORKSPACE_ID +14155550199 --carrier pigeon",
        "accounts check",
        "calls show 17",
    ],
)
def test_what_cannot_be_typed_is_noticed(wrong: str, tmp_path: Path) -> None:
    """The control."""
    with pytest.raises(click.UsageError):
        check(wrong, tmp_path)


def test_the_guides_show_commands() -> None:
    """Each guide of a provider does, and so does the README; else nothing was looked at."""
    pages = {page for page, _ in SHOWN}
    guides = {page for page in PAGES if page.startswith(("docs/carriers/", "docs/voice/"))}
    assert len(guides) == 6
    assert pages >= {"README.md", "docs/provider-callbacks.md", "docs/opt-out.md", *guides}
    for guide in guides:
        shown = " ".join(text for page, text in SHOWN if page == guide)
        assert all(step in shown for step in ("accounts connect", "accounts check", "serve", "test-send"))
        first = next(text for page, text in SHOWN if page == guide)
        assert first.startswith("workspaces create NAME --live"), guide
    assert {text for page, text in NAMED if page == "README.md"} >= {"sandbox"}
