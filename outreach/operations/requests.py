"""The request limit, and requests that may safely be sent again (design, section 3)."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final, Literal

import attrs

from outreach.errors import InvalidRequest, RateLimited, RequestInProgress
from outreach.models.work import RequestWindow, StoredRequest
from outreach.protocols.storage import Transaction

WINDOW: Final = timedelta(seconds=60)
RUNNING_LEASE: Final = timedelta(seconds=60)
"""A running request that has not kept its key for this long has died; another may take over."""


@attrs.frozen(kw_only=True)
class Quota:
    """What is left of a workspace's request limit.

    Attributes:
        limit: Requests a minute.
        remaining: Requests left in this minute.
        reset_seconds: Whole seconds until the next minute begins.
    """

    limit: int
    remaining: int
    reset_seconds: int


@attrs.frozen(kw_only=True)
class Answer:
    """The answer that a key replays."""

    body: bytes
    location: str | None = None


@attrs.frozen(kw_only=True)
class Begun:
    """How a request with an idempotency key stands.

    Attributes:
        state: `mine`: go ahead; `replay`: give the stored answer; `wait`: the first one still runs.
    """

    state: Literal["mine", "replay", "wait"]
    answer: Answer | None = None


def take(tx: Transaction, workspace_id: str, *, now: datetime) -> Quota | None:
    """Count one request against the workspace's limit; return what is left, or None where there is no limit.

    A minute begins with the first request after the last one ended, so that all requests of a minute may come
    in one burst.

    Raises:
        RateLimited: The minute's requests are used up; this one is not counted.
    """
    workspace = tx.workspaces.get(workspace_id)
    limit = workspace.request_limit if workspace is not None else None
    if limit is None:
        return None
    window = tx.requests.window(workspace_id)
    # A window from the future means that the system clock was set back; it must not lock a workspace out.
    if window is None or not window.started_at <= now < window.started_at + WINDOW:
        window = RequestWindow(workspace_id=workspace_id, started_at=now, count=0)
    reset = max(1, math.ceil((window.started_at + WINDOW - now).total_seconds()))
    if window.count >= limit:
        raise RateLimited(limit=limit, retry_after_seconds=reset)
    tx.requests.put_window(attrs.evolve(window, count=window.count + 1))
    return Quota(limit=limit, remaining=limit - window.count - 1, reset_seconds=reset)


def begin(
    tx: Transaction,
    workspace_id: str,
    operation: str,
    key: str,
    *,
    fingerprint: str,
    token: str,
    now: datetime,
    keep: timedelta,
    where: str = "Idempotency-Key",
) -> Begun:
    """Claim an idempotency key for a request, or tell how the one that has it stands.

    Raises:
        InvalidRequest: The key was used with other content; `where` is what holds it.
    """
    stored = tx.requests.stored(workspace_id, operation, key)
    if stored is not None and stored.expires_at > now:
        if stored.fingerprint != fingerprint:
            raise InvalidRequest.at(where, "was used before with other content; use a new key")
        if stored.answer is not None and stored.locked_until <= now:
            return Begun(state="replay", answer=Answer(body=stored.answer, location=stored.location))
        if stored.locked_until > now and stored.token != token:
            return Begun(state="wait")
    tx.requests.put_stored(
        StoredRequest(
            workspace_id=workspace_id,
            operation=operation,
            key=key,
            fingerprint=fingerprint,
            token=token,
            answer=None,
            location=None,
            locked_until=now + RUNNING_LEASE,
            expires_at=now + keep,
        )
    )
    return Begun(state="mine")


def keep(tx: Transaction, workspace_id: str, operation: str, key: str, *, token: str, now: datetime) -> StoredRequest:
    """Keep a claimed key for another while, and make sure that it is still ours.

    Raises:
        RequestInProgress: Another request has taken the key over.
    """
    stored = tx.requests.stored(workspace_id, operation, key)
    if stored is None or stored.token != token:
        raise RequestInProgress
    kept = attrs.evolve(stored, locked_until=now + RUNNING_LEASE)
    tx.requests.put_stored(kept)
    return kept


def finish(
    tx: Transaction,
    workspace_id: str,
    operation: str,
    key: str,
    *,
    token: str,
    answer: Answer,
    now: datetime,
    settled: bool = True,
) -> None:
    """Store the answer of a request, in the transaction that made what it tells of.

    An answer that is not settled may still be replaced by a fuller one: requests with the same key wait for that,
    until the running request would count as dead.

    Raises:
        RequestInProgress: Another request has taken the key over.
    """
    stored = keep(tx, workspace_id, operation, key, token=token, now=now)
    locked_until = now - RUNNING_LEASE if settled else stored.locked_until
    tx.requests.put_stored(
        attrs.evolve(stored, answer=answer.body, location=answer.location, locked_until=locked_until)
    )


def give_up(tx: Transaction, workspace_id: str, operation: str, key: str, *, token: str) -> None:
    """Forget a claimed key, because the request was refused or failed; nothing happens when it is not ours."""
    stored = tx.requests.stored(workspace_id, operation, key)
    if stored is not None and stored.token == token and stored.answer is None:
        tx.requests.delete_stored(workspace_id, operation, key)
