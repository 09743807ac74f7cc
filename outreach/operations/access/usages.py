"""The users of an agent, number, trunk or flow, as text: what is in use is not removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from outreach.errors import Conflict
from outreach.models.campaign import Campaign
from outreach.models.resources import Number
from outreach.models.states import TERMINAL_CAMPAIGN_STATUSES, CampaignStatus
from outreach.operations.common import workspace_of
from outreach.policy.phones import normalise_single
from outreach.policy.spellings import person_key
from outreach.working_set import Transaction

_OPEN: Final = frozenset(CampaignStatus) - TERMINAL_CAMPAIGN_STATUSES
STARTED: Final = frozenset({CampaignStatus.SCHEDULED, CampaignStatus.ACTIVE, CampaignStatus.PAUSED})
_NAMED: Final = 3
"""How many users are named."""


def users_of_number(tx: Transaction, number: Number) -> Sequence[str]:
    """Return the open campaigns and active agents that use a number."""
    region = workspace_of(tx, number.workspace_id).default_region
    line = person_key(number.phone)

    def is_it(phone: str | None) -> bool:
        return phone is not None and person_key(phone) == line

    def uses(campaign: Campaign) -> bool:
        own = campaign.from_number
        if own is not None and is_it(normalise_single(own, region)):
            return True
        return any(is_it(entry.phone) or number.id == entry.number_id for entry in campaign.cli_group or ())

    agents = [
        f"agent {agent.name!r}"
        for agent in tx.agents.list(number.workspace_id)
        if agent.is_active and is_it(agent.from_number)
    ]
    return [*_campaigns(tx, number.workspace_id, uses), *agents]


def users_of_agent(tx: Transaction, workspace_id: str, agent_id: str) -> Sequence[str]:
    """Return the open campaigns that use an agent, and its oldest open call."""
    call = tx.calls.open_of_agent(workspace_id, agent_id)
    calls = [] if call is None else [f"call {call.id} ({call.status})"]
    return [*_campaigns(tx, workspace_id, lambda campaign: campaign.agent_id == agent_id), *calls]


def users_of_trunk(tx: Transaction, workspace_id: str, trunk_id: str) -> Sequence[str]:
    """Return the open campaigns and the numbers that use a trunk."""
    numbers = [f"number {number.phone}" for number in tx.numbers.list(workspace_id) if number.trunk_id == trunk_id]
    return [*_campaigns(tx, workspace_id, lambda campaign: campaign.trunk_id == trunk_id), *numbers]


def users_of_flow(
    tx: Transaction, workspace_id: str, flow_id: str, statuses: Collection[CampaignStatus] = _OPEN
) -> Sequence[str]:
    """Return the campaigns in these statuses, by default all open ones, that a flow drives."""

    def uses(campaign: Campaign) -> bool:
        # One that sends a text may name a flow all the same, and needs nothing of it.
        return campaign.flow_id == flow_id and campaign.message_source == "flow"

    return _campaigns(tx, workspace_id, uses, statuses)


def require_unused(what: str, users: Sequence[str], advice: str) -> None:
    """Raise `Conflict`, with the users' names, if there are any."""
    if users:
        more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
        raise Conflict(f"{what} is in use by {', '.join(users[:_NAMED])}{more}. {advice}")


def _campaigns(
    tx: Transaction, workspace_id: str, uses: Callable[[Campaign], bool], statuses: Collection[CampaignStatus] = _OPEN
) -> list[str]:
    return [
        f"campaign {campaign.name!r} ({campaign.status})"
        for campaign in tx.campaigns.in_status(statuses, workspace_id=workspace_id)
        if uses(campaign)
    ]
