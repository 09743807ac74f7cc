"""The preflight: what a campaign will do to each contact, before it starts or before it is created."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

import anyio.lowlevel
import attrs
import orjson

from outreach.errors import NotFound, Problem
from outreach.insight.forecast import SLICE, ContactSlice, Setup, read_setup, read_slice, turn_of, with_limits
from outreach.ledger.campaigns.transitions import find_text_warnings, unknown_placeholders
from outreach.ledger.common import campaign_of
from outreach.models.audience import LeaveOut
from outreach.models.campaign import Campaign, NewCallCampaign, NewSmsCampaign, PreparedRecipient, Recipient
from outreach.models.forecast import Forecast, ForecastAssumptions
from outreach.models.preflight import ContactPreview, Preflight
from outreach.models.states import UNSTARTED_STATUSES, RecipientStatus
from outreach.rules.column_names import MisreadNumbers
from outreach.rules.deciding import decide_loading
from outreach.rules.phones import normalise_single, stored_forms
from outreach.rules.preflight import PreflightTally, preview_contact
from outreach.rules.report_figures import cost_of, depends_on_country, expected_minutes
from outreach.services.campaigns.audience import Audience
from outreach.services.campaigns.contacts import RecipientSource, VariableNameCollector, chunks
from outreach.services.context import ServiceContext, require_text
from outreach.storage.unit_of_work import Transaction


class Forecasting(Protocol):
    """The forecast of a campaign that is not created, from its contacts as they are read."""

    def see(self, found: ContactSlice) -> None:
        """Count contacts that the creation would load."""
        ...

    async def forecast(self) -> Forecast:
        """Return the forecast once all contacts were seen."""
        ...


class CampaignPreflight:
    """Computes before the start what each contact gets, who is left out and why, and what it costs.

    Args:
        context: What services share.
        start_problems: Returns all problems that prevent a start now, by workspace and campaign.
        draft_problems: The same for a campaign that is not created, by what makes its draft.
        forecasting: Begins the forecast of a campaign that is not created.
        draft_of: Returns what makes the campaign that a creation would make, having checked its fields.
    """

    def __init__(
        self,
        context: ServiceContext,
        *,
        start_problems: Callable[[str, str], Awaitable[Sequence[Problem]]],
        draft_problems: Callable[[Callable[[Transaction], Campaign]], Awaitable[Sequence[Problem]]],
        forecasting: Callable[[Setup, ForecastAssumptions], Awaitable[Forecasting]],
        draft_of: Callable[[str, NewSmsCampaign | NewCallCampaign], Callable[[Transaction], Campaign]],
    ) -> None:
        self._context = context
        self._start_problems = start_problems
        self._draft_problems = draft_problems
        self._forecasting = forecasting
        self._draft_of = draft_of

    async def preflight(self, workspace_id: str, campaign_id: str, *, contact: str | None = None) -> Preflight:
        """Return what a campaign will do to its contacts, by the rules that the run will follow.

        It holds if nothing changes meanwhile. Contacts on the register when the campaign was created were not loaded,
        and are not counted. It reads every contact: 100,000 take a second or two.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign, in any state; of one that has started, what is left.
            contact: A phone number, in any notation, to explain in full (`Preflight.asked`).

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: The number is not a string.
        """
        context = self._context
        setup = await context.storage.read(lambda tx: read_setup(tx, campaign_of(tx, workspace_id, campaign_id)))
        campaign = setup.plan.campaign
        problems = (
            await self._start_problems(workspace_id, campaign_id)
            if campaign.status in UNSTARTED_STATUSES
            else setup.missing
        )
        at = turn_of(campaign, context.now())
        tally, misread = _tally(setup, at, contact), MisreadNumbers()
        after, size = -1, SLICE
        while size == SLICE:
            found = await context.storage.read(
                lambda tx, after=after: read_slice(tx, setup, after, at)  # type: ignore[misc]
            )
            tally.see(found.recipients, found.restrictions, found.capped_until, found.unreachable)
            misread.see(found.recipients)
            size = len(found.recipients)
            after = found.recipients[-1].position if size else after
            await anyio.lowlevel.checkpoint()
        setup = attrs.evolve(setup, warnings=(*setup.warnings, *misread.warnings()))
        return _result(setup, tally, at, campaign.id, problems)

    async def preview_recipient(self, workspace_id: str, campaign_id: str, position: int) -> ContactPreview:
        """Return what happens to one contact of a campaign from now on, with its texts as it would get them.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such recipient.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> tuple[Setup, ContactSlice]:
            setup = read_setup(tx, campaign_of(tx, workspace_id, campaign_id))
            recipient = tx.recipients.get(workspace_id, campaign_id, position)
            if recipient is None:
                raise NotFound("recipient", str(position))
            return setup, with_limits(tx, setup, [recipient], turn_of(setup.plan.campaign, now))

        setup, found = await self._context.storage.read(operation)
        [recipient] = found.recipients
        return preview_contact(
            attrs.evolve(setup.plan, capped_until=found.capped_until),
            recipient,
            found.restrictions.get(recipient.phone or ""),
            turn_of(setup.plan.campaign, now),
        )

    async def preflight_new(
        self,
        workspace_id: str,
        campaign: NewSmsCampaign | NewCallCampaign,
        recipients: RecipientSource,
        *,
        leave_out: LeaveOut | None = None,
        contact: str | None = None,
        assumptions: ForecastAssumptions | None = None,
    ) -> Preflight:
        """Return what a campaign would do to its contacts, without creating it, and when it would be done.

        Numbers on the register are counted as left out, though a creation would not load them.

        Args:
            workspace_id: The workspace.
            campaign: Everything but the contacts.
            recipients: The contacts, as `create_sms` and `create_call` take them.
            leave_out: Whom the creation would leave out, as there; the overlaps are counted (`Preflight.audience`).
            contact: A phone number, in any notation, to explain in full (`Preflight.asked`).
            assumptions: As for `forecast`; with them the forecast is made (`Preflight.forecast`).

        Raises:
            NotFound: The workspace, agent or trunk does not exist.
            SmsCampaignsDisabled: The workspace does not have SMS campaigns enabled.
            InvalidRequest: A rule is broken, or the flow or a campaign to leave out does not exist.
        """
        context = self._context
        audience = None if leave_out is None else Audience(context, workspace_id, leave_out)
        draft = self._draft_of(workspace_id, campaign)
        setup = await context.storage.read(lambda tx: read_setup(tx, draft(tx)))
        proposed, region = setup.plan.campaign, setup.plan.workspace.default_region
        at = turn_of(proposed, context.now())
        tally: PreflightTally | None = None
        forecasting: Forecasting | None = None
        names = VariableNameCollector()
        seen: set[str] = set()

        async def default_region() -> str | None:
            return region

        def look_up(
            tx: Transaction, chunk: Sequence[PreparedRecipient], first: int
        ) -> tuple[frozenset[str], ContactSlice]:
            return _look_up(tx, setup, chunk, first, at)

        async for chunk in chunks(recipients, default_region=default_region, size=SLICE):
            names.see(chunk)
            if tally is None:
                # The first contacts show which columns of the list are variables.
                setup = _with_names(setup, names.names())
                tally = _tally(setup, at, contact)
                if assumptions is not None:
                    forecasting = await self._forecasting(setup, assumptions)
            stopped, found = await context.storage.read(partial(look_up, chunk=chunk, first=tally.contacts))
            causes = await audience.look(chunk) if audience is not None else [None] * len(chunk)
            loaded = []
            for supplied, recipient, cause in zip(chunk, found.recipients, causes, strict=True):
                decided = cause or decide_loading(supplied, stopped, seen)
                if decided == "load":
                    loaded.append(recipient)
                else:
                    tally.leave_out(recipient, decided)
            tally.see(loaded, found.restrictions, found.capped_until, found.unreachable)
            if forecasting is not None:
                forecasting.see(attrs.evolve(found, recipients=loaded))
            await anyio.lowlevel.checkpoint()
        known = attrs.evolve(proposed, variable_names=names.names())
        tally = tally or _tally(setup, at, contact)
        unknown, text_warnings = await context.storage.read(
            lambda tx: (unknown_placeholders(tx, known), find_text_warnings(tx, known))
        )
        setup = attrs.evolve(setup, unknown=unknown, text_warnings=text_warnings)
        problems = await self._draft_problems(lambda tx: attrs.evolve(draft(tx), variable_names=known.variable_names))
        return attrs.evolve(
            _result(setup, tally, at, None, problems),
            audience=None if audience is None else await audience.counts(),
            forecast=None if forecasting is None else await forecasting.forecast(),
        )


