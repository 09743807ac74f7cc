"""The preflight says of each contact what the run then does."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import anyio
import attrs
import pytest

from outreach import (
    CampaignUpdate,
    FlowStep,
    InvalidRequest,
    NewAgent,
    NewCallCampaign,
    NewFlow,
    NewRecipient,
    NewSmsCampaign,
    NotFound,
    Outreach,
    Workspace,
)
from outreach.models import BusinessHours, Holiday, HolidayCalendar, Price, PriceTable, TimeWindow, WorkspaceUpdate
from outreach.models.campaign import Campaign, Recipient
from outreach.models.preflight import ContactPreview, Preflight
from outreach.models.settings import DAYS, SmsSettingsUpdate
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.clock import ShiftedClock
from outreach.testing.plugin import ENGINE_CONFIG
from outreach.testing.scripted import ScriptedCarrier, accept
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, reaches, start_campaign

SLOW = attrs.evolve(ENGINE_CONFIG, change_poll_seconds=60.0)
"""Looks around once a minute: a week has ten thousand of them."""

PHONES = (
    *("+12125552368", "+12125552369", "+18089231811", "+13105552200", "+14155550123"),
    *("+919876543210", "+919876543211", "+442079460018", "+81312345678", "+61291234567"),
    # Anywhere in North America or in Russia, nowhere, and no number at all.
    *("+18002345678", "+999123456", "not a number", "12"),
)
TEXTS = (
    "Hello {{first_name}}",
    "{{first_name}}",
    "{{first_name|you}}, come to {{city}}",
    "Caf\u00e9 \u2013 {{city}} {{first_name}}",
    "a" * 150 + "{{city}}",
    "\u201c{{city}}\u201d \u2013 " + "b" * 110,
)
ENDS = {
    "opted_out": ("skipped", "opted_out"),
    "duplicate": ("skipped", "duplicate"),
    "invalid_number": ("skipped", "invalid_number"),
    "timezone_unknown": ("skipped", "timezone_unknown"),
    "no_common_hours": ("skipped", "timezone_unknown"),
    "hours_never_fit": ("skipped", "timezone_unknown"),
    "expires_first": ("expired", None),
    "empty_message": ("failed", "empty_message"),
    "over_segment_cap": ("failed", "over_segment_cap"),
}
"""How a contact ends that a rule leaves out."""


def drawn_contact(drawn: random.Random) -> NewRecipient:
    """Draw a contact."""
    return NewRecipient(
        phone_number=drawn.choice(PHONES),
        first_name=drawn.choice((None, "Ana", "\u0141ukasz", "x" * 200)),
        custom_variables={"city": drawn.choice(("Rome", "", "y" * 100))} if drawn.random() < 0.7 else {},
    )


def drawn_hours(drawn: random.Random) -> BusinessHours | None:
    """Draw business hours, perhaps at night, perhaps on a few days only."""
    if drawn.random() < 0.4:
        return None
    begin = drawn.randrange(0, 23)
    window = TimeWindow(start_minute=begin * 60, end_minute=drawn.randrange(begin + 1, 25) * 60)
    days = drawn.sample(DAYS, drawn.randrange(2, 8))
    zone = drawn.choice(("America/New_York", "Asia/Kolkata", "UTC"))
    return BusinessHours(enabled=True, timezone=zone, schedule=dict.fromkeys(days, (window,)), batch_concurrency=5)


async def opt_some_out(engine: Outreach, workspace_id: str, drawn: random.Random) -> None:
    """Put some numbers on the register."""
    phones = [phone for phone in PHONES[:10] if drawn.random() < 0.15]
    if phones:
        await engine.unsubscribes.add(workspace_id, *phones, scope=drawn.choice(("all", "sms", "call")))


async def verdicts(
    engine: Outreach, campaign: Campaign, recipients: list[Recipient]
) -> tuple[Preflight, dict[int, ContactPreview]]:
    """Return the preflight, and what it says of each contact."""
    found: dict[int, ContactPreview] = {}
    whole = await engine.campaigns.preflight(campaign.workspace_id, campaign.id)
    for phone in {one.phone_number for one in recipients}:
        asked = await engine.campaigns.preflight(campaign.workspace_id, campaign.id, contact=phone)
        assert (asked.left_out, asked.held_back) == (whole.left_out, whole.held_back)
        found |= {one.position: one for one in asked.asked}
    return whole, found


@pytest.mark.virtual_time(max_run=timedelta(days=60))
@pytest.mark.sample(19, turn=16)
@pytest.mark.parametrize("seed", range(57))
async def test_it_leaves_out_whom_the_run_leaves_out(seed: int) -> None:
    """Contact by contact, under drawn rules, texts, hours and registers, where nothing changes meanwhile."""
    drawn = random.Random(seed)
    start = datetime(2026, drawn.randrange(1, 13), drawn.randrange(1, 28), drawn.randrange(24), 7, tzinfo=UTC)
    clock = ShiftedClock(start)
    carrier = ScriptedCarrier(lambda _: accept().delivered())
    async with dispatching(MemoryStorage(clock=clock), carrier=carrier, config=SLOW, clock=clock) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(contact_hours=drawn.random() < 0.8))
        await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(max_segments=drawn.choice((1, 2, 5))))
        await opt_some_out(engine, workspace.id, drawn)
        fields: dict[str, Any] = {"body": drawn.choice(TEXTS), "business_hours": drawn_hours(drawn)}
        fields["replace_characters"] = drawn.random() < 0.5
        if drawn.random() < 0.3:
            steps = (FlowStep(kind="wait", wait_minutes=5), FlowStep(kind="send", body=drawn.choice(TEXTS)))
            flow = await engine.flows.create(workspace.id, NewFlow(name="Flow", steps=steps))
            fields |= {"body": None, "message_source": "flow", "flow_id": flow.id}
        if drawn.random() < 0.3:
            fields["scheduled_expires_at"] = clock.now() + timedelta(hours=drawn.choice((5, 30)))
        if drawn.random() < 0.3:
            away = Holiday(date=start.date() + timedelta(days=drawn.randrange(3)), name="", enabled=True)
            fields["holidays"] = HolidayCalendar(country=None, holidays=(away,))
        # One more who is always there, so that not all are on the register.
        contacts = [NewRecipient(phone_number="+13125552368", first_name="Z")]
        contacts += [drawn_contact(drawn) for _ in range(drawn.randrange(3, 25))]
        campaign = await given_campaign(engine, workspace, contacts, **fields)
        await opt_some_out(engine, workspace.id, drawn)
        before = await people(engine, campaign)
        told, found = await verdicts(engine, campaign, before)
        if told.problems:
            assert {one.path for one in told.problems} <= {"body", "max_segments", "placeholders"}
            if {one.path for one in told.problems} != {"placeholders"}:
                return
        await engine.campaigns.start(workspace.id, campaign.id, allow_unknown_placeholders=True)
        while not (await engine.campaigns.get(workspace.id, campaign.id)).is_terminal:  # noqa: ASYNC110 - days pass
            await anyio.sleep(1800)
        # The open recipients of an expired campaign close a little later.
        await anyio.sleep(60)
        after = await people(engine, campaign)
        for one in after:
            verdict = found[one.position]
            told_end = ENDS[verdict.rule or ""] if verdict.outcome == "left_out" else None
            assert (one.dispatched, told_end) in {(True, None), (False, (one.status.value, one.reason))}, (verdict, one)
        sent = {one.position: one for one in after if one.dispatched}
        assert told.contacted == len(sent)
        assert told.contacts == len(after) == told.contacted + sum(one.count for one in told.left_out)
        texts = {
            one.body
            for position in sent
            for one in await engine.campaigns.list_dispatches(workspace.id, campaign.id, position)
        }
        assert texts == {message.text for position in sent for message in found[position].messages}


@pytest.mark.virtual_time
@pytest.mark.parametrize("seed", range(4))
async def test_a_campaign_that_is_not_there_yet_is_reported_as_the_one_that_is_made_of_it(
    engine: Outreach, seed: int
) -> None:
    """The same contacts, counted the same; but those on the register are shown, which a creation leaves out."""
    drawn = random.Random(seed)
    workspace = await given_workspace(engine)
    await engine.unsubscribes.add(workspace.id, PHONES[0], PHONES[5])
    contacts = [drawn_contact(drawn) for _ in range(1200)]
    new = NewSmsCampaign(name="Spring", body=drawn.choice(TEXTS), carrier="twilio", from_number="+14155550199")
    before = await engine.campaigns.preflight_new(workspace.id, new, contacts)
    made = await engine.campaigns.create_sms(workspace.id, new, contacts)
    after = await engine.campaigns.preflight(workspace.id, made.campaign.id)
    left_out = {one.rule: one.count for one in before.left_out}
    assert left_out.pop("opted_out") == made.opted_out_excluded
    assert left_out == {one.rule: one.count for one in after.left_out}
    same = ("contacted", "messages", "segments", "segment_shares", "encodings", "replacement", "unknown_placeholders")
    for name in same:
        assert getattr(before, name) == getattr(after, name), name
    assert before.unknown_placeholders == made.unknown_placeholders
    assert before.campaign_id is None
    assert (await engine.campaigns.list(workspace.id)).total == 1


@pytest.mark.virtual_time
async def test_the_longest_text_is_among_five(engine: Outreach, workspace: Workspace) -> None:
    """Wherever it stands in the list."""
    contacts = [NewRecipient(phone_number=f"+1415555{n:04d}", first_name="x" * (n % 50)) for n in range(900)]
    contacts[777] = NewRecipient(phone_number="+14155557777", first_name="x" * 400)
    campaign = await given_campaign(engine, workspace, contacts)
    told = await engine.campaigns.preflight(workspace.id, campaign.id)
    assert [one.position for one in told.samples] == [0, 1, 2, 3, 777]
    assert told.samples[-1].messages[0].segments == 3
    assert told.samples[1].messages[0].text == "Hello x\nReply STOP to opt out"
    assert sum(one.messages for one in told.segment_shares) == told.messages == 900


@pytest.mark.virtual_time
async def test_what_costs_ucs2_is_named_with_what_it_would_save(engine: Outreach, workspace: Workspace) -> None:
    """A dash in the text is everybody's; a name with a letter that nothing replaces saves nothing."""
    contacts = [
        NewRecipient(phone_number=f"+1415555{n:04d}", first_name=name) for n, name in enumerate(("A", "A", "я"))
    ]
    campaign = await given_campaign(engine, workspace, contacts, body="{{first_name}} \u2013 " + "b" * 80)
    told = (await engine.campaigns.preflight(workspace.id, campaign.id)).encodings
    assert (told.ucs2_messages, told.saves) == (3, 2)
    dash, ya = told.characters
    assert (dash.character, dash.name, dash.messages, dash.replacement, dash.saves) == ("\u2013", "en dash", 3, "-", 2)
    assert (ya.messages, ya.replacement, ya.saves) == (1, None, 0)


