"""Claims: which worker drives what only one may drive at a time (docs/delivery-contract.md#rule-11).

A claim is about a campaign, about all that the sending numbers with a rate of a workspace send, or about its other
single calls and messages. What is committed without it is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Self

import attrs

from outreach.errors import OutreachError
from outreach.models.campaign import Campaign
from outreach.models.plans import SenderPace, sender_key
from outreach.models.resources import Number
from outreach.models.work import Claim
from outreach.rules.deciding import first_slot, next_slot, spacing
from outreach.storage.unit_of_work import Transaction

SINGLES: Final = "singles"
"""The subject of single calls and messages."""

NUMBERS: Final = "numbers"
"""The subject of the numbers that have a rate. One for all of a workspace: a pool sends from several at a time."""


@attrs.frozen(kw_only=True)
class Wanted:
    """What a worker is to drive.

    Attributes:
        campaign: The campaign; None for single calls and messages.
        senders: The paces of the numbers that it sends from; None for one without a rate.
    """

    workspace_id: str
    campaign: Campaign | None
    senders: Collection[SenderPace | None] = ()

    @property
    def subjects(self) -> Sequence[str]:
        """What has to be claimed; the first one takes the others along."""
        return subjects_of(None if self.campaign is None else self.campaign.id, self.senders)


@attrs.frozen(kw_only=True)
class Granted:
    """A claim that was granted.

    Attributes:
        spacings: How long it takes until each pace that another worker may have used is free, by its key.
    """

    spacings: Mapping[str, timedelta]


def subjects_of(campaign_id: str | None, senders: Collection[SenderPace | None] = ()) -> Sequence[str]:
    """Return what has to be claimed to send for a campaign (None: a single message or call) from numbers."""
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


def require(tx: Transaction, workspace_id: str, subjects: Sequence[str], epoch: int) -> None:
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
    if not (head is not None and head.held) and not capacity.left:
        return None
    spacings: dict[str, timedelta] = {}
    for subject, one in known.items():
        if one is None or not one.held:
            tx.claims.put(Claim(workspace_id=of, subject=subject, epoch=epoch, held=True))
            capacity.mine += 1
            capacity.all += 1
        if subject == NUMBERS and (one is None or one.epoch != epoch):
            for number in tx.numbers.list(of):
                spacings.update(_shift_number(tx, number, now, given_back=one is not None))
    campaign = wanted.campaign
    run = None if campaign is None else tx.runs.get(of, campaign.id)
    if campaign is not None and run is not None and run.owner_epoch != epoch:
        spacings.update(shift_campaign(tx, campaign, epoch, now))
    return Granted(spacings=spacings)


def release(tx: Transaction, workspace_id: str, subject: str, epoch: int) -> None:
    """Free a claim, if a worker holds it."""
    claim = tx.claims.get(workspace_id, subject)
    if claim is not None and claim.held and claim.epoch == epoch:
        tx.claims.put(attrs.evolve(claim, held=False))


@attrs.define(kw_only=True)
class _WorkerCapacity:
    """How many of all claims one worker holds.

    Attributes:
        workers: How many workers there are.
        mine: The claims that it holds.
        all: The claims that any worker holds.
    """

    workers: int
    mine: int
    all: int

    @classmethod
    def of(cls, tx: Transaction, epoch: int) -> Self:
        """Return the capacity of a worker."""
        workers = len(tx.workers.list())
        held = tx.claims.held() if workers > 1 else ()
        return cls(workers=workers, mine=sum(one.epoch == epoch for one in held), all=len(held))

    @property
    def left(self) -> bool:
        """Whether it drives no more than its portion."""
        return self.workers == 1 or self.mine * self.workers <= self.all


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
