"""Chooses where to read the body of a new campaign: here, in a thread, or in a helper process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import attrs
from anyio import to_thread

from outreach import NewCallCampaign, NewSmsCampaign
from outreach.models import PreparedRecipient
from outreach_server.bodies.body import Body
from outreach_server.bodies.parser_client import parse_in_subprocess
from outreach_server.bodies.reading import ParsedCampaign, ParseOptions, read_campaign
from outreach_server.context import Server

_MAX_INLINE: Final = 32 * 1024
"""The largest body to read on the event loop, in a millisecond or two."""


@attrs.frozen(kw_only=True)
class PreparedCampaign:
    """A campaign ready to be created.

    Attributes:
        chunks: Its contacts; can be iterated once.
    """

    campaign: NewSmsCampaign | NewCallCampaign
    chunks: AsyncIterator[list[PreparedRecipient]]


@asynccontextmanager
async def prepared_campaign(
    server: Server, body: Body, reading: ParseOptions, *, workspace_id: str
) -> AsyncIterator[PreparedCampaign]:
    """Provide a body's campaign with its contacts.

    Raises:
        InvalidRequest: The body breaks a rule; the details name each place.
        SmsCampaignsDisabled: The workspace does not have SMS campaigns enabled.
    """
    if body.file is not None and server.helper is not None:
        async with (
            server.helpers.turn(workspace_id),
            parse_in_subprocess(server.helper, body.file, reading) as (campaign, chunks),
        ):
            yield PreparedCampaign(campaign=campaign, chunks=chunks)
        return
    raw = await to_thread.run_sync(body.file.read_bytes) if body.file is not None else body.raw
    if len(raw) <= _MAX_INLINE:
        read = read_campaign(raw, reading)
    else:
        read = await to_thread.run_sync(_read_all, raw, reading, limiter=server.readers)
    yield PreparedCampaign(campaign=read.campaign, chunks=_each(read.chunks))


def _read_all(raw: bytes, reading: ParseOptions) -> ParsedCampaign:
    """Read a body with all of its contacts."""
    read = read_campaign(raw, reading)
    return ParsedCampaign(campaign=read.campaign, chunks=iter(list(read.chunks)))


async def _each(chunks: Iterator[list[PreparedRecipient]]) -> AsyncIterator[list[PreparedRecipient]]:
    for chunk in chunks:
        yield chunk
