"""The overall status: the processes that dispatch, running campaigns, and the findings that need a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.core.command_lines import SERVE
from outreach.errors import Problem, Severity
from outreach.models.base import Channel
from outreach.models.campaign import PauseReason
from outreach.models.dispatch import UnknownDispatchCount
from outreach.models.health import DispatcherHealth
from outreach.models.preflight import PlaceholderProblem
from outreach.models.text_warning import TextWarning
from outreach.models.unsubscribe import Unsubscribe

DispatchedBy = Literal["this_process", "another_process", "no_process"]


@attrs.frozen(kw_only=True)
class LiveWorker:
    """A process that dispatches.

    Attributes:
        epoch: Of its lease.
        heartbeat_at: Its last heartbeat, by the database's clock.
    """

    epoch: int
    heartbeat_at: datetime


@attrs.frozen(kw_only=True)
class DispatchOverview:
    """The processes that dispatch from a database.

    The lease's holder writes a heartbeat every few seconds; one without a heartbeat for `EngineConfig.lease_seconds` is
    considered gone. Processes that stand by are not recorded.

    Attributes:
        by: `this_process`, `another_process`, or `no_process`.
        epoch: Of the latest lease; each lease raises it by one. None if there was none.
        heartbeat_at: The latest heartbeat; None if there was none.
        heartbeat_seconds_ago: Its age; None if there was none.
        copied_to: Where `db copy` has copied the database: nothing is sent from it any more. None if it was not copied.
        workers: The processes that hold a lease now, by epoch; a hundred at the most.
        not_writable: Why PostgreSQL takes no writes, so that no process can send; None if it does, or a process
            dispatches.
    """

    by: DispatchedBy
    epoch: int | None
    heartbeat_at: datetime | None
    heartbeat_seconds_ago: float | None
    copied_to: str | None = None
    workers: Sequence[LiveWorker] = ()
    not_writable: str | None = None

    @property
    def problem(self) -> Problem | None:
        """`no_dispatcher`, since when, or `database_copied`; None while a process dispatches."""
        if self.by != "no_process":
            return None
        if self.copied_to is not None:
            # A server on the copy sends, where there is one.
            message = f"Nothing is sent from this database: `db copy` has copied it to {self.copied_to}."
            return Problem(code="database_copied", message=message)
        if self.not_writable is not None:
            return Problem(code="no_dispatcher", message=f"No process can send from this database. {self.not_writable}")
        at = self.heartbeat_at
        since = "and none ever has" if at is None else f"since {at:%Y-%m-%d %H:%M:%S} UTC"
        return Problem(code="no_dispatcher", message=f"No process sends from this database, {since}.", commands=[SERVE])


@attrs.frozen(kw_only=True)
class PausedCampaign:
    """A campaign that the engine has paused, until an operator resumes it.

    Attributes:
        id: The campaign's id.
        provider: Its carrier or voice provider, if any.
        provider_installed: Whether the provider has an adapter here; without one the campaign cannot go on.
        agent_id: The agent of its calls; None for messages.
        agent_is_active: Whether that agent is switched on.
        agent_can_place_calls: Whether it is one that may call out.
        reason: `Campaign.pause_reason`.
        why: The same in words, as in `PAUSE_REASONS`, or that its account cannot be used here: a part of a sentence.
    """

    id: str
    workspace_id: str
    name: str
    channel: Channel
    provider: str | None
    agent_id: str | None
    reason: PauseReason
    why: str
    provider_installed: bool = True
    agent_is_active: bool = True
    agent_can_place_calls: bool = True


@attrs.frozen(kw_only=True)
class StartTakenBack:
    """A campaign whose approved start was taken back, until it is started again: what was approved has changed.

    Attributes:
        id: The campaign's id.
    """

    id: str
    workspace_id: str
    name: str
    channel: Channel


@attrs.frozen(kw_only=True)
class PausedSchedule:
    """A schedule that the engine has paused, until an operator resumes it.

    Attributes:
        id: The schedule's id.
        reason: `Schedule.reason`.
        why: The same in words: a part of a sentence.
    """

    id: str
    workspace_id: str
    name: str
    reason: str
    why: str


@attrs.frozen(kw_only=True)
class BlockedRun:
    """The latest run of a schedule that is not paused, if it was not started and waits for a person.

    Attributes:
        id: The schedule's id.
        name: The schedule's name.
        at: The time that the run was planned for.
        campaign_id: The campaign that waits to be started; None if none was made.
        reason: `Occurrence.reason`.
        why: The same in words: a sentence.
    """

    id: str
    workspace_id: str
    name: str
    at: datetime
    campaign_id: str | None
    reason: str
    why: str


@attrs.frozen(kw_only=True)
class DisabledWebhook:
    """A webhook that the engine has disabled, until it is enabled again; its position stays.

    Attributes:
        id: The webhook's id.
        host: The host of its URL.
        reason: `Webhook.reason`.
        why: The same in words: a part of a sentence.
    """

    id: str
    workspace_id: str
    host: str
    reason: str
    why: str


@attrs.frozen(kw_only=True)
class FailingWebhook:
    """A webhook that has taken nothing for an hour or more; after three days the engine disables it.

    Attributes:
        id: The webhook's id.
        host: The host of its URL.
        since: When the first delivery after the last success failed.
        status: The HTTP status of the latest answer; None where none came.
        why: The result of the latest delivery, in words: a part of a sentence.
        next_at: When it is tried again, while it is down; None where events are tried each at its own time.
    """

    id: str
    workspace_id: str
    host: str
    since: datetime
    status: int | None
    why: str
    next_at: datetime | None


@attrs.frozen(kw_only=True)
class ThrottledProvider:
    """A provider that throttles a workspace; waiting work resumes by itself.

    Attributes:
        until: When requests resume.
    """

    workspace_id: str
    provider: str
    until: datetime


@attrs.frozen(kw_only=True)
class RunningCampaign:
    """An active campaign.

    Attributes:
        id: The campaign's id.
        recipients: Its recipients.
        ended: Those that have ended.
        lag_seconds: For how long its next contact could have been begun; 0 while it has to wait.
    """

    id: str
    workspace_id: str
    name: str
    channel: Channel
    recipients: int
    ended: int
    lag_seconds: float


@attrs.frozen(kw_only=True)
class AccountInTrouble:
    """An account that cannot be used in this process.

    Attributes:
        id: The account's id.
        why: The fault and its repair, in sentences.
        installed: Whether its provider has an adapter here.
        key_elsewhere: Whether the key of this process opens no account of a database on a server, and another process
            dispatches: connecting it here would take it from that one.
    """

    id: str
    workspace_id: str
    provider: str
    why: str
    installed: bool
    key_elsewhere: bool = False


@attrs.frozen(kw_only=True)
class SilentAccount:
    """An account whose messages were accepted, and that gets no receipts for longer than usual.

    Attributes:
        id: The account's id.
        last_report_at: When it last got one, to some minutes; None if it never did.
        accepted: How many messages of the last day have had no receipt for an hour or more; a thousand may be more.
    """

    id: str
    workspace_id: str
    provider: str
    last_report_at: datetime | None
    accepted: int


@attrs.frozen(kw_only=True)
class DiskUse:
    """The disk of a database that is a file.

    Attributes:
        path: The file.
        database_bytes: Its size.
        log_bytes: The size of the log beside it.
        free_bytes: The free space on its disk.
    """

    path: str
    database_bytes: int
    log_bytes: int
    free_bytes: int


@attrs.frozen(kw_only=True)
class Versions:
    """The versions of what runs.

    Attributes:
        outreach: Of this package.
        python: Of Python.
        database: The kind of database: `SQLite 3.46.1` or `PostgreSQL 16.4`.
        schema: The latest migration of its tables.
    """

    outreach: str
    python: str
    database: str
    schema: str


@attrs.frozen(kw_only=True)
class EngineStatus:
    """The status of one workspace, or of all.

    Lists have at most a hundred entries, unknown requests are counted up to ten thousand, and a thousand accounts are
    looked at; `truncated` names what is not complete.

    Attributes:
        at: The time.
        workspace_id: The workspace; None for all.
        dispatching: The processes that dispatch from the whole database.
        lag_seconds: How long what is due has waited for a process that sends it; 0 if nothing waits.
        active_campaigns: The number of active campaigns.
        scheduled_campaigns: The number of campaigns that wait for their start.
        running: Active campaigns, oldest first.
        paused: Campaigns paused by the engine, oldest first; `engine.campaigns.resume` resumes them.
        taken_back: Campaigns whose approved start was taken back, oldest first; `engine.campaigns.approve` and `start`.
        schedules: Schedules paused by the engine; `engine.schedules.resume` resumes them.
        blocked_runs: Runs of other schedules that were not started; `engine.campaigns.start` starts their campaigns.
        webhooks: Webhooks disabled by the engine; `engine.webhooks.enable` enables them.
        failing: Webhooks that have taken nothing for an hour or more; `engine.webhooks.list_attempts` shows why.
        unknown: Requests with an unknown outcome, oldest first; `engine.dispatches.list_unknown` lists them,
            `engine.dispatches.resolve` decides.
        throttles: Throttles of providers, the first to end first.
        held: Held numbers, whose message may have been an opt-out, latest first; `engine.unsubscribes.resolve` decides.
        accounts: Accounts that cannot be used in this process.
        silent: Accounts that get no receipts for longer than usual, though their messages are accepted;
            `engine.accounts.check_callback` finds out whether the callback URL leads here.
        disk: The disk of the database; None if it is not a file.
        versions: The versions of what runs; None in the status of one workspace.
        truncated: Which of `running`, `paused`, `taken_back`, `schedules`, `blocked_runs`, `webhooks`,
            `failing`, `unknown`, `throttles`, `held`, `accounts` and `silent` are incomplete.
        adapter_problems: Adapters of installed packages that cannot be used in this process.
        findings: Problems for people, most urgent first, with these codes: `no_dispatcher`, `behind`, `disk_low`,
            `adapter_not_usable`, `account_not_usable`, `receipts_missing`, `campaign_paused`, `start_taken_back`,
            `schedule_paused`, `run_blocked`, `webhook_disabled`, `webhook_failing`, `requests_unknown`, `number_held`,
            which has one command for each decision.
    """

    at: datetime
    workspace_id: str | None
    dispatching: DispatchOverview
    lag_seconds: float = 0.0
    active_campaigns: int
    scheduled_campaigns: int
    running: Sequence[RunningCampaign] = ()
    paused: Sequence[PausedCampaign]
    taken_back: Sequence[StartTakenBack] = ()
    schedules: Sequence[PausedSchedule] = ()
    blocked_runs: Sequence[BlockedRun] = ()
    webhooks: Sequence[DisabledWebhook] = ()
    failing: Sequence[FailingWebhook] = ()
    unknown: Sequence[UnknownDispatchCount]
    throttles: Sequence[ThrottledProvider]
    held: Sequence[Unsubscribe]
    accounts: Sequence[AccountInTrouble] = ()
    silent: Sequence[SilentAccount] = ()
    disk: DiskUse | None = None
    versions: Versions | None = None
    truncated: Sequence[str]
    adapter_problems: Sequence[Problem] = ()
    findings: Sequence[Problem] = ()

    @property
    def severity(self) -> Severity | None:
        """The severity of the most urgent finding; None if nothing needs a person."""
        return self.findings[0].severity if self.findings else None


@attrs.frozen(kw_only=True)
class Readiness:
    """Whether this process can work now.

    Attributes:
        ready: Whether there are no `reasons`.
        reasons: What prevents it, a sentence each.
        write_seconds: Duration of a small write with its commit; None if it failed or timed out.
        write_error: Why it failed, or another write did within the last 10 s: `locked` (not done within 1 s: another
            process locks the database, or the disk is slow), `storage_unreachable` (PostgreSQL is out of reach,
            answers no new connection within 2 s, or takes no writes), or the name of the error, such as `SQLITE_FULL`;
            else None.
        dispatcher: The dispatcher's health.
        adapter_problems: Adapters of installed packages that cannot be used; everything else goes on, and is ready.
    """

    ready: bool
    reasons: Sequence[str]
    write_seconds: float | None
    write_error: str | None
    dispatcher: DispatcherHealth
    adapter_problems: Sequence[Problem] = ()


@attrs.frozen(kw_only=True)
class StartCheck:
    """The result of checking a campaign's contacts before it starts.

    Attributes:
        contacts: Contacts that would be contacted.
        checked: How many of them were checked, from the first on.
        failures_by_reason: How many of these will fail, by reason: `over_segment_cap` or `empty_message`.
        placeholder_problems: How many of these have no value for a placeholder without a fallback, or no date where one
            is wanted.
        text_warnings: Parts of the text that may be meant as placeholders, and are sent as they are.
        warnings: Likely mistakes that do not prevent the start, each with its field: a sending number
            that is not the workspace's (in a sandbox), STOP as a reply to a name, a text that repeats the footer,
            contacts that an earlier version may have loaded under a wrong number.
    """

    contacts: int
    checked: int
    failures_by_reason: Mapping[str, int]
    placeholder_problems: tuple[PlaceholderProblem, ...] = ()
    text_warnings: tuple[TextWarning, ...] = ()
    warnings: Sequence[Problem] = ()

    @property
    def failing(self) -> int:
        """The number of checked contacts that will fail."""
        return sum(self.failures_by_reason.values())
