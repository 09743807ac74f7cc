"""Which carrier or voice provider a workspace's dispatch goes to."""

from __future__ import annotations

import attrs

from outreach.errors import ConfigError
from outreach.models.states import WorkspaceMode
from outreach.models.workspace import Workspace
from outreach.protocols.carrier import Carrier
from outreach.protocols.voice import VoiceProvider


@attrs.frozen(kw_only=True)
class ProviderDesk:
    """Finds the adapter for a dispatch.

    Attributes:
        sandbox_carrier: Takes every message of a sandbox, whatever carrier is named.
        sandbox_voice: Takes every call of a sandbox, whatever provider is named.
    """

    sandbox_carrier: Carrier
    sandbox_voice: VoiceProvider

    def carrier(self, workspace: Workspace, name: str) -> Carrier:
        """Return the carrier for a workspace's message.

        Raises:
            ConfigError: The workspace is live and has no account for it.
        """
        if workspace.mode is WorkspaceMode.SANDBOX:
            return self.sandbox_carrier
        raise ConfigError(f"Workspace {workspace.id} is live and has no account for {name}.")

    def voice(self, workspace: Workspace, name: str) -> VoiceProvider:
        """Return the voice provider for a workspace's call.

        Raises:
            ConfigError: The workspace is live and has no account for it.
        """
        if workspace.mode is WorkspaceMode.SANDBOX:
            return self.sandbox_voice
        raise ConfigError(f"Workspace {workspace.id} is live and has no account for {name}.")
