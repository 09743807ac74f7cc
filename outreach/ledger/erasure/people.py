"""Purging one person from a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach.errors import Conflict
from outreach.ledger.access.idempotency import erase_answer
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.campaigns.transitions import complete_if_done
from outreach.ledger.common import campaign_of, record_audit
from outreach.models.archive import PurgeResult
from outreach.models.campaign import Recipient
from outreach.models.events import contact_key
from outreach.models.states import RecipientStatus, TrailRule
from outreach.models.unsubscribe import HELD, KEYWORD
from outreach.rules.settlement import ended_recipient, expire_receipt_wait
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables.erasures import PersonRows

ERASED: Final = "erased"
"""Reason of a contact who was purged before its turn."""

_ON_ITS_WAY: Final = frozenset({RecipientStatus.DISPATCHING, RecipientStatus.UNKNOWN})


def purge_person(
    tx: Transaction,
    workspace_id: str,
    phone: str,
    found: PersonRows,
    *,
    salt: str,
    token: str,
    now: datetime,
    actor: str,
) -> PurgeResult:
    """Erase a person from the rows that were found; an entry on the register stays, as a hash.

    Args:
        tx: The transaction.
        workspace_id: The workspace.
        phone: E.164.
        found: Where the number stands.
        salt: For the first hash of the workspace's register.
        token: Stands for the number where it is on no register.
        now: The time of the commit.
        actor: Recorded in the audit trail.

    Raises:
        Conflict: Contacts are being loaded, or a request to the number is on its way.
    """
    require_purgeable(tx, workspace_id, found, now=now)
    current = _as_they_are(tx, workspace_id, found)
    for recipient in current:
        _end(tx, workspace_id, recipient, now)
    entry = tx.register.get(workspace_id, phone)
    name = token
    if entry is not None:
        # What may have been an opt-out is one for good: nobody can be asked any more.
        kept = attrs.evolve(entry, scope="all", source=KEYWORD) if entry.scope == HELD else entry
        name = tx.register.hash_number(kept, salt=salt, merged=True)
    tx.unreachable_numbers.remove(workspace_id, phone)
    tx.webhook_holds.forget_key(workspace_id, contact_key(phone))
    replies = tx.erasures.erase_person(workspace_id, phone, found, name=name)
    for operation, key in found.answers:
        erase_answer(tx, workspace_id, operation, key)
    detail = f"{len(current)} contacts, {len(found.messages)} messages, {len(found.calls)} calls, {replies} replies"
    record_audit(tx, workspace_id, "person.purge", workspace_id, actor=actor, now=now, detail=detail)
    return PurgeResult(
        contacts=len(current),
        messages=len(found.messages),
        calls=len(found.calls),
        replies=replies,
        callbacks=len(found.callbacks),
        still_opted_out=entry is not None,
    )


def require_purgeable(tx: Transaction, workspace_id: str, found: PersonRows, *, now: datetime) -> None:
    """Raise `Conflict` if contacts are being loaded, or a request to a person is on its way."""
    if tx.erasures.is_loading(workspace_id, now=now):
        raise Conflict("Contacts are being loaded into a campaign. Purge again afterwards.")
    for recipient in _as_they_are(tx, workspace_id, found):
        calling = (
            recipient.status is RecipientStatus.IN_PROGRESS
            and campaign_of(tx, workspace_id, recipient.campaign_id).channel == "call"
        )
        if calling or recipient.status in _ON_ITS_WAY:
            raise Conflict(
                f"A request to this number is on its way in campaign {recipient.campaign_id}. "
                "Purge it again when that has ended."
            )
    if found.open_singles:
        raise Conflict("A single message or call to this number is on its way. Purge it again when that has ended.")


def _as_they_are(tx: Transaction, workspace_id: str, found: PersonRows) -> Sequence[Recipient]:
    """Return the contacts that were found, as they are in this transaction."""
    return [tx.recipients.get(workspace_id, one.campaign_id, one.position) or one for one in found.recipients]


def _end(tx: Transaction, workspace_id: str, recipient: Recipient, now: datetime) -> None:
    """End a contact that waits for its turn, or for a receipt."""
    if not recipient.is_open:
        return
    if recipient.status is RecipientStatus.IN_PROGRESS:
        after = expire_receipt_wait(recipient, now)
    else:
        after = ended_recipient(recipient, RecipientStatus.SKIPPED, ERASED, now)
    change = put_recipient(tx, workspace_id, recipient, after, rule=TrailRule.OPERATOR, now=now)
    counters = tx.campaigns.add_counters(workspace_id, recipient.campaign_id, change)
    campaign = campaign_of(tx, workspace_id, recipient.campaign_id)
    complete_if_done(tx, attrs.evolve(campaign, counters=counters), now=now)
