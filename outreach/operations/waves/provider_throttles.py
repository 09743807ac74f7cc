"""Leaving a provider alone that told us to come again later: all of a workspace's requests to it, not one contact."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.account import ProviderThrottle
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.models.work import WorkUnit
from outreach.operations.common import provider_of, wake_running_campaigns
from outreach.policy.settlement import MAX_RETRY_AFTER, Backoff
from outreach.working_set import Transaction

THROTTLED: Final = "provider_hold"
"""Why a committed intent is withdrawn, and what keeps a campaign from sending, while a provider is left alone."""


def active_throttle(tx: Transaction, workspace_id: str, provider: str | None, now: datetime) -> ProviderThrottle | None:
    """Return the hold that keeps a workspace from asking a provider now; None when nothing does."""
    if provider is None:
        return None
    hold = tx.provider_throttles.get(workspace_id, provider)
    return hold if hold is not None and _lasts(hold, now) else None


def unexpired(tx: Transaction, workspace_id: str | None, now: datetime, *, limit: int) -> Sequence[ProviderThrottle]:
    """Return the holds that keep a workspace, or any, from asking a provider now, what ends first first."""
    return [hold for hold in tx.provider_throttles.unexpired(workspace_id, now, limit=limit) if _lasts(hold, now)]


def throttle_of_campaign(tx: Transaction, campaign: Campaign, now: datetime) -> ProviderThrottle | None:
    """Return the hold that keeps a campaign from sending now; None when nothing does."""
    return active_throttle(tx, campaign.workspace_id, provider_of(tx, campaign), now)


def throttle_reason(tx: Transaction, dispatch: Dispatch, now: datetime) -> str | None:
    """Return why a committed intent must not be sent: its provider has asked us to wait since; None for no reason."""
    return THROTTLED if active_throttle(tx, dispatch.workspace_id, dispatch.provider, now) is not None else None


def restart_throttle(tx: Transaction, workspace_id: str, provider: str, now: datetime) -> None:
    """Have a hold from before the clock was set back last from now on at most as long as it was meant to last."""
    hold = tx.provider_throttles.get(workspace_id, provider)
    if hold is not None and hold.since > now:
        tx.provider_throttles.put(attrs.evolve(hold, since=now, until=now + (hold.until - hold.since)))


def update_throttle(
    tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome, *, backoff: Backoff, now: datetime
) -> ProviderThrottle | None:
    """Learn from a provider's answer whether it wants to be left alone; return the hold that began with it, if any.

    One that says for how long is left alone for as long, at the most a day, however often it says so. One that says
    only that it is asked too much is left alone for a back-off, which doubles until it has accepted something that it
    was asked afterwards.
    What was on its way already when the hold began says nothing new: it may make the hold longer by a wish of its own.
    What was on its way when the account was connected with its present credentials says nothing of them.
    """
    known = tx.provider_throttles.get(dispatch.workspace_id, dispatch.provider)
    # Nothing is committed while a hold lasts. What lies ahead of now was committed before the clock was set back.
    on_its_way = known is not None and (dispatch.created_at < known.until or dispatch.created_at > now)
    if outcome.state is DispatchState.ACCEPTED:
        if known is not None and not on_its_way:
            tx.provider_throttles.delete(dispatch.workspace_id, dispatch.provider)
        return None
    wish = outcome.retry_after_seconds
    # A sending number whose queue is full keeps nobody from the account's other numbers; its contacts back off alone.
    if not outcome.account_wide or not _asks_to_wait(outcome) or _asked_with_others(tx, dispatch):
        return None
    if known is not None and on_its_way:
        longer = now + backoff.delay(1, wish) if wish else known.until
        tx.provider_throttles.put(attrs.evolve(known, until=max(known.until, longer)))
        return None
    refusals = known.refusals + 1 if known is not None else 1
    hold = ProviderThrottle(
        workspace_id=dispatch.workspace_id,
        provider=dispatch.provider,
        since=now,
        until=now + backoff.delay(1 if wish else refusals, wish),
        refusals=refusals,
    )
    tx.provider_throttles.put(hold)
    return hold


def clear_throttle(tx: Transaction, workspace_id: str, provider: str, now: datetime) -> None:
    """End the hold of a workspace at a provider, for it has an account there anew, and have what waits looked at now.

    What waits may have begun to wait under a hold that went with the account before this one.
    """
    tx.provider_throttles.delete(workspace_id, provider)
    wake_running_campaigns(tx, workspace_id, now)
    for work in tx.work.due():
        if work.unit.workspace_id == workspace_id and _waits_at(tx, work.unit, provider):
            tx.work.schedule(work.unit, now)


def _lasts(hold: ProviderThrottle, now: datetime) -> bool:
    # One that ends later than any can was written before the clock was set back; it must not hold for good.
    return timedelta() < hold.until - now <= MAX_RETRY_AFTER


def _waits_at(tx: Transaction, unit: WorkUnit, provider: str) -> bool:
    """Return whether a unit is a single message or call that is queued for a provider."""
    if unit.kind == "message":
        message = tx.messages.get(unit.workspace_id, unit.id)
        return message is not None and message.status is MessageStatus.QUEUED and message.carrier == provider
    call = tx.calls.get(unit.workspace_id, unit.id) if unit.kind == "call" else None
    return call is not None and call.status is CallStatus.QUEUED and call.provider == provider


def _asked_with_others(tx: Transaction, dispatch: Dispatch) -> bool:
    """Return whether a request was committed before its account got the credentials that it has now."""
    account = tx.accounts.of_provider(dispatch.workspace_id, dispatch.provider)
    return account is not None and dispatch.created_at < account.updated_at


def _asks_to_wait(outcome: DispatchOutcome) -> bool:
    if outcome.state is DispatchState.DEFERRED:
        return outcome.reason == "rate_limited" or outcome.retry_after_seconds is not None
    # A provider that is out of order and names a time: what it did with this request stays unknown.
    return outcome.state is DispatchState.UNKNOWN and outcome.retry_after_seconds is not None
