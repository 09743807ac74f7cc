"""Idempotency keys: requests that may safely be sent again (docs/interface.md#safe-retry)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import attrs

from outreach.errors import InvalidRequest, RequestInProgress
from outreach.models.work import IdempotencyRecord, StoredAnswer
from outreach.storage.unit_of_work import Transaction

RUNNING_LEASE: Final = timedelta(seconds=60)
"""A request that has not renewed its claim for this long is dead, and another may take over."""

_ERASED: Final = b"\0erased"
"""Stands for an answer that named a person who was erased since."""

_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A lock that has always expired: a final answer, whatever the clock shows."""


@attrs.frozen(kw_only=True)
class KeyClaim:
    """The state of an idempotency key.

    Attributes:
        state: `mine`: go ahead; `replay`: send the stored answer; `wait`: the first request still runs.
        answer: The stored answer.
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
    """Claim an idempotency key, or return the state of the request that has it.

    Raises `InvalidRequest` if the key was used with other content, or its answer named a person who was erased since;
    `where` names its header or field.
    """
    stored = tx.requests.stored(workspace_id, operation, key)
    if stored is not None and stored.expires_at > now:
        if stored.fingerprint != fingerprint:
            raise InvalidRequest.at(where, "was used before with other content; use a new key")
        if stored.answer is not None and stored.locked_until <= now:
            if stored.answer == _ERASED:
                raise InvalidRequest.at(
                    where,
                    "was used before, and the request was carried out. Its answer named a person who was erased since, "
                    "and cannot be repeated. Do not send the request again with a new key",
                )
            return KeyClaim(state="replay", answer=StoredAnswer(body=stored.answer, location=stored.location))
        if stored.locked_until > now + RUNNING_LEASE:
            # The lock was set by a clock that was set back since.
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
    """Renew the claim of a key; raise `RequestInProgress` if another request has taken it over."""
    stored = tx.requests.stored(workspace_id, operation, key)
    if stored is None or stored.token != token:
        raise RequestInProgress
    renewed = attrs.evolve(stored, locked_until=now + RUNNING_LEASE)
    tx.requests.put_stored(renewed)
    return renewed


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
    """Store a request's answer in the transaction of its effects.

    With `settled=False` a fuller answer may replace it; requests with the same key wait for that. Raises
    `RequestInProgress` if another request has taken the key over.
    """
    stored = renew_claim(tx, workspace_id, operation, key, token=token, now=now)
    if stored.answer != _ERASED:
        # Otherwise the fuller answer would restore data of a person who was erased meanwhile.
        stored = attrs.evolve(stored, answer=answer.body, location=answer.location)
    tx.requests.put_stored(stored if not settled else attrs.evolve(stored, locked_until=_NEVER))


def erase_answer(tx: Transaction, workspace_id: str, operation: str, key: str) -> None:
    """Erase the answer of a key, if it has one; its request is still known, so that it is not carried out again."""
    stored = tx.requests.stored(workspace_id, operation, key)
    if stored is not None and stored.answer is not None:
        tx.requests.put_stored(attrs.evolve(stored, answer=_ERASED, location=None))


def release_claim(tx: Transaction, workspace_id: str, operation: str, key: str, *, token: str) -> None:
    """Release the claim of a request that was refused, failed or was cancelled, if it is ours.

    What was made all the same is replayed: no fuller answer will follow.
    """
    stored = tx.requests.stored(workspace_id, operation, key)
    if stored is None or stored.token != token:
        return
    if stored.answer is None:
        tx.requests.delete_stored(workspace_id, operation, key)
    else:
        tx.requests.put_stored(attrs.evolve(stored, locked_until=_NEVER))
