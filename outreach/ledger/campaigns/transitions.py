"""Campaign status changes, with what each needs (templates, account) and what it changes (times, feed, trail)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.core.clock import is_zone
from outreach.errors import AccountMissing, AwaitsApproval, CannotStart, Conflict, IllegalTransition, Problem
from outreach.ledger.campaigns import trail
from outreach.ledger.campaigns.approvals import approval_of
from outreach.ledger.campaigns.recipients import steps_of
from outreach.ledger.common import (
    caller_of,
    campaign_of,
    campaign_unit,
    provider_of,
    record_audit,
    require_available,
    settings_of,
    workspace_of,
)
from outreach.ledger.schedules import is_start_missed, record_withdrawn
from outreach.models.approval import PricedRevision
from outreach.models.base import CARRIERS
from outreach.models.campaign import Campaign, PauseReason
from outreach.models.resources import Agent
from outreach.models.schedule import Occurrence, OccurrenceState
from outreach.models.settings import BusinessHours, HolidayCalendar, SmsSettings
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
from outreach.models.text_warning import TextWarning
from outreach.models.workspace import Workspace
from outreach.providers.registry import Adapters
from outreach.rules.holidays import closed_dates, extend_calendar
from outreach.rules.numbering import person_key
from outreach.rules.opening import next_open
from outreach.rules.phones import is_service, normalise_single
from outreach.rules.readiness import (
    CampaignTexts,
    approval_reason,
    is_person,
    limits_starts,
    missing_requirements,
    wording_warnings,
)
from outreach.rules.rendering import (
    CONTACT_FIELDS,
    expected_names,
    field_columns,
    footer_warnings,
    template_of,
    text_warnings,
    unfilled,
)
from outreach.rules.schedules import MISSED
from outreach.rules.segments import name_spellings
from outreach.storage.unit_of_work import Transaction


def templates_of(tx: Transaction, campaign: Campaign) -> Sequence[str]:
    """Return the texts of an SMS campaign in order; none for a calling campaign."""
    if campaign.channel == "call":
        return ()
    steps = steps_of(tx, campaign)
    texts = (campaign.body,) if steps is None else tuple(step.body for step in steps if step.kind == "send")
    return tuple(template_of(campaign, text) for text in texts)


def texts_of(tx: Transaction, campaign: Campaign, settings: SmsSettings | None = None) -> CampaignTexts:
    """Return what a campaign sends, with the settings that decide whether it can be sent; None for the present ones."""
    if settings is None:
        settings = settings_of(tx, campaign.workspace_id)
    return CampaignTexts(
        templates=templates_of(tx, campaign),
        footer=settings.footer,
        max_segments=settings.max_segments,
        replaces=campaign.replace_characters,
    )


def unknown_placeholders(tx: Transaction, campaign: Campaign) -> tuple[str, ...]:
    """Return the placeholders without a fallback that nothing fills, each once.

    A calling campaign has its agent's placeholders. The result is empty if the contacts' variables are unknown.
    """
    if campaign.variable_names is None:
        return ()
    known = _names_with_values(tx, campaign)
    if campaign.channel == "call":
        spellings = {spelling for name in known for spelling in name_spellings(name)}
        expected = expected_names(caller_of(tx, campaign))
        return tuple(name for name in expected if spellings.isdisjoint(name_spellings(name)))
    found = (name for template in templates_of(tx, campaign) for name in unfilled(template, known))
    return tuple(dict.fromkeys(found))


def find_text_warnings(tx: Transaction, campaign: Campaign) -> tuple[TextWarning, ...]:
    """Return the parts of a campaign's texts that are most likely meant otherwise, and are sent as they are."""
    templates, names = templates_of(tx, campaign), _names_with_values(tx, campaign)
    found = [one for template in templates for one in text_warnings(template, names)]
    settings = settings_of(tx, campaign.workspace_id)
    if templates and "{{" in settings.footer_text:
        found += footer_warnings(settings.footer or "")
    return tuple({one.written: one for one in found}.values())


def _names_with_values(tx: Transaction, campaign: Campaign) -> Sequence[str]:
    declared = settings_of(tx, campaign.workspace_id).custom_variables
    return (*CONTACT_FIELDS, *(campaign.variable_names or ()), *field_columns(campaign), *declared)


