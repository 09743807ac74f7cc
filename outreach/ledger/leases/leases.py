"""Beginning to dispatch from a database, and going on: the leases of workers, and their claims.

A lease ends by the clock of the database (`Transaction.now`), because those of the workers may differ. That clock may
be set forth, past the end of every lease. So another worker ends a lease only if it has seen it unrenewed for as long
as it lasts, by its own monotonic clock, or if the place of its worker is free. The price: the work of a worker
that hangs with its lock waits for a whole lease.

A claim (docs/delivery-contract.md#rule-11) is about a campaign, about all that the sending numbers with a rate of a
workspace send, or about its other single calls and messages. A commit without it is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Self

import attrs

from outreach.core.clock import Clock
from outreach.errors import DispatchRefused, LeaseLost, OutreachError
from outreach.ledger.access import logins
from outreach.ledger.campaigns.transitions import move, pause_again
from outreach.ledger.common import record_audit, require_worker
from outreach.ledger.leases import clock_steps
from outreach.ledger.schedules import pause_after_restore
from outreach.models.campaign import Campaign, PauseReason
from outreach.models.plans import SenderPace, sender_key
from outreach.models.resources import Number
from outreach.models.states import CampaignAction, CampaignStatus
from outreach.models.work import COPIED_FROM, RESTORED, Claim, DatabaseHome, HighWaterMark, Lease, WorkerLease
from outreach.rules.deciding import first_slot, next_slot, spacing
from outreach.storage.unit_of_work import Transaction

SINGLES: Final = "singles"
"""The subject of single calls and messages."""

NUMBERS: Final = "numbers"
"""The subject of the numbers that have a rate. One for all of a workspace: a pool sends from several at a time."""


@attrs.frozen(kw_only=True)
class Wanted:
    """The work that a worker is to drive.

    Attributes:
        campaign: The campaign; None for single calls and messages.
        senders: The paces of the numbers that it sends from; None for one without a rate.
    """

    workspace_id: str
    campaign: Campaign | None
    senders: Collection[SenderPace | None] = ()

    @property
    def subjects(self) -> Sequence[str]:
        """The subjects to claim; the others are handed over with the first one."""
        return subjects_of(None if self.campaign is None else self.campaign.id, self.senders)


@attrs.frozen(kw_only=True)
class Granted:
    """A claim that was granted.

    Attributes:
        spacings: How long it takes until each pace that another worker may have used is free, by its key.
    """

    spacings: Mapping[str, timedelta]


def subjects_of(campaign_id: str | None, senders: Collection[SenderPace | None] = ()) -> Sequence[str]:
    """Return the subjects to claim to send for a campaign (None: a single message or call) from numbers."""
    of_numbers = () if all(pace is None for pace in senders) else (NUMBERS,)
    if campaign_id is None:
        return of_numbers or (SINGLES,)
    return (*of_numbers, campaign_id)


class NotClaimed(OutreachError):
    """Another worker drives a single call or message, or did last."""

    code = "not_claimed"


def may_commit(tx: Transaction, workspace_id: str, subjects: Sequence[str], epoch: int) -> bool:
    """Return whether a worker may commit intents of these subjects: no other one has claimed them since.

    It claims what no worker has claimed.
    """
    known = {subject: tx.claims.get(workspace_id, subject) for subject in subjects}
    if any(one is not None and one.epoch != epoch for one in known.values()):
        return False
    for subject, one in known.items():
        if one is None or not one.held:
            tx.claims.put(Claim(workspace_id=workspace_id, subject=subject, epoch=epoch, held=True))
    return True


def require_claims(tx: Transaction, workspace_id: str, subjects: Sequence[str], epoch: int) -> None:
    """Raise `NotClaimed` unless a worker may commit intents of these subjects."""
    if not may_commit(tx, workspace_id, subjects, epoch):
        raise NotClaimed("Another worker drives this.")


def claim_all(tx: Transaction, wanted: Sequence[Wanted], *, epoch: int, now: datetime) -> Sequence[Granted | None]:
    """Claim many things for a worker; None for each that another one drives, or has more capacity for.

    The pace holds across workers, because every start of the earlier one lies before now.
    """
    tx.claims.prefetch((one.workspace_id, subject) for one in wanted for subject in one.subjects)
    tx.runs.prefetch((one.workspace_id, one.campaign.id) for one in wanted if one.campaign is not None)
    capacity = _WorkerCapacity.of(tx, epoch)
    return [_claim(tx, one, capacity, epoch=epoch, now=now) for one in wanted]


def _claim(tx: Transaction, wanted: Wanted, capacity: _WorkerCapacity, *, epoch: int, now: datetime) -> Granted | None:
    of = wanted.workspace_id
    known = {subject: tx.claims.get(of, subject) for subject in wanted.subjects}
    if any(one is not None and one.held and one.epoch != epoch for one in known.values()):
        return None
    head = known[wanted.subjects[0]]
    if not (head is not None and head.held) and not capacity.has_room(of):
        return None
    spacings: dict[str, timedelta] = {}
    for subject, one in known.items():
        if one is None or not one.held:
            tx.claims.put(Claim(workspace_id=of, subject=subject, epoch=epoch, held=True))
            capacity.add(of, epoch)
        if subject == NUMBERS and (one is None or one.epoch != epoch):
            for number in tx.numbers.list(of):
                spacings.update(_shift_number(tx, number, now, given_back=one is not None))
    campaign = wanted.campaign
    run = None if campaign is None else tx.runs.get(of, campaign.id)
    if campaign is not None and run is not None and run.owner_epoch != epoch:
        spacings.update(shift_campaign(tx, campaign, epoch, now))
    return Granted(spacings=spacings)


def release_claim(tx: Transaction, workspace_id: str, subject: str, epoch: int) -> None:
    """Free a claim, if a worker holds it."""
    claim = tx.claims.get(workspace_id, subject)
    if claim is not None and claim.held and claim.epoch == epoch:
        tx.claims.put(attrs.evolve(claim, held=False))


class _WorkerCapacity:
    """The claims that one worker may still take, in view of all claims.

    A workspace is driven by one worker, so that its transactions wait for no others, unless it has more than a worker's
    portion of all claims. A worker with too many hands workspaces over.

    Args:
        epoch: The worker.
        workers: How many workers there are.
        held: The claims that are held.
    """

    def __init__(self, epoch: int, workers: int, held: Iterable[Claim]) -> None:
        self._epoch = epoch
        self._workers = workers
        self._mine: Counter[str] = Counter()
        self._all: Counter[str] = Counter()
        for one in held:
            self.add(one.workspace_id, one.epoch)

    @classmethod
    def of(cls, tx: Transaction, epoch: int) -> Self:
        """Return the capacity of a worker."""
        workers = len(tx.workers.list())
        return cls(epoch, workers, tx.claims.held() if workers > 1 else ())

    def add(self, workspace_id: str, epoch: int) -> None:
        """Count a claim."""
        self._all[workspace_id] += 1
        if epoch == self._epoch:
            self._mine[workspace_id] += 1

    def has_room(self, workspace_id: str) -> bool:
        """Return whether the worker may claim something more in a workspace."""
        if self._workers == 1:
            return True
        portion, there = self._all.total() / self._workers, self._all[workspace_id]
        if 0 < there <= portion:
            return 2 * self._mine[workspace_id] >= there
        return self._mine.total() <= portion


def shift_campaign(tx: Transaction, campaign: Campaign, epoch: int, now: datetime) -> Mapping[str, timedelta]:
    """Move a campaign's next slot behind what its last worker may have started; return its pace, by its key."""
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


