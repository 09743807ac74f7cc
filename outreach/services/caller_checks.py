"""Checks that the account can place calls from the caller IDs of a campaign."""

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
    """Return why a campaign's calls could not be placed from their caller IDs.

    Some providers know numbers by ids that the account lists. If any are listed, and for every call over a trunk, a
    caller ID without an id is refused; if none are, a rotation would show the account's one number. Credentials that
    cannot be decrypted give no problem here: the dispatcher reports them.

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
    # Imported here, so that a program without calls loads neither it nor httpx.
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
            f"The account at {account.provider} has no id for caller ID {phone} ({PHONE_NUMBERS.name}), "
            "so calls cannot be placed from it.",
        )
        for path, phone in callers
        if phone not in numbers
    ]
