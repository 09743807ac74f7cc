"""`db`: maintenance of the database."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

import anyio
import click

from outreach import Outreach, OutreachError
from outreach.database import (
    Restore,
    backup_database,
    check_database,
    compact_database,
    copy_database,
    migrate_database,
    restore_database,
    shown_url,
)
from outreach.http import to_json
from outreach.integrations.archives import archive_ledgers, list_archives, move_archive
from outreach_server.cli.base import EXIT_FAILED, Group, state
from outreach_server.cli.output import note, show, show_list
from outreach_server.cli.sigint import ending_in_order
from outreach_server.cli.upkeep.archives import unreadable_archives
from outreach_server.cli.values import DATE, WORKSPACE

FILE: Final = click.Path(path_type=Path, dir_okay=False)
_MOST_NAMED: Final = 3


@click.group(cls=Group)
def db() -> None:
    """Back up, restore, check, compact, archive, copy and migrate the database."""
    # Such as by `timeout` in a script, which else leaves half a copy of the database behind.
    click.get_current_context().with_resource(ending_in_order())


@db.command()
@click.argument("file", type=FILE)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
def backup(file: Path, overwrite: bool) -> None:
    """Copy the database into FILE, also while a server runs on it."""
    made = backup_database(state().database, file, overwrite=overwrite)
    key_file = str(made.key_file) if made.key_file is not None else None
    show({"file": str(made.file), "bytes": made.size, "key_file": key_file})
    if key_file is not None:
        note(
            f"The key of the accounts' credentials is not in it: {key_file}. Back it up too, in another place than the "
            "database."
        )


@db.command()
@click.argument("file", type=FILE)
def restore(file: Path) -> None:
    """Replace the database with a copy of the backup FILE; no server may be running on it."""
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
    _show_next_steps(done, problems)


def _show_next_steps(done: Restore, problems: Sequence[dict[str, Any]]) -> None:
    if done.replaced_database is not None:
        note(
            f"What was there is kept as {done.replaced_database}; delete it (and the files with its name) when you do "
            "not need it."
        )
    note(
        "Campaigns that were active or scheduled in the backup are paused at the next start, because what was sent "
        "after the backup is not in its ledger. Resume each one that should continue with: "
        f"outreach-server campaigns resume CAMPAIGN_ID --skip-contacted-in {done.replaced_database or 'provider'}"
    )
    if done.pending_migrations:
        note("It is of an older version: `serve` migrates it, and so does: outreach-server db migrate")
    for problem in problems:
        note(f"Account {problem['account_id']} at {problem['provider']}: {problem['problem']}")


async def _accounts_in_trouble() -> list[dict[str, Any]]:
    """Return the restored accounts whose credentials cannot be decrypted with the key here."""
    found = []
    try:
        async with Outreach.open(state().database, create=False) as engine:
            async for workspace in engine.workspaces.iter_all():
                found += [
                    {"account_id": one.id, "provider": one.provider, "problem": one.problem}
                    async for one in engine.accounts.iter_all(workspace.id)
                    if one.problem is not None
                ]
    except OutreachError as error:
        note(f"could not check the accounts: {error.message}")
    return found


@db.command()
@click.option("--quick", is_flag=True, help="Skip indexes and references: several times as fast.")
def check(quick: bool) -> None:
    """Check the whole database, also while a server runs on it; exits with 1 if something is wrong."""
    config = state().configuration()[0]
    found = check_database(config.database_url, quick=quick, dispatcher=config.dispatcher)
    show(
        {
            "database": shown_url(state().database),
            "ok": not found.problems,
            "problems": list(found.problems),
            "bytes": found.size,
            "log_bytes": found.log_size,
            "pending_migrations": list(found.pending_migrations),
            "is_archive": found.is_archive,
        }
    )
    if found.pending_migrations:
        note(f"It lacks {_migrations(found.pending_migrations)}. With the servers stopped: outreach-server db migrate")
    if found.problems:
        if found.is_archive:
            note("It is an archive: put your backup of it in its place, with the server stopped.")
        elif state().database.startswith("sqlite:"):
            note("Restore a backup, with the server stopped: outreach-server db restore FILE")
        sys.exit(EXIT_FAILED)


@db.command()
@click.option("--delete-old", is_flag=True, help="Delete the old file when the compact one is in its place.")
def compact(delete_old: bool) -> None:
    """Give the room of deleted rows back to the disk; no server may be running on the database.

    A compact copy is written and checked, then put in the database's place. The old file is kept beside it, unless you
    say otherwise. Nothing is paused.
    """
    done = compact_database(state().database, delete_old=delete_old, on_progress=note)
    kept = str(done.replaced_database) if done.replaced_database is not None else None
    show({"database": state().database, "bytes_before": done.size_before, "bytes": done.size, "kept": kept})
    if kept is not None:
        note(f"The previous file is at {kept}; delete it when you do not need it.")


@db.command()
@click.option("--before", "before", required=True, type=DATE, help="Campaigns that ended before this day, in UTC.")
@click.option("--to", "file", required=True, type=FILE, help="The archive: a new file, or one of this database.")
@click.option("--workspace", "workspace_id", type=WORKSPACE, help="Campaigns of one workspace only.")
def archive(before: date, file: Path, workspace_id: str | None) -> None:
    """Move contacts and requests of campaigns that ended long ago into a file of their own, also while a server runs.

    Campaigns stay listed, with their reports; `campaigns why` and `campaigns export` read the file. An interrupted run
    goes on when it is run again.
    """
    moment = datetime.combine(before, time(), UTC)
    done = archive_ledgers(state().database, file, before=moment, workspace_id=workspace_id, on_progress=note)
    show(
        {
            "file": done.file,
            "campaigns": done.campaigns,
            "rows": sum(done.rows.values()),
            "rows_of_tables": dict(done.rows),
            "kept_back": dict(done.kept_back),
        }
    )
    for campaign_id, why in done.kept_back.items():
        note(f"Campaign {campaign_id} was kept back: {why}.")
    if done.campaigns:
        note(
            "The archive holds people's numbers and texts as the database does: keep it beside the database, and back "
            "it up. The room in the database is used again; outreach-server db compact gives it back to the disk."
        )


@db.command()
@click.option("--moved-to", "file", type=FILE, help="Say where an archive is now.")
def archives(file: Path | None) -> None:
    """List the archives of the database, and whether each can be read; exits with 1 if one cannot."""
    if file is not None:
        move_archive(state().database, file)
    found = list_archives(state().database)
    show_list(
        [
            {
                "id": one.archive.id,
                "file": one.archive.file,
                "campaigns": one.archive.campaigns,
                "created_at": to_json(one.archive.created_at),
                "problem": one.problem,
            }
            for one in found
        ],
        ("id", "file", "campaigns", "created_at", "problem"),
        empty="None. Make one with: outreach-server db archive --before DATE --to FILE",
    )
    if any(one.problem is not None for one in found):
        sys.exit(EXIT_FAILED)


@db.command()
@click.argument("target", metavar="URL")
def copy(target: str) -> None:
    """Copy the whole database into a new one at URL; no server may be running on either.

    From SQLite to PostgreSQL, or back. Counts and checksums are compared. A copy that was interrupted goes on when it
    is run again; until it is finished, nobody can open the new database. Nothing is sent from the old one any more.
    """
    done = copy_database(state().database, target, on_progress=note)
    key_file = str(done.key_file) if done.key_file is not None else None
    show(
        {
            "from": shown_url(state().database),
            "to": shown_url(target),
            "rows": sum(done.rows.values()),
            "rows_of_tables": dict(done.rows),
            "key_file": key_file,
        }
    )
    note(
        "Campaigns that are active or scheduled are paused at the first start on the new database: resume each one "
        "that should continue. From the old one nothing is sent any more, unless a server starts with "
        "--dispatch-copied."
    )
    if key_file is not None:
        note(f"The key of the accounts' credentials is not in it: set OUTREACH_SECRET_KEY to the text of {key_file}.")


def _migrations(names: Sequence[str]) -> str:
    """Return migrations for people, in a line."""
    return ", ".join(names) if len(names) <= _MOST_NAMED else f"{names[0]} to {names[-1]} ({len(names)})"


@db.command()
def migrate() -> None:
    """Migrate a database of an older version; no server may be running on it.

    Where OUTREACH_DISPATCHER is procrastinate, the tables of its jobs are made too.
    """
    config = state().configuration()[0]
    steps = migrate_database(config.database_url, dispatcher=config.dispatcher, on_progress=note)
    unreadable = unreadable_archives(config.database_url)
    show(
        {
            "database": shown_url(state().database),
            "applied": list(steps) if state().as_json else _migrations(steps),
            "archives_in_trouble": [{"file": one.archive.file, "problem": one.problem} for one in unreadable],
        }
    )
    if not steps:
        note("It was up to date.")
    for one in unreadable:
        note(str(one.problem))
