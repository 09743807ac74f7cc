"""The report of a campaign, from one snapshot of its ledger."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Final

import attrs
import orjson

from outreach.core.clock import is_zone
from outreach.ledger.campaigns.failures import explained_failure, is_failure, leaves_acceptance_open
from outreach.ledger.campaigns.results import results_of
from outreach.models.campaign import Campaign
from outreach.models.campaign_report import (
    CallFigures,
    CampaignReport,
    FailureCount,
    MessageFigures,
    ResultCount,
    SenderFigures,
    TimeBucket,
)
from outreach.models.dispatch import DispatchCount
from outreach.models.prices import Cost, PriceKind, PriceTable, ProviderCost
from outreach.models.states import ENDED_CALL_STATUSES, DispatchState, MessageStatus, RecipientStatus
from outreach.rules.explanations import describe_reason
from outreach.rules.number_zones import country_of_phone
from outreach.rules.report_figures import bounds, cost_of, depends_on_country
from outreach.serialization.json_reports import read_campaign_report
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables.reports import AcceptedRow, CallRow, RequestRow

REPLY_WINDOW: Final = timedelta(days=30)
"""How long after a campaign's end a reply still belongs to it."""

_MAX_FAILURES: Final = 1000
_ISO_COUNTRY: Final = re.compile("[A-Z]{2}")
_UNCERTAIN: Final = frozenset({DispatchState.UNKNOWN, DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP})
_NOT_SENT: Final = frozenset({DispatchState.NOT_SENT, DispatchState.WITHDRAWN, DispatchState.DEFERRED})


def report_of(tx: Transaction, campaign: Campaign, now: datetime) -> CampaignReport:
    """Return the report of a campaign; one that is erased or in a ledger archive was reported before."""
    figures = tx.erasures.figures(campaign.workspace_id, campaign.id) if campaign.erased_at is not None else None
    if figures is None and campaign.is_terminal:
        place = tx.archives.of_campaign(campaign.workspace_id, campaign.id)
        figures = place.figures if place is not None and place.is_read_there else None
    if figures is None:
        return make_report(tx, campaign, now)
    return attrs.evolve(read_campaign_report(orjson.loads(figures)), name=campaign.name, erased_at=campaign.erased_at)


def make_report(tx: Transaction, campaign: Campaign, now: datetime) -> CampaignReport:
    """Return the report of a campaign."""
    workspace_id, campaign_id = campaign.workspace_id, campaign.id
    results, contacted = _results(tx, campaign)
    messages = calls = None
    failures: Sequence[FailureCount]
    table = tx.price_tables.get(workspace_id)
    by_country = depends_on_country(table, campaign.channel)
    quantities: list[_Quantity]
    if campaign.channel == "sms":
        plain = tx.reports.accepted_messages(workspace_id, campaign_id, by_country=by_country)
        others = tx.reports.other_messages(workspace_id, campaign_id, by_country=by_country)
        messages = _messages(plain, others)
        failures = _failures((row, row.requests) for row in others)
        quantities = [(row.provider, row.place, row.segments) for row in plain]
        accepted = (row for row in others if row.state is DispatchState.ACCEPTED)
        quantities += ((row.provider, row.place, row.segments) for row in accepted)
    else:
        rows = tx.reports.calls(workspace_id, campaign_id, by_country=by_country)
        quantities = [(row.provider, row.place, row.minutes) for row in rows]
        calls = _calls(rows)
        # Why a placed call failed stands in its record.
        failures = _failures((group, group.count) for group in tx.dispatches.groups(workspace_id, campaign_id))
    if messages is not None:
        results = [_with_receipts(one, messages) for one in results]
    requested = tx.reports.first_and_last_request(workspace_id, campaign_id)
    replies: Sequence[tuple[datetime, str]] = ()
    opt_outs: Sequence[datetime] = ()
    window = event_window(tx, campaign, now)
    if window is not None:
        replies = tx.reports.replies(workspace_id, campaign_id, *window)
        opt_outs = tx.reports.opt_outs(workspace_id, campaign_id, *window)
    timezone = campaign.timezone if is_zone(campaign.timezone) else "UTC"
    return CampaignReport(
        campaign_id=campaign_id,
        workspace_id=workspace_id,
        name=campaign.name,
        channel=campaign.channel,
        status=campaign.status,
        created_at=campaign.created_at,
        started_at=campaign.started_at,
        completed_at=campaign.completed_at,
        at=now,
        contacts=campaign.counters.total,
        contacted=contacted,
        successful=campaign.counters.successful,
        failed=campaign.counters.failed,
        still_open=campaign.counters.open,
        results=tuple(results),
        messages=messages,
        calls=calls,
        senders=_senders(tx, campaign, window),
        failures=failures,
        replies=len(replies),
        repliers=len({phone for _, phone in replies}),
        opt_outs=len(opt_outs),
        timezone=timezone,
        cost=None if table is None else _cost(table, campaign.channel, quantities, by_country=by_country),
        over_time=_over_time(tx, campaign, requested, [at for at, _ in replies], opt_outs, timezone),
    )


