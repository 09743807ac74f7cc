"""Choosing where the body of a new campaign is read: here, in a thread, or in a helper process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import attrs
from anyio import to_thread

from outreach import NewCallCampaign, NewSmsCampaign, PreparedRecipient
from outreach_server.body import Body
from outreach_server.context import Server
from outreach_server.helper import frames, read_in_helper
from outreach_server.reading import Reading, read_campaign

_MOST_INLINE: Final = 16 * 1024
"""What takes a few milliseconds at the most, whatever it holds."""


@attrs.frozen(kw_only=True)
class PreparedCampaign:
    """A campaign that can be created.

    Attributes:
        chunks: Its contacts, some at a time; to be gone through once.
    """

    campaign: NewSmsCampaign | NewCallCampaign
    chunks: AsyncIterator[list[PreparedRecipient]]


async def prepare_campaign(server: Server, body: Body, reading: Reading) -> PreparedCampaign:
    """Return the campaign that a body asks for.

    Raises:
        InvalidRequest: The body breaks a rule; the details name each place.
        SmsCampaignsDisabled: It asks for an SMS campaign, which the workspace may not have.
    """
    if body.directory is not None:
        async with server.preparations:
            campaign = await read_in_helper(body.directory, reading)
        return PreparedCampaign(campaign=campaign, chunks=frames(body.directory))
    raw = body.raw or b""
    if len(raw) <= _MOST_INLINE:
        campaign, chunks = _read(raw, reading)
    else:
        campaign, chunks = await to_thread.run_sync(_read, raw, reading)
    return PreparedCampaign(campaign=campaign, chunks=_each(chunks))


def _read(raw: bytes, reading: Reading) -> tuple[NewSmsCampaign | NewCallCampaign, list[list[PreparedRecipient]]]:
    read = read_campaign(raw, reading)
    return read.campaign, list(read.chunks)


async def _each(chunks: list[list[PreparedRecipient]]) -> AsyncIterator[list[PreparedRecipient]]:
    for chunk in chunks:
        yield chunk
