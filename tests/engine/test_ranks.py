from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import attrs
import pytest

from outreach.ledger.settling import ledger
from outreach.models.call import Call
from outreach.models.dispatch import Dispatch
from outreach.models.reports import CallReport, MessageReport
from outreach.models.states import CALL_STATUS_RANK, MESSAGE_STATUS_RANK, CallStatus, DispatchState, MessageStatus
from outreach.protocols.storage import Storage
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_agent, make_call, make_dispatch, make_message
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.given import BACKOFF, call_event, receipt

pytestmark = pytest.mark.virtual_time

C, M = CallStatus, MessageStatus

CALL_ORDER = [
    {C.QUEUED},
    {C.DISPATCHING},
    {C.UNKNOWN},
    {C.UNCONFIRMED},
    {C.INITIATED},
    {C.RINGING},
    {C.IN_PROGRESS},
    {C.COMPLETED, C.BUSY, C.NO_ANSWER, C.FAILED, C.CANCELED},
]
"""docs/states.md#calls, written down a second time; what stands together never replaces each other."""

MESSAGE_ORDER = [
    {M.QUEUED},
    {M.DISPATCHING},
    {M.UNKNOWN},
    {M.UNCONFIRMED},
    {M.ACCEPTED},
    {M.SENT},
    {M.FAILED, M.CANCELED},
    {M.DELIVERED},
]
"""docs/states.md#messages: rank only goes up, except that `delivered` outranks `failed`."""


@pytest.mark.parametrize(
    ("kind", "ranks", "order"),
    [(C, CALL_STATUS_RANK, CALL_ORDER), (M, MESSAGE_STATUS_RANK, MESSAGE_ORDER)],
    ids=["calls", "messages"],
)
def test_every_status_has_its_rank(kind: Any, ranks: Any, order: list[set[Any]]) -> None:
    """All pairs compare as they are written down here."""
    place = {status: at for at, together in enumerate(order) for status in together}
    assert set(ranks) == set(place) == set(kind)
    for one, other in product(ranks, repeat=2):
        assert (ranks[one] < ranks[other]) is (place[one] < place[other])


def _report(tx: Transaction, event: Any) -> bool:
    return ledger.apply_report(tx, event, backoff=BACKOFF, analyser=ProviderAnalyser(), now=NOW + timedelta(seconds=1))


@pytest.mark.parametrize("known", C)
async def test_a_report_moves_a_call_up_or_not_at_all(storage: Storage, known: CallStatus) -> None:
    """Of all pairs: a late event, and the same one a second time, change nothing."""
    agent = make_agent()
    await storage.write(lambda tx: tx.agents.insert(agent))
    for reported in C:
        # A verdict and an answer that are missing are filled in later: here each end has its own already.
        outcome = {C.BUSY: "busy", C.NO_ANSWER: "no_answer", C.FAILED: "failed"}.get(known)
        answered = NOW if known is C.COMPLETED else None
        call = make_call(agent_id=agent.id, status=known, outcome=outcome, answered_at=answered, tries=1)
        dispatch = make_dispatch(channel="call", call_id=call.id, state=DispatchState.ACCEPTED, provider_id=call.id)
        event = call_event(dispatch, reported)

        def operation(
            tx: Transaction, call: Call = call, dispatch: Dispatch = dispatch, event: CallReport = event
        ) -> tuple[list[bool], Call | None]:
            tx.calls.insert(call)
            tx.dispatches.insert(dispatch)
            return [_report(tx, event), _report(tx, event)], tx.calls.get(THIS_WORKSPACE, call.id)

        changed, after = await storage.write(operation)
        assert after is not None
        higher = _place(CALL_ORDER, reported) > _place(CALL_ORDER, known)
        assert (changed, after.status) == ([higher, False], reported if higher else known), (known, reported)


@pytest.mark.parametrize("known", [None, M.SENT, M.FAILED, M.CANCELED, M.DELIVERED])
async def test_a_receipt_moves_a_message_up_or_not_at_all(storage: Storage, known: MessageStatus | None) -> None:
    """Of all pairs, on the message and on its dispatch."""
    for reported in M:
        shown = known or M.ACCEPTED
        message = make_message(status=shown, tries=1)
        dispatch = make_dispatch(message_id=message.id, state=DispatchState.ACCEPTED, report=known)
        event = receipt(dispatch, reported)

        def operation(
            tx: Transaction, message: Any = message, dispatch: Dispatch = dispatch, event: MessageReport = event
        ) -> tuple[list[bool], Any, Any]:
            tx.messages.insert(message)
            tx.dispatches.insert(dispatch)
            changed = [_report(tx, event), _report(tx, event)]
            return changed, tx.messages.get(THIS_WORKSPACE, message.id), tx.dispatches.get(THIS_WORKSPACE, dispatch.id)

        changed, after, row = await storage.write(operation)
        higher = _place(MESSAGE_ORDER, reported) > _place(MESSAGE_ORDER, shown)
        assert changed == [higher, False], (known, reported)
        assert after.status == (reported if higher else shown)
        assert row == (attrs.evolve(dispatch, report=reported) if higher else dispatch)


def _place(order: list[set[Any]], status: Any) -> int:
    return next(at for at, together in enumerate(order) if status in together)
