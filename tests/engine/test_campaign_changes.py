from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import attrs
import pytest

from outreach import (
    CampaignStatus,
    CampaignUpdate,
    Conflict,
    InvalidRequest,
    NewCallCampaign,
    NewRecipient,
    NewSmsCampaign,
    Outreach,
    RecipientStatus,
)
from outreach.errors import CannotStart
from outreach.ledger.campaigns.transitions import move
from outreach.models import NewFollowUp
from outreach.models.campaign import Campaign
from outreach.models.fields import fields_of
from outreach.models.settings import SmsSettingsUpdate
from outreach.models.states import CampaignAction, DispatchState, MessageStatus, TrailRule
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_business_hours,
    make_call,
    make_call_campaign,
    make_campaign,
    make_dispatch,
    make_inbound,
    make_prepared,
    make_unsubscribe,
)
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, pending, publish
from outreach.testing.virtual_time import clock_of_loop
from outreach.testing.waiting import until
from tests.engine.conftest import OpenStorage, given_workspaces
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, reaches, start_campaign

pytestmark = pytest.mark.virtual_time

S = CampaignStatus


@pytest.fixture
def storage(open_storage: OpenStorage, clock: ManualClock) -> Storage:
    """Return a database that the engine opens."""
    return open_storage(clock)