def _senders(tx: Transaction, campaign: Campaign, window: tuple[datetime, datetime] | None) -> Sequence[SenderFigures]:
    """Return the messages of a campaign with a sender pool by number."""
    if not campaign.from_numbers or window is None:
        return ()
    place = (campaign.workspace_id, campaign.id)
    opt_outs = tx.reports.opt_outs_by_sender(*place, *window)
    return tuple(attrs.evolve(one, opt_outs=opt_outs.get(one.from_number, 0)) for one in tx.reports.by_sender(*place))


def event_window(tx: Transaction, campaign: Campaign, now: datetime) -> tuple[datetime, datetime] | None:
    """Return from when until before when replies and opt-outs belong to a campaign; None before its first request."""
    requested = tx.reports.first_and_last_request(campaign.workspace_id, campaign.id)
    if requested is None:
        return None
    until = now if campaign.completed_at is None else min(now, campaign.completed_at + REPLY_WINDOW)
    # The moment itself counts.
    return requested[0], until + timedelta(microseconds=1)


def _results(tx: Transaction, campaign: Campaign) -> tuple[Sequence[ResultCount], int]:
    """Return the contacts by result, and how many were contacted."""
    rows = results_of(tx, campaign)
    found = [
        ResultCount(
            status=row.status,
            reason=row.reason,
            meaning=describe_reason(row.status, row.reason, campaign.channel, campaign=campaign.status),
            contacts=row.contacts,
        )
        for row in rows
    ]
    found.sort(key=lambda one: (-one.contacts, one.status, one.reason or ""))
    return found, sum(row.contacted for row in rows)


def _with_receipts(result: ResultCount, messages: MessageFigures) -> ResultCount:
    """Return a result in words that agree with what the carrier has confirmed."""
    if (result.status, result.reason) != (RecipientStatus.COMPLETED, None) or not messages.delivered:
        return result
    meaning = "sent, and some of it not yet confirmed" if messages.unreported else "sent and confirmed"
    return attrs.evolve(result, meaning=meaning)


def _messages(plain: Sequence[AcceptedRow], others: Sequence[RequestRow]) -> MessageFigures:
    def count(rows: Iterable[AcceptedRow | RequestRow]) -> int:
        return sum(row.requests for row in rows)

    accepted = [row for row in others if row.state is DispatchState.ACCEPTED]
    delivered = sum(row.delivered for row in plain)
    delivered += count(row for row in accepted if row.report is MessageStatus.DELIVERED)
    failed = {MessageStatus.FAILED, MessageStatus.CANCELED}
    undelivered = sum(row.undelivered for row in plain) + count(row for row in accepted if row.report in failed)
    all_accepted = count(plain) + count(accepted)
    return MessageFigures(
        requests=count(plain) + count(others),
        accepted=all_accepted,
        delivered=delivered,
        undelivered=undelivered,
        unreported=all_accepted - delivered - undelivered,
        refused=count(row for row in others if row.state is DispatchState.REFUSED),
        uncertain=count(row for row in others if row.state in _UNCERTAIN),
        not_sent=count(row for row in others if row.state in _NOT_SENT),
        in_flight=count(row for row in others if row.state is DispatchState.DISPATCHING),
        segments=sum(row.segments for row in plain) + sum(row.segments for row in accepted),
    )


