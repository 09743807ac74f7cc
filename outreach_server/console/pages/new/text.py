"""The text of a new campaign, or the agent that calls: its cost, and the texts for three of its contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach import Campaign, CampaignUpdate, InvalidRequest
from outreach.errors import Conflict, OutreachError
from outreach.models import ContactPreview, NewTestMessage, Preflight, RenderedMessage
from outreach_server.console import words
from outreach_server.console.context import Visit
from outreach_server.console.pages.new.steps import Choice, go_to, key_of, of_draft, problems_of, stale_of, steps_of

_MOST_AGENTS: Final = 200
_SHOWN: Final = 3
_SHOWN_CHARACTERS: Final = 5
_SHOWN_NAMES: Final = 40
_OWN_NAMES: Final = ("first_name", "last_name", "email", "company", "phone_number")
_NO_CONTACT: Final = "No contact of this campaign can get a text, so there is nothing to try."


@attrs.frozen(kw_only=True)
class PreviewView:
    """The texts that a contact gets.

    Attributes:
        size: Its segments and alphabet, in words.
    """

    number: str
    texts: Sequence[tuple[str, str]]
    values: Sequence[tuple[str, str]]


@of_draft
async def show(visit: Visit, campaign: Campaign) -> Response:
    """Show the text with its previews."""
    return await _page(visit, campaign)


@of_draft
async def act(visit: Visit, campaign: Campaign) -> Response:
    """Save what was typed; go on, show it again, replace costly characters, or send it to the person."""
    action, key = visit.form.get("action", ""), key_of(visit)
    if action not in {"save", "next", "replace", "keep", "test"}:
        raise HTTPException(400, words.NO_SUCH_ACTION)
    changes = _changes(visit, campaign, action)
    if action == "test" and all(getattr(campaign, name) == value for name, value in changes.items()):
        # Sent twice, a form finds what it has saved: its key sends the text once.
        return await _test(visit, campaign, key)
    if stale := stale_of(visit, campaign):
        return await _page(visit, campaign, status=409, problems={"": stale})
    try:
        campaign = await visit.engine.campaigns.update(
            visit.place.id,
            campaign.id,
            CampaignUpdate(**changes),
            revision=campaign.revision,
            actor=visit.actor,
        )
    except InvalidRequest as error:
        return await _page(visit, campaign, status=422, problems=problems_of(error))
    except Conflict as error:
        campaign = await visit.engine.campaigns.get(visit.place.id, campaign.id)
        return await _page(visit, campaign, status=409, problems={"": error.message})
    if action == "next":
        return go_to(visit, "when", campaign)
    if action == "test":
        return await _test(visit, campaign, key)
    return go_to(visit, "text", campaign)


def _changes(visit: Visit, campaign: Campaign, action: str) -> dict[str, Any]:
    form = visit.form
    changes: dict[str, Any] = {}
    if (name := form.get("name", "").strip()) != campaign.name:
        changes["name"] = name
    if campaign.channel == "call":
        changes["agent_id"] = form.get("agent") or None
        changes["retry_voicemail"] = bool(form.get("retry_voicemail"))
    elif campaign.message_source != "flow":
        # Browsers send a line break as two characters, which would count in each message.
        changes["body"] = form.get("body", "").replace("\r\n", "\n")
    if campaign.channel == "sms":
        changes["replace_characters"] = bool(form.get("replace_characters"))
    if action in {"replace", "keep"}:
        changes["replace_characters"] = action == "replace"
    return changes


async def _test(visit: Visit, campaign: Campaign, key: str) -> Response:
    """Send what the first contact gets to the person's own number."""
    to = visit.form.get("to", "").strip()
    if not to:
        return await _page(visit, campaign, status=422, problems={"to": "Give your number."})
    found = await visit.engine.campaigns.preflight(visit.place.id, campaign.id)
    if not found.samples:
        return await _page(visit, campaign, status=422, problems={"to": _NO_CONTACT})
    new = NewTestMessage(contact=found.samples[0].phone_number, to=to, at_any_hour=True)
    try:
        await visit.engine.messages.send_test(visit.place.id, campaign.id, new, idempotency_key=key, actor=visit.actor)
    except InvalidRequest as error:
        return await _page(visit, campaign, status=422, problems=problems_of(error))
    except OutreachError as error:
        return await _page(visit, campaign, status=409, problems={"to": error.message})
    return await _page(visit, campaign, sent_to=to)


async def _page(
    visit: Visit,
    campaign: Campaign,
    *,
    status: int = 200,
    problems: Mapping[str, str] | None = None,
    sent_to: str = "",
) -> Response:
    form = visit.form
    found = await visit.engine.campaigns.preflight(visit.place.id, campaign.id)
    calls = campaign.channel == "call"
    agents = (await visit.engine.agents.list(visit.place.id, limit=_MOST_AGENTS)).items if calls else ()
    return visit.page(
        "new/text",
        title="Text of a new campaign",
        current="campaigns",
        status=status,
        steps=steps_of(visit, "text", campaign),
        problems=problems or {},
        campaign=campaign,
        name=form.get("name", campaign.name),
        body=form.get("body", campaign.body or ""),
        to=form.get("to") or await _own_number(visit),
        sent_to=sent_to,
        replace=bool(form.get("replace_characters")) if form else bool(campaign.replace_characters),
        retry_voicemail=bool(form.get("retry_voicemail")) if form else bool(campaign.retry_voicemail),
        has_flow=campaign.message_source == "flow",
        agents=[
            Choice(value=one.id, word=one.name, chosen=one.id == form.get("agent", campaign.agent_id))
            for one in agents
            if one.can_place_calls
        ],
        names=[*_OWN_NAMES, *(campaign.variable_names or ())][:_SHOWN_NAMES],
        found=found,
        has_text=calls or bool((campaign.body or "").strip()) or campaign.message_source == "flow",
        shares=[
            f"{words.plural(one.messages, 'message')} of {words.plural(one.segments, 'segment')}"
            for one in found.segment_shares
        ],
        characters=found.encodings.characters[:_SHOWN_CHARACTERS],
        previews=[_preview(one) for one in _chosen(found)],
        cost=cost_of(found),
        key=visit.new_key(),
    )


async def _own_number(visit: Visit) -> str:
    """Return the number in the person's account; hosts have the accounts of their people themselves."""
    return ((await visit.engine.users.get(visit.user.id)).phone or "") if visit.console.has_login else ""


def cost_of(found: Preflight) -> str:
    """Return the cost of a campaign, in words; empty without prices."""
    return "" if found.cost is None else f"{found.cost.amount_text} {found.cost.currency}"


def _chosen(found: Preflight) -> Sequence[ContactPreview]:
    """Return three contacts, the one with the longest text among them."""
    samples = found.samples
    longest = max(samples, key=lambda one: sum(text.units for text in one.messages), default=None)
    first = [one for one in samples if one is not longest][: _SHOWN - 1]
    return sorted([*first, *([] if longest is None else [longest])], key=lambda one: one.position)


def _preview(one: ContactPreview) -> PreviewView:
    return PreviewView(
        number=one.phone or one.phone_number,
        texts=[(text.text, _size(text)) for text in one.messages],
        values=[] if one.messages else list(one.variables.items())[:_SHOWN_NAMES],
    )


def _size(text: RenderedMessage) -> str:
    sizes = (words.plural(text.segments, "segment"), words.plural(text.units, "character"), text.encoding)
    return ", ".join(sizes)
