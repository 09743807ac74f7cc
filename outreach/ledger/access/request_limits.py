"""The request limit of a workspace, granted to processes in blocks (docs/interface.md#request-limit)."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.work import RequestWindow
from outreach.storage.unit_of_work import Transaction

WINDOW: Final = timedelta(seconds=60)

_AHEAD: Final = timedelta(seconds=1)
"""A window that begins farther ahead than this dates from before a clock step; clocks of nodes differ by less."""

_PARTS: Final = 8
"""A block is at most this fraction of what is left, because other processes cannot use an unused block."""


@attrs.frozen(kw_only=True)
class UnsettledRequests:
    """Requests of the window since `since` that a process granted and did not use, or admitted uncounted."""

    count: int
    since: datetime


@attrs.frozen(kw_only=True)
class Grant:
    """A block of a workspace's requests.

    Attributes:
        limit: Requests a minute.
        count: How many this process may admit, besides earlier blocks of the same window.
        ungranted: Requests of this window that no process has been granted.
        since: When the window began.
    """

    limit: int
    count: int
    ungranted: int
    since: datetime

    @property
    def can_request_ahead(self) -> bool:
        """Whether enough is left for blocks larger than one."""
        return self.ungranted >= 2 * _PARTS

    def is_current(self, now: datetime) -> bool:
        """Whether the window still lasts."""
        return is_in_window(self.since, now)

    def reset_seconds(self, now: datetime) -> int:
        """Return whole seconds until the next window."""
        return reset_seconds(self.since, now)


def is_in_window(since: datetime, now: datetime) -> bool:
    """Return whether a window still lasts; another node may have begun it by a clock that is a little ahead."""
    return since - _AHEAD <= now < since + WINDOW


def reset_seconds(since: datetime, now: datetime) -> int:
    """Return whole seconds until a window ends, from 1 to 60."""
    left = min(since + WINDOW - now, WINDOW)
    return max(1, math.ceil(left.total_seconds()))


def grant(
    tx: Transaction,
    workspace_id: str,
    *,
    needed: int,
    wanted: int,
    now: datetime,
    unused: UnsettledRequests | None = None,
    uncounted: UnsettledRequests | None = None,
) -> Grant | None:
    """Count a block of requests against the workspace's limit before they arrive; None without a limit.

    A window begins with the first block after the last one ended, so that all its requests may come in one burst.

    Args:
        tx: The transaction.
        workspace_id: The workspace.
        needed: Requests that wait now; granted as far as the limit allows.
        wanted: Expected requests; at most a fraction of what is left is granted for these.
        now: The time.
        unused: Granted requests that the process gives back.
        uncounted: Requests that it admitted while nothing could be written.
    """
    workspace = tx.workspaces.get(workspace_id)
    limit = workspace.request_limit if workspace is not None else None
    if limit is None:
        return None
    window = tx.requests.window(workspace_id)
    if window is None or not is_in_window(window.started_at, now):
        window = RequestWindow(workspace_id=workspace_id, started_at=now, count=0)
    count = window.count
    if unused is not None and unused.since == window.started_at:
        count = max(0, count - unused.count)
    if uncounted is not None and is_in_window(uncounted.since, now):
        count += uncounted.count
    left = max(0, limit - count)
    granted = min(left, max(needed, min(wanted, left // _PARTS)))
    tx.requests.put_window(attrs.evolve(window, count=count + granted))
    return Grant(limit=limit, count=granted, ungranted=left - granted, since=window.started_at)


def offline_allowance(window: RequestWindow | None, limit: int, *, now: datetime) -> int:
    """Return how many requests a process may admit in a window while nothing can be written.

    Each process takes a fraction of what is left, so that as many processes as parts stay within the limit.
    """
    counted = window.count if window is not None and is_in_window(window.started_at, now) else 0
    return max(0, limit - counted) // _PARTS
