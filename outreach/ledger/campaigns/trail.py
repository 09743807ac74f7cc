"""Writing the decision trail, in the transaction of the change.

The rows of recipients and dispatches already show loads, commits and first and final answers: these are not repeated.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach.models.call import Call
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.message import InboundMessage
from outreach.models.reports import MessageReport
from outreach.models.states import (
    UNCLEAR,
    CampaignAction,
    CampaignStatus,
    DispatchState,
    RecipientStatus,
    TrailEntry,
    TrailRule,
    TrailStepKind,
    WorkspaceStatus,
)
from outreach.models.unsubscribe import Unsubscribe
from outreach.models.workspace import Workspace
from outreach.rules.deciding import rule_of_move, rule_of_outcome, rule_of_recipient
from outreach.storage.unit_of_work import Transaction

ENGINE: Final = "engine"
"""The actor of changes without a request."""

STOP: Final = "stop"
"""The reason of a workspace's entry for a stop of all its campaigns."""

_LATEST: Final = 50
"""How many of the latest entries are searched for a campaign's latest pause, or for a stop of its workspace."""

_MAY_CHANGE: Final = frozenset({DispatchState.UNKNOWN, DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP})
"""Outcomes that a later one may replace."""


def record_recipient(
    tx: Transaction,
    workspace_id: str,
    before: Recipient,
    after: Recipient,
    *,
    rule: TrailRule,
    now: datetime,
    dispatch: Dispatch | None = None,
    actor: str = ENGINE,
) -> None:
    """Record that a recipient waits or has ended.

    Another postponement for the same reason extends the last entry: a long wait must not write one each night.
    """
    changed = (after.status, after.reason, after.due_at) != (before.status, before.reason, before.due_at)
    if not changed or (after.is_open and after.status is not RecipientStatus.WAITING):
        return
    waits = after.status is RecipientStatus.WAITING
    again = before.status is RecipientStatus.WAITING and before.reason == after.reason and before.step == after.step
    if waits and again and after.due_at is not None:
        tx.trail.prolong(workspace_id, before.campaign_id, before.position, after.due_at)
        return
    tx.trail.append(
        TrailEntry(
            at=now,
            workspace_id=workspace_id,
            what=TrailStepKind.HELD if waits else TrailStepKind.ENDED,
            rule=rule_of_recipient(after, rule),
            state=after.status.value,
            reason=after.reason,
            campaign_id=before.campaign_id,
            position=before.position,
            dispatch_id=dispatch.id if dispatch is not None else None,
            step=dispatch.step if dispatch is not None else before.step,
            attempt=dispatch.attempt if dispatch is not None else before.attempts,
            leg=dispatch.leg if dispatch is not None else before.leg,
            due_at=after.due_at,
            actor=_actor(actor),
        )
    )


def record_outcome(tx: Transaction, before: Dispatch, settled: Dispatch, *, by: TrailRule, now: datetime) -> None:
    """Record a dispatch's outcome, if its own row may not keep it."""
    settled_once = before.state is DispatchState.DISPATCHING and settled.state not in _MAY_CHANGE
    if settled.campaign_id is None or (settled_once and by is TrailRule.PROVIDER_ANSWER):
        return
    tx.trail.append(
        _of_dispatch(
            settled,
            at=now,
            what=TrailStepKind.OUTCOME,
            rule=rule_of_outcome(settled.state, settled.reason, by),
            state=settled.state.value,
            reason=settled.reason,
        )
    )


def record_message_report(tx: Transaction, dispatch: Dispatch, event: MessageReport, now: datetime) -> None:
    """Record a carrier's report on an accepted message."""
    tx.trail.append(
        _of_dispatch(
            dispatch,
            at=now,
            what=TrailStepKind.REPORTED,
            rule=TrailRule.PROVIDER_REPORT,
            state=event.status.value,
            reason=event.reason,
        )
    )


