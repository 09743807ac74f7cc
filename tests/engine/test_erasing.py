from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from outreach import (
    CampaignStatus,
    Conflict,
    InvalidRequest,
    Message,
    NewMessage,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    NotFound,
    Outreach,
    RecipientStatus,
    WorkspaceUpdate,
)
from outreach.core.config import EngineConfig
from outreach.dispatch import sweeping
from outreach.dispatch.worker import backoff_of
from outreach.events import MessageReceived, OptedIn, OptedOut
from outreach.http import AnswerReplayed, IdempotentRequest, StoredAnswer
from outreach.ledger.campaigns.reporting import report_of
from outreach.ledger.erasure.applying import apply_retention
from outreach.ledger.erasure.campaign_deletion import begin_erasure, erase_slice
from outreach.ledger.settling.callback_events import CallbackContext, process_events
from outreach.ledger.subscriptions import events_between
from outreach.models import NewFollowUp, ProviderCost
from outreach.models.campaign import Campaign
from outreach.models.campaign_report import CampaignReport
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.models.work import WorkUnit
from outreach.plugins import ledger_archives
from outreach.protocols.adapter import CallbackEvent
from outreach.protocols.storage import Storage
from outreach.providers.registry import Adapters
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.serialization.json_reports import read_campaign_report, write_campaign_report
from outreach.services.registers import erasure
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_account,
    make_agent,
    make_call,
    make_call_campaign,
    make_call_report,
    make_callback,
    make_campaign,
    make_dispatch,
    make_inbound,
    make_message,
    make_prepared,
    make_stored_request,
    make_unsubscribe,
    make_workspace,
    new_id,
)
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, pending, publish
from tests.engine.all_endings import given_endings
from tests.engine.conftest import OpenStorage, given_workspaces
from tests.engine.given import given_active
from tests.engine.rig import QUICK, make_engine_worker

pytestmark = pytest.mark.virtual_time

S = CampaignStatus
DAY = timedelta(days=1)


@pytest.fixture
def storage(open_storage: OpenStorage, clock: ManualClock) -> Storage:
    """Return a database that the engine opens."""
    return open_storage(clock)