def _shift_number(tx: Transaction, number: Number, now: datetime, *, given_back: bool) -> Mapping[str, timedelta]:
    """Return when a number that another worker may have used is free, by its key; move its slot where that is needed.

    A lost worker has no claims: the number's slot shows when it is free, unless the clock was set back.
    """
    workspace_id, phone = number.workspace_id, number.phone
    taken = tx.runs.sender_slot(workspace_id, phone)
    if number.rate_per_minute is None or taken is None:
        return {}
    key, apart = sender_key(workspace_id, phone), spacing(number.rate_per_minute)
    if not given_back and (slot := next_slot(taken, now, apart)) is not None:
        return {key: max(slot - now, timedelta())}
    tx.runs.put_sender_slot(workspace_id, phone, first_slot(taken, now, apart))
    return {key: apart}


DEFAULT_LEASE: Final = timedelta(seconds=15)

_AHEAD: Final = timedelta(seconds=1)
"""A heartbeat farther ahead than this was written before the clock of the database was set back."""


class StaleLeaseDetector:
    """Detects leases that were not renewed for as long as they last, by the process's monotonic clock.

    Args:
        clock: The source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: Mapping[int, tuple[datetime, float]] = {}

    def look(self, tx: Transaction) -> Collection[int]:
        """Return the epochs of the leases that were not renewed for as long as they last; called at each heartbeat."""
        now, before, unrenewed = self._clock.monotonic(), self._first, []
        self._first = {}
        for worker in tx.workers.list():
            renewed_at, since = before.get(worker.epoch, (None, now))
            if renewed_at != worker.renewed_at:
                since = now
            elif now - since >= (worker.until - worker.renewed_at).total_seconds():
                unrenewed.append(worker.epoch)
            self._first[worker.epoch] = (worker.renewed_at, since)
        return frozenset(unrenewed)


def begin_worker(tx: Transaction, *, epoch: int, place: int, lasts: timedelta) -> None:
    """Write the lease of a new worker."""
    now = tx.now()
    tx.workers.put(WorkerLease(epoch=epoch, place=place, renewed_at=now, until=now + lasts))


def renew_worker(tx: Transaction, *, epoch: int, lasts: timedelta) -> None:
    """Renew a worker's lease, or raise `LeaseLost` if it has ended."""
    worker, now = require_worker(tx, epoch), tx.now()
    tx.workers.put(attrs.evolve(worker, renewed_at=now, until=now + lasts))


