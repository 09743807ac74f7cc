"""Every command that the documentation shows is one that the command line takes: nobody copies a line that fails."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import pytest

from outreach.testing.builders import new_id
from outreach_server.cli.root import main
from tests.cli.test_commands import COMMANDS, options

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = sorted(["README.md", *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))])
PROGRAM: Final = "outreach-server"


def lines(page: str) -> list[str]:
    """Return the lines of a page, those that go on behind a backslash as one."""
    return re.sub(r"\\\n\s*", "", (ROOT / page).read_text(encoding="utf-8")).splitlines()


def command_lines(page: str) -> Iterator[str]:
    """Yield what a page shows to be typed, without the program's name: lines of their own."""
    for line in lines(page):
        text = line.strip().removeprefix("$ ")
        if text.startswith(f"{PROGRAM} ") and line != text:
            yield text.removeprefix(f"{PROGRAM} ")


def mentions(page: str) -> Iterator[str]:
    """Yield what a page names within its text, which may leave out what a command needs."""
    for found in re.findall(rf"`{PROGRAM}\s+([^`]+)`", "\n".join(lines(page))):
        yield " ".join(found.split())


SHOWN: Final = [(page, text) for page in PAGES for text in command_lines(page)]
NAMED: Final = [(page, text) for page in PAGES for text in mentions(page)]


def parse(command: click.Command, words: Sequence[str], parent: click.Context | None = None) -> None:
    """Have the command line read words, and do nothing about them.

    Raises:
        click.UsageError: It does not take them.
    """
    with command.make_context(command.name if parent else PROGRAM, list(words), parent=parent) as context:
        if isinstance(command, click.Group):
            rest: Any = [*context._protected_args, *context.args]
            _, found, left = command.resolve_command(context, rest)
            assert found is not None
            parse(found, left, context)


def check(text: str, place: Path) -> None:
    """Hold a command line against the command line, with files and identifiers for those that it names."""
    words = shlex.split(text, comments=True)
    for number, word in enumerate(words):
        if re.fullmatch(r"[A-Z]+_ID", word):
            words[number] = new_id()
        elif re.fullmatch(r"\w+\.(json|csv)", word):
            (place / word).write_text("{}", encoding="utf-8")
    parse(main, words)


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


def test_every_option_that_the_reference_names_is_one_of_its_command() -> None:
    """docs/cli.md, a section for each command; those that all take are explained at its top."""
    sections = re.split(r"^### `", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(sections) == len(COMMANDS)
    for section in sections:
        known = max((one for one in COMMANDS if section.startswith(one)), key=len)
        body = section.partition("\n## ")[0]
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(re.findall(r"`([^`]*)`", f"`{body}"))))
        assert named <= options(COMMANDS[known]), known


@pytest.mark.parametrize(
    "wrong",
    [
        "serve --public-urls https://outreach.example.com",
        "accounts connects WORKSPACE_ID twilio",
        "test-send WORKSPACE_ID --to",
        "numbers add WORKSPACE_ID +14155550199 --carrier pigeon",
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
    assert pages >= {"README.md", "docs/webhooks.md", "docs/opt-out.md", *guides}
    for guide in guides:
        shown = " ".join(text for page, text in SHOWN if page == guide)
        assert all(step in shown for step in ("accounts connect", "accounts check", "serve", "test-send"))
        first = next(text for page, text in SHOWN if page == guide)
        assert first.startswith("workspaces create NAME --live"), guide
    assert {text for page, text in NAMED if page == "README.md"} >= {"sandbox"}
