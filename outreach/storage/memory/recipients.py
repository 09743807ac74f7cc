"""The recipients of campaigns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import attrs

from outreach.models.campaign import Counters, contribution
from outreach.models.carriers import Channel
from outreach.models.recipient import PreparedRecipient, Recipient, RecipientGroup
from outreach.models.states import OPEN_RECIPIENT_STATUSES, RecipientStatus
from outreach.policy.call_settlement import DOUBLE_DIAL
from outreach.protocols.storage import AlreadyThere
from outreach.storage.memory.register import Register
from outreach.storage.memory.rows import CampaignRows, RecipientRow, RecipientRows


class Recipients:
    """The recipients of campaigns, keyed by (campaign, position)."""

    def __init__(self, rows: RecipientRows, campaigns: CampaignRows, register: Register) -> None:
        self._rows = rows
        self._campaigns = campaigns
        self._register = register

    def insert(
        self,
        workspace_id: str,
        campaign_id: str,
        rows: Iterable[tuple[int, PreparedRecipient, RecipientStatus, str | None]],
        *,
        now: datetime,
    ) -> None:
        """Write recipients: position, contact, status and reason; those that have ended, ended now."""
        if self._campaigns.within(workspace_id, campaign_id) is None:
            raise self._campaigns.missing(campaign_id)
        added: dict[tuple[str, int], RecipientRow] = {}
        for position, contact, status, reason in rows:
            key = (campaign_id, position)
            if key in added or key in self._rows:
                raise AlreadyThere(f"Campaign {campaign_id} has a recipient at position {position} already.")
            recipient = Recipient(
                campaign_id=campaign_id,
                position=position,
                status=status,
                reason=reason,
                ended_at=None if status in OPEN_RECIPIENT_STATUSES else now,
                **(contact._asdict() | {"custom_variables": {}}),
            )
            added[key] = RecipientRow(
                workspace_id=workspace_id, recipient=recipient, variables_text=contact.custom_variables
            )
        for key, row in added.items():
            self._rows.put(key, row)

    def known_phones(self, workspace_id: str, campaign_id: str, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers that the campaign already has."""
        return frozenset(phone for phone in phones if (workspace_id, campaign_id, phone) in self._rows.by_phone)

    def delete_stopped_since(self, workspace_id: str, campaign_id: str, channel: Channel, since: datetime) -> Counters:
        """Delete recipients whose number came onto the register at or after `since`; return what they counted."""
        counted = Counters()
        for phone in self._register.stopped_since(workspace_id, channel, since):
            for key in self._rows.by_phone.keys((workspace_id, campaign_id, phone)):
                counted += _contribution(self._rows.rows([key])[0].recipient)
                self._rows.delete(key)
        return counted

    def get(self, workspace_id: str, campaign_id: str, position: int) -> Recipient | None:
        """Return a recipient."""
        row = self._within(workspace_id, campaign_id, position)
        return None if row is None else row.read()

    def put(self, workspace_id: str, recipient: Recipient) -> None:
        """Write a recipient's state over the one it has; the contact's own fields do not change."""
        key = (recipient.campaign_id, recipient.position)
        row = self._within(workspace_id, *key)
        if row is None:
            raise self._rows.missing(key)
        contact = {name: getattr(row.recipient, name) for name in PreparedRecipient._fields}
        self._rows.put(key, attrs.evolve(row, recipient=attrs.evolve(recipient, **contact)))

    def due(self, workspace_id: str, campaign_id: str, now: datetime, *, limit: int) -> Sequence[Recipient]:
        """Return waiting recipients due at or before now, second calls before all others, then pending ones."""
        owner, until = (workspace_id, campaign_id), (now, math.inf)
        second = self._rows.waiting_for.keys((*owner, DOUBLE_DIAL), until=until, limit=limit)
        waiting = self._rows.waiting.keys(owner, until=until, limit=limit)
        # Each key once, where it comes first.
        due = list(dict.fromkeys([*second, *waiting]))[:limit]
        return self._rows.read([*due, *self._rows.pending.keys(owner, limit=limit - len(due))])

    def next_due(self, workspace_id: str, campaign_id: str) -> datetime | None:
        """Return the earliest due time of the waiting and of the in-progress ones that have one."""
        owner = (workspace_id, campaign_id)
        firsts = [index.keys(owner, limit=1) for index in (self._rows.waiting, self._rows.in_progress)]
        due = [row.recipient.due_at for keys in firsts for row in self._rows.rows(keys)]
        return min((moment for moment in due if moment is not None), default=None)

    def overdue_in_progress(
        self, workspace_id: str, campaign_id: str, now: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return in-progress recipients due at or before now, by (due_at, position)."""
        owner = (workspace_id, campaign_id)
        return self._rows.read(self._rows.in_progress.keys(owner, until=(now, math.inf), limit=limit))

    def in_progress_after(
        self, workspace_id: str, campaign_id: str, after: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return in-progress recipients due later than a moment, by (due_at, position)."""
        owner = (workspace_id, campaign_id)
        return self._rows.read(self._rows.in_progress.keys(owner, after=(after, math.inf), limit=limit))

    def put_off(
        self, workspace_id: str, campaign_id: str, reason: str, now: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return recipients that wait for this reason and are due after now, by (due_at, position)."""
        owner = (workspace_id, campaign_id, reason)
        return self._rows.read(self._rows.waiting_for.keys(owner, after=(now, math.inf), limit=limit))

    def waiting_with(self, workspace_id: str, phone: str) -> Sequence[Recipient]:
        """Return the waiting recipients with this number in all campaigns of a workspace, by (campaign, position)."""
        return self._rows.read(self._rows.waiting_with.keys((workspace_id, phone)))

    def in_flight(self, workspace_id: str, campaign_id: str) -> int:
        """Return how many are dispatching, in progress or unknown."""
        return len(self._rows.in_flight.keys((workspace_id, campaign_id)))

    def closable(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[Recipient]:
        """Return pending and waiting recipients by position."""
        return self._rows.read(self._rows.closable.keys((workspace_id, campaign_id), limit=limit))

    def page(self, workspace_id: str, campaign_id: str, *, after: int = -1, limit: int = 1000) -> Sequence[Recipient]:
        """Return recipients by position, those greater than `after`, at most `limit`."""
        return self._rows.read(self._rows.by_position.keys((workspace_id, campaign_id), after=(after,), limit=limit))

    def by_phone(self, workspace_id: str, campaign_id: str, phone: str) -> Sequence[Recipient]:
        """Return the recipients with this number, by position."""
        return self._rows.read(self._rows.by_phone.keys((workspace_id, campaign_id, phone)))

    def without_phone(self, workspace_id: str, campaign_id: str, phone_number: str) -> Sequence[Recipient]:
        """Return the recipients that were supplied with this, which is no possible number, by position."""
        return self._rows.read(self._rows.without_phone.keys((workspace_id, campaign_id, phone_number)))

    def groups(self, workspace_id: str, campaign_id: str) -> Sequence[RecipientGroup]:
        """Return how many are in each state for each reason."""
        counts = Counter((it.status, it.reason) for it in self._all(workspace_id, campaign_id))
        # False sorts before True: no reason first.
        ordered = sorted(counts, key=lambda group: (group[0].value, group[1] is not None, group[1] or ""))
        return [
            RecipientGroup(status=status, reason=reason, count=counts[status, reason]) for status, reason in ordered
        ]

    def recount(self, workspace_id: str, campaign_id: str) -> Counters:
        """Return the counters by looking at every recipient."""
        return sum((_contribution(it) for it in self._all(workspace_id, campaign_id)), start=Counters())

    def _all(self, workspace_id: str, campaign_id: str) -> Sequence[Recipient]:
        rows = self._rows.rows(self._rows.by_position.keys((workspace_id, campaign_id)))
        return [row.recipient for row in rows]

    def _within(self, workspace_id: str, campaign_id: str, position: int) -> RecipientRow | None:
        row = self._rows.get((campaign_id, position))
        return row if row is not None and row.workspace_id == workspace_id else None


def _contribution(it: Recipient) -> Counters:
    return contribution(it.status, attempts=it.attempts, dispatched=it.dispatched, successful=it.successful)
