"""The outside world: providers that keep their own record of whom they reached, whatever the engine believes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta

import anyio
import attrs

from outreach.models.dispatch import Outcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.protocols.carrier import CarrierCapabilities, LookUp, OutboundMessage, ReportSink
from outreach.protocols.voice import CallRequest, VoiceCapabilities
from outreach.testing.simulation.faults import Faults


@attrs.define(kw_only=True)
class Reached:
    """Something that a provider did, as its own books have it.

    Attributes:
        asked_at: When the request began.
        failed: A receipt said afterwards that it reached nobody.
        unanswered: The call rang out, was busy or went to voicemail.
        course: When a call comes to which status.
    """

    dispatch_id: str
    to: str
    asked_at: datetime
    failed: bool = False
    unanswered: bool = False
    course: list[tuple[datetime, CallStatus]] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class Link:
    """One process's line to the providers; a dead process neither asks nor hears.

    Attributes:
        alive: Whether the process still is.
        die: Has the process die, cut off first.
    """

    alive: Callable[[], bool]
    die: Callable[[], None]


class World:
    """Both providers, and their books.

    Args:
        loop: Where time passes.
        now: The present moment.
        rng: Decides everything.
        faults: Draws and counts what goes wrong.
        on_request: Called when a request begins: what it raises ends the simulation.
    """

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], datetime],
        rng: random.Random,
        faults: Faults,
        on_request: Callable[[str, datetime], None],
    ) -> None:
        self.loop = loop
        self.now = now
        self.rng = rng
        self.faults = faults
        self.on_request = on_request
        self.reached: dict[str, list[Reached]] = {}
        self.asked: list[tuple[datetime, str]] = []
        self.outbox: list[Callable[[], Report]] = []
        self.news = anyio.Event()

    def record(self, entry: Reached) -> None:
        """Write into the books that somebody was reached."""
        self.reached.setdefault(entry.dispatch_id, []).append(entry)

    def tell(self, delay: float, make: Callable[[], Report]) -> None:
        """Have a report told after a delay, to whatever process listens then; it is kept until one does."""
        if self.faults.draw("receipt_lost"):
            return
        self._later(delay, make)
        if self.faults.draw("receipt_twice"):
            self._later(delay + self.rng.random() * 20, make)

    def _later(self, delay: float, make: Callable[[], Report]) -> None:
        def due() -> None:
            self.outbox.append(make)
            self.news.set()

        self.loop.call_later(delay, due)

    async def listen(self, link: Link, sink: ReportSink) -> None:
        """Hand reports to a process until it is gone; what it did not take in is told again."""
        while link.alive():
            while self.outbox and link.alive():
                make = self.outbox.pop(0)
                try:
                    await sink(make())
                except BaseException:
                    self.outbox.insert(0, make)
                    raise
            self.news = anyio.Event()
            with anyio.move_on_after(30):
                await self.news.wait()

    async def request(self, link: Link, dispatch_id: str, accept: Callable[[], Outcome]) -> Outcome:
        """Go through one request: heard or not, answered or not, by a process that may die in it."""
        if not link.alive():
            await anyio.sleep_forever()
        self.asked.append((self.now(), dispatch_id))
        self.on_request(dispatch_id, self.now())
        faults, rng = self.faults, self.rng
        if faults.draw("not_sent"):
            return Outcome(state=DispatchState.NOT_SENT, reason="connection_refused")
        if faults.draw("kill_in_request"):
            # What was written to the wire is heard or not, whatever became of the one who wrote it.
            if rng.random() < 0.5:
                accept()
            link.die()
            await anyio.sleep_forever()
        await anyio.sleep(rng.random() * 0.5)
        if faults.draw("dropped_unheard"):
            return Outcome(state=DispatchState.UNKNOWN, reason="dropped")
        if faults.draw("too_busy"):
            return Outcome(state=DispatchState.DEFERRED, reason="rate_limited", retry_after_seconds=rng.random() * 20)
        if faults.draw("refused_for_good"):
            return Outcome(state=DispatchState.REFUSED, reason="invalid_number")
        if faults.draw("refused_for_now"):
            return Outcome(state=DispatchState.REFUSED, reason="temporary")
        outcome = accept()
        if faults.draw("dropped_after_acceptance"):
            return Outcome(state=DispatchState.UNKNOWN, reason="dropped")
        if faults.draw("silence"):
            await anyio.sleep_forever()
        if faults.draw("late_answer"):
            await anyio.sleep(rng.random() * 5)
        return outcome if link.alive() else Outcome(state=DispatchState.UNKNOWN)

    def look_up(self, dispatch_id: str) -> Outcome | None:
        """Tell from the books what became of a dispatch, or fail to."""
        if self.faults.draw("look_up_failed"):
            raise ConnectionError("The look-up failed.")
        if dispatch_id in self.reached:
            return Outcome(state=DispatchState.ACCEPTED, provider_id=f"p-{dispatch_id}")
        return Outcome(state=DispatchState.NOT_SENT, reason="not_found")


class WorldCarrier:
    """The carrier as one process sees it; with `listen`, the ear for both providers."""

    def __init__(self, world: World, link: Link) -> None:
        self._world = world
        self._link = link

    @property
    def name(self) -> str:
        """The name under which it is logged."""
        return "simulated"

    @property
    def capabilities(self) -> CarrierCapabilities:
        """It finds in its books what it has, and only that."""
        return CarrierCapabilities(look_up="authoritative", carries_not_after=False)

    async def send(self, message: OutboundMessage) -> Outcome:
        """Take one message, or whatever else happens to it."""
        world = self._world

        def accept() -> Outcome:
            entry = Reached(dispatch_id=message.dispatch_id, to=message.to, asked_at=world.now())
            entry.failed = world.faults.draw("receipt_failed")
            world.record(entry)
            early = world.faults.draw("receipt_before_answer")
            first = 0.0 if early else world.rng.random() * 30
            final = MessageStatus.FAILED if entry.failed else MessageStatus.DELIVERED
            for status, delay in ((MessageStatus.SENT, world.rng.random() * 30), (final, first)):
                world.tell(delay, self._receipt(message, status))
            return Outcome(state=DispatchState.ACCEPTED, provider_id=f"p-{message.dispatch_id}")

        return await world.request(self._link, message.dispatch_id, accept)

    async def look_up(self, question: LookUp) -> Outcome | None:
        """Look into the books."""
        return self._world.look_up(question.dispatch_id)

    async def listen(self, sink: ReportSink) -> None:
        """Hand in reports as they fall due."""
        await self._world.listen(self._link, sink)

    def _receipt(self, message: OutboundMessage, status: MessageStatus) -> Callable[[], Report]:
        return lambda: MessageReport(
            workspace_id=message.workspace_id,
            provider="simulated",
            dispatch_id=message.dispatch_id,
            provider_id=f"p-{message.dispatch_id}",
            status=status,
            at=self._world.now(),
            reason="unreachable" if status is MessageStatus.FAILED else None,
        )


class WorldVoice:
    """The voice provider as one process sees it."""

    def __init__(self, world: World, link: Link) -> None:
        self._world = world
        self._link = link

    @property
    def name(self) -> str:
        """The name under which it is logged."""
        return "simulated"

    @property
    def capabilities(self) -> VoiceCapabilities:
        """It finds in its books what it has, and only that."""
        return VoiceCapabilities(look_up="authoritative", carries_not_after=False)

    async def place(self, request: CallRequest) -> Outcome:
        """Place one call, or whatever else happens to it."""
        world = self._world

        def accept() -> Outcome:
            entry = Reached(dispatch_id=request.dispatch_id, to=request.to, asked_at=world.now())
            entry.unanswered = world.faults.draw("unanswered_call")
            rings = world.now() + timedelta(seconds=1)
            ends = rings + timedelta(seconds=5 + world.rng.random() * 40)
            last = world.rng.choice((CallStatus.BUSY, CallStatus.NO_ANSWER)) if entry.unanswered else None
            entry.course = [(rings, CallStatus.RINGING)]
            if last is None:
                entry.course.append((rings + timedelta(seconds=3), CallStatus.IN_PROGRESS))
            entry.course.append((ends, last or CallStatus.COMPLETED))
            world.record(entry)
            for moment, status in entry.course:
                delay = (moment - world.now()).total_seconds()
                world.tell(delay + world.rng.random() * 3, self._event(request.workspace_id, entry, status))
            return Outcome(state=DispatchState.ACCEPTED, provider_id=f"p-{request.dispatch_id}")

        return await world.request(self._link, request.dispatch_id, accept)

    async def look_up(self, question: LookUp) -> Outcome | None:
        """Look into the books."""
        return self._world.look_up(question.dispatch_id)

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Tell how far a call has come."""
        entries = self._world.reached.get(dispatch_id)
        passed = [status for moment, status in entries[-1].course if moment <= self._world.now()] if entries else []
        return self._event(workspace_id, entries[-1], passed[-1])() if entries and passed else None

    def _event(self, workspace_id: str, entry: Reached, status: CallStatus) -> Callable[[], CallReport]:
        return lambda: CallReport(
            workspace_id=workspace_id,
            provider="simulated",
            dispatch_id=entry.dispatch_id,
            provider_id=f"p-{entry.dispatch_id}",
            status=status,
            at=self._world.now(),
            outcome="positive" if status is CallStatus.COMPLETED else None,
        )
