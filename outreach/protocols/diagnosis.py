"""Protocols that storages and adapters may add, so that a diagnosis finds more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import attrs

if TYPE_CHECKING:
    from outreach.errors import Problem
    from outreach.protocols.adapter import Callback, Connection


@runtime_checkable
class DiagnosableStorage(Protocol):
    """A storage that can examine its database, also while others use it."""

    async def diagnose(self) -> Sequence[Problem]:
        """Return what is wrong with the database, without changing it; takes at most 45 seconds."""
        ...


@attrs.frozen(kw_only=True)
class CallbackSetting:
    """Where a provider sends messages and reports, by a setting in its console.

    Attributes:
        name: The setting, in words such as `the inbound webhook URL of profile X`.
        url: Its address; None if it has none.
        wrong: Any other fault of it, a sentence; None without one.
    """

    name: str
    url: str | None
    wrong: str | None = None


@runtime_checkable
class CallbackSettings(Protocol):
    """An adapter whose provider's API returns where callbacks go."""

    async def callback_settings(
        self, connection: Connection, *, senders: Sequence[str], agents: Sequence[str]
    ) -> Sequence[CallbackSetting]:
        """Return the settings that ought to have our callback URL; changes nothing and costs nothing.

        Never raises for anything that the provider or the network does: settings that it does not return are left out.

        Args:
            connection: The account.
            senders: The workspace's numbers at this provider, in E.164.
            agents: The provider's ids of the workspace's active agents there.
        """
        ...


@runtime_checkable
class SignsCallbacks(Protocol):
    """An adapter whose provider signs callbacks with a secret that the account has, so that we can sign as it does."""

    def sign_callback(self, connection: Connection, *, url: str, test_id: str) -> Callback | None:
        """Return a callback to an address as the provider would sign it now, of a kind that is only logged.

        `Adapter.read` accepts it. Its event has no content. None if it would have the secret itself: the address may
        lead elsewhere.

        Args:
            connection: The account, whose credentials sign it.
            url: The address with its query.
            test_id: Identifies the event.
        """
        ...
