"""Whether a workspace can send at all: a live one needs an account at the provider."""

from __future__ import annotations

from outreach.errors import Conflict
from outreach.models.account import PROVIDERS
from outreach.models.states import WorkspaceMode
from outreach.models.workspace import Workspace
from outreach.working_set import Transaction


def lacking(tx: Transaction, workspace: Workspace, provider: str) -> list[str]:
    """Return what keeps a workspace from sending by a provider: one sentence with what to do, or nothing."""
    if workspace.mode is WorkspaceMode.SANDBOX:
        return []
    if provider not in PROVIDERS:
        return [
            f"The workspace is live, and {provider} is for sandboxes alone: give the agent a real voice provider."
            if provider == "simulator"
            else f"There is no provider {provider}."
        ]
    if tx.accounts.at(workspace.id, provider) is None:
        return [
            f"The workspace is live and has no account at {provider}. "
            f"Connect one: outreach-server accounts connect {workspace.id} {provider}"
        ]
    return []


def require_account(tx: Transaction, workspace: Workspace, provider: str) -> None:
    """Check that a workspace can send by a provider.

    Raises:
        Conflict: It cannot; the message says why, and what to do.
    """
    reasons = lacking(tx, workspace, provider)
    if reasons:
        raise Conflict(reasons[0])