@pytest.fixture
async def writing(storage: Storage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine that does not dispatch, a day after everything happened."""
    clock.advance(DAY.total_seconds())
    async with Outreach(storage, clock=clock) as engine:
        await given_workspaces(storage)
        yield engine


def figures(report: CampaignReport) -> CampaignReport:
    """Return a report without what an erasure may change: when it was made."""
    return attrs.evolve(report, at=NOW, erased_at=None)


async def test_a_draft_is_deleted_whole(writing: Outreach, storage: Storage) -> None:
    """Nothing of it is found afterwards, in no list and not by a crash that comes in between."""
    kept, gone = make_campaign(), make_campaign(status=S.DRAFT)
    for campaign in (kept, gone):
        contacts = [make_prepared() for _ in range(5)]
        await storage.write(lambda tx, it=campaign, them=contacts: publish(tx, it, pending(*them)))  # type: ignore[misc]
    assert await writing.campaigns.delete(THIS_WORKSPACE, gone.id) is None
    assert [one.id for one in (await writing.campaigns.list(THIS_WORKSPACE)).items] == [kept.id]
    assert (await writing.http.list_campaigns(THIS_WORKSPACE)).total == 1
    with pytest.raises(NotFound):
        await writing.campaigns.get(THIS_WORKSPACE, gone.id)
    with pytest.raises(NotFound):
        await writing.campaigns.delete(THIS_WORKSPACE, gone.id)
    [entry] = [one for one in await writing.audit.list(THIS_WORKSPACE) if one.action == "campaign.delete"]
    assert (entry.subject, entry.detail) == (gone.id, "5 contacts")


async def test_a_campaign_that_was_scheduled_once_is_deleted_too(writing: Outreach) -> None:
    """With its unit of work, so that no dispatcher looks for it."""
    workspace = await writing.workspaces.create(NewWorkspace(name="Acme"))
    new = NewSmsCampaign(
        name="C",
        body="Hi",
        carrier="twilio",
        from_number="+14155550100",
        schedule_type="scheduled",
        scheduled_start_at=NOW + 9 * DAY,
    )
    campaign = (
        await writing.campaigns.create_sms(workspace.id, new, [NewRecipient(phone_number="+14155550101")])
    ).campaign
    await writing.campaigns.start(workspace.id, campaign.id)
    await writing.campaigns.unschedule(workspace.id, campaign.id)
    assert await writing.campaigns.delete(workspace.id, campaign.id) is None
    assert (await writing.campaigns.list(workspace.id)).total == 0


async def test_a_campaign_that_was_unscheduled_under_way_is_not_deleted(writing: Outreach, storage: Storage) -> None:
    """It has requests, and was scheduled again when the clock was set back; deleted like a draft they would be lost."""
    campaign = await given_active(storage, status=S.SCHEDULED, schedule_type="scheduled", scheduled_start_at=NOW + DAY)
    await storage.write(lambda tx: tx.dispatches.insert(make_dispatch(campaign_id=campaign.id, position=0)))
    assert (await writing.campaigns.unschedule(THIS_WORKSPACE, campaign.id)).status is S.READY
    with pytest.raises(Conflict, match="cancel it first"):
        await writing.campaigns.delete(THIS_WORKSPACE, campaign.id)
    assert (await writing.campaigns.get(THIS_WORKSPACE, campaign.id)).status is S.READY


@pytest.mark.parametrize("channel", ["sms", "call"])
@pytest.mark.parametrize("slice_size", [7, 1000])
async def test_an_ended_campaign_is_erased_and_keeps_its_figures(
    writing: Outreach, storage: Storage, monkeypatch: pytest.MonkeyPatch, slice_size: int, channel: str
) -> None:
    """Report, counters and recount are as before; nothing tells who the contacts were or what they got."""
    monkeypatch.setattr(erasure, "SLICE", slice_size)
    campaign = await given_endings(storage, 2, channel=channel, count=30)
    other = await given_endings(storage, 3, count=5)
    before = await writing.campaigns.report(THIS_WORKSPACE, campaign.id)
    requests = await writing.campaigns.count_dispatches(THIS_WORKSPACE, campaign.id)
    erased = await writing.campaigns.delete(THIS_WORKSPACE, campaign.id)
    assert erased is not None
    assert erased.erased_at == erased.archived_at == NOW + DAY
    assert (erased.body, erased.variable_names, erased.name) == (None, None, campaign.name)
    assert figures(await writing.campaigns.report(THIS_WORKSPACE, campaign.id)) == figures(before)
    assert await writing.campaigns.recount(THIS_WORKSPACE, campaign.id) == erased.counters == campaign.counters
    after = await writing.campaigns.count_dispatches(THIS_WORKSPACE, campaign.id)
    assert [attrs.evolve(one, error_message=None) for one in requests] == list(after)
    rows = [one async for one in writing.campaigns.iter_export(THIS_WORKSPACE, campaign.id)]
    assert len(rows) == 30
    for row in rows:
        recipient = row.recipient
        assert (recipient.phone_number, recipient.phone, recipient.first_name) == ("", None, None)
        assert (recipient.external_id, dict(recipient.custom_variables)) == (None, {})
        assert (recipient.time_zone, recipient.us_place) == (None, None)
        assert [(one.to, one.body) for one in row.dispatches] == [("", None)] * len(row.dispatches)
        assert [(one.to, one.summary, dict(one.variables)) for one in row.calls] == [("", None, {})] * len(row.calls)
        assert row.replies == []
    # The neighbour is as it was, and the register too.
    assert all([one.phone async for one in writing.campaigns.iter_recipients(THIS_WORKSPACE, other.id)])
    assert len([one async for one in writing.unsubscribes.iter_all(THIS_WORKSPACE)]) >= before.opt_outs
    assert await writing.campaigns.delete(THIS_WORKSPACE, campaign.id) is not None
    for asked in (
        writing.campaigns.clone(THIS_WORKSPACE, campaign.id),
        writing.campaigns.follow_up(THIS_WORKSPACE, campaign.id, NewFollowUp(results=["failed"])),
    ):
        with pytest.raises(Conflict, match="erased"):
            await asked


async def test_an_erasure_that_a_crash_interrupts_is_finished(
    writing: Outreach, storage: Storage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next dispatcher's sweep, from where it had come to."""
    campaign = await given_endings(storage, 2, count=30)
    stopped = 0

    def stopping(*args: Any, **kwargs: Any) -> bool:
        nonlocal stopped
        stopped += 1
        if stopped > 1:
            raise RuntimeError("power cut")
        return erase_slice(*args, limit=10)

    monkeypatch.setattr(erasure, "erase_slice", stopping)
    with pytest.raises(RuntimeError, match="power cut"):
        await writing.campaigns.delete(THIS_WORKSPACE, campaign.id)

    async def left() -> int:
        return sum([bool(one.phone) async for one in writing.campaigns.iter_recipients(THIS_WORKSPACE, campaign.id)])

    assert await left() == 20
    await apply_retention(
        storage, clock, ledger_archives(), workspace_id=None, actor="engine", limit=10, max_slices=100
    )
    assert await left() == 0


@pytest.mark.parametrize("status", [S.SCHEDULED, S.ACTIVE, S.PAUSED])
async def test_what_may_still_send_is_not_deleted(writing: Outreach, storage: Storage, status: S) -> None:
    """Nor is one that has ended while contacts are open."""
    for campaign, match in (
        (make_campaign(status=status), "cancel it first"),
        (make_campaign(status=S.CANCELLED, completed_at=NOW), "still open"),
    ):
        await storage.write(lambda tx, it=campaign: publish(tx, it, pending(make_prepared())))  # type: ignore[misc]
        with pytest.raises(Conflict, match=match):
            await writing.campaigns.delete(THIS_WORKSPACE, campaign.id)


def test_a_stored_report_is_read_as_it_was_written() -> None:
    """Also with calls, failures and a cost."""
    from decimal import Decimal

    from outreach.models import Cost, CostLine
    from outreach.models.campaign_report import CallFigures, FailureCount
    from outreach.models.reports import ProviderFailure
    from tests.serialization.test_report_page import REPORT

    failure = ProviderFailure(
        provider="twilio",
        reason="filtered",
        error_code="30034",
        error_message="x",
        meaning="m",
        advice="a",
        source="https://example.com/",
    )
    lines = (
        CostLine(kind="call", provider="vapi", country="US", quantity=3, price=Decimal("0.5"), amount=Decimal("1.50")),
        CostLine(kind="call", provider="vapi", country=None, quantity=7, price=None, amount=None),
    )
    report = attrs.evolve(
        REPORT,
        messages=None,
        calls=CallFigures(
            calls=3,
            answered=2,
            open=0,
            outcomes={"positive": 2},
            milliseconds=91_400,
            begun_minutes=3,
            provider_costs=(ProviderCost(currency="USD", amount=Decimal("0.14"), calls=1),),
        ),
        failures=(FailureCount(failure=failure, requests=7),),
        cost=Cost(amount=Decimal("1.50"), currency="EUR", lines=lines, unpriced=7),
        erased_at=NOW,
    )
    for one in (REPORT, report):
        assert read_campaign_report(write_campaign_report(one)) == one
    written = write_campaign_report(report)
    for name in ("milliseconds", "begun_minutes", "provider_costs"):
        # An earlier version wrote none of them.
        del written["calls"][name]
    earlier = read_campaign_report(written).calls
    assert earlier is not None
    assert (earlier.seconds, earlier.begun_minutes, earlier.provider_costs) == (91, None, ())


async def given_person(storage: Storage, phone: str) -> tuple[Campaign, Campaign]:
    """Write what a workspace may know of a person: two campaigns, a message, a call, a reply, an event."""
    agent = make_agent()
    ended = make_campaign(status=S.COMPLETED, started_at=NOW, completed_at=NOW, variable_names=())
    active = make_campaign(status=S.ACTIVE, started_at=NOW, variable_names=())

    def write(tx: Transaction) -> None:
        tx.agents.insert(agent)
        person = make_prepared(
            phone_number=phone,
            phone=phone,
            first_name="Zaphod",
            email="z@example.com",
            custom_variables='{"a":"Zaphod"}',
            external_id="crm-Beeblebrox",
        )
        for campaign in (ended, active):
            publish(tx, campaign, pending(person, make_prepared()))
        recipient = tx.recipients.get(THIS_WORKSPACE, ended.id, 0)
        other = tx.recipients.get(THIS_WORKSPACE, ended.id, 1)
        assert recipient is not None
        assert other is not None
        place: dict[str, Any] = {"campaign_id": ended.id, "position": 0, "to": phone, "body": "Hello Zaphod"}
        tx.dispatches.insert(make_dispatch(**place, state=DispatchState.ACCEPTED, report=MessageStatus.DELIVERED))
        for one, status in ((recipient, RecipientStatus.COMPLETED), (other, RecipientStatus.CANCELED)):
            after = attrs.evolve(one, status=status, dispatched=one is recipient, attempts=int(one is recipient))
            tx.recipients.put(THIS_WORKSPACE, attrs.evolve(after, successful=one is recipient, ended_at=NOW))
        counters = tx.recipients.recount(THIS_WORKSPACE, ended.id)
        tx.campaigns.add_counters(THIS_WORKSPACE, ended.id, counters - ended_before(tx, ended))
        tx.inbound.insert(make_inbound(from_number=phone, body="I am Zaphod", received_at=NOW + timedelta(hours=1)))
        message = make_message(to=phone, body="Dear Zaphod", status=MessageStatus.DELIVERED, ended_at=NOW)
        tx.messages.insert(message)
        tx.dispatches.insert(
            make_dispatch(message_id=message.id, to=phone, body="Dear Zaphod", state=DispatchState.ACCEPTED)
        )
        call = make_call(agent_id=agent.id, to=phone, status=CallStatus.COMPLETED, summary="Zaphod", ended_at=NOW)
        tx.calls.insert(call)
        tx.callbacks.insert(make_callback(body=f"From=%2B{phone[1:]}&Body=Zaphod".encode()))

    await storage.write(write)
    return ended, active


def ended_before(tx: Transaction, campaign: Campaign) -> Any:
    """Return the counters that a campaign has now."""
    found = tx.campaigns.get(THIS_WORKSPACE, campaign.id)
    assert found is not None
    return found.counters


PHONE = "+14155557777"


@pytest.mark.parametrize("opted_out", [True, False])
async def test_a_person_is_purged_from_everything(tmp_path: Path, clock: ManualClock, opted_out: bool) -> None:
    """No byte of the file tells the name or the number; the figures stay, and so does the opt-out."""
    clock.advance(DAY.total_seconds())
    database = tmp_path / "people.db"
    async with Outreach(SqliteStorage(database, clock=clock), clock=clock) as engine:
        storage = engine._storage
        for workspace in (make_workspace(id=THIS_WORKSPACE), make_workspace(id=OTHER_WORKSPACE, name="Other")):
            await storage.write(lambda tx, it=workspace: tx.workspaces.insert(it))  # type: ignore[misc]
        ended, active = await given_person(storage, PHONE)
        if opted_out:
            entry = make_unsubscribe(
                phone=PHONE, source="keyword", evidence="wrote Zaphod", created_at=NOW + timedelta(hours=2)
            )
            await storage.write(lambda tx: tx.register.put(entry))
        before = await engine.campaigns.report(THIS_WORKSPACE, ended.id)
        assert (before.replies, before.opt_outs) == (1, int(opted_out))
        result = await engine.erasure.purge(THIS_WORKSPACE, "+1 (415) 555-7777")
        assert (result.contacts, result.messages, result.calls, result.callbacks) == (2, 1, 1, 1)
        assert result.still_opted_out is opted_out
        # Nobody finds the number, but an opt-out stops it.
        stopped = await engine.unsubscribes.filter_unsubscribed(THIS_WORKSPACE, "sms", [PHONE, "+14155550001"])
        assert stopped == ({PHONE} if opted_out else set())
        assert await engine.unsubscribes.filter_unsubscribed(OTHER_WORKSPACE, "sms", [PHONE]) == set()
        after = await engine.campaigns.report(THIS_WORKSPACE, ended.id)
        assert after == attrs.evolve(before, at=after.at)
        waiting = [one async for one in engine.campaigns.iter_recipients(THIS_WORKSPACE, active.id)]
        assert [(one.status, one.reason) for one in waiting] == [
            (RecipientStatus.SKIPPED, "erased"),
            (RecipientStatus.PENDING, None),
        ]
        counted = (await engine.campaigns.get(THIS_WORKSPACE, active.id)).counters
        assert await engine.campaigns.recount(THIS_WORKSPACE, active.id) == counted
        again = await engine.erasure.purge(THIS_WORKSPACE, PHONE)
        assert (again.contacts, again.messages, again.still_opted_out) == (0, 0, opted_out)
        created = await engine.campaigns.clone(THIS_WORKSPACE, ended.id)
        assert created.campaign.counters.total == 1
    # After closing, and without what SQLite has freed but not overwritten.
    with sqlite3.connect(database) as raw:
        raw.execute("VACUUM")
    raw.close()
    content = database.read_bytes()
    for secret in (b"Zaphod", b"z@example.com", b"Beeblebrox", PHONE[1:].encode()):
        assert secret not in content


async def test_an_answer_that_a_key_repeats_is_erased_with_the_person(
    writing: Outreach, storage: Storage, clock: ManualClock
) -> None:
    """The request is still known: it is not carried out again, and the error says why it is not answered."""

    def render(made: Message) -> StoredAnswer:
        return StoredAnswer(body=f'{{"to":"{made.to}","body":"{made.body}"}}'.encode(), location=f"/{made.to}")

    async def send(phone: str, digest: str = "print", workspace_id: str = THIS_WORKSPACE) -> StoredAnswer:
        new = NewMessage(to=phone, body="Dear Zaphod", from_number="+14155550100", carrier="twilio")
        request = IdempotentRequest(operation="POST /texts", key=phone[-4:], digest=digest, render=render)
        with suppress(AnswerReplayed):
            await writing.messages.send(workspace_id, new, idempotency_key=request)
        return request.answer

    other = PHONE[:-1] + "8"
    first, kept, theirs = await send(PHONE), await send(other), await send(PHONE, workspace_id=OTHER_WORKSPACE)
    assert await send(PHONE) == first
    sent = list(await writing.messages.list(THIS_WORKSPACE))
    ended = [attrs.evolve(one, status=MessageStatus.DELIVERED, ended_at=clock.now()) for one in sent]
    await storage.write(lambda tx: [tx.messages.update(one) for one in ended])
    assert (await writing.erasure.purge(THIS_WORKSPACE, PHONE)).messages == 1
    with pytest.raises(InvalidRequest, match="erased since") as refused:
        await send(PHONE)
    assert refused.value.details[0].path == "Idempotency-Key"
    with pytest.raises(InvalidRequest, match="other content"):
        await send(PHONE, digest="another")
    assert (await send(other), await send(PHONE, workspace_id=OTHER_WORKSPACE)) == (kept, theirs)
    assert len(list(await writing.messages.list(THIS_WORKSPACE))) == len(sent)
    stored = await storage.read(lambda tx: tx.requests.stored(THIS_WORKSPACE, "POST /texts", PHONE[-4:]))
    assert stored is not None
    assert (stored.fingerprint, stored.location) == ("print", None)
    assert not [secret for secret in (PHONE[1:], "Zaphod") if secret in str(stored)]
    clock.advance(2 * DAY.total_seconds())
    assert await send(PHONE) == first


TOLD = f"The number {PHONE} belongs to Zaphod."


@pytest.mark.parametrize("how", ["purge", "delete", "retention"])
async def test_what_a_provider_said_of_a_call_is_erased_and_does_not_come_back(
    writing: Outreach, storage: Storage, clock: ManualClock, how: str
) -> None:
    """A failure may name the number, and an analysis may come later; codes stay, and the outcome counts."""
    agent = make_agent()
    campaign = make_call_campaign(
        agent_id=agent.id, status=S.COMPLETED, started_at=NOW, completed_at=NOW, variable_names=()
    )
    place: dict[str, Any] = {"campaign_id": campaign.id, "position": 0} if how == "delete" else {}
    ends: list[dict[str, Any]] = [
        {"status": CallStatus.FAILED, "error": TOLD},
        {"status": CallStatus.FAILED, "error": f"to={PHONE}"},
        {"status": CallStatus.FAILED, "error": "no_route_21610"},
        {"status": CallStatus.COMPLETED},
        {"status": CallStatus.UNCONFIRMED},
    ]
    calls = [make_call(agent_id=agent.id, to=PHONE, ended_at=NOW, **place, **end) for end in ends]
    requests = [
        make_dispatch(
            to=PHONE,
            channel="call",
            provider="vapi",
            call_id=call.id,
            state=DispatchState.ACCEPTED,
            try_number=1 + number,
            **place,
        )
        for number, call in enumerate(calls)
    ]

    def write(tx: Transaction) -> None:
        tx.agents.insert(agent)
        publish(tx, campaign, pending(make_prepared()))
        one = tx.recipients.get(THIS_WORKSPACE, campaign.id, 0)
        assert one is not None
        tx.recipients.put(THIS_WORKSPACE, attrs.evolve(one, status=RecipientStatus.COMPLETED, dispatched=True))
        counters = tx.recipients.recount(THIS_WORKSPACE, campaign.id)
        tx.campaigns.add_counters(THIS_WORKSPACE, campaign.id, counters - ended_before(tx, campaign))
        for call, request in zip(calls, requests, strict=True):
            tx.calls.insert(call)
            tx.dispatches.insert(request)
        tx.calls.put_transcript(calls[3], TOLD)

    async def now() -> list[tuple[CallStatus, str | None, str | None, str | None]]:
        found = [await writing.calls.get(THIS_WORKSPACE, call.id) for call in calls]
        return [(call.status, call.outcome, call.error, call.summary) for call in found]

    await storage.write(write)
    assert await writing.calls.transcript(THIS_WORKSPACE, calls[3].id) == TOLD
    if how == "purge":
        assert (await writing.erasure.purge(THIS_WORKSPACE, PHONE)).calls == len(calls)
    elif how == "delete":
        await writing.campaigns.delete(THIS_WORKSPACE, campaign.id)
    else:
        await writing.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=1))
        clock.advance(DAY.total_seconds())
        await writing.erasure.apply_retention()
    assert [error for _, _, error, _ in await now()] == [None, None, "no_route_21610", None, None]
    assert await writing.calls.transcript(THIS_WORKSPACE, calls[3].id) is None
    analysis = make_call_report(outcome="positive", summary=TOLD, transcript=TOLD)
    failure = make_call_report(status=CallStatus.FAILED, error=TOLD, summary=TOLD)
    account = make_account(provider="vapi")
    context = CallbackContext(
        ids=new_id, backoff=backoff_of(EngineConfig()), analyser=ProviderAnalyser(), adapters=Adapters()
    )
    await storage.write(lambda tx: tx.accounts.insert(account))
    for request, report in ((requests[3], analysis), (requests[4], failure)):
        event = CallbackEvent(event_id=new_id(), content=attrs.evolve(report, dispatch_id=request.id, provider_id=None))
        [record] = await storage.write(
            lambda tx, it=event: process_events(tx, account, [it], TOLD.encode(), context=context, now=clock.now())  # type: ignore[misc]
        )
        assert (record.result, record.body) == ("merged", b"")
    assert (await now())[3:] == [
        (CallStatus.COMPLETED, "positive", None, None),
        (CallStatus.FAILED, "failed", None, None),
    ]
    assert await writing.calls.transcript(THIS_WORKSPACE, calls[3].id) is None
    # A verdict of one's own counts too, without its words; an erased campaign's figures are those of the moment before.
    if how == "purge":
        judged = await writing.calls.set_outcome(THIS_WORKSPACE, calls[3].id, "negative", summary=TOLD)
        assert (judged.outcome, judged.summary) == ("negative", None)
    elif how == "delete":
        with pytest.raises(Conflict, match="erased"):
            await writing.calls.set_outcome(THIS_WORKSPACE, calls[3].id, "negative")