def start_warnings(tx: Transaction, campaign: Campaign) -> tuple[Problem, ...]:
    """Return what does not prevent a start, but is most likely a mistake."""
    workspace = workspace_of(tx, campaign.workspace_id)
    # What a sandbox only warns of prevents the start of a live campaign.
    senders = sender_problems(tx, campaign) if workspace.mode is WorkspaceMode.SANDBOX else ()
    found = [*senders, *_holiday_warnings(campaign)]
    if campaign.channel == "call":
        return tuple(found)
    footer = settings_of(tx, campaign.workspace_id).footer
    return (*found, *wording_warnings(templates_of(tx, campaign), footer, campaign.from_number))


def _holiday_warnings(campaign: Campaign) -> Sequence[Problem]:
    """Return a warning if holidays are days of UTC because the campaign has no time zone."""
    if campaign.business_hours is not None or campaign.holidays is None or not closed_dates(campaign.holidays):
        return ()
    return (Problem(path="holidays", message="Its holidays are days of UTC: set the time zone of its business hours."),)


def sender_problems(tx: Transaction, campaign: Campaign) -> Sequence[Problem]:
    """Return which numbers a campaign cannot send or call from, such as those that are not its workspace's.

    Names and short codes are not looked up.
    """
    if campaign.channel == "call":
        return _caller_id_problems(tx, campaign)
    region = workspace_of(tx, campaign.workspace_id).default_region
    found = []
    for index, sender in enumerate(campaign.senders):
        words = _sender_problem(tx, campaign, sender, normalise_single(sender, region))
        if words is not None:
            path = f"from_numbers[{index}]" if campaign.from_numbers else "from_number"
            found.append(Problem(path=path, message=words))
    return found


def _sender_problem(tx: Transaction, campaign: Campaign, sender: str, phone: str | None) -> str | None:
    """Return why messages cannot come from a sender as a campaign says; None if they can."""
    if is_service(sender):
        # An adapter of one's own may name its senders alike.
        known = campaign.carrier if campaign.carrier in CARRIERS else None
        if known is None or is_service(sender, known):
            return None
        words = "name a number, or several, of the workspace."
        return f"Its sender {sender} is no Messaging Service of {known.capitalize()}: {words}"
    if phone is None:
        return f"{sender} of its sender pool is no phone number." if campaign.from_numbers else None
    number = tx.numbers.of_line(campaign.workspace_id, phone)
    if number is None:
        return f"Its sending number {phone} is not a number of the workspace: add it, or send from one that is."
    if campaign.from_numbers and number.carrier is not None and number.carrier != campaign.carrier:
        carrier = number.carrier.capitalize()
        return f"{phone} of its sender pool is a number at {carrier}, not at the campaign's carrier: leave it out."
    return None


def _caller_id_problems(tx: Transaction, campaign: Campaign) -> Sequence[Problem]:
    """Return why calls would show another number than the ledger names."""
    found = []
    for index, entry in enumerate((campaign.cli_group or ()) if campaign.cli_mode == "group" else ()):
        number = tx.numbers.get(campaign.workspace_id, entry.number_id)
        if number is not None and person_key(number.phone) != person_key(entry.phone):
            message = f"The number {number.id} of its caller-ID group is {number.phone}, not {entry.phone}."
        elif number is None and tx.numbers.of_line(campaign.workspace_id, entry.phone) is None:
            message = f"{entry.phone} of its caller-ID group is not a number of the workspace: add it first."
        else:
            continue
        found.append(Problem(path=f"cli_group_config[{index}]", message=message))
    return found


def missing_account(tx: Transaction, workspace: Workspace, provider: str) -> Problem | None:
    """Return the error if a workspace has no account for a provider, or None."""
    if workspace.mode is WorkspaceMode.SANDBOX:
        return None
    if provider == "simulator":
        return Problem(
            path="agent.provider",
            message="The workspace is live and the simulator is for sandboxes only: use an agent with a real voice "
            "provider.",
        )
    if tx.accounts.of_provider(workspace.id, provider) is None:
        return Problem(path=f"account.{provider}", message=f"The workspace is live and has no account at {provider}.")
    return None


def not_installed(workspace: Workspace, provider: str, adapters: Adapters) -> Problem | None:
    """Return that the adapter of a live workspace's provider is not installed here; None if it is."""
    if workspace.mode is WorkspaceMode.SANDBOX or provider == "simulator" or adapters.kind(provider) is not None:
        return None
    return Problem(path=f"account.{provider}", message=adapters.missing(provider))


