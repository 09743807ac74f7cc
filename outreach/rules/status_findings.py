"""What in a status needs a person, and how urgently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from outreach.core.clock import format_timestamp
from outreach.models.status import AccountInTrouble, EngineStatus, PausedCampaign, Severity, StatusFinding

BEHIND_SECONDS: Final = 60.0
"""A process that dispatches is behind when what is due has waited for longer."""

LOW_BYTES: Final = 1024**3
FULL_BYTES: Final = 100 * 1024**2
"""A database needs room for its log, which grows during a backup."""

_URGENCY: Final[dict[Severity, int]] = {"critical": 0, "warning": 1}


def find_problems(status: EngineStatus) -> Sequence[StatusFinding]:
    """Return what needs a person, most urgent first."""
    of = (_of_sending, _of_disk, _of_accounts, _of_campaigns, _of_contacts)
    found = [finding for problems in of for finding in problems(status)]
    return sorted(found, key=lambda finding: _URGENCY[finding.severity])


def _of_sending(status: EngineStatus) -> Iterator[StatusFinding]:
    problem = status.dispatching.problem
    if problem is not None:
        # A database in which nothing is to be sent needs no process.
        urgent = status.active_campaigns or status.scheduled_campaigns or status.lag_seconds
        severity: Severity = "critical" if urgent else "warning"
        # A server on the copy sends, where there is one.
        commands = ["outreach-server serve"] if status.dispatching.copied_to is None else []
        yield StatusFinding(kind="no_dispatcher", severity=severity, why=problem, commands=commands)
    elif status.lag_seconds > BEHIND_SECONDS:
        why = (
            f"What is due has waited for {status.lag_seconds:,.0f} s although a process dispatches: it has more to do "
            "than it can, or its database is slow. Its log and /readyz say more."
        )
        yield StatusFinding(kind="behind", severity="warning", why=why)


def _of_disk(status: EngineStatus) -> Iterator[StatusFinding]:
    disk = status.disk
    if disk is not None and disk.free_bytes < LOW_BYTES:
        why = (
            f"Only {disk.free_bytes / 1024**2:,.0f} MB are free on the disk of {disk.path}. Make room: on a full disk "
            "nothing is sent. Old backups, exports, and databases that a restore or a compaction has replaced can be "
            "deleted; doctor names these."
        )
        severity: Severity = "critical" if disk.free_bytes < FULL_BYTES else "warning"
        yield StatusFinding(kind="disk_low", severity=severity, why=why, commands=["outreach-server doctor"])


def _of_accounts(status: EngineStatus) -> Iterator[StatusFinding]:
    for problem in status.adapter_problems:
        yield StatusFinding(kind="adapter_not_usable", severity="warning", id=problem.name, why=problem.message)
    for account in status.accounts:
        yield StatusFinding(
            kind="account_not_usable",
            severity="warning",
            workspace_id=account.workspace_id,
            id=account.id,
            why=account.why,
            commands=_connecting(account),
        )


def _of_campaigns(status: EngineStatus) -> Iterator[StatusFinding]:
    for campaign in status.paused:
        where = "" if status.workspace_id is not None else f" of workspace {campaign.workspace_id}"
        yield StatusFinding(
            kind="campaign_paused",
            severity="warning",
            workspace_id=campaign.workspace_id,
            id=campaign.id,
            why=f"Campaign {campaign.name!r}{where} is paused: {campaign.why}.",
            commands=_resuming(campaign),
        )
    for group in status.unknown:
        since = format_timestamp(group.since)
        many = f"{group.count} requests, the oldest of {since}" if group.count > 1 else f"a request of {since}"
        yield StatusFinding(
            kind="requests_unknown",
            severity="warning",
            workspace_id=group.workspace_id,
            why=f"The outcome of {many} is unknown.",
            commands=[f"outreach-server dispatches unknown {group.workspace_id}"],
        )


def _of_contacts(status: EngineStatus) -> Iterator[StatusFinding]:
    for entry in status.held:
        yield StatusFinding(
            kind="number_held",
            severity="warning",
            workspace_id=entry.workspace_id,
            id=entry.phone,
            why=f"{entry.phone} may have opted out, and is held: {entry.evidence or 'no evidence'}",
            commands=[
                f"outreach-server unsubscribes resolve {entry.workspace_id} {entry.phone} {option}"
                for option in ("--opted-out", "--not-opted-out")
            ],
        )


def _connecting(account: AccountInTrouble) -> Sequence[str]:
    if not account.installed:
        return ()
    return [f"outreach-server accounts connect {account.workspace_id} {account.provider}"]


def _resuming(campaign: PausedCampaign) -> Sequence[str]:
    commands = []
    if campaign.reason == "provider_auth" and campaign.provider is not None and campaign.provider_installed:
        commands.append(f"outreach-server accounts connect {campaign.workspace_id} {campaign.provider}")
    if campaign.reason == "agent_unavailable" and campaign.agent_id is not None:
        options = {"--active": campaign.agent_is_active, "--allow-outbound": campaign.agent_can_place_calls}
        lacking = " ".join(option for option, is_set in options.items() if not is_set)
        commands += [f"outreach-server agents update {campaign.agent_id} {lacking}"] if lacking else []
    return [*commands, f"outreach-server campaigns resume {campaign.id}"]