async def test_a_purged_person_can_opt_in_and_out_again(writing: Outreach, storage: Storage) -> None:
    """The register finds the hash by the number; a new entry replaces it."""
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=PHONE, scope="sms")))
    await writing.erasure.purge(THIS_WORKSPACE, PHONE)
    [entry] = [one async for one in writing.unsubscribes.iter_all(THIS_WORKSPACE)]
    assert entry.phone.startswith("#")
    await writing.unsubscribes.add(THIS_WORKSPACE, PHONE)
    [entry] = [one async for one in writing.unsubscribes.iter_all(THIS_WORKSPACE)]
    assert (entry.phone, entry.scope) == (PHONE, "all")
    await writing.erasure.purge(THIS_WORKSPACE, PHONE)
    assert await writing.unsubscribes.remove(THIS_WORKSPACE, PHONE) == 1
    assert [one async for one in writing.unsubscribes.iter_all(THIS_WORKSPACE)] == []


async def test_a_doubt_about_a_purged_person_counts_as_an_opt_out(writing: Outreach, storage: Storage) -> None:
    """Nobody can decide about it any more, but for the person, who may write START."""
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=PHONE, scope="held", source="unclear")))
    assert (await writing.erasure.purge(THIS_WORKSPACE, PHONE)).still_opted_out
    assert await writing.unsubscribes.filter_unsubscribed(THIS_WORKSPACE, "call", [PHONE]) == {PHONE}
    assert list(await writing.unsubscribes.list_held(THIS_WORKSPACE)) == []
    await writing.messages.receive(THIS_WORKSPACE, from_number=PHONE, to="+14155550199", body="START")
    assert await writing.unsubscribes.filter_unsubscribed(THIS_WORKSPACE, "call", [PHONE]) == set()


