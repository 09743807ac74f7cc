"""What a diagnosis found: faults of the set-up and of the data, each with what fixes it, or shows where to look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

import attrs

from outreach.errors import Problem, Severity

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
    "transaction_old",
]
"""What is found in a database itself, also in one that cannot be opened:

    connections_low (warning): fewer connections of PostgreSQL are free than two processes take
    database_damaged (critical): SQLite's check of all pages found damage
    database_exposed (warning): everybody on the machine may read the file
    database_foreign (critical): the file holds the tables of something else, or is an archive
    database_log_deleted (critical): the log of the database (`outreach.db-wal`) was deleted while a process has it
        open: stop that process, and start it again
    database_missing (critical): there is no database here, the file is empty, or there is no schema in it. Often
        another directory or URL than the server's
    database_newer (critical): a newer version of this package wrote it
    database_not_usable (critical): the database cannot be opened; the message says why
    database_not_writable (critical): this user may not write the file, its directory, or its log or a dispatch lock
        beside it, which a command of another user has left; or the state directory, which may be missing; on
        PostgreSQL, the server refuses a write: it is a standby, read-only or full
    database_older (critical): migrations are pending
    database_replaced (critical): another file was put in the place of the database, beside the log of the earlier one
    directory_exposed (warning): others may write the directory of the database, and put another file in its place
    disk_low (critical, warning): under 100 MB are free on the disk of the database; under 1 GB
    index_not_valid (warning): an index is not valid, such as after an interrupted `REINDEX CONCURRENTLY`
    integrity_not_checked (info): the database is too large to be read within 30 s
    log_large (warning): the log beside the database has over 512 MB: some process reads from an old snapshot
    network_file_system (critical): the database lies on a network file system, from which nothing is sent
    server_old (warning): the PostgreSQL server is older than this package needs
    server_setting_unsafe (warning): the PostgreSQL server runs with `fsync` or `full_page_writes` off
    transaction_old (warning): a transaction has been open for over 10 minutes. The PostgreSQL server keeps all versions
        of rows since it began, and reads more and more of them for each message. Those of other roles are seen only
        with the rights of `pg_monitor`
"""

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
    "receipts_missing",
    "rekey_unfinished",
    "requests_overdue",
    "schedule_paused",
    "run_blocked",
    "start_taken_back",
    "webhook_disabled",
    "webhook_failing",
    "sender_takes_no_replies",
    "time_zones_missing",
]
"""What an engine finds beside that:

    account_disabled (warning): the account, or the profile that it sends with, is suspended or disabled at the
        provider
    account_not_usable (warning): the credentials were encrypted with another key, or the provider has no adapter here
    account_refused (warning): the provider refuses the credentials or an id
    account_without_funds (warning): the provider says that the account has no credit
    adapter_not_usable (warning): the adapter of an installed package cannot be used
    archive_missing (warning): a ledger archive is not where it was, or cannot be read
    behind (warning): a process dispatches, and what is due has waited for over a minute
    callback_elsewhere (warning): the provider has another callback address than this server's
    callback_misdirected (warning): in the last 7 days something came to the account's address by another method than
        POST, or to a path that does not exist and holds the account's id, and was not read
    callback_not_set (warning): the provider has no address for what people write back, so that STOP is not heard, or
        for how calls end
    callback_setting_wrong (warning): the provider has this server's address, and the setting is disabled or of a
        version that is not taken in
    campaign_overdue (warning): a scheduled campaign ought to have begun, and a process dispatches
    campaign_paused (warning): the engine has paused a campaign, for a reason that the finding names
    check_failed (warning): a check of the engine failed or took too long; the others went on
    clock_wrong (critical, warning): the clock is 300 s or more, or over 5 s, from what providers' answers say
    database_copied (critical): `db copy` has copied it elsewhere: nothing is sent from it any more
    database_moved (warning): the database was last dispatched from another machine or path; its campaigns pause at
        the next start
    database_restored (warning): the database is older than what was sent from it, its log was deleted, or its
        PostgreSQL server has taken over or was set back; its campaigns pause at the next start
    key_exposed (critical): others may read the key file beside the database, and the key comes from that file: the
        engine refuses it
    key_not_usable (critical): the key that is given is none, or no key opens the accounts that are connected; `FILE` is
        your copy of the key
    no_dispatcher (critical, warning): no process has sent from this database lately; a warning if nothing is to be
        sent
    number_held (warning): somebody wrote what may be an opt-out: a person has to decide
    numbers_misread (warning): contacts of a campaign may have been loaded under a wrong number by a version that read
        `4915123456701` in Germany as +494915123456701; the first thousand contacts of a hundred campaigns are looked
        at
    orphaned_claims (warning): a campaign or number is claimed by a worker that is not there
    provider_unreachable (warning): the provider gave no usable answer now
    public_url_local (warning): the public address leads to a loopback or private address
    public_url_missing (warning): live accounts are connected, and there is no address to call back
    public_url_unresolvable (warning): the name of the public address cannot be resolved here
    receipts_missing (warning): an account's messages are accepted, and for an hour or more no receipt has come: 20
        messages or more of the last day
    rekey_unfinished (info): accounts are encrypted with an older key than the first: changing the key is not done
    requests_overdue (warning): requests with an unknown outcome are past their deadline
        (`reconcile_deadline_seconds`)
    schedule_paused (warning): the engine has paused a schedule, for a reason that the finding names
    run_blocked (warning): the latest run of a schedule was not started, and waits for a person
    start_taken_back (warning): a campaign waits to be started again, because what was approved has changed
    webhook_disabled (warning): the engine has disabled a webhook, for a reason that the finding names
    webhook_failing (warning): a webhook has taken nothing for an hour or more; after three days it is disabled
    sender_takes_no_replies (info): a campaign sends as a name, to which nobody can write STOP
    time_zones_missing (critical): the data of time zones cannot be read
"""

_URGENCY: Final[Mapping[Severity | None, int]] = {"critical": 0, "warning": 1, "info": 2}


def most_urgent_first(problems: Iterable[Problem]) -> Sequence[Problem]:
    """Return problems by their severity; those of the same severity keep their order."""
    return sorted(problems, key=lambda one: _URGENCY[one.severity])


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
    findings: Sequence[Problem] = ()
    skipped: Sequence[str] = ()

    @property
    def severity(self) -> Severity | None:
        """The severity of the most urgent finding; None if there is none."""
        return self.findings[0].severity if self.findings else None

    def plus(self, findings: Sequence[Problem], *, skipped: Sequence[str] = ()) -> Diagnosis:
        """Return the same with more, most urgent first."""
        every = most_urgent_first([*self.findings, *findings])
        return attrs.evolve(self, findings=every, skipped=[*self.skipped, *skipped])


def database_problem(
    code: DatabaseCode,
    message: str,
    path: str | Path,
    *commands: str,
    looks: Sequence[str] = (),
    severity: Severity = "critical",
) -> Problem:
    """Return a problem of a database, as storages find it."""
    return Problem(code=code, severity=severity, message=message, path=str(path), commands=commands, looks=looks)
