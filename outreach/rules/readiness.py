"""Whether a campaign is ready to start, and whether its start needs approval (docs/users.md#approval-of-starts)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal

import attrs

from outreach.errors import Problem
from outreach.models.approval import ApprovalReason
from outreach.models.campaign import Campaign
from outreach.models.resources import Agent
from outreach.models.workspace import Workspace
from outreach.rules.rendering import compose, render
from outreach.rules.segments import count_segments, plain_form


def missing_requirements(campaign: Campaign, agent: Agent | None) -> tuple[Problem, ...]:
    """Return what a campaign needs to be ready, each as a field and a sentence."""
    return tuple(_of_calls(agent) if campaign.channel == "call" else _of_messages(campaign))


def _of_messages(campaign: Campaign) -> list[Problem]:
    found = []
    if campaign.message_source == "flow":
        if campaign.flow_id is None:
            found.append(Problem(path="flow_id", message="It has no flow_id: the flow that drives it."))
    elif not (campaign.body and campaign.body.strip()):
        found.append(Problem(path="body", message="It has no body: the text to send."))
    if not campaign.from_number:
        found.append(Problem(path="from_number", message="It has no from_number: the number to send from."))
    if campaign.carrier is None:
        found.append(Problem(path="carrier", message="It has no carrier: the carrier that sends."))
    return found


def _of_calls(agent: Agent | None) -> list[Problem]:
    if agent is None:
        return [Problem(path="agent_id", message="It has no agent.")]
    found = []
    if not agent.is_active:
        found.append(Problem(path="agent.is_active", message=f"Its agent {agent.name!r} is inactive."))
    if not agent.can_place_calls:
        sentence = f"Its agent {agent.name!r} is inbound and may not call out."
        found.append(Problem(path="agent.allow_outbound", message=sentence))
    return found


_NAME_LENGTH: Final = 11
"""The longest alphanumeric sender; longer ones are identifiers of a provider, which stand for numbers."""

_REPLY_STOP: Final = re.compile(
    r"\b(?:reply|text|send|respond|answer)\s+(?:with\s+)?\W{0,3}(?:stop|unsubscribe|end|quit)\b", re.IGNORECASE
)
_STOP_IN_CAPITALS: Final = re.compile(r"\b(?:STOP|STOPP|STOPALL|UNSUBSCRIBE|BAJA|ALTO|SAIR|ARRET|ARRÊT)\b")
_WORD: Final = re.compile(r"\w+")


def is_sender_name(sender: str) -> bool:
    """Return whether a sender is a name (`ACME`), which nobody can reply to."""
    return len(sender) <= _NAME_LENGTH and any(letter.isalpha() for letter in sender)


def wording_warnings(templates: Sequence[str], footer: str | None, sender: str | None) -> tuple[Problem, ...]:
    """Return what is wrong with the wording of an SMS campaign, though it can be sent.

    Args:
        templates: Its messages.
        footer: The line under each, if any.
        sender: The number or name that they come from, if set.
    """
    found = []
    asking = [text for text in (*templates, footer or "") if _asks_for_stop(text)]
    if sender is not None and asking and is_sender_name(sender):
        words = f"Nobody can reply to the name {sender!r}, but the text or its footer asks for STOP as a reply."
        found.append(
            Problem(path="from_number", message=f"{words} Send from a number, or name another way to opt out.")
        )
    if footer and any(_repeats(text, footer) for text in templates):
        words = f"The text repeats the footer {footer!r}, which is added to each message."
        found.append(Problem(path="body", message=f"{words} Remove the words from the text, or switch the footer off."))
    return tuple(found)


def _asks_for_stop(text: str) -> bool:
    return _REPLY_STOP.search(text) is not None or _STOP_IN_CAPITALS.search(text) is not None


def _repeats(text: str, footer: str) -> bool:
    """Return whether a text has the footer's words, or asks for STOP as the footer does."""
    of_text, of_footer = (" ".join(_WORD.findall(one.casefold())) for one in (text, footer))
    return f" {of_footer} " in f" {of_text} " or (_asks_for_stop(text) and _asks_for_stop(footer))


UnsendableReason = Literal["over_segment_cap", "empty_message"]

_MIN_SEGMENT_UNITS: Final = 70
"""The size of one segment in the smaller encoding."""


@attrs.frozen(kw_only=True)
class CampaignTexts:
    """A campaign's texts and their limit.

    Attributes:
        templates: Its messages in order.
        footer: The line under each, if any.
        max_segments: The limit of segments.
        replaces: Whether typographic characters have their plain forms (`Campaign.replace_characters`).
    """

    templates: Sequence[str]
    footer: str | None
    max_segments: int
    replaces: bool | None = False

    def unsendable_reason(self, values: Mapping[str, str]) -> UnsendableReason | None:
        """Return why a contact with these values will fail, by the first unsendable message, or None."""
        for template in self.templates:
            text = compose(template, values, self.footer, replaces=self.replaces)
            if not text:
                return "empty_message"
            if exceeds_segments(text, self.max_segments):
                return "over_segment_cap"
        return None

    def fits_no_contact(self) -> bool:
        """Return whether a message exceeds the limit even with empty placeholders."""
        bare = (render(template.replace("|", " "), {}) for template in self.templates)
        texts = (f"{one}\n{self.footer}" if self.footer else one for one in bare if one.strip())
        return any(exceeds_segments(plain_form(one) if self.replaces else one, self.max_segments) for one in texts)


def exceeds_segments(text: str, max_segments: int) -> bool:
    """Return whether a text takes more segments than allowed."""
    if 2 * len(text) <= _MIN_SEGMENT_UNITS:
        return False
    return count_segments(text).segments > max_segments


_PEOPLE: Final = frozenset({"user", "host"})
"""The kinds of actors that are people who are signed in to a console."""


def is_person(actor: str) -> bool:
    """Return whether an actor is a person at a console; programs and commands are not."""
    kind, colon, _ = actor.partition(":")
    return bool(colon) and kind in _PEOPLE


def limits_starts(workspace: Workspace) -> bool:
    """Return whether starts of a workspace may need approval."""
    return workspace.approve_over_contacts is not None or workspace.approve_over_amount is not None


def approval_reason(workspace: Workspace, *, contacts: int, amount: Decimal | None) -> ApprovalReason | None:
    """Return why the start of a campaign with so many contacts needs approval; None if it does not.

    Args:
        workspace: The workspace with its limits; a limit of 0 is for every start.
        contacts: All contacts of the campaign.
        amount: What it costs; None if that is not known.
    """
    most = workspace.approve_over_contacts
    if most is not None and (most == 0 or contacts > most):
        return "contacts"
    limit = workspace.approve_over_amount
    if limit is None:
        return None
    if amount is None:
        return "amount_unknown"
    return "amount" if limit == 0 or amount > limit else None
