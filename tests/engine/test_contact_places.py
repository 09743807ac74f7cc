"""How the engine applies a contact's own time zone, ZIP code and state, and narrower hours."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from outreach import InvalidRequest, NewRecipient, NewSmsCampaign, Outreach, TimeWindow, Workspace, WorkspaceUpdate
from outreach.ledger.campaigns.histories import history_at
from outreach.models.settings import DAYS, PlaceHours
from outreach.models.states import TrailRule, TrailStepKind
from outreach.protocols.storage import Storage
from outreach.reasons import describe_zones
from outreach.serialization.campaigns import read_sms_campaign
from outreach.serialization.json_parsing import parse_json, read_simple_body
from outreach.services.campaigns.contacts import prepare_recipient
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_campaign, make_prepared, make_workspace
from outreach.testing.clock import ManualClock, ShiftedClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, pending, publish
from tests.engine.conftest import OpenStorage
from tests.engine.flow_course import Course
from tests.engine.given import recipient, reread
from tests.engine.rig import given_campaign, given_workspace, sending, until
from tests.engine.rig import people as people_of
from tests.engine.test_contact_hours import HELLO, NOON_IN_NEW_YORK

pytestmark = pytest.mark.virtual_time

MIAMI = "+13055550100"
ANN, BEN, CAT, DAN = "+12125552368", "+12125552369", "+12125552370", "+12125552371"
EIGHT_IN_HONOLULU = datetime(2026, 7, 1, 18, tzinfo=UTC)
ONE_IN_MIAMI = datetime(2026, 7, 1, 17, tzinfo=UTC)
FLORIDA = PlaceHours(
    place="US-FL",
    schedule=dict.fromkeys(DAYS, (TimeWindow(start_minute=13 * 60, end_minute=20 * 60),)),
    source="Fla. Stat. 501.616(6)(a)",
)


async def given_course(
    storage: Storage, clock: ManualClock, *places: tuple[str, str | None, str | None], narrower: bool = False
) -> Course:
    """Begin a campaign at noon in New York with contacts of a number, an own zone, and a place in the United States."""
    clock.set(NOON_IN_NEW_YORK)
    hours = (FLORIDA,) if narrower else ()
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(contact_hours=True, narrower_hours=hours)))
    course = await Course.begin(storage, clock, HELLO, count=0)
    flow = {"message_source": "flow", "flow_id": course.campaign.flow_id}
    campaign = make_campaign(status=course.campaign.status, started_at=clock.now(), **flow)
    people = [
        make_prepared(phone_number=phone, phone=phone, time_zone=zone, us_place=place) for phone, zone, place in places
    ]

    def write(tx: Transaction) -> None:
        publish(tx, campaign, pending(*people))

    await storage.write(write)
    return Course(storage, clock, campaign)


async def test_the_own_zone_of_a_contact_wins_over_that_of_its_number(storage: Storage, clock: ManualClock) -> None:
    """At noon in New York it is six in Hawaii: where a contact is, by its zone, its ZIP code or its state."""
    course = await given_course(
        storage, clock, (ANN, None, None), (BEN, "Pacific/Honolulu", "100"), (CAT, None, "968"), (DAN, None, "HI")
    )
    assert [dispatch.to for dispatch in await course.wave()] == [ANN]
    held = [await recipient(storage, course.campaign, position) for position in (1, 2, 3)]
    assert [(one.reason, one.due_at) for one in held] == [("contact_hours", EIGHT_IN_HONOLULU)] * 3
    clock.set(EIGHT_IN_HONOLULU)
    assert [dispatch.to for dispatch in await course.wave()] == [BEN, CAT, DAN]
    await reread(storage, course.campaign)


async def test_a_place_with_two_zones_is_contacted_when_both_are_open(storage: Storage, clock: ManualClock) -> None:
    """ZIP codes that begin with 798 are in the central and the mountain zone: eight there is nine in the other."""
    course = await given_course(storage, clock, (ANN, None, "798"))
    clock.set(datetime(2026, 7, 1, 13, 30, tzinfo=UTC))
    assert await course.wave() == ()
    assert (await recipient(storage, course.campaign, 0)).due_at == datetime(2026, 7, 1, 14, tzinfo=UTC)
    clock.set(datetime(2026, 7, 2, 1, 59, 59, tzinfo=UTC))
    (dispatch,) = await course.wave()
    assert dispatch.valid_until == datetime(2026, 7, 2, 2, tzinfo=UTC)


async def test_narrower_hours_hold_contacts_of_their_place_back(storage: Storage, clock: ManualClock) -> None:
    """Those of Florida: by area code, by ZIP code whatever the number, and by the own zone's clock."""
    course = await given_course(
        *(storage, clock), (ANN, None, None), (MIAMI, None, None), (BEN, None, "331"), (CAT, "America/Denver", "FL"),
        narrower=True,
    )  # fmt: skip
    assert [dispatch.to for dispatch in await course.wave()] == [ANN]
    due = [(await recipient(storage, course.campaign, position)).due_at for position in (1, 2, 3)]
    assert due == [ONE_IN_MIAMI, ONE_IN_MIAMI, datetime(2026, 7, 1, 19, tzinfo=UTC)]
    clock.set(ONE_IN_MIAMI)
    dispatches = await course.wave()
    assert [dispatch.to for dispatch in dispatches] == [MIAMI, BEN]


