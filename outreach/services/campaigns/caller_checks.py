"""Checks that the account can place calls from the caller IDs of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outreach.core.vault import Vault
from outreach.errors import ConfigError, Problem
from outreach.ledger.campaigns.setup import not_installed
from outreach.ledger.common import provider_of, workspace_of
from outreach.models.account import StoredAccount
from outreach.models.campaign import Campaign
from outreach.models.states import WorkspaceMode
from outreach.providers.registry import Adapters
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

_Callers = Sequence[tuple[str, str]]
"""What names each caller ID, and the number."""


async def find_caller_id_problems(
    context: ServiceContext, vault: Vault, find: Callable[[Transaction], Campaign]
) -> Sequence[Problem]:
    """Return why the provider of the campaign that `find` returns cannot be asked, or calls placed as recorded.

    In a sandbox there is no such problem.

    The provider's adapter may not be installed here. A trunk may lack its identifier, at a provider that knows trunks
    by nothing else. Some providers know numbers by ids that the account lists. If any are listed, and for every call
    over a trunk, a caller ID without an id is refused; if none are, a rotation would show the account's one number.
    Credentials that cannot be decrypted give no problem here: the dispatcher reports them.

    Raises:
        NotFound: The workspace has no such campaign.
    """
    adapters = context.adapters

    def operation(tx: Transaction) -> tuple[Sequence[Problem], tuple[Campaign, _Callers, StoredAccount] | None]:
        campaign = find(tx)
        workspace = workspace_of(tx, campaign.workspace_id)
        provider = provider_of(tx, campaign)
        if provider is None or workspace.mode is not WorkspaceMode.LIVE:
            return (), None
        missing = not_installed(workspace, provider, adapters)
        if missing is not None or campaign.channel != "call":
            return () if missing is None else (missing,), None
        account = tx.accounts.of_provider(workspace.id, provider)
        call_check = None if account is None else (campaign, _callers(tx, campaign), account)
        return _unknown_trunk(tx, campaign, provider, adapters), call_check

    found, call_check = await context.storage.read(operation)
    return found if call_check is None else (*found, *_caller_id_problems(*call_check, vault, adapters))


def _unknown_trunk(tx: Transaction, campaign: Campaign, provider: str, adapters: Adapters) -> Sequence[Problem]:
    trunk = tx.trunks.get(campaign.workspace_id, campaign.trunk_id) if campaign.trunk_id else None
    if trunk is None or trunk.provider_trunk_id is not None or not adapters.trunks_by_identifier(provider):
        return ()
    words = f"Its trunk {trunk.name!r} needs its identifier at {provider}."
    return (Problem(path="trunk_id", message=words),)


def _callers(tx: Transaction, campaign: Campaign) -> _Callers:
    if campaign.cli_mode == "group":
        return [(f"cli_group_config[{n}]", entry.phone) for n, entry in enumerate(campaign.cli_group or ())]
    agent = tx.agents.get(campaign.workspace_id, campaign.agent_id) if campaign.agent_id else None
    return [("agent.from_number", agent.from_number)] if agent is not None and agent.from_number is not None else []


def _caller_id_problems(
    campaign: Campaign, callers: _Callers, account: StoredAccount, vault: Vault, adapters: Adapters
) -> Sequence[Problem]:
    # Imported here, so that a program without calls loads neither it nor httpx.
    from outreach.providers.voice.base import PHONE_NUMBERS, phone_number_ids

    if PHONE_NUMBERS not in adapters.voice(account.provider).fields:
        return ()
    try:
        numbers = phone_number_ids(vault.open(account.id, account.sealed, provider=account.provider))
    except ConfigError:
        return ()
    if not (numbers or campaign.trunk_id is not None or campaign.cli_mode == "group"):
        return ()
    return [
        Problem(
            path=path,
            message=f"The account at {account.provider} has no id for caller ID {phone} ({PHONE_NUMBERS.name}), "
            "so calls cannot be placed from it.",
        )
        for path, phone in callers
        if phone not in numbers
    ]
