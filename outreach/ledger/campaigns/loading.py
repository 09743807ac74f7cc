"""Creating a campaign with its contacts: in chunks under a hidden campaign, then published."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import InvalidRequest, StorageError
from outreach.ledger.campaigns import trail
from outreach.ledger.campaigns.seen_numbers import SeenNumbers
from outreach.ledger.common import record_audit
from outreach.models.campaign import Campaign, Counters
from outreach.models.recipient import PreparedRecipient
from outreach.models.states import RecipientStatus
from outreach.rules.deciding import decide_loading
from outreach.rules.spellings import person_key
from outreach.storage.unit_of_work import Transaction

LOADING_LEASE: Final = timedelta(minutes=2)
"""A loading campaign without a chunk for this long was left by a crash."""


@attrs.frozen(kw_only=True)
class ChunkResult:
    """The result of one chunk.

    Attributes:
        next_position: The first position of the next chunk.
        excluded: Contacts on the register, which were not written.
        counters: The counters of the written contacts.
    """

    next_position: int
    excluded: int
    counters: Counters


def begin(tx: Transaction, campaign: Campaign, *, now: datetime) -> None:
    """Write the hidden campaign that the chunks belong to."""
    tx.campaigns.insert_loading(campaign, loading_until=now + LOADING_LEASE)


def load_chunk(
    tx: Transaction,
    campaign: Campaign,
    chunk: Sequence[PreparedRecipient],
    *,
    seen_numbers: SeenNumbers | None,
    position: int,
    now: datetime,
    known: Collection[str] = (),
) -> ChunkResult:
    """Write one chunk of contacts of a loading campaign.

    Numbers on the register are excluded; duplicates and invalid numbers are written as skipped
    (docs/interface.md#invalid-numbers). `seen_numbers` has the numbers of earlier chunks, and the caller adds those of
    this one once it is written; None for a single chunk. `known` has numbers that are duplicates besides. Raises
    `StorageError` if the campaign was deleted.
    """
    workspace_id = campaign.workspace_id
    extend_lease(tx, workspace_id, campaign.id, now)
    phones = {recipient.phone for recipient in chunk if recipient.phone is not None}
    stopped = tx.register.stopped(workspace_id, campaign.channel, phones)
    repeated = seen_numbers.candidates(phones - stopped) if seen_numbers else None
    loaded = tx.recipients.known_phones(workspace_id, campaign.id, repeated) if repeated else ()
    return write_chunk(tx, campaign, chunk, stopped=stopped, known={*known, *loaded}, position=position, now=now)


def write_chunk(
    tx: Transaction,
    campaign: Campaign,
    chunk: Sequence[PreparedRecipient],
    *,
    stopped: AbstractSet[str],
    known: Collection[str],
    position: int,
    now: datetime,
) -> ChunkResult:
    """Write contacts from a position on, given which numbers are on the register and which the campaign has."""
    seen = {person_key(phone) for phone in known}
    rows: list[tuple[int, PreparedRecipient, RecipientStatus, str | None]] = []
    excluded = pending = 0
    for recipient in chunk:
        decided = decide_loading(recipient, stopped, seen)
        if decided == "opted_out":
            excluded += 1
            continue
        if decided == "load":
            rows.append((position, recipient, RecipientStatus.PENDING, None))
            pending += 1
        else:
            rows.append((position, recipient, RecipientStatus.SKIPPED, decided))
        position += 1
    tx.recipients.insert(campaign.workspace_id, campaign.id, rows, now=now)
    counters = Counters(total=len(rows), pending=pending, open=pending)
    return ChunkResult(next_position=position, excluded=excluded, counters=counters)


def publish(
    tx: Transaction,
    campaign: Campaign,
    *,
    loaded: Counters,
    variable_names: tuple[str, ...] | None,
    excluded: int,
    since: datetime,
    now: datetime,
    actor: str,
) -> tuple[Campaign, int]:
    """Publish a loaded campaign; return it and how many contacts were excluded in all.

    Numbers that came onto the register during the load are removed first.

    Raises:
        InvalidRequest: Every contact is on the register (docs/interface.md#4.3, rule 3).
        StorageError: The campaign was deleted as a leftover.
    """
    workspace_id = campaign.workspace_id
    extend_lease(tx, workspace_id, campaign.id, now)
    dropped = tx.recipients.delete_stopped_since(workspace_id, campaign.id, campaign.channel, since)
    counters = loaded - dropped
    excluded += dropped.total
    if counters.total == 0:
        raise InvalidRequest.at(
            "recipients", "Every contact is on the workspace's unsubscribe register; there is nobody left to reach."
        )
    published = attrs.evolve(campaign, counters=counters, variable_names=variable_names)
    tx.campaigns.publish(published)
    trail.record_campaign_created(tx, published, actor=actor, now=now)
    record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="campaign.create", subject=campaign.id)
    return tx.campaigns.get(workspace_id, campaign.id) or published, excluded


def extend_lease(tx: Transaction, workspace_id: str, campaign_id: str, now: datetime) -> None:
    """Extend the lease of a loading campaign; raise `StorageError` if it was deleted."""
    if not tx.campaigns.extend_loading(workspace_id, campaign_id, loading_until=now + LOADING_LEASE):
        raise stalled()


def stalled() -> StorageError:
    """Return the error of a load whose lease has ended, so that what was loaded was deleted."""
    return StorageError(
        f"No contacts arrived for {LOADING_LEASE.total_seconds():.0f} seconds, so what was loaded was deleted, and "
        "nothing was created or added. Load it again, from a source that does not stall, such as a file."
    )
