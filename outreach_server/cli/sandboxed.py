"""What is told of a sandbox, so that nobody takes its answers for those of a provider."""

from __future__ import annotations

from typing import Final

from outreach import Workspace, WorkspaceMode
from outreach_server.cli.output import note

_SANDBOX: Final = (
    "This workspace is a sandbox: no message and no call reaches a provider, whatever account it has; the simulator "
    "answers. It stays one. To reach people, make a live workspace, with numbers, agents and accounts of its own: "
    "outreach-server workspaces create NAME --live"
)


def note_sandbox(workspace: Workspace) -> None:
    """Tell people that nothing leaves a workspace, where it is a sandbox."""
    if workspace.mode is WorkspaceMode.SANDBOX:
        note(_SANDBOX)