def require_account(tx: Transaction, workspace: Workspace, provider: str, adapters: Adapters) -> None:
    """Raise `AccountMissing`, with the reason, if a workspace cannot send through a provider."""
    problem = not_installed(workspace, provider, adapters) or missing_account(tx, workspace, provider)
    if problem is not None:
        connectable = adapters.kind(provider) is not None
        raise AccountMissing(problem.message, workspace_id=workspace.id, provider=provider, connectable=connectable)


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
    """Change a campaign's status and return the new campaign; raise `IllegalTransition` if the table forbids it."""
    status = next_campaign_status(campaign.status, step)
    moved = attrs.evolve(
        campaign,
        status=status,
        pause_reason=pause_reason if status is CampaignStatus.PAUSED else None,
        revision=campaign.revision + 1,
        updated_at=now,
        started_at=campaign.started_at or (now if status is CampaignStatus.ACTIVE else None),
        completed_at=now if status in TERMINAL_CAMPAIGN_STATUSES else None,
        # What works is never hidden from lists.
        archived_at=None if status in {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED} else campaign.archived_at,
    )
    tx.campaigns.update(moved)
    tx.work.schedule(campaign_unit(moved), due_time(moved, now))
    _record_move(tx, moved, step, actor=actor, detail=detail or pause_reason, now=now)
    return moved


def pause_again(tx: Transaction, campaign: Campaign, reason: PauseReason, *, now: datetime) -> None:
    """Give a paused campaign another reason, which a person has to look at before it is resumed."""
    paused = attrs.evolve(campaign, pause_reason=reason, revision=campaign.revision + 1, updated_at=now)
    tx.campaigns.update(paused)
    _record_move(tx, paused, CampaignAction.PAUSE, actor="engine", detail=reason, now=now)


def _record_move(
    tx: Transaction, moved: Campaign, step: CampaignAction, *, actor: str, detail: str | None, now: datetime
) -> None:
    trail.record_campaign_status(tx, moved, step, actor=actor, detail=detail, now=now)
    record_audit(tx, moved.workspace_id, f"campaign.{step}", moved.id, actor=actor, now=now, detail=detail)


def may_await_receipts(campaign: Campaign) -> bool:
    """Return whether contacts of a campaign may wait for a receipt, or will after their answer."""
    return campaign.channel == "sms" and campaign.counters.open > campaign.counters.pending


def due_time(campaign: Campaign, now: datetime) -> datetime | None:
    """Return when a dispatcher must look at a campaign next because of its status; None for never."""
    expiry = campaign.scheduled_expires_at
    match campaign.status:
        case CampaignStatus.ACTIVE:
            return now
        case CampaignStatus.SCHEDULED:
            start = campaign.scheduled_start_at or now
            return min(start, expiry) if expiry else start
        case CampaignStatus.PAUSED:
            # Waits for receipts end also while it is paused.
            return now if may_await_receipts(campaign) else expiry
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
    unsendable_text: Problem | None = None,
    caller_id_problems: Sequence[Problem] = (),
    priced: PricedRevision | None = None,
) -> Campaign:
    """Start a ready campaign: it becomes active, or scheduled if its start lies ahead.

    `unsendable_text` and `caller_id_problems` are obstacles, and `priced` the cost, that were found before this
    transaction.

    Raises:
        NotFound: The workspace has no such campaign.
        WorkspaceUnavailable: The workspace is not active.
        IllegalTransition: The campaign was started before, or has ended.
        CannotStart: It is a draft or has other obstacles; all are listed.
        AwaitsApproval: It needs the approval of a second person.
        Conflict: It may need that, and still gets contacts.
    """
    campaign, workspace = campaign_of(tx, workspace_id, campaign_id), workspace_of(tx, workspace_id)
    require_available(workspace)
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
    if is_person(actor) and limits_starts(workspace) and tx.campaigns.has_additions(workspace_id, campaign_id):
        raise Conflict("The campaign still gets contacts: start it once they are all there.")
    if approval_reason(workspace, contacts=campaign.counters.total, amount=None) is not None:
        _require_approval(tx, campaign, actor=actor, priced=priced)
    step = CampaignAction.SCHEDULE if _start_is_ahead(campaign, now) else CampaignAction.START
    if campaign.holidays is not None:
        campaign = attrs.evolve(campaign, holidays=extend_calendar(campaign.holidays, now.year))
    return move(tx, campaign, step, now=now, actor=actor)


