"""The overall status: processes that dispatch, running and blocked campaigns, findings for people, and figures."""

from __future__ import annotations

import platform
import shutil
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

import attrs

from outreach.core.vault import Vault
from outreach.core.version import __version__
from outreach.errors import ConfigError
from outreach.ledger import provider_throttles, webhooks
from outreach.ledger.campaigns.transitions import not_installed
from outreach.ledger.common import provider_of, workspace_of
from outreach.ledger.sending.intents import lag_of_campaign, lag_of_singles
from outreach.models.account import PROVIDERS, StoredAccount
from outreach.models.campaign import Campaign
from outreach.models.database import EngineFigures
from outreach.models.schedule import Schedule
from outreach.models.states import CampaignStatus
from outreach.models.status import (
    AccountInTrouble,
    BlockedRun,
    DisabledWebhook,
    DiskUse,
    DispatchedBy,
    DispatchOverview,
    EngineStatus,
    FailingWebhook,
    LiveWorker,
    PausedCampaign,
    PausedSchedule,
    RunningCampaign,
    SilentAccount,
    StartTakenBack,
    ThrottledProvider,
    Versions,
)
from outreach.models.webhook import Webhook
from outreach.models.work import DatabaseHome
from outreach.providers.registry import Adapters
from outreach.rules import receipts
from outreach.rules.explanations import PAUSE_REASONS, SCHEDULE_REASONS
from outreach.rules.status_findings import find_problems
from outreach.rules.webhooks import DISABLED_REASONS, FAILING_AFTER, failure_words
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

T = TypeVar("T")

MAX_LISTED: Final = 100
"""Entries of each list."""

MAX_COUNTED: Final = 10_000
"""The most unknown requests that are counted, so that a look takes milliseconds."""

MAX_ACCOUNTS: Final = 1_000
"""The most accounts whose credentials are tried."""

_LATEST_RUNS: Final = 20
"""The runs among which the latest one that was started or not is looked for: the others were left out."""

_NOT_STARTED: Final = frozenset({CampaignStatus.DRAFT, CampaignStatus.READY})

MAX_CAMPAIGNS: Final = 100
"""The most campaigns of an account without receipts whose messages are counted."""

MAX_WAITING_COUNTED: Final = 100_000
"""The most waiting recipients that are counted, so that a look takes milliseconds."""


_NOT_OPENED: Final = "the secret key does not open the account's credentials"
"""Why a campaign is paused whose account cannot be used here: a part of a sentence."""


class _Lists:
    """Cuts lists at `MAX_LISTED` entries.

    Attributes:
        truncated: The names of those that were longer.
    """

    def __init__(self) -> None:
        self.truncated: list[str] = []

    def cut(self, name: str, found: Sequence[T]) -> Sequence[T]:
        """Return the entries of a list that are shown."""
        if len(found) > MAX_LISTED:
            self.truncated.append(name)
        return found[:MAX_LISTED]


