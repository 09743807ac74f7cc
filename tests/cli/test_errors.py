from __future__ import annotations

import getpass
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from outreach import NewWorkspace, Outreach
from outreach_server.cli.base import actor, unwrapped
from tests.cli.conftest import DEADLINE, ROOT, Cli, Start, Write, until


@pytest.mark.parametrize(
    ("database", "problem"),
    [
        ("nonsense", "'nonsense' names no database"),
        ("redis://localhost", "names no database"),
        ("sqlite:////nowhere/at/all/x.db", "/nowhere/at/all"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_database_that_cannot_be_opened_is_reported_in_words(
    database: str, problem: str, more: tuple[str, ...]
) -> None:
    """There is no traceback, and nothing on stdout."""
    assert problem in Cli(database).refuse("workspaces", "list", *more)


def test_a_file_that_is_no_database_is_reported_in_words(tmp_path: Path) -> None:
    """A slip in --database does not overwrite somebody's file."""
    file = tmp_path / "letter.txt"
    file.write_text("Dear Sir or Madam, " * 1000)
    assert "letter.txt" in Cli(f"sqlite:///{file}").refuse("workspaces", "list")
    assert file.read_text().startswith("Dear Sir")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_database_that_is_not_there_is_not_made_by_a_slip(tmp_path: Path, more: tuple[str, ...]) -> None:
    """An empty database must not look like one in which everything is gone."""
    file = tmp_path / "outraech.db"
    for command in (["workspaces", "list"], ["stop"], ["campaigns", "show", "0195554e-0000-7000-8000-00000000beef"]):
        told = Cli(f"sqlite:///{file}").refuse(*command, *more)
        assert str(file) in told
        assert "outreach-server workspaces create NAME" in told
        assert list(tmp_path.iterdir()) == []
    Cli(f"sqlite:///{file}").ask("workspaces", "create", "Acme")
    assert [one["name"] for one in Cli(f"sqlite:///{file}").ask("workspaces", "list")] == ["Acme"]


def test_an_empty_file_is_no_database(tmp_path: Path) -> None:
    """Commands that only look leave it as it is; the one that makes a database makes it there."""
    file = tmp_path / "outreach.db"
    file.touch()
    for command in (["status"], ["workspaces", "list"]):
        assert "it is empty" in Cli(f"sqlite:///{file}").refuse(*command)
        assert file.stat().st_size == 0
    Cli(f"sqlite:///{file}").ask("workspaces", "create", "Acme")
    assert [one["name"] for one in Cli(f"sqlite:///{file}").ask("workspaces", "list")] == ["Acme"]


def test_a_failing_system_call_is_reported_in_words(cli: Cli, workspace_id: str) -> None:
    """The file and the reason, no traceback."""
    args = ("campaigns", "import", workspace_id, "-", "--name", "C", "--message", "Hi")
    assert "No space left" in cli.refuse(*args, "--rejects", "/dev/full", stdin=b"phone\n" + b"bad\n" * 5000)


def test_several_wrong_values_are_reported_one_a_line(cli: Cli, workspace_id: str) -> None:
    """Each by itself: a command line has no index."""
    for command in ("add", "remove"):
        told = cli.refuse("unsubscribes", command, workspace_id, "abc", "+14155550101", "555-0102")
        assert told == (
            "Error: 2 problems:\n"
            "  'abc' is not a phone number; write it like +14155550102\n"
            "  '555-0102' is not a possible number of US without its area code; write it like +14155550102\n"
        )
        told = cli.refuse("unsubscribes", command, workspace_id, "abc")
        assert told == "Error: 'abc' is not a phone number; write it like +14155550102\n"


@pytest.mark.parametrize("command", ["sandbox", "demo"])
def test_commands_with_a_database_of_their_own_take_none(cli: Cli, command: str) -> None:
    """An option that would do nothing is refused; the environment may name one for the other commands."""
    assert "creates a temporary database" in cli.refuse("--database", "sqlite:///x.db", command, code=2)


def test_the_first_error_of_a_group_is_reported_as_itself() -> None:
    """People are told one thing at a time, however deep it lies."""
    with pytest.raises(KeyError, match="a"), unwrapped():
        raise BaseExceptionGroup("outer", [ExceptionGroup("inner", [KeyError("a"), ValueError("b")])])


def test_an_operator_without_a_name_is_known_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user need not have a name."""

    def nobody() -> str:
        raise KeyError

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert actor() == f"cli:{os.getuid()}"


def test_ctrl_c_ends_a_command_cleanly(cli: Cli, workspace_id: str, csv_file: Write, start: Start) -> None:
    """With the status that shells expect, and no traceback."""
    file = csv_file("phone\n+14155550101\n")
    made = cli.ask("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi")
    process = start("campaigns", "watch", made["id"])
    process.says("draft  0/1 ended  1 pending")
    process.signal(signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.strip() == "Interrupted."


@pytest.mark.turn(2, "interrupts a process for each delay")
@pytest.mark.parametrize("apart_seconds", [0.0, 0.0002, 0.001, 0.005, 0.02])
def test_two_quick_ctrl_cs_end_a_command_as_one_does(
    cli: Cli, workspace_id: str, csv_file: Write, start: Start, apart_seconds: float
) -> None:
    """The second one finds the database being closed, and does not break into that."""
    file = csv_file("phone\n+14155550101\n")
    made = cli.ask("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi")
    process = start("campaigns", "watch", made["id"])
    process.says("draft  0/1 ended  1 pending")
    process.signal(signal.SIGINT)
    time.sleep(apart_seconds)  # what is tried is how far apart they are
    process.signal(signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.strip() == "Interrupted."


def test_ctrl_c_breaks_into_a_read_that_stands_still(cli: Cli, workspace_id: str, start: Start, tmp_path: Path) -> None:
    """Somebody who types a file at a terminal, or pipes one that does not come, gets out; nothing was created."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start("campaigns", "import", workspace_id, str(pipe), "--name", "C", "--message", "Hi")
    with pipe.open("wb", buffering=0) as feed:
        feed.write(b"phone\n" + b"".join(b"+1415%07d\n" % n for n in range(2_000_000, 2_020_000)))
        loading = Path(cli.database.removeprefix("sqlite:///"))
        until(lambda: _is_loading(loading), "a campaign that is being loaded")
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    assert cli.ask("campaigns", "list", workspace_id) == []
    assert not [entry for entry in cli.ask("audit", workspace_id) if entry["action"] == "campaign.create"]


@pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="nothing tells where a process stands still")
@pytest.mark.parametrize(
    "command", [("unsubscribes", "import", "W", "-"), ("accounts", "connect", "W", "twilio", "--file", "-")]
)
def test_ctrl_c_breaks_into_a_read_of_standard_input(
    workspace_id: str, command: tuple[str, ...], database: str
) -> None:
    """At a terminal nothing comes until somebody types."""
    with _reading_standard_input([workspace_id if word == "W" else word for word in command], database) as process:
        process.send_signal(signal.SIGINT)
        _ended_as_interrupted(process)


@contextmanager
def _reading_standard_input(args: Sequence[str], database: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command and wait until it stands still in a read of its standard input, to which nothing comes."""
    environment = {**os.environ, "OUTREACH_DATABASE_URL": database, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "outreach_server", *args],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        try:
            until(partial(_reads, process.pid), "a read that stands still")
            yield process
        finally:
            process.kill()


def _ended_as_interrupted(process: subprocess.Popen[str]) -> None:
    assert process.wait(DEADLINE) == 130
    assert process.stderr is not None
    assert process.stderr.read().strip() == "Interrupted."


def _reads(number: int) -> bool:
    return "pipe" in Path(f"/proc/{number}/wchan").read_text()


def _is_loading(database: Path) -> bool:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as books:
        return bool(books.execute("SELECT 1 FROM campaigns WHERE loading_until IS NOT NULL").fetchone())


def test_a_closed_stdout_prints_no_error(cli: Cli, start: Start) -> None:
    """`… | head` prints what it prints."""

    async def create() -> None:
        async with Outreach.open(cli.database) as engine:
            for number in range(300):
                await engine.workspaces.create(NewWorkspace(name=f"{number}" + "x" * 240))

    anyio.run(create)
    read, write = os.pipe()
    os.close(read)
    try:
        process = start("workspaces", "list", "--json", stdout=write)
        assert process.wait() == 1
    finally:
        os.close(write)
    assert process.stderr == ""


@pytest.mark.soak("interrupts two processes for each delay")
@pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="nothing tells where a process stands still")
@pytest.mark.parametrize("apart_seconds", [0.0, 0.0005])
def test_several_ctrl_cs_end_a_read_before_anything_is_opened_as_one_does(
    workspace_id: str, database: str, apart_seconds: float
) -> None:
    """The second one finds the command saying that it was interrupted, or the interpreter on its way out."""
    args = ("campaigns", "import", workspace_id, "-", "--name", "C", "--message", "Hi")
    for _ in range(2):
        with _reading_standard_input(args, database) as process:
            for _ in range(10):
                process.send_signal(signal.SIGINT)
                time.sleep(apart_seconds)  # what is tried is how far apart they are
            _ended_as_interrupted(process)
