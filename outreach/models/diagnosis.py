"""What a diagnosis found: faults of the set-up and of the data, each with what fixes it, or shows where to look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Literal

import attrs

DiagnosisSeverity = Literal["critical", "warning", "info"]
"""`critical`: nothing is sent, or soon, or data are in danger. `warning`: a part waits for a person. `info`: good to
know, and nothing has to be done."""

DatabaseCode = Literal[
    "connections_low",
    "database_damaged",
    "database_exposed",
    "database_foreign",
    "database_log_deleted",
    "database_missing",
    "database_newer",
    "database_not_usable",
    "database_not_writable",
    "database_older",
    "database_replaced",
    "directory_exposed",
    "disk_low",
    "index_not_valid",
    "integrity_not_checked",
    "log_large",
    "network_file_system",
    "server_old",
    "server_setting_unsafe",
]
"""What is found in a database itself, also in one that cannot be opened."""

EngineCode = Literal[
    "account_disabled",
    "account_not_usable",
    "account_refused",
    "account_without_funds",
    "adapter_not_usable",
    "archive_missing",
    "behind",
    "callback_elsewhere",
    "callback_misdirected",
    "callback_not_set",
    "callback_setting_wrong",
    "campaign_overdue",
    "campaign_paused",
    "check_failed",
    "clock_wrong",
    "database_copied",
    "database_moved",
    "database_restored",
    "key_exposed",
    "key_not_usable",
    "no_dispatcher",
    "number_held",
    "numbers_misread",
    "orphaned_claims",
    "provider_unreachable",
    "public_url_local",
    "public_url_missing",
    "public_url_unresolvable",
    "rekey_unfinished",
    "requests_overdue",
    "sender_takes_no_replies",
    "time_zones_missing",
]
"""What an engine finds beside that."""

_URGENCY: Final[dict[DiagnosisSeverity, int]] = {"critical": 0, "warning": 1, "info": 2}


@attrs.frozen(kw_only=True)
class DiagnosisFinding:
    """One fault.

    Attributes:
        code: What it is, in a word that does not change: docs/doctor.md lists them.
        severity: How urgent it is.
        why: What is wrong, in sentences.
        where: The file, URL, account, campaign or number that it is about.
        workspace_id: The workspace; None for the whole system.
        commands: What fixes it, in this order. A word in capital letters stands for what only a person knows.
        looks: What shows more, where a person has to decide, or somebody else has to act.
    """

    code: str
    severity: DiagnosisSeverity
    why: str
    where: str
    workspace_id: str | None = None
    commands: Sequence[str] = ()
    looks: Sequence[str] = ()

    def mapped(self, change: Callable[[str], str]) -> DiagnosisFinding:
        """Return the same with every command changed."""
        return attrs.evolve(self, commands=[*map(change, self.commands)], looks=[*map(change, self.looks)])


@attrs.frozen(kw_only=True)
class Diagnosis:
    """The result of a diagnosis.

    Attributes:
        at: When it was made.
        findings: What is wrong, most urgent first; empty in a healthy system.
        skipped: What was not looked at and why, a sentence each: requests to the network that were not allowed, or more
            accounts than one look takes.
    """

    at: datetime
    findings: Sequence[DiagnosisFinding] = ()
    skipped: Sequence[str] = ()

    @property
    def severity(self) -> DiagnosisSeverity | None:
        """The severity of the most urgent finding; None if there is none."""
        return self.findings[0].severity if self.findings else None

    def plus(self, findings: Sequence[DiagnosisFinding], *, skipped: Sequence[str] = ()) -> Diagnosis:
        """Return the same with more, most urgent first."""
        every = sorted([*self.findings, *findings], key=lambda finding: _URGENCY[finding.severity])
        return attrs.evolve(self, findings=every, skipped=[*self.skipped, *skipped])