async def test_a_hashed_number_is_left_out_of_new_campaigns(writing: Outreach, storage: Storage) -> None:
    """Among others, so that many are looked up at once."""
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=PHONE)))
    await writing.erasure.purge(THIS_WORKSPACE, PHONE)
    contacts = [NewRecipient(phone_number=number) for number in (PHONE, "+14155550101", "+14155550102")]
    created = await writing.campaigns.create_sms(THIS_WORKSPACE, NewSmsCampaign(name="C", body="Hi"), contacts)
    assert (created.opted_out_excluded, created.campaign.counters.total) == (1, 2)


@pytest.mark.parametrize("state", [RecipientStatus.DISPATCHING, RecipientStatus.UNKNOWN])
async def test_nobody_is_purged_while_a_request_is_on_its_way(writing: Outreach, storage: Storage, state: Any) -> None:
    """Its outcome would find nobody; nothing is erased, and the error says when to try again."""
    _, active = await given_person(storage, PHONE)

    def begin(tx: Transaction) -> None:
        recipient = tx.recipients.get(THIS_WORKSPACE, active.id, 0)
        assert recipient is not None
        tx.recipients.put(THIS_WORKSPACE, attrs.evolve(recipient, status=state))

    await storage.write(begin)
    with pytest.raises(Conflict, match=r"on its way in campaign .*\. Purge it again when that has ended\.$"):
        await writing.erasure.purge(THIS_WORKSPACE, PHONE)
    assert [one.body for one in await writing.messages.list_inbound(THIS_WORKSPACE)] == ["I am Zaphod"]


