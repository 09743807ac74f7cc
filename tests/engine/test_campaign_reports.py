from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs
import pytest

from outreach import Outreach
from outreach.http import write_campaign_report
from outreach.models.base import Channel
from outreach.models.campaign import Campaign, Counters
from outreach.models.campaign_report import ExportedContact
from outreach.models.prices import Price, PriceTable, ProviderCost
from outreach.models.states import CampaignStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.rules.number_zones import country_of_phone
from outreach.rules.report_figures import MAX_STEPS, bounds, find_price
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_campaign, make_dispatch, make_inbound, make_prepared, make_unsubscribe
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, pending, publish
from tests.engine.all_endings import given_endings
from tests.engine.conftest import OpenStorage, given_workspaces

pytestmark = pytest.mark.virtual_time

HOUR = timedelta(hours=1)


@pytest.fixture
def storage(open_storage: OpenStorage, clock: ManualClock) -> Storage:
    """Return a database that the engine opens."""
    return open_storage(clock)


@pytest.fixture
async def reading(storage: Storage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine on a database of two workspaces, some days after everything happened."""
    clock.advance(timedelta(days=3).total_seconds())
    async with Outreach(storage, clock=clock) as engine:
        await given_workspaces(storage)
        yield engine


async def exported(engine: Outreach, campaign: Campaign) -> list[ExportedContact]:
    """Return all contacts of a campaign, as an export has them."""
    return [one async for one in engine.campaigns.iter_export(THIS_WORKSPACE, campaign.id)]


@pytest.mark.parametrize("seed", range(4))
async def test_every_figure_of_a_report_is_that_of_a_recount_and_of_the_export(
    reading: Outreach, storage: Storage, seed: int
) -> None:
    """Report, ledger and export are counted in three ways, and say the same."""
    campaign = await given_endings(storage, seed)
    await given_endings(storage, seed + 100)
    report = await reading.campaigns.report(THIS_WORKSPACE, campaign.id)
    contacts = await exported(reading, campaign)
    recipients = [one async for one in reading.campaigns.iter_recipients(THIS_WORKSPACE, campaign.id)]
    assert [one.recipient for one in contacts] == recipients
    results = Counter((one.status, one.reason) for one in recipients)
    assert {(one.status, one.reason): one.contacts for one in report.results} == results
    assert [one.contacts for one in report.results] == sorted(results.values(), reverse=True)
    assert report.contacts == len(recipients)
    assert report.contacted == sum(one.dispatched for one in recipients)
    assert report.successful == sum(one.successful for one in recipients)
    assert report.failed == sum(one.status is RecipientStatus.FAILED for one in recipients)
    assert report.still_open == 0
    requests = [request for one in contacts for request in one.dispatches]
    states = Counter(request.state for request in requests)
    figures = report.messages
    assert figures is not None
    assert report.calls is None
    assert figures.requests == len(requests)
    assert figures.accepted == states[DispatchState.ACCEPTED]
    assert figures.accepted == figures.delivered + figures.undelivered + figures.unreported
    assert figures.delivered == sum(one.report is MessageStatus.DELIVERED for one in requests)
    assert figures.undelivered == sum(one.report is MessageStatus.FAILED for one in requests)
    assert figures.refused == states[DispatchState.REFUSED]
    assert figures.uncertain == states[DispatchState.UNCONFIRMED]
    assert figures.not_sent == states[DispatchState.DEFERRED]
    assert figures.in_flight == 0
    assert figures.segments == sum(one.segments for one in contacts)
    told = await reading.campaigns.provider_failures(THIS_WORKSPACE, campaign.id)
    causes: Counter[Any] = Counter()
    for failure, count in told:
        causes[failure.provider, failure.reason, failure.error_code] += count
    found = {
        (one.failure.provider, one.failure.reason, one.failure.error_code): one.requests for one in report.failures
    }
    assert found == causes
    assert all(one.failure.meaning for one in report.failures)
    assert report.replies == sum(len(one.replies) for one in contacts) > 0
    assert report.repliers == sum(bool(one.replies) for one in contacts)
    assert report.opt_outs == sum(one.opted_out_at is not None for one in contacts) > 0
    assert sum(step.requests for step in report.over_time) == len(requests)
    assert sum(step.replies for step in report.over_time) == report.replies
    assert sum(step.opt_outs for step in report.over_time) == report.opt_outs
    for step in report.over_time:
        assert step.requests == sum(step.since <= one.created_at < step.until for one in requests)


@pytest.mark.parametrize("seed", range(2))
async def test_a_report_of_calls_counts_outcomes_and_minutes(reading: Outreach, storage: Storage, seed: int) -> None:
    """Its calls, answered ones, outcomes and minutes are those of the call records, to the millisecond."""
    campaign = await given_endings(storage, seed, channel="call")
    report = await reading.campaigns.report(THIS_WORKSPACE, campaign.id)
    calls = [call for one in await exported(reading, campaign) for call in one.calls]
    figures = report.calls
    assert figures is not None
    assert report.messages is None
    assert figures.calls == len(calls) > 0
    assert figures.answered == sum(one.answered_at is not None for one in calls)
    assert figures.open == 0
    assert figures.outcomes == Counter(one.outcome for one in calls)
    lasted = [one.duration_ms or 0 for one in calls]
    assert figures.milliseconds == sum(lasted)
    assert any(one % 1000 for one in lasted)
    assert figures.seconds == round(sum(lasted) / 1000)
    assert figures.minutes == round(sum(lasted) / 60_000, 1)
    assert figures.begun_minutes == sum(math.ceil(one / 60_000) for one in lasted)
    costs = [one.cost for one in calls if one.cost is not None]
    assert figures.provider_costs == (ProviderCost(currency="USD", amount=sum(costs, Decimal()), calls=len(costs)),)
    assert costs
    assert {dispatch.leg for one in await exported(reading, campaign) for dispatch in one.dispatches} == {1, 2}


COUNTRIES = ("+1415555", "+1868620", "+4477003", "+4474001", "+770123", "+791612", "+9198123", "+88216")
"""Prefixes of numbers of the US, Trinidad, Jersey, the UK, Kazakhstan, Russia, India, and of no country."""


def phones_of_countries(position: int) -> Mapping[str, str]:
    """Give the contacts numbers of several countries."""
    phone = f"{COUNTRIES[position % len(COUNTRIES)]}{position:05d}"
    phone = f"{phone[:8]}{position:04d}" if phone.startswith("+1") else phone
    return {"phone": phone, "phone_number": phone}


@pytest.mark.parametrize(
    "prices",
    [
        ("sms", "call"),
        ("sms//US", "sms//JE", "sms/twilio/GB", "sms/telnyx", "sms//KZ", "call//US", "call//TT", "call//RU"),
        ("sms/twilio", "call/vapi"),
    ],
    ids=["general", "by country", "by provider"],
)
@pytest.mark.parametrize("channel", ["sms", "call"])
async def test_the_cost_is_that_of_a_recount(
    reading: Outreach, storage: Storage, channel: Channel, prices: Sequence[str]
) -> None:
    """Each accepted segment and each begun minute has the price of its provider and its number's country.

    It stays the same when people are purged.
    """
    campaign = await given_endings(storage, 11, channel=channel, count=80, phones=phones_of_countries)
    assert (await reading.campaigns.report(THIS_WORKSPACE, campaign.id)).cost is None
    listed = []
    for number, written in enumerate(prices, start=1):
        kind, provider, country = (*written.split("/"), "", "")[:3]
        place = {"provider": provider or None, "country": country or None}
        listed.append(Price(kind="sms" if kind == "sms" else "call", amount=Decimal(number * 83) / 10_000, **place))
    table = PriceTable(currency="EUR", prices=tuple(listed))
    await reading.prices.update(THIS_WORKSPACE, table)
    amount, unpriced, quantity = Decimal(), 0, 0
    for contact in await exported(reading, campaign):
        accepted = [one for one in contact.dispatches if one.state is DispatchState.ACCEPTED]
        used = [
            *((one.provider, one.to, one.segments) for one in accepted if one.segments),
            *((one.provider, one.to, math.ceil((one.duration_ms or 0) / 60_000)) for one in contact.calls),
        ]
        for provider, to, count in used:
            price = find_price(table, channel, provider, country_of_phone(to))
            quantity += count
            unpriced += count if price is None else 0
            amount += price * count if price is not None else 0
    cost = (await reading.campaigns.report(THIS_WORKSPACE, campaign.id)).cost
    assert cost is not None
    assert (cost.amount, cost.unpriced, cost.currency) == (amount, unpriced, "EUR")
    assert sum(line.quantity for line in cost.lines) == quantity > 0
    if len(prices) > 2:
        assert {"US", "TT", "JE", "GB", "KZ", "RU", "IN", None} == {line.country for line in cost.lines}
    for position in range(0, 80, 3):
        await reading.erasure.purge(THIS_WORKSPACE, phones_of_countries(position)["phone"])
    assert (await reading.campaigns.report(THIS_WORKSPACE, campaign.id)).cost == cost


async def test_a_reply_belongs_to_the_campaign_that_wrote_last(reading: Outreach, storage: Storage) -> None:
    """A number of two campaigns is counted once; what came before the first request, or from elsewhere, is not."""
    contact = make_prepared()
    first, second = make_campaign(started_at=NOW), make_campaign(started_at=NOW)

    def write(tx: Transaction) -> None:
        for campaign, at in ((first, NOW), (second, NOW + 2 * HOUR)):
            publish(tx, campaign, pending(contact))
            place = {"campaign_id": campaign.id, "position": 0, "to": contact.phone, "created_at": at}
            tx.dispatches.insert(make_dispatch(**place, state=DispatchState.ACCEPTED))
        for at in (NOW - HOUR, NOW + HOUR, NOW + 3 * HOUR, NOW + 4 * HOUR):
            tx.inbound.insert(make_inbound(from_number=contact.phone, received_at=at))
        tx.inbound.insert(make_inbound(received_at=NOW + HOUR))
        # An entry that an operator made is nobody's answer.
        tx.register.put(make_unsubscribe(phone=contact.phone, source="operator", created_at=NOW + HOUR))

    await storage.write(write)
    reports = [await reading.campaigns.report(THIS_WORKSPACE, one.id) for one in (first, second)]
    assert [(one.replies, one.repliers, one.opt_outs) for one in reports] == [(1, 1, 0), (2, 1, 0)]


async def test_a_reply_long_after_the_end_belongs_to_no_campaign(
    storage: Storage, clock: ManualClock, reading: Outreach
) -> None:
    """docs/reports.md: until 30 days after the end."""
    campaign = await given_endings(storage, 1)
    before = (await reading.campaigns.report(THIS_WORKSPACE, campaign.id)).replies
    phone = next(one.recipient.phone for one in await exported(reading, campaign) if one.dispatches)
    end = campaign.completed_at or NOW
    for at in (end + timedelta(days=30), end + timedelta(days=30, seconds=1)):
        late = make_inbound(from_number=phone, received_at=at)
        await storage.write(lambda tx, late=late: tx.inbound.insert(late))  # type: ignore[misc]
    clock.advance(timedelta(days=60).total_seconds())
    assert (await reading.campaigns.report(THIS_WORKSPACE, campaign.id)).replies == before + 1


async def test_a_campaign_that_has_not_started_has_a_report(reading: Outreach, storage: Storage) -> None:
    """Its contacts are pending, and nothing has been sent."""
    campaign = make_campaign()
    await storage.write(lambda tx: publish(tx, campaign, pending(make_prepared(), make_prepared())))
    report = await reading.campaigns.report(THIS_WORKSPACE, campaign.id)
    assert [(one.status, one.contacts) for one in report.results] == [(RecipientStatus.PENDING, 2)]
    assert (report.contacted, report.still_open, report.over_time) == (0, 2, ())
    written = write_campaign_report(report)
    assert written["messages"]["requests"] == 0
    assert written["cost"] is None


@pytest.mark.parametrize(
    ("reports", "meaning"),
    [
        ((None, MessageStatus.SENT), "sent, not yet confirmed"),
        ((MessageStatus.DELIVERED, None), "sent, and some of it not yet confirmed"),
        ((MessageStatus.DELIVERED, MessageStatus.DELIVERED), "sent and confirmed"),
    ],
)
async def test_a_report_says_of_the_completed_what_the_carrier_has_confirmed(
    reading: Outreach, storage: Storage, reports: Sequence[MessageStatus | None], meaning: str
) -> None:
    """Its words do not contradict its figures of messages."""
    campaign = make_campaign(status=CampaignStatus.COMPLETED, started_at=NOW, completed_at=NOW)

    def write(tx: Transaction) -> None:
        publish(tx, campaign, pending(*(make_prepared() for _ in reports)))
        for position, report in enumerate(reports):
            recipient = tx.recipients.get(THIS_WORKSPACE, campaign.id, position)
            assert recipient is not None
            done = attrs.evolve(recipient, status=RecipientStatus.COMPLETED, dispatched=True, successful=True)
            tx.recipients.put(THIS_WORKSPACE, done)
            place: dict[str, Any] = {"campaign_id": campaign.id, "position": position}
            tx.dispatches.insert(make_dispatch(**place, state=DispatchState.ACCEPTED, report=report))
        ended = len(reports)
        change = Counters(pending=-ended, completed=ended, successful=ended, open=-ended)
        tx.campaigns.add_counters(THIS_WORKSPACE, campaign.id, change)

    await storage.write(write)
    [result] = (await reading.campaigns.report(THIS_WORKSPACE, campaign.id)).results
    assert (result.status, result.contacts, result.meaning) == (RecipientStatus.COMPLETED, 2, meaning)


@pytest.mark.parametrize("days", [0, 1, 3, 4, 30, 119, 121, 900, 5000, 60_000])
def test_the_steps_of_a_chart_hold_everything_and_are_few(days: int) -> None:
    """Whole hours, or whole days from midnight of the zone, over changes to and from summer time."""
    first = datetime(2026, 3, 7, 13, 45, tzinfo=UTC)
    last = first + timedelta(days=days)
    steps = bounds(first, last, "America/New_York")
    assert steps[0] <= first
    assert steps[-1] > last
    assert len(steps) - 1 <= MAX_STEPS
    assert list(steps) == sorted(set(steps))
    if days <= 3:
        assert {later - earlier for earlier, later in itertools.pairwise(steps)} == {HOUR}


def test_days_begin_at_midnight_of_the_zone() -> None:
    """A day on which the clocks change has 23 hours."""
    steps = bounds(datetime(2026, 3, 7, 13, tzinfo=UTC), datetime(2026, 3, 12, 1, tzinfo=UTC), "America/New_York")
    assert [f"{step:%d %H}" for step in steps] == ["07 05", "08 05", "09 04", "10 04", "11 04", "12 04"]
