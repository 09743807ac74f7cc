"""Moving campaigns from state to state, by the one table, with all that a move carries along."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import CannotStart, ErrorDetail, IllegalTransition
from outreach.models.business_hours import BusinessHours
from outreach.models.campaign import Campaign, PauseReason
from outreach.models.directory import Agent
from outreach.models.holidays import HolidayCalendar
from outreach.models.states import (
    CAMPAIGN_TRANSITIONS,
    TERMINAL_CAMPAIGN_STATUSES,
    CampaignMove,
    CampaignStatus,
    WorkspaceMode,
    WorkspaceStatus,
    next_campaign_status,
    operator_moves,
)
from outreach.models.workspace import Workspace
from outreach.operations import trail
from outreach.operations.accounts import lacking
from outreach.operations.common import campaign_of, campaign_unit, note, require_available, workspace_of
from outreach.operations.templates import unknown_placeholders
from outreach.policy.holidays import closed_dates, refill
from outreach.policy.opening import next_open
from outreach.policy.readiness import calling_obstacles, missing
from outreach.protocols.storage import Transaction

_LONGEST_NAME: Final = 40
_MOST_NAMES: Final = 10


def move(
    tx: Transaction,
    campaign: Campaign,
    step: CampaignMove,
    *,
    now: datetime,
    actor: str,
    pause_reason: PauseReason | None = None,
    detail: str | None = None,
) -> Campaign:
    """Move a campaign and return it as it is then: times, work feed and audit trail included.

    Raises:
        IllegalTransition: The table has no such move.
    """
    status = next_campaign_status(campaign.status, step)
    moved = attrs.evolve(
        campaign,
        status=status,
        pause_reason=pause_reason if status is CampaignStatus.PAUSED else None,
        revision=campaign.revision + 1,
        updated_at=now,
        started_at=campaign.started_at or (now if status is CampaignStatus.ACTIVE else None),
        completed_at=now if status in TERMINAL_CAMPAIGN_STATUSES else None,
    )
    tx.campaigns.update(moved)
    tx.work.touch(campaign_unit(moved), due_time(moved, now))
    trail.campaign_moved(tx, moved, step, actor=actor, detail=detail or pause_reason, now=now)
    note(
        tx,
        now=now,
        workspace_id=moved.workspace_id,
        actor=actor,
        action=f"campaign.{step}",
        subject=moved.id,
        detail=detail or pause_reason,
    )
    return moved


def due_time(campaign: Campaign, now: datetime) -> datetime | None:
    """Return when a dispatcher must look at a campaign next because of its state alone; None for never."""
    expiry = campaign.scheduled_expires_at
    match campaign.status:
        case CampaignStatus.ACTIVE:
            return now
        case CampaignStatus.SCHEDULED:
            start = campaign.scheduled_start_at or now
            return min(start, expiry) if expiry else start
        case CampaignStatus.PAUSED:
            return expiry
        case CampaignStatus.CANCELLED | CampaignStatus.EXPIRED:
            return now if campaign.counters.open else None
        case _:
            return None


def start(
    tx: Transaction,
    workspace_id: str,
    campaign_id: str,
    *,
    now: datetime,
    actor: str,
    allow_unknown_placeholders: bool = False,
    suits_nobody: ErrorDetail | None = None,
) -> Campaign:
    """Start a ready campaign: it becomes active, or scheduled when its start is still ahead.

    One whose text has placeholders that nothing fills is refused, unless that is allowed, and one whose text suits
    none of its contacts, which somebody has found out before: `suits_nobody` says why.

    Raises:
        NotFound: The workspace has no such campaign.
        WorkspaceUnavailable: The workspace may not work now.
        IllegalTransition: The campaign has been started before, or is over.
        CannotStart: Something is in the way; every reason is named.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    require_available(workspace_of(tx, workspace_id))
    ahead = _start_is_ahead(campaign, now)
    step = CampaignMove.SCHEDULE if ahead else CampaignMove.START
    unknown = () if allow_unknown_placeholders else unknown_placeholders(tx, campaign)
    if campaign.status is CampaignStatus.DRAFT:
        lacks = missing(campaign, _agent_of(tx, campaign))
        if lacks:
            raise CannotStart([*lacks, *_blanks(unknown)])
        campaign = move(tx, campaign, CampaignMove.FINISH_SETUP, now=now, actor=actor)
    if campaign.status is not CampaignStatus.READY:
        raise IllegalTransition("campaign", campaign.status, CampaignMove.START, operator_moves(campaign.status))
    _require_startable(tx, campaign, now, unknown=unknown, suits_nobody=suits_nobody)
    if campaign.holidays is not None:
        campaign = attrs.evolve(campaign, holidays=refill(campaign.holidays, now.year))
    return move(tx, campaign, step, now=now, actor=actor)


