"""Accounts at carriers and voice providers, and the record of what they call back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

import attrs

from outreach.models.base import CARRIERS
from outreach.models.reports import Report

ProviderKind = Literal["carrier", "voice"]

PROVIDERS: Final[dict[str, ProviderKind]] = {
    **dict.fromkeys(CARRIERS, "carrier"),
    "vapi": "voice",
    "retell": "voice",
    "elevenlabs": "voice",
}
"""What an account can be at; the simulators need none."""

CallbackResult = Literal["merged", "unchanged", "unmatched", "mismatched", "received", "ignored"]
"""What an event did: changed the ledger, changed nothing, belongs to no dispatch, names another number than its
dispatch, was a message that was taken in, or is of a kind of which only the receipt is kept."""


@attrs.frozen(kw_only=True)
class Account:
    """A workspace's account at a provider; a workspace has one at each at the most.

    Attributes:
        sealed: The credentials, encrypted (`vault.Vault`).
        replies_to_keywords: Whether the provider itself answers STOP, START and HELP, so that we do not; what it does
            not take for a STOP, being none of its words, is confirmed by us all the same.
        revision: Goes up with each change; a connection made with an earlier one is not used any more.
    """

    id: str
    workspace_id: str
    provider: str
    sealed: str = attrs.field(repr=False)
    replies_to_keywords: bool
    revision: int
    created_at: datetime
    updated_at: datetime


@attrs.frozen(kw_only=True)
class ProviderThrottle:
    """How long nothing is asked of a provider for a workspace, because it told us to come again later.

    Attributes:
        since: When it told us.
        until: Requests may begin again then.
        refusals: How often it has told us so in a row, without having accepted anything since.
    """

    workspace_id: str
    provider: str
    since: datetime
    until: datetime
    refusals: int


@attrs.frozen(kw_only=True)
class CallbackRecord:
    """One event that a provider told, as it came.

    Attributes:
        event_id: Identifies it among those of its account: a second one is dropped, but for one that could not be
            matched, which is tried again.
        body: The callback's bytes, as they were verified.
        report: What an unmatched event tells, which is merged when a dispatch turns out to have the identifier of the
            provider that it names; None for every other event.
    """

    workspace_id: str
    account_id: str
    event_id: str
    result: CallbackResult
    body: bytes = attrs.field(repr=False)
    received_at: datetime
    report: Report | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class AccountSummary:
    """An account as it may be shown: no secret is in it.

    Attributes:
        credentials: What was given, by name: values that are no secret as they are, of the others `set`.
        callback_url: Where the provider is to call back; None while no public address is set.
        throttled_by: `provider_hold` while nothing is asked of the provider because it asked to be left alone (429, or
            a `Retry-After`); else None.
        throttled_until: Requests begin again then; None while they go on.
        problem: Why its credentials cannot be opened here, in words, and what to do; `credentials` is empty then. None
            where they can.
    """

    id: str
    workspace_id: str
    provider: str
    kind: str
    credentials: Mapping[str, str]
    replies_to_keywords: bool
    callback_url: str | None
    throttled_by: str | None
    throttled_until: datetime | None
    problem: str | None
    created_at: str
    updated_at: str
