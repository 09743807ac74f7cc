"""Moving campaigns from state to state, by the one table, with all that a move carries along."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import CannotStart, ErrorDetail, IllegalTransition
from outreach.models.campaign import Campaign, PauseReason
from outreach.models.hours import BusinessHours, HolidayCalendar
from outreach.models.resources import Agent
from outreach.models.states import (
    CAMPAIGN_TRANSITIONS,
    TERMINAL_CAMPAIGN_STATUSES,
    CampaignAction,
    CampaignStatus,
    WorkspaceMode,
    WorkspaceStatus,
    next_campaign_status,
    operator_actions,
)
from outreach.operations.campaigns import trail
from outreach.operations.campaigns.setup import missing_account, unknown_placeholders
from outreach.operations.common import (
    campaign_of,
    campaign_unit,
    provider_of,
    record_audit,
    require_available,
    workspace_of,
)
from outreach.policy.holidays import closed_dates, extend_calendar
from outreach.policy.opening import next_open
from outreach.policy.readiness import missing_requirements
from outreach.working_set import Transaction

_TRUNK_BY_IDENTIFIER: Final = frozenset({"vapi", "elevenlabs"})
"""Providers that are told by which trunk to call by an identifier of theirs."""
_MAX_NAME_LENGTH: Final = 40
_MAX_NAMES: Final = 10


def move(
    tx: Transaction,
    campaign: Campaign,
    step: CampaignAction,
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
    tx.work.schedule(campaign_unit(moved), due_time(moved, now))
    trail.record_campaign_status(tx, moved, step, actor=actor, detail=detail or pause_reason, now=now)
    record_audit(
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
    unsendable_text: ErrorDetail | None = None,
    caller_id_problems: Sequence[ErrorDetail] = (),
) -> Campaign:
    """Start a ready campaign: it becomes active, or scheduled when its start is still ahead.

    One whose text has placeholders that nothing fills is refused, unless that is allowed, and one whose text suits
    none of its contacts, which somebody has found out before: `unsendable_text` says why. So
    it is with caller IDs that calls could not be placed from: `caller_id_problems`.

    Raises:
        NotFound: The workspace has no such campaign.
        WorkspaceUnavailable: The workspace may not work now.
        IllegalTransition: The campaign has been started before, or is over.
        CannotStart: It is a draft, or something else is in the way; everything is named.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    require_available(workspace_of(tx, workspace_id))
    if campaign.status is CampaignStatus.DRAFT:
        campaign = sync_setup_status(tx, campaign, now=now, actor=actor)
    if campaign.status not in {CampaignStatus.DRAFT, CampaignStatus.READY}:
        raise IllegalTransition("campaign", campaign.status, CampaignAction.START, operator_actions(campaign.status))
    found = start_obstacles(
        tx,
        campaign,
        now,
        allow_unknown_placeholders=allow_unknown_placeholders,
        unsendable_text=unsendable_text,
        caller_id_problems=caller_id_problems,
    )
    if found:
        raise CannotStart(found)
    step = CampaignAction.SCHEDULE if _start_is_ahead(campaign, now) else CampaignAction.START
    if campaign.holidays is not None:
        campaign = attrs.evolve(campaign, holidays=extend_calendar(campaign.holidays, now.year))
    return move(tx, campaign, step, now=now, actor=actor)


def setup_status(tx: Transaction, campaign: Campaign) -> CampaignStatus:
    """Return whether a campaign that has not started is ready or a draft, by what it and its agent are now."""
    return CampaignStatus.DRAFT if missing_setup(tx, campaign) else CampaignStatus.READY


def missing_setup(tx: Transaction, campaign: Campaign) -> tuple[ErrorDetail, ...]:
    """Return what a campaign lacks to be ready, by what it and its agent are now."""
    return missing_requirements(campaign, _agent_of(tx, campaign))


def sync_setup_status(tx: Transaction, campaign: Campaign, *, now: datetime, actor: str) -> Campaign:
    """Move a campaign between draft and ready, where it is not what it should be; return it as it is then."""
    status = setup_status(tx, campaign)
    if campaign.status is CampaignStatus.DRAFT and status is CampaignStatus.READY:
        return move(tx, campaign, CampaignAction.FINISH_SETUP, now=now, actor=actor)
    if campaign.status is CampaignStatus.READY and status is CampaignStatus.DRAFT:
        return move(tx, campaign, CampaignAction.REOPEN_SETUP, now=now, actor=actor)
    return campaign


