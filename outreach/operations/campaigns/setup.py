"""A campaign's templates and placeholders, the provider account that it needs, and its text for one contact."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.clock import format_timestamp
from outreach.errors import AccountMissing, Conflict, ErrorDetail, InvalidRequest, NotFound
from outreach.models.campaign import Campaign
from outreach.models.plans import Ending
from outreach.models.states import WorkspaceMode
from outreach.models.workspace import Workspace
from outreach.operations.campaigns.recipients import steps_of
from outreach.operations.common import settings_of
from outreach.policy.contact_hours import next_contact, time_zones_of_phone
from outreach.policy.deciding import RenderedText, render_message, send_steps
from outreach.policy.opening import opening_state
from outreach.policy.phones import normalise
from outreach.policy.rendering import CONTACT_FIELDS, unfilled
from outreach.providers.registry import Adapters
from outreach.working_set import Transaction


def templates_of(tx: Transaction, campaign: Campaign) -> Sequence[str]:
    """Return the texts of an SMS campaign in order; none for a calling campaign."""
    if campaign.channel == "call":
        return ()
    steps = steps_of(tx, campaign)
    if steps is None:
        return (campaign.body or "",)
    return tuple(step.body or "" for step in steps if step.kind == "send")


def unknown_placeholders(tx: Transaction, campaign: Campaign) -> tuple[str, ...]:
    """Return the placeholders without a fallback that nothing fills, each once.

    A calling campaign has its agent's placeholders; names that begin with an underscore are the engine's own
    (`docs/voice-variables.md`). The result is empty if the contacts' variables are unknown.
    """
    if campaign.variable_names is None:
        return ()
    known = {*CONTACT_FIELDS, *campaign.variable_names, *settings_of(tx, campaign.workspace_id).custom_variables}
    if campaign.channel == "call":
        agent = tx.agents.get(campaign.workspace_id, campaign.agent_id) if campaign.agent_id else None
        expected = (agent.placeholders if agent is not None else None) or ()
        return tuple(name for name in dict.fromkeys(expected) if name not in known and not name.startswith("_"))
    found = (name for template in templates_of(tx, campaign) for name in unfilled(template, known))
    return tuple(dict.fromkeys(found))


def missing_account(tx: Transaction, workspace: Workspace, provider: str) -> ErrorDetail | None:
    """Return the error if a workspace has no account for a provider, or None."""
    if workspace.mode is WorkspaceMode.SANDBOX:
        return None
    if provider == "simulator":
        return ErrorDetail(
            "agent.provider",
            "The workspace is live and the simulator is for sandboxes only: use an agent with a real voice provider.",
        )
    if tx.accounts.of_provider(workspace.id, provider) is None:
        return ErrorDetail(f"account.{provider}", f"The workspace is live and has no account at {provider}.")
    return None


def not_installed(workspace: Workspace, provider: str, adapters: Adapters) -> ErrorDetail | None:
    """Return that the adapter of a live workspace's provider is not installed here; None if it is."""
    if workspace.mode is WorkspaceMode.SANDBOX or provider == "simulator" or adapters.kind(provider) is not None:
        return None
    return ErrorDetail(f"account.{provider}", adapters.missing(provider))


def require_account(tx: Transaction, workspace: Workspace, provider: str, adapters: Adapters) -> None:
    """Raise `AccountMissing`, with the reason, if a workspace cannot send through a provider."""
    problem = not_installed(workspace, provider, adapters) or missing_account(tx, workspace, provider)
    if problem is not None:
        connectable = adapters.kind(provider) is not None
        raise AccountMissing(problem.message, workspace_id=workspace.id, provider=provider, connectable=connectable)


def text_for_contact(
    tx: Transaction, workspace: Workspace, campaign: Campaign, contact: str, message: int
) -> RenderedText:
    """Return a campaign's message, counted from 1, as a contact would get it; see `Messages.send_test` for errors."""
    if campaign.channel == "call":
        raise Conflict("A calling campaign has no messages. Try its agent with a single call instead.")
    phone = normalise(contact, workspace.default_region)
    if phone is None:
        found = tx.recipients.without_phone(workspace.id, campaign.id, contact)
    else:
        found = tx.recipients.by_phone(workspace.id, campaign.id, phone)
    if not found:
        raise NotFound("recipient", contact)
    messages = send_steps(steps_of(tx, campaign), campaign.body)
    if message > len(messages):
        raise InvalidRequest.at("message", f"the campaign has {len(messages)} messages")
    text = render_message(messages[message - 1][1], found[0], settings_of(tx, workspace.id))
    if isinstance(text, Ending):
        empty = text.reason == "empty_message"
        raise InvalidRequest.at(
            "contact",
            "gets an empty text: its placeholders have no values" if empty else "gets a text over the segment cap",
        )
    return text


def require_open(workspace: Workspace, campaign: Campaign, phone: str, now: datetime) -> None:
    """Raise `Conflict` outside a campaign's hours, and outside the contact hours of a number where they apply."""
    hours = opening_state(campaign, now)
    if not hours.open:
        raise Conflict(f"The campaign is closed until {format_timestamp(hours.reopens_at)}.")
    if not workspace.contact_hours:
        return
    opening = next_contact(campaign, time_zones_of_phone(phone), now)
    if opening is None:
        raise Conflict("The number has no contact hours in common with the campaign, or its time zone is unknown.")
    if opening > now:
        raise Conflict(f"Contact hours (8 to 21 o'clock) at the number begin at {format_timestamp(opening)}.")
