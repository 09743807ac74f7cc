"""The findings of a status that need a person, and their urgency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from outreach.core.clock import format_timestamp
from outreach.core.command_lines import pip_commands
from outreach.errors import Problem, Severity
from outreach.models.diagnosis import most_urgent_first
from outreach.models.status import EngineStatus, PausedCampaign
from outreach.rules.explanations import SAFE_RESUME_OPTIONS, STARTED_AGAIN

HEALTH: Final = "outreach-server healthcheck --ready"

BEHIND_SECONDS: Final = 60.0
"""A process that dispatches is behind when due work has waited for longer."""

LOW_BYTES: Final = 1024**3
FULL_BYTES: Final = 100 * 1024**2
"""A database needs room for its log, which grows during a backup."""


def find_problems(status: EngineStatus) -> Sequence[Problem]:
    """Return the findings that need a person, most urgent first."""
    of = (_of_sending, _of_disk, _of_accounts, _of_campaigns, _of_contacts)
    found = [finding for problems in of for finding in problems(status)]
    return most_urgent_first(found)


def _of_sending(status: EngineStatus) -> Iterator[Problem]:
    problem = status.dispatching.problem
    if problem is not None:
        # A database in which nothing is to be sent needs no process.
        urgent = status.active_campaigns or status.scheduled_campaigns or status.lag_seconds
        why, looks = problem.message, ["outreach-server status"]
        if problem.commands:
            why, looks = f"{why} Where a server runs, its log and /readyz say why it sends nothing.", [HEALTH]
        severity: Severity = "critical" if urgent else "warning"
        yield attrs.evolve(problem, code="no_dispatcher", severity=severity, message=why, looks=looks)
    elif status.lag_seconds > BEHIND_SECONDS:
        why = (
            f"What is due has waited for {status.lag_seconds:,.0f} s although a process dispatches: it has more to do "
            "than it can, or its database is slow. Its log and /readyz say more."
        )
        yield Problem(code="behind", severity="warning", message=why, looks=[HEALTH])


def _of_disk(status: EngineStatus) -> Iterator[Problem]:
    disk = status.disk
    if disk is not None and disk.free_bytes < LOW_BYTES:
        why = (
            f"Only {disk.free_bytes / 1024**2:,.0f} MB are free on the disk of {disk.path}. Make room: on a full disk "
            "nothing is sent. Old backups, exports, and databases that a restore or a compaction has replaced can be "
            "deleted; doctor says what else makes room."
        )
        severity: Severity = "critical" if disk.free_bytes < FULL_BYTES else "warning"
        yield Problem(code="disk_low", severity=severity, message=why, commands=["outreach-server doctor"])


def _of_accounts(status: EngineStatus) -> Iterator[Problem]:
    for problem in status.adapter_problems:
        looks = pip_commands("check") or ["outreach-server --version"]
        yield attrs.evolve(problem, code="adapter_not_usable", severity="warning", looks=looks)
    for account in status.accounts:
        connecting = f"outreach-server accounts connect {account.workspace_id} {account.provider}"
        connects = account.installed and not account.key_elsewhere
        yield Problem(
            code="account_not_usable",
            severity="warning",
            workspace_id=account.workspace_id,
            path=account.id,
            message=account.why,
            commands=[connecting] if connects else [],
            # Which package brings the adapter, or where the key is, is not known here.
            looks=[] if connects else [f"outreach-server accounts list {account.workspace_id}"],
        )
    for silent in status.silent:
        last = silent.last_report_at
        before = "none ever came" if last is None else f"the last one came at {format_timestamp(last)}"
        yield Problem(
            code="receipts_missing",
            severity="warning",
            workspace_id=silent.workspace_id,
            path=silent.id,
            message=f"{silent.provider} has accepted {silent.accepted:,} messages, and no receipt for them came within "
            f"an hour: {before}. Find out whether its callback URL leads here; what people write back, STOP too, may "
            "be missing as well.",
            commands=[f"outreach-server accounts check {silent.id} --callback"],
        )


def _where(status: EngineStatus, workspace_id: str) -> str:
    """Return the words that name the workspace; empty in the status of one workspace."""
    return "" if status.workspace_id is not None else f" of workspace {workspace_id}"


def _of_campaigns(status: EngineStatus) -> Iterator[Problem]:
    elsewhere = {(one.workspace_id, one.provider) for one in status.accounts if one.key_elsewhere}
    for campaign in status.paused:
        where = _where(status, campaign.workspace_id)
        yield Problem(
            code="campaign_paused",
            severity="warning",
            workspace_id=campaign.workspace_id,
            path=campaign.id,
            message=f"Campaign {campaign.name!r}{where} is paused: {campaign.why}.",
            commands=_resuming(campaign, connects=(campaign.workspace_id, campaign.provider) not in elsewhere),
        )
    for taken in status.taken_back:
        where = _where(status, taken.workspace_id)
        yield Problem(
            code="start_taken_back",
            severity="warning",
            workspace_id=taken.workspace_id,
            path=taken.id,
            message=f"Campaign {taken.name!r}{where} waits to be started{STARTED_AGAIN}.",
            commands=[f"outreach-server campaigns {step} {taken.id}" for step in ("approve", "start")],
            looks=[f"outreach-server campaigns show {taken.id}"],
        )
    for schedule in status.schedules:
        where = _where(status, schedule.workspace_id)
        yield Problem(
            code="schedule_paused",
            severity="warning",
            workspace_id=schedule.workspace_id,
            path=schedule.id,
            message=f"Schedule {schedule.name!r}{where} is paused: {schedule.why}.",
            commands=[f"outreach-server schedules resume {schedule.workspace_id} {schedule.id}"],
            looks=[f"outreach-server schedules occurrences {schedule.workspace_id} {schedule.id}"],
        )
    for run in status.blocked_runs:
        where = _where(status, run.workspace_id)
        steps = ("approve", "start") if run.reason == "awaits_approval" else ("start",)
        yield Problem(
            code="run_blocked",
            severity="warning",
            workspace_id=run.workspace_id,
            path=run.id,
            message=f"Schedule {run.name!r}{where} has not started its run of {format_timestamp(run.at)}. {run.why}",
            commands=[f"outreach-server schedules run-now {run.workspace_id} {run.id}"]
            if run.campaign_id is None
            else [f"outreach-server campaigns {step} {run.campaign_id}" for step in steps],
            looks=[f"outreach-server schedules occurrences {run.workspace_id} {run.id}"],
        )
    for webhook in status.webhooks:
        where = _where(status, webhook.workspace_id)
        yield Problem(
            code="webhook_disabled",
            severity="warning",
            workspace_id=webhook.workspace_id,
            path=webhook.id,
            message=f"Webhook {webhook.id} to {webhook.host}{where} is disabled: {webhook.why}.",
            commands=[f"outreach-server webhooks enable {webhook.workspace_id} {webhook.id}"],
            looks=[f"outreach-server webhooks attempts {webhook.workspace_id} {webhook.id}"],
        )
    for failing in status.failing:
        where = _where(status, failing.workspace_id)
        again = "" if failing.next_at is None else f" It is tried again at {format_timestamp(failing.next_at)}."
        yield Problem(
            code="webhook_failing",
            severity="warning",
            workspace_id=failing.workspace_id,
            path=failing.id,
            message=f"Webhook {failing.id} to {failing.host}{where} has taken nothing since "
            f"{format_timestamp(failing.since)}: at last {failing.why}.{again}",
            commands=[f"outreach-server webhooks enable {failing.workspace_id} {failing.id}"],
            looks=[f"outreach-server webhooks attempts {failing.workspace_id} {failing.id}"],
        )
    for group in status.unknown:
        since = format_timestamp(group.since)
        many = f"{group.count} requests, the oldest of {since}" if group.count > 1 else f"a request of {since}"
        yield Problem(
            code="requests_unknown",
            severity="warning",
            workspace_id=group.workspace_id,
            message=f"The outcome of {many} is unknown.",
            commands=[f"outreach-server dispatches unknown {group.workspace_id}"],
        )


def _of_contacts(status: EngineStatus) -> Iterator[Problem]:
    for entry in status.held:
        yield Problem(
            code="number_held",
            severity="warning",
            workspace_id=entry.workspace_id,
            path=entry.phone,
            message=f"{entry.phone} may have opted out, and is held: {entry.evidence or 'no evidence'}",
            commands=[
                f"outreach-server unsubscribes resolve {entry.workspace_id} {entry.phone} {option}"
                for option in ("--opted-out", "--not-opted-out")
            ],
        )


def _resuming(campaign: PausedCampaign, *, connects: bool) -> Sequence[str]:
    commands = []
    installed = campaign.provider is not None and campaign.provider_installed
    if campaign.reason == "provider_auth" and installed and connects:
        commands.append(f"outreach-server accounts connect {campaign.workspace_id} {campaign.provider}")
    if campaign.reason == "agent_unavailable" and campaign.agent_id is not None:
        options = {"--active": campaign.agent_is_active, "--allow-outbound": campaign.agent_can_place_calls}
        lacking = " ".join(option for option, is_set in options.items() if not is_set)
        commands += [f"outreach-server agents update {campaign.agent_id} {lacking}"] if lacking else []
    return [
        *commands,
        f"outreach-server campaigns resume {campaign.id} {SAFE_RESUME_OPTIONS.get(campaign.reason, '')}".strip(),
    ]
