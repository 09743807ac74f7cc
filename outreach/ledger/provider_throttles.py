"""Provider throttles, and numbers that providers report as unreachable.

After a 429 or Retry-After all of a workspace's requests to the provider wait.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.ledger.common import provider_of, wake_running_campaigns
from outreach.models.account import ProviderThrottle, StoredAccount
from outreach.models.base import Channel
from outreach.models.campaign import Campaign
from outreach.models.dispatch import FAILURE_CLASSES, Dispatch, DispatchOutcome
from outreach.models.reports import Report
from outreach.models.states import CallStatus, DispatchState, MessageStatus, WorkspaceMode
from outreach.models.unreachable import UnreachableNumber
from outreach.models.work import WorkUnit
from outreach.models.workspace import Workspace
from outreach.rules.phones import is_erased
from outreach.rules.settlement import ACCOUNT_FAILURES, MAX_RETRY_AFTER, Backoff
from outreach.storage.unit_of_work import Transaction

THROTTLED: Final = "provider_throttle"
"""The reason of an intent withdrawn, or a campaign stopped, by a throttle."""

ACCOUNT_CHANGED: Final = "account_changed"
"""The reason of an intent withdrawn because its account was changed or removed since its commit."""


def active_throttle(tx: Transaction, workspace_id: str, provider: str | None, now: datetime) -> ProviderThrottle | None:
    """Return the throttle of a workspace at a provider, or None."""
    if provider is None:
        return None
    throttle = tx.provider_throttles.get(workspace_id, provider)
    return throttle if throttle is not None and _is_in_force(throttle, now) else None


def unexpired(tx: Transaction, workspace_id: str | None, now: datetime, *, limit: int) -> Sequence[ProviderThrottle]:
    """Return the throttles in force for a workspace, or all, by the time that they end."""
    return [one for one in tx.provider_throttles.unexpired(workspace_id, now, limit=limit) if _is_in_force(one, now)]


def throttle_of_campaign(tx: Transaction, campaign: Campaign, now: datetime) -> ProviderThrottle | None:
    """Return the throttle that stops a campaign now, or None."""
    return active_throttle(tx, campaign.workspace_id, provider_of(tx, campaign), now)


def throttle_reason(tx: Transaction, dispatch: Dispatch, now: datetime) -> str | None:
    """Return why a committed intent must not be sent, if its provider is throttled since, else None."""
    return THROTTLED if active_throttle(tx, dispatch.workspace_id, dispatch.provider, now) is not None else None


def restart_throttle(tx: Transaction, workspace_id: str, provider: str, now: datetime) -> None:
    """Let a throttle that began before a clock step last from now at most as long as it was meant to."""
    throttle = tx.provider_throttles.get(workspace_id, provider)
    if throttle is not None and throttle.since > now:
        tx.provider_throttles.put(attrs.evolve(throttle, since=now, until=now + (throttle.until - throttle.since)))


def update_throttle(
    tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome, *, backoff: Backoff, now: datetime
) -> ProviderThrottle | None:
    """Update a provider's throttle by its answer; return the throttle if one began.

    A throttle lasts as long as the provider says, at most a day; without a time it backs off, doubling until a later
    request is accepted. Requests already in flight when it began can only extend it by a time of their own, and those
    made with earlier credentials do not count.
    """
    # Before it is repaired, one from before a clock step would hide how long the provider asks to wait from now on.
    restart_throttle(tx, dispatch.workspace_id, dispatch.provider, now)
    known = tx.provider_throttles.get(dispatch.workspace_id, dispatch.provider)
    # No intent is committed during a throttle; times ahead of now date from before a clock step.
    in_flight = known is not None and (dispatch.created_at < known.until or dispatch.created_at > now)
    if outcome.state is DispatchState.ACCEPTED:
        if known is not None and not in_flight:
            tx.provider_throttles.delete(dispatch.workspace_id, dispatch.provider)
        return None
    retry_after = outcome.retry_after_seconds
    # A full queue of one sending number does not throttle the account's other numbers.
    if not outcome.account_wide or not _asks_to_wait(outcome) or has_old_credentials(tx, dispatch, now):
        return None
    if known is not None and in_flight:
        longer = now + backoff.delay(1, retry_after) if retry_after else known.until
        tx.provider_throttles.put(attrs.evolve(known, until=max(known.until, longer)))
        return None
    refusals = known.refusals + 1 if known is not None else 1
    throttle = ProviderThrottle(
        workspace_id=dispatch.workspace_id,
        provider=dispatch.provider,
        since=now,
        until=now + backoff.delay(1 if retry_after else refusals, retry_after),
        refusals=refusals,
    )
    tx.provider_throttles.put(throttle)
    return throttle


def throttle_until_reset(tx: Transaction, dispatch: Dispatch, report: Report, now: datetime) -> None:
    """Throttle the provider of a request that failed at a limit of the account, until the limit ends.

    A longer throttle stays; a report on earlier credentials says nothing about today's.
    """
    restart_throttle(tx, dispatch.workspace_id, dispatch.provider, now)
    if report.retry_after_seconds is None or has_old_credentials(tx, dispatch, now):
        return
    longest = MAX_RETRY_AFTER.total_seconds()
    until = min(report.at, now) + timedelta(seconds=min(max(report.retry_after_seconds, 0.0), longest))
    until = min(until, now + MAX_RETRY_AFTER)
    known = active_throttle(tx, dispatch.workspace_id, dispatch.provider, now)
    if until <= now or (known is not None and known.until >= until):
        return
    tx.provider_throttles.put(
        ProviderThrottle(
            workspace_id=dispatch.workspace_id,
            provider=dispatch.provider,
            since=known.since if known is not None else now,
            until=until,
            refusals=known.refusals if known is not None else 1,
        )
    )


def has_old_credentials(tx: Transaction, dispatch: Dispatch, now: datetime) -> bool:
    """Return whether a request was committed under earlier credentials."""
    account = tx.accounts.of_provider(dispatch.workspace_id, dispatch.provider)
    return account is not None and _is_older(dispatch, account, now)


def is_refusal_of_old_credentials(tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome, now: datetime) -> bool:
    """Return whether a request was refused for the sake of an account that has other credentials by now."""
    refused = outcome.state is DispatchState.REFUSED and outcome.reason in ACCOUNT_FAILURES
    return refused and has_old_credentials(tx, dispatch, now)


def of_changed_accounts(tx: Transaction, dispatches: Sequence[Dispatch], now: datetime) -> Collection[str]:
    """Return the ids of the intents whose account was changed or removed since their commit."""
    live = [dispatch for dispatch in dispatches if _is_live(tx, dispatch)]
    names = {(dispatch.workspace_id, dispatch.provider) for dispatch in live}
    accounts = {name: tx.accounts.of_provider(*name) for name in names}
    found = ((dispatch, accounts[dispatch.workspace_id, dispatch.provider]) for dispatch in live)
    return {dispatch.id for dispatch, account in found if account is None or _is_older(dispatch, account, now)}


def may_be_at_another_account(tx: Transaction, dispatch: Dispatch) -> bool:
    """Return whether the account that took a request may be another one at the provider than that of today."""
    if not _is_live(tx, dispatch):
        return False
    account = tx.accounts.of_provider(dispatch.workspace_id, dispatch.provider)
    # Also after a clock step: in doubt nothing is proven.
    return account is None or dispatch.created_at < account.updated_at


def clear_throttle(tx: Transaction, workspace_id: str, provider: str, now: datetime) -> None:
    """End a workspace's throttle at a provider after a new account was connected, and wake what waits for it."""
    tx.provider_throttles.delete(workspace_id, provider)
    wake_running_campaigns(tx, workspace_id, now)
    for work in tx.work.due():
        if work.unit.workspace_id == workspace_id and _is_queued_for(tx, work.unit, provider):
            tx.work.schedule(work.unit, now)