def _with_names(setup: Setup, variable_names: tuple[str, ...] | None) -> Setup:
    campaign = attrs.evolve(setup.plan.campaign, variable_names=variable_names)
    return attrs.evolve(setup, plan=attrs.evolve(setup.plan, campaign=campaign))


def _tally(setup: Setup, at: datetime, contact: str | None) -> PreflightTally:
    shown = set[str]()
    if contact is not None:
        require_text("contact", contact)
        phone = normalise_single(contact, setup.plan.workspace.default_region)
        shown = {contact} if phone is None else {contact, *stored_forms(phone, setup.plan.workspace.default_region)}
    channel = setup.plan.campaign.channel
    return PreflightTally(setup.plan, at, by_country=depends_on_country(setup.prices, channel), shown=frozenset(shown))


def _look_up(
    tx: Transaction, setup: Setup, chunk: Sequence[PreparedRecipient], first: int, at: datetime
) -> tuple[frozenset[str], ContactSlice]:
    """Return which numbers a creation would leave out, and the contacts as it would write them."""
    campaign = setup.plan.campaign
    phones = {one.phone for one in chunk if one.phone is not None}
    stopped = tx.register.stopped(campaign.workspace_id, campaign.channel, phones)
    rows = [_recipient(campaign.id, position, one) for position, one in enumerate(chunk, start=first)]
    return stopped, with_limits(tx, setup, rows, at)


