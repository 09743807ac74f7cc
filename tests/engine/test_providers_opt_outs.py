from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach.ledger.opt_out.entries import put_on_register
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallReport, MessageReport
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.models.unsubscribe import (
    Unsubscribe,
    UnsubscribeScope,
    import_evidence,
    without_import,
    without_keyword_trace,
)
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW, make_agent, make_call, make_dispatch, make_message, make_unsubscribe, new_id
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK
from tests.engine.given import call_event, given_active, given_dispatch, receipt, report, reread, settle
from tests.engine.writing import PERSON, answers, entry, write

pytestmark = pytest.mark.virtual_time

SECOND = timedelta(seconds=1)
OPTED_OUT = DispatchOutcome(state=DispatchState.REFUSED, reason="opted_out", error_code="21610")


async def given_message_dispatch(storage: Storage) -> Dispatch:
    """Write a single message that is on its way to a person."""
    message = make_message(to=PERSON, status=MessageStatus.DISPATCHING, attempts=1, tries=1)
    dispatch = make_dispatch(to=PERSON, message_id=message.id)
    await storage.write(lambda tx: (tx.messages.insert(message), tx.dispatches.insert(dispatch)))
    return dispatch


async def given_call_dispatch(storage: Storage) -> Dispatch:
    """Write a single call that was accepted."""
    agent = make_agent()
    call = make_call(agent_id=agent.id, to=PERSON, status=CallStatus.INITIATED, provider_call_id="pc-1", tries=1)
    dispatch = make_dispatch(
        to=PERSON,
        call_id=call.id,
        channel="call",
        provider="simulator",
        state=DispatchState.ACCEPTED,
        provider_id="pc-1",
    )
    await storage.write(lambda tx: (tx.agents.insert(agent), tx.calls.insert(call), tx.dispatches.insert(dispatch)))
    return dispatch


async def tell(storage: Storage, event: Any) -> bool:
    """Merge a report a second later."""
    return await report(storage, event, now=NOW + SECOND)


def opted_out(dispatch: Dispatch, **changes: Any) -> MessageReport:
    """Return a receipt that says that the carrier knows of an opt-out."""
    return receipt(
        dispatch, **{"status": MessageStatus.FAILED, "reason": "opted_out", "error_code": "30004", **changes}
    )


def said_no(dispatch: Dispatch, **changes: Any) -> CallReport:
    """Return the event of a call in which somebody asked for no more."""
    return call_event(dispatch, **{"do_not_call": True, **changes})


async def test_a_refusal_as_opted_out_puts_the_number_on_the_register(storage: Storage) -> None:
    """Providers, A.5: a carrier's opted_out is merged into our own register, with its code, in the same transaction."""
    campaign = await given_active(storage)
    dispatch = await settle(storage, await given_dispatch(storage, campaign), OPTED_OUT, now=NOW + SECOND)
    found = await entry(storage, dispatch.to)
    assert found is not None
    assert (found.scope, found.source, found.created_at) == ("all", "carrier", NOW + SECOND)
    assert found.evidence == (
        f"twilio refused dispatch {dispatch.id} as opted out (21610), 2026-03-02T09:30:16.123456Z"
    )
    assert await entry(storage, dispatch.to, OTHER_WORKSPACE) is None
    assert (await reread(storage, campaign)).counters.failed == 1
    audit = await storage.read(lambda tx: tx.audit.list(THIS_WORKSPACE, limit=9))
    assert ("unsubscribes.add", dispatch.id, "carrier") in [(one.action, one.subject, one.detail) for one in audit]


async def test_other_refusals_put_nobody_on_the_register(storage: Storage) -> None:
    """A number that does not exist has not opted out."""
    dispatch = await given_message_dispatch(storage)
    outcome = DispatchOutcome(state=DispatchState.REFUSED, reason="invalid_number", error_code="21610")
    await settle(storage, dispatch, outcome)
    assert await entry(storage) is None


async def test_an_opt_out_that_is_settled_twice_is_taken_over_once(storage: Storage) -> None:
    """A second outcome changes nothing, nor does it undo what an operator did meanwhile."""
    dispatch = await given_message_dispatch(storage)
    await settle(storage, dispatch, OPTED_OUT)
    assert await storage.write(lambda tx: tx.register.delete(THIS_WORKSPACE, PERSON))
    await settle(storage, dispatch, OPTED_OUT)
    assert await entry(storage) is None


