"""Events that somebody simulates in a sandbox, so that a campaign can be rehearsed without a provider."""

from __future__ import annotations

import attrs

from outreach.dispatch.adapter_answers import SafeAnalyser, recordable_report
from outreach.dispatch.worker import backoff_of, notify_report
from outreach.errors import Conflict, InvalidRequest
from outreach.ledger.common import workspace_of
from outreach.ledger.settling import callback_events
from outreach.models.dispatch import Dispatch
from outreach.models.reports import Report
from outreach.models.simulation import NewSimulation, Simulation
from outreach.models.states import WorkspaceMode
from outreach.models.workspace import Workspace
from outreach.protocols.voice import Analyser
from outreach.rules.phones import canonical_phone
from outreach.services.context import ServiceContext, check_kind, require_phone
from outreach.services.messaging.messages import Messages
from outreach.storage.unit_of_work import Transaction

_STOP = "STOP"


class Simulating:
    """Simulates replies, receipts and the ends of calls in sandboxes, from any process."""

    def __init__(self, context: ServiceContext, messages: Messages, analyser: Analyser) -> None:
        self._context = context
        self._messages = messages
        self._analyser = SafeAnalyser(analyser, context.log_throttle)

    async def __call__(self, workspace_id: str, event: NewSimulation) -> Simulation:
        """Simulate an event; what follows from it is what follows from a provider's callback.

        A reply is stored and obeyed at once. A receipt or the end of a call goes to the open request to the number; if
        there is none, it is kept for a day for the next one, in the place of an earlier one of the channel, and comes
        instead of what the simulator would report.

        Args:
            workspace_id: The workspace, a sandbox.
            event: What happens.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The number is invalid, or a reply has no number that it could be sent to.
            Conflict: The workspace is live, or there is no message that could be delivered.
        """
        check_kind("event", event, NewSimulation)
        phone, sender = await self._context.storage.read(lambda tx: _addresses(tx, workspace_id, event))
        if event.event in {"reply", "stop"}:
            if sender is None:
                raise InvalidRequest.at("to", "is needed: the workspace has no number that a reply could be sent to")
            body = _STOP if event.event == "stop" else event.body or ""
            inbound = await self._messages.receive(workspace_id, from_number=phone, to=sender, body=body)
            return Simulation(event=event.event, phone_number=phone, inbound_id=None if inbound is None else inbound.id)
        dispatch = await self._report(workspace_id, phone, event)
        return Simulation(
            event=event.event,
            phone_number=phone,
            dispatch_id=None if dispatch is None else dispatch.id,
            kept=dispatch is None,
        )

    async def _report(self, workspace_id: str, phone: str, event: NewSimulation) -> Dispatch | None:
        """Report the event for the open request to a number; keep it if there is none, and return None."""
        context = self._context

        def operation(tx: Transaction) -> tuple[Dispatch, Report] | None:
            now = context.now()
            _sandbox(tx, workspace_id)
            dispatch = callback_events.open_request(tx, workspace_id, phone, event)
            if dispatch is None:
                if event.status == "delivered":
                    raise Conflict(f"No message to {phone} was accepted that is not delivered yet.")
                callback_events.keep_simulated(tx, workspace_id, phone, event, now)
                return None
            if event.event in {"busy", "no_answer"}:
                callback_events.take_answer_back(tx, dispatch)
            report = recordable_report(callback_events.simulated_report_of(event, dispatch, now))
            callback_events.merge_event(
                tx, report, backoff=backoff_of(context.config), analyser=self._analyser, now=now
            )
            return dispatch, attrs.evolve(report, provider=callback_events.SIMULATOR)

        done = await context.storage.write_in(workspace_id, operation)
        if done is None:
            return None
        dispatch, report = done
        notify_report(context.instrumentation, context.log_throttle, dispatch, report, context.now())
        return dispatch


def _addresses(tx: Transaction, workspace_id: str, event: NewSimulation) -> tuple[str, str | None]:
    """Return the contact's number in E.164, and the number that it writes to."""
    workspace = _sandbox(tx, workspace_id)
    phone = require_phone("phone_number", canonical_phone(event.phone_number, workspace.default_region))
    numbers = tx.numbers.list(workspace_id)
    return phone, event.to or callback_events.newest_sender(tx, workspace_id, phone) or (
        numbers[0].phone if numbers else None
    )


def _sandbox(tx: Transaction, workspace_id: str) -> Workspace:
    workspace = workspace_of(tx, workspace_id)
    if workspace.mode is not WorkspaceMode.SANDBOX:
        raise Conflict(
            "The workspace is live: events are simulated in sandboxes only. To rehearse with a live workspace, connect "
            "an account to `outreach-server stand-in`."
        )
    return workspace
