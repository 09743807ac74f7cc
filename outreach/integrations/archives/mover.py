"""Moving the ledgers of campaigns from one SQLite connection's database into the one that is attached to it.

Every slice is committed in the archive, then compared and deleted in the database in one transaction: whenever a
process is killed, each row is in one of both files or in both. Run again, it goes on. While `archived_campaigns.state`
is `copying` the database counts, from `moving` on the archive does.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from outreach.core.clock import Clock, format_timestamp, parse_timestamp
from outreach.errors import StorageError
from outreach.ledger.campaigns.reporting import REPLY_WINDOW, report_of
from outreach.ledger.common import campaign_of
from outreach.models.archive import ArchiveResult
from outreach.serialization.documents import json_text
from outreach.serialization.json_reports import write_campaign_report
from outreach.storage.base.progress import Progress
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.memory import empty_database, open_image
from outreach.storage.sqlite.schema import transaction
from outreach.storage.sqlite.sql import statement

_SLICE: Final = 500
_TRIES: Final = 5

_MOVED: Final = ("recipients", "calls", "transcripts", "dispatches", "trail")
"""The tables of a campaign's ledger, each after those that it refers to."""

_SHARED: Final = ("workspaces", "agents", "trunks", "flows", "campaigns")
"""The tables that these refer to: copied, and not moved."""

# As `reports.replies` and `reports.opt_outs` find them.
_LATEST: Final = """
    SELECT campaign_number FROM main.dispatches INDEXED BY dispatches_to_number
    WHERE to_number = {phone}
        AND dispatches.workspace_id = :workspace_id
        AND created_at <= {at}
        AND campaign_number IS NOT NULL
        AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
    ORDER BY dispatches.created_at DESC, dispatches.rowid DESC
    LIMIT 1
"""
_REPLIES: Final = f"""
    SELECT id, received_at FROM main.inbound_messages AS inbound
    WHERE workspace_id = :workspace_id
        AND received_at >= :since
        AND archived_campaign IS NULL
        AND :number = ({_LATEST.format(phone="inbound.from_number", at="inbound.received_at")})
"""  # noqa: S608 - names of the schema
_OPT_OUTS: Final = f"""
    SELECT phone, created_at FROM main.unsubscribes AS unsubscribed
    WHERE workspace_id = :workspace_id
        AND unsubscribed.created_at >= :since
        AND source IN ('keyword', 'carrier', 'call')
        AND archived_campaign IS NULL
        AND :number = ({_LATEST.format(phone="unsubscribed.phone", at="unsubscribed.created_at")})
"""  # noqa: S608 - names of the schema


class _Campaign(NamedTuple):
    number: int
    id: str
    workspace_id: str
    state: str | None
    next_position: int


