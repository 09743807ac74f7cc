"""Beginning to dispatch from a database, and going on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import attrs

from outreach.errors import DispatchRefused, LeaseLost
from outreach.ledger.access import logins
from outreach.ledger.campaigns.transitions import move
from outreach.ledger.common import record_audit
from outreach.ledger.leases import claims, clock_steps, workers
from outreach.ledger.schedules import pause_after_restore
from outreach.models.campaign import Campaign, PauseReason
from outreach.models.plans import sender_key
from outreach.models.resources import Number
from outreach.models.states import CampaignAction, CampaignStatus
from outreach.models.work import COPIED_FROM, RESTORED, DatabaseHome, HighWaterMark, Lease
from outreach.rules.deciding import first_slot, spacing
from outreach.storage.unit_of_work import Transaction


@attrs.frozen(kw_only=True)
class Takeover:
    """The result of taking a lease.

    Attributes:
        epoch: The new epoch.
        alone: Whether no other worker dispatches.
        others: The places of the others, by epoch.
        paused_campaigns: Campaigns that were paused by a quarantine.
        reason: The reason of the quarantine; None without one.
        spacings: The pace of each campaign and sender that the earlier worker may have used, by its key.
    """

    epoch: int
    alone: bool
    others: Mapping[int, int]
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
    place: int = 1,
    lasts: timedelta = workers.DEFAULT_LEASE,
    gone: Collection[int] = (),
    unrenewed: Collection[int] = (),
) -> Takeover:
    """Begin to dispatch under a new epoch, alone or beside others; end the leases that are over.

    A database that was moved to another host or path, or that is older than the high-water mark beside it, is
    quarantined: its running campaigns are paused until an operator resumes them (docs/delivery-contract.md#rule-10).
    The pace holds across workers, because every start of the old one lies before now.

    Args:
        tx: The transaction.
        home: Where the database is; None if not applicable.
        noted: The mark beside it, if any.
        now: The time.
        receipt: The longest wait for a receipt; None if there is no bound.
        place: The place that this worker has taken; the worker that had it before has ended.
        lasts: How long the lease lasts.
        gone: The epochs of workers that are certainly gone.
        unrenewed: The epochs of those that were seen not to renew their leases (`workers.end_lost`).

    Raises:
        DispatchRefused: The database was copied elsewhere by `db copy`.
    """
    current = tx.leases.current()
    known = tx.leases.home()
    workers.end_lost(
        tx, but=None, unrenewed=unrenewed, is_gone=lambda other: other.place == place or other.epoch in gone
    )
    others = {other.epoch: other.place for other in tx.workers.list()}
    alone = not others
    epoch = max(current.epoch if current else 0, noted.epoch if noted else 0) + 1
    if known is not None and known.copied_to is not None:
        raise DispatchRefused(copied_text(known.copied_to), reason="copied")
    reason = quarantine_of(known, home) or ("restored" if is_behind(tx, noted, current) else None)
    paused_campaigns: list[Campaign] = []
    if reason is not None:
        running = tx.campaigns.in_status({CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED})
        paused_campaigns = [
            move(tx, campaign, CampaignAction.PAUSE, now=now, actor="engine", pause_reason=reason)
            for campaign in running
        ]
        pause_after_restore(tx, reason, now)
        logins.end_after_restore(tx, now)
    spacings = _take_everything(tx, epoch, now, receipt) if alone else {}
    if home is not None:
        tx.leases.set_home(home)
    quarantine_reason, quarantine_epoch = (
        (current.quarantine_reason, current.quarantine_epoch) if current is not None else (None, None)
    )
    if reason is not None:
        quarantine_reason, quarantine_epoch = reason, epoch
    begun = Lease(
        epoch=epoch,
        home=home,
        renewed_at=now,
        steady_since=now,
        steady_until=now,
        quarantine_reason=quarantine_reason,
        quarantine_epoch=quarantine_epoch,
    )
    if not alone and current is not None:
        # Only the leader records observations of the clock.
        begun = attrs.evolve(
            begun,
            renewed_at=max(now, current.renewed_at),
            steady_since=current.steady_since,
            steady_until=current.steady_until,
        )
    tx.leases.put(begun)
    workers.begin(tx, epoch=epoch, place=place, lasts=lasts)
    record_audit(tx, now=now, workspace_id=None, actor="engine", action="lease.take", subject=str(epoch), detail=reason)
    return Takeover(
        epoch=epoch,
        alone=alone,
        others=others,
        paused_campaigns=tuple(paused_campaigns),
        reason=reason,
        spacings=spacings,
    )


def _take_everything(tx: Transaction, epoch: int, now: datetime, receipt: timedelta | None) -> Mapping[str, timedelta]:
    """Take over what earlier workers drove, where none of them is left; return the paces that they may have used."""
    tx.claims.clear()
    spacings: dict[str, timedelta] = {}
    # Paused and scheduled campaigns may run again soon.
    campaigns = tx.campaigns.in_status({CampaignStatus.ACTIVE, CampaignStatus.PAUSED, CampaignStatus.SCHEDULED})
    tx.runs.prefetch((campaign.workspace_id, campaign.id) for campaign in campaigns)
    for campaign in campaigns:
        spacings.update(claims.shift_campaign(tx, campaign, epoch, now))
    for workspace in tx.workspaces.list():
        for number in tx.numbers.list(workspace.id):
            spacings.update(_shift_sender_slot(tx, number, now))
    clock_steps.repair_what_the_last_left(tx, receipt=receipt, epoch=epoch, now=now)
    return spacings


def high_water(tx: Transaction, epoch: int) -> HighWaterMark:
    """Return the database's high-water mark, at least at a worker's epoch."""
    lease = tx.leases.current()
    return HighWaterMark(
        database=tx.leases.database_id(),
        epoch=max(epoch, lease.epoch) if lease is not None else epoch,
        change=tx.work.last_change(),
        renewed_at=lease.renewed_at if lease is not None and lease.epoch >= epoch else None,
    )


def renew(
    tx: Transaction,
    *,
    epoch: int,
    now: datetime,
    noted: HighWaterMark | None = None,
    back: timedelta | None = None,
    present: datetime | None = None,
    lasts: timedelta = workers.DEFAULT_LEASE,
    led: bool = True,
    receipt: timedelta | None = None,
) -> HighWaterMark | None:
    """Renew a worker's lease; return the high-water mark to be noted, None unless this worker leads.

    Args:
        tx: The transaction.
        epoch: The worker's.
        now: When the worker looked at its clock.
        noted: The high-water mark, if any.
        back: How far the clock was set back since the last heartbeat: zero after a step forwards, None without a step.
        present: The time of this transaction, which may have waited long; None for `now`.
        lasts: How long the lease lasts.
        led: Whether the worker led at its last heartbeat.
        receipt: The longest wait for a receipt; None if there is no bound.

    Raises:
        LeaseLost: Its lease has ended, or the database was set back: the next worker pauses running campaigns.
    """
    if is_behind(tx, noted, tx.leases.current()):
        raise LeaseLost("The database was set back to an earlier state during this lease: the worker starts a new one.")
    workers.renew(tx, epoch=epoch, lasts=lasts)
    lease = tx.leases.current()
    if lease is None or not workers.leads(tx, epoch):
        return None
    steady = led and back is None
    # What was written while this waited does not lie ahead.
    written_by = present or now
    if not led:
        clock_steps.repair_what_the_last_left(tx, receipt=receipt, epoch=epoch, now=written_by)
    elif back:
        clock_steps.repair_after_clock_step(tx, back, epoch=epoch, now=written_by)
    # Never back: a mark with a later heartbeat shows a restored database.
    latest = max(now, lease.renewed_at + timedelta(microseconds=1))
    since = lease.steady_since if steady else now
    tx.leases.put(attrs.evolve(lease, renewed_at=latest, steady_since=since, steady_until=now))
    return high_water(tx, epoch)


def quarantine_of(known: DatabaseHome | None, home: DatabaseHome | None) -> PauseReason | None:
    """Return why a database must not go on without a person; None if it may.

    Args:
        known: Where it was when the last worker began.
        home: Where it is; None if that is not known.
    """
    if known is None:
        return None
    elsewhere = home is not None and not (known.path == home.path and known.may_share_machine(home))
    if known.machine == COPIED_FROM or elsewhere:
        return "moved"
    if known.state == RESTORED:
        return "restored"
    # Earlier versions recorded no state.
    return "restored" if home is not None and known.state not in {"", home.state} else None


def copied_text(target: str) -> str:
    """Return why nothing is sent from a database that was copied elsewhere, and what to do."""
    return (
        f"This database was copied to {target} with `outreach-server db copy`: two servers that send from both would "
        "reach contacts twice. Start the server on the copy. If the copy is not used, start this one with "
        "`outreach-server serve --dispatch-copied` (reclaim_database): its campaigns are paused first."
    )


def is_behind(tx: Transaction, mark: HighWaterMark | None, lease: Lease | None) -> bool:
    """Return whether a database is older than its high-water mark; another database's mark says nothing."""
    if mark is None or mark.database != tx.leases.database_id():
        return False
    if mark.epoch > (lease.epoch if lease else 0) or mark.change > tx.work.last_change():
        return True
    # A heartbeat is committed before the mark is written, so that an intact file is never behind.
    same = lease is not None and lease.epoch == mark.epoch
    return same and mark.renewed_at is not None and lease is not None and mark.renewed_at > lease.renewed_at


def _shift_sender_slot(tx: Transaction, number: Number, now: datetime) -> Mapping[str, timedelta]:
    taken = tx.runs.sender_slot(number.workspace_id, number.phone)
    if number.rate_per_minute is None or taken is None:
        return {}
    apart = spacing(number.rate_per_minute)
    tx.runs.put_sender_slot(number.workspace_id, number.phone, first_slot(taken, now, apart))
    return {sender_key(number.workspace_id, number.phone): apart}