async def test_a_receipt_as_opted_out_puts_the_number_on_the_register_once(storage: Storage) -> None:
    """Its code is the evidence; the same receipt again, or a delivery before it, changes nothing."""
    dispatch = await given_message_dispatch(storage)
    assert await tell(storage, opted_out(dispatch))
    found = await entry(storage)
    assert found is not None
    assert found.source == "carrier"
    assert "(30004)" in (found.evidence or "")
    assert await storage.write(lambda tx: tx.register.delete(THIS_WORKSPACE, PERSON))
    assert not await tell(storage, opted_out(dispatch))
    assert await entry(storage) is None


@pytest.mark.parametrize("changes", [{"reason": "unreachable"}, {"status": MessageStatus.SENT}, {"reason": None}])
async def test_other_receipts_put_nobody_on_the_register(storage: Storage, changes: dict[str, Any]) -> None:
    """Only a failure, and only of this class."""
    dispatch = await given_message_dispatch(storage)
    assert await tell(storage, opted_out(dispatch, **changes))
    assert await entry(storage) is None


@pytest.mark.parametrize("first", [None, CallStatus.IN_PROGRESS, CallStatus.COMPLETED])
async def test_who_asks_for_no_more_in_a_call_is_on_the_register(storage: Storage, first: CallStatus | None) -> None:
    """Providers, F.1: a spoken opt-out counts equally; some providers tell it after the end of the call."""
    dispatch = await given_call_dispatch(storage)
    if first is not None:
        await tell(storage, said_no(dispatch, status=first, do_not_call=False))
        assert await entry(storage) is None
    # Told with the end of the call, or after it: it changes something, once.
    assert await tell(storage, said_no(dispatch))
    assert not await tell(storage, said_no(dispatch))
    found = await entry(storage)
    assert found is not None
    assert (found.scope, found.source, found.created_at) == ("all", "call", NOW + SECOND)
    assert found.evidence == f"said in call {dispatch.call_id} (simulator pc-1), 2026-03-02T09:30:15.123456Z"
    await write(storage, "START", now=NOW + 2 * SECOND)
    assert await entry(storage) == found


async def test_a_carriers_refusal_after_a_stop_leaves_it_to_the_keyword(storage: Storage) -> None:
    """The carrier only repeats what was written: a START lifts it as before."""
    dispatch = await given_message_dispatch(storage)
    await write(storage, "STOP")
    before = await entry(storage)
    await settle(storage, dispatch, OPTED_OUT, now=NOW + SECOND)
    assert await entry(storage) == before
    await write(storage, "START", now=NOW + 2 * SECOND)
    assert await entry(storage) is None


async def test_a_spoken_opt_out_replaces_the_entry_of_a_keyword(storage: Storage) -> None:
    """A START takes back what was written, not what was said."""
    dispatch = await given_call_dispatch(storage)
    await write(storage, "STOP")
    await tell(storage, said_no(dispatch))
    await write(storage, "START", now=NOW + 2 * SECOND)
    found = await entry(storage)
    assert found is not None
    assert (found.source, found.created_at) == ("call", NOW)


@pytest.mark.parametrize(
    ("known", "other", "wanted"),
    [
        (("sms", "operator"), ("sms", "import"), ("sms", "operator", 0)),
        (("sms", "operator"), ("call", "api"), ("all", "operator", 1)),
        (("all", "operator"), ("sms", "keyword"), ("all", "operator", 0)),
        (("call", "carrier"), ("all", "keyword"), ("all", "keyword", 1)),
        (("all", "carrier"), ("all", "keyword"), ("all", "keyword", 0)),
        (("all", "carrier"), ("all", "carrier"), ("all", "carrier", 0)),
        (("all", "carrier"), ("sms", "operator"), ("all", "operator", 0)),
        (("all", "operator"), ("all", "carrier"), ("all", "operator", 0)),
        (("all", "call"), ("all", "operator"), ("all", "call", 0)),
        (("all", "keyword"), ("sms", "operator"), ("all", "operator", 0)),
        (("all", "keyword"), ("all", "call"), ("all", "call", 0)),
        (("all", "keyword"), ("all", "carrier"), ("all", "keyword", 0)),
        (("all", "keyword"), ("all", "keyword"), ("all", "keyword", 0)),
    ],
)
def test_an_entry_only_grows(
    known: tuple[UnsubscribeScope, str], other: tuple[UnsubscribeScope, str], wanted: tuple[str, str, int]
) -> None:
    """The first evidence stays, but a carrier's and a keyword's give way; growing counts as put there now."""
    entries: list[Unsubscribe] = [
        make_unsubscribe(phone=PERSON, scope=scope, source=source, evidence=f"of {source}", created_at=NOW + n * TICK)
        for n, (scope, source) in enumerate((known, other))
    ]
    merged = entries[0].merged(entries[1])
    scope, source, later = wanted
    assert (merged.scope, merged.source, merged.created_at) == (scope, source, NOW + later * TICK)
    is_traced = known[1] == "operator" and other[1] == "keyword"
    assert merged.evidence == f"of {source}" + (f"; also keyword, {NOW:%Y-%m-%d}" if is_traced else "")


