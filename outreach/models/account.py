"""Accounts at carriers and voice providers, and the log of their callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

import attrs

from outreach.models.base import CARRIERS

ProviderKind = Literal["carrier", "voice"]

PROVIDERS: Final[dict[str, ProviderKind]] = {
    **dict.fromkeys(CARRIERS, "carrier"),
    "vapi": "voice",
    "retell": "voice",
    "elevenlabs": "voice",
}
"""The kinds of the providers that the engine brings adapters for; the simulators need no account."""

CallbackResult = Literal[
    "merged",
    "unchanged",
    "unmatched",
    "mismatched",
    "received",
    "ignored",
    "outdated",
    "misdirected",
    "awaited",
    "arrived",
    "refused",
]
"""The effect of an event: it changed the ledger, changed nothing, matches no dispatch, names another number than its
dispatch, was an inbound message, is of a kind that is only logged, or is too old to change anything but an opt-out;
`misdirected` came by another method than POST or to another path, and was not read. A test callback of ours is
`awaited`, then `arrived`, or `refused` because its signature was, and is deleted when the test ends."""

Misdirection = Literal["method", "path"]
"""The fault in a callback's address: not POST, or another path that holds the account's id."""


@attrs.frozen(kw_only=True)
class Provider:
    """A provider at which a workspace can have an account.

    Attributes:
        name: As accounts, campaigns, agents and the ledger have it.
        kind: `carrier`, which sends messages, or `voice`, which places calls.
        source: Where its adapter comes from: `outreach`, `given` (to `Outreach(adapters=[...])`), or the package that
            brings it, with its version.
    """

    name: str
    kind: ProviderKind
    source: str


@attrs.frozen(kw_only=True)
class StoredAccount:
    """A workspace's account at a provider, as the database holds it.

    Attributes:
        sealed: The encrypted credentials (`vault.Vault`).
        replies_to_keywords: Whether the provider itself replies to STOP, START and HELP, so that the engine does not;
            an opt-out in words that the provider does not know is confirmed by the engine all the same.
        revision: Increases with each change; connections made with an earlier one are discarded.
        last_report_at: When a callback last brought a report, to `rules.receipts.NOTED_EVERY`; None if none has yet.
    """

    id: str
    workspace_id: str
    provider: str
    sealed: str = attrs.field(repr=False)
    replies_to_keywords: bool
    revision: int
    created_at: datetime
    updated_at: datetime
    last_report_at: datetime | None = None


@attrs.frozen(kw_only=True)
class ProviderThrottle:
    """A throttle: the provider asked to wait, and nothing is sent to it for the workspace until then.

    Attributes:
        since: When the provider asked.
        until: When requests resume.
        refusals: Throttling answers in a row, without an accepted request between.
    """

    workspace_id: str
    provider: str
    since: datetime
    until: datetime
    refusals: int


CallbackFault = Literal[
    "no_public_url",
    "unresolvable",
    "tls",
    "connection_refused",
    "timeout",
    "unreachable",
    "redirected",
    "account_unknown",
    "not_found",
    "method_refused",
    "signature_refused",
    "other_server",
    "other_database",
]
"""Which step of a test callback failed:

    no_public_url: there is no public URL, and so no callback URL
    unresolvable: the name of the public URL has no address
    tls: the certificate or the TLS connection is not accepted
    connection_refused: nothing listens there
    timeout: no connection, or no answer, in time
    unreachable: the connection failed in another way
    redirected: it is answered with a redirect, which providers do not follow
    account_unknown: a server of this package answers, which has no such account: it uses another database
    not_found: something answers with 404 or 410, but no server of this package
    method_refused: something answers with 405: POST does not get through
    signature_refused: it reached this database's server, which refused the signature
    other_server: something answers in another way
    other_database: it is accepted, and did not reach this database
"""


@attrs.frozen(kw_only=True)
class CallbackCheck:
    """The result of a test callback.

    Attributes:
        ok: Whether it reached a server of this database.
        fault: Which step failed; None if none did.
        message: The same in sentences, with what to do.
        url: The callback URL; None without a public URL.
        signed: Whether it had a signature, which was verified. Not where only the provider can sign.
    """

    ok: bool
    fault: CallbackFault | None = None
    message: str
    url: str | None
    signed: bool = False


@attrs.frozen(kw_only=True)
class RekeyResult:
    """The result of encrypting the secrets of accounts, webhooks and users with the newest key.

    Attributes:
        rekeyed: How many were encrypted with it now.
        already_current: How many were before.
        left: How many are still encrypted with an older key; with 0 the older keys are needed for backups alone.
    """

    rekeyed: int
    already_current: int
    left: int


@attrs.frozen(kw_only=True)
class Account:
    """A workspace's account at a provider, without its secrets; at most one per provider.

    Attributes:
        kind: The provider's kind, `carrier` or `voice`; None if its adapter is not installed here.
        credentials: By name: the value, or `set` for a secret.
        replies_to_keywords: Whether the provider itself replies to STOP, START and HELP.
        callback_url: Where the provider sends callbacks; None without a public URL.
        throttled_by: `provider_throttle` while the provider throttles the account (429 or `Retry-After`); else None.
        throttled_until: When requests resume; None without a throttle.
        previous_accepted_until: Until when callbacks that are signed with earlier credentials are accepted too; None if
            they are not.
        problem: Why the account cannot be used here (its credentials cannot be decrypted, or its adapter is not
            installed), and what to do; `credentials` is empty then. Else None.
    """

    id: str
    workspace_id: str
    provider: str
    kind: ProviderKind | None
    credentials: Mapping[str, str]
    replies_to_keywords: bool
    callback_url: str | None
    throttled_by: str | None
    throttled_until: datetime | None
    previous_accepted_until: datetime | None
    problem: str | None
    created_at: datetime
    updated_at: datetime
