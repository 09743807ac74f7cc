"""Tests of an account's callback URL, and callbacks that came to it by a wrong method or with a wrong path."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import attrs

from outreach.models.account import CallbackResult, Misdirection, StoredAccount
from outreach.models.reports import CallbackRecord
from outreach.providers.carriers.base import DISPATCH_PARAMETER
from outreach.storage.unit_of_work import Transaction

MISDIRECTIONS: Final[Mapping[Misdirection, str]] = MappingProxyType(
    {
        "method": "it did not come by POST",
        "path": "its path is not the one of the account's callback URL",
    }
)
"""The fault in a callback's address, as a part of a sentence."""

LATELY_DAYS: Final = 7
"""For how many days a misdirected callback is reported: a STOP may be rare."""


def record_misdirection(tx: Transaction, account: StoredAccount, how: Misdirection, *, now: datetime) -> None:
    """Record that a callback was misdirected: the first of an account, a kind and a day."""
    event_id = _misdirection_id(how, now)
    if tx.callbacks.get(account.workspace_id, account.id, event_id) is None:
        _insert(tx, account, event_id, "misdirected", b"", now)


def misdirected_lately(tx: Transaction, account: StoredAccount, now: datetime) -> Iterator[CallbackRecord]:
    """Yield the latest recorded misdirected callback of each kind within the last days."""
    for how in MISDIRECTIONS:
        days = (_misdirection_id(how, now - timedelta(days=ago)) for ago in range(LATELY_DAYS))
        found = (tx.callbacks.get(account.workspace_id, account.id, event_id) for event_id in days)
        latest = next((record for record in found if record is not None), None)
        if latest is not None:
            yield latest


def misdirection_of(record: CallbackRecord) -> str:
    """Return what is wrong with the address of a misdirected callback, as a part of a sentence."""
    return next(words for how, words in MISDIRECTIONS.items() if record.event_id.startswith(f"misdirected:{how}:"))


def _misdirection_id(how: Misdirection, at: datetime) -> str:
    return f"misdirected:{how}:{at:%Y-%m-%d}"


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
    _insert(tx, account, _event_id(token), "awaited", _SIGNED if signed else b"", now)


def is_signed(known: CallbackRecord) -> bool:
    """Return whether what is awaited has to be signed."""
    return known.body == _SIGNED


def awaited_check(tx: Transaction, account: StoredAccount, token: str, *, now: datetime) -> CallbackRecord | None:
    """Return the record that awaits a test callback with a token; None without one, or once the callback has come."""
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
    """Delete a test callback: a later callback with its token is handled as any other."""
    tx.callbacks.delete(account.workspace_id, account.id, _event_id(token))


def _event_id(token: str) -> str:
    # A reader of the database cannot make the test succeed with a digest.
    return f"check:{hashlib.sha256(token.encode()).hexdigest()}"


def _insert(
    tx: Transaction, account: StoredAccount, event_id: str, result: CallbackResult, body: bytes, now: datetime
) -> None:
    tx.callbacks.insert(
        CallbackRecord(
            workspace_id=account.workspace_id,
            account_id=account.id,
            event_id=event_id,
            result=result,
            body=body,
            received_at=now,
        )
    )