def _calls(rows: Sequence[CallRow]) -> CallFigures:
    outcomes: Counter[str] = Counter()
    for row in rows:
        if row.status in ENDED_CALL_STATUSES:
            outcomes[row.outcome or "unknown"] += row.calls
    return CallFigures(
        calls=sum(row.calls for row in rows),
        answered=sum(row.answered for row in rows),
        open=sum(row.calls for row in rows if row.status not in ENDED_CALL_STATUSES),
        outcomes=dict(sorted(outcomes.items(), key=lambda item: (-item[1], item[0]))),
        milliseconds=sum(row.milliseconds for row in rows),
        begun_minutes=sum(row.minutes for row in rows),
        provider_costs=_provider_costs(rows),
    )


def _provider_costs(rows: Sequence[CallRow]) -> Sequence[ProviderCost]:
    amounts: dict[str, Decimal] = {}
    calls: Counter[str] = Counter()
    for row in rows:
        if row.currency is not None and row.cost is not None:
            amounts[row.currency] = amounts.get(row.currency, Decimal()) + row.cost
            calls[row.currency] += row.priced
    return tuple(ProviderCost(currency=one, amount=amounts[one], calls=calls[one]) for one in sorted(amounts))


_Quantity = tuple[str, str | None, int]
"""A provider, a number that stands for all or its country, if taken by country, and segments or begun minutes."""


def _cost(table: PriceTable, kind: PriceKind, quantities: Iterable[_Quantity], *, by_country: bool) -> Cost:
    """Return what was sent at the workspace's prices of now."""
    found: Counter[tuple[str | None, str | None]] = Counter()
    for provider, place, quantity in quantities:
        found[provider, _country(place) if by_country and place is not None else None] += quantity
    # A call that nobody answered has no minutes.
    return cost_of(table, kind, {place: quantity for place, quantity in found.items() if quantity})


def _country(place: str) -> str | None:
    return place if _ISO_COUNTRY.fullmatch(place) else country_of_phone(place)


def _failures(rows: Iterable[tuple[RequestRow | DispatchCount, int]]) -> Sequence[FailureCount]:
    """Return the requests that failed by cause, given with how many they are."""
    found: Counter[tuple[str, str | None, str | None, bool]] = Counter()
    words: dict[tuple[str, str | None, str | None, bool], str | None] = {}
    for row, requests in rows:
        if is_failure(row):
            key = (row.provider, row.reason, row.error_code, leaves_acceptance_open(row.state, row.reason))
            found[key] += requests
            words[key] = words.get(key) or row.error_message
    counted = [
        FailureCount(failure=explained_failure(*key, words[key]), requests=requests)
        for key, requests in found.most_common()
    ]
    return tuple(counted[:_MAX_FAILURES])


def _over_time(
    tx: Transaction,
    campaign: Campaign,
    requested: tuple[datetime, datetime] | None,
    replies: Sequence[datetime],
    opt_outs: Sequence[datetime],
    timezone: str,
) -> Sequence[TimeBucket]:
    if requested is None:
        return ()
    first, last = requested[0], max([requested[1], *replies[-1:], *opt_outs[-1:]])
    steps = bounds(first, last, timezone)
    requests = tx.reports.requests_between(campaign.workspace_id, campaign.id, steps)
    replied, left = (Counter(bisect_right(steps, at) - 1 for at in moments) for moments in (replies, opt_outs))
    return tuple(
        TimeBucket(since=since, until=until, requests=requests[index], replies=replied[index], opt_outs=left[index])
        for index, (since, until) in enumerate(pairwise(steps))
    )