def sync_setups_of_agent(tx: Transaction, agent: Agent, *, now: datetime, actor: str) -> None:
    """Move the campaigns of an agent that has changed between draft and ready, where they have not started."""
    not_started = {CampaignStatus.DRAFT, CampaignStatus.READY}
    for campaign in tx.campaigns.in_status(not_started, workspace_id=agent.workspace_id):
        if campaign.agent_id == agent.id:
            sync_setup_status(tx, campaign, now=now, actor=actor)


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
    return move(tx, campaign, CampaignAction.PAUSE, now=now, actor=actor, pause_reason=reason)


def resume(
    tx: Transaction,
    workspace_id: str,
    campaign_id: str,
    *,
    now: datetime,
    actor: str,
    caller_id_problems: Sequence[ErrorDetail] = (),
) -> Campaign:
    """Let a paused campaign go on: active, or scheduled when its start is still ahead.

    `caller_id_problems` is as in `start`.

    Raises:
        NotFound: The workspace has no such campaign.
        WorkspaceUnavailable: The workspace may not work now.
        IllegalTransition: The campaign is not paused.
        CannotStart: Something is in the way; everything is named.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    require_available(workspace_of(tx, workspace_id))
    ahead = campaign.started_at is None and _start_is_ahead(campaign, now)
    step = CampaignAction.RESUME_SCHEDULE if ahead else CampaignAction.RESUME
    next_campaign_status(campaign.status, step)
    _require_startable(tx, campaign, now, caller_id_problems)
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
    return move(tx, campaign, CampaignAction.CANCEL, now=now, actor=actor)


def unschedule(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, actor: str) -> Campaign:
    """Take a scheduled campaign back to ready.

    Raises:
        NotFound: The workspace has no such campaign.
        IllegalTransition: The campaign is not scheduled.
    """
    return move(tx, campaign_of(tx, workspace_id, campaign_id), CampaignAction.UNSCHEDULE, now=now, actor=actor)


def pause_all(tx: Transaction, workspace_id: str | None, *, now: datetime, actor: str) -> tuple[Campaign, ...]:
    """Pause every active and scheduled campaign of a workspace, or of all; return them."""
    running = tx.campaigns.in_status({CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}, workspace_id=workspace_id)
    return tuple(
        move(tx, campaign, CampaignAction.PAUSE, now=now, actor=actor, pause_reason="operator") for campaign in running
    )


def apply_schedule(
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
        return move(tx, campaign, CampaignAction.EXPIRE, now=now, actor="engine")
    if is_transition_due(campaign, now) and _may_work(tx, campaign):
        late = now - (campaign.scheduled_start_at or now)
        if late > grace:
            return move(tx, campaign, CampaignAction.PAUSE, now=now, actor="engine", pause_reason="missed_start")
        return move(tx, campaign, CampaignAction.START, now=now, actor="engine")
    return campaign


def is_transition_due(campaign: Campaign, now: datetime) -> bool:
    """Return whether the clock asks for a move: there is no need to write where it does not."""
    starts = campaign.status is CampaignStatus.SCHEDULED and not _start_is_ahead(campaign, now)
    return starts or _is_to_expire(campaign, now)


def next_check_at(tx: Transaction, campaign: Campaign, now: datetime) -> datetime | None:
    """Return when the clock asks for something next in a campaign that does not run; None for never.

    A start waits for the workspace to be allowed to work: whoever lets it has its campaigns looked at.
    """
    if campaign.status is CampaignStatus.SCHEDULED and not _may_work(tx, campaign):
        return campaign.scheduled_expires_at
    return due_time(campaign, now)


def pause_without_agent(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime) -> Campaign | None:
    """Pause an active calling campaign whose agent may not call any more; return it, None when it is gone.

    It is resumed by hand, once the agent may call again: nobody is called by surprise.
    """
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None or campaign.status is not CampaignStatus.ACTIVE or campaign.channel != "call":
        return campaign
    lacks = missing_setup(tx, campaign)
    if not lacks:
        return campaign
    return move(
        tx,
        campaign,
        CampaignAction.PAUSE,
        now=now,
        actor="engine",
        pause_reason="agent_unavailable",
        detail=" ".join(lack.message for lack in lacks),
    )


def complete_if_done(tx: Transaction, campaign: Campaign, *, now: datetime) -> Campaign:
    """Complete an active campaign whose ledger has nothing open; return it as it is then."""
    if campaign.status is CampaignStatus.ACTIVE and campaign.counters.open == 0:
        return move(tx, campaign, CampaignAction.COMPLETE, now=now, actor="engine")
    return campaign


def _may_work(tx: Transaction, campaign: Campaign) -> bool:
    return workspace_of(tx, campaign.workspace_id).status is WorkspaceStatus.ACTIVE


def _is_to_expire(campaign: Campaign, now: datetime) -> bool:
    expiry = campaign.scheduled_expires_at
    return expiry is not None and now >= expiry and (campaign.status, CampaignAction.EXPIRE) in CAMPAIGN_TRANSITIONS


def _start_is_ahead(campaign: Campaign, now: datetime) -> bool:
    start_at = campaign.scheduled_start_at
    return campaign.schedule_type == "scheduled" and start_at is not None and now < start_at


def start_obstacles(
    tx: Transaction,
    campaign: Campaign,
    now: datetime,
    *,
    allow_unknown_placeholders: bool = False,
    unsendable_text: ErrorDetail | None = None,
    caller_id_problems: Sequence[ErrorDetail] = (),
) -> tuple[ErrorDetail, ...]:
    """Return everything that is in the way of a campaign's first start: the field that says it, and a sentence.

    See `start` for the arguments.
    """
    lacks = missing_setup(tx, campaign)
    # What a draft has no text for suits nobody either, which tells nothing more.
    misfit = () if unsendable_text is None or lacks else (unsendable_text,)
    unknown = () if allow_unknown_placeholders else unknown_placeholders(tx, campaign)
    return (*lacks, *misfit, *_blanks(unknown), *_of_its_time_and_provider(tx, campaign, now), *caller_id_problems)


def _of_its_time_and_provider(tx: Transaction, campaign: Campaign, now: datetime) -> list[ErrorDetail]:
    found = []
    if campaign.scheduled_expires_at is not None and now >= campaign.scheduled_expires_at:
        found.append(ErrorDetail("scheduled_expires_at", "Its scheduled_expires_at has passed."))
    if campaign.business_hours is not None and _never_opens(campaign.business_hours, campaign.holidays, now):
        found.append(ErrorDetail("business_hours", "Its business hours have no opening within a year."))
    provider = provider_of(tx, campaign)
    workspace = workspace_of(tx, campaign.workspace_id)
    if provider is not None:
        lack = missing_account(tx, workspace, provider)
        found.extend([lack] if lack is not None else [])
    if provider is not None and campaign.channel == "call" and workspace.mode is WorkspaceMode.LIVE:
        found.extend(_caller_obstacles(tx, campaign, provider))
    return found


def _blanks(unknown: Sequence[str]) -> Sequence[ErrorDetail]:
    """Return what is in the way where nothing fills some placeholders."""
    if not unknown:
        return ()
    names = ", ".join(f"{{{{{name[:_MAX_NAME_LENGTH]}}}}}" for name in unknown[:_MAX_NAMES])
    more = f" and {len(unknown) - _MAX_NAMES} more" if len(unknown) > _MAX_NAMES else ""
    return (ErrorDetail("placeholders", f"Nothing fills {names}{more}: a blank would be sent in its place."),)


def _require_startable(
    tx: Transaction, campaign: Campaign, now: datetime, caller_id_problems: Sequence[ErrorDetail]
) -> None:
    found = [*missing_setup(tx, campaign), *_of_its_time_and_provider(tx, campaign, now), *caller_id_problems]
    if found:
        raise CannotStart(found)


def _caller_obstacles(tx: Transaction, campaign: Campaign, provider: str) -> list[ErrorDetail]:
    """Return why calls would show another number than the ledger names, or none."""
    found = []
    trunk = tx.trunks.get(campaign.workspace_id, campaign.trunk_id) if campaign.trunk_id else None
    if trunk is not None and trunk.provider_trunk_id is None and provider in _TRUNK_BY_IDENTIFIER:
        found.append(
            ErrorDetail(
                "trunk_id",
                f"Its trunk {trunk.name!r} has no identifier at {provider}, which knows it by nothing else.",
            )
        )
    for index, entry in enumerate((campaign.cli_group or ()) if campaign.cli_mode == "group" else ()):
        number = tx.numbers.get(campaign.workspace_id, entry.number_id)
        if number is not None and number.phone != entry.phone:
            said = f"The number {number.id} of its caller-ID group is {number.phone}, not {entry.phone}."
        elif number is None and tx.numbers.by_phone(campaign.workspace_id, entry.phone) is None:
            said = f"{entry.phone} of its caller-ID group is no number of the workspace: add it first."
        else:
            continue
        found.append(ErrorDetail(f"cli_group_config[{index}]", said))
    return found


def _agent_of(tx: Transaction, campaign: Campaign) -> Agent | None:
    return tx.agents.get(campaign.workspace_id, campaign.agent_id) if campaign.agent_id else None


def _never_opens(hours: BusinessHours, holidays: HolidayCalendar | None, now: datetime) -> bool:
    dates = closed_dates(holidays) if holidays else frozenset()
    return next_open(hours, now, closed_dates=dates) is None
