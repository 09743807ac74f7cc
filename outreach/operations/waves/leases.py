"""Taking and renewing the dispatch lease of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import attrs

from outreach.models.campaign import Campaign, PauseReason
from outreach.models.plans import sender_key
from outreach.models.resources import Number
from outreach.models.states import CampaignAction, CampaignStatus
from outreach.models.work import DatabaseHome, HighWaterMark, Lease
from outreach.operations.campaigns.transitions import move
from outreach.operations.common import record_audit, require_lease
from outreach.operations.waves import clock_steps
from outreach.policy.pacing import first_slot, spacing
from outreach.working_set import Transaction


@attrs.frozen(kw_only=True)
class Takeover:
    """The result of taking the lease.

    Attributes:
        epoch: The new epoch.
        paused_campaigns: Campaigns that were paused by a quarantine.
        reason: The reason of the quarantine; None without one.
        spacings: The pace of each campaign and sender that the earlier worker may have used, by its key.
    """

    epoch: int
    paused_campaigns: Sequence[Campaign]
    reason: PauseReason | None
    spacings: Mapping[str, timedelta]


def take_over(
    tx: Transaction,
    *,
    home: DatabaseHome | None,
    noted: HighWaterMark | None,
    now: datetime,
    receipt: timedelta | None = None,
) -> Takeover:
    """Take the lease under a new epoch; `receipt` is the longest wait for a receipt, None if there is no bound.

    A database that was moved to another host or path, or that is older than the high-water mark beside it, is
    quarantined: its running campaigns are paused until an operator resumes them (docs/delivery-contract.md#rule-10).
    The pace holds across workers, because every start of the old one lies before now.
    """
    current = tx.leases.current()
    epoch = (current.epoch if current else 0) + 1
    known = tx.leases.home()
    reason: PauseReason | None = None
    if known is not None and home is not None and known != home:
        reason = "moved"
    elif _is_behind(tx, noted, current):
        reason = "restored"
    if noted is not None:
        epoch = max(epoch, noted.epoch + 1)
    paused_campaigns: list[Campaign] = []
    if reason is not None:
        running = tx.campaigns.in_status({CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED})
        paused_campaigns = [
            move(tx, campaign, CampaignAction.PAUSE, now=now, actor="engine", pause_reason=reason)
            for campaign in running
        ]
    spacings: dict[str, timedelta] = {}
    # Paused and scheduled campaigns may run again soon.
    for campaign in tx.campaigns.in_status({CampaignStatus.ACTIVE, CampaignStatus.PAUSED, CampaignStatus.SCHEDULED}):
        spacings.update(_shift_campaign_slot(tx, campaign, epoch, now))
    for workspace in tx.workspaces.list():
        for number in tx.numbers.list(workspace.id):
            spacings.update(_shift_sender_slot(tx, number, now))
    back = clock_steps.measure_setback(tx, now)
    if back is not None:
        clock_steps.repair_after_clock_step(tx, back, epoch=epoch, now=now)
    else:
        # Nothing else shows times that were written by a wrong clock while no worker ran.
        clock_steps.correct_due_times(tx, now=now)
        clock_steps.correct_waits(tx, receipt=receipt, epoch=epoch, now=now)
    if home is not None:
        tx.leases.set_home(home)
    held_reason, held_epoch = (current.held_reason, current.held_epoch) if current is not None else (None, None)
    if reason is not None:
        held_reason, held_epoch = reason, epoch
    tx.leases.put(
        Lease(
            epoch=epoch,
            home=home,
            renewed_at=now,
            steady_since=now,
            steady_until=now,
            held_reason=held_reason,
            held_epoch=held_epoch,
        )
    )
    record_audit(tx, now=now, workspace_id=None, actor="engine", action="lease.take", subject=str(epoch), detail=reason)
    return Takeover(epoch=epoch, paused_campaigns=tuple(paused_campaigns), reason=reason, spacings=spacings)


def high_water(tx: Transaction, epoch: int) -> HighWaterMark:
    """Return the database's high-water mark."""
    lease = tx.leases.current()
    return HighWaterMark(
        database=tx.leases.database_id(),
        epoch=epoch,
        change=tx.work.last_change(),
        renewed_at=lease.renewed_at if lease is not None and lease.epoch == epoch else None,
    )


def renew(
    tx: Transaction, *, epoch: int, now: datetime, back: timedelta | None = None, present: datetime | None = None
) -> HighWaterMark:
    """Renew the lease and return the high-water mark.

    Args:
        tx: The transaction.
        epoch: The worker's.
        now: When the worker looked at its clock.
        back: How far the clock was set back since the last heartbeat: zero after a step forwards, None without a step.
        present: The time of this transaction, which may have waited long; None for `now`.

    Raises:
        LeaseLost: Another worker has taken over.
    """
    lease = require_lease(tx, epoch)
    if back:
        # What was written while this waited does not lie ahead.
        clock_steps.repair_after_clock_step(tx, back, epoch=epoch, now=present or now)
    # Never back within an epoch: a mark with a later heartbeat shows a restored database.
    latest = max(now, lease.renewed_at + timedelta(microseconds=1))
    since = lease.steady_since if back is None else now
    tx.leases.put(attrs.evolve(lease, renewed_at=latest, steady_since=since, steady_until=now))
    return high_water(tx, epoch)


def _is_behind(tx: Transaction, mark: HighWaterMark | None, lease: Lease | None) -> bool:
    """Return whether a database is older than its high-water mark; another database's mark says nothing."""
    if mark is None or mark.database != tx.leases.database_id():
        return False
    if mark.epoch > (lease.epoch if lease else 0) or mark.change > tx.work.last_change():
        return True
    # A heartbeat is committed before the mark is written, so that an intact file is never behind.
    same = lease is not None and lease.epoch == mark.epoch
    return same and mark.renewed_at is not None and lease is not None and mark.renewed_at > lease.renewed_at


def _shift_campaign_slot(tx: Transaction, campaign: Campaign, epoch: int, now: datetime) -> Mapping[str, timedelta]:
    run = tx.runs.get(campaign.workspace_id, campaign.id)
    if run is None:
        return {}
    slot, spacings = run.next_slot_at, {}
    if campaign.channel == "sms":
        # Calls have no pace, only a limit in flight, which the ledger shows.
        spacings[campaign.id] = spacing(campaign.rate_per_minute or 1)
        slot = first_slot(slot, now, spacings[campaign.id])
    tx.runs.put(attrs.evolve(run, owner_epoch=epoch, next_slot_at=slot))
    return spacings


def _shift_sender_slot(tx: Transaction, number: Number, now: datetime) -> Mapping[str, timedelta]:
    taken = tx.runs.sender_slot(number.workspace_id, number.phone)
    if number.rate_per_minute is None or taken is None:
        return {}
    apart = spacing(number.rate_per_minute)
    tx.runs.put_sender_slot(number.workspace_id, number.phone, first_slot(taken, now, apart))
    return {sender_key(number.workspace_id, number.phone): apart}