@pytest.mark.virtual_time
async def test_replaced_characters_are_counted_and_shown(engine: Outreach, workspace: Workspace) -> None:
    """What the switch saves is the same before it is on; a name that GSM-7 lacks keeps its text as it is written."""
    names = ("A", "B\u2019s", "\u0142", "\u00e9")
    contacts = [NewRecipient(phone_number=f"+1415555{n:04d}", first_name=name) for n, name in enumerate(names, 1000)]
    campaign = await given_campaign(engine, workspace, contacts, body="{{first_name}} \u2013 " + "b" * 80)
    off = await engine.campaigns.preflight(workspace.id, campaign.id)
    assert (off.replacement.enabled, off.segments) == (False, 8)
    await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(replace_characters=True))
    on = await engine.campaigns.preflight(workspace.id, campaign.id)
    assert on.replacement == attrs.evolve(off.replacement, enabled=True)
    assert (on.replacement.contacts, on.replacement.messages, on.replacement.saves, on.segments) == (3, 3, 3, 5)
    assert [one.position for one in on.replacement.examples] == [0, 1, 3]
    second = on.replacement.examples[1]
    assert (second.before[:8], second.after[:8], second.saves) == ("B\u2019s \u2013 bb", "B's - bb", 1)
    assert [one.messages[0].text[:4] for one in on.samples] == ["A - ", "B's ", "\u0142 \u2013 ", "\u00e9 - "]
    assert (on.encodings.ucs2_messages, off.encodings.ucs2_messages) == (1, 4)


