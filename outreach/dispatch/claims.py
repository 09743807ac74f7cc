"""The claims of this worker beside others: taking, handing over and freeing them; and its portion of permits."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import attrs

from outreach.core.clock import Clock
from outreach.core.config import EngineConfig
from outreach.dispatch.batcher import Batcher
from outreach.ledger.common import require_worker
from outreach.ledger.leases import leases
from outreach.ledger.leases.leases import SINGLES, Granted, Wanted
from outreach.ledger.sending import intents
from outreach.ledger.sending.intents import Permits
from outreach.models.work import Claim, WorkItem, WorkUnit
from outreach.protocols.storage import Storage, Within
from outreach.providers.http.request_gate import FairLimiter
from outreach.storage.unit_of_work import Transaction

Subject = tuple[str, str]
"""A workspace and a subject of it (`models.work.Claim`)."""

_MAX_CLAIMED: Final = 200
"""Claims in one transaction."""

_MAX_REFUSED: Final = 10_000
"""Units whose last slice was refused; a dispatcher that does not ask leaves them behind."""

_MAX_HANDED_OVER: Final = 100
"""Subjects that are handed over at one heartbeat: each begins its pace anew."""

_MAX_PARTS: Final = 8
"""How much of a workspace is handed over at one heartbeat while the rest stays: two workers that drive a workspace wait
for each other's transactions."""


@attrs.frozen(kw_only=True)
class Team:
    """The state of all workers at a heartbeat.

    Attributes:
        others: The places of the others, by epoch.
        held: The claims of all of them; empty while there is one.
    """

    others: Mapping[int, int]
    held: Sequence[Claim] = ()

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.others) + 1


