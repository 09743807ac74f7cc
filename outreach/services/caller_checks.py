"""Whether calls can be placed from the numbers that their records will name, by what the account knows of them."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.errors import ConfigError, ErrorDetail
from outreach.models.account import Account
from outreach.models.campaign import Campaign
from outreach.models.states import WorkspaceMode
from outreach.operations.common import campaign_of, provider_of, workspace_of
from outreach.providers.registry import voice_adapter
from outreach.services.context import ServiceContext
from outreach.vault import Vault
from outreach.working_set import Transaction

_Callers = Sequence[tuple[str, str]]
"""What names each caller ID, and the number."""


async def find_caller_id_problems(
    context: ServiceContext, vault: Vault, workspace_id: str, campaign_id: str
) -> Sequence[ErrorDetail]:
    """Return why calls of a campaign would not be placed from their caller IDs, or from others than are recorded.

    It is so at providers that know numbers by identifiers of their own, which the account lists: a caller ID without
    one is refused call by call where any are listed and over a trunk, and where none are a whole rotation would show
    the account's one number. Nothing is found where the credentials cannot be opened here: the dispatcher tells that.

    Raises:
        NotFound: The workspace has no such campaign.
    """

    def operation(tx: Transaction) -> tuple[Campaign, _Callers, Account] | None:
        campaign = campaign_of(tx, workspace_id, campaign_id)
        live = workspace_of(tx, workspace_id).mode is WorkspaceMode.LIVE
        provider = provider_of(tx, campaign)
        if campaign.channel != "call" or provider is None or not live:
            return None
        account = tx.accounts.of_provider(workspace_id, provider)
        return None if account is None else (campaign, _callers(tx, campaign), account)

    found = await context.storage.read(operation)
    return () if found is None else _unlisted(*found, vault)


def _callers(tx: Transaction, campaign: Campaign) -> _Callers:
    if campaign.cli_mode == "group":
        return [(f"cli_group_config[{n}]", entry.phone) for n, entry in enumerate(campaign.cli_group or ())]
    agent = tx.agents.get(campaign.workspace_id, campaign.agent_id) if campaign.agent_id else None
    return [("agent.from_number", agent.from_number)] if agent is not None and agent.from_number is not None else []


def _unlisted(campaign: Campaign, callers: _Callers, account: Account, vault: Vault) -> Sequence[ErrorDetail]:
    # Here and not above: a program that makes no calls never loads it, nor httpx with it.
    from outreach.voice.base import PHONE_NUMBERS, phone_number_ids

    if PHONE_NUMBERS not in voice_adapter(account.provider).fields:
        return ()
    try:
        numbers = phone_number_ids(vault.open(account.id, account.sealed, provider=account.provider))
    except ConfigError:
        return ()
    if not (numbers or campaign.trunk_id is not None or campaign.cli_mode == "group"):
        return ()
    return [
        ErrorDetail(
            path,
            f"The account at {account.provider} has no identifier for its caller ID {phone} "
            f"({PHONE_NUMBERS.name}): calls could not be placed from it.",
        )
        for path, phone in callers
        if phone not in numbers
    ]
