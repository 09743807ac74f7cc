"""What the simulator accepted and what the ledger says, read beside the server and held against each other."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import attrs
import psycopg
from psycopg.rows import dict_row

from outreach.storage.postgres.connect import conninfo_of
from outreach.storage.postgres.sql import for_driver

OPEN: Final = frozenset({"pending", "waiting", "dispatching", "in_progress", "unknown"})

_COUNTERS: Final = ("total", "pending", "completed", "successful", "failed", "open")


@attrs.frozen(kw_only=True)
class Accepted:
    """One line of the simulator's log."""

    kind: str
    to: str
    dispatch_id: str
    at: datetime


@attrs.frozen(kw_only=True)
class Books:
    """A database and the log of the simulator that it sent to.

    Attributes:
        database: The SQLite file.
        log: The simulator's log.
        server_url: The URL of a PostgreSQL database to use instead of the file.
    """

    database: Path
    log: Path
    server_url: str | None = attrs.field(default=None, repr=False)

    def accepted(self) -> list[Accepted]:
        """Return what the simulator accepted, in order."""
        if not self.log.exists():
            return []
        entries = []
        for line in self.log.read_text(encoding="utf-8").splitlines(keepends=True):
            # Only the last line can be torn: the others were written whole, in one call each.
            if line.endswith("\n"):
                entry = json.loads(line)
                at = datetime.fromisoformat(entry["at"])
                entries.append(Accepted(kind=entry["kind"], to=entry["to"], dispatch_id=entry["dispatch_id"], at=at))
        return entries

    def sent(self) -> int:
        """Return how many messages and calls the simulator accepted."""
        return self.log.read_bytes().count(b"\n") if self.log.exists() else 0

    def more_sent(self, count: int) -> Callable[[], bool]:
        """Return what tells whether so many more were accepted than up to now, or nothing is left to wait for."""
        target = self.sent() + count
        return lambda: self.sent() >= target or not self.unfinished()

    def starts(self) -> dict[int, list[datetime]]:
        """Return the moments at which the simulator was asked, in order, by the number of the campaign."""
        campaign_of = {row["id"]: row["campaign_number"] for row in self.rows("SELECT * FROM dispatches")}
        found: dict[int, list[datetime]] = defaultdict(list)
        for entry in self.accepted():
            found[campaign_of[entry.dispatch_id]].append(entry.at)
        return {number: sorted(moments) for number, moments in found.items()}

    def rows(self, query: str, **values: object) -> list[dict[str, Any]]:
        """Return the rows of a query; the database is only read."""
        if self.server_url is not None:
            with psycopg.connect(conninfo_of(self.server_url), row_factory=dict_row) as server:
                return server.execute(for_driver(query), values).fetchall()
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query, values)]

    def recipients(self) -> Counter[str]:
        """Return how many recipients of all campaigns are in which state."""
        counted: Counter[str] = Counter()
        for row in self.rows("SELECT status, COUNT(*) AS count FROM recipients GROUP BY status"):
            counted[row["status"]] = row["count"]
        return counted

    def dispatches(self, state: str) -> set[str]:
        """Return the ids of the dispatches in a state."""
        return {row["id"] for row in self.rows("SELECT id FROM dispatches WHERE state = :state", state=state)}

    def campaigns(self) -> dict[str, dict[str, Any]]:
        """Return the campaigns that can be seen, by id."""
        return {row["id"]: row for row in self.rows("SELECT * FROM campaigns WHERE loading_until IS NULL")}

    def loading(self) -> int:
        """Return how many campaigns are being loaded, or were left behind."""
        count: int = self.rows("SELECT COUNT(*) AS count FROM campaigns WHERE loading_until IS NOT NULL")[0]["count"]
        return count

    def unfinished(self) -> int:
        """Return how many recipients still have something coming; an unknown one has not."""
        counted = self.recipients()
        return sum(counted[status] for status in OPEN - {"unknown"})

    def check(self) -> None:
        """Hold log and ledger against each other; at any moment at which no request is being answered."""
        accepted = self.accepted()
        twice = _repeated([entry.to for entry in accepted])
        assert not twice, f"reached twice: {self._what_is_known_of(twice, accepted)}"
        assert _repeated([entry.dispatch_id for entry in accepted]) == [], "asked twice"
        ledger = {row["id"]: row for row in self.rows("SELECT id, state, to_number FROM dispatches")}
        heard = {entry.dispatch_id: entry.to for entry in accepted}
        assert heard.keys() <= ledger.keys(), "sent without an intent"
        assert all(ledger[identifier]["to_number"] == to for identifier, to in heard.items())
        states = Counter(ledger[identifier]["state"] for identifier in heard)
        assert states.keys() <= {"accepted", "unknown"}, states
        assert {identifier for identifier, row in ledger.items() if row["state"] == "accepted"} <= heard.keys(), (
            "in the ledger as accepted, and the carrier never heard of it"
        )
        self.check_counters()

    def _what_is_known_of(self, numbers: Sequence[str], accepted: Sequence[Accepted]) -> list[object]:
        """Return what the log and the ledger say of these numbers."""
        dispatches = self.rows("SELECT * FROM dispatches")
        return [
            *(entry for entry in accepted if entry.to in numbers),
            *(row for row in dispatches if row["to_number"] in numbers),
        ]

    def check_counters(self) -> None:
        """Hold every campaign's counters against its recipients."""
        # In one query: what is unknown may be decided at any time.
        found = defaultdict(list)
        for row in self.rows(
            "SELECT campaigns.*, recipients.status AS recipient_status, attempts, dispatched, successful "
            "FROM campaigns JOIN recipients ON recipients.campaign_number = campaigns.number "
            "WHERE campaigns.loading_until IS NULL"
        ):
            found[row["number"]].append(row)
        for number, rows in found.items():
            counters = {name: rows[0][f"recipients_{name}"] for name in _COUNTERS}
            assert counters == _recount(rows), f"campaign {number}"


def _recount(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Count by docs/interface.md#counters, without the product's help."""
    opened = [row for row in rows if row["recipient_status"] in OPEN]
    ended = [row for row in rows if row["recipient_status"] not in OPEN]
    return {
        "total": len(rows),
        "pending": sum(not row["attempts"] and not row["dispatched"] for row in opened),
        "completed": sum(bool(row["dispatched"]) for row in ended),
        "successful": sum(bool(row["successful"]) for row in rows),
        "failed": sum(row["recipient_status"] == "failed" for row in ended),
        "open": len(opened),
    }


def _repeated(items: Sequence[str]) -> list[str]:
    return [item for item, count in Counter(items).items() if count > 1]