class Claims:
    """The claims of this worker.

    While it has been alone since it began it asks for none: its commits make the claims
    (`leases.may_commit`). Otherwise it claims its work ahead. It frees the claims that it does not drive any
    more, and those beyond its portion, once nothing of them waits in the outbox.

    Args:
        storage: The database.
        clock: The source of time.
        idle_seconds: A claim that was not driven for this long is freed.
        note_pace: Called with the key and the earliest next start, on the monotonic clock, of each pace that others
            may have used.
    """

    def __init__(
        self, *, storage: Storage, clock: Clock, idle_seconds: float, note_pace: Callable[[str, float], None]
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._note_pace = note_pace
        self._epoch: int | None = None
        self._heads: dict[Subject, Subject] = {}
        self._busy: Counter[Subject] = Counter()
        self._driven: dict[Subject, float] = {}
        self._leaving: set[Subject] = set()
        # Workspaces in which nothing is claimed until all earlier claims are freed.
        self._handed_over: set[str] = set()
        self._others: frozenset[Subject] = frozenset()
        self._refused: dict[WorkUnit, Wanted] = {}
        self.alone = True
        self._batch = Batcher(self._claim_all, max_size=lambda: _MAX_CLAIMED)

    def begin(self, epoch: int, *, alone: bool) -> None:
        """Begin under a new epoch, without any claim."""
        self._epoch, self.alone, self._others = epoch, alone, frozenset()
        for known in (self._heads, self._driven, self._leaving, self._handed_over):
            known.clear()

    def doubt(self) -> None:
        """Ask before driving anything from now on, because another worker drove something."""
        self.alone = False

    @contextmanager
    def slice(self, unit: WorkUnit) -> Iterator[SliceClaims]:
        """Return the claims of one slice of a unit; they end with the slice."""
        self._refused.pop(unit, None)
        slice_claims = SliceClaims(self, unit)
        try:
            yield slice_claims
        finally:
            for head in slice_claims.heads:
                self.leave(head)

    def note_refusal(self, unit: WorkUnit, wanted: Wanted) -> None:
        """Note that a slice of a unit may not drive what it needs."""
        if len(self._refused) >= _MAX_REFUSED:
            self._refused.clear()
        self._refused[unit] = wanted

    async def refused_by(self, unit: WorkUnit) -> int | None:
        """Return the workers that drive what a unit's last slice needed; see `protocols.dispatcher.Worker`."""
        wanted = self._refused.pop(unit, None)
        if wanted is None:
            return None

        def operation(tx: Transaction) -> int:
            known = [tx.claims.get(wanted.workspace_id, subject) for subject in wanted.subjects]
            return next((one.epoch for one in known if one is not None and one.held and one.epoch != self._epoch), 0)

        return await self._storage.read(operation)

    def enter(self, head: Subject) -> None:
        """Note that something of a subject is in work: it is not handed over meanwhile."""
        self._busy[head] += 1

    def leave(self, head: Subject) -> None:
        """Note that it is not any more."""
        self._busy[head] -= 1
        if not self._busy[head]:
            del self._busy[head]

    async def hold(self, wanted: Wanted) -> bool:
        """Claim something that is to be driven now; return whether this worker may drive it."""
        if self.alone:
            return True
        subjects = [(wanted.workspace_id, subject) for subject in wanted.subjects]
        head = subjects[0]
        if head in self._leaving:
            return False
        if head not in self._heads and wanted.workspace_id in self._handed_over:
            return False
        if all(self._heads.get(subject) == head for subject in subjects):
            self._driven[head] = self._clock.monotonic()
            return True
        if not await self._batch.submit(wanted):
            # A number that another worker drives takes along the campaign that sends from it.
            self._leaving.update({subjects[-1]} & self._heads.keys())
            return False
        for subject in subjects:
            self._heads[subject] = head
            self._leaving.discard(subject)
        self._driven[head] = self._clock.monotonic()
        return True

    async def _claim_all(self, wanted: Sequence[Wanted]) -> Sequence[bool]:
        def operation(tx: Transaction) -> tuple[Sequence[Granted | None], float]:
            epoch, now, claimed_at = self._epoch or 0, self._clock.now(), self._clock.monotonic()
            require_worker(tx, epoch)
            return leases.claim_all(tx, wanted, epoch=epoch, now=now), claimed_at

        granted, claimed_at = await self._storage.write(Within({one.workspace_id for one in wanted}, operation))
        for one in granted:
            for pace, spacing in one.spacings.items() if one is not None else ():
                self._note_pace(pace, claimed_at + spacing.total_seconds())
        return [one is not None for one in granted]

    # ----------------------------------------------------------------------------------------- heartbeats

    def to_free(self) -> Sequence[Subject]:
        """Return what can be freed now; nothing of it is driven until `freed`."""
        if self.alone:
            return ()
        since = self._clock.monotonic() - self._idle_seconds
        self._leaving.update(head for head, driven in self._driven.items() if driven < since and not self._busy[head])
        return [
            subject
            for subject, head in self._heads.items()
            if (subject in self._leaving or head in self._leaving) and not self._busy[head]
        ]

    def look_around(self, tx: Transaction, free: Sequence[Subject]) -> Team:
        """Free subjects, and return the state of the team."""
        tx.claims.prefetch(free)
        for workspace_id, subject in free:
            leases.release_claim(tx, workspace_id, subject, self._epoch or 0)
        others = {one.epoch: one.place for one in tx.workers.list() if one.epoch != self._epoch}
        return Team(others=others, held=() if self.alone and not others else tx.claims.held())

    def note(self, team: Team, freed: Sequence[Subject]) -> None:
        """Take in the state of the team, and choose what to hand over."""
        if self.alone and team.size == 1:
            return
        self.alone = False
        for subject in freed:
            self._heads.pop(subject, None)
            self._driven.pop(subject, None)
            self._leaving.discard(subject)
        mine = {(one.workspace_id, one.subject) for one in team.held if one.epoch == self._epoch}
        self._others = frozenset((one.workspace_id, one.subject) for one in team.held) - mine
        for subject in mine - self._heads.keys():
            # Claimed by a commit, while it was alone.
            self._heads[subject] = subject
            self._driven[subject] = self._clock.monotonic()
        if team.size == 1:
            self._leaving.clear()
            self._handed_over.clear()
        else:
            self._handed_over.intersection_update(workspace_id for workspace_id, _ in self._heads)
            self._hand_over(team)

    def _hand_over(self, team: Team) -> None:
        """Choose what other workers are to drive: no more than they lack, and whole workspaces if these are small.

        Of a workspace that several drive, that is small enough for one, all is left to the one that drives most of it.
        """
        portion = math.ceil(len(team.held) / team.size)
        held: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for one in team.held:
            held[one.workspace_id][one.epoch] += 1
        heads: defaultdict[str, list[Subject]] = defaultdict(list)
        for head in sorted({head for head in self._heads.values() if head not in self._leaving}):
            heads[head[0]].append(head)
        sizes = Counter(self._heads.values())
        mine = sum(size for head, size in sizes.items() if head not in self._leaving)
        excess = min(mine - portion, _MAX_HANDED_OVER)
        for workspace_id, those in heads.items():
            there = held[workspace_id]
            is_small = there.total() <= portion
            most = max(there, key=lambda epoch: (there[epoch], -epoch), default=self._epoch)
            for part in [those] if is_small else [[head] for head in those[:_MAX_PARTS]]:
                size = sum(sizes[head] for head in part)
                if size <= excess or (is_small and most != self._epoch):
                    self._leaving.update(part)
                    excess -= size
                    if is_small:
                        self._handed_over.add(workspace_id)

    def is_others(self, work: WorkItem) -> bool:
        """Return whether another worker drove a unit at the last heartbeat."""
        unit = work.unit
        match unit.kind:
            case "campaign":
                return (unit.workspace_id, unit.id) in self._others
            case "call" | "schedule":
                return (unit.workspace_id, SINGLES) in self._others
            case "message":
                # Which number it sends from is not known here.
                return False


class SliceClaims:
    """The claims of one slice.

    Attributes:
        heads: The subjects that are not handed over until the slice ends.
    """

    def __init__(self, claims: Claims, unit: WorkUnit) -> None:
        self._claims = claims
        self._unit = unit
        self.heads: set[Subject] = set()

    async def take(self, wanted: Wanted) -> bool:
        """Claim subjects for the slice; return whether it holds them. It keeps them until it ends."""
        head = (wanted.workspace_id, wanted.subjects[0])
        entered = head not in self.heads
        if entered:
            self._claims.enter(head)
            self.heads.add(head)
        if await self._claims.hold(wanted):
            return True
        if entered:
            self.heads.discard(head)
            self._claims.leave(head)
        self._claims.note_refusal(self._unit, wanted)
        return False


class WorkerPermits:
    """The bounds of this worker's intents and requests.

    Each heartbeat sets its portion by the number of workers, in the transaction that renews the lease. Where it becomes
    smaller, a held permit stays held until its outcome is recorded, and the others get it after.

    Attributes:
        intents: For intents that wait for their slots.
        requests: For requests on their way.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._most = Permits(intents=config.max_queued_intents, requests=config.max_requests_in_flight)
        self.requests = FairLimiter(self._most.requests)
        self.intents = FairLimiter(self._most.intents, opens=self.requests.has_capacity)

    def in_use(self) -> Permits:
        """Return how many may be held until the portion is taken in; at least what is held now."""
        return Permits(intents=self.intents.in_use, requests=self.requests.in_use)

    def held(self) -> Permits:
        """Return how many are held now: all that may be until something begins under a new epoch."""
        return Permits(intents=self.intents.held, requests=self.requests.held)

    def share(self, tx: Transaction, epoch: int, in_use: Permits) -> Permits:
        """Return the portion of this worker, within a transaction; see `intents.share_permits`."""
        return intents.share_permits(tx, epoch, most=self._most, in_use=in_use)

    def take_in(self, portion: Permits) -> None:
        """Go by a portion from now on."""
        self.requests.resize(portion.requests)
        self.intents.resize(portion.intents)