@pytest.mark.virtual_time
async def test_each_message_of_a_flow_has_its_replaced_characters(engine: Outreach, workspace: Workspace) -> None:
    """A contact counts once; at most five texts are shown, and the switch lets a text fit under the segment cap."""
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(max_segments=1))
    sent = [FlowStep(kind="send", body=body) for body in ("Plain", "It\u2019s " + "b" * 80, "\u2026")]
    steps = (sent[0], FlowStep(kind="wait", wait_minutes=5), *sent[1:])
    flow = await engine.flows.create(workspace.id, NewFlow(name="Flow", steps=steps))
    fields: dict[str, Any] = {"body": None, "message_source": "flow", "flow_id": flow.id}
    campaign = await given_campaign(engine, workspace, 3, **fields, replace_characters=True)
    told = await engine.campaigns.preflight(workspace.id, campaign.id)
    assert (told.messages, told.ends_early) == (9, {})
    assert (told.replacement.contacts, told.replacement.messages, told.replacement.saves) == (3, 6, 3)
    assert [(one.position, one.step) for one in told.replacement.examples] == [(0, 2), (0, 3), (1, 2), (1, 3), (2, 2)]
    await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(replace_characters=False))
    assert (await engine.campaigns.preflight(workspace.id, campaign.id)).ends_early == {"over_segment_cap": 3}


