"""Whether a workspace can send at all: a live one needs an account at the provider."""

from __future__ import annotations

from outreach.errors import AccountMissing, Conflict, ErrorDetail
from outreach.models.account import PROVIDERS
from outreach.models.states import WorkspaceMode
from outreach.models.workspace import Workspace
from outreach.protocols.storage import Transaction


def lacking(tx: Transaction, workspace: Workspace, provider: str) -> list[ErrorDetail]:
    """Return what keeps a workspace from sending by a provider: one sentence with what to do, or nothing."""
    if workspace.mode is WorkspaceMode.SANDBOX:
        return []
    if provider not in PROVIDERS:
        message = (
            f"The workspace is live, and {provider} is for sandboxes alone: give the agent a real voice provider."
            if provider == "simulator"
            else f"There is no provider {provider}."
        )
        return [ErrorDetail("provider", message)]
    if tx.accounts.at(workspace.id, provider) is None:
        message = f"The workspace is live and has no account at {provider}: connect one."
        return [ErrorDetail(f"account.{provider}", message)]
    return []


def require_account(tx: Transaction, workspace: Workspace, provider: str) -> None:
    """Check that a workspace can send by a provider.

    Raises:
        AccountMissing: It has no account there.
        Conflict: It cannot for another reason; the message says why, and what to do.
    """
    for detail in lacking(tx, workspace, provider):
        if detail.path.startswith("account."):
            raise AccountMissing(detail.message, workspace_id=workspace.id, provider=provider)
        raise Conflict(detail.message)
