"""`db`: looking after the database file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import click

from outreach import Outreach, OutreachError
from outreach.database import Restore, backup_database, check_database, migrate_database, restore_database
from outreach_server.cli.base import EXIT_FAILED, Group, state
from outreach_server.cli.output import note, show

FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.group(cls=Group)
def db() -> None:
    """Back the database up, restore it, look it through, bring it up to date."""


@db.command()
@click.argument("file", type=FILE)
@click.option("--overwrite", is_flag=True, help="Replace FILE where it is there already.")
def backup(file: Path, overwrite: bool) -> None:
    """Copy the database into FILE, also while a server runs on it."""
    made = backup_database(state().database, file, overwrite=overwrite)
    key_file = str(made.key_file) if made.key_file is not None else None
    show({"file": str(made.file), "bytes": made.size, "key_file": key_file})
    if key_file is not None:
        note(
            f"The key of the accounts' credentials is not in it: {key_file}. Keep a copy of it too, in another place "
            "than the backups."
        )


@db.command()
@click.argument("file", type=FILE)
def restore(file: Path) -> None:
    """Put a copy of the backup FILE in the place of the database; no server may run on it."""
    done = restore_database(state().database, file)
    problems = [] if done.pending_migrations else anyio.run(_accounts_in_trouble)
    show(
        {
            "database": state().database,
            "restored_from": str(file.absolute()),
            "kept": str(done.replaced_database) if done.replaced_database is not None else None,
            "pending_migrations": list(done.pending_migrations),
            "accounts_in_trouble": problems,
        }
    )
    _tell_what_follows(done, problems)


def _tell_what_follows(done: Restore, problems: Sequence[dict[str, Any]]) -> None:
    if done.replaced_database is not None:
        note(
            f"What was there before lies at {done.replaced_database}; delete it (and what has its "
            f"name) when you do not need it."
        )
    note(
        "Campaigns that were active or scheduled in the backup are paused at the next start: what was sent after it "
        "stands in no ledger any more. Resume each that is to go on."
    )
    if done.pending_migrations:
        note("It is of an older version: `serve` brings it up to date, and so does: outreach-server db migrate")
    for problem in problems:
        note(f"Account {problem['account_id']} at {problem['provider']}: {problem['problem']}")


async def _accounts_in_trouble() -> list[dict[str, Any]]:
    """Return the accounts of the restored database whose credentials cannot be opened with the key that is here."""
    found = []
    try:
        async with Outreach.open(state().database, create=False) as engine:
            for workspace in await engine.workspaces.list():
                found += [
                    {"account_id": one.id, "provider": one.provider, "problem": one.problem}
                    for one in await engine.accounts.list(workspace.id)
                    if one.problem is not None
                ]
    except OutreachError as error:
        note(f"Whether the accounts can be used could not be looked at. {error.message}")
    return found


@db.command()
@click.option("--quick", is_flag=True, help="Leave out the indexes and the references: several times as fast.")
def check(quick: bool) -> None:
    """Look the whole database through, also while a server runs on it; exit with 1 when something is wrong."""
    found = check_database(state().database, quick=quick)
    show(
        {
            "database": state().database,
            "ok": not found.problems,
            "problems": list(found.problems),
            "bytes": found.size,
            "log_bytes": found.log_size,
            "pending_migrations": list(found.pending_migrations),
        }
    )
    if found.problems:
        note("Restore a backup, with the server stopped: outreach-server db restore FILE")
        sys.exit(EXIT_FAILED)


@db.command()
def migrate() -> None:
    """Bring a database of an older version up to date; no server may run on it."""
    steps = migrate_database(state().database, on_progress=note)
    show({"database": state().database, "applied": list(steps)})
    if not steps:
        note("It was up to date.")