def _is_older(dispatch: Dispatch, account: StoredAccount, now: datetime) -> bool:
    if dispatch.created_at >= account.updated_at:
        return False
    # Credentials ahead of now date from before a clock step: only a request from before it can be older.
    return account.updated_at <= now or dispatch.created_at > now


def _is_live(tx: Transaction, dispatch: Dispatch) -> bool:
    """Return whether a dispatch goes by an account; the simulators need none."""
    workspace = tx.workspaces.get(dispatch.workspace_id)
    return workspace is not None and workspace.mode is WorkspaceMode.LIVE


def _is_in_force(throttle: ProviderThrottle, now: datetime) -> bool:
    # One that ends too late was written before the clock was set back.
    return timedelta() < throttle.until - now <= MAX_RETRY_AFTER


def _is_queued_for(tx: Transaction, unit: WorkUnit, provider: str) -> bool:
    """Return whether a unit is a single message or call queued for a provider."""
    if unit.kind == "message":
        message = tx.messages.get(unit.workspace_id, unit.id)
        return message is not None and message.status is MessageStatus.QUEUED and message.carrier == provider
    call = tx.calls.get(unit.workspace_id, unit.id) if unit.kind == "call" else None
    return call is not None and call.status is CallStatus.QUEUED and call.provider == provider


def _asks_to_wait(outcome: DispatchOutcome) -> bool:
    if outcome.state is DispatchState.DEFERRED:
        return outcome.reason == "rate_limited" or outcome.retry_after_seconds is not None
    # A failing provider may name a time while the request's outcome stays unknown.
    return outcome.state is DispatchState.UNKNOWN and outcome.retry_after_seconds is not None


def note_unreachable(
    tx: Transaction, dispatch: Dispatch, *, reason: str | None, error_code: str | None, now: datetime
) -> None:
    """Keep the number of a failed dispatch, if a failure of this class lasts.

    It is kept whatever the workspace's setting is, so that a setting that is turned on later knows of it.
    """
    traits = FAILURE_CLASSES.get(reason or "")
    if traits is None or not traits.lasts or is_erased(dispatch.to):
        return
    tx.unreachable_numbers.put(
        UnreachableNumber(
            workspace_id=dispatch.workspace_id,
            phone=dispatch.to,
            channel=dispatch.channel,
            provider=dispatch.provider,
            error_code=error_code,
            reported_at=now,
        )
    )


def left_out(tx: Transaction, workspace: Workspace, channel: Channel, phones: Collection[str]) -> frozenset[str]:
    """Return those of some numbers (at most 1,000) that the campaigns of a workspace leave out as unreachable."""
    return tx.unreachable_numbers.among(workspace.id, channel, phones) if workspace.skip_unreachable else frozenset()
