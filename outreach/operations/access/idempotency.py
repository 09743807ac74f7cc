"""Requests that may safely be sent again (docs/interface.md#safe-retry)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import attrs

from outreach.errors import InvalidRequest, RequestInProgress
from outreach.models.http import StoredAnswer
from outreach.models.work import IdempotencyRecord
from outreach.working_set import Transaction

RUNNING_LEASE: Final = timedelta(seconds=60)
"""A running request that has not kept its key for this long has died; another may take over."""

_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Until when nobody waits for an answer that is settled, whatever the clock is set to."""


@attrs.frozen(kw_only=True)
class KeyClaim:
    """How a request with an idempotency key stands.

    Attributes:
        state: `mine`: go ahead; `replay`: give the stored answer; `wait`: the first one still runs.
    """

    state: Literal["mine", "replay", "wait"]
    answer: StoredAnswer | None = None


def claim_key(
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
) -> KeyClaim:
    """Claim an idempotency key for a request, or tell how the one that has it stands.

    Raises:
        InvalidRequest: The key was used with other content; `where` is what holds it.
    """
    stored = tx.requests.stored(workspace_id, operation, key)
    if stored is not None and stored.expires_at > now:
        if stored.fingerprint != fingerprint:
            raise InvalidRequest.at(where, "was used before with other content; use a new key")
        if stored.answer is not None and stored.locked_until <= now:
            return KeyClaim(state="replay", answer=StoredAnswer(body=stored.answer, location=stored.location))
        if stored.locked_until > now + RUNNING_LEASE:
            # By a clock that was set back since.
            tx.requests.put_stored(attrs.evolve(stored, locked_until=now + RUNNING_LEASE))
        if stored.locked_until > now and stored.token != token:
            return KeyClaim(state="wait")
    tx.requests.put_stored(
        IdempotencyRecord(
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
    return KeyClaim(state="mine")


def renew_claim(
    tx: Transaction, workspace_id: str, operation: str, key: str, *, token: str, now: datetime
) -> IdempotencyRecord:
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


def store_answer(
    tx: Transaction,
    workspace_id: str,
    operation: str,
    key: str,
    *,
    token: str,
    answer: StoredAnswer,
    now: datetime,
    settled: bool = True,
) -> None:
    """Store the answer of a request, in the transaction that made what it tells of.

    An answer that is not settled may still be replaced by a fuller one: requests with the same key wait for that,
    until the running request would count as dead.

    Raises:
        RequestInProgress: Another request has taken the key over.
    """
    stored = renew_claim(tx, workspace_id, operation, key, token=token, now=now)
    locked_until = _NEVER if settled else stored.locked_until
    tx.requests.put_stored(
        attrs.evolve(stored, answer=answer.body, location=answer.location, locked_until=locked_until)
    )


def release_claim(tx: Transaction, workspace_id: str, operation: str, key: str, *, token: str) -> None:
    """Forget a claimed key, because the request was refused or failed; nothing happens when it is not ours."""
    stored = tx.requests.stored(workspace_id, operation, key)
    if stored is not None and stored.token == token and stored.answer is None:
        tx.requests.delete_stored(workspace_id, operation, key)
