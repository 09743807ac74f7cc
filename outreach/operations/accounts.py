"""Whether a workspace can send at all: a live one needs an account at the provider."""

from __future__ import annotations

from outreach.errors import AccountMissing, ErrorDetail
from outreach.models.states import WorkspaceMode
from outreach.models.workspace import Workspace
from outreach.protocols.storage import Transaction


def lacking(tx: Transaction, workspace: Workspace, provider: str) -> ErrorDetail | None:
    """Return what a workspace lacks to send by a provider, with a sentence; None when it lacks nothing."""
    if workspace.mode is WorkspaceMode.SANDBOX:
        return None
    if provider == "simulator":
        return ErrorDetail(
            "agent.provider",
            "The workspace is live, and simulator is for sandboxes alone: take an agent with a real voice provider.",
        )
    if tx.accounts.at(workspace.id, provider) is None:
        return ErrorDetail(f"account.{provider}", f"The workspace is live and has no account at {provider}.")
    return None


def require_account(tx: Transaction, workspace: Workspace, provider: str) -> None:
    """Check that a workspace can send by a provider.

    Raises:
        AccountMissing: It cannot; the message says why.
    """
    lack = lacking(tx, workspace, provider)
    if lack is not None:
        raise AccountMissing(lack.message, workspace_id=workspace.id, provider=provider)
