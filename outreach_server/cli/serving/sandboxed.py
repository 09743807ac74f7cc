"""The hint that a workspace is a sandbox, so that its results are not taken for a provider's."""

from __future__ import annotations

from typing import Final

from outreach import Workspace, WorkspaceMode
from outreach_server.cli.output import note

_SANDBOX: Final = (
    "This workspace is a sandbox: no message or call reaches a provider; the simulator answers. It stays one. To "
    "contact people, create a live workspace, with its own numbers, agents and accounts: "
    "outreach-server workspaces create NAME --live"
)


def note_sandbox(workspace: Workspace) -> None:
    """Print the hint, if a workspace is a sandbox."""
    if workspace.mode is WorkspaceMode.SANDBOX:
        note(_SANDBOX)