@pytest.mark.parametrize("source", ["keyword", "call"])
@pytest.mark.parametrize("first", ["by hand", None])
def test_a_later_opt_out_of_the_person_stays_visible(source: str, first: str | None) -> None:
    """One date for each source, the newest, beside the operator's evidence and the imports; a START takes its own."""
    put = make_unsubscribe(phone=PERSON, source="operator", evidence=first, created_at=NOW)
    said = attrs.evolve(put, source=source, evidence="no more")
    days = [datetime(2026, 11, day, tzinfo=UTC) for day in (20, 30)]
    found = put
    for day in days:
        found = found.merged(attrs.evolve(said, created_at=day))
    text = f"also {source}, 2026-11-30"
    assert found == attrs.evolve(put, evidence=f"{first}; {text}" if first else text)
    assert found.merged(attrs.evolve(said, created_at=days[0])) == found
    evidence = import_evidence(import_id := new_id(), 2, "a.csv")
    with_import = found.merged(attrs.evolve(put, source="import", evidence=evidence))
    assert with_import.evidence == f"{found.evidence}; also {evidence}"
    assert with_import.merged(attrs.evolve(said, created_at=days[1])) == with_import
    assert without_import(with_import, import_id) == found
    assert without_keyword_trace(found) == (put if source == "keyword" else found)


def test_a_start_leaves_what_the_person_said_in_a_call() -> None:
    """Each source leaves its date; evidence that names no STOP stays as it is."""
    put = make_unsubscribe(phone=PERSON, source="operator", evidence="by hand", created_at=NOW)
    assert without_keyword_trace(put) == put
    found = put.merged(attrs.evolve(put, source="call")).merged(attrs.evolve(put, source="keyword"))
    assert found.evidence == f"by hand; also call, {NOW:%Y-%m-%d}; also keyword, {NOW:%Y-%m-%d}"
    assert without_keyword_trace(found).evidence == f"by hand; also call, {NOW:%Y-%m-%d}"


async def test_a_start_lifts_a_carriers_entry_once_the_stop_has_arrived(storage: Storage) -> None:
    """The refusal may overtake the STOP that it comes from: it is the person's word, and theirs to lift."""
    dispatch = await given_message_dispatch(storage)
    await settle(storage, dispatch, OPTED_OUT, now=NOW)
    await write(storage, "START", now=NOW + SECOND)
    found = await entry(storage)
    assert found is not None
    assert found.source == "carrier"
    await write(storage, "STOP", now=NOW + 2 * SECOND)
    found = await entry(storage)
    assert found is not None
    assert (found.source, found.created_at) == ("keyword", NOW)
    assert 'wrote "STOP"' in (found.evidence or "")
    # Messages could not reach the number before: nothing is confirmed.
    assert await answers(storage) == []
    await write(storage, "START", now=NOW + 3 * SECOND)
    assert await entry(storage) is None


async def test_an_operators_entry_outlasts_a_carriers_and_a_keywords(storage: Storage) -> None:
    """A START does not lift an entry made by hand, whatever came before and after."""
    dispatch = await given_message_dispatch(storage)
    await settle(storage, dispatch, OPTED_OUT, now=NOW)
    put = make_unsubscribe(phone=PERSON, source="operator", evidence="by hand", created_at=NOW + SECOND)
    await storage.write(lambda tx: put_on_register(tx, put))
    for later, body in enumerate(("STOP", "START"), start=2):
        await write(storage, body, now=NOW + later * SECOND)
    found = await entry(storage)
    assert found is not None
    assert (found.source, found.evidence) == ("operator", "by hand")


@pytest.mark.parametrize("how", ["refusal", "receipt"])
@pytest.mark.parametrize(("asked_after", "source"), [(-TICK, None), (timedelta(), "carrier"), (TICK, "carrier")])
async def test_a_refusal_of_a_request_from_before_a_start_puts_nobody_on_the_register(
    storage: Storage, how: str, asked_after: timedelta, source: str | None
) -> None:
    """The person has written START since: the carrier's word on the earlier request would outlast it for good."""
    dispatch = await given_message_dispatch(storage)
    start = dispatch.created_at - asked_after
    await write(storage, "STOP", now=start - SECOND)
    await write(storage, "START", now=start)
    assert await entry(storage) is None
    if how == "refusal":
        await settle(storage, dispatch, OPTED_OUT, now=NOW + SECOND)
    else:
        await tell(storage, opted_out(dispatch))
    found = await entry(storage)
    assert (None if found is None else found.source) == source