async def test_nobody_is_purged_while_a_single_message_waits(writing: Outreach, storage: Storage) -> None:
    """Nor while contacts are being loaded, among whom the person may be."""
    message = make_message(to=PHONE)
    await storage.write(lambda tx: tx.messages.insert(message))
    with pytest.raises(Conflict, match="on its way"):
        await writing.erasure.purge(THIS_WORKSPACE, PHONE)
    loading = make_campaign()
    until = NOW + 2 * DAY
    await storage.write(lambda tx: tx.campaigns.insert_loading(loading, loading_until=until))
    with pytest.raises(Conflict, match="being loaded"):
        await writing.erasure.purge(THIS_WORKSPACE, PHONE)


async def test_only_numbers_of_a_workspace_are_purged(writing: Outreach, storage: Storage) -> None:
    """What is no number is refused, and others' data stays."""
    await given_person(storage, PHONE)
    result = await writing.erasure.purge(OTHER_WORKSPACE, PHONE)
    assert (result.contacts, result.messages, result.calls) == (0, 0, 0)
    assert (await writing.erasure.purge(THIS_WORKSPACE, PHONE)).contacts == 2
    with pytest.raises(InvalidRequest):
        await writing.erasure.purge(THIS_WORKSPACE, "Zaphod")
    with pytest.raises(NotFound):
        await writing.erasure.purge("019a9f6e-7c3b-7d1e-8f00-3a5b6c7d8e9f", PHONE)