class Mover:
    """Moves ledgers from a connection's database into the one that is attached to it."""

    def __init__(self, raw: sqlite3.Connection, identity: str, clock: Clock, progress: Progress) -> None:
        self._raw = raw
        self._identity = identity
        self._clock = clock
        self._progress = progress
        self._rows: Counter[str] = Counter()

    def run(self, file: Path, before: datetime, workspace_id: str | None) -> ArchiveResult:
        """Move what ended before a moment, the oldest first, and what an earlier run has begun."""
        kept_back = self._begun_in_other_archives(workspace_id)
        found = self._candidates(before, workspace_id)
        moved = 0
        for place, campaign in enumerate(found, 1):
            self._progress.at(f"campaign {place} of {len(found)}", (place - 1) / len(found))
            why = self._obstacle(campaign) or self._begin(campaign)
            if why is not None:
                kept_back[campaign.id] = why
                continue
            if campaign.state != "moving":
                self._copy(campaign)
            self._move(campaign)
            moved += 1
        return ArchiveResult(file=str(file), campaigns=moved, rows=dict(self._rows), kept_back=kept_back)

    def _candidates(self, before: datetime, workspace_id: str | None) -> Sequence[_Campaign]:
        rows = self._raw.execute(
            "SELECT campaigns.number, campaigns.id, campaigns.workspace_id, archived.state, "
            "COALESCE(archived.next_position, 0) "
            "FROM main.campaigns AS campaigns "
            "LEFT JOIN main.archived_campaigns AS archived ON archived.campaign_number = campaigns.number "
            "WHERE campaigns.completed_at < :before AND campaigns.recipients_open = 0 "
            "AND campaigns.loading_until IS NULL "
            "AND (archived.state IS NULL OR (archived.state <> 'archived' AND archived.archive_id = :identity)) "
            "AND (:workspace_id IS NULL OR campaigns.workspace_id = :workspace_id) "
            "ORDER BY campaigns.completed_at, campaigns.number",
            {"before": format_timestamp(before), "identity": self._identity, "workspace_id": workspace_id},
        )
        return [_Campaign(*row) for row in rows.fetchall()]

    def _begun_in_other_archives(self, workspace_id: str | None) -> dict[str, str]:
        """Return the campaigns whose move into another archive is unfinished, with what to do."""
        rows = self._raw.execute(
            "SELECT campaigns.id, archives.file FROM main.archived_campaigns AS archived "
            "JOIN main.campaigns AS campaigns ON campaigns.number = archived.campaign_number "
            "JOIN main.archives AS archives ON archives.id = archived.archive_id "
            "WHERE archived.state <> 'archived' AND archived.archive_id <> :identity "
            "AND (:workspace_id IS NULL OR campaigns.workspace_id = :workspace_id)",
            {"identity": self._identity, "workspace_id": workspace_id},
        )
        return {campaign_id: f"its move into {file} is unfinished: name that file" for campaign_id, file in rows}

    def _obstacle(self, campaign: _Campaign) -> str | None:
        """Return why a campaign cannot be moved yet, or None."""
        unknown = self._raw.execute(
            "SELECT 1 FROM main.dispatches WHERE campaign_number = ? AND state IN ('dispatching', 'unknown') LIMIT 1",
            (campaign.number,),
        ).fetchone()
        if unknown is not None:
            return "it has requests whose outcome nobody knows"
        unfinished = self._raw.execute(
            "SELECT 1 FROM main.erasures WHERE campaign_number = ? AND next_position IS NOT NULL", (campaign.number,)
        ).fetchone()
        if unfinished is not None:
            return "it is being erased"
        reader = self._raw.execute(
            "SELECT name FROM main.subscriptions "
            "WHERE position < (SELECT MAX(number) FROM main.trail WHERE campaign_number = ?) LIMIT 1",
            (campaign.number,),
        ).fetchone()
        if reader is not None:
            return f"the subscription {reader[0]!r} has not read all its events"
        now = format_timestamp(self._clock.now())
        schedule = self._raw.execute(
            statement("occurrences.left_out_by"),
            {"run_id": campaign.id, "workspace_id": campaign.workspace_id, "now": now},
        ).fetchone()
        return None if schedule is None else f"the schedule {schedule[0]!r} still leaves out whom it has reached"

    # ---------------------------------------------------------------------------------------------- copying

    def _begin(self, campaign: _Campaign) -> str | None:
        """Note that a ledger is copied from now on; return why it cannot be, or None."""
        if campaign.state is not None:
            return None
        figures = self._figures(campaign)
        now = format_timestamp(self._clock.now())
        with transaction(self._raw):
            # Looked at again, because it may have changed since this run has listed it.
            taken = self._raw.execute(
                "SELECT archives.file FROM main.archived_campaigns AS archived "
                "JOIN main.archives AS archives ON archives.id = archived.archive_id "
                "WHERE archived.campaign_number = ?",
                (campaign.number,),
            ).fetchone()
            why = self._obstacle(campaign) if taken is None else f"another run moves it into {taken[0]}"
            if why is None:
                self._raw.execute(
                    "INSERT INTO main.archived_campaigns "
                    "(campaign_number, archive_id, state, next_position, figures, begun_at) "
                    "VALUES (?, ?, 'copying', 0, ?, ?)",
                    (campaign.number, self._identity, figures, now),
                )
        return why

    def _copy(self, campaign: _Campaign) -> None:
        """Copy a ledger; at the end the archive counts."""
        with transaction(self._raw):
            self._copy_shared(campaign)
        for first, last in self._slices(campaign, 0):
            self._copy_slice(campaign, first, last)
        replies, opt_outs = self._events(campaign)
        with transaction(self._raw):
            self._copy_events(campaign, replies, opt_outs)
        figures = self._figures(campaign)
        with transaction(self._raw):
            for query, given in (
                ("UPDATE main.inbound_messages SET archived_campaign = ? WHERE id IN (SELECT value FROM json_each(?))",
                 (campaign.number, json_text(list(replies)))),
                ("UPDATE main.unsubscribes SET archived_campaign = ? "
                 "WHERE workspace_id = ? AND phone IN (SELECT value FROM json_each(?))",
                 (campaign.number, campaign.workspace_id, json_text(list(opt_outs)))),
                ("UPDATE main.archived_campaigns SET state = 'moving', next_position = 0, figures = ? "
                 "WHERE campaign_number = ?",
                 (figures, campaign.number)),
            ):  # fmt: skip
                self._raw.execute(query, given)

    def _figures(self, campaign: _Campaign) -> str:
        """Return the report that stays in the database."""
        session = Session(self._raw, read_only=True)
        self._raw.execute("BEGIN")
        try:
            session.rows.begin()
            tx = session.transaction
            report = report_of(tx, campaign_of(tx, campaign.workspace_id, campaign.id), self._clock.now())
        finally:
            self._raw.execute("ROLLBACK")
        return orjson.dumps(write_campaign_report(report)).decode()

    def _copy_shared(self, campaign: _Campaign) -> None:
        for table in _SHARED:
            columns = ", ".join(_columns(table))
            where = {"workspaces": "id = :workspace_id", "campaigns": "number = :number"}.get(
                table, "workspace_id = :workspace_id"
            )
            self._raw.execute(
                f"INSERT OR IGNORE INTO archive.{table} ({columns}) SELECT {columns} FROM main.{table} WHERE {where}",  # noqa: S608
                {"workspace_id": campaign.workspace_id, "number": campaign.number},
            )

    def _slices(self, campaign: _Campaign, start: int) -> Iterator[tuple[int, int]]:
        """Go through a ledger's stretches of positions; the last one, from -1 to -1, is what concerns no position."""
        [[last]] = self._raw.execute(
            "SELECT MAX(position) FROM main.recipients WHERE campaign_number = ?", (campaign.number,)
        )
        for first in range(start, (-1 if last is None else last) + 1, _SLICE):
            yield first, first + _SLICE - 1
        yield -1, -1

    def _copy_slice(self, campaign: _Campaign, first: int, last: int) -> None:
        given = {"number": campaign.number, "first": first, "last": last}
        with transaction(self._raw, "BEGIN"):
            for table in reversed(_tables(first)):
                self._raw.execute(f"DELETE FROM archive.{table} {_where(first)}", given)  # noqa: S608
            for table in _tables(first):
                columns = ", ".join(_columns(table))
                self._raw.execute(
                    f"INSERT INTO archive.{table} ({columns}) SELECT {columns} FROM main.{table} {_where(first)} "  # noqa: S608
                    "ORDER BY rowid",
                    given,
                )

    def _events(self, campaign: _Campaign) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return the times of the replies by id, and of the opt-outs by number, that follow a campaign's requests."""
        given = {"workspace_id": campaign.workspace_id, "number": campaign.number}
        [[since]] = self._raw.execute(
            "SELECT MIN(created_at) FROM main.dispatches WHERE campaign_number = :number", given
        )
        replies, opt_outs = (
            dict(self._raw.execute(query, {**given, "since": since}).fetchall()) for query in (_REPLIES, _OPT_OUTS)
        )
        return replies, opt_outs

    def _copy_events(self, campaign: _Campaign, replies: Mapping[str, str], opt_outs: Mapping[str, str]) -> None:
        """Copy those that are in time, as reports and exports count them."""
        [[ended]] = self._raw.execute("SELECT completed_at FROM main.campaigns WHERE number = ?", (campaign.number,))
        until = format_timestamp(parse_timestamp(ended) + REPLY_WINDOW)
        for table, key, found in (("inbound_messages", "id", replies), ("unsubscribes", "phone", opt_outs)):
            columns = [name for name in _columns(table) if name != "archived_campaign"]
            listed = ", ".join(columns)
            wanted = [name for name, at in found.items() if at <= until]
            self._raw.execute(f"DELETE FROM archive.{table} WHERE archived_campaign = ?", (campaign.number,))  # noqa: S608
            self._raw.execute(
                f"INSERT OR REPLACE INTO archive.{table} ({listed}, archived_campaign) "  # noqa: S608
                f"SELECT {listed}, ? FROM main.{table} "
                f"WHERE workspace_id = ? AND {key} IN (SELECT value FROM json_each(?))",
                (campaign.number, campaign.workspace_id, json_text(wanted)),
            )

    # ----------------------------------------------------------------------------------------------- moving

    def _move(self, campaign: _Campaign) -> None:
        """Delete in the database what is the same in the archive."""
        start = campaign.next_position if campaign.state == "moving" else 0
        for first, last in self._slices(campaign, start):
            self._move_slice(campaign, first, last)

    def _move_slice(self, campaign: _Campaign, first: int, last: int) -> None:
        for _ in range(_TRIES):
            with transaction(self._raw):
                counts = self._same(campaign, first, last)
                if counts is not None:
                    self._delete_slice(campaign, first, last)
            if counts is not None:
                self._rows.update(counts)
                return
            # It has changed since: a late receipt, or a person was erased.
            self._copy_slice(campaign, first, last)
        raise StorageError(
            f"Rows of campaign {campaign.id} are not the same in the archive, however often they are copied. They stay "
            "in the database. Check both with: outreach-server db check"
        )

    def _same(self, campaign: _Campaign, first: int, last: int) -> Mapping[str, int] | None:
        """Return how many rows of each table a slice has, or None if both files do not have the same."""
        given = {"number": campaign.number, "first": first, "last": last}
        counts = {}
        for table in _tables(first):
            columns = ", ".join(_columns(table))
            here, there = (
                self._raw.execute(f"SELECT COUNT(*) FROM {name}.{table} {_where(first)}", given).fetchone()[0]  # noqa: S608
                for name in ("main", "archive")
            )
            [[differs]] = self._raw.execute(
                f"SELECT EXISTS (SELECT {columns} FROM main.{table} {_where(first)} "  # noqa: S608
                f"EXCEPT SELECT {columns} FROM archive.{table} {_where(first)})",
                given,
            )
            if here != there or differs:
                return None
            counts[table] = here
        return counts

    def _delete_slice(self, campaign: _Campaign, first: int, last: int) -> None:
        given = {"number": campaign.number, "first": first, "last": last}
        for table in reversed(_tables(first)):
            self._raw.execute(f"DELETE FROM main.{table} {_where(first)}", given)  # noqa: S608
        # In the same transaction: a slice that is gone here must not be copied again.
        change = "next_position = :last + 1" if first >= 0 else "state = 'archived'"
        self._raw.execute(f"UPDATE main.archived_campaigns SET {change} WHERE campaign_number = :number", given)  # noqa: S608


def _tables(first: int) -> Sequence[str]:
    return _MOVED if first >= 0 else ("trail",)


def _where(first: int) -> str:
    if first < 0:
        return "WHERE campaign_number = :number AND position IS NULL"
    return "WHERE campaign_number = :number AND campaign_number IS NOT NULL AND position BETWEEN :first AND :last"


@cache
def _columns(table: str) -> Sequence[str]:
    """Return the columns of a table of this version."""
    with closing(open_image(empty_database())) as raw:
        return [str(row[1]) for row in raw.execute(f"PRAGMA table_info({table})")]