class StatusQuery:
    """Reads the status of one workspace or all; costs the same however much was sent before."""

    def __init__(self, context: ServiceContext, vault: Vault) -> None:
        self._context = context
        self._vault = vault

    async def __call__(self, workspace_id: str | None = None) -> EngineStatus:
        """Return the current status of a workspace, or of all, with what needs a person.

        Raises:
            NotFound: The workspace does not exist.
        """
        seen, accounts = await self._context.storage.read(lambda tx: self._look(tx, workspace_id))
        dispatching = seen.dispatching
        if dispatching.by == "no_process":
            refused = await self._context.storage.why_not_writable()
            dispatching = attrs.evolve(dispatching, not_writable=None if refused is None else refused.message)
        problems = [found for account in accounts if (found := self._problem(account)) is not None]
        disk = _disk_use(self._context.storage.home())
        # All processes of a database file are beside its key.
        if disk is None and len(problems) == len(accounts) and seen.dispatching.by == "another_process":
            problems = [attrs.evolve(one, key_elsewhere=one.installed) for one in problems]
        unusable = {(one.workspace_id, one.provider) for one in problems if one.installed}
        truncated = ["accounts"] if len(accounts) > MAX_ACCOUNTS or len(problems) > MAX_LISTED else []
        status = attrs.evolve(
            seen,
            dispatching=dispatching,
            accounts=problems[:MAX_LISTED],
            paused=[
                attrs.evolve(one, why=_NOT_OPENED)
                if one.reason == "provider_auth" and (one.workspace_id, one.provider) in unusable
                else one
                for one in seen.paused
            ],
            truncated=[*seen.truncated, *truncated],
            disk=disk,
        )
        return attrs.evolve(status, findings=find_problems(status))

    def _look(self, tx: Transaction, workspace_id: str | None) -> tuple[EngineStatus, Sequence[StoredAccount]]:
        if workspace_id is not None:
            workspace_of(tx, workspace_id)
        now = self._context.now()
        counted = tx.campaigns.count_in_status(
            {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}, workspace_id=workspace_id
        )
        lists, more = _Lists(), MAX_LISTED + 1
        active = lists.cut("running", tx.campaigns.running(workspace_id=workspace_id, limit=more))
        paused = lists.cut("paused", tx.campaigns.paused_by_engine(workspace_id=workspace_id, limit=more))
        taken_back = lists.cut("taken_back", tx.campaigns.taken_back(workspace_id=workspace_id, limit=more))
        schedules = lists.cut("schedules", tx.schedules.paused(workspace_id, limit=more))
        blocked = lists.cut("blocked_runs", tx.schedules.blocked(workspace_id, limit=more))
        disabled = lists.cut("webhooks", tx.webhooks.disabled(workspace_id, limit=more))
        failing = lists.cut("failing", tx.webhooks.failing(workspace_id, now - FAILING_AFTER, limit=more))
        unknown = tx.dispatches.count_unknown(workspace_id, limit=MAX_COUNTED + 1)
        if sum(each.count for each in unknown) > MAX_COUNTED:
            lists.truncated.append("unknown")
            unknown = tx.dispatches.count_unknown(workspace_id, limit=MAX_COUNTED)
        throttles = lists.cut("throttles", provider_throttles.unexpired(tx, workspace_id, now, limit=more))
        held = lists.cut("held", tx.register.held(workspace_id, limit=more))
        accounts = tx.accounts.any_workspace(workspace_id, limit=MAX_ACCOUNTS + 1)
        has_callback_url = self._context.config.public_url is not None
        silent = lists.cut("silent", silent_accounts(tx, accounts, now, has_callback_url=has_callback_url))
        running = [_running(tx, campaign, now) for campaign in active]
        lags = [lag_of_singles(tx, workspace_id, now), *(campaign.lag_seconds for campaign in running)]
        status = EngineStatus(
            at=now,
            workspace_id=workspace_id,
            dispatching=dispatch_overview(self._context, tx, now),
            lag_seconds=max(lags),
            active_campaigns=counted[CampaignStatus.ACTIVE],
            scheduled_campaigns=counted[CampaignStatus.SCHEDULED],
            running=running,
            paused=[_paused(tx, campaign, self._context.adapters) for campaign in paused],
            taken_back=[_taken_back(campaign) for campaign in taken_back],
            schedules=[_paused_schedule(one) for one in schedules],
            blocked_runs=[run for one in blocked if (run := _blocked_run(tx, one, taken_back)) is not None],
            webhooks=[_disabled_webhook(one) for one in disabled],
            failing=[found for one in failing if (found := _failing_webhook(tx, one)) is not None],
            unknown=unknown,
            throttles=[
                ThrottledProvider(workspace_id=throttle.workspace_id, provider=throttle.provider, until=throttle.until)
                for throttle in throttles
            ],
            held=held,
            silent=silent,
            truncated=lists.truncated,
            adapter_problems=self._context.adapters.problems,
            versions=_versions(tx) if workspace_id is None else None,
        )
        return status, accounts

    def _problem(self, account: StoredAccount) -> AccountInTrouble | None:
        """Return why an account cannot be used here; None if it can."""
        installed = self._context.adapters.kind(account.provider) is not None
        why = f"The account {account.id} cannot be used: no adapter for {account.provider} is installed here."
        if installed:
            try:
                self._vault.open(account.id, account.sealed, provider=account.provider)
            except ConfigError as error:
                why = error.message
            else:
                return None
        return AccountInTrouble(
            id=account.id,
            workspace_id=account.workspace_id,
            provider=account.provider,
            why=why,
            installed=installed,
        )


