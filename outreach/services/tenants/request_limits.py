"""What an application needs that serves the engine over HTTP itself: request limits, pages as bytes.

The request limit of a workspace is granted by the storage in blocks, which each process spends.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import Final, Literal, Unpack

import attrs

from outreach.core.logged_errors import masked
from outreach.errors import OutreachError, RateLimited, StorageBusy
from outreach.ledger.access import request_limits
from outreach.ledger.access.request_limits import Grant, UnsettledRequests, is_in_window, reset_seconds
from outreach.models.base import JsonPage
from outreach.models.campaign import CampaignFilters
from outreach.models.work import RateLimitState
from outreach.models.workspace import Workspace
from outreach.services.campaigns.pages import CampaignPageCache, numbered_page
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

_WAIT_SECONDS: Final = 1.0
"""How long a request waits for a block; only a locked database takes longer than an instant."""

_MAX_WAIT_SECONDS: Final = 3.0
"""How long a request waits in all, once the offline allowance is used up."""

_SETTLING_SECONDS: Final = 1.0
"""How long all processes have to settle their uncounted requests when the database is writable again."""

_USED_BEFORE_ASKING_AHEAD: Final = 4
"""Below this use, no block is requested ahead, so that other processes get theirs."""

_FIRST_BLOCK: Final = 16
"""How many requests are expected in a new minute: each block is a write, which waits behind those of others."""

_MAX_ROUNDS: Final = 10
_MAX_WORKSPACES: Final = 10_000

_log = logging.getLogger(__name__)


@attrs.define(eq=False, kw_only=True)
class _Allowance:
    """One workspace's minute in this process.

    Attributes:
        seen_limit: The limit when the last block was requested.
        grant: The latest block; None before the first one, and without a limit.
        unlimited: Whether storage reported no limit.
        left: Requests granted and not spent.
        used: Requests spent in this minute.
        used_before: Requests spent in the minute before.
        waiting: Requests that wait for a block.
        request: The running request for a block.
        late: Whether the database was not writable at the last request for a block.
        unused: To be given back with the next block.
        uncounted: Requests accepted without being counted.
    """

    seen_limit: int
    grant: Grant | None = None
    unlimited: bool = False
    left: int = 0
    used: int = 0
    used_before: int = 0
    waiting: int = 0
    request: asyncio.Task[None] | None = None
    late: bool = False
    unused: UnsettledRequests | None = None
    uncounted: UnsettledRequests | None = None

    def follow(self, limit: int) -> None:
        """Start afresh when the limit was changed; unspent requests are given back."""
        if limit == self.seen_limit:
            return
        if self.grant is not None and self.left:
            self.unused = UnsettledRequests(count=self.left, since=self.grant.since)
        self.seen_limit, self.grant, self.left, self.unlimited = limit, None, 0, False

    def spend(self, now: datetime) -> RateLimitState | None:
        """Take one granted request; None if none is granted."""
        grant = self.grant
        if grant is None or not grant.is_current(now):
            return None
        reset = grant.reset_seconds(now)
        if not self.left:
            if not grant.ungranted:
                raise RateLimited(limit=grant.limit, retry_after_seconds=reset)
            return None
        self.left -= 1
        self.used += 1
        return RateLimitState(limit=grant.limit, remaining=self.left + grant.ungranted, reset_seconds=reset)

    def is_running_low(self) -> bool:
        """Return whether to request the next block before this one is spent."""
        grant = self.grant
        return (
            grant is not None
            and self.request is None
            and self.used >= _USED_BEFORE_ASKING_AHEAD
            and self.left <= max(self.used // 4, _FIRST_BLOCK // 2)
            and grant.can_request_ahead
        )

    def take_in(self, grant: Grant | None, *, limit: int, settled: UnsettledRequests | None) -> None:
        """Add a granted block."""
        if settled is not None and self.uncounted is not None and settled.since == self.uncounted.since:
            rest = self.uncounted.count - settled.count
            self.uncounted = attrs.evolve(self.uncounted, count=rest) if rest else None
        if limit != self.seen_limit:
            # The limit changed meanwhile: the block was counted under the old one, and is given back.
            self.unused = None if grant is None else UnsettledRequests(count=grant.count, since=grant.since)
            return
        self.unlimited = grant is None
        if grant is None or self.grant is None or grant.since != self.grant.since:
            self.used_before, self.used, self.left = self.used, 0, 0
        self.grant = grant
        self.left += 0 if grant is None else grant.count


class RateLimiter:
    """Counts requests against the limits of their workspaces.

    Storage counts a block before it is spent, so that all processes together stay within the limit. While the database
    cannot be written, each process accepts an eighth of what the minute has left, and counts that afterwards.
    """

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._allowances: dict[str, _Allowance] = {}

    async def acquire(self, workspace: Workspace) -> RateLimitState | None:
        """Count one request against the workspace's limit, and return the state; None without a limit.

        Raises:
            RateLimited: The limit is used up.
            StorageBusy: The database is not writable, and the offline allowance is used up.
        """
        # Grants belong to the engine's loop.
        self._context.loop_guard.require()
        if workspace.request_limit is None:
            return None
        allowance = self._allowance_of(workspace.id, workspace.request_limit)
        loop = asyncio.get_running_loop()
        gives_up_at = loop.time() + _MAX_WAIT_SECONDS
        for _ in range(_MAX_ROUNDS):
            quota = allowance.spend(self._context.now())
            if quota is not None:
                if allowance.is_running_low():
                    self._ask(workspace.id, allowance)
                return quota
            request = self._ask(workspace.id, allowance)
            quota = (
                await self._admit_uncounted(workspace.id, workspace.request_limit, allowance)
                if allowance.late
                else None
            )
            if quota is not None:
                return quota
            left = gives_up_at - loop.time()
            if left <= 0:
                break
            allowance.waiting += 1
            try:
                await asyncio.wait({request}, timeout=left if allowance.late else min(left, _WAIT_SECONDS))
            finally:
                allowance.waiting -= 1
            if allowance.unlimited:
                return None
            if not request.done():
                allowance.late = True
        raise StorageBusy("The database cannot be written at the moment, so requests cannot be counted.")

    async def aclose(self) -> None:
        """Stop requesting blocks."""
        requests = [allowance.request for allowance in self._allowances.values() if allowance.request is not None]
        self._allowances.clear()
        for task in requests:
            task.cancel()
        await asyncio.gather(*requests, return_exceptions=True)

    def _allowance_of(self, workspace_id: str, limit: int) -> _Allowance:
        allowance = self._allowances.get(workspace_id)
        if allowance is None:
            if len(self._allowances) >= _MAX_WORKSPACES:
                self._forget_idle()
            allowance = self._allowances[workspace_id] = _Allowance(seen_limit=limit)
        allowance.follow(limit)
        return allowance

    def _forget_idle(self) -> None:
        """Forget workspaces whose minute is over and that have nothing to settle."""
        now = self._context.now()
        for workspace_id, allowance in list(self._allowances.items()):
            if (
                allowance.request is None
                and allowance.uncounted is None
                and (allowance.grant is None or not allowance.grant.is_current(now))
            ):
                del self._allowances[workspace_id]

    def _ask(self, workspace_id: str, allowance: _Allowance) -> asyncio.Task[None]:
        """Request a block, one at a time, in a task that outlives a cancelled waiter."""
        if allowance.request is None:
            allowance.request = asyncio.create_task(self._grant(workspace_id, allowance), name="outreach request limit")
        return allowance.request

    async def _grant(self, workspace_id: str, allowance: _Allowance) -> None:
        """Get a block; if the database was not writable, first settle the requests accepted meanwhile.

        Other processes settle theirs within the same second, so more is granted only after it.
        """
        try:
            while (outcome := await self._count(workspace_id, allowance)) != "granted":
                if outcome == "failed" and (
                    allowance.uncounted is None or not is_in_window(allowance.uncounted.since, self._context.now())
                ):
                    return
                await asyncio.sleep(_SETTLING_SECONDS)
                allowance.late = outcome == "failed"
        finally:
            allowance.request = None

    async def _count(self, workspace_id: str, allowance: _Allowance) -> Literal["granted", "settled", "failed"]:
        """Get a block counted, or only settle if the database was not writable before."""
        clock, limit = self._context.clock, allowance.seen_limit

        def operation(tx: Transaction) -> tuple[Grant | None, UnsettledRequests | None, bool]:
            uncounted, late = allowance.uncounted, allowance.late
            granted = request_limits.grant(
                tx,
                workspace_id,
                needed=0 if late else max(allowance.waiting, 1),
                wanted=0 if late else max(allowance.used, allowance.used_before // 4, _FIRST_BLOCK),
                now=clock.now(),
                unused=allowance.unused,
                uncounted=uncounted,
            )
            return granted, uncounted, late

        try:
            granted, settled, late = await self._context.storage.write_in(workspace_id, operation)
        except OutreachError as error:
            allowance.late = True
            _log.debug(
                "could not count a block of requests: %s", masked(error.message), extra={"action": "count_failed"}
            )
            return "failed"
        allowance.unused = None
        allowance.take_in(granted, limit=limit, settled=settled)
        return "settled" if late else "granted"

    async def _admit_uncounted(self, workspace_id: str, limit: int, allowance: _Allowance) -> RateLimitState | None:
        """Let one request in that is counted later; None when the offline allowance is used up."""
        window = await self._context.storage.read(lambda tx: tx.requests.window(workspace_id))
        now = self._context.now()
        since = (
            allowance.uncounted.since
            if allowance.uncounted is not None and is_in_window(allowance.uncounted.since, now)
            else now
        )
        if window is not None and is_in_window(window.started_at, now):
            since = window.started_at
        admitted = (
            allowance.uncounted.count if allowance.uncounted is not None and allowance.uncounted.since == since else 0
        )
        reset = reset_seconds(since, now)
        if window is not None and window.started_at == since and window.count >= limit:
            raise RateLimited(limit=limit, retry_after_seconds=reset)
        most = request_limits.offline_allowance(window, limit, now=now)
        if admitted >= most:
            return None
        allowance.uncounted = UnsettledRequests(count=admitted + 1, since=since)
        return RateLimitState(limit=limit, remaining=most - admitted - 1, reset_seconds=reset)


class HttpOperations:
    """Operations that only an HTTP interface needs: `Outreach.http`."""

    def __init__(self, *, pages: CampaignPageCache, rate_limits: RateLimiter) -> None:
        self._pages = pages
        self._rate_limits = rate_limits

    async def count_request(self, workspace: Workspace) -> RateLimitState | None:
        """Count a request against its workspace's limit; return what is left, None without a limit.

        Raises:
            RateLimited: The limit is reached.
            StorageBusy: The database takes no writes, and the allowance for that is used up.
        """
        return await self._rate_limits.acquire(workspace)

    async def list_campaigns(
        self,
        workspace_id: str,
        *,
        page: int = 1,
        page_size: int = 20,
        **filters: Unpack[CampaignFilters],
    ) -> JsonPage:
        """Return a page of campaigns as JSON with the interface's fields, newest first, archived ones among them.

        A rendered page is reused until any process changes what it shows.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: An argument is invalid.
        """
        query = numbered_page(workspace_id, filters, page, page_size)
        return await self._pages.get(query)
