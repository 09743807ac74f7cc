"""Connections to provider accounts: credentials, an HTTP client for each account, and callback URLs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import attrs

from outreach.core.clock import Clock
from outreach.core.extras import needed_for
from outreach.core.vault import Vault
from outreach.models.account import StoredAccount
from outreach.protocols.adapter import Connection
from outreach.providers.http.log_redaction import redact_http_logs
from outreach.rules import previous_credentials

if TYPE_CHECKING:
    import httpx

    from outreach.providers.http.account_client import AccountClient, SharedConnections

_CONNECT_SECONDS: Final = 10.0
"""How long TCP may take, and as long again TLS."""

_KEPT_SECONDS: Final = 4.0
"""Idle connections are closed before providers do so: a request on a closing connection has an unknown outcome."""

_MAX_CONNECTIONS: Final = 100
"""To one provider, shared fairly between its accounts: what one provider or account leaves waiting is not missing for
the others."""

_FREE_SECONDS: Final = 5.0
"""How long a request waits for one of the connections."""

_CONNECT_PART: Final = 1 / 3
_FREE_PART: Final = 1 / 6
"""The most of the time for an answer that each of these may take. Waiting, TCP and TLS together end before the engine
gives the request up: what has no connection by then has certainly not been sent, and is not to become unknown."""


class AccountConnections:
    """Opens accounts for adapters.

    Args:
        vault: Decrypts the credentials.
        clock: The source of time.
        answer_seconds: How long a provider may take; the engine gives a request up by then as well.
        public_url: The public address of this server; None if it has none.
    """

    def __init__(self, *, vault: Vault, clock: Clock, answer_seconds: float, public_url: str | None) -> None:
        self._vault = vault
        self._clock = clock
        self._answer_seconds = answer_seconds
        self._public_url = public_url.rstrip("/") if public_url else None
        self._shared: dict[str, SharedConnections] = {}
        # Only of accounts with an open connection: there may be many others.
        self._clients: WeakValueDictionary[str, AccountClient] = WeakValueDictionary()

    def callback_url(self, account_id: str) -> str | None:
        """Return an account's callback URL; None without a public address."""
        return f"{self._public_url}/webhooks/{account_id}" if self._public_url else None

    def connection(self, account: StoredAccount) -> Connection:
        """Return the connection of an account.

        Raises:
            ConfigError: The key of its credentials is missing, or httpx is not installed.
        """
        return Connection(
            workspace_id=account.workspace_id,
            account_id=account.id,
            credentials=self._vault.open(account.id, account.sealed, provider=account.provider),
            http=self._client(account.provider, account.id),
            clock=self._clock,
            callback_url=self.callback_url(account.id),
        )

    def earlier(self, account: StoredAccount) -> Sequence[tuple[Connection, datetime]]:
        """Return an account's connections with earlier credentials, the latest first, and until when each is accepted.

        Raises:
            ConfigError: As `connection` raises it.
        """
        now_used = self.connection(account)
        known = self._vault.previous(account.id, account.sealed, provider=account.provider)
        return [
            (attrs.evolve(now_used, credentials={**now_used.credentials, **one.values}), one.until)
            for one in previous_credentials.accepted(known, self._clock.now())
        ]

    @asynccontextmanager
    async def probing(
        self, seconds: float, *, watch: Callable[[httpx.Request, httpx.Response | None], None]
    ) -> AsyncIterator[httpx.AsyncClient]:
        """Open a client for harmless requests.

        Args:
            seconds: How long each may take.
            watch: Called with each request before it is sent, and with its response when that comes.

        Raises:
            ConfigError: httpx is not installed.
        """
        with needed_for("Asking a provider"):
            from outreach.providers.http.client import ProviderClient

        async def on_request(request: httpx.Request) -> None:
            watch(request, None)

        async def on_response(response: httpx.Response) -> None:
            watch(response.request, response)

        redact_http_logs()
        hooks = {"request": [on_request], "response": [on_response]}
        async with ProviderClient(follow_redirects=False, timeout=seconds, event_hooks=hooks) as http:
            yield http

    async def aclose(self) -> None:
        """Close open connections."""
        while self._shared:
            _, shared = self._shared.popitem()
            await shared.aclose()
        self._clients.clear()

    def _client(self, provider: str, account_id: str) -> httpx.AsyncClient:
        client = self._clients.get(account_id)
        if client is None:
            client = self._clients[account_id] = self._connections_to(provider).client(account_id)
        return client

    def _connections_to(self, provider: str) -> SharedConnections:
        if provider not in self._shared:
            # Imported here, because simulators do not need it.
            with needed_for("Working with an account at a provider"):
                import httpx

                from outreach.providers.http.account_client import SharedConnections

            redact_http_logs()
            self._shared[provider] = SharedConnections(
                most=_MAX_CONNECTIONS,
                keepalive_expiry=_KEPT_SECONDS,
                # No retry and no redirect: one request is one request (docs/delivery-contract.md#rule-5).
                follow_redirects=False,
                timeout=httpx.Timeout(
                    self._answer_seconds,
                    connect=min(_CONNECT_SECONDS, self._answer_seconds * _CONNECT_PART),
                    pool=min(_FREE_SECONDS, self._answer_seconds * _FREE_PART),
                ),
            )
        return self._shared[provider]
