from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from outreach_server.cli.sigint import EXIT_INTERRUPTED
from tests.cli.conftest import DEADLINE, ROOT, STOP_SIGNALS, Cli, Start
from tests.migrations import LATER, later_version, record_migrations

TWILIO = {"account_sid": f"AC{'0' * 32}", "auth_token": "0" * 32}


def path_of(database: str) -> Path:
    """Return the file of a database's URL."""
    return Path(database.removeprefix("sqlite:///"))


def test_a_backup_is_made_and_restored(cli: Cli, database: str, tmp_path: Path) -> None:
    """What was made after it is gone again, and kept beside it; people are told what follows."""
    cli.ask("workspaces", "create", "First")
    file = tmp_path / "backup.db"
    made = cli.ask("db", "backup", str(file))
    assert made == {"file": str(file), "bytes": file.stat().st_size, "key_file": None}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "exists already" in cli.refuse("db", "backup", str(file))
    cli.ask("db", "backup", str(file), "--overwrite")
    cli.ask("workspaces", "create", "Second")
    told = cli.tell("db", "restore", str(file))
    assert "paused at the next start" in told
    [replaced] = tmp_path.glob("*.before-restore-*[0-9]Z")
    assert f"--skip-contacted-in {replaced}" in " ".join(told.split())
    assert [one["name"] for one in cli.ask("workspaces", "list")] == ["First"]
    done = cli.ask("db", "restore", str(file))
    assert done["pending_migrations"] == done["accounts_in_trouble"] == []
    kept = Cli(f"sqlite:///{done['kept']}")
    assert [one["name"] for one in kept.ask("workspaces", "list")] == ["First"]


def test_the_key_is_mentioned_and_an_account_that_needs_another_one_is_named(
    cli: Cli, database: str, workspace_id: str, tmp_path: Path
) -> None:
    """The backup has no key in it; restored elsewhere, whose credentials cannot be opened is said."""
    cli.ask("accounts", "connect", workspace_id, "twilio", "--file", "-", stdin=json.dumps(TWILIO).encode())
    file, elsewhere = tmp_path / "backup.db", tmp_path / "elsewhere"
    elsewhere.mkdir()
    key = f"{path_of(database)}.key"
    assert cli.ask("db", "backup", str(file))["key_file"] == key
    assert key in cli.tell("db", "backup", str(file), "--overwrite")
    there = Cli(f"sqlite:///{elsewhere / 'other.db'}")
    (trouble,) = there.ask("db", "restore", str(file))["accounts_in_trouble"]
    assert trouble["provider"] == "twilio"
    assert "key" in trouble["problem"]
    assert "Account " in there.tell("db", "restore", str(file))
    shutil.copy(key, elsewhere / "other.db.key")
    assert there.ask("db", "restore", str(file))["accounts_in_trouble"] == []


def test_a_check_ends_with_1_where_something_is_wrong(cli: Cli, database: str, workspace_id: str) -> None:
    """And says how to fix it."""
    found = cli.ask("db", "check")
    assert (found["ok"], found["problems"], found["pending_migrations"]) == (True, [], [])
    assert cli.ask("db", "check", "--quick")["ok"]
    with closing(sqlite3.connect(path_of(database))) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("DELETE FROM sqlite_schema WHERE name = (SELECT min(name) FROM sqlite_schema WHERE type = 'index')")
        raw.commit()
    result = cli.run("db", "check")
    assert result.exit_code == 1
    assert "outreach-server db restore FILE" in result.stderr


CHANGES = {f"900{number}_later": f"CREATE TABLE later_{number} (a)" for number in range(1, 6)}


def test_only_serve_and_migrate_change_an_older_database(cli: Cli, database: str) -> None:
    """Every other command says what to run."""
    cli.ask("workspaces", "create", "A")
    # What the commands before have left in the log.
    with closing(sqlite3.connect(path_of(database))) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path_of(database).read_bytes()
    with later_version(CHANGES):
        for command in (["workspaces", "list"], ["workspaces", "create", "B"], ["stop"], ["audit"]):
            assert "outreach-server db migrate" in cli.refuse(*command)
        assert path_of(database).read_bytes() == before
        assert cli.ask("db", "check")["pending_migrations"] == list(CHANGES)
        older = path_of(database).with_name("older.db")
        older.write_bytes(before)
        # People read a line, and programs every name.
        span = "9001_later to 9005_later (5)"
        assert f"its migrations {span} are pending" in cli.refuse("audit")
        assert f"It lacks {span}." in cli.tell("db", "check")
        assert f"applied              {span}" in Cli(f"sqlite:///{older}").tell("db", "migrate").splitlines()
        assert cli.ask("db", "migrate")["applied"] == list(CHANGES)
        assert "up to date" in cli.tell("db", "migrate")
        assert [one["name"] for one in cli.ask("workspaces", "list")] == ["A"]