def pause(
    tx: Transaction,
    workspace_id: str,
    campaign_id: str,
    *,
    now: datetime,
    actor: str,
    reason: PauseReason = "operator",
) -> Campaign:
    """Pause an active or scheduled campaign; one that is paused already stays as it is.

    Raises:
        NotFound: The workspace has no such campaign.
        IllegalTransition: The campaign cannot be paused.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    if campaign.status is CampaignStatus.PAUSED:
        return campaign
    return move(tx, campaign, CampaignMove.PAUSE, now=now, actor=actor, pause_reason=reason)


def resume(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, actor: str) -> Campaign:
    """Let a paused campaign go on: active, or scheduled when its start is still ahead.

    Raises:
        NotFound: The workspace has no such campaign.
        WorkspaceUnavailable: The workspace may not work now.
        IllegalTransition: The campaign is not paused.
        CannotStart: Something is in the way; every reason is named.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    require_available(workspace_of(tx, workspace_id))
    ahead = campaign.started_at is None and _start_is_ahead(campaign, now)
    step = CampaignMove.RESUME_SCHEDULE if ahead else CampaignMove.RESUME
    next_campaign_status(campaign.status, step)
    _require_startable(tx, campaign, now)
    return move(tx, campaign, step, now=now, actor=actor)


def cancel(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, actor: str) -> Campaign:
    """Cancel a campaign for good; one that is cancelled already stays as it is.

    Raises:
        NotFound: The workspace has no such campaign.
        IllegalTransition: The campaign has completed or expired.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    if campaign.status is CampaignStatus.CANCELLED:
        return campaign
    return move(tx, campaign, CampaignMove.CANCEL, now=now, actor=actor)


def unschedule(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, actor: str) -> Campaign:
    """Take a scheduled campaign back to ready.

    Raises:
        NotFound: The workspace has no such campaign.
        IllegalTransition: The campaign is not scheduled.
    """
    return move(tx, campaign_of(tx, workspace_id, campaign_id), CampaignMove.UNSCHEDULE, now=now, actor=actor)


def pause_all(tx: Transaction, workspace_id: str | None, *, now: datetime, actor: str) -> tuple[Campaign, ...]:
    """Pause every active and scheduled campaign of a workspace, or of all; return them."""
    running = tx.campaigns.in_status({CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}, workspace_id=workspace_id)
    return tuple(
        move(tx, campaign, CampaignMove.PAUSE, now=now, actor=actor, pause_reason="operator") for campaign in running
    )


def advance(
    tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, grace: timedelta
) -> Campaign | None:
    """Make the moves that the clock asks for, and return the campaign; None when it is gone.

    An expiry that has passed goes first. A scheduled start that was missed by more than the grace pauses the
    campaign instead of sending by surprise. While the workspace may not work nothing starts, and no start is missed
    yet: whether it was is decided when the workspace may work again.
    """
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None:
        return None
    if _is_to_expire(campaign, now):
        return move(tx, campaign, CampaignMove.EXPIRE, now=now, actor="engine")
    if clock_asks(campaign, now) and _may_work(tx, campaign):
        late = now - (campaign.scheduled_start_at or now)
        if late > grace:
            return move(tx, campaign, CampaignMove.PAUSE, now=now, actor="engine", pause_reason="missed_start")
        return move(tx, campaign, CampaignMove.START, now=now, actor="engine")
    return campaign


def clock_asks(campaign: Campaign, now: datetime) -> bool:
    """Return whether the clock asks for a move: there is no need to write where it does not."""
    starts = campaign.status is CampaignStatus.SCHEDULED and not _start_is_ahead(campaign, now)
    return starts or _is_to_expire(campaign, now)


def look_again(tx: Transaction, campaign: Campaign, now: datetime) -> datetime | None:
    """Return when the clock asks for something next in a campaign that does not run; None for never.

    A start waits for the workspace to be allowed to work: whoever lets it has its campaigns looked at.
    """
    if campaign.status is CampaignStatus.SCHEDULED and not _may_work(tx, campaign):
        return campaign.scheduled_expires_at
    return due_time(campaign, now)


def hold_for_agent(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime) -> Campaign | None:
    """Pause an active calling campaign whose agent may not call any more; return it, None when it is gone.

    It is resumed by hand, once the agent may call again: nobody is called by surprise.
    """
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None or campaign.status is not CampaignStatus.ACTIVE or campaign.channel != "call":
        return campaign
    obstacles = _calling_obstacles(tx, campaign)
    if not obstacles:
        return campaign
    return move(
        tx,
        campaign,
        CampaignMove.PAUSE,
        now=now,
        actor="engine",
        pause_reason="agent_unavailable",
        detail=" ".join(obstacle.message for obstacle in obstacles),
    )


def complete_if_done(tx: Transaction, campaign: Campaign, *, now: datetime) -> Campaign:
    """Complete an active campaign whose ledger has nothing open; return it as it is then."""
    if campaign.status is CampaignStatus.ACTIVE and campaign.counters.open == 0:
        return move(tx, campaign, CampaignMove.COMPLETE, now=now, actor="engine")
    return campaign


def _may_work(tx: Transaction, campaign: Campaign) -> bool:
    return workspace_of(tx, campaign.workspace_id).status is WorkspaceStatus.ACTIVE


def _is_to_expire(campaign: Campaign, now: datetime) -> bool:
    expiry = campaign.scheduled_expires_at
    return expiry is not None and now >= expiry and (campaign.status, CampaignMove.EXPIRE) in CAMPAIGN_TRANSITIONS


def _start_is_ahead(campaign: Campaign, now: datetime) -> bool:
    start_at = campaign.scheduled_start_at
    return campaign.schedule_type == "scheduled" and start_at is not None and now < start_at


def _blanks(unknown: Sequence[str]) -> Sequence[ErrorDetail]:
    """Return what is in the way where nothing fills some placeholders."""
    if not unknown:
        return ()
    names = ", ".join(f"{{{{{name[:_LONGEST_NAME]}}}}}" for name in unknown[:_MOST_NAMES])
    more = f" and {len(unknown) - _MOST_NAMES} more" if len(unknown) > _MOST_NAMES else ""
    return (ErrorDetail("placeholders", f"Nothing fills {names}{more}: a blank would be sent in its place."),)


def _require_startable(
    tx: Transaction,
    campaign: Campaign,
    now: datetime,
    *,
    unknown: Sequence[str] = (),
    suits_nobody: ErrorDetail | None = None,
) -> None:
    details = [*([suits_nobody] if suits_nobody is not None else []), *_blanks(unknown)]
    if campaign.scheduled_expires_at is not None and now >= campaign.scheduled_expires_at:
        details.append(ErrorDetail("scheduled_expires_at", "Its scheduled_expires_at has passed."))
    if campaign.channel == "call":
        details.extend(_calling_obstacles(tx, campaign))
    if campaign.business_hours is not None and _never_opens(campaign.business_hours, campaign.holidays, now):
        details.append(ErrorDetail("business_hours_config", "Its business hours have no opening within a year."))
    workspace = workspace_of(tx, campaign.workspace_id)
    details.extend(_account_obstacles(tx, campaign, workspace))
    if details:
        raise CannotStart(details)


def _account_obstacles(tx: Transaction, campaign: Campaign, workspace: Workspace) -> list[ErrorDetail]:
    if workspace.mode is WorkspaceMode.SANDBOX:
        return []
    if campaign.channel == "sms":
        return (
            [ErrorDetail("sms_carrier", "It has no carrier (sms_carrier).")]
            if campaign.sms_carrier is None
            else lacking(tx, workspace, campaign.sms_carrier)
        )
    agent = _agent_of(tx, campaign)
    return lacking(tx, workspace, agent.provider) if agent is not None else []


def _calling_obstacles(tx: Transaction, campaign: Campaign) -> Sequence[ErrorDetail]:
    return calling_obstacles(_agent_of(tx, campaign))


def _agent_of(tx: Transaction, campaign: Campaign) -> Agent | None:
    return tx.agents.get(campaign.workspace_id, campaign.agent_id) if campaign.agent_id else None


def _never_opens(hours: BusinessHours, holidays: HolidayCalendar | None, now: datetime) -> bool:
    dates = closed_dates(holidays) if holidays else frozenset()
    return next_open(hours, now, closed_dates=dates) is None
