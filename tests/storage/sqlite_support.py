"""What the tests of the SQLite storage share: models with sensible values, and a way into the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from outreach.models.campaign import Campaign, PreparedRecipient
from outreach.models.dispatch import Dispatch
from outreach.models.states import CampaignStatus, RecipientStatus, WorkspaceMode, WorkspaceStatus
from outreach.models.work import AuditEntry
from outreach.models.workspace import Workspace
from outreach.storage.unit_of_work import Transaction

NOW = datetime(2026, 11, 20, 16, 10, 25, 123456, tzinfo=UTC)


def workspace(identifier: str = "w1") -> Workspace:
    """Return a workspace."""
    return Workspace(
        id=identifier,
        name="Acme",
        mode=WorkspaceMode.SANDBOX,
        status=WorkspaceStatus.ACTIVE,
        sms_campaigns_enabled=True,
        request_limit=None,
        default_region="US",
        revision=1,
        created_at=NOW,
        updated_at=NOW,
    )


def campaign(identifier: str = "c1", **fields: Any) -> Campaign:
    """Return an SMS campaign of the workspace `w1`."""
    values = {
        "id": identifier,
        "workspace_id": "w1",
        "channel": "sms",
        "name": f"Campaign {identifier}",
        "status": CampaignStatus.READY,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Campaign(**{**values, **fields})


def contacts(numbers: Iterable[int]) -> Iterator[tuple[int, PreparedRecipient, RecipientStatus, str | None]]:
    """Return a pending recipient for each position."""
    for number in numbers:
        phone = f"+1415555{number:04d}"
        yield number, PreparedRecipient(phone, phone, "Ada", None, None, None, None), RecipientStatus.PENDING, None


def dispatch(identifier: str = "d1", **fields: Any) -> Dispatch:
    """Return an intent for the first recipient of `c1`."""
    values = {
        "id": identifier,
        "workspace_id": "w1",
        "channel": "sms",
        "campaign_id": "c1",
        "position": 0,
        "provider": "twilio",
        "from_number": "+14155550100",
        "to": "+14155550000",
        "slot_at": NOW,
        "valid_until": NOW,
        "epoch": 1,
        "created_at": NOW,
    }
    return Dispatch(**{**values, **fields})


def set_up(tx: Transaction, *, recipients: int = 0, dispatches: Sequence[Dispatch] = ()) -> None:
    """Write a workspace and a published campaign with so many recipients and these dispatches."""
    tx.workspaces.insert(workspace())
    tx.campaigns.insert_loading(campaign(), loading_until=NOW)
    tx.recipients.insert("w1", "c1", contacts(range(recipients)), now=NOW)
    tx.campaigns.publish(campaign())
    for intent in dispatches:
        tx.dispatches.insert(intent)


def entry(subject: str) -> AuditEntry:
    """Return an audit entry: the smallest thing to write, and its order is kept."""
    return AuditEntry(at=NOW, workspace_id=None, actor="library", action="test", subject=subject)


def appending(*names: str) -> Callable[[Transaction], None]:
    """Return an operation that writes an entry for each of these subjects."""

    def append(tx: Transaction) -> None:
        for name in names:
            tx.audit.append(entry(name))

    return append


def subjects(tx: Transaction) -> list[str]:
    """Return what was written by `entry`, oldest first."""
    return [written.subject for written in reversed(tx.audit.list(None, limit=10**6))]


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file as somebody else would."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0.05)
    try:
        yield connection
    finally:
        connection.close()