def dispatch_overview(context: ServiceContext, tx: Transaction, now: datetime) -> DispatchOverview:
    """Return who dispatches from the database, by the workers' leases: a worker that stops gives its lease back."""
    lease, home = tx.leases.current(), tx.leases.home()
    workers = [worker for worker in tx.workers.list() if worker.until > tx.now()]
    # After a clock was set back, the heartbeat may lie in the future.
    age = None if lease is None else max((now - lease.renewed_at).total_seconds(), 0.0)
    by: DispatchedBy
    if context.dispatching():
        by = "this_process"
    elif workers:
        by = "another_process"
    else:
        by = "no_process"
    return DispatchOverview(
        by=by,
        epoch=lease.epoch if lease is not None else None,
        heartbeat_at=lease.renewed_at if lease is not None else None,
        heartbeat_seconds_ago=age,
        copied_to=home.copied_to if home is not None else None,
        workers=[LiveWorker(epoch=one.epoch, heartbeat_at=one.renewed_at) for one in workers[:MAX_LISTED]],
    )


def silent_accounts(
    tx: Transaction, accounts: Sequence[StoredAccount], now: datetime, *, has_callback_url: bool
) -> Sequence[SilentAccount]:
    """Return which of some accounts get no receipts for longer than usual, in one query."""
    periods = [
        (account, period)
        for account in accounts
        if (
            period := receipts.time_without_receipts(
                account.last_report_at,
                now,
                connected_at=account.created_at,
                always_reports=has_callback_url and account.provider in PROVIDERS,
            )
        )
        is not None
    ]
    accepted = tx.accounts.count_without_receipt(
        ((account.workspace_id, account.provider, *period) for account, period in periods),
        campaigns=MAX_CAMPAIGNS,
        limit=receipts.MOST_COUNTED,
    )
    return [
        SilentAccount(
            id=account.id,
            workspace_id=account.workspace_id,
            provider=account.provider,
            last_report_at=account.last_report_at,
            accepted=min(count, receipts.MOST_COUNTED),
        )
        for account, _ in periods
        if receipts.is_silent(count := accepted.get((account.workspace_id, account.provider), 0))
    ]


def _versions(tx: Transaction) -> Versions:
    database, schema = tx.leases.versions()
    return Versions(outreach=__version__, python=platform.python_version(), database=database, schema=schema)


def _disk_use(home: DatabaseHome | None) -> DiskUse | None:
    if home is None or home.state:
        # In memory, or on a server.
        return None
    file = Path(home.path)
    try:
        log = file.with_name(f"{file.name}-wal")
        return DiskUse(
            path=home.path,
            database_bytes=file.stat().st_size,
            log_bytes=log.stat().st_size if log.exists() else 0,
            free_bytes=shutil.disk_usage(file.parent).free,
        )
    except OSError:
        # It was just moved, which other findings report.
        return None


def _running(tx: Transaction, campaign: Campaign, now: datetime) -> RunningCampaign:
    counters = campaign.counters
    return RunningCampaign(
        id=campaign.id,
        workspace_id=campaign.workspace_id,
        name=campaign.name,
        channel=campaign.channel,
        recipients=counters.total,
        ended=counters.total - counters.open,
        lag_seconds=lag_of_campaign(tx, campaign, now),
    )


def _paused(tx: Transaction, campaign: Campaign, adapters: Adapters) -> PausedCampaign:
    assert campaign.pause_reason is not None  # noqa: S101 - the query asks for those that have one
    provider = provider_of(tx, campaign)
    why = PAUSE_REASONS[campaign.pause_reason]
    workspace = workspace_of(tx, campaign.workspace_id)
    installed = provider is None or not_installed(workspace, provider, adapters) is None
    if campaign.pause_reason == "provider_auth" and not installed:
        why = f"no adapter for {provider} is installed here"
    agent = tx.agents.get(campaign.workspace_id, campaign.agent_id) if campaign.agent_id is not None else None
    return PausedCampaign(
        id=campaign.id,
        workspace_id=campaign.workspace_id,
        name=campaign.name,
        channel=campaign.channel,
        provider=provider,
        agent_id=campaign.agent_id,
        reason=campaign.pause_reason,
        why=why,
        provider_installed=installed,
        agent_is_active=agent is None or agent.is_active,
        agent_can_place_calls=agent is None or agent.can_place_calls,
    )


