"""The outside world: providers that keep their own record of whom they reached, whatever the engine believes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import Context
from datetime import datetime
from typing import Final

import anyio
import attrs

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import Report
from outreach.models.states import DispatchState
from outreach.protocols.carrier import LookupSupport, OutboundMessage, ReportSink
from outreach.protocols.voice import CallRequest
from tests.simulation.faults import Faults
from tests.simulation.invariants.outside_records import OutsideRecords, Reached

_LATE_ARRIVAL: Final = (12.0, 30.0)
"""Seconds that a request is on its way at the least and at the most when it is late.

From its commit on no more than `max_intent_age_seconds`, `provider_timeout_seconds` and `lease_seconds` together:
until then the engine believes nobody who has nothing of it.
"""

_RECORDED_WITHIN: Final = 15.0
"""Seconds in which a process that lives and does not stand still records what it was answered."""


@attrs.define(kw_only=True)
class Link:
    """The connection of one process to the providers; a dead process sends and receives nothing.

    Attributes:
        alive: Whether the process still is.
        at_work_since: Since when it has not stood still, by the loop's time; None while it stands still.
        kept_waiting_until: When another one that stood still has last kept it from writing, by the loop's time.
        die: Has the process die, cut off first.
    """

    alive: Callable[[], bool]
    at_work_since: Callable[[], float | None]
    kept_waiting_until: Callable[[], float]
    die: Callable[[], None]


class World:
    """Both providers, and their records.

    A provider works on while the process that asked stands still or is dead.

    Args:
        loop: Where time passes.
        now: The present moment.
        rng: Decides everything.
        faults: Draws and counts what goes wrong.
        power: What a look-up can tell; one that is only evidence sometimes does not find what is there.
        on_request: Called when a request begins, with the workspace, the dispatch and until when its contact may be
            reached.
        on_reached: Called when a provider has taken one.
        on_reported: Called when a process has taken in a report.
        on_recorded: Called when an answer that a process got must stand in the ledger, if it still lives then.

    Attributes:
        records: What really happened.
        trouble: Why requests are refused at the moment; None while the providers work.
        trouble_rate: How many of them are.
        late_until: Until when a request that is late is on its way, by the loop's time.
        works_again: When the trouble is over, in seconds since the beginning.
    """

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], datetime],
        rng: random.Random,
        faults: Faults,
        power: LookupSupport,
        on_request: Callable[[str, str, datetime | None], None],
        on_reached: Callable[[Reached], None],
        on_reported: Callable[[Report], None],
        on_recorded: Callable[[str, DispatchOutcome], None],
    ) -> None:
        self.now = now
        self.rng = rng
        self.faults = faults
        self.power = power
        self.records = OutsideRecords()
        self.trouble: str | None = None
        self.trouble_rate = 1.0
        self.works_again = 0.0
        self.late_until = 0.0
        self._loop = loop
        self._context = Context()
        self._on_request = on_request
        self._on_reached = on_reached
        self._on_reported = on_reported
        self._on_recorded = on_recorded
        self._outbox: list[Callable[[], Report]] = []
        self._news = anyio.Event()

    def record(self, entry: Reached) -> None:
        """Write into the records that a request was taken."""
        self.records.reached.setdefault(entry.dispatch_id, []).append(entry)
        self._on_reached(entry)

    def tell(self, delay: float, make: Callable[[], Report]) -> None:
        """Have a report told after a delay, to whatever process listens then; it is kept until one does."""
        if self.faults.draw("receipt_lost"):
            return
        self.report_surely(delay, make)
        if self.faults.draw("receipt_twice"):
            self.report_surely(delay + self.rng.random() * 20, make)

    def report_surely(self, delay: float, make: Callable[[], Report]) -> None:
        """Have a report told after a delay, once."""

        def due() -> None:
            self._outbox.append(make)
            self._news.set()

        self._later(delay, due)

    async def listen(self, link: Link, sink: ReportSink) -> None:
        """Hand reports to a process until it is gone; what it did not take in is told again."""
        while link.alive():
            while self._outbox and link.alive():
                # As many connections call back at the same time.
                due, self._outbox = self._outbox, []
                errors: list[Exception] = []
                try:
                    async with anyio.create_task_group() as tasks:
                        for make in list(due):
                            tasks.start_soon(self._hand_in, make, due, sink, errors)
                finally:
                    self._outbox[:0] = due
                if errors:
                    raise errors[0]
            self._news = anyio.Event()
            with anyio.move_on_after(30):
                await self._news.wait()

    async def _hand_in(
        self, make: Callable[[], Report], due: list[Callable[[], Report]], sink: ReportSink, errors: list[Exception]
    ) -> None:
        report = make()
        try:
            await sink(report)
        except Exception as error:
            errors.append(error)
        else:
            due.remove(make)
            self._on_reported(report)

    async def request(
        self, link: Link, asked: OutboundMessage | CallRequest, accept: Callable[[], DispatchOutcome]
    ) -> DispatchOutcome:
        """Go through one request: heard or not, answered or not, by a process that may die in it."""
        dispatch_id = asked.dispatch_id
        if not link.alive():
            await anyio.sleep_forever()
        self._on_request(asked.workspace_id, dispatch_id, asked.not_after)
        self.records.begun[dispatch_id] = self.now()
        self.records.at_work_since[dispatch_id] = link.at_work_since
        outcome = await self._exchange(link, dispatch_id, accept)
        self.records.hear(dispatch_id, outcome)
        self._later(_RECORDED_WITHIN, lambda: self._require_recorded(link, dispatch_id, outcome))
        return outcome

    def _require_evidence(self, link: Link, dispatch_id: str, outcome: DispatchOutcome) -> None:
        """Have the same checked of a look-up; a process that was replaced while it stood still leaves it to others."""
        if link.at_work_since() == 0.0:
            self._require_recorded(link, dispatch_id, outcome)

    def _require_recorded(self, link: Link, dispatch_id: str, outcome: DispatchOutcome) -> None:
        """Have it checked that an answer stands in the ledger, once the process has had the time to see to it."""
        if not link.alive():
            return
        since = link.at_work_since()
        if since is not None and self._loop.time() >= max(since, link.kept_waiting_until()) + _RECORDED_WITHIN:
            self._on_recorded(dispatch_id, outcome)
        else:
            self._later(_RECORDED_WITHIN, lambda: self._require_recorded(link, dispatch_id, outcome))

    async def _exchange(self, link: Link, dispatch_id: str, accept: Callable[[], DispatchOutcome]) -> DispatchOutcome:
        faults, rng = self.faults, self.rng
        if faults.draw("not_sent"):
            return DispatchOutcome(state=DispatchState.NOT_SENT, reason="connection_refused")
        if faults.draw("kill_in_request"):
            # What was written to the wire is heard or not, whatever became of the one who wrote it.
            if rng.random() < 0.5:
                self._later(self._transit_seconds(), accept)
            link.die()
            await anyio.sleep_forever()
        answer: asyncio.Future[DispatchOutcome] = self._loop.create_future()
        self._later(self._transit_seconds(), lambda: self._hear(answer, dispatch_id, accept))
        return await answer

    def _transit_seconds(self) -> float:
        """Return how long a request is on its way: now and then so long that nobody waits for its answer any more."""
        if not self.faults.draw("late_arrival"):
            return self.rng.random() * 0.5
        way = self.rng.uniform(*_LATE_ARRIVAL)
        self.late_until = max(self.late_until, self._loop.time() + way)
        return way

    async def look_up(self, link: Link, dispatch_id: str) -> DispatchOutcome | None:
        """Return the outcome of a dispatch from the records, or fail; the process that asks may be killed here."""
        await self._ask(link)
        if self.faults.draw("look_up_failed"):
            raise ConnectionError("The look-up failed.")
        found = dispatch_id in self.records.reached
        if found and self.power == "evidence" and self.faults.draw("look_up_lied"):
            found = False
        if found:
            taken = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=f"p-{dispatch_id}")
            self._later(_RECORDED_WITHIN, lambda: self._require_evidence(link, dispatch_id, taken))
            return taken
        nothing = DispatchOutcome(state=DispatchState.NOT_SENT, reason="not_found")
        if self.power == "authoritative":
            self.records.hear(dispatch_id, nothing)
        return nothing

    async def newest_entry(self, link: Link, dispatch_id: str) -> Reached | None:
        """Return what a provider has recorded of a call; the process that asks may be killed here."""
        await self._ask(link)
        entries = self.records.entries(dispatch_id)
        return entries[-1] if entries else None

    async def _ask(self, link: Link) -> None:
        """Let a question, which changes nothing at the provider, take its time."""
        if link.alive() and self.faults.draw("kill_in_look_up"):
            link.die()
        await anyio.sleep(self.rng.random() * 2 if self.faults.draw("slow_look_up") else 0)
        if not link.alive():
            await anyio.sleep_forever()

    def _hear(
        self, answer: asyncio.Future[DispatchOutcome], dispatch_id: str, accept: Callable[[], DispatchOutcome]
    ) -> None:
        """Do what the provider does with a request that has come to it."""
        faults, rng = self.faults, self.rng
        if self.trouble is not None and rng.random() < self.trouble_rate:
            faults.note("outage")
            state = DispatchState.UNKNOWN if self.trouble == "dropped" else DispatchState.REFUSED
            self._answer(answer, DispatchOutcome(state=state, reason=self.trouble))
        elif faults.draw("dropped_unheard"):
            self._answer(answer, DispatchOutcome(state=DispatchState.UNKNOWN, reason="dropped"))
        elif faults.draw("too_busy"):
            delay = rng.random() * 20
            deferred = DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited", retry_after_seconds=delay)
            self._answer(answer, deferred)
        elif faults.draw("refused_for_good"):
            self._answer(answer, DispatchOutcome(state=DispatchState.REFUSED, reason="invalid_number"))
        elif faults.draw("refused_for_now"):
            self._answer(answer, DispatchOutcome(state=DispatchState.REFUSED, reason="temporary"))
        else:
            outcome = accept()
            if faults.draw("taken_and_denied"):
                self.records.reached[dispatch_id][-1].denied = True
                self._answer(answer, DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited"))
            elif faults.draw("dropped_after_acceptance"):
                self._answer(answer, DispatchOutcome(state=DispatchState.UNKNOWN, reason="dropped"))
            elif not faults.draw("silence"):
                delay = rng.random() * 5 if faults.draw("late_answer") else 0.0
                self._later(delay, lambda: self._answer(answer, outcome))

    def _answer(self, answer: asyncio.Future[DispatchOutcome], outcome: DispatchOutcome) -> None:
        if not answer.done():
            answer.set_result(outcome)

    def _later(self, delay: float, do: Callable[[], object]) -> None:
        self._loop.call_later(delay, do, context=self._context)
