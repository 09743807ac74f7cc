"""Whether the secret keys of this process open the accounts that it would send from."""

from __future__ import annotations

from typing import Final

from outreach.core.vault import Vault
from outreach.errors import ConfigError, DispatchRefused
from outreach.models.states import WorkspaceMode
from outreach.storage.unit_of_work import Transaction

_MAX_ACCOUNTS: Final = 1000


def require_key(tx: Transaction, vault: Vault) -> None:
    """Raise `DispatchRefused` if no account can be opened and a live workspace has one: others may have the right key.

    One account that cannot be opened beside others is that account's fault, which pauses its campaigns.
    """
    accounts, problems = tx.accounts.any_workspace(None, limit=_MAX_ACCOUNTS), []
    for account in accounts:
        try:
            vault.open(account.id, account.sealed, provider=account.provider)
        except ConfigError as error:
            problems.append(error.message)
        else:
            return
    for account, problem in zip(accounts, problems, strict=True):
        workspace = tx.workspaces.get(account.workspace_id)
        if workspace is not None and workspace.mode is WorkspaceMode.LIVE:
            raise DispatchRefused(
                "The secret key of this process opens no account, so that it sends nothing; a process with the right "
                f"key does. {problem}",
                reason="secret_key",
            )