async def test_the_retention_erases_what_is_older_and_nothing_else(
    writing: Outreach, storage: Storage, clock: ManualClock
) -> None:
    """Ended campaigns, single messages and calls, inbound messages, events, numbers of the trail and the register."""
    old, _ = await given_person(storage, PHONE)
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone="+14155558888", created_at=NOW)))
    report = await writing.campaigns.report(THIS_WORKSPACE, old.id)
    await writing.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=30))
    clock.advance((28 * DAY).total_seconds())
    nothing = await writing.erasure.apply_retention()
    assert (nothing.campaigns, nothing.slices, nothing.more) == (0, 0, False)
    clock.advance((2 * DAY).total_seconds())
    young = await given_endings(storage, 4, count=3)
    await storage.write(
        lambda tx: tx.campaigns.update(attrs.evolve(young, started_at=clock.now(), completed_at=clock.now()))
    )
    fresh = make_message(to=PHONE, status=MessageStatus.DELIVERED, ended_at=clock.now(), created_at=clock.now())
    await storage.write(lambda tx: tx.messages.insert(fresh))
    assert (await writing.erasure.apply_retention(THIS_WORKSPACE)).campaigns == 1
    assert (await writing.campaigns.get(THIS_WORKSPACE, old.id)).erased_at == clock.now()
    assert (await writing.campaigns.get(THIS_WORKSPACE, young.id)).erased_at is None
    assert figures(await writing.campaigns.report(THIS_WORKSPACE, old.id)) == figures(report)
    assert not any([one.phone async for one in writing.campaigns.iter_recipients(THIS_WORKSPACE, old.id)])
    assert await writing.messages.get(THIS_WORKSPACE, fresh.id) == fresh
    stopped = await writing.unsubscribes.filter_unsubscribed(THIS_WORKSPACE, "sms", ["+14155558888"])
    assert stopped == {"+14155558888"}
    assert "+14155558888" not in [one.phone async for one in writing.unsubscribes.iter_all(THIS_WORKSPACE)]
    assert "I am Zaphod" not in [one.body for one in await writing.messages.list_inbound(THIS_WORKSPACE)]
    assert (await writing.erasure.apply_retention()).slices == 0