def _taken_back(campaign: Campaign) -> StartTakenBack:
    return StartTakenBack(
        id=campaign.id, workspace_id=campaign.workspace_id, name=campaign.name, channel=campaign.channel
    )


def _paused_schedule(schedule: Schedule) -> PausedSchedule:
    reason = schedule.reason or ""
    return PausedSchedule(
        id=schedule.id,
        workspace_id=schedule.workspace_id,
        name=schedule.name,
        reason=reason,
        why=SCHEDULE_REASONS.get(reason, reason),
    )


def _blocked_run(tx: Transaction, schedule: Schedule, taken_back: Sequence[Campaign]) -> BlockedRun | None:
    """Return the latest run of a schedule, unless it was started, or a person has decided about its campaign."""
    runs = tx.occurrences.page(schedule.workspace_id, schedule.id, limit=_LATEST_RUNS)
    run = next((one for one in runs if one.state in {"blocked", "started"}), None)
    if run is None or run.state == "started" or run.run_id in {one.id for one in taken_back}:
        return None
    if run.run_id is None:
        waits = schedule.state == "active"
    else:
        campaign = tx.campaigns.get(schedule.workspace_id, run.run_id)
        waits = campaign is not None and campaign.status in _NOT_STARTED and campaign.archived_at is None
    if not waits:
        return None
    return BlockedRun(
        id=schedule.id,
        workspace_id=schedule.workspace_id,
        name=schedule.name,
        at=run.at,
        campaign_id=run.run_id,
        reason=run.reason or "",
        why=run.detail or "",
    )


def _disabled_webhook(webhook: Webhook) -> DisabledWebhook:
    reason = webhook.reason or ""
    return DisabledWebhook(
        id=webhook.id,
        workspace_id=webhook.workspace_id,
        host=urlsplit(webhook.url).hostname or "",
        reason=reason,
        why=DISABLED_REASONS.get(reason, reason),
    )


def _failing_webhook(tx: Transaction, webhook: Webhook) -> FailingWebhook | None:
    cursor = tx.webhook_cursors.get(webhook.workspace_id, webhook.id)
    if cursor is None or cursor.failing_since is None:
        return None
    # The latest one has failed, as all of them since.
    latest = next(iter(tx.webhook_attempts.page(webhook.workspace_id, webhook.id, limit=1)), None)
    status, error = (None, None) if latest is None else (latest.status, latest.error)
    return FailingWebhook(
        id=webhook.id,
        workspace_id=webhook.workspace_id,
        host=urlsplit(webhook.url).hostname or "",
        since=cursor.failing_since,
        status=status,
        why=failure_words(status, error),
        next_at=cursor.probe_at,
    )


class FiguresQuery:
    """Counts what is open."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def __call__(self, since: int | None = None) -> EngineFigures:
        """Return the present figures of the whole database.

        Args:
            since: Count opt-outs after this position; None counts none. `EngineFigures.until` is the next one.
        """
        return await self._context.storage.read(lambda tx: self._look(tx, since))

    def _look(self, tx: Transaction, since: int | None) -> EngineFigures:
        now = self._context.now()
        until = tx.trail.last_number()
        throttles = provider_throttles.unexpired(tx, None, now, limit=MAX_COUNTED)
        silent = silent_accounts(
            tx,
            tx.accounts.any_workspace(None, limit=MAX_ACCOUNTS),
            now,
            has_callback_url=self._context.config.public_url is not None,
        )
        return EngineFigures(
            at=now,
            dispatching=dispatch_overview(self._context, tx, now),
            campaigns=tx.campaigns.open_groups(),
            waiting=tx.recipients.count_waiting(limit=MAX_WAITING_COUNTED),
            unknown=tx.dispatches.count_unknown(None, limit=MAX_COUNTED),
            throttles=Counter(one.provider for one in throttles),
            silent=Counter(one.provider for one in silent),
            schedules_paused=len(tx.schedules.paused(None, limit=MAX_LISTED)),
            webhooks_disabled=len(tx.webhooks.disabled(None, limit=MAX_LISTED)),
            webhook_lags=webhooks.lags(tx, now, limit=MAX_LISTED),
            held=len(tx.register.held(None, limit=MAX_LISTED)),
            opt_outs={} if since is None else tx.trail.count_opt_outs(since, until),
            until=until,
        )
