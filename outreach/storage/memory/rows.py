"""The rows of campaigns and of their recipients, which two tables need."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import attrs

from outreach.models.campaign import Campaign
from outreach.models.recipient import Recipient
from outreach.models.states import CLOSABLE_RECIPIENT_STATUSES, IN_FLIGHT_RECIPIENT_STATUSES, RecipientStatus
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.owned import by_age
from outreach.storage.memory.table import Place, Table


@attrs.frozen(kw_only=True)
class CampaignRow:
    """A campaign as it is kept.

    Attributes:
        campaign: The snapshot of its agent is put in anew whenever it is read.
        loading_until: When it becomes a leftover; None once it is published.
        folded_name: The name as `search` compares it.
    """

    campaign: Campaign
    loading_until: datetime | None
    folded_name: str


class CampaignRows(Table[str, CampaignRow]):
    """Campaigns under their identifiers."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal, "campaign")
        self.loading = self.index(_among_loading)
        self.by_workspace = self.index(_among_published)
        self.by_status = self.index(_with_status)

    def within(self, workspace_id: str, campaign_id: str) -> CampaignRow | None:
        """Return a campaign of this workspace, loading or published."""
        row = self.get(campaign_id)
        return row if row is not None and row.campaign.workspace_id == workspace_id else None


def _among_loading(row: CampaignRow) -> Place | None:
    return None if row.loading_until is None else (None, (row.loading_until, row.campaign.id))


def _among_published(row: CampaignRow) -> Place | None:
    return (row.campaign.workspace_id, by_age(row.campaign)) if row.loading_until is None else None


def _with_status(row: CampaignRow) -> Place | None:
    return (row.campaign.status, by_age(row.campaign)) if row.loading_until is None else None


@attrs.frozen(kw_only=True)
class RecipientRow:
    """A recipient as it is kept.

    Attributes:
        recipient: With no custom variables.
        variables_text: Its custom variables as JSON text, parsed anew for each reader: JSON values can be changed.
    """

    workspace_id: str
    recipient: Recipient
    variables_text: str | None

    def read(self) -> Recipient:
        """Return the recipient with its custom variables."""
        variables: dict[str, Any] = {} if self.variables_text is None else json.loads(self.variables_text)
        return attrs.evolve(self.recipient, custom_variables=variables)


class RecipientRows(Table[tuple[str, int], RecipientRow]):
    """Recipients under (campaign, position); the indexes are grouped by (workspace, campaign)."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal, "recipient")
        self.by_position = self.index(lambda row: (_owner(row), (row.recipient.position,)))
        self.by_phone = self.index(_with_phone)
        self.without_phone = self.index(_without_phone)
        self.closable = self.index(_closable)
        self.pending = self.index(_pending)
        self.waiting = self.index(_waiting)
        self.waiting_for = self.index(_waiting_for)
        self.waiting_with = self.index(_waiting_with)
        self.in_progress = self.index(_in_progress)
        self.in_flight = self.index(_in_flight)

    def read(self, keys: Sequence[tuple[str, int]]) -> list[Recipient]:
        """Return the recipients under these keys, in the order of the keys."""
        return [row.read() for row in self.rows(keys)]


def _owner(row: RecipientRow) -> tuple[str, str]:
    return row.workspace_id, row.recipient.campaign_id


def _with_phone(row: RecipientRow) -> Place | None:
    phone = row.recipient.phone
    return None if phone is None else ((*_owner(row), phone), (row.recipient.position,))


def _without_phone(row: RecipientRow) -> Place | None:
    it = row.recipient
    return None if it.phone is not None else ((*_owner(row), it.phone_number), (it.position,))


def _closable(row: RecipientRow) -> Place | None:
    it = row.recipient
    return (_owner(row), (it.position,)) if it.status in CLOSABLE_RECIPIENT_STATUSES else None


def _pending(row: RecipientRow) -> Place | None:
    it = row.recipient
    return (_owner(row), (it.position,)) if it.status is RecipientStatus.PENDING else None


def _waiting(row: RecipientRow) -> Place | None:
    return _due_in(row, RecipientStatus.WAITING)


def _waiting_for(row: RecipientRow) -> Place | None:
    place, reason = _waiting(row), row.recipient.reason
    return None if place is None or reason is None else ((*_owner(row), reason), place[1])


def _waiting_with(row: RecipientRow) -> Place | None:
    it = row.recipient
    if it.status is not RecipientStatus.WAITING or it.phone is None:
        return None
    return (row.workspace_id, it.phone), (it.campaign_id, it.position)


def _in_progress(row: RecipientRow) -> Place | None:
    return _due_in(row, RecipientStatus.IN_PROGRESS)


def _in_flight(row: RecipientRow) -> Place | None:
    it = row.recipient
    return (_owner(row), (it.position,)) if it.status in IN_FLIGHT_RECIPIENT_STATUSES else None


def _due_in(row: RecipientRow, status: RecipientStatus) -> Place | None:
    it = row.recipient
    return (_owner(row), (it.due_at, it.position)) if it.status is status and it.due_at is not None else None
