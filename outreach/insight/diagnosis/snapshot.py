"""The data that a diagnosis reads from the database, in one read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.ledger.common import workspace_of
from outreach.ledger.leases.leases import is_behind
from outreach.ledger.settling.callback_checks import misdirected_lately
from outreach.models.account import StoredAccount
from outreach.models.archive import ListedArchive
from outreach.models.campaign import Campaign
from outreach.models.reports import CallbackRecord
from outreach.models.states import CampaignStatus, WorkspaceMode, WorkspaceStatus
from outreach.models.work import Claim, DatabaseHome, HighWaterMark
from outreach.protocols.ledger_archives import LedgerArchives
from outreach.rules.readiness import is_sender_name
from outreach.storage.unit_of_work import Transaction

MAX_ACCOUNTS: Final = 100
"""Accounts whose providers are checked."""

_MAX_READ: Final = 1_000
"""Accounts among which those of live workspaces are looked for."""

MAX_LISTED: Final = 20
"""Campaigns and claims of one kind, and agents of one account."""

OVERDUE: Final = timedelta(minutes=1)
"""A campaign that ought to have begun is looked at by a dispatcher within a second."""


@attrs.frozen(kw_only=True)
class LiveAccount:
    """An account that real messages or calls need.

    Attributes:
        senders: The numbers that its workspace sends from there.
        agents: The provider's ids of the active agents that its workspace has there.
        misdirected: The latest callbacks that could not be read because of their address, one of each kind.
    """

    account: StoredAccount
    senders: Sequence[str]
    agents: Sequence[str]
    misdirected: Sequence[CallbackRecord] = ()


@attrs.frozen(kw_only=True)
class Snapshot:
    """The data of a diagnosis.

    Attributes:
        live: Accounts of live workspaces.
        more_accounts: Whether there are more of them.
        accounts: Those of all workspaces, as many as are read.
        lost_claims: Claims of workers that are not there.
        overdue: Scheduled campaigns of active workspaces whose start has passed.
        named_senders: Live campaigns whose sender is a name, to which nobody can reply.
        known_home: Where the database was when the last worker began.
        is_behind: Whether the database is older than the high-water mark beside it.
        archives: The archives that cannot be read.
    """

    live: Sequence[LiveAccount]
    more_accounts: bool
    accounts: Sequence[StoredAccount]
    lost_claims: Sequence[Claim]
    overdue: Sequence[Campaign]
    named_senders: Sequence[Campaign]
    known_home: DatabaseHome | None
    is_behind: bool
    archives: Sequence[ListedArchive]


def take_snapshot(tx: Transaction, archives: LedgerArchives, *, mark: HighWaterMark | None, now: datetime) -> Snapshot:
    """Read a snapshot; `mark` is the one beside the database."""
    known = tx.accounts.any_workspace(None, limit=_MAX_READ)
    accounts = list(itertools.islice(_live_accounts(tx, known, now), MAX_ACCOUNTS + 1))
    campaigns = tx.campaigns.in_status({CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED})
    named = (one for one in campaigns if _has_named_sender(one) and _is_live(tx, one.workspace_id))
    return Snapshot(
        live=accounts[:MAX_ACCOUNTS],
        more_accounts=len(accounts) > MAX_ACCOUNTS,
        accounts=known,
        lost_claims=_lost_claims(tx)[:MAX_LISTED],
        overdue=[one for one in campaigns if _is_overdue(tx, one, now)][:MAX_LISTED],
        named_senders=list(itertools.islice(named, MAX_LISTED)),
        known_home=tx.leases.home(),
        is_behind=is_behind(tx, mark, tx.leases.current()),
        archives=[one for one in archives.list_archives(tx, None) if one.problem is not None],
    )


def _live_accounts(tx: Transaction, known: Sequence[StoredAccount], now: datetime) -> Iterator[LiveAccount]:
    for account in known:
        if not _is_live(tx, account.workspace_id):
            continue
        numbers, agents = tx.numbers.list(account.workspace_id), tx.agents.list(account.workspace_id)
        there = [agent for agent in agents if agent.is_active and agent.provider == account.provider]
        yield LiveAccount(
            account=account,
            senders=[number.phone for number in numbers if number.carrier == account.provider],
            agents=[agent.provider_agent_id for agent in there if agent.provider_agent_id][:MAX_LISTED],
            misdirected=list(misdirected_lately(tx, account, now)),
        )


def _is_live(tx: Transaction, workspace_id: str) -> bool:
    workspace = tx.workspaces.get(workspace_id)
    return workspace is not None and workspace.mode is WorkspaceMode.LIVE and workspace.status is WorkspaceStatus.ACTIVE


def _lost_claims(tx: Transaction) -> Sequence[Claim]:
    workers = {worker.epoch for worker in tx.workers.list()}
    # Without a worker all claims wait for the next one, which clears them.
    return [claim for claim in tx.claims.held() if claim.epoch not in workers] if workers else []


def _is_overdue(tx: Transaction, campaign: Campaign, now: datetime) -> bool:
    start = campaign.scheduled_start_at
    if campaign.status is not CampaignStatus.SCHEDULED or start is None or now - start <= OVERDUE:
        return False
    # Elsewhere it waits until the workspace is active again.
    return workspace_of(tx, campaign.workspace_id).status is WorkspaceStatus.ACTIVE


def _has_named_sender(campaign: Campaign) -> bool:
    sender = campaign.from_number
    return campaign.channel == "sms" and sender is not None and is_sender_name(sender)