def setup_status(tx: Transaction, campaign: Campaign) -> CampaignStatus:
    """Return whether a campaign that has not started is ready or a draft."""
    return CampaignStatus.DRAFT if missing_setup(tx, campaign) else CampaignStatus.READY


def missing_setup(tx: Transaction, campaign: Campaign) -> tuple[Problem, ...]:
    """Return what a campaign still needs before it is ready."""
    return missing_requirements(campaign, caller_of(tx, campaign))


def sync_setup_status(tx: Transaction, campaign: Campaign, *, now: datetime, actor: str) -> Campaign:
    """Move a campaign between draft and ready if its setup has changed; return the current campaign."""
    status = setup_status(tx, campaign)
    if campaign.status is CampaignStatus.DRAFT and status is CampaignStatus.READY:
        return move(tx, campaign, CampaignAction.FINISH_SETUP, now=now, actor=actor)
    if campaign.status is CampaignStatus.READY and status is CampaignStatus.DRAFT:
        return move(tx, campaign, CampaignAction.REOPEN_SETUP, now=now, actor=actor)
    return campaign


def sync_setups_of_agent(tx: Transaction, agent: Agent, *, now: datetime, actor: str) -> None:
    """Move an agent's campaigns that have not started between draft and ready."""
    not_started = {CampaignStatus.DRAFT, CampaignStatus.READY}
    for campaign in tx.campaigns.in_status(not_started, workspace_id=agent.workspace_id):
        if campaign.agent_id == agent.id:
            sync_setup_status(tx, campaign, now=now, actor=actor)


def pause(
    tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, actor: str, reason: PauseReason = "operator"
) -> Campaign:
    """Pause an active or scheduled campaign (a paused one stays), or raise `NotFound` or `IllegalTransition`."""
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
    caller_id_problems: Sequence[Problem] = (),
) -> Campaign:
    """Resume a paused campaign: it becomes active, or scheduled if its start lies ahead; raises as `start` does."""
    campaign = campaign_of(tx, workspace_id, campaign_id)
    require_available(workspace_of(tx, workspace_id))
    # Of one that has started the start lies ahead again if the clock was set back.
    step = CampaignAction.RESUME_SCHEDULE if _start_is_ahead(campaign, now) else CampaignAction.RESUME
    next_campaign_status(campaign.status, step)
    _require_startable(tx, campaign, now, caller_id_problems)
    return move(tx, campaign, step, now=now, actor=actor)


def cancel(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, actor: str) -> Campaign:
    """Cancel a campaign for good (a cancelled one stays), or raise `NotFound` or `IllegalTransition`."""
    campaign = campaign_of(tx, workspace_id, campaign_id)
    if campaign.status is CampaignStatus.CANCELLED:
        return campaign
    return move(tx, campaign, CampaignAction.CANCEL, now=now, actor=actor)


def withdraw_run(
    tx: Transaction,
    run: Occurrence,
    campaign: Campaign,
    *,
    state: OccurrenceState,
    why: Problem,
    now: datetime,
    actor: str,
) -> Campaign:
    """Cancel the campaign of a schedule's run that has not begun, and record why; return the campaign."""
    record_withdrawn(tx, run, state=state, why=why, now=now)
    return move(tx, campaign, CampaignAction.CANCEL, now=now, actor=actor, detail=why.code)


def unschedule(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, actor: str) -> Campaign:
    """Return a scheduled campaign to ready, or raise `NotFound` or `IllegalTransition`."""
    campaign, step = campaign_of(tx, workspace_id, campaign_id), CampaignAction.UNSCHEDULE
    if step not in operator_actions(campaign.status):
        raise IllegalTransition("campaign", campaign.status, step, operator_actions(campaign.status))
    return move(tx, campaign, step, now=now, actor=actor)


def pause_all(tx: Transaction, workspace_id: str | None, *, now: datetime, actor: str) -> tuple[Campaign, ...]:
    """Pause and return every active and scheduled campaign of a workspace, or of all workspaces.

    No campaign that has completed before is reopened (`may_reopen`).
    """
    stopped = tx.workspaces.list() if workspace_id is None else [workspace_of(tx, workspace_id)]
    for workspace in stopped:
        trail.record_stop(tx, workspace, actor=actor, now=now)
    running = tx.campaigns.in_status({CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}, workspace_id=workspace_id)
    return tuple(
        move(tx, campaign, CampaignAction.PAUSE, now=now, actor=actor, pause_reason="operator") for campaign in running
    )