async def test_the_trail_says_which_zone_was_used_and_why(storage: Storage, clock: ManualClock) -> None:
    """And which narrower hours, with their legal source."""
    course = await given_course(
        *(storage, clock), (BEN, "Pacific/Honolulu", None), (CAT, None, "968"), (DAN, None, "HI"), (MIAMI, None, None),
        narrower=True,
    )  # fmt: skip
    assert await course.wave() == ()
    campaign_id = course.campaign.id
    histories = await storage.read(
        lambda tx: [history_at(tx, THIS_WORKSPACE, campaign_id, position) for position in range(4)]
    )
    for history in histories:
        assert (history.steps[-1].what, history.steps[-1].rule) == (TrailStepKind.HELD, TrailRule.CONTACT_HOURS)
    assert [(list(one.time_zones), one.zone_source) for one in histories] == [
        (["Pacific/Honolulu"], "own"),
        (["Pacific/Honolulu"], "zip"),
        (["Pacific/Honolulu"], "state"),
        (["America/New_York"], "number"),
    ]
    assert [describe_zones(one) for one in histories] == [
        "Pacific/Honolulu, its own time zone",
        "Pacific/Honolulu, by its ZIP code",
        "Pacific/Honolulu, by its state",
        "America/New_York, by its number; narrower hours: US-FL (Fla. Stat. 501.616(6)(a))",
    ]
    assert describe_zones(attrs.evolve(histories[0], zone_source=None)) is None


@pytest.mark.virtual_time(start=NOON_IN_NEW_YORK)
async def test_preflight_and_forecast_go_by_the_place_too(engine: Outreach) -> None:
    """As the waves do: one contact in New York, two in Hawaii, one in Florida."""
    workspace = await given_workspace(engine, contact_hours=True, narrower_hours=[FLORIDA])
    people = [
        NewRecipient(phone_number=ANN),
        NewRecipient(phone_number=BEN, time_zone="Pacific/Honolulu"),
        NewRecipient(phone_number=CAT, zip_code="96801"),
        NewRecipient(phone_number=MIAMI),
    ]
    campaign = await given_campaign(engine, workspace, people, body="Hi")
    [held] = (await engine.campaigns.preflight(workspace.id, campaign.id)).held_back
    assert (held.rule, held.count) == ("contact_hours", 3)
    assert (held.first_at, held.last_at) == (ONE_IN_MIAMI, EIGHT_IN_HONOLULU)
    forecast = await engine.campaigns.forecast(workspace.id, campaign.id)
    assert [(hour.at.hour, hour.requests) for hour in forecast.hours if hour.requests] == [(16, 1), (17, 1), (18, 2)]


async def test_a_change_of_narrower_hours_releases_those_who_wait(open_storage: OpenStorage) -> None:
    """At once, not when their hours would have come; the audit trail has the places with their sources."""
    clock = ShiftedClock(NOON_IN_NEW_YORK)
    workspace = {"contact_hours": True, "narrower_hours": [FLORIDA]}
    people = [NewRecipient(phone_number=MIAMI)]
    async with sending(open_storage(clock), people, clock=clock, workspace=workspace) as (rig, campaign):

        async def held() -> bool:
            return [one.due_at for one in await people_of(rig.engine, campaign)] == [ONE_IN_MIAMI]

        await until(held)
        assert rig.carrier.requests == []
        await rig.engine.workspaces.update(campaign.workspace_id, WorkspaceUpdate(narrower_hours=()))
        await rig.carrier.wait_for_requests(1)
        await rig.engine.workspaces.update(campaign.workspace_id, WorkspaceUpdate(narrower_hours=[FLORIDA]))
        entries = (await rig.engine.audit.list(campaign.workspace_id)).items
        details = [entry.detail for entry in entries if entry.action == "workspace.update"]
        assert details == ["narrower_hours=US-FL (Fla. Stat. 501.616(6)(a))", "narrower_hours="]


