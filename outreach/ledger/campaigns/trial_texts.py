"""The text that a contact of a campaign would get, to be sent to somebody else as a test."""

from __future__ import annotations

from datetime import datetime

from outreach.errors import Conflict, InvalidRequest, NotFound
from outreach.ledger.campaigns.histories import with_phone
from outreach.ledger.campaigns.recipients import steps_of
from outreach.ledger.common import settings_of
from outreach.models.campaign import Campaign
from outreach.models.plans import Ending
from outreach.models.workspace import Workspace
from outreach.rules.contact_hours import next_contact
from outreach.rules.contact_places import place_of_phone
from outreach.rules.deciding import LocalRules, RenderedText, render_message, send_steps
from outreach.rules.opening import local_text, opening_state
from outreach.storage.unit_of_work import Transaction


def text_for_contact(
    tx: Transaction, workspace: Workspace, campaign: Campaign, contact: str, message: int
) -> RenderedText:
    """Return a campaign's message, counted from 1, as a contact would get it; see `Messages.send_test` for errors."""
    if campaign.channel == "call":
        raise Conflict("A calling campaign has no messages. Try its agent with a single call instead.")
    found = with_phone(tx, campaign, contact)
    if not found:
        raise NotFound("recipient", contact)
    messages = send_steps(steps_of(tx, campaign), campaign)
    if message > len(messages):
        count = "1 message" if len(messages) == 1 else f"{len(messages)} messages"
        raise InvalidRequest.at("message", f"the campaign has {count}")
    text = render_message(messages[message - 1][1], found[0], campaign, settings_of(tx, workspace.id))
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
        raise Conflict(f"The campaign is closed until {local_text(hours.reopens_at, campaign.timezone)}.")
    local = LocalRules(workspace)
    if not local.apply:
        return
    place = place_of_phone(phone)
    rules = local.of(place.regions)
    opening = next_contact(campaign, place.zones, rules.hours, now)
    if opening is None:
        raise Conflict("The number has no contact hours in common with the campaign, or its time zone is unknown.")
    if opening > now:
        begins = local_text(opening, campaign.timezone)
        raise Conflict(
            f"The number may be contacted from {begins} on: now it is {rules.holding(place.zones, now).meaning}."
        )
