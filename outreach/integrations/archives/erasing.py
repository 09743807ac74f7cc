"""Erasing people in archives too: whole campaigns, and one person."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from outreach.integrations.archives.files import write_archive
from outreach.models.archive import Archive, ArchivedErasure
from outreach.rules.phones import stored_forms
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.schema import transaction
from outreach.storage.sqlite.sql import statement

_SLICE: Final = 1000
_MAX_ROWS: Final = 1_000_000


def erase_campaign(one: ArchivedErasure) -> None:
    """Take numbers, names and texts of a campaign out of its archive, slice by slice; what is counted stays.

    Raises:
        ArchiveUnavailable: The archive is not there, or cannot be written.
    """
    with write_archive(one.file, one.archive_id) as raw:
        [[last]] = raw.execute(statement("erasure.last_position"), {"number": one.number})
        for first in range(0, (-1 if last is None else last) + 1, _SLICE):
            with transaction(raw):
                for name in ("recipients", "dispatches", "transcripts", "calls"):
                    given = {"number": one.number, "first": first, "last": first + _SLICE - 1}
                    raw.execute(statement(f"erasure.{name}"), given)
        with transaction(raw):
            raw.execute(
                "UPDATE inbound_messages SET from_number = '', body = '', media = '[]' WHERE archived_campaign = ?",
                (one.number,),
            )
            raw.execute("DELETE FROM unsubscribes WHERE archived_campaign = ?", (one.number,))
            raw.execute("UPDATE trail SET phone = NULL WHERE campaign_number = ?", (one.number,))
            raw.execute(
                "UPDATE campaigns SET description = NULL, body = NULL, csv_column_headers = '[]', "
                "variable_names = NULL, metadata = NULL WHERE number = ?",
                (one.number,),
            )


@contextmanager
def opened_archives(archives: Sequence[Archive]) -> Iterator[Sequence[sqlite3.Connection]]:
    """Open all of these archives for writing, so that a person is erased in all or in none.

    Raises:
        ArchiveUnavailable: One is not there, or cannot be written.
    """
    with ExitStack() as stack:
        yield [stack.enter_context(write_archive(one.file, one.id)) for one in archives]


def erase_person(raw: sqlite3.Connection, workspace_id: str, phone: str, *, name: str) -> Mapping[str, int]:
    """Put a name in the place of a number in an archive; return how many contacts and calls were the person's."""
    session = Session(raw)
    with transaction(raw):
        session.rows.begin()
        erasures = session.transaction.erasures
        found = erasures.rows_of_person(workspace_id, phone, limit=_MAX_ROWS)
        erasures.erase_person(workspace_id, phone, found, name=name)
        workspace = session.transaction.workspaces.get(workspace_id)
        for form in stored_forms(phone, None if workspace is None else workspace.default_region):
            raw.execute(
                "UPDATE OR REPLACE unsubscribes SET phone = :name, evidence = NULL "
                "WHERE workspace_id = :workspace_id AND phone = :phone",
                {"name": name, "workspace_id": workspace_id, "phone": form},
            )
    return {"contacts": len(found.recipients), "calls": len(found.calls)}