def test_the_commands_say_which_databases_they_know(tmp_path: Path) -> None:
    """One in memory has no file, and one that is not there is not made."""
    memory, absent = Cli("memory://"), Cli(f"sqlite:///{tmp_path / 'absent.db'}")
    for command in (["backup", str(tmp_path / "x")], ["check"], ["migrate"]):
        assert "sqlite:///" in memory.refuse("db", *command)
        assert "There is no database" in absent.refuse("db", *command)
    assert list(tmp_path.iterdir()) == []


def test_a_database_is_compacted_and_the_old_file_is_kept(cli: Cli, database: str, workspace_id: str) -> None:
    """It says both sizes and where the old one is; with --delete-old there is none."""
    done = cli.ask("db", "compact")
    assert done["bytes"] == path_of(database).stat().st_size
    assert done["bytes_before"] == Path(done["kept"]).stat().st_size
    assert [one["id"] for one in cli.ask("workspaces", "list")] == [workspace_id]
    assert "delete it when you do not need it" in cli.tell("db", "compact")
    assert cli.ask("db", "compact", "--delete-old")["kept"] is None
    assert "autovacuum" in Cli("postgresql://localhost/x").refuse("db", "compact")


STOPPED = """
import os, sys
from pathlib import Path
from outreach.storage.sqlite import copying
from outreach_server.cli import main

def stopped(raw, *, quick):
    file = Path(sys.argv[2])
    assert len(list(file.parent.glob(file.name + ".*.part"))) == 1
    os.kill(os.getpid(), int(sys.argv[1]))
    return []

copying.integrity_problems = stopped
main(["db", "backup", sys.argv[2]])
"""
"""A backup that gets a signal while it has half a copy."""


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_backup_that_is_stopped_leaves_nothing_behind(cli: Cli, tmp_path: Path, number: signal.Signals) -> None:
    """Half a copy of the database, one for each run of a script with `timeout`, would fill the disk."""
    cli.ask("workspaces", "create", "First")
    before = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, str(int(number)), str(tmp_path / "backup.db")],
        cwd=ROOT,
        env={**os.environ, "OUTREACH_DATABASE_URL": cli.database},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (EXIT_INTERRUPTED, "Interrupted.")
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture
def archive_file(cli: Cli, database: str, workspace_id: str) -> Path:
    """Return an archive that an upgrade of the program has left behind, in a place whose name a shell would split."""
    rows = path_of(database).with_name("list.csv")
    rows.write_text("phone,first_name\n+14155550101,Ann\n")
    campaign = cli.ask("campaigns", "import", workspace_id, str(rows), "--name", "C", "--message", "Hi")["id"]
    cli.ask("campaigns", "cancel", campaign)
    with closing(sqlite3.connect(path_of(database))) as raw, raw:
        raw.execute("UPDATE campaigns SET completed_at = '2020-01-01T00:00:00.000000Z'")
    directory = path_of(database).with_name("old campaigns")
    directory.mkdir()
    file = directory / "archive.db"
    cli.ask("db", "archive", "--before", "2021-01-01", "--to", str(file))
    return file


def test_the_command_for_an_archive_file_works_as_doctor_prints_it(cli: Cli, archive_file: Path) -> None:
    """It is pasted into a shell, and the archive is no finding afterwards."""

    def findings() -> list[dict[str, Any]]:
        found = json.loads(cli.run("doctor", "--offline", "--json").stdout)["findings"]
        return [one for one in found if one["code"] == "archive_missing"]

    with later_version():
        # The database is migrated when it is used, and its archive is not.
        cli.ask("db", "migrate")
        (finding,) = findings()
        (command,) = finding["commands"]
        assert command in cli.run("doctor", "--offline").stdout
        program, *words = shlex.split(command)
        assert program == "outreach-server"
        assert LATER in cli.tell(*words)
        assert findings() == []
        assert cli.ask("db", "archives")[0]["problem"] is None


@pytest.mark.parametrize("option", ["--dispatch", "--no-dispatch"])
def test_a_server_names_an_archive_that_it_cannot_read_at_its_start(
    start: Start, archive_file: Path, option: str
) -> None:
    """Once, whether it sends or not: both answer requests that need it."""
    record_migrations(archive_file, "9999_later")
    process = start("serve", "--port", "0", "--json", option)
    process.document()
    assert process.stderr.count("it has 9999_later. Install that version.") == 1