def _recipient(campaign_id: str, position: int, supplied: PreparedRecipient) -> Recipient:
    """Return a contact as a creation would write it."""
    variables = supplied.custom_variables
    return Recipient(
        campaign_id=campaign_id,
        position=position,
        phone_number=supplied.phone_number,
        phone=supplied.phone,
        first_name=supplied.first_name,
        last_name=supplied.last_name,
        email=supplied.email,
        company=supplied.company,
        custom_variables=orjson.loads(variables) if variables is not None else {},
        status=RecipientStatus.PENDING,
        time_zone=supplied.time_zone,
        us_place=supplied.us_place,
    )


def _result(
    setup: Setup, tally: PreflightTally, at: datetime, campaign_id: str | None, problems: Sequence[Problem]
) -> Preflight:
    channel = setup.plan.campaign.channel
    cost, cost_note = None, "The workspace has no prices, so that its cost is unknown."
    if setup.prices is not None:
        quantities: Mapping[str | None, int] = tally.quantities
        cost_note = "Each message once; one that fails and is sent again costs again."
        if channel == "call":
            assumed = ForecastAssumptions()
            attempts = setup.calls.retry_max_attempts
            double_dial = bool(setup.plan.campaign.double_dial)
            quantities = expected_minutes(tally.quantities, assumed, attempts, double_dial=double_dial)
            each = " of two calls each" if double_dial else ""
            cost_note = (
                f"Assumed: {assumed.answer_rate:.0%} of calls are answered, in up to {attempts} attempts{each}, and "
                f"an answered call takes {assumed.call_seconds:g} s; begun minutes count."
            )
        priced = {(setup.provider, country): quantity for country, quantity in quantities.items()}
        cost = cost_of(setup.prices, channel, priced)
    return Preflight(
        campaign_id=campaign_id,
        channel=channel,
        at=at,
        contacts=tally.contacts,
        contacted=tally.contacted,
        ended=tally.ended,
        left_out=tally.left_out(),
        held_back=tally.held_back(),
        ends_early=dict(tally.ends_early),
        problems=tuple(problems),
        warnings=setup.warnings,
        unknown_placeholders=setup.unknown,
        placeholder_problems=tally.placeholder_problems(),
        text_warnings=setup.text_warnings,
        messages=tally.messages,
        segments=tally.segments,
        segment_shares=tally.shares(),
        encodings=tally.encodings(),
        replacement=tally.replacement(),
        samples=tally.samples(),
        asked=tuple(tally.previews),
        cost=cost,
        cost_note=cost_note,
    )