def leads(tx: Transaction, epoch: int) -> bool:
    """Return whether a worker is the one that does what only one is to do."""
    return all(epoch <= worker.epoch for worker in tx.workers.list())


def end_worker(tx: Transaction, epoch: int) -> None:
    """End a worker's lease: from now on it commits nothing, and what it drove is free."""
    tx.workers.delete(epoch)
    tx.claims.free(epoch)


def seem_over(tx: Transaction, *, place: int) -> Mapping[int, int]:
    """Return the places, by epoch, of workers in other places whose leases have ended by the database's clock."""
    now = tx.now()
    return {one.epoch: one.place for one in tx.workers.list() if one.until <= now and one.place != place}


def end_lost(
    tx: Transaction,
    *,
    but: int | None,
    unrenewed: Collection[int] = (),
    is_gone: Callable[[WorkerLease], bool] = lambda _: False,
) -> Sequence[int]:
    """End the leases of other workers that are over, and of those that are gone; return their epochs.

    Args:
        tx: The transaction.
        but: The epoch of the worker that asks, if it has one.
        unrenewed: The epochs of the leases that it has seen unrenewed for long (`StaleLeaseDetector`).
        is_gone: Returns whether a worker is certainly gone.
    """
    now, lost = tx.now(), []
    for worker in tx.workers.list():
        if worker.epoch == but:
            continue
        if is_gone(worker) or (worker.until <= now and worker.epoch in unrenewed):
            end_worker(tx, worker.epoch)
            lost.append(worker.epoch)
        elif worker.renewed_at > now + _AHEAD:
            lasts = worker.until - worker.renewed_at
            tx.workers.put(attrs.evolve(worker, renewed_at=now, until=now + lasts))
    return lost


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
    lasts: timedelta = DEFAULT_LEASE,
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
        unrenewed: The epochs of those that were seen not to renew their leases (`end_lost`).

    Raises:
        DispatchRefused: The database was copied elsewhere by `db copy`.
    """
    current = tx.leases.current()
    known = tx.leases.home()
    end_lost(tx, but=None, unrenewed=unrenewed, is_gone=lambda other: other.place == place or other.epoch in gone)
    others = {other.epoch: other.place for other in tx.workers.list()}
    alone = not others
    epoch = max(current.epoch if current else 0, noted.epoch if noted else 0) + 1
    if known is not None and known.copied_to is not None:
        raise DispatchRefused(copied_text(known.copied_to), reason="copied")
    reason = quarantine_of(known, home) or ("restored" if is_behind(tx, noted, current) else None)
    paused_campaigns: list[Campaign] = []
    if reason is not None:
        # It may have run on where the database was before.
        for campaign in tx.campaigns.in_status({CampaignStatus.PAUSED}):
            pause_again(tx, campaign, reason, now=now)
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
    begin_worker(tx, epoch=epoch, place=place, lasts=lasts)
    record_audit(tx, None, "lease.take", str(epoch), actor="engine", now=now, detail=reason)
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
        spacings.update(shift_campaign(tx, campaign, epoch, now))
    for workspace in tx.workspaces.list():
        for number in tx.numbers.list(workspace.id):
            spacings.update(_shift_number(tx, number, now, given_back=True))
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
    lasts: timedelta = DEFAULT_LEASE,
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
    renew_worker(tx, epoch=epoch, lasts=lasts)
    lease = tx.leases.current()
    if lease is None or not leads(tx, epoch):
        return None
    steady = led and back is None
    # A heartbeat that was written while this waited does not lie ahead.
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
