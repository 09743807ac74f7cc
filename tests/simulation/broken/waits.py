"""Engines that do not wait long enough, or do not listen; each broken on purpose in one place."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach.dispatch.outbox import CallChannel
from outreach.ledger.campaigns import transitions
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.sending import committing, intents
from outreach.ledger.sending.intents import WaveSenders
from outreach.ledger.settling import ledger, reconciling
from outreach.ledger.settling import recipient_outcomes as outcomes
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import Report
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus
from outreach.rules.deciding import next_caller_id
from outreach.storage.unit_of_work import Transaction


def believe_too_early(patch: pytest.MonkeyPatch) -> None:
    """Believe a provider that has nothing while the request may still be on its way to it."""
    confirm = reconciling.reconcile

    def believing(
        tx: Transaction, dispatch: Dispatch, evidence: DispatchOutcome | None, **given: Any
    ) -> Dispatch | None:
        deadlines = attrs.evolve(given.pop("deadlines"), retry_after=timedelta())
        return confirm(tx, dispatch, evidence, deadlines=deadlines, **given)

    patch.setattr(reconciling, "reconcile", believing)


def ignore_reports_of_unknown(patch: pytest.MonkeyPatch) -> None:
    """Take a report only for what is known to be accepted."""
    report = ledger.apply_report

    def deaf(tx: Transaction, event: Report, **given: Any) -> bool:
        dispatch = ledger.dispatch_of(tx, event)
        known = dispatch is not None and dispatch.state is DispatchState.ACCEPTED
        return known and report(tx, event, **given)

    patch.setattr(ledger, "apply_report", deaf)


def ignore_look_ups(patch: pytest.MonkeyPatch) -> None:
    """Throw away what a look-up has found."""
    confirm = reconciling.reconcile
    patch.setattr(reconciling, "reconcile", lambda tx, dispatch, _, **given: confirm(tx, dispatch, None, **given))


def retry_at_once(patch: pytest.MonkeyPatch) -> None:
    """Make another attempt without the delay of the settings."""

    def hasty(tx: Transaction, workspace_id: str, before: Recipient, after: Recipient, **why: Any) -> Any:
        waits = after.status is RecipientStatus.WAITING and str(after.reason).startswith("retry")
        now: datetime = why["now"]
        return put_recipient(tx, workspace_id, before, attrs.evolve(after, due_at=now) if waits else after, **why)

    patch.setattr(outcomes, "put_recipient", hasty)


def go_on_without_an_account(patch: pytest.MonkeyPatch) -> None:
    """Pause only the campaign whose request was refused for want of credentials or funds."""
    pause = ledger._pause
    mine: list[str | None] = []
    charge = ledger.charge_error_budget

    def charging(tx: Transaction, dispatch: Dispatch, now: datetime) -> None:
        mine[:] = [dispatch.campaign_id]
        charge(tx, dispatch, now)

    def pausing(tx: Transaction, campaign: Campaign, *more: Any) -> None:
        if campaign.id in mine:
            pause(tx, campaign, *more)

    patch.setattr(ledger, "charge_error_budget", charging)
    patch.setattr(ledger, "_pause", pausing)


def stop_at_the_first_trouble(patch: pytest.MonkeyPatch) -> None:
    """Pause a campaign after one request in trouble."""
    patch.setattr(ledger, "is_spent", bool)


def start_before_its_time(patch: pytest.MonkeyPatch) -> None:
    """Start a scheduled campaign a quarter of a minute early."""
    asks, advance = transitions.is_transition_due, transitions.apply_schedule

    def early(campaign: Campaign | None) -> timedelta:
        scheduled = campaign is not None and campaign.status is CampaignStatus.SCHEDULED
        return timedelta(seconds=15 if scheduled else 0)

    def advancing(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, grace: timedelta) -> Any:
        now += early(tx.campaigns.get(workspace_id, campaign_id))
        return advance(tx, workspace_id, campaign_id, now=now, grace=grace)

    patch.setattr(transitions, "is_transition_due", lambda campaign, now: asks(campaign, now + early(campaign)))
    patch.setattr(transitions, "apply_schedule", advancing)


def call_from_one_number(patch: pytest.MonkeyPatch) -> None:
    """Call everybody from the first number of a group."""
    first = next_caller_id
    patch.setattr(intents, "next_caller_id", lambda group, _: first(group, 0))


def forget_numbers_of_a_pool(patch: pytest.MonkeyPatch) -> None:
    """Give a contact of a pool the number that is free first, whatever it has heard from."""
    patch.setattr(WaveSenders, "_keeps", lambda *_: False)


def call_more_at_a_time(patch: pytest.MonkeyPatch) -> None:
    """Take one place more than the campaign has."""
    places = committing._free_places
    patch.setattr(committing, "_free_places", lambda tx, campaign: places(tx, campaign) + 1)
    patch.setattr(CallChannel, "has_capacity", lambda *_: True)
    patch.setattr(CallChannel, "max_wave_size", lambda self, campaign: campaign.batch_concurrency + 1)
