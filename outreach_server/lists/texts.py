"""The texts that the contacts of a list are to get."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeAlias

from outreach import Campaign, NewCallCampaign, NewSmsCampaign, NotFound, Outreach
from outreach.models import Preflight, PreparedRecipient
from outreach.server_support import expected_names, is_blank
from outreach_server.lists.errors import UnsendableText

_MAX_LOOKED_AT: Final = 20
"""Chunks among which one contact is looked for that the text suits, as before a start."""

_UNSENDABLE: Final = {
    "over_segment_cap": "with the footer it is over the segment cap; shorten it, or raise settings set --max-segments",
    "empty_message": "it is empty for each of them; write text besides the placeholders",
}

Chunks: TypeAlias = AsyncIterator[list[PreparedRecipient]]
"""The contacts of a list; can be iterated once."""


async def texts_of(
    engine: Outreach, workspace_id: str, new: NewSmsCampaign | NewCallCampaign | Campaign
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the texts of a campaign, and the names that its agent expects; nothing of what is not there."""
    try:
        if isinstance(new, NewCallCampaign) or (isinstance(new, Campaign) and new.channel == "call"):
            agent_id = new.agent_id
            return (), () if agent_id is None else expected_names(await engine.agents.get(workspace_id, agent_id))
        if new.flow_id is None:
            return (new.body or "",), ()
        flow = await engine.flows.get(workspace_id, new.flow_id)
    except NotFound:
        # The creation says what is not there.
        return (), ()
    return tuple(step.body or "" for step in flow.steps if step.kind == "send"), ()


async def check_text(
    engine: Outreach, workspace_id: str, new: NewSmsCampaign | NewCallCampaign, chunks: Chunks
) -> tuple[Chunks, UnsendableText | None]:
    """Return the contacts again, and an error if the text can be sent to none, so that the campaign could not start.

    The first contacts are looked at. A blank text is none: it makes a draft.
    """
    if not isinstance(new, NewSmsCampaign) or (new.flow_id is None and is_blank(new.body or "")):
        return chunks, None
    read: list[list[PreparedRecipient]] = []
    found: Preflight | None = None
    while len(read) < _MAX_LOOKED_AT and (chunk := await anext(chunks, None)) is not None:
        read.append(chunk)
        found = await engine.campaigns.preflight_new(workspace_id, new, [chunk])
        if found.contacted or not any(one.rule in _UNSENDABLE for one in found.left_out):
            return _chain(read, chunks), None
    again = _chain(read, chunks)
    if found is None or len(read) == _MAX_LOOKED_AT:
        return again, None
    why = next(one for one in found.left_out if one.rule in _UNSENDABLE)
    size = why.examples[0].detail
    return again, UnsendableText(
        f"The text cannot be sent to any contact{f' ({size})' if size else ''}: {_UNSENDABLE[why.rule]}. "
        "Nothing was created."
    )


async def _chain(read: Sequence[list[PreparedRecipient]], rest: Chunks) -> Chunks:
    for chunk in read:
        yield chunk
    async for chunk in rest:
        yield chunk