async def test_a_report_keeps_the_replies_that_are_older_than_the_end_of_its_campaign(
    writing: Outreach, storage: Storage, clock: ManualClock
) -> None:
    """They reach the age of the retention before the campaign does, and are erased with it."""
    campaign = await given_endings(storage, 2, count=30)
    assert campaign.completed_at is not None
    before = await writing.campaigns.report(THIS_WORKSPACE, campaign.id)
    assert before.replies
    assert before.opt_outs
    await writing.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=30))
    for at, erased in ((campaign.completed_at, 0), (campaign.completed_at + DAY, 1)):
        clock.set(at + 30 * DAY)
        assert (await writing.erasure.apply_retention()).campaigns == erased
        assert figures(await writing.campaigns.report(THIS_WORKSPACE, campaign.id)) == figures(before)
    assert list(await writing.messages.list_inbound(THIS_WORKSPACE)) == []
    assert {one.phone[0] async for one in writing.unsubscribes.iter_all(THIS_WORKSPACE)} == {"#"}


async def test_an_event_whose_number_the_retention_has_erased_has_an_empty_one(
    writing: Outreach, storage: Storage, clock: ManualClock
) -> None:
    """A reader that is behind gets a text, as the type of the field says."""
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=PHONE)))
    await writing.unsubscribes.remove(THIS_WORKSPACE, PHONE)
    await writing.unsubscribes.add(THIS_WORKSPACE, PHONE)
    await writing.messages.receive(THIS_WORKSPACE, from_number=PHONE, to="+14155550100", body="Hello")
    await writing.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=1))
    clock.advance((2 * DAY).total_seconds())
    await writing.erasure.apply_retention()
    events = await storage.read(lambda tx: events_between(tx, THIS_WORKSPACE, 0, tx.trail.last_number()))
    [gone, came, wrote] = [one for one in events if isinstance(one, OptedIn | OptedOut | MessageReceived)]
    assert isinstance(gone, OptedIn)
    assert isinstance(came, OptedOut)
    assert isinstance(wrote, MessageReceived)
    assert [gone.phone, came.phone, wrote.from_number] == ["", "", ""]