def record_call(tx: Transaction, dispatch: Dispatch | None, call: Call, *, rule: TrailRule, now: datetime) -> None:
    """Record a call's progress or its end."""
    tx.trail.append(
        TrailEntry(
            at=now,
            workspace_id=call.workspace_id,
            what=TrailStepKind.REPORTED if call.is_open else TrailStepKind.CALL_ENDED,
            rule=rule,
            state=call.status.value,
            reason=call.outcome or call.error,
            campaign_id=call.campaign_id,
            position=call.position,
            call_id=call.id,
            dispatch_id=dispatch.id if dispatch is not None else None,
            step=dispatch.step if dispatch is not None else None,
            attempt=dispatch.attempt if dispatch is not None else call.attempt,
            leg=dispatch.leg if dispatch is not None else None,
        )
    )


def record_campaign_status(
    tx: Transaction, moved: Campaign, step: CampaignAction, *, actor: str, detail: str | None, now: datetime
) -> None:
    """Record a campaign status change."""
    rule = rule_of_move(step, by_engine=actor == ENGINE, pause_reason=moved.pause_reason)
    _of_campaign(tx, moved, rule=rule, reason=detail, actor=actor, now=now)


def last_pause_number(tx: Transaction, campaign: Campaign) -> int:
    """Return the number of the entry of a campaign's latest pause; 0 if that was long ago."""
    latest = tx.trail.of_campaign(campaign.workspace_id, campaign.id, limit=_LATEST)
    return max((entry.number for entry in latest if entry.state == CampaignStatus.PAUSED), default=0)


def last_activation(tx: Transaction, campaign: Campaign) -> datetime:
    """Return when a campaign became active last; its first start if that is not among its latest entries."""
    latest = tx.trail.of_campaign(campaign.workspace_id, campaign.id, limit=_LATEST)
    moves = [
        entry.at for entry in latest if entry.what is TrailStepKind.CAMPAIGN and entry.state == CampaignStatus.ACTIVE
    ]
    at = moves[-1] if moves else campaign.started_at or campaign.updated_at
    # After the clock was set back, the trail keeps its times, and the campaign's are corrected.
    return min(at, campaign.updated_at)


def record_campaign_created(tx: Transaction, campaign: Campaign, *, actor: str, now: datetime) -> None:
    """Record that a campaign was created."""
    _of_campaign(tx, campaign, rule=TrailRule.LOAD, actor=actor, now=now)


def is_closure_recorded(
    tx: Transaction, campaign: Campaign, *, rule: TrailRule, until: datetime, since: datetime | None = None
) -> bool:
    """Return whether this closure, or one by the same rule since `since`, is the latest entry."""
    last = tx.trail.of_campaign(campaign.workspace_id, campaign.id, limit=1)
    if not last or (last[0].what, last[0].rule) != (TrailStepKind.HELD, rule):
        return False
    return last[0].due_at == until or (since is not None and last[0].at >= since)


def record_campaign_closure(
    tx: Transaction,
    workspace_id: str,
    campaign_id: str,
    *,
    rule: TrailRule,
    until: datetime,
    now: datetime,
    since: datetime | None = None,
) -> None:
    """Record that a campaign has no open recipients until `until`, once for each closure."""
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None or is_closure_recorded(tx, campaign, rule=rule, until=until, since=since):
        return
    _of_campaign(tx, campaign, what=TrailStepKind.HELD, rule=rule, due_at=until, now=now)


def record_workspace_status(
    tx: Transaction,
    workspace_id: str,
    status: WorkspaceStatus,
    *,
    reason: str | None,
    actor: str,
    now: datetime,
    rule: TrailRule = TrailRule.WORKSPACE,
) -> None:
    """Record a workspace's status or, as the reason, its changed contact rules."""
    tx.trail.append(
        TrailEntry(
            at=now,
            workspace_id=workspace_id,
            what=TrailStepKind.WORKSPACE,
            rule=rule,
            state=status.value,
            reason=reason,
            actor=_actor(actor),
        )
    )


def record_stop(tx: Transaction, workspace: Workspace, *, actor: str, now: datetime) -> None:
    """Record that everything in a workspace was paused."""
    record_workspace_status(
        tx, workspace.id, workspace.status, reason=STOP, actor=actor, now=now, rule=TrailRule.OPERATOR
    )