@pytest.fixture
async def writing(storage: Storage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine that does not dispatch on a database of two workspaces."""
    async with Outreach(storage, clock=clock) as engine:
        await given_workspaces(storage)
        yield engine


async def given(storage: Storage, status: CampaignStatus, **fields: Any) -> Campaign:
    """Write a campaign of two contacts."""
    started = None if status in {S.DRAFT, S.READY, S.SCHEDULED} else NOW
    start = {"schedule_type": "scheduled", "scheduled_start_at": NOW + timedelta(days=2)}
    shape = start if status is S.SCHEDULED else {}
    ended = NOW if status in {S.COMPLETED, S.CANCELLED, S.EXPIRED} else None
    known = {"variable_names": (), "started_at": started, "completed_at": ended, **shape, **fields}
    campaign = make_campaign(status=status, **known)
    return await storage.write(lambda tx: publish(tx, campaign, pending(make_prepared(), make_prepared())))


@pytest.mark.parametrize("status", [S.SCHEDULED, S.ACTIVE, S.PAUSED])
async def test_what_has_not_been_sent_can_be_changed(writing: Outreach, storage: Storage, status: S) -> None:
    """Text, rate, hours, expiry and name; the state stays, and a dispatcher looks at it again."""
    campaign = await given(storage, status)
    before = await storage.read(lambda tx: tx.work.last_change())
    change = CampaignUpdate(
        name="New",
        body="Another text",
        rate_per_minute=7,
        replace_characters=True,
        business_hours=make_business_hours(),
        scheduled_expires_at=NOW + timedelta(days=9),
    )
    updated = await writing.campaigns.update(THIS_WORKSPACE, campaign.id, change)
    assert updated.status is status
    assert (updated.name, updated.body, updated.rate_per_minute) == ("New", "Another text", 7)
    assert updated.replace_characters is True
    assert updated.business_hours == make_business_hours()
    assert updated.scheduled_expires_at == NOW + timedelta(days=9)
    assert updated.revision > campaign.revision
    assert await storage.read(lambda tx: tx.work.last_change()) > before


@pytest.mark.parametrize(
    "change",
    [
        CampaignUpdate(carrier="telnyx"),
        CampaignUpdate(from_number="+14155550109"),
        CampaignUpdate(scheduled_start_at=NOW + timedelta(days=1)),
    ],
)
@pytest.mark.parametrize("status", [S.ACTIVE, S.PAUSED])
async def test_what_has_begun_keeps_where_it_is_sent_from(
    writing: Outreach, storage: Storage, status: S, change: CampaignUpdate
) -> None:
    """Nothing is changed, and the error says what to do instead."""
    campaign = await given(storage, status)
    with pytest.raises(Conflict, match="follow up"):
        await writing.campaigns.update(THIS_WORKSPACE, campaign.id, change)
    assert await writing.campaigns.get(THIS_WORKSPACE, campaign.id) == campaign


async def test_a_change_that_makes_every_text_too_long_is_refused(writing: Outreach, storage: Storage) -> None:
    """Without plain characters the text would be over the cap, and each contact would fail."""
    await writing.sms_settings.update(THIS_WORKSPACE, SmsSettingsUpdate(max_segments=1))
    campaign = await given(storage, S.ACTIVE, body="It\u2019s " + "b" * 80, replace_characters=True)
    with pytest.raises(InvalidRequest, match="segment cap"):
        await writing.campaigns.update(THIS_WORKSPACE, campaign.id, CampaignUpdate(replace_characters=False))
    assert (await writing.campaigns.get(THIS_WORKSPACE, campaign.id)).replace_characters is True


async def test_a_scheduled_campaign_can_be_moved_to_another_time(writing: Outreach, storage: Storage) -> None:
    """The clock then starts it at the new time."""
    campaign = await given(storage, S.SCHEDULED)
    start = NOW + timedelta(hours=3)
    await writing.campaigns.update(THIS_WORKSPACE, campaign.id, CampaignUpdate(scheduled_start_at=start))
    units = {work.unit.id: work.due_at for work in await storage.read(lambda tx: tx.work.due())}
    assert units[campaign.id] == start


@pytest.mark.parametrize(
    "change",
    [
        CampaignUpdate(body=None),
        CampaignUpdate(body="  "),
        CampaignUpdate(body="Hello {{nobody}}"),
        CampaignUpdate(body="long " * 300),
        CampaignUpdate(scheduled_expires_at=NOW - timedelta(days=1)),
    ],
    ids=["none", "blank", "placeholder", "too long", "expired"],
)
async def test_a_change_that_nothing_could_be_sent_with_is_refused(
    writing: Outreach, storage: Storage, change: CampaignUpdate
) -> None:
    """A campaign under way keeps all that its start needed."""
    campaign = await given(storage, S.ACTIVE)
    with pytest.raises(InvalidRequest):
        await writing.campaigns.update(THIS_WORKSPACE, campaign.id, change)
    assert await writing.campaigns.get(THIS_WORKSPACE, campaign.id) == campaign


@pytest.mark.parametrize("status", [S.SCHEDULED, S.ACTIVE, S.PAUSED])
async def test_a_text_that_is_empty_for_all_contacts_left_is_refused(
    writing: Outreach, storage: Storage, status: S
) -> None:
    """One contact whose text is not empty is enough. Contacts that have had a message do not count."""
    campaign = await given(storage, status)
    change = CampaignUpdate(body="{{company|}}")
    if status is S.ACTIVE:
        first = await writing.campaigns.get_recipient(THIS_WORKSPACE, campaign.id, 0)
        sending = attrs.evolve(first, status=RecipientStatus.DISPATCHING)
        await storage.write(lambda tx: tx.recipients.put(THIS_WORKSPACE, sending))
    with pytest.raises(InvalidRequest, match="empty for every contact that is left"):
        await writing.campaigns.update(THIS_WORKSPACE, campaign.id, change)
    assert await writing.campaigns.get(THIS_WORKSPACE, campaign.id) == campaign

    other = make_campaign(status=status, variable_names=(), started_at=campaign.started_at)
    people = pending(make_prepared(), make_prepared(company="Acme"))
    await storage.write(lambda tx: publish(tx, other, people))
    waiting = RecipientStatus.WAITING if status is S.ACTIVE else RecipientStatus.PENDING
    second = await writing.campaigns.get_recipient(THIS_WORKSPACE, other.id, 1)
    await storage.write(lambda tx: tx.recipients.put(THIS_WORKSPACE, attrs.evolve(second, status=waiting)))
    assert (await writing.campaigns.update(THIS_WORKSPACE, other.id, change)).body == "{{company|}}"


@pytest.mark.parametrize("status", [S.COMPLETED, S.CANCELLED, S.EXPIRED])
async def test_a_campaign_that_has_ended_cannot_be_changed(writing: Outreach, storage: Storage, status: S) -> None:
    """There is nothing left to send."""
    campaign = await given(storage, status)
    with pytest.raises(Conflict, match="clone it"):
        await writing.campaigns.update(THIS_WORKSPACE, campaign.id, CampaignUpdate(name="New"))


async def test_the_calls_at_a_time_are_those_of_the_hours(writing: Outreach, storage: Storage) -> None:
    """Both tell one number."""
    agent = make_agent()
    campaign = make_call_campaign(
        status=S.ACTIVE, started_at=NOW, agent_id=agent.id, business_hours=make_business_hours(), variable_names=()
    )

    def write(tx: Transaction) -> None:
        tx.agents.insert(agent)
        publish(tx, campaign, pending(make_prepared()))

    await storage.write(write)
    updated = await writing.campaigns.update(THIS_WORKSPACE, campaign.id, CampaignUpdate(batch_concurrency=3))
    assert updated.batch_concurrency == 3
    assert updated.business_hours is not None
    assert updated.business_hours.batch_concurrency == 3


@pytest.mark.parametrize(("own", "other"), [(NewSmsCampaign, NewCallCampaign), (NewCallCampaign, NewSmsCampaign)])
async def test_a_field_of_the_other_channel_is_refused(
    writing: Outreach, storage: Storage, own: type[Any], other: type[Any]
) -> None:
    """Each field of an update that a new campaign of the channel does not have."""
    campaign = make_campaign() if own is NewSmsCampaign else make_call_campaign(agent_id=None)
    await storage.write(lambda tx: publish(tx, campaign, pending(make_prepared())))
    shared = fields_of(own).keys() & fields_of(other).keys()
    foreign = (fields_of(CampaignUpdate).keys() & fields_of(other).keys()) - shared
    assert len(foreign) > 3
    values: dict[str, Any] = {"batch_concurrency": 3, "from_numbers": (), "rate_per_minute": 7}
    for name in foreign:
        change: Any = {name: True if fields_of(CampaignUpdate)[name].is_flag else values.get(name)}
        with pytest.raises(InvalidRequest) as refused:
            await writing.campaigns.update(THIS_WORKSPACE, campaign.id, CampaignUpdate(**change))
        assert [one.path for one in refused.value.details] == [name]


async def test_what_waits_for_its_slot_gets_the_new_text_too(open_storage: OpenStorage) -> None:
    """After the answer nobody gets the old text, nor is skipped or attempted twice: docs/rules.md#changes-under-way."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        engine, carrier = rig.engine, rig.carrier
        workspace = await given_workspace(engine)
        campaign = await start_campaign(engine, workspace, 30)
        await carrier.wait_for_requests(5)
        await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(body="New {{first_name}}"))
        sent = len(carrier.requests)
        assert {one.status for one in await people(engine, campaign)} & {RecipientStatus.DISPATCHING}
        await reaches(engine, campaign, "completed")
        assert {request.body.split()[0] for request in carrier.requests[:sent]} == {"Hello"}
        assert {request.body.split()[0] for request in carrier.requests[sent:]} == {"New"}
        assert len({request.to for request in carrier.requests}) == len(carrier.requests) == 30
        assert {one.attempts for one in await people(engine, campaign)} == {1}


