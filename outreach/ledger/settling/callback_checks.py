"""Test callbacks of ours: what awaits one, and whether it came. Nothing else is changed by them.

A test callback names a token that was drawn for it in the parameter of the callback URL that else names a dispatch. The
database holds the token's hash, for one account and a short time, until the test ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.account import CallbackRecord, CallbackResult, StoredAccount
from outreach.providers.carriers.base import DISPATCH_PARAMETER
from outreach.storage.unit_of_work import Transaction

TEST_PREFIX: Final = "check_"
"""How the token of a test callback begins, as no id of a dispatch does."""

VALID: Final = timedelta(minutes=1)
"""How long a token counts: longer than a test callback takes."""


def token_of(query: Mapping[str, str]) -> str | None:
    """Return the token of a test callback's query; None for what a provider sends."""
    given = query.get(DISPATCH_PARAMETER, "")
    return given if given.startswith(TEST_PREFIX) else None


_SIGNED: Final = b"signed"


def await_check(tx: Transaction, account: StoredAccount, token: str, *, signed: bool, now: datetime) -> None:
    """Record that a test callback of an account is on its way, and whether it is signed as the provider signs."""
    tx.callbacks.insert(
        CallbackRecord(
            workspace_id=account.workspace_id,
            account_id=account.id,
            event_id=_event_id(token),
            result="awaited",
            body=_SIGNED if signed else b"",
            received_at=now,
        )
    )


def is_signed(known: CallbackRecord) -> bool:
    """Return whether what is awaited has to be signed."""
    return known.body == _SIGNED


def awaited_check(tx: Transaction, account: StoredAccount, token: str, *, now: datetime) -> CallbackRecord | None:
    """Return what awaits a test callback with a token, if anything does and it has not come yet."""
    known = tx.callbacks.get(account.workspace_id, account.id, _event_id(token))
    if known is None or known.result != "awaited" or abs(now - known.received_at) > VALID:
        return None
    return known


def note_check(tx: Transaction, known: CallbackRecord, result: CallbackResult) -> None:
    """Record that a test callback came, unless it has or the test has ended meanwhile."""
    current = tx.callbacks.get(known.workspace_id, known.account_id, known.event_id)
    if current is not None and current.result == "awaited":
        tx.callbacks.update(attrs.evolve(current, result=result))


def result_of_check(tx: Transaction, account: StoredAccount, token: str) -> CallbackResult | None:
    """Return what became of a test callback: `awaited`, `arrived` or `refused`; None after its end."""
    known = tx.callbacks.get(account.workspace_id, account.id, _event_id(token))
    return None if known is None else known.result


def end_check(tx: Transaction, account: StoredAccount, token: str) -> None:
    """Forget a test callback: what comes with its token from now on is a callback as any other."""
    tx.callbacks.delete(account.workspace_id, account.id, _event_id(token))


def _event_id(token: str) -> str:
    # Who can read the database cannot make the test succeed.
    return f"check:{hashlib.sha256(token.encode()).hexdigest()}"
