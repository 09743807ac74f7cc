"""Erasing what workspaces keep no longer, slice by slice, each in a transaction of its own."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol, TypeVar

from anyio import to_thread

from outreach.core.clock import Clock
from outreach.errors import ArchiveUnavailable
from outreach.ledger.campaigns.reporting import report_of
from outreach.ledger.common import campaign_of
from outreach.ledger.erasure.campaign_deletion import begin_erasure, erase_slice
from outreach.ledger.opt_out import inbound
from outreach.models.archive import RetentionResult
from outreach.models.campaign_report import CampaignReport
from outreach.protocols.ledger_archives import LedgerArchives
from outreach.protocols.storage import Operation
from outreach.storage.unit_of_work import Transaction

T = TypeVar("T")

_SALT_BYTES: Final = 20

_LONGEST_WAIT: Final = timedelta(days=365)
"""How much longer replies and opt-outs are kept for the report of a campaign that is not erased; some never end."""


class Transactions(Protocol):
    """The part of a storage, or of a guard before one, that runs operations."""

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction."""
        ...

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation on a snapshot."""
        ...


async def apply_retention(
    storage: Transactions,
    clock: Clock,
    archives: LedgerArchives,
    *,
    workspace_id: str | None,
    actor: str,
    limit: int,
    max_slices: int,
    by_age: bool = True,
) -> RetentionResult:
    """Erase at most `max_slices` slices of `limit` rows, of one workspace or, with None, of all; archives included.

    Not `by_age`, only what somebody has begun to erase is finished.
    """
    campaigns = slices = 0
    more = True
    while more and campaigns + slices < max_slices:
        now = clock.now()
        report = (
            await storage.read(lambda tx, now=now: due_report(tx, workspace_id, now=now))  # type: ignore[misc]
            if by_age
            else None
        )
        if report is not None:
            await storage.write(
                lambda tx, report=report, now=now: begin_erasure(tx, report, now=now, actor=actor)  # type: ignore[misc]
            )
            campaigns += 1
            continue
        salt = secrets.token_hex(_SALT_BYTES)
        more = await storage.write(
            lambda tx, salt=salt, now=now: retention_slice(  # type: ignore[misc]
                tx, workspace_id, salt=salt, now=now, limit=limit, by_age=by_age
            ),
            bulk=True,
        )
        slices += int(more)
    unreachable = await erase_in_archives(storage, archives, workspace_id)
    return RetentionResult(campaigns=campaigns, slices=slices, more=more, unreachable=unreachable)


async def erase_in_archives(storage: Transactions, archives: LedgerArchives, workspace_id: str | None) -> Sequence[str]:
    """Erase erased campaigns in their archives too; return what is wrong with those that cannot be written."""
    problems: dict[str, str] = {}
    while pending := await storage.read(lambda tx: tx.archives.to_erase(workspace_id, without=problems)):
        for one in pending:
            if one.archive_id in problems:
                continue
            try:
                await to_thread.run_sync(archives.erase_campaign, one)
            except ArchiveUnavailable as error:
                problems[one.archive_id] = error.message
                continue
            await storage.write(lambda tx, one=one: tx.archives.erased(one))  # type: ignore[misc]
    return list(problems.values())


def due_report(tx: Transaction, workspace_id: str | None, *, now: datetime) -> CampaignReport | None:
    """Return the report of the next campaign to erase, of a workspace or all; None if none is due."""
    found = tx.erasures.due_campaign(workspace_id, now=now)
    return None if found is None else report_of(tx, campaign_of(tx, *found), now)


def retention_slice(
    tx: Transaction, workspace_id: str | None, *, salt: str, now: datetime, limit: int, by_age: bool = True
) -> bool:
    """Erase one slice of what is due, besides whole campaigns; return whether there was anything.

    Args:
        tx: The transaction.
        workspace_id: One workspace; None for all.
        salt: For the first hash of a workspace's register.
        now: The time of the commit.
        limit: Rows of each kind.
        by_age: Whether what is old is erased, besides what somebody has begun to.
    """
    if erase_slice(tx, workspace_id, limit=limit):
        return True
    return by_age and any(
        _erase_rows(tx, owner, now - timedelta(days=days), salt=salt, limit=limit)
        for owner, days in tx.erasures.with_retention(workspace_id)
    )


def _erase_rows(tx: Transaction, workspace_id: str, before: datetime, *, salt: str, limit: int) -> bool:
    """Erase a slice of a workspace's single messages, calls, events, unreachable numbers and register."""
    waiting_since = before - _LONGEST_WAIT
    erased = tx.erasures.erase_old_singles(workspace_id, before, limit=limit)
    erased += tx.erasures.delete_old_events(
        workspace_id,
        before,
        waiting_since=waiting_since,
        limit=limit,
        on_inbound=partial(inbound.remember_opt_in, tx),
    )
    erased += tx.unreachable_numbers.delete_old(workspace_id, before, limit=limit)
    entries = tx.register.numbers_before(workspace_id, before, waiting_since=waiting_since, limit=limit)
    for entry in entries:
        tx.register.hash_number(entry, salt=salt)
    return bool(erased or entries)