async def test_a_campaign_whose_zone_is_not_known_here_is_closed_until_it_gets_other_hours(
    open_storage: OpenStorage,
) -> None:
    """It came with a database from a machine that knows more zones, and keeps nobody from looking at the others."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        campaign = await given_campaign(engine, workspace)
        elsewhere = attrs.evolve(campaign, business_hours=make_business_hours(timezone="Mars/Olympus"))
        await rig.storage.write(lambda tx: tx.campaigns.update(elsewhere))
        with pytest.raises(CannotStart, match="'Mars/Olympus' is unknown on this machine"):
            await engine.campaigns.start(workspace.id, campaign.id)
        now = clock_of_loop().now()
        await rig.storage.write(lambda tx: move(tx, elsewhere, CampaignAction.START, now=now, actor="test"))

        async def is_closed() -> bool:
            history = await engine.campaigns.recipient_history(workspace.id, campaign.id, 0)
            return TrailRule.BUSINESS_HOURS in {step.rule for step in history.steps}

        await until(is_closed)
        assert [one.id for one in (await engine.status()).running] == [campaign.id]
        assert rig.carrier.requests == []
        await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(business_hours=None))
        await reaches(engine, campaign, "completed")


async def test_an_archived_campaign_is_hidden_unless_asked_for(writing: Outreach, storage: Storage) -> None:
    """The list of the HTTP interface shows it as before, byte by byte."""
    one, two = await given(storage, S.COMPLETED), await given(storage, S.DRAFT, name="Other")
    shown = await writing.http.list_campaigns(THIS_WORKSPACE)
    await writing.campaigns.archive(THIS_WORKSPACE, one.id)

    async def listed(**asked: Any) -> set[str]:
        page = await writing.campaigns.list(THIS_WORKSPACE, **asked)
        assert page.total == len(page.items)
        return {campaign.id for campaign in page.items}

    assert await listed() == {two.id}
    assert await listed(archived=True) == {one.id}
    assert await listed(archived=None) == {one.id, two.id}
    assert await listed(channel="sms", status=S.COMPLETED) == set()
    assert await listed(search="other") == {two.id}
    assert await listed(search="other", archived=True) == set()
    assert (await writing.http.list_campaigns(THIS_WORKSPACE)).items == shown.items
    again = await writing.campaigns.archive(THIS_WORKSPACE, one.id)
    assert again.archived_at == NOW
    await writing.campaigns.unarchive(THIS_WORKSPACE, one.id)
    assert await listed() == {one.id, two.id}
    assert await listed(archived=True) == set()


@pytest.mark.parametrize("status", [S.SCHEDULED, S.ACTIVE, S.PAUSED])
async def test_what_may_send_cannot_be_hidden(writing: Outreach, storage: Storage, status: S) -> None:
    """And what is started comes back into the lists."""
    campaign = await given(storage, status)
    with pytest.raises(Conflict):
        await writing.campaigns.archive(THIS_WORKSPACE, campaign.id)
    ready = await given(storage, S.READY)
    await writing.campaigns.archive(THIS_WORKSPACE, ready.id)
    started = await writing.campaigns.start(THIS_WORKSPACE, ready.id)
    assert started.archived_at is None


async def contacts_of(engine: Outreach, campaign: Campaign) -> list[str | None]:
    """Return the numbers of a campaign."""
    return [one.phone async for one in engine.campaigns.iter_recipients(THIS_WORKSPACE, campaign.id)]


async def test_a_clone_has_the_same_content_and_contacts_and_nothing_of_the_past(
    writing: Outreach, storage: Storage
) -> None:
    """Times are not copied, and who has unsubscribed since is left out."""
    campaign = await given(
        storage,
        S.EXPIRED,
        scheduled_expires_at=NOW,
        business_hours=make_business_hours(),
        rate_per_minute=9,
        replace_characters=True,
    )
    [first, second] = await contacts_of(writing, campaign)
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=first)))
    created = await writing.campaigns.clone(THIS_WORKSPACE, campaign.id)
    copy = created.campaign
    assert copy.name == f"{campaign.name} (copy)"
    assert (copy.body, copy.rate_per_minute, copy.business_hours) == (campaign.body, 9, campaign.business_hours)
    assert copy.replace_characters is True
    assert (copy.scheduled_expires_at, copy.started_at, copy.status) == (None, None, S.READY)
    assert await contacts_of(writing, copy) == [second]
    assert created.opted_out_excluded == 1
    named = await writing.campaigns.clone(THIS_WORKSPACE, campaign.id, name="Mine")
    assert named.campaign.name == "Mine"
    long = await given(storage, S.DRAFT, name="x" * 255)
    assert len((await writing.campaigns.clone(THIS_WORKSPACE, long.id)).campaign.name) == 100


async def given_results(storage: Storage) -> tuple[Campaign, dict[str, str]]:
    """Write an ended campaign with one contact of each kind; return it with their numbers."""
    campaign = make_campaign(status=S.COMPLETED, started_at=NOW, completed_at=NOW, variable_names=())
    kinds: dict[str, tuple[str, str | None, dict[str, Any] | None]] = {
        "refused": ("failed", "unreachable", {"state": DispatchState.REFUSED, "reason": "unreachable"}),
        "undelivered": (
            "failed",
            "unreachable",
            {"state": DispatchState.ACCEPTED, "report": MessageStatus.FAILED, "reason": "unreachable"},
        ),
        "earlier step": ("failed", "over_segment_cap", {"state": DispatchState.ACCEPTED}),
        "replied": ("failed", "filtered", {"state": DispatchState.REFUSED, "reason": "filtered"}),
        "opted out": ("failed", "invalid_number", {"state": DispatchState.REFUSED, "reason": "invalid_number"}),
        "opted in again": ("skipped", "opted_out", None),
        "delivered": ("completed", None, {"state": DispatchState.ACCEPTED, "report": MessageStatus.DELIVERED}),
        "uncertain": ("unconfirmed", "no_evidence", {"state": DispatchState.UNCONFIRMED}),
        "cancelled": ("canceled", None, None),
    }
    contacts = {name: make_prepared() for name in kinds}

    def write(tx: Transaction) -> None:
        tx.campaigns.insert_loading(campaign, loading_until=NOW + timedelta(minutes=5))
        tx.recipients.insert(THIS_WORKSPACE, campaign.id, pending(*contacts.values()), now=NOW)
        for position, (status, reason, request) in enumerate(kinds.values()):
            recipient = tx.recipients.get(THIS_WORKSPACE, campaign.id, position)
            assert recipient is not None
            done = attrs.evolve(recipient, status=RecipientStatus(status), reason=reason, ended_at=NOW)
            tx.recipients.put(THIS_WORKSPACE, attrs.evolve(done, dispatched=request is not None))
            if request is not None:
                place = {"campaign_id": campaign.id, "position": position, "to": recipient.phone}
                tx.dispatches.insert(make_dispatch(**place, **request))
        counters = tx.recipients.recount(THIS_WORKSPACE, campaign.id)
        tx.campaigns.publish(attrs.evolve(campaign, counters=counters))
        tx.inbound.insert(make_inbound(from_number=contacts["replied"].phone))
        tx.register.put(make_unsubscribe(phone=contacts["opted out"].phone, source="keyword"))

    await storage.write(write)
    return campaign, {name: str(contact.phone) for name, contact in contacts.items()}


@pytest.mark.parametrize(
    ("results", "include", "names"),
    [
        (["failed"], [], ["refused", "undelivered"]),
        (["unreachable"], [], ["refused", "undelivered"]),
        (["failed"], ["replied"], ["refused", "undelivered", "replied"]),
        (["failed"], ["reached"], ["refused", "undelivered", "earlier step"]),
        (["failed"], ["opted_out"], ["refused", "undelivered"]),
        (["opted_out"], ["opted_out"], ["opted in again"]),
        (["completed"], ["reached"], ["delivered"]),
        (["unconfirmed", "canceled"], [], ["uncertain", "cancelled"]),
    ],
)
async def test_a_follow_up_takes_those_with_the_results_and_leaves_others_alone(
    writing: Outreach, storage: Storage, results: list[str], include: list[Any], names: list[str]
) -> None:
    """Who opted out, replied or was reached is left out unless asked for; the register has the last word."""
    campaign, numbers = await given_results(storage)
    made = await writing.campaigns.follow_up(
        THIS_WORKSPACE, campaign.id, NewFollowUp(results=results, include=include, body="Again")
    )
    assert await contacts_of(writing, made.created.campaign) == [numbers[name] for name in names]
    assert made.created.campaign.body == "Again"
    assert made.created.campaign.name.endswith("(follow-up)")
    assert made.selected == len(names) + sum(made.left_out.values()) + made.created.opted_out_excluded
    if results == ["failed"] and not include:
        assert made.left_out == {"opted_out": 1, "replied": 1, "reached": 1}


@pytest.mark.parametrize(
    ("results", "match"),
    [
        (["completed"], "1 reached"),
        (["expired"], "Nobody has the result expired"),
        (["nonsense"], "is no result"),
        (["waiting"], "is no result"),
    ],
)
async def test_a_follow_up_of_nobody_says_why(writing: Outreach, storage: Storage, results: Any, match: str) -> None:
    """And creates nothing."""
    campaign, _ = await given_results(storage)
    with pytest.raises((InvalidRequest, Conflict), match=match):
        await writing.campaigns.follow_up(THIS_WORKSPACE, campaign.id, NewFollowUp(results=results))
    assert (await writing.campaigns.list(THIS_WORKSPACE)).total == 1


async def test_a_follow_up_with_a_text_that_cannot_be_says_so(writing: Outreach, storage: Storage) -> None:
    """And not that nobody has these results."""
    campaign, _ = await given_results(storage)
    for body in ("x" * 1601, "\x00"):
        with pytest.raises(InvalidRequest, match="body"):
            await writing.campaigns.follow_up(THIS_WORKSPACE, campaign.id, NewFollowUp(results=("failed",), body=body))


async def test_a_duplicate_is_not_followed_up_while_its_number_has_its_turn_ahead(
    writing: Outreach, storage: Storage
) -> None:
    """Who is still open at one position has no result at another."""
    later, failed = "+14155550101", "+14155550102"
    new = NewSmsCampaign(name="C", body="Hi", carrier="twilio", from_number="+14155550100")
    twice = [NewRecipient(phone_number=phone) for phone in (later, failed, later, failed)]
    campaign = (await writing.campaigns.create_sms(THIS_WORKSPACE, new, twice)).campaign
    await writing.campaigns.start(THIS_WORKSPACE, campaign.id)

    def fail(tx: Transaction) -> None:
        recipient = tx.recipients.get(THIS_WORKSPACE, campaign.id, 1)
        assert recipient is not None
        ended = attrs.evolve(recipient, status=RecipientStatus.FAILED, reason="unreachable", ended_at=NOW)
        tx.recipients.put(THIS_WORKSPACE, ended)

    await storage.write(fail)
    made = await writing.campaigns.follow_up(THIS_WORKSPACE, campaign.id, NewFollowUp(results=("skipped",)))
    assert await contacts_of(writing, made.created.campaign) == [failed]


async def test_who_spoke_in_an_earlier_call_was_reached(writing: Outreach, storage: Storage) -> None:
    """The last of several calls decides the result, each of them whether somebody was reached."""
    agent = make_agent()
    campaign = make_call_campaign(status=S.COMPLETED, started_at=NOW, completed_at=NOW, agent_id=agent.id)
    spoken, machine = make_prepared(), make_prepared()

    def write(tx: Transaction) -> None:
        tx.agents.insert(agent)
        publish(tx, campaign, pending(spoken, machine))
        for position, outcomes in enumerate((("negative", "no_answer"), ("voicemail", "no_answer"))):
            recipient = tx.recipients.get(THIS_WORKSPACE, campaign.id, position)
            assert recipient is not None
            tx.recipients.put(
                THIS_WORKSPACE, attrs.evolve(recipient, status=RecipientStatus.FAILED, reason="no_answer")
            )
            for outcome in outcomes:
                place: dict[str, Any] = {"campaign_id": campaign.id, "position": position, "to": recipient.phone}
                call = make_call(agent_id=agent.id, outcome=outcome, **place)
                tx.calls.insert(call)
                tx.dispatches.insert(
                    make_dispatch(channel="call", call_id=call.id, state=DispatchState.ACCEPTED, **place)
                )

    await storage.write(write)
    made = await writing.campaigns.follow_up(THIS_WORKSPACE, campaign.id, NewFollowUp(results=["no_answer"]))
    assert await contacts_of(writing, made.created.campaign) == [machine.phone]
    with pytest.raises(InvalidRequest, match="channel call"):
        await writing.campaigns.follow_up(THIS_WORKSPACE, campaign.id, NewFollowUp(results=["no_answer"], body="x"))