@pytest.mark.virtual_time
async def test_the_frequency_cap_holds_back_and_does_not_leave_out(engine: Outreach) -> None:
    """Until a day after the request that counts."""
    clock = clock_of_loop()
    async with dispatching(MemoryStorage(clock=clock)) as rig:
        workspace = await given_workspace(rig.engine)
        await rig.engine.workspaces.update(workspace.id, WorkspaceUpdate(frequency_cap=1))
        first = await start_campaign(rig.engine, workspace, 2)
        await reaches(rig.engine, first, "completed")
        second = await given_campaign(rig.engine, workspace, 3)
        told = await rig.engine.campaigns.preflight(workspace.id, second.id)
    (held,) = told.held_back
    assert (held.rule, held.count, told.contacted, told.left_out) == ("frequency_cap", 2, 3, ())
    assert held.first_at is not None
    assert timedelta(hours=23) < held.first_at - told.at <= timedelta(hours=24)


@pytest.mark.virtual_time
async def test_the_cost_is_by_country_and_carrier(engine: Outreach, workspace: Workspace) -> None:
    """The most particular price counts, and what has none is counted apart."""
    contacts = [NewRecipient(phone_number=phone) for phone in PHONES[:7]]
    campaign = await given_campaign(engine, workspace, contacts, body="Hi")
    told = await engine.campaigns.preflight(workspace.id, campaign.id)
    assert told.cost is None
    assert "no prices" in told.cost_note
    prices = (
        Price(kind="sms", amount=Decimal("0.5"), country="IN"),
        Price(kind="sms", amount=Decimal("0.0079"), country="US"),
        Price(kind="sms", amount=Decimal("0.0083"), country="US", provider="twilio"),
        Price(kind="sms", amount=Decimal("0.07"), provider="telnyx"),
        Price(kind="call", amount=Decimal("9")),
    )
    await engine.prices.update(workspace.id, PriceTable(currency="EUR", prices=prices))
    cost = (await engine.campaigns.preflight(workspace.id, campaign.id)).cost
    assert cost is not None
    assert (cost.currency, cost.amount) == ("EUR", Decimal("1") + 5 * Decimal("0.0083"))
    assert [(one.country, one.quantity) for one in cost.lines] == [("US", 5), ("IN", 2)]
    await engine.prices.update(workspace.id, PriceTable(currency="EUR", prices=prices[:1]))
    cost = (await engine.campaigns.preflight(workspace.id, campaign.id)).cost
    assert cost is not None
    assert (cost.amount, cost.unpriced) == (Decimal("1.0"), 5)
    await engine.prices.remove(workspace.id)
    assert await engine.prices.get(workspace.id) is None
    assert (await engine.campaigns.preflight(workspace.id, campaign.id)).cost is None


@pytest.mark.virtual_time
async def test_a_calling_campaign_is_reported_too(engine: Outreach, workspace: Workspace) -> None:
    """Without texts, with the placeholders of its agent, and by the minute."""
    agent = await engine.agents.create(
        workspace.id,
        NewAgent(name="Ada", provider="simulator", direction="outbound", placeholders=["first_name", "plan"]),
    )
    price = Price(kind="call", amount=Decimal("0.1"))
    await engine.prices.update(workspace.id, PriceTable(currency="USD", prices=(price,)))
    contacts = [NewRecipient(phone_number=f"+1415555{n:04d}", first_name="Ana") for n in range(100)]
    new = NewCallCampaign(name="Calls", agent_id=agent.id)
    told = await engine.campaigns.preflight_new(workspace.id, new, [*contacts, contacts[0]], contact="(415) 555-0007")
    assert (told.channel, told.contacted, told.messages, told.unknown_placeholders) == ("call", 100, 0, ("plan",))
    assert told.asked[0].variables["first_name"] == "Ana"
    # Four in ten answer, in up to three attempts, and each talks into its second minute.
    assert told.cost is not None
    assert told.cost.lines[0].quantity == 2 * round(100 * (1 - 0.6**3))
    twice = await engine.campaigns.preflight_new(workspace.id, attrs.evolve(new, double_dial=True), contacts)
    assert twice.cost is not None
    # Double dial calls a second time within each attempt.
    assert twice.cost.lines[0].quantity == 2 * round(100 * (1 - 0.6**6))
    assert "in up to 3 attempts of two calls each" in twice.cost_note