async def test_a_clock_that_has_just_been_set_erases_nothing_by_its_age(
    writing: Outreach, storage: Storage, clock: ManualClock
) -> None:
    """A machine may start with a clock years ahead, for some minutes; what was begun is finished all the same."""
    begun, kept = [await given_endings(storage, number, count=3) for number in (1, 2)]
    callback = make_callback(received_at=NOW)
    await storage.write(lambda tx: tx.callbacks.insert(callback))
    await writing.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=30))
    await storage.write(lambda tx: begin_erasure(tx, report_of(tx, begun, NOW), now=NOW, actor="host"))

    async def erased() -> Sequence[bool]:
        """Tell what is gone: the contacts of each, that the second was chosen, the callback."""
        contacts = [
            not any([one.phone async for one in writing.campaigns.iter_recipients(THIS_WORKSPACE, campaign.id)])
            for campaign in (begun, kept)
        ]
        chosen = (await writing.campaigns.get(THIS_WORKSPACE, kept.id)).erased_at is not None
        stored = await storage.read(lambda tx: tx.callbacks.get(THIS_WORKSPACE, callback.account_id, callback.event_id))
        return [*contacts, chosen, stored is None]

    config = attrs.evolve(QUICK, lease_seconds=120.0)
    worker = make_engine_worker(storage, clock, config)
    epoch = await worker.acquire() or 0

    async def run(minutes: int) -> None:
        for _ in range(minutes):
            clock.advance(60)
            await worker.renew(epoch)

    await run(1)
    # As it stands from now on: no heartbeat has seen it yet.
    clock.set(NOW + 400 * DAY)
    await worker.sweep()
    assert await erased() == [True, False, False, False]
    await run(59)
    await worker.sweep()
    assert await erased() == [True, False, False, False]
    await run(2)
    await worker.sweep()
    assert await erased() == [True, True, True, True]
    await worker.release()


async def test_a_sweep_clears_away_all_that_is_due_and_not_a_slice_of_it(
    storage: Storage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More keys may expire between two sweeps than one transaction deletes; one sweep has its bounds all the same."""
    monkeypatch.setattr(sweeping, "_MAX_ROWS", 2)
    monkeypatch.setattr(sweeping, "_MAX_SWEPT_SLICES", 4)
    units = [WorkUnit("message", THIS_WORKSPACE, new_id()) for _ in range(5)]

    def write(tx: Transaction) -> None:
        for number in range(5):
            tx.requests.put_stored(make_stored_request(key=f"{number}", expires_at=NOW))
            tx.callbacks.insert(make_callback(received_at=NOW - 90 * DAY))
            tx.work.schedule(units[number], None)

    def left(tx: Transaction) -> list[int]:
        keys = [tx.requests.stored(THIS_WORKSPACE, "create_call", f"{number}") for number in range(20)]
        return [sum(one is not None for one in keys), len(tx.callbacks.list(THIS_WORKSPACE))]

    async with storage:
        await given_workspaces(storage)
        worker = make_engine_worker(storage, clock)
        await worker.acquire()
        monkeypatch.setattr("outreach.ledger.leases.clock_steps.is_trusted", lambda *_: True)
        await storage.write(write)
        await worker.sweep()
        assert await storage.read(left) == [0, 0]
        assert [await storage.read(lambda tx, it=unit: tx.work.get(it)) for unit in units] == [None] * 5  # type: ignore[misc]
        await storage.write(
            lambda tx: [
                tx.requests.put_stored(make_stored_request(key=f"{number}", expires_at=NOW)) for number in range(10)
            ]
        )
        await worker.sweep()
        assert (await storage.read(left))[0] == 2
        await worker.release()


async def test_a_list_of_replies_ends_where_the_retention_has_deleted_the_rest(
    writing: Outreach, clock: ManualClock
) -> None:
    """The last message of the page before may be gone too."""
    for body in ("one", "two", "three"):
        await writing.messages.receive(THIS_WORKSPACE, from_number=PHONE, to="+14155550100", body=body)
        clock.advance(DAY.total_seconds())
    page = await writing.messages.list_inbound(THIS_WORKSPACE, limit=2)
    assert [one.body for one in page] == ["three", "two"]
    await writing.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=1))
    clock.advance(DAY.total_seconds())
    await writing.erasure.apply_retention(THIS_WORKSPACE)
    assert list(await writing.messages.list_inbound(THIS_WORKSPACE, after=page.next)) == []


async def test_the_retention_goes_in_slices_and_says_whether_more_is_left(
    writing: Outreach, storage: Storage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is stopped is gone on with by the next one; a sweep of a dispatcher does the same."""
    monkeypatch.setattr(erasure, "SLICE", 10)
    await given_endings(storage, 4, count=35)
    await writing.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=1))
    clock.advance((3 * DAY).total_seconds())
    first = await writing.erasure.apply_retention(max_slices=2)
    assert (first.campaigns, first.slices, first.more) == (1, 1, True)
    await apply_retention(
        storage, clock, ledger_archives(), workspace_id=None, actor="engine", limit=10, max_slices=100
    )
    rest = await writing.erasure.apply_retention()
    assert (rest.slices, rest.more) == (0, False)
    for days in (0, 36_501, True):
        with pytest.raises(InvalidRequest):
            await writing.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=days))
    kept = await writing.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=None))
    assert kept.retention_days is None