def was_stopped_since_completion(tx: Transaction, campaign: Campaign) -> bool:
    """Return whether everything in a completed campaign's workspace was paused after the campaign completed.

    It compares the numbers of entries, because a clock may be set back. It also returns True if the latest entries are
    too many to show all of that time.
    """
    own = tx.trail.of_campaign(campaign.workspace_id, campaign.id, limit=_LATEST)
    completed = max((entry.number for entry in own if entry.state == CampaignStatus.COMPLETED), default=0)
    later = [entry for entry in tx.trail.of_workspace(campaign.workspace_id, limit=_LATEST) if entry.number > completed]
    return len(later) == _LATEST or any(entry.rule is TrailRule.OPERATOR and entry.reason == STOP for entry in later)


def record_opt_out(tx: Transaction, entry: Unsubscribe, *, actor: str) -> None:
    """Record that a number came onto the register, or is stopped on more channels."""
    _of_number(
        tx, entry, TrailStepKind.OPTED_OUT, state=entry.scope, reason=entry.source, actor=actor, now=entry.created_at
    )


def record_opt_in(tx: Transaction, entry: Unsubscribe, *, actor: str, now: datetime) -> None:
    """Record that a number was taken off the register."""
    _of_number(tx, entry, TrailStepKind.OPTED_IN, actor=actor, now=now)


def record_hold(tx: Transaction, entry: Unsubscribe, *, now: datetime) -> None:
    """Record that a number is held until a person has read its message."""
    _of_number(tx, entry, TrailStepKind.HELD, reason=entry.source, now=now)


def record_webhook_disabled(tx: Transaction, workspace_id: str, webhook_id: str, *, reason: str, now: datetime) -> None:
    """Record that the engine disabled a webhook endpoint."""
    tx.trail.append(
        TrailEntry(
            at=now,
            workspace_id=workspace_id,
            what=TrailStepKind.WEBHOOK,
            rule=TrailRule.WEBHOOK,
            state="disabled",
            reason=reason,
            webhook_id=webhook_id,
        )
    )


def record_reply(tx: Transaction, message: InboundMessage) -> None:
    """Record a reply, and whether a person must read it."""
    tx.trail.append(
        TrailEntry(
            at=message.received_at,
            workspace_id=message.workspace_id,
            what=TrailStepKind.REPLIED,
            rule=TrailRule.PROVIDER_REPORT,
            reason=UNCLEAR if message.unclear else None,
            message_id=message.id,
            phone=message.from_number,
        )
    )


def _of_campaign(
    tx: Transaction,
    campaign: Campaign,
    *,
    what: TrailStepKind = TrailStepKind.CAMPAIGN,
    rule: TrailRule,
    reason: str | None = None,
    due_at: datetime | None = None,
    actor: str = ENGINE,
    now: datetime,
) -> None:
    tx.trail.append(
        TrailEntry(
            at=now,
            workspace_id=campaign.workspace_id,
            what=what,
            rule=rule,
            state=campaign.status.value,
            reason=reason,
            campaign_id=campaign.id,
            due_at=due_at,
            actor=_actor(actor),
        )
    )


def _of_number(
    tx: Transaction,
    entry: Unsubscribe,
    what: TrailStepKind,
    *,
    state: str | None = None,
    reason: str | None = None,
    actor: str = ENGINE,
    now: datetime,
) -> None:
    tx.trail.append(
        TrailEntry(
            at=now,
            workspace_id=entry.workspace_id,
            what=what,
            rule=TrailRule.REGISTER,
            state=state,
            reason=reason,
            actor=_actor(actor),
            phone=entry.phone,
        )
    )


def _of_dispatch(
    dispatch: Dispatch, *, at: datetime, what: TrailStepKind, rule: TrailRule, state: str, reason: str | None
) -> TrailEntry:
    return TrailEntry(
        at=at,
        workspace_id=dispatch.workspace_id,
        what=what,
        rule=rule,
        state=state,
        reason=reason,
        campaign_id=dispatch.campaign_id,
        position=dispatch.position,
        call_id=dispatch.call_id,
        message_id=dispatch.message_id,
        dispatch_id=dispatch.id,
        step=dispatch.step,
        attempt=dispatch.attempt,
        leg=dispatch.leg,
    )


def _actor(actor: str) -> str | None:
    return None if actor == ENGINE else actor