@pytest.mark.parametrize("place", ["QQ", "US-QQ", "US-ON"])
async def test_hours_of_a_place_that_there_is_not_are_refused(engine: Outreach, place: str) -> None:
    """Nobody would ever be in it."""
    workspace = await given_workspace(engine)
    with pytest.raises(InvalidRequest) as refused:
        await engine.workspaces.update(
            workspace.id, WorkspaceUpdate(narrower_hours=[FLORIDA, attrs.evolve(FLORIDA, place=place)])
        )
    assert [detail.path for detail in refused.value.details] == ["narrower_hours[1].place"]
    assert (await engine.workspaces.get(workspace.id)).narrower_hours == ()


async def test_a_new_contact_keeps_its_zone_and_its_place_alone(engine: Outreach, workspace: Workspace) -> None:
    """Of a ZIP code the three digits that tell a place; a clone has the same."""
    people = [
        NewRecipient(phone_number=ANN, time_zone="America/Denver"),
        {"phone_number": BEN, "zip_code": "33101-1234", "state": "NY"},
        NewRecipient(phone_number=CAT, state="Idaho"),
        NewRecipient(phone_number="+525512345678", zip_code="33101"),
    ]
    campaign = await given_campaign(engine, workspace, people)  # type: ignore[arg-type]
    clone = (await engine.campaigns.clone(workspace.id, campaign.id)).campaign
    for one in (campaign, clone):
        found = [person async for person in engine.campaigns.iter_recipients(workspace.id, one.id)]
        assert [(person.time_zone, person.us_place) for person in found] == [
            ("America/Denver", None),
            (None, "331"),
            (None, "ID"),
            (None, None),
        ]


@pytest.mark.parametrize("wrong", ["", "Eastern", "america/denver", "x" * 70, 7, "EST"])
async def test_a_zone_that_there_is_not_is_refused(engine: Outreach, workspace: Workspace, wrong: Any) -> None:
    """By its place; no number's zone takes its place in silence."""
    with pytest.raises(InvalidRequest) as raised:
        await given_campaign(
            engine, workspace, [NewRecipient(phone_number=ANN), NewRecipient(phone_number=BEN, time_zone=wrong)]
        )
    assert [detail.path for detail in raised.value.details] == ["recipients[1].time_zone"]


@pytest.mark.parametrize(
    ("written", "meant"), [("EST", "America/New_York"), ("MST", "America/Denver"), ("GMT", "Europe/London")]
)
async def test_a_contact_has_no_zone_without_the_summer_time_of_its_place(
    engine: Outreach, workspace: Workspace, written: str, meant: str
) -> None:
    """In summer it would be contacted an hour too late; `UTC` is nobody's abbreviation of a place."""
    with pytest.raises(InvalidRequest, match=f"has no summer time.*did you mean {meant}"):
        await given_campaign(engine, workspace, [NewRecipient(phone_number=ANN, time_zone=written)])
    await given_campaign(engine, workspace, [NewRecipient(phone_number=ANN, time_zone="UTC")])


async def test_the_same_key_with_other_zones_is_refused(engine: Outreach, workspace: Workspace) -> None:
    """Where a contact is belongs to what it is."""

    async def create(**place: Any) -> str:
        people = [NewRecipient(phone_number=ANN, **place)]
        new = NewSmsCampaign(name="C", body="Hi")
        return (await engine.campaigns.create_sms(workspace.id, new, people, idempotency_key="order-42")).campaign.id

    assert await create(state="FL") == await create(state="FL")
    for place in ({}, {"time_zone": "America/Denver"}, {"state": "NY"}, {"zip_code": "33101"}):
        with pytest.raises(InvalidRequest, match="other contacts"):
            await create(**place)


def test_a_body_of_the_interface_has_the_zone_alone() -> None:
    """Both readers of bodies keep it; a ZIP code and a state there are unknown fields, which are ignored."""
    person = b'{"phone_number":"+12125552368","time_zone":"America/Denver","state":7,"zip_code":"33101"}'
    body = b'{"name":"C","message_body":"Hi","recipients":[' + person + b"]}"
    _, [found] = read_sms_campaign(parse_json(body), this_year=2026)
    assert (found.time_zone, found.zip_code, found.state) == ("America/Denver", None, None)
    quickly = read_simple_body(body)
    assert quickly is not None
    [[prepared]] = quickly.chunks(None, size=10)
    assert prepared == prepare_recipient(found, None)
    for wrong in (b'"Eastern"', b'"EST"', b"7", b'""'):
        assert read_simple_body(body.replace(b'"America/Denver"', wrong)) is None
        with pytest.raises(InvalidRequest) as refused:
            read_sms_campaign(parse_json(body.replace(b'"America/Denver"', wrong)), this_year=2026)
        assert [detail.path for detail in refused.value.details] == ["recipients[0].time_zone"]