@pytest.mark.virtual_time
async def test_prices_are_checked(engine: Outreach, workspace: Workspace) -> None:
    """Each place is named, first of what is wrong by itself, and nothing is changed."""
    wrong = (
        Price(kind="fax", amount=Decimal(1)),  # type: ignore[arg-type]
        Price(kind="sms", amount=Decimal("-1")),
        Price(kind="sms", amount=Decimal("NaN"), country="US"),
        Price(kind="sms", amount=Decimal("0.0000001"), country="CA"),
        Price(kind="call", amount=1.5, country="US"),  # type: ignore[arg-type]
        Price(kind="sms", amount=Decimal(1), country="us"),
        Price(kind="sms", amount=Decimal(1), country="Switzerland"),
    )
    with pytest.raises(InvalidRequest) as refused:
        await engine.prices.update(workspace.id, PriceTable(currency="dollars", prices=wrong))
    assert [one.path for one in refused.value.details] == [
        *("currency", "prices[0].kind", *(f"prices[{place}].amount" for place in (1, 2, 3, 4))),
        *("prices[5].country", "prices[6].country"),
    ]
    letters = "must be a country's two capital letters, such as US"
    assert refused.value.details[-1].message == f"{letters}; did you mean CH?"
    general = Price(kind="call", amount=Decimal(1))
    with pytest.raises(InvalidRequest) as refused:
        await engine.prices.update(workspace.id, PriceTable(currency="USD", prices=(general, general)))
    assert [one.path for one in refused.value.details] == ["prices[1]"]
    strange = (
        Price(kind="sms", amount=Decimal(1), country="ZZ"),
        Price(kind="sms", amount=Decimal(1), provider="pigeon"),
    )
    with pytest.raises(InvalidRequest) as refused:
        await engine.prices.update(workspace.id, PriceTable(currency="USD", prices=strange))
    assert [one.path for one in refused.value.details] == ["prices[0].country", "prices[1].provider"]
    assert refused.value.details[0].message == letters
    with pytest.raises(InvalidRequest):
        await engine.prices.update(workspace.id, PriceTable(currency="USD", prices=()))
    assert await engine.prices.get(workspace.id) is None
    with pytest.raises(NotFound):
        await engine.prices.get("nobody")


@pytest.mark.virtual_time
async def test_holidays_count_for_the_time_of_the_turn(engine: Outreach, workspace: Workspace) -> None:
    """A campaign that is closed today has its first turn tomorrow."""
    today = clock_of_loop().now().date()
    away = tuple(Holiday(date=today + timedelta(days=n), name="", enabled=True) for n in (-1, 0))
    campaign = await given_campaign(engine, workspace, 1, holidays=HolidayCalendar(country=None, holidays=away))
    told = await engine.campaigns.preflight(workspace.id, campaign.id)
    tomorrow = date.fromordinal(today.toordinal() + 1)
    assert told.at == datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=UTC)


@pytest.mark.anyio
async def test_one_contact_is_previewed_as_the_preflight_shows_it() -> None:
    """Without a look at the others; another campaign's or workspace's contact is not there."""
    async with Outreach.open("memory://") as engine:
        workspace = await given_workspace(engine)
        campaign = await given_campaign(engine, workspace, 3, add_sender=False)
        place = (workspace.id, campaign.id)
        shown = {one.position: one for one in (await engine.campaigns.preflight(*place)).samples}
        for position in range(3):
            assert await engine.campaigns.preview_recipient(*place, position) == shown[position]
        with pytest.raises(NotFound):
            await engine.campaigns.preview_recipient(*place, 3)
        other = await given_workspace(engine)
        with pytest.raises(NotFound):
            await engine.campaigns.preview_recipient(other.id, campaign.id, 0)
