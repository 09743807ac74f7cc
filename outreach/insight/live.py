"""A campaign while it runs: its activity or the reason why it waits, and its requests minute by minute."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach.errors import Problem
from outreach.insight.blockers import blockers_of
from outreach.insight.status import dispatch_overview
from outreach.ledger.campaigns.transitions import missing_setup
from outreach.ledger.common import campaign_of, workspace_of
from outreach.ledger.provider_throttles import THROTTLED, throttle_of_campaign
from outreach.ledger.sending.intents import sender_paces
from outreach.models.campaign import Campaign, Recipient
from outreach.models.fields import check_value, moment
from outreach.models.forecast import BindingRule
from outreach.models.live import CampaignNow, CampaignProgress
from outreach.models.states import APPROVAL_ENDED, CampaignStatus, TrailRule, TrailStepKind
from outreach.rules import progress
from outreach.rules.deciding import HOLDING_RULES, LocalRules
from outreach.rules.explanations import LIMITS, PAUSE_REASONS, STARTED_AGAIN
from outreach.rules.forecast import reasons_of_wait, rule_of_wait
from outreach.rules.now_words import (
    MAX_COUNTED,
    clock_words,
    contacts_text,
    opening_zone,
    waits_for_opening,
    waits_for_setup,
    waits_for_times,
)
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

_LATEST: Final = 50
"""How many of a campaign's latest trail entries are searched for the change to its present state."""

_CLOSURES: Final = {"business_hours": "its business hours", "holidays": "after a holiday"}


class LiveCampaigns:
    """The present activity of campaigns, and their progress so far."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def now(self, workspace_id: str, campaign_id: str) -> CampaignNow:
        """Return what a campaign does or waits for now: the rule that binds, how many contacts, and one sentence.

        A few look-ups in indexes, which can be repeated each second.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read(lambda tx: self._look(tx, campaign_of(tx, workspace_id, campaign_id)))

    async def progress(self, workspace_id: str, campaign_id: str, *, since: datetime | None = None) -> CampaignProgress:
        """Return a campaign's requests and what became of them, by the minute, or by longer steps of a long time.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            since: Only requests since the beginning of the step with this time; None for all. Each of them is read.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: `since` is no time with an offset.
        """
        if since is not None:
            check_value("since", since, moment)
        now = self._context.now()

        def operation(tx: Transaction) -> CampaignProgress:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            ends = tx.reports.first_and_last_request(workspace_id, campaign.id)
            first = None if ends is None else max(ends[0], since or ends[0])
            if ends is None or first is None or first > ends[1]:
                step = progress.STEPS[0]
                return CampaignProgress(
                    campaign_id=campaign.id, at=now, step_seconds=int(step.total_seconds()), points=()
                )
            begin, step = progress.steps_between(first, ends[1])
            rows = tx.reports.requests_by_step(workspace_id, campaign.id, since=begin, step=step)
            return CampaignProgress(
                campaign_id=campaign.id,
                at=now,
                step_seconds=int(step.total_seconds()),
                points=progress.points_of(rows),
            )

        return await self._context.storage.read_ledger(workspace_id, campaign_id, operation)

    def _look(self, tx: Transaction, campaign: Campaign) -> CampaignNow:
        now = self._context.now()
        in_flight = tx.recipients.in_flight(campaign.workspace_id, campaign.id)
        waiting = max(campaign.counters.open - in_flight, 0)
        blockers = blockers_of(self._context, tx, campaign, now)
        if blockers:
            return self._blocked(tx, campaign, blockers[0], waiting, now)
        if campaign.status is not CampaignStatus.ACTIVE:
            return _of_status(tx, campaign, waiting, now)
        due = tx.recipients.count_due(campaign.workspace_id, campaign.id, now, limit=MAX_COUNTED)
        if due:
            rule = _pacing_rule(tx, campaign, now)
            verb = "Sends" if campaign.channel == "sms" else "Calls"
            message = f"{verb}, limited by {LIMITS[rule]}: {contacts_text(due)} due."
            return _now(campaign, now, rule, None, None, due, message)
        first = tx.recipients.first_postponed(campaign.workspace_id, campaign.id, now)
        if first is not None and first.due_at is not None:
            return _postponed(tx, campaign, first, first.due_at, now)
        idle = (
            "Every contact has ended: it waits for more, until it is closed."
            if campaign.stay_open
            else "Every contact has ended: it completes."
        )
        requests = f"{in_flight:,} request{'' if in_flight == 1 else 's'}"
        message = f"Waits for the outcome of {requests}." if in_flight else idle
        until = tx.recipients.next_due(campaign.workspace_id, campaign.id)
        return _now(campaign, now, "outcome", None, until, in_flight, message)

    def _blocked(
        self, tx: Transaction, campaign: Campaign, blocker: Problem, waiting: int, now: datetime
    ) -> CampaignNow:
        rule, since, message = blocker.code or "", None, blocker.message
        if rule == THROTTLED:
            throttle = throttle_of_campaign(tx, campaign, now)
            if throttle is not None:
                since = throttle.since
                until = clock_words(throttle.until, campaign.timezone, now)
                message = f"Waits until {until}, because {throttle.provider} throttles: {contacts_text(waiting)}."
        elif rule in _CLOSURES:
            last = tx.trail.of_campaign(campaign.workspace_id, campaign.id, limit=1)
            if last and (last[0].what, last[0].due_at) == (TrailStepKind.HELD, blocker.until):
                since = last[0].at
            if blocker.until is not None:
                message = waits_for_opening(blocker.until, campaign.timezone, waiting, now, why=_CLOSURES[rule])
        elif rule == "no_dispatcher":
            since = dispatch_overview(self._context, tx, now).heartbeat_at
        elif rule.startswith("workspace_"):
            status = workspace_of(tx, campaign.workspace_id).status
            entries = tx.trail.of_workspace(campaign.workspace_id, limit=_LATEST)
            changes = (one for one in entries if one.rule is TrailRule.WORKSPACE and one.state == status)
            since = max((one.at for one in changes), default=None)
        return _now(campaign, now, rule, since, blocker.until, waiting, message)