def test_campaigns_are_archived_and_read_from_the_archive(cli: Cli, database: str, workspace_id: str) -> None:
    """`campaigns why` and `export` tell what they told before; an archive that is away is named."""
    rows = path_of(database).with_name("list.csv")
    rows.write_text("phone,first_name\n+14155550101,Ann\n")
    campaign = cli.ask("campaigns", "import", workspace_id, str(rows), "--name", "C", "--message", "Hi")["id"]
    cli.ask("campaigns", "cancel", campaign)
    with closing(sqlite3.connect(path_of(database))) as raw, raw:
        raw.execute("UPDATE campaigns SET completed_at = '2020-01-01T00:00:00.000000Z', recipients_open = 0")
        raw.execute("UPDATE recipients SET status = 'canceled'")
    asked = [("campaigns", "why", campaign, "+14155550101"), ("campaigns", "export", campaign)]
    before = [cli.ask(*words) for words in asked]
    file = path_of(database).with_name("archive.db")
    assert "None. Make one" in cli.tell("db", "archives")
    assert "'soon' is not a date" in cli.refuse("db", "archive", "--before", "soon", "--to", str(file), code=2)
    assert "31 days" in cli.refuse("db", "archive", "--before", "2999-01-01", "--to", str(file))
    to = ("--before", "2021-01-01", "--to", str(file), "--workspace", workspace_id)
    done = cli.ask("db", "archive", *to)
    assert (done["campaigns"], done["rows_of_tables"]["recipients"], done["kept_back"]) == (1, 1, {})
    assert [cli.ask(*words) for words in asked] == before
    assert [one["campaigns"] for one in cli.ask("db", "archives")] == [1]
    archive = Cli(f"sqlite:///{file}")
    for refused in (["serve", "--port", "0"], ["worker"], ["workspaces", "list"], ["db", "archives"]):
        assert f"'{file}' is an archive of ended campaigns" in archive.refuse(*refused)
    assert "no backup of a database" in cli.refuse("db", "restore", str(file))
    assert (archive.ask("db", "check")["is_archive"], cli.ask("db", "check")["is_archive"]) == (True, False)
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("DELETE FROM sqlite_schema WHERE name = (SELECT min(name) FROM sqlite_schema WHERE type = 'index')")
        raw.commit()
    damaged = archive.run("db", "check")
    assert (damaged.exit_code, "put your backup of it in its place" in damaged.stderr) == (1, True)
    assert cli.ask("db", "migrate")["archives_in_trouble"] == []
    moved = file.with_name("moved.db")
    file.rename(moved)
    (trouble,) = cli.ask("db", "migrate")["archives_in_trouble"]
    assert trouble["file"] == str(file)
    assert "outreach-server db archives --moved-to FILE" in cli.tell("db", "migrate")
    for words in asked:
        assert f"The archive {file} is not there" in cli.refuse(*words)
    result = cli.run("db", "archives")
    assert result.exit_code == 1
    assert cli.ask("campaigns", "report", campaign)["contacts"] == 1
    cli.ask("db", "archives", "--moved-to", str(moved))
    assert [cli.ask(*words) for words in asked] == before
    assert "not moved into files" in Cli("postgresql://localhost/x").refuse("db", "archives")


def test_a_copied_database_is_dispatched_from_only_where_that_is_asked_for(
    cli: Cli, start: Start, tmp_path: Path
) -> None:
    """`status` and `campaigns start` say where the data went, and recommend no server on the old database."""
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    cli.tell("workspaces", "create", "Acme")
    told = cli.tell("db", "copy", target)
    assert "--dispatch-copied" in told
    status = cli.run("status").output
    assert f"has copied it to {target}" in status
    assert "outreach-server serve" not in status
    server = start("serve", "--port", "0")
    server.says("Dispatch disabled: This database was copied to")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    again = start("serve", "--port", "0", "--dispatch-copied")
    again.says(f"The database was copied to {target}. It is dispatched from here again")
    again.says("Dispatching under epoch 1.")
    again.signal(signal.SIGTERM)
    assert again.wait() == 0
    third = start("worker", "--dispatch-copied")
    third.says("Dispatching under epoch 2.")
    third.signal(signal.SIGTERM)
    assert third.wait() == 0
    assert "was copied to" not in third.stderr
