"""The recipients of campaigns."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from outreach.clock import from_text, to_text
from outreach.convert.rows import Value, counters_from_row, from_row, to_row
from outreach.models.campaign import Counters, contribution
from outreach.models.carriers import Channel
from outreach.models.recipient import PreparedRecipient, Recipient, RecipientGroup
from outreach.models.states import OPEN_RECIPIENT_STATUSES, RecipientStatus
from outreach.policy.call_settlement import DOUBLE_DIAL
from outreach.storage.sqlite.errors import refused_row
from outreach.storage.sqlite.savepoint import savepoint
from outreach.storage.sqlite.sql import load
from outreach.storage.sqlite.tables.base import Table, as_list

NewRow = tuple[int, PreparedRecipient, RecipientStatus, str | None]


class Recipients(Table):
    """The recipients of campaigns, keyed by (campaign, position)."""

    queries = load("recipients")
    what = "recipient"

    def insert(self, workspace_id: str, campaign_id: str, rows: Iterable[NewRow], *, now: datetime) -> None:
        """Write recipients: position, contact, status and reason; those that have ended, ended now."""
        campaign = self._row("number_of", workspace_id=workspace_id, campaign_id=campaign_id)
        if campaign is None:
            raise LookupError("There is no such campaign.")
        values = _new_rows(campaign["number"], rows, to_text(now))
        try:
            # A row that is refused must leave nothing of those before it, whatever the operation does then.
            with savepoint(self._connection):
                self._connection.executemany(self.queries["insert"], values)
        except sqlite3.IntegrityError as error:
            raise refused_row(error, self.what) from error

    def known_phones(self, workspace_id: str, campaign_id: str, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers that the campaign already has."""
        rows = self._rows("known_phones", workspace_id=workspace_id, campaign_id=campaign_id, phones=as_list(phones))
        return frozenset(row["phone"] for row in rows)

    def delete_stopped_since(self, workspace_id: str, campaign_id: str, channel: Channel, since: datetime) -> Counters:
        """Delete recipients whose number came onto the register at or after `since`; return what they counted."""
        rows = self._rows(
            "stopped_since", workspace_id=workspace_id, campaign_id=campaign_id, channel=channel, since=to_text(since)
        )
        counted = Counters()
        for row in rows:
            it = _recipient(campaign_id, row)
            counted += contribution(it.status, attempts=it.attempts, dispatched=it.dispatched, successful=it.successful)
            self._change("delete", {"workspace_id": workspace_id, "campaign_id": campaign_id, "position": it.position})
        return counted

    def get(self, workspace_id: str, campaign_id: str, position: int) -> Recipient | None:
        """Return a recipient."""
        row = self._row("get", workspace_id=workspace_id, campaign_id=campaign_id, position=position)
        return None if row is None else _recipient(campaign_id, row)

    def put(self, workspace_id: str, recipient: Recipient) -> None:
        """Write a recipient's state over the one it has; the contact's own fields do not change."""
        self._change_one("put", {**to_row(recipient), "workspace_id": workspace_id})

    def due(self, workspace_id: str, campaign_id: str, now: datetime, *, limit: int) -> Sequence[Recipient]:
        """Return waiting recipients due at or before now, second calls before all others, then pending ones."""
        at, second = to_text(now), DOUBLE_DIAL
        due = [*self._list("due_waiting_for", workspace_id, campaign_id, reason=second, now=at, limit=limit)]
        left = limit - len(due)
        due += self._list("due_waiting_else", workspace_id, campaign_id, reason=second, now=at, limit=left)
        due += self._list("due_pending", workspace_id, campaign_id, limit=limit - len(due))
        return due

    def next_due(self, workspace_id: str, campaign_id: str) -> datetime | None:
        """Return the earliest due time of the waiting and of the in-progress ones that have one."""
        row = self._row("next_due", workspace_id=workspace_id, campaign_id=campaign_id)
        return None if row is None or row["due_at"] is None else from_text(row["due_at"])

    def overdue_in_progress(
        self, workspace_id: str, campaign_id: str, now: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return in-progress recipients due at or before now, by (due_at, position)."""
        return self._list("overdue_in_progress", workspace_id, campaign_id, now=to_text(now), limit=limit)

    def in_progress_after(
        self, workspace_id: str, campaign_id: str, after: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return in-progress recipients due later than a moment, by (due_at, position)."""
        return self._list("in_progress_after", workspace_id, campaign_id, after=to_text(after), limit=limit)

    def put_off(
        self, workspace_id: str, campaign_id: str, reason: str, now: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return recipients that wait for this reason and are due after now, by (due_at, position)."""
        return self._list("put_off", workspace_id, campaign_id, reason=reason, now=to_text(now), limit=limit)

    def waiting_with(self, workspace_id: str, phone: str) -> Sequence[Recipient]:
        """Return the waiting recipients with this number in all campaigns of a workspace, by (campaign, position)."""
        rows = self._rows("waiting_with", workspace_id=workspace_id, phone=phone)
        return [_recipient(row["campaign_id"], row) for row in rows]

    def in_flight(self, workspace_id: str, campaign_id: str) -> int:
        """Return how many are dispatching, in progress or unknown."""
        [row] = self._rows("in_flight", workspace_id=workspace_id, campaign_id=campaign_id)
        return int(row["count"])

    def closable(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[Recipient]:
        """Return pending and waiting recipients by position."""
        return self._list("closable", workspace_id, campaign_id, limit=limit)

    def page(self, workspace_id: str, campaign_id: str, *, after: int = -1, limit: int = 1000) -> Sequence[Recipient]:
        """Return recipients by position, those greater than `after`, at most `limit`."""
        return self._list("page", workspace_id, campaign_id, after=after, limit=limit)

    def by_phone(self, workspace_id: str, campaign_id: str, phone: str) -> Sequence[Recipient]:
        """Return the recipients with this number, by position."""
        return self._list("by_phone", workspace_id, campaign_id, phone=phone)

    def without_phone(self, workspace_id: str, campaign_id: str, phone_number: str) -> Sequence[Recipient]:
        """Return the recipients that were supplied with this, which is no possible number, by position."""
        return self._list("without_phone", workspace_id, campaign_id, phone_number=phone_number)

    def groups(self, workspace_id: str, campaign_id: str) -> Sequence[RecipientGroup]:
        """Return how many are in each state for each reason, by (status, reason)."""
        return self._all(RecipientGroup, "groups", workspace_id=workspace_id, campaign_id=campaign_id)

    def recount(self, workspace_id: str, campaign_id: str) -> Counters:
        """Return the counters by looking at every recipient."""
        [row] = self._rows("recount", workspace_id=workspace_id, campaign_id=campaign_id)
        return counters_from_row(row)

    def _list(self, name: str, workspace_id: str, campaign_id: str, **values: Value) -> Sequence[Recipient]:
        rows = self._rows(name, workspace_id=workspace_id, campaign_id=campaign_id, **values)
        return [_recipient(campaign_id, row) for row in rows]


def _recipient(campaign_id: str, row: dict[str, Any]) -> Recipient:
    row["campaign_id"] = campaign_id
    return from_row(Recipient, row)


def _new_rows(number: int, rows: Iterable[NewRow], now: str) -> Iterator[tuple[Value, ...]]:
    # A state is looked up once, not for each of a million rows.
    states = {status: (status.value, None if status in OPEN_RECIPIENT_STATUSES else now) for status in RecipientStatus}
    for position, contact, status, reason in rows:
        text, ended_at = states[status]
        yield (number, position, *contact, text, reason, ended_at)
