"""The forecast: when a campaign will be done, before it starts and while it runs."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from statistics import fmean
from typing import Final

import anyio.lowlevel
import attrs
import orjson
from anyio import to_thread

from outreach.core.clock import parse_timestamp
from outreach.errors import InvalidRequest, Problem
from outreach.ledger.campaigns.recipients import steps_of
from outreach.ledger.campaigns.transitions import (
    find_text_warnings,
    missing_setup,
    start_warnings,
    unknown_placeholders,
)
from outreach.ledger.common import call_settings_of, campaign_of, provider_of, settings_of, workspace_of
from outreach.ledger.provider_throttles import left_out, throttle_of_campaign
from outreach.ledger.sending.intents import frequency_capped_until, sender_paces
from outreach.models.call import Call
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.forecast import Forecast, ForecastAssumptions, KeptForecast
from outreach.models.plans import DecisionBasis, SenderPaces, WavePlan
from outreach.models.prices import PriceTable
from outreach.models.settings import CallSettings
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.models.text_warning import TextWarning
from outreach.rules.contact_places import place_of
from outreach.rules.deciding import HOLDING_RULES, LocalRules, Restriction
from outreach.rules.forecast import Course, OpenCampaign, OpenContact, SenderRate, play
from outreach.rules.opening import opening_state
from outreach.rules.preflight import judge, messages_of
from outreach.rules.settlement import RETRYABLE_OUTCOMES, TRANSIENT_FAILURES
from outreach.services.context import ServiceContext, check_kind
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables.recipients import StoredContact

_MAX_READ: Final = 10_000
"""A campaign with more contacts is judged by this many of them, from all over the list."""

_MAX_PLAYED: Final = 20_000
"""Of more contacts, each that is played through stands for several."""

_MAX_INLINE: Final = 500
"""More contacts are played through in a thread."""

_MAX_OTHERS: Final = 20
"""Campaigns with whom turns at a sending number are played through."""

_MAX_MEASURED: Final = 500
_MIN_MEASURED: Final = 20
"""With fewer outcomes of its own, a campaign is forecast by the assumptions."""


@attrs.frozen(kw_only=True)
class _Known:
    """The data of a campaign in the database, without its contacts."""

    setup: Setup
    starts_at: datetime
    next_slot_at: datetime | None
    senders: SenderPaces
    others: Sequence[Campaign]

    @property
    def rates(self) -> Mapping[str, SenderRate]:
        """The rates of its numbers, by their keys."""
        found = (pace for pace in self.senders.values() if pace is not None)
        return {one.key: SenderRate(spacing=one.spacing, next_slot_at=one.next_slot_at) for one in found}


class NewForecast:
    """The forecast of a campaign that is not created, from its contacts as they are read."""

    def __init__(self, left: _Left, play_through: Callable[[OpenCampaign, int], Awaitable[Forecast]]) -> None:
        self._left = left
        self._play_through = play_through
        self._weight = 1

    def see(self, found: ContactSlice) -> None:
        """Count contacts that the creation would load; of a long list each that is kept stands for several."""
        left = self._left
        seen = left.open
        # Every contact whose place is a multiple of the weight.
        some = [one for place, one in enumerate(found.recipients, start=seen) if place % self._weight == 0]
        left.see(attrs.evolve(found, recipients=some))
        left.open = seen + len(found.recipients)
        if len(left.contacts) > _MAX_PLAYED:
            left.contacts = left.contacts[::2]
            left.held //= 2
            self._weight *= 2

    async def forecast(self) -> Forecast:
        """Return the forecast."""
        left, weight = self._left, self._weight
        target = left.campaign(left.contacts, weight=weight, in_flight=0, held=left.held * weight)
        return attrs.evolve(await self._play_through(target, left.open), campaign_id=None)


SLICE: Final = 1000
"""Contacts looked at before other work runs."""


@attrs.frozen(kw_only=True)
class Setup:
    """A campaign with the rules that hold for it.

    Attributes:
        provider: Its carrier or voice provider, if it has one.
        prices: The workspace's prices, if any.
    """

    plan: WavePlan
    calls: CallSettings
    provider: str | None
    prices: PriceTable | None
    unknown: tuple[str, ...]
    text_warnings: tuple[TextWarning, ...]
    missing: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def read_setup(tx: Transaction, campaign: Campaign) -> Setup:
    """Return a campaign with the rules that hold for it."""
    workspace = workspace_of(tx, campaign.workspace_id)
    agent = tx.agents.get(workspace.id, campaign.agent_id) if campaign.agent_id else None
    plan = WavePlan(
        campaign=campaign,
        workspace=workspace,
        settings=settings_of(tx, workspace.id),
        basis=DecisionBasis(campaign=campaign.revision, workspace=workspace.revision, settings=0),
        due=(),
        next_due=None,
        next_slot_at=None,
        agent=agent,
        trunk=None,
        in_flight=0,
        steps=steps_of(tx, campaign) if campaign.channel == "sms" else None,
    )
    return Setup(
        plan=plan,
        calls=call_settings_of(tx, workspace.id),
        provider=provider_of(tx, campaign),
        prices=tx.price_tables.get(workspace.id),
        unknown=unknown_placeholders(tx, campaign),
        text_warnings=find_text_warnings(tx, campaign),
        missing=missing_setup(tx, campaign),
        warnings=start_warnings(tx, campaign),
    )


def turn_of(campaign: Campaign, now: datetime) -> datetime:
    """Return when the first contact of a campaign has its turn: at its start, or the first opening after it."""
    return opening_state(campaign, start_of(campaign, now)).reopens_at


def start_of(campaign: Campaign, now: datetime) -> datetime:
    """Return when a campaign begins that is started or resumed now: at its start, if that lies ahead."""
    start = campaign.scheduled_start_at if campaign.schedule_type == "scheduled" else None
    # Also one that was paused before its start: when it is resumed it is scheduled again.
    return now if start is None or campaign.is_terminal else max(now, start)


@attrs.frozen(kw_only=True)
class ContactSlice:
    """Some contacts with their data in the database."""

    recipients: Sequence[Recipient]
    restrictions: Mapping[str, Restriction]
    capped_until: Mapping[int, datetime]
    unreachable: AbstractSet[str]


def read_slice(tx: Transaction, setup: Setup, after: int, at: datetime) -> ContactSlice:
    """Return the next 1000 contacts of a campaign after a position, with what holds for them at a time."""
    campaign = setup.plan.campaign
    stored = tx.recipients.contacts(campaign.workspace_id, campaign.id, after=after, limit=SLICE)
    return with_limits(tx, setup, [stored_recipient(campaign.id, one) for one in stored], at)


def with_limits(tx: Transaction, setup: Setup, rows: Sequence[Recipient], at: datetime) -> ContactSlice:
    """Return contacts with what holds for them at a time."""
    campaign, workspace = setup.plan.campaign, setup.plan.workspace
    phones = {one.phone for one in rows if one.phone is not None and one.is_open}
    capped: dict[int, datetime] = {}
    if workspace.frequency_cap is not None:
        for one in rows:
            until = frequency_capped_until(tx, workspace.id, one.phone, at) if one.phone is not None else None
            if until is not None:
                capped[one.position] = until
    restrictions = tx.register.read_restrictions(workspace.id, campaign.channel, phones)
    return ContactSlice(
        recipients=rows,
        restrictions=restrictions,
        capped_until=capped,
        unreachable=left_out(tx, workspace, campaign.channel, phones),
    )


_STATES: Final = {status.value: status for status in RecipientStatus}


def stored_recipient(campaign_id: str, stored: StoredContact) -> Recipient:
    """Return a stored contact as a recipient."""
    return Recipient(
        campaign_id=campaign_id,
        position=stored.position,
        phone_number=stored.phone_number,
        phone=stored.phone,
        first_name=stored.first_name,
        last_name=stored.last_name,
        email=stored.email,
        company=stored.company,
        custom_variables={} if stored.custom_variables is None else orjson.loads(stored.custom_variables),
        status=_STATES[stored.status],
        reason=stored.reason,
        due_at=None if stored.due_at is None else parse_timestamp(stored.due_at),
        step=stored.step,
        attempts=stored.attempts,
        dispatched=bool(stored.dispatched),
        time_zone=stored.time_zone,
        us_place=stored.us_place,
    )


class CampaignForecast:
    """Computes when campaigns will be done, by the rules that they run by."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def forecast(
        self, workspace_id: str, campaign_id: str, *, assumptions: ForecastAssumptions | None = None
    ) -> Forecast:
        """Return when a campaign will be done, hour by hour, and what limits it.

        It holds if nothing changes, and for a campaign that is paused, if it is resumed now. A campaign with more than
        10,000 contacts is judged by 10,000 of them.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign; of one that has started, what is left.
            assumptions: The assumptions about calls and messages; those that a running campaign has measured in its
                last 500 requests replace them. None for the defaults.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: An assumption is out of its bounds.
        """
        given = ForecastAssumptions() if assumptions is None else assumptions
        _check(given)
        context = self._context
        now = context.now()

        def look(tx: Transaction) -> tuple[_Known, ForecastAssumptions, tuple[str, ...]]:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            known = _read_known(tx, campaign, now)
            return known, *(_measure(tx, campaign, given) if campaign.started_at is not None else (given, ()))

        known, given, measured = await context.storage.read(look)
        campaign = known.setup.plan.campaign
        if campaign.is_terminal:
            return _ended(campaign, now, given, measured)
        target = await self._left(known, now)
        return await self._play(known, target, given, now, measured=measured, of_all=campaign.counters.total)

    async def left(self, workspace_id: str, campaign_id: str) -> tuple[OpenCampaign, bool]:
        """Return what is left of a campaign, and whether it is judged by a sample of its contacts.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        now = self._context.now()
        known = await self._context.storage.read(
            lambda tx: _read_known(tx, campaign_of(tx, workspace_id, campaign_id), now)
        )
        target = await self._left(known, now)
        return target, target.campaign.counters.total > _MAX_READ

    async def begin_new(self, setup: Setup, assumptions: ForecastAssumptions) -> NewForecast:
        """Begin the forecast of a campaign that is not created.

        Raises:
            InvalidRequest: An assumption is out of its bounds.
        """
        _check(assumptions)
        now, campaign = self._context.now(), setup.plan.campaign
        known = await self._context.storage.read(lambda tx: _known(tx, setup, campaign, now))
        left = _Left(setup, known, turn_of(campaign, now))
        return NewForecast(left, lambda target, count: self._play(known, target, assumptions, now, of_all=count))

    async def _play(
        self,
        known: _Known,
        target: OpenCampaign,
        given: ForecastAssumptions,
        now: datetime,
        *,
        measured: tuple[str, ...] = (),
        of_all: int,
    ) -> Forecast:
        campaign = known.setup.plan.campaign
        others = [await self._other(campaign.workspace_id, one, now) for one in known.others]
        course = await _played(target, others, known.rates, given, now)
        return Forecast(
            campaign_id=campaign.id,
            channel=campaign.channel,
            at=now,
            starts_at=course.starts_at,
            ends_at=course.ends_at,
            contacts=len(target.contacts) * target.weight + target.in_flight,
            requests=course.requests,
            unreached=course.unreached,
            held=target.held,
            expires=course.expires,
            hours=course.hours,
            phases=course.phases,
            shared_with=len(others),
            assumptions=given,
            measured=measured,
            sampled=of_all > _MAX_READ,
        )

    async def forecasts(self, workspace_id: str, campaign_id: str) -> Sequence[KeptForecast]:
        """Return the forecasts of a campaign as they were when it started and after each change, oldest first.

        A process that dispatches makes them, soon after: when the campaign becomes active, is changed, or is throttled
        for 5 seconds or more (at most one in 10 minutes for that). Of more than 50 the first and the latest are kept.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read(
            lambda tx: tx.forecasts.of_campaign(workspace_id, campaign_of(tx, workspace_id, campaign_id).id)
        )

    async def _other(self, workspace_id: str, campaign: Campaign, now: datetime) -> OpenCampaign:
        """Return what is left of a campaign that sends from the same number."""
        found = await self._context.storage.read(
            lambda tx: _read_known(tx, campaign_of(tx, workspace_id, campaign.id), now, alone=True)
        )
        return await self._left(found, now)

    async def _left(self, known: _Known, now: datetime) -> OpenCampaign:
        """Return what is left of a campaign, by all of its contacts or by many."""
        setup, campaign = known.setup, known.setup.plan.campaign
        total, at = campaign.counters.total, turn_of(campaign, now)
        left = _Left(setup, known, at)
        for after in _starts(total):
            left.see(
                await self._context.storage.read(
                    lambda tx, after=after: read_slice(tx, setup, after, at)  # type: ignore[misc]
                )
            )
            await anyio.lowlevel.checkpoint()
        in_flight, held, contacts = left.in_flight, left.held, left.contacts
        played, weight = contacts, 1
        if total > _MAX_READ and left.open:
            scale = campaign.counters.open / left.open
            in_flight, held = round(in_flight * scale), round(held * scale)
            share = len(contacts) * scale
            weight = max(math.ceil(share / _MAX_PLAYED), 1)
            count = round(share / weight)
            played = [contacts[number * len(contacts) // count] for number in range(count)] if contacts else []
        return left.campaign(played, weight=weight, in_flight=in_flight, held=held, next_slot_at=known.next_slot_at)


class _Left:
    """The open work of a campaign, from its contacts as they are read.

    Attributes:
        contacts: Those that wait for their turn or a time.
        open: How many have not ended.
        in_flight: How many of them have a request on its way.
        held: How many wait for a person's decision.
    """

    def __init__(self, setup: Setup, known: _Known, at: datetime) -> None:
        self._setup = setup
        self._starts_at = known.starts_at
        self._senders = tuple(None if pace is None else pace.key for pace in known.senders.values())
        self._at = at
        self._local = LocalRules(setup.plan.workspace)
        self._messages = messages_of(setup.plan)
        self._skipped_at: datetime | None = None
        self.contacts: list[OpenContact] = []
        self.open = self.in_flight = self.held = 0

    def see(self, found: ContactSlice) -> None:
        """Count contacts."""
        local, starts_at = self._local, self._starts_at
        plan = attrs.evolve(self._setup.plan, capped_until=found.capped_until, unreachable=found.unreachable)
        for one in found.recipients:
            if not one.is_open:
                continue
            self.open += 1
            if one.status not in {RecipientStatus.PENDING, RecipientStatus.WAITING}:
                self.in_flight += 1
                continue
            verdict = judge(plan, local, self._messages, one, found.restrictions.get(one.phone or ""), self._at)
            if verdict.outcome == "left_out" and verdict.rule != "expires_first":
                turn = max(one.due_at or starts_at, starts_at)
                self._skipped_at = turn if self._skipped_at is None else max(self._skipped_at, turn)
                continue
            rule = HOLDING_RULES.get(verdict.rule or "")
            if rule is not None and rule.released_by == "review":
                self.held += 1
                continue
            # The forecast follows local hours by itself.
            waits = rule is not None and rule.local_hours is None
            self.contacts.append(
                OpenContact(
                    place=place_of(one) if local.apply else None,
                    due_at=verdict.until if waits else one.due_at,
                    reason=verdict.rule if waits else one.reason,
                    step=one.step,
                    attempts=one.attempts,
                )
            )

    def campaign(
        self,
        played: Sequence[OpenContact],
        *,
        weight: int,
        in_flight: int,
        held: int,
        next_slot_at: datetime | None = None,
    ) -> OpenCampaign:
        """Return the campaign with the contacts that are played through."""
        setup, campaign = self._setup, self._setup.plan.campaign
        settings, calls = setup.plan.settings, setup.calls
        is_sms = campaign.channel == "sms"
        of_messages = settings.retry_max_attempts if settings.retry_enabled else 1
        return OpenCampaign(
            campaign=campaign,
            local=self._local,
            contacts=played,
            weight=weight,
            in_flight=in_flight,
            skipped_at=self._skipped_at,
            held=held,
            starts_at=self._starts_at,
            next_slot_at=next_slot_at,
            steps=tuple(setup.plan.steps) if setup.plan.steps is not None else None,
            max_attempts=of_messages if is_sms else calls.retry_max_attempts,
            retry_delay=timedelta(minutes=settings.retry_delay_minutes if is_sms else calls.retry_delay_minutes),
            senders=self._senders,
            frequency_cap=setup.plan.workspace.frequency_cap,
        )


async def _played(
    target: OpenCampaign,
    others: Sequence[OpenCampaign],
    rates: Mapping[str, SenderRate],
    assumed: ForecastAssumptions,
    now: datetime,
) -> Course:
    """Play a campaign through; many contacts in a thread, because that takes a second, in which this loop sends."""
    if sum(len(one.contacts) for one in (target, *others)) <= _MAX_INLINE:
        return play(target, others, rates, assumed, now)
    return await to_thread.run_sync(play, target, others, rates, assumed, now, abandon_on_cancel=True)


def _starts(total: int) -> Sequence[int]:
    """Return after which positions slices are read: all of them, or a sample spread over a long list."""
    if total <= _MAX_READ:
        return range(-1, max(total, 1) - 1, SLICE)
    slices = _MAX_READ // SLICE
    return [number * (total - SLICE) // (slices - 1) - 1 for number in range(slices)]


def _read_known(tx: Transaction, campaign: Campaign, now: datetime, *, alone: bool = False) -> _Known:
    return _known(tx, read_setup(tx, campaign), campaign, now, alone=alone)


def _known(tx: Transaction, setup: Setup, campaign: Campaign, now: datetime, *, alone: bool = False) -> _Known:
    starts_at = start_of(campaign, now)
    throttle = throttle_of_campaign(tx, campaign, now)
    if throttle is not None and throttle.until > starts_at:
        starts_at = throttle.until
    run = tx.runs.get(campaign.workspace_id, campaign.id) if campaign.status is CampaignStatus.ACTIVE else None
    senders = sender_paces(tx, campaign, now)
    phones = _phones(senders)
    others: list[Campaign] = []
    if phones and not alone:
        running = {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}
        others.extend(
            one
            for one in tx.campaigns.in_status(running, workspace_id=campaign.workspace_id)
            if one.id != campaign.id and not phones.isdisjoint(_phones(sender_paces(tx, one, now)))
        )
    return _Known(
        setup=setup,
        starts_at=starts_at,
        next_slot_at=run.next_slot_at if run is not None else None,
        senders=senders,
        others=others[:_MAX_OTHERS],
    )


def _phones(senders: SenderPaces) -> frozenset[str]:
    """Return those of a campaign's numbers that have a rate."""
    return frozenset(pace.phone for pace in senders.values() if pace is not None)


def _measure(
    tx: Transaction, campaign: Campaign, given: ForecastAssumptions
) -> tuple[ForecastAssumptions, tuple[str, ...]]:
    """Return the assumptions with a campaign's own figures in their place, and which they are."""
    since = campaign.started_at or campaign.created_at
    latest = tx.dispatches.recent(campaign.workspace_id, campaign.id, since=since, limit=_MAX_MEASURED)
    found: dict[str, float] = {}
    if campaign.channel == "sms":
        settled = [one for one in latest if one.state in {DispatchState.ACCEPTED, DispatchState.REFUSED}]
        if len(settled) >= _MIN_MEASURED:
            failed = [
                one
                for one in settled
                if one.reason in TRANSIENT_FAILURES
                and (one.state is DispatchState.REFUSED or one.report is MessageStatus.FAILED)
            ]
            found["failure_rate"] = len(failed) / len(settled)
    else:
        calls = [(one, tx.calls.get(campaign.workspace_id, one.call_id)) for one in latest if one.call_id is not None]
        ended = [
            (dispatch, one)
            for dispatch, one in calls
            if one is not None and one.ended_at is not None and one.status is not CallStatus.CANCELED
        ]
        if len(ended) >= _MIN_MEASURED:
            answered: list[Call] = []
            again: list[Call] = []
            for dispatch, one in ended:
                repeats = one.outcome in RETRYABLE_OUTCOMES and not _got_message(tx, campaign, dispatch, one)
                (again if repeats else answered).append(one)
            found["answer_rate"] = len(answered) / len(ended)
            for name, some in (("call_seconds", answered), ("ring_seconds", again)):
                if some:
                    lasted = ((one.ended_at or one.created_at) - one.created_at for one in some)
                    found[name] = max(fmean(each.total_seconds() for each in lasted), 0.0)
    return attrs.evolve(given, **found), tuple(found)


def _got_message(tx: Transaction, campaign: Campaign, dispatch: Dispatch, call: Call) -> bool:
    """Return whether a call ended its contact because a voicemail got the agent's message."""
    if call.outcome != "voicemail" or campaign.retry_voicemail or dispatch.position is None:
        return False
    found = tx.recipients.get(campaign.workspace_id, campaign.id, dispatch.position)
    return (
        found is not None
        and (found.status, found.reason) == (RecipientStatus.COMPLETED, "voicemail")
        and found.attempts == dispatch.attempt
    )


def _ended(campaign: Campaign, now: datetime, given: ForecastAssumptions, measured: tuple[str, ...]) -> Forecast:
    return Forecast(
        campaign_id=campaign.id,
        channel=campaign.channel,
        at=now,
        starts_at=None,
        ends_at=campaign.completed_at,
        contacts=0,
        requests=0,
        unreached=0,
        held=0,
        expires=campaign.status is CampaignStatus.EXPIRED,
        hours=(),
        phases=(),
        shared_with=0,
        assumptions=given,
        measured=measured,
        sampled=False,
    )


def _check(given: ForecastAssumptions) -> None:
    check_kind("assumptions", given, ForecastAssumptions)
    details = []
    for field in attrs.fields(ForecastAssumptions):
        value: object = getattr(given, field.name)
        most = 1.0 if field.name.endswith("_rate") else 86_400.0
        right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
        if not right:
            details.append(Problem(path=f"assumptions.{field.name}", message=f"must be a number from 0 to {most:g}"))
    if details:
        raise InvalidRequest(details=details)