def apply_schedule(
    tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, grace: timedelta
) -> Campaign | None:
    """Make the status change that is due by time, and return the campaign; None if it does not exist.

    Expiry goes first. A start missed by more than `grace` pauses the campaign; the policy of its schedule decides on
    that of a run. While the workspace is not active nothing starts, and the decision waits until it is active again.
    """
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None:
        return None
    if has_expired(campaign, now):
        return move(tx, campaign, CampaignAction.EXPIRE, now=now, actor="engine")
    if is_transition_due(campaign, now) and _is_workspace_active(tx, campaign):
        run = tx.occurrences.of_run(workspace_id, campaign_id)
        # A person may have given it another time.
        if run is not None and run.at == campaign.scheduled_start_at:
            if is_start_missed(tx, run, now):
                return withdraw_run(tx, run, campaign, state="missed", why=MISSED, now=now, actor="engine")
        elif now - (campaign.scheduled_start_at or now) > grace:
            return move(tx, campaign, CampaignAction.PAUSE, now=now, actor="engine", pause_reason="missed_start")
        return move(tx, campaign, CampaignAction.START, now=now, actor="engine")
    return campaign


def is_transition_due(campaign: Campaign, now: datetime) -> bool:
    """Return whether a status change is due by time."""
    starts = campaign.status is CampaignStatus.SCHEDULED and not _start_is_ahead(campaign, now)
    return starts or has_expired(campaign, now)


def next_check_at(tx: Transaction, campaign: Campaign, now: datetime) -> datetime | None:
    """Return when a campaign that is not running next has a status change due; None for never.

    A start in an inactive workspace has no time: activating the workspace wakes its campaigns.
    """
    if campaign.status is CampaignStatus.PAUSED:
        return campaign.scheduled_expires_at
    if campaign.status is CampaignStatus.SCHEDULED and not _is_workspace_active(tx, campaign):
        return campaign.scheduled_expires_at
    return due_time(campaign, now)


def note_next_check(tx: Transaction, campaign: Campaign, due_at: datetime | None, now: datetime) -> None:
    """Keep workers from reading a campaign before it is due, unless it has changed meanwhile."""
    known = tx.campaigns.get(campaign.workspace_id, campaign.id)
    work = tx.work.get(campaign_unit(campaign))
    unchanged = known is not None and known.revision == campaign.revision
    if unchanged and work is not None and work.due_at is not None and work.due_at <= now:
        tx.work.schedule(campaign_unit(campaign), due_at)


def pause_without_agent(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime) -> Campaign | None:
    """Pause an active calling campaign whose agent may no longer call; return it, None if it does not exist.

    An operator resumes it by hand.
    """
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None or campaign.status is not CampaignStatus.ACTIVE or campaign.channel != "call":
        return campaign
    missing = missing_setup(tx, campaign)
    if not missing:
        return campaign
    return move(
        tx,
        campaign,
        CampaignAction.PAUSE,
        now=now,
        actor="engine",
        pause_reason="agent_unavailable",
        detail=" ".join(problem.message for problem in missing),
    )


def complete_if_done(tx: Transaction, campaign: Campaign, *, now: datetime) -> Campaign:
    """Complete an active campaign without open recipients, unless it stays open; return the current campaign.

    One that gets contacts, slice by slice, is not complete before the last slice.
    """
    done = campaign.status is CampaignStatus.ACTIVE and campaign.counters.open == 0 and not campaign.stay_open
    if done and not tx.campaigns.has_additions(campaign.workspace_id, campaign.id):
        return move(tx, campaign, CampaignAction.COMPLETE, now=now, actor="engine")
    return campaign


def may_reopen(tx: Transaction, campaign: Campaign, *, within: timedelta, now: datetime) -> bool:
    """Return whether a contact that was not reached after all may open a completed campaign again.

    Not one that completed longer ago than `within`, or before everything was paused, has reached its expiry, or was
    erased or moved to an archive.
    """
    expiry = campaign.scheduled_expires_at
    return (
        campaign.status is CampaignStatus.COMPLETED
        and campaign.completed_at is not None
        and now < campaign.completed_at + within
        and (expiry is None or now < expiry)
        and campaign.erased_at is None
        and tx.archives.of_campaign(campaign.workspace_id, campaign.id) is None
        and not trail.was_stopped_since_completion(tx, campaign)
    )


