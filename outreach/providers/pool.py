"""Connections to provider accounts, and the carrier or voice provider of a workspace's dispatches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from weakref import WeakValueDictionary

import attrs

from outreach.core.async_functions import async_problem
from outreach.core.copying import copy_with
from outreach.core.extras import needed_for
from outreach.errors import ConfigError
from outreach.models.states import WorkspaceMode
from outreach.protocols.adapter import Connection
from outreach.providers.http.log_redaction import redact_http_logs
from outreach.providers.http.request_gate import call_plugin_function
from outreach.rules import previous_credentials

if TYPE_CHECKING:
    import httpx

    from outreach.core.clock import Clock
    from outreach.core.vault import Vault
    from outreach.models.account import StoredAccount
    from outreach.models.dispatch import Dispatch, DispatchOutcome
    from outreach.models.workspace import Workspace
    from outreach.protocols.carrier import Carrier
    from outreach.protocols.storage import Storage
    from outreach.protocols.voice import VoiceProvider
    from outreach.providers.http.account_client import AccountClient, SharedConnections
    from outreach.providers.registry import Adapters


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
            (attrs.evolve(now_used, credentials=one.values), one.until)
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


T = TypeVar("T")


class ProviderPool:
    """Finds the carrier or voice provider of a dispatch.

    Args:
        sandbox_carrier: Takes all messages of sandboxes.
        sandbox_voice: Takes all calls of sandboxes.
        storage: Holds the accounts of live workspaces.
        connections: Opens the accounts.
        adapters: Connect the accounts.
    """

    def __init__(
        self,
        *,
        sandbox_carrier: Carrier,
        sandbox_voice: VoiceProvider,
        storage: Storage,
        connections: AccountConnections,
        adapters: Adapters,
    ) -> None:
        self._sandbox_carrier = sandbox_carrier
        self._sandbox_voice = sandbox_voice
        self._sandbox_names = {"sms": sandbox_carrier.name, "call": sandbox_voice.name}
        self._storage = storage
        self._adapters = adapters
        self._connections = connections
        self._carriers: _Connected[Carrier] = _Connected()
        self._voices: _Connected[VoiceProvider] = _Connected()

    async def carrier(self, workspace: Workspace, name: str) -> Carrier:
        """Return the carrier of a workspace's message.

        Raises:
            ConfigError: A live workspace has no usable account, or no adapter that connects one.
        """
        if workspace.mode is WorkspaceMode.SANDBOX:
            return self._sandbox_carrier
        account = await self._account(workspace, name)
        known = self._carriers.get(account)
        if known is None:
            from outreach.providers.redaction import RedactedCarrier, Redaction

            adapter, connection = self._adapters.carrier(name), self._connections.connection(account)
            made = call_plugin_function(adapter.connect, connection)
            _require(made, name, "send", "Carrier")
            known = RedactedCarrier(made, Redaction(connection.credentials, adapter.fields))
            self._carriers.put(account, known)
        return known

    async def voice(self, workspace: Workspace, name: str) -> VoiceProvider:
        """Return the voice provider of a workspace's call.

        Raises:
            ConfigError: A live workspace has no usable account, or no adapter that connects one.
        """
        if workspace.mode is WorkspaceMode.SANDBOX:
            return self._sandbox_voice
        account = await self._account(workspace, name)
        known = self._voices.get(account)
        if known is None:
            from outreach.providers.redaction import RedactedVoiceProvider, Redaction

            adapter, connection = self._adapters.voice(name), self._connections.connection(account)
            made = call_plugin_function(adapter.connect, connection)
            _require(made, name, "place_call", "VoiceProvider")
            known = RedactedVoiceProvider(made, Redaction(connection.credentials, adapter.fields))
            self._voices.put(account, known)
        return known

    def sandbox_provider(self, workspace: Workspace, dispatch: Dispatch) -> str | None:
        """Return the name of the provider that takes a sandbox's dispatch; None outside sandboxes."""
        return self._sandbox_names[dispatch.channel] if workspace.mode is WorkspaceMode.SANDBOX else None

    async def _account(self, workspace: Workspace, name: str) -> StoredAccount:
        # Read each time, in case the account was removed or has new credentials.
        account = await self._storage.read(lambda tx: tx.accounts.of_provider(workspace.id, name))
        if account is None:
            raise ConfigError(f"Workspace {workspace.id} is live and has no account at {name}.")
        return account


def _require(made: object, name: str, method: str, kind: str) -> None:
    """Check what an adapter has connected, before it is used.

    Raises:
        ConfigError: It cannot send.
    """
    function: object = getattr(made, method, None)
    problem = async_problem(function, is_async=True) if callable(function) else "is missing"
    if problem is not None:
        raise ConfigError(
            f"connect of the adapter {name!r} returned {type(made).__name__}, whose {method} {problem}: "
            f"it must return an outreach.protocols.{kind}."
        )


_MAX_CONNECTED: Final = 1000
"""Accounts whose adapters are kept; the oldest is connected anew when it is used again."""


class _Connected(Generic[T]):
    """Adapters by account, each with the account's revision."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[int, T]] = {}

    def get(self, account: StoredAccount) -> T | None:
        """Return the adapter of an account's current revision, or None."""
        known = self._made.get(account.id)
        return known[1] if known is not None and known[0] == account.revision else None

    def put(self, account: StoredAccount, made: T) -> None:
        """Keep the adapter of an account, in place of an earlier revision's."""
        self._made.pop(account.id, None)
        if len(self._made) >= _MAX_CONNECTED:
            del self._made[next(iter(self._made))]
        self._made[account.id] = (account.revision, made)


SendRequest = Callable[[], Awaitable["DispatchOutcome"]]
"""Makes the request."""

ResolveProvider = Callable[[], Awaitable[SendRequest]]
"""Finds the provider before the last checks, so that nothing comes between these and the request; raises `ConfigError`.
"""


def account_key(workspace_id: str, provider: str) -> str:
    """Return the key of the account that a request counts for (`http.request_gate.FairLimiter`)."""
    return f"{workspace_id}/{provider}"


@attrs.frozen(kw_only=True)
class ProviderRequest:
    """A request to make.

    Attributes:
        dispatch: The dispatch.
        resolve_provider: Finds the provider.
        account: The account whose permit it holds; see `account_key`.
        paces: Its paces by key, each with the time between two starts.
        stops: The stop count at its commit; None if unknown, so that everything is checked again.
        revision: The revision of the campaign that it was decided on; None for a single message or call.
        driven: The workspace and subject of the claim that it was committed under, which is kept until it starts.
        sandbox_provider: The name of the sandboxes' provider that takes it; None outside sandboxes.
    """

    dispatch: Dispatch
    resolve_provider: ResolveProvider
    account: str
    paces: Mapping[str, timedelta] = attrs.field(factory=dict)
    stops: int | None = None
    revision: int | None = None
    driven: tuple[str, str] | None = None
    sandbox_provider: str | None = None

    @cached_property
    def observed(self) -> Dispatch:
        """The dispatch for the instrumentation, with the provider that takes it."""
        if self.sandbox_provider is None:
            return self.dispatch
        return copy_with(self.dispatch, provider=self.sandbox_provider)