def _of_status(tx: Transaction, campaign: Campaign, waiting: int, now: datetime) -> CampaignNow:
    """Return what a campaign waits for that is not active and that nothing else blocks."""
    status, until, contacts = campaign.status, None, contacts_text(waiting)
    entries = tx.trail.of_campaign(campaign.workspace_id, campaign.id, limit=_LATEST)
    changes = [one for one in entries if one.what is TrailStepKind.CAMPAIGN and one.state == status]
    since = changes[-1].at if changes else None
    match status:
        case CampaignStatus.DRAFT:
            message = waits_for_setup(missing_setup(tx, campaign), waiting)
        case CampaignStatus.READY:
            was_approved = bool(changes) and changes[-1].reason == APPROVAL_ENDED
            message = f"Waits to be started{STARTED_AGAIN if was_approved else ''}: {contacts}."
        case CampaignStatus.SCHEDULED:
            until = campaign.scheduled_start_at
            start = "its start" if until is None else f"its start at {clock_words(until, campaign.timezone, now)}"
            message = f"Waits for {start}: {contacts}."
        case CampaignStatus.PAUSED:
            message = f"Waits to be resumed, because {PAUSE_REASONS[campaign.pause_reason or 'operator']}: {contacts}."
        case _:
            waiting = campaign.counters.open
            left = f": {contacts_text(waiting)} still open" if waiting else ""
            message = f"Is {status}{left}."
    return _now(campaign, now, status.value, since, until, waiting, message)


def _pacing_rule(tx: Transaction, campaign: Campaign, now: datetime) -> BindingRule:
    if campaign.channel == "call":
        return "batch_concurrency"
    paces = sender_paces(tx, campaign, now).values()
    rates = [60 / pace.spacing.total_seconds() for pace in paces if pace is not None]
    # The rates of a pool add up; a number without one has no limit.
    return "sender_rate" if len(rates) == len(paces) and sum(rates) < (campaign.rate_per_minute or 1) else "pace"


def _postponed(tx: Transaction, campaign: Campaign, first: Recipient, due_at: datetime, now: datetime) -> CampaignNow:
    """Return what the first contact waits for that is due later, with the others that wait for the same."""
    workspace_id, reason = campaign.workspace_id, first.reason or ""
    held = [
        one
        for one in tx.trail.of_recipient(workspace_id, campaign.id, first.position)
        if one.what is TrailStepKind.HELD and one.reason == first.reason
    ]
    since = held[-1].at if held else None
    holding = HOLDING_RULES.get(reason)
    is_local = holding is not None and holding.local_hours is not None
    rule = rule_of_wait(reason)
    reasons, last = reasons_of_wait(rule), due_at if is_local else None
    contacts = tx.recipients.count_postponed(workspace_id, campaign.id, reasons, now, until=last, limit=MAX_COUNTED)
    if is_local:
        zone = opening_zone(first, LocalRules(workspace_of(tx, workspace_id)), due_at)
        return _now(campaign, now, rule, since, due_at, contacts, waits_for_opening(due_at, zone, contacts, now))
    # Nobody knows when a person decides.
    until = None if holding is not None and holding.released_by == "review" else due_at
    message = waits_for_times(rule, until, campaign.timezone, contacts, now)
    return _now(campaign, now, rule, since, until, contacts, message)


def _now(
    campaign: Campaign,
    at: datetime,
    rule: str,
    since: datetime | None,
    until: datetime | None,
    contacts: int,
    message: str,
) -> CampaignNow:
    return CampaignNow(
        campaign_id=campaign.id, at=at, rule=rule, since=since, until=until, contacts=contacts, message=message
    )