def reopen_if_open(
    tx: Transaction, campaign: Campaign, *, now: datetime, detail: str = "rate_limited", actor: str = "engine"
) -> Campaign:
    """Make a completed campaign active that has an open recipient again; return the current campaign."""
    if campaign.status is CampaignStatus.COMPLETED and campaign.counters.open:
        return move(tx, campaign, CampaignAction.REOPEN, now=now, actor=actor, detail=detail)
    return campaign


def _is_workspace_active(tx: Transaction, campaign: Campaign) -> bool:
    return workspace_of(tx, campaign.workspace_id).status is WorkspaceStatus.ACTIVE


def has_expired(campaign: Campaign, now: datetime) -> bool:
    """Return whether a started campaign has reached its expiry, whether or not it is marked as expired yet."""
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
    unsendable_text: Problem | None = None,
    caller_id_problems: Sequence[Problem] = (),
) -> tuple[Problem, ...]:
    """Return every obstacle to a campaign's first start. See `start` for the arguments."""
    missing = missing_setup(tx, campaign)
    # A draft without a text is reported as such, not as having an unsendable text.
    unsendable = () if unsendable_text is None or missing else (unsendable_text,)
    unknown = () if allow_unknown_placeholders else unknown_placeholders(tx, campaign)
    return (
        *missing,
        *unsendable,
        *_placeholder_problems(unknown),
        *_setting_problems(tx, campaign, now),
        *caller_id_problems,
    )


def _setting_problems(tx: Transaction, campaign: Campaign, now: datetime) -> list[Problem]:
    found = []
    if campaign.scheduled_expires_at is not None and now >= campaign.scheduled_expires_at:
        found.append(Problem(path="scheduled_expires_at", message="Its scheduled_expires_at has passed."))
    hours = campaign.business_hours
    if hours is not None and not is_zone(hours.timezone):
        words = f"Its time zone {hours.timezone[:_MAX_NAME_LENGTH]!r} is unknown on this machine: install newer tzdata."
        found.append(Problem(path="business_hours", message=words))
    elif hours is not None and _never_opens(hours, campaign.holidays, now):
        found.append(Problem(path="business_hours", message="Its business hours have no opening within a year."))
    provider = provider_of(tx, campaign)
    workspace = workspace_of(tx, campaign.workspace_id)
    if provider is not None:
        problem = missing_account(tx, workspace, provider)
        found.extend([problem] if problem is not None else [])
    if workspace.mode is WorkspaceMode.LIVE and (provider is not None or campaign.channel == "sms"):
        found.extend(sender_problems(tx, campaign))
    return found


def _placeholder_problems(unknown: Sequence[str]) -> Sequence[Problem]:
    if not unknown:
        return ()
    names = ", ".join(f"{{{{{name[:_MAX_NAME_LENGTH]}}}}}" for name in unknown[:_MAX_NAMES])
    more = f" and {len(unknown) - _MAX_NAMES} more" if len(unknown) > _MAX_NAMES else ""
    return (Problem(path="placeholders", message=f"No value for {names}{more}: a blank would be sent in its place."),)


def _require_startable(
    tx: Transaction, campaign: Campaign, now: datetime, caller_id_problems: Sequence[Problem]
) -> None:
    found = [*missing_setup(tx, campaign), *_setting_problems(tx, campaign, now), *caller_id_problems]
    if found:
        raise CannotStart(found)


def _never_opens(hours: BusinessHours, holidays: HolidayCalendar | None, now: datetime) -> bool:
    dates = closed_dates(holidays) if holidays else frozenset()
    return next_open(hours, now, closed_dates=dates) is None


def _require_approval(tx: Transaction, campaign: Campaign, *, actor: str, priced: PricedRevision | None) -> None:
    """Raise `AwaitsApproval` if a person starts a campaign that needs another person's approval and has none."""
    found = approval_of(tx, campaign, priced)
    if is_person(actor) and found.is_missing:
        raise AwaitsApproval(
            "Starts like this one need approval by a second person: another manager or owner than the one who changed "
            "the campaign last opens its check and approves it."
        )
    if found.approval is None:
        # What is left belongs to an earlier start.
        tx.approvals.delete(campaign.workspace_id, campaign.id)
