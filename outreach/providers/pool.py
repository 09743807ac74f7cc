"""The carrier or voice provider of a workspace's dispatches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Generic, TypeVar

import attrs

from outreach.errors import ConfigError
from outreach.models.account import StoredAccount
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.states import WorkspaceMode
from outreach.models.workspace import Workspace
from outreach.protocols.carrier import Carrier
from outreach.protocols.storage import Storage
from outreach.protocols.voice import VoiceProvider
from outreach.providers.connections import AccountConnections
from outreach.providers.http.call_plugin import call_plugin_function
from outreach.providers.redaction import RedactedCarrier, RedactedVoiceProvider, Redaction
from outreach.providers.registry import Adapters

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
        self._storage = storage
        self._adapters = adapters
        self._connections = connections
        self._carriers = _Connected[Carrier]()
        self._voices = _Connected[VoiceProvider]()

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
            adapter, connection = self._adapters.voice(name), self._connections.connection(account)
            made = call_plugin_function(adapter.connect, connection)
            _require(made, name, "place_call", "VoiceProvider")
            known = RedactedVoiceProvider(made, Redaction(connection.credentials, adapter.fields))
            self._voices.put(account, known)
        return known

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
    if not callable(getattr(made, method, None)):
        raise ConfigError(
            f"connect of the adapter {name!r} returned {type(made).__name__}, which has no {method}: "
            f"it must return an outreach.protocols.{kind}."
        )


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
        self._made[account.id] = (account.revision, made)


SendRequest = Callable[[], Awaitable[DispatchOutcome]]
"""Makes the request."""

ResolveProvider = Callable[[], Awaitable[SendRequest]]
"""Finds the provider before the last checks, so that nothing comes between these and the request; raises `ConfigError`.
"""


def account_key(workspace_id: str, provider: str) -> str:
    """Return the key of the account that a request counts for (`wire.fair_limiter`)."""
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
    """

    dispatch: Dispatch
    resolve_provider: ResolveProvider
    account: str
    paces: Mapping[str, timedelta] = attrs.field(factory=dict)
    stops: int | None = None
    revision: int | None = None
    driven: tuple[str, str] | None = None
