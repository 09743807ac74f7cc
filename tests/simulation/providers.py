"""The carrier and the voice provider of the simulated world, as one process sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.models.call import CallOutcome
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.protocols.carrier import CarrierCapabilities, LookupRequest, OutboundMessage, ReportSink
from outreach.protocols.voice import CallRequest, VoiceCapabilities
from tests.simulation.invariants.outside_records import Reached
from tests.simulation.world import Link, World

_UNANSWERED: Final[Sequence[tuple[CallStatus, CallOutcome | None]]] = (
    (CallStatus.BUSY, None),
    (CallStatus.NO_ANSWER, None),
    (CallStatus.NO_ANSWER, None),
    (CallStatus.COMPLETED, "voicemail"),
    (CallStatus.COMPLETED, "declined"),
)
"""How a call ends that reached nobody, and what the provider says of it."""

_BLAMES: Final = ("bad_sender", "rejected", "rejected", "provider_funds")
"""What a receipt may say that is our fault, and not the contact's."""


class _Provider:
    """What both providers have: a name, and records to look into."""

    def __init__(self, world: World, link: Link) -> None:
        self._world = world
        self._link = link

    @property
    def name(self) -> str:
        """The name under which it is logged."""
        return "simulated"

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Look into the records."""
        return await self._world.look_up(self._link, lookup.dispatch_id)


class WorldCarrier(_Provider):
    """The carrier as one process sees it; with `listen`, the ear for both providers."""

    @property
    def capabilities(self) -> CarrierCapabilities:
        """What the world's look-up can tell."""
        return CarrierCapabilities(look_up=self._world.power, supports_not_after=True)

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Take one message, or whatever else happens to it."""
        return await self._world.request(self._link, message, lambda: self._accept(message))

    async def listen(self, sink: ReportSink) -> None:
        """Hand in reports as they fall due."""
        await self._world.listen(self._link, sink)

    def _accept(self, message: OutboundMessage) -> DispatchOutcome:
        world = self._world
        entry = Reached(dispatch_id=message.dispatch_id, to=message.to, accepted_at=world.now())
        entry.failed = world.faults.draw("receipt_failed")
        if entry.failed and world.faults.draw("receipt_blames_us"):
            entry.why = world.rng.choice(_BLAMES)
        world.record(entry)
        if world.faults.draw("answered_twice"):
            world.report_surely(world.rng.random(), self._receipt(message, entry, MessageStatus.ACCEPTED))
        sent = world.rng.random() * 30
        final = 0.0 if world.faults.draw("receipt_before_answer") else world.rng.random() * 30
        if world.faults.on and final < sent:
            world.faults.note("receipts_out_of_order")
        end = MessageStatus.FAILED if entry.failed else MessageStatus.DELIVERED
        if not world.faults.draw("receipts_all_lost"):
            world.tell(sent, self._receipt(message, entry, MessageStatus.SENT))
            world.tell(final, self._receipt(message, entry, end))
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=f"p-{message.dispatch_id}")

    def _receipt(self, message: OutboundMessage, entry: Reached, status: MessageStatus) -> Callable[[], Report]:
        def make() -> MessageReport:
            failed = status is MessageStatus.FAILED
            entry.reported = entry.reported or failed
            return MessageReport(
                workspace_id=message.workspace_id,
                provider="simulated",
                dispatch_id=message.dispatch_id,
                provider_id=f"p-{message.dispatch_id}",
                status=status,
                at=self._world.now(),
                reason=entry.why if failed else None,
            )

        return make


class WorldVoice(_Provider):
    """The voice provider as one process sees it."""

    @property
    def capabilities(self) -> VoiceCapabilities:
        """What the world's look-up can tell."""
        return VoiceCapabilities(look_up=self._world.power, supports_not_after=True)

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Place one call, or whatever else happens to it."""
        return await self._world.request(self._link, request, lambda: self._accept(request))

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Tell how far a call has come."""
        entry = await self._world.newest_entry(self._link, dispatch_id)
        passed = [status for moment, status in entry.course if moment <= self._world.now()] if entry else []
        return self._event(workspace_id, entry, passed[-1])() if entry and passed else None

    def _accept(self, request: CallRequest) -> DispatchOutcome:
        world = self._world
        entry = Reached(dispatch_id=request.dispatch_id, to=request.to, accepted_at=world.now())
        entry.unanswered = world.faults.draw("unanswered_call")
        if not world.faults.draw("call_followed_by_silence"):
            entry.course, entry.verdict = self._course(entry)
        world.record(entry)
        if entry.course and world.faults.draw("answered_twice"):
            world.report_surely(world.rng.random(), self._event(request.workspace_id, entry, CallStatus.INITIATED))
        for moment, status in () if world.faults.draw("receipts_all_lost") else entry.course:
            delay = (moment - world.now()).total_seconds()
            world.tell(delay + world.rng.random() * 3, self._event(request.workspace_id, entry, status))
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=f"p-{request.dispatch_id}")

    def _course(self, entry: Reached) -> tuple[list[tuple[datetime, CallStatus]], CallOutcome | None]:
        """Draw how a call goes, and what is said of it at its end."""
        rng = self._world.rng
        rings = entry.accepted_at + timedelta(seconds=1)
        ends = rings + timedelta(seconds=5 + rng.random() * 40)
        course = [(rings, CallStatus.RINGING)]
        if not entry.unanswered:
            return [*course, (rings + timedelta(seconds=3), CallStatus.IN_PROGRESS), (ends, CallStatus.COMPLETED)], (
                "positive" if rng.random() < 0.8 else "negative"
            )
        end, verdict = rng.choice(_UNANSWERED)
        return [*course, (ends, end)], verdict

    def _event(self, workspace_id: str, entry: Reached, status: CallStatus) -> Callable[[], CallReport]:
        def make() -> CallReport:
            ended = status is entry.course[-1][1]
            entry.reported = entry.reported or (ended and entry.unanswered)
            return CallReport(
                workspace_id=workspace_id,
                provider="simulated",
                dispatch_id=entry.dispatch_id,
                provider_id=f"p-{entry.dispatch_id}",
                status=status,
                at=self._world.now(),
                outcome=entry.verdict if status is CallStatus.COMPLETED else None,
            )

        return make
