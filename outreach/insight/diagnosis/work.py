"""Faults of the work: no dispatcher, stuck work, and work that waits for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

import attrs

from outreach.core.clock import format_timestamp
from outreach.core.command_lines import SERVE
from outreach.core.config import EngineConfig
from outreach.core.vault import Vault
from outreach.errors import Problem, Severity
from outreach.insight.diagnosis.snapshot import Snapshot
from outreach.ledger.leases.leases import copied_text, quarantine_of
from outreach.models.campaign import Campaign
from outreach.models.diagnosis import EngineCode
from outreach.models.status import EngineStatus
from outreach.models.work import COPIED_FROM, DatabaseHome
from outreach.rules.column_names import MisreadNumbers
from outreach.rules.opening import local_text
from outreach.rules.status_findings import HEALTH

_SUBJECTS: Final = {
    "no_dispatcher": "the database",
    "behind": "the database",
    "adapter_not_usable": "adapter {}",
    "account_not_usable": "account {}",
    "receipts_missing": "account {}",
    "campaign_paused": "campaign {}",
    "start_taken_back": "campaign {}",
    "schedule_paused": "schedule {}",
    "run_blocked": "schedule {}",
    "webhook_disabled": "webhook {}",
    "webhook_failing": "webhook {}",
    "number_held": "number {}",
}
"""The subjects of problems of the status. The others are found more exactly: the disk is looked at with the database,
and requests in doubt count when their deadline is over."""


def of_status(status: EngineStatus, vault: Vault) -> Iterator[Problem]:
    """Yield the problems of the status of all workspaces, and that no credentials can be decrypted.

    Without accounts nothing needs a key, but one that is given has to be one: the console's forms need it too.
    """
    no_key = vault.problem() if status.accounts or vault.is_given() else None
    unusable = {account.id for account in status.accounts if account.installed}
    if no_key is not None and (unusable or vault.is_given()):
        connecting = [command for one in status.findings if one.path in unusable for command in one.commands]
        # Only where a key is made can an account be connected without the one that is missing.
        commands = [*no_key.commands, *(connecting if vault.makes_key() else ())]
        lacks = "No account can be used." if unusable else "No console is shown, and no account can be connected."
        yield attrs.evolve(no_key, message=f"{lacks} {no_key.message}", commands=commands)
    for one in status.findings:
        if one.code in _SUBJECTS and (no_key is None or one.path not in unusable):
            yield attrs.evolve(one, path=_SUBJECTS[one.code].format(one.path))


def of_work(
    status: EngineStatus, snapshot: Snapshot, config: EngineConfig, home: DatabaseHome | None
) -> Iterator[Problem]:
    """Yield what is stuck, and what a copied database would do.

    Args:
        status: The status of all workspaces.
        snapshot: The other data of the database.
        config: The engine's.
        home: Where the database is; None if not applicable.
    """
    deadline = timedelta(seconds=config.reconcile_deadline_seconds + 2 * config.reconcile_interval_seconds)
    for group in status.unknown:
        if status.at - group.since > deadline:
            yield Problem(
                code="requests_overdue",
                severity="warning",
                message=(
                    f"{group.count} requests to providers have an unknown outcome, the oldest since "
                    f"{format_timestamp(group.since)}: their deadline is over, and nobody has ended them."
                ),
                path=f"workspace {group.workspace_id}",
                workspace_id=group.workspace_id,
                looks=[f"outreach-server dispatches unknown {group.workspace_id}"],
            )
    for listed in snapshot.archives:
        yield Problem(
            code="archive_missing",
            severity="warning",
            message=listed.problem or "",
            path=listed.archive.file,
            commands=[listed.command] if listed.command is not None else [],
            looks=["outreach-server db archives"],
        )
    # The lease of a process that was killed lasts for some seconds more.
    if status.dispatching.by == "no_process" or snapshot.is_behind:
        yield from _of_copies(snapshot, home)
        return
    for campaign in snapshot.overdue:
        at = campaign.scheduled_start_at
        start = "" if at is None else f" at {local_text(at, campaign.timezone)}"
        yield Problem(
            code="campaign_overdue",
            severity="warning",
            message=(
                f"Campaign {campaign.name!r} was to start{start}, and has not although a process dispatches. The "
                "log of that process says why."
            ),
            path=f"campaign {campaign.id}",
            workspace_id=campaign.workspace_id,
            looks=[f"outreach-server campaigns show {campaign.id}", HEALTH],
        )
    for claim in snapshot.lost_claims:
        yield Problem(
            code="orphaned_claims",
            severity="warning",
            message=(
                f"{claim.subject} is claimed by the worker of epoch {claim.epoch}, which is not there: nobody else "
                "drives it. Stop every server, and start them anew: the first one frees all claims."
            ),
            path=f"claim {claim.subject}",
            workspace_id=claim.workspace_id,
            commands=[SERVE],
        )


def _of_copies(snapshot: Snapshot, home: DatabaseHome | None) -> Iterator[Problem]:
    """Yield why the next process that dispatches will pause the campaigns first."""
    after = "The next process that dispatches pauses its running campaigns: look at each one, and resume it."
    known, reason = snapshot.known_home, quarantine_of(snapshot.known_home, home)
    code: EngineCode
    severity: Severity = "warning"
    commands: Sequence[str] = [SERVE]
    if known is not None and known.copied_to is not None:
        code, severity, message, commands = "database_copied", "critical", copied_text(known.copied_to), ()
    elif known is not None and reason == "moved":
        is_on_server = home is not None and home.state
        if home is None or not known.may_share_machine(home):
            where = f"was on another {'server' if is_on_server else 'machine'}"
        else:
            where = f"{'had the name' if is_on_server else 'was at'} {known.path!r}"
        last = f"{where} when a process last dispatched from it: it may be a copy"
        if known.machine == COPIED_FROM:
            last = f"is a copy, which `db copy` has made of {known.path}"
        code, message = "database_moved", f"The database {last}. {after}"
    elif reason == "restored" or snapshot.is_behind:
        older = "The database is older than what was sent from it: it is a restored backup, or its log was deleted."
        code, message = "database_restored", f"{older} {after}"
    else:
        return
    yield Problem(
        code=code,
        severity=severity,
        message=message,
        path=home.path if home is not None else "the database",
        commands=commands,
        looks=["outreach-server status"],
    )


def of_misread_numbers(campaign: Campaign, found: MisreadNumbers) -> Iterator[Problem]:
    """Yield that contacts of a campaign may have been loaded under a wrong number."""
    for warning in found.warnings():
        yield Problem(
            code="numbers_misread",
            severity="warning",
            message=f"Campaign {campaign.name!r}: {warning.message}",
            path=f"campaign {campaign.id}",
            workspace_id=campaign.workspace_id,
            looks=[
                f"outreach-server campaigns preflight {campaign.id}",
                f"outreach-server campaigns cancel {campaign.id}",
            ],
        )
