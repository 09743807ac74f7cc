"""A campaign's templates and placeholders, and the provider account that it needs."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.errors import AccountMissing, Problem
from outreach.ledger.campaigns.recipients import steps_of
from outreach.ledger.common import settings_of, workspace_of
from outreach.models.base import CARRIERS
from outreach.models.campaign import Campaign
from outreach.models.preflight import TextWarning
from outreach.models.resources import Agent
from outreach.models.states import WorkspaceMode
from outreach.models.workspace import Workspace
from outreach.providers.registry import Adapters
from outreach.rules.phones import normalise_single
from outreach.rules.placeholders import expected_names, field_columns, template_of, text_warnings
from outreach.rules.readiness import wording_warnings
from outreach.rules.rendering import CONTACT_FIELDS, unfilled
from outreach.rules.senders import is_service
from outreach.rules.spellings import person_key
from outreach.rules.texts import name_spellings
from outreach.storage.unit_of_work import Transaction


def templates_of(tx: Transaction, campaign: Campaign) -> Sequence[str]:
    """Return the texts of an SMS campaign in order; none for a calling campaign."""
    if campaign.channel == "call":
        return ()
    steps = steps_of(tx, campaign)
    texts = (campaign.body,) if steps is None else tuple(step.body for step in steps if step.kind == "send")
    return tuple(template_of(campaign, text) for text in texts)


def caller_of(tx: Transaction, campaign: Campaign) -> Agent | None:
    """Return the agent of a calling campaign; None if it has none, or sends messages."""
    if campaign.channel != "call" or not campaign.agent_id:
        return None
    return tx.agents.get(campaign.workspace_id, campaign.agent_id)


def unknown_placeholders(tx: Transaction, campaign: Campaign) -> tuple[str, ...]:
    """Return the placeholders without a fallback that nothing fills, each once.

    A calling campaign has its agent's placeholders. The result is empty if the contacts' variables are unknown.
    """
    if campaign.variable_names is None:
        return ()
    known = _names_with_values(tx, campaign)
    if campaign.channel == "call":
        spellings = {spelling for name in known for spelling in name_spellings(name)}
        expected = expected_names(caller_of(tx, campaign))
        return tuple(name for name in expected if spellings.isdisjoint(name_spellings(name)))
    found = (name for template in templates_of(tx, campaign) for name in unfilled(template, known))
    return tuple(dict.fromkeys(found))


def find_text_warnings(tx: Transaction, campaign: Campaign) -> tuple[TextWarning, ...]:
    """Return the parts of a campaign's texts that are most likely meant otherwise, and are sent as they are."""
    names = _names_with_values(tx, campaign)
    found = (one for template in templates_of(tx, campaign) for one in text_warnings(template, names))
    return tuple({one.written: one for one in found}.values())


def _names_with_values(tx: Transaction, campaign: Campaign) -> Sequence[str]:
    declared = settings_of(tx, campaign.workspace_id).custom_variables
    return (*CONTACT_FIELDS, *(campaign.variable_names or ()), *field_columns(campaign), *declared)


def start_warnings(tx: Transaction, campaign: Campaign) -> tuple[Problem, ...]:
    """Return what does not prevent a start, but is most likely a mistake."""
    workspace = workspace_of(tx, campaign.workspace_id)
    # What a sandbox only warns of prevents the start of a live campaign.
    senders = sender_problems(tx, campaign) if workspace.mode is WorkspaceMode.SANDBOX else ()
    if campaign.channel == "call":
        return tuple(senders)
    footer = settings_of(tx, campaign.workspace_id).footer
    return (*senders, *wording_warnings(templates_of(tx, campaign), footer, campaign.from_number))


def sender_problems(tx: Transaction, campaign: Campaign) -> Sequence[Problem]:
    """Return which numbers a campaign cannot send or call from, such as those that are not its workspace's.

    Names and short codes are not looked up.
    """
    if campaign.channel == "call":
        return _caller_id_problems(tx, campaign)
    region = workspace_of(tx, campaign.workspace_id).default_region
    found = []
    for index, sender in enumerate(campaign.senders):
        words = _sender_problem(tx, campaign, sender, normalise_single(sender, region))
        if words is not None:
            path = f"from_numbers[{index}]" if campaign.from_numbers else "from_number"
            found.append(Problem(path=path, message=words))
    return found


def _sender_problem(tx: Transaction, campaign: Campaign, sender: str, phone: str | None) -> str | None:
    """Return why messages cannot come from a sender as a campaign says; None if they can."""
    if is_service(sender):
        # An adapter of one's own may name its senders alike.
        known = campaign.carrier if campaign.carrier in CARRIERS else None
        if known is None or is_service(sender, known):
            return None
        words = "name a number, or several, of the workspace."
        return f"Its sender {sender} is no Messaging Service of {known.capitalize()}: {words}"
    if phone is None:
        return f"{sender} of its sender pool is no phone number." if campaign.from_numbers else None
    number = tx.numbers.of_line(campaign.workspace_id, phone)
    if number is None:
        return f"Its sending number {phone} is not a number of the workspace: add it, or send from one that is."
    if campaign.from_numbers and number.carrier is not None and number.carrier != campaign.carrier:
        carrier = number.carrier.capitalize()
        return f"{phone} of its sender pool is a number at {carrier}, not at the campaign's carrier: leave it out."
    return None


def _caller_id_problems(tx: Transaction, campaign: Campaign) -> Sequence[Problem]:
    """Return why calls would show another number than the ledger names."""
    found = []
    for index, entry in enumerate((campaign.cli_group or ()) if campaign.cli_mode == "group" else ()):
        number = tx.numbers.get(campaign.workspace_id, entry.number_id)
        if number is not None and person_key(number.phone) != person_key(entry.phone):
            message = f"The number {number.id} of its caller-ID group is {number.phone}, not {entry.phone}."
        elif number is None and tx.numbers.of_line(campaign.workspace_id, entry.phone) is None:
            message = f"{entry.phone} of its caller-ID group is not a number of the workspace: add it first."
        else:
            continue
        found.append(Problem(path=f"cli_group_config[{index}]", message=message))
    return found


def missing_account(tx: Transaction, workspace: Workspace, provider: str) -> Problem | None:
    """Return the error if a workspace has no account for a provider, or None."""
    if workspace.mode is WorkspaceMode.SANDBOX:
        return None
    if provider == "simulator":
        return Problem(
            path="agent.provider",
            message="The workspace is live and the simulator is for sandboxes only: use an agent with a real voice "
            "provider.",
        )
    if tx.accounts.of_provider(workspace.id, provider) is None:
        return Problem(path=f"account.{provider}", message=f"The workspace is live and has no account at {provider}.")
    return None


def not_installed(workspace: Workspace, provider: str, adapters: Adapters) -> Problem | None:
    """Return that the adapter of a live workspace's provider is not installed here; None if it is."""
    if workspace.mode is WorkspaceMode.SANDBOX or provider == "simulator" or adapters.kind(provider) is not None:
        return None
    return Problem(path=f"account.{provider}", message=adapters.missing(provider))


def require_account(tx: Transaction, workspace: Workspace, provider: str, adapters: Adapters) -> None:
    """Raise `AccountMissing`, with the reason, if a workspace cannot send through a provider."""
    problem = not_installed(workspace, provider, adapters) or missing_account(tx, workspace, provider)
    if problem is not None:
        connectable = adapters.kind(provider) is not None
        raise AccountMissing(problem.message, workspace_id=workspace.id, provider=provider, connectable=connectable)
