"""The request limit of a workspace, granted to processes in blocks (docs/interface.md#request-limit)."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.work import RequestWindow
from outreach.working_set import Transaction

WINDOW: Final = timedelta(seconds=60)

_PARTS: Final = 8
"""A block is at most such a part of what is left: what one process holds and does not use is missing elsewhere."""


@attrs.frozen(kw_only=True)
class UnsettledRequests:
    """Requests that a process has not settled yet: granted and not used, or let in and not counted.

    Attributes:
        count: How many.
        since: When the minute began to which they belong.
    """

    count: int
    since: datetime


@attrs.frozen(kw_only=True)
class Grant:
    """A block of a workspace's requests.

    Attributes:
        limit: Requests a minute.
        count: How many this process may let in, beside those that it was granted before in the same minute.
        ungranted: Requests of this minute that no process has been granted yet.
        since: When the minute began.
    """

    limit: int
    count: int
    ungranted: int
    since: datetime

    @property
    def can_request_ahead(self) -> bool:
        """Whether so much is left that blocks are larger than one."""
        return self.ungranted >= 2 * _PARTS

    def is_current(self, now: datetime) -> bool:
        """Whether it is that minute still."""
        return is_in_window(self.since, now)

    def reset_seconds(self, now: datetime) -> int:
        """Return whole seconds until the next minute begins."""
        return reset_seconds(self.since, now)


def is_in_window(since: datetime, now: datetime) -> bool:
    """Whether a minute that began so long ago lasts still; one from the future means a clock that was set back."""
    return since <= now < since + WINDOW


def reset_seconds(since: datetime, now: datetime) -> int:
    """Return whole seconds until a minute is over, at least 1."""
    return max(1, math.ceil((since + WINDOW - now).total_seconds()))


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
    """Count a block of requests against the workspace's limit before they come; None where there is no limit.

    A minute begins with the first block after the last one ended, so that all requests of a minute may come in one
    burst.

    Args:
        tx: The transaction.
        workspace_id: Whose limit it is.
        needed: How many requests wait: they are granted as far as there are so many.
        wanted: How many more are likely to come; at most a part of what is left is granted for these.
        now: The present moment.
        unused: What the process was granted and gives back.
        uncounted: What it let in while nothing could be written; counted now.
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
    """Return how many requests a process may let in while nothing can be written, all in all in this minute.

    What is stored stands still then for every process, and each takes a part of what it leaves: together they stay
    within the limit while there are no more processes than parts.
    """
    counted = window.count if window is not None and is_in_window(window.started_at, now) else 0
    return max(0, limit - counted) // _PARTS
