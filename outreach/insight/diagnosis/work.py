"""Faults of the work: who dispatches, what is stuck, what waits for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from outreach.core.clock import format_timestamp
from outreach.core.command_lines import pip_commands
from outreach.core.config import EngineConfig
from outreach.core.vault import KeyProblem
from outreach.insight.diagnosis.snapshot import Snapshot
from outreach.ledger.leases.leases import copied_text, quarantine_of
from outreach.models.campaign import Campaign
from outreach.models.diagnosis import DiagnosisFinding, EngineCode
from outreach.models.status import EngineStatus, FindingKind, StatusFinding
from outreach.models.work import COPIED_FROM, DatabaseHome
from outreach.rules.misread_numbers import MisreadNumbers
from outreach.rules.opening import local_text

_CODES: Final[Mapping[FindingKind, EngineCode]] = {
    "no_dispatcher": "no_dispatcher",
    "behind": "behind",
    "adapter_not_usable": "adapter_not_usable",
    "account_not_usable": "account_not_usable",
    "campaign_paused": "campaign_paused",
    "number_held": "number_held",
}
"""The disk is looked at with the database; requests in doubt count when their deadline is over."""

_HEALTH: Final = "outreach-server healthcheck --ready"


def of_status(status: EngineStatus, *, key_problem: KeyProblem | None) -> Iterator[DiagnosisFinding]:
    """Yield the findings of the status.

    Args:
        status: The status of all workspaces.
        key_problem: Why no credentials can be decrypted; None if there is a key.
    """
    unusable = {account.id for account in status.accounts if account.installed}
    if key_problem is not None and unusable:
        connecting = [command for one in status.findings if one.id in unusable for command in one.commands]
        yield DiagnosisFinding(
            code="key_not_usable",
            severity="critical",
            why=f"No account can be used. {key_problem.why}",
            where=key_problem.where,
            # Only where a key is made can an account be connected without the one that is missing.
            commands=[*key_problem.commands, *(connecting if key_problem.made else ())],
        )
    for finding in status.findings:
        if finding.kind not in _CODES or (key_problem is not None and finding.id in unusable):
            continue
        yield DiagnosisFinding(
            code=_CODES[finding.kind],
            severity=finding.severity,
            why=finding.why,
            where=_place_of(finding),
            workspace_id=finding.workspace_id,
            commands=finding.commands,
            looks=() if finding.commands else _looks(finding),
        )


def _looks(finding: StatusFinding) -> Sequence[str]:
    match finding.kind:
        case "no_dispatcher":
            return ["outreach-server status"]
        case "behind":
            return [_HEALTH]
        case "adapter_not_usable":
            return pip_commands("check") or ["outreach-server --version"]
        case _:
            # An account without an adapter: which package brings it is not known here.
            return [f"outreach-server accounts list {finding.workspace_id}"]


def _place_of(finding: StatusFinding) -> str:
    things: Mapping[FindingKind, str] = {
        "adapter_not_usable": "adapter",
        "account_not_usable": "account",
        "campaign_paused": "campaign",
        "number_held": "number",
    }
    return f"{things[finding.kind]} {finding.id}" if finding.kind in things else "the database"


def of_work(
    status: EngineStatus, snapshot: Snapshot, config: EngineConfig, home: DatabaseHome | None
) -> Iterator[DiagnosisFinding]:
    """Yield what is stuck, and what a copied database would do.

    Args:
        status: The status of all workspaces.
        snapshot: What else the database says.
        config: The engine's.
        home: Where the database is; None if not applicable.
    """
    deadline = timedelta(seconds=config.reconcile_deadline_seconds + 2 * config.reconcile_interval_seconds)
    for group in status.unknown:
        if status.at - group.since > deadline:
            yield DiagnosisFinding(
                code="requests_overdue",
                severity="warning",
                why=(
                    f"{group.count} requests to providers have an unknown outcome, the oldest since "
                    f"{format_timestamp(group.since)}: their deadline is over, and nobody has ended them."
                ),
                where=f"workspace {group.workspace_id}",
                workspace_id=group.workspace_id,
                looks=[f"outreach-server dispatches unknown {group.workspace_id}"],
            )
    for listed in snapshot.archives:
        yield DiagnosisFinding(
            code="archive_missing",
            severity="warning",
            why=listed.problem or "",
            where=listed.archive.file,
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
        yield DiagnosisFinding(
            code="campaign_overdue",
            severity="warning",
            why=(
                f"Campaign {campaign.name!r} was to start{start}, and has not although a process dispatches. The "
                "log of that process says why."
            ),
            where=f"campaign {campaign.id}",
            workspace_id=campaign.workspace_id,
            looks=[f"outreach-server campaigns show {campaign.id}", _HEALTH],
        )
    for claim in snapshot.lost_claims:
        yield DiagnosisFinding(
            code="orphaned_claims",
            severity="warning",
            why=(
                f"{claim.subject} is claimed by the worker of epoch {claim.epoch}, which is not there: nobody else "
                "drives it. Stop every server, and start them anew: the first one frees all claims."
            ),
            where=f"claim {claim.subject}",
            workspace_id=claim.workspace_id,
            commands=["outreach-server serve"],
        )


def _of_copies(snapshot: Snapshot, home: DatabaseHome | None) -> Iterator[DiagnosisFinding]:
    """Yield why the next process that dispatches will pause the campaigns first."""
    after = "The next process that dispatches pauses its running campaigns: look at each one, and resume it."
    known = snapshot.known_home
    if known is not None and known.copied_to is not None:
        yield DiagnosisFinding(
            code="database_copied",
            severity="critical",
            why=copied_text(known.copied_to),
            where=home.path if home is not None else "the database",
            looks=["outreach-server status"],
        )
        return
    reason = quarantine_of(known, home)
    if known is not None and reason == "moved":
        where = "on another machine" if home is None or not known.may_share_machine(home) else f"at {known.path!r}"
        last = f"was last dispatched from {where}: it may be a copy"
        if known.machine == COPIED_FROM:
            last = f"is a copy, which `db copy` has made of {known.path}"
        yield DiagnosisFinding(
            code="database_moved",
            severity="warning",
            why=f"The database {last}. {after}",
            where=home.path if home is not None else "the database",
            commands=["outreach-server serve"],
            looks=["outreach-server status"],
        )
    elif reason == "restored" or snapshot.is_behind:
        yield DiagnosisFinding(
            code="database_restored",
            severity="warning",
            why=(
                "The database is older than what was sent from it: it is a restored backup, or its log was deleted. "
                f"{after}"
            ),
            where=home.path if home is not None else "the database",
            commands=["outreach-server serve"],
            looks=["outreach-server status"],
        )


def of_misread_numbers(campaign: Campaign, found: MisreadNumbers) -> Iterator[DiagnosisFinding]:
    """Yield that contacts of a campaign may have been loaded under a wrong number."""
    for warning in found.warnings():
        yield DiagnosisFinding(
            code="numbers_misread",
            severity="warning",
            why=f"Campaign {campaign.name!r}: {warning.message}",
            where=f"campaign {campaign.id}",
            workspace_id=campaign.workspace_id,
            looks=[
                f"outreach-server campaigns preflight {campaign.id}",
                f"outreach-server campaigns cancel {campaign.id}",
            ],
        )
