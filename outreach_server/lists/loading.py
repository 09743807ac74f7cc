"""An uploaded list: read, checked with the campaign that is to have its contacts, and loaded into one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import anyio
import attrs

from outreach import Campaign, CampaignCreated, InvalidRequest, NewCallCampaign, NewSmsCampaign, Workspace
from outreach.http import IdempotentRequest, document_of, in_json_names
from outreach.models import ForecastAssumptions, RecipientsAdded
from outreach_server.bodies.spool import spool_directory
from outreach_server.context import Server
from outreach_server.lists.errors import NothingToLoad, UnsendableText, in_body_names
from outreach_server.lists.opening import OpenedList, opened_list
from outreach_server.lists.requests import ListRequest, in_campaign
from outreach_server.lists.texts import Chunks, check_text, texts_of

_PART_BYTES: Final = 64 * 1024


@asynccontextmanager
async def opened_for(
    server: Server, workspace: Workspace, upload_id: str, wanted: ListRequest, *, rejects: str | None = None
) -> AsyncIterator[OpenedList]:
    """Open an upload as the list of a request; see `opened_list`."""
    upload = await server.engine.uploads.get(workspace.id, upload_id)
    campaign: NewSmsCampaign | NewCallCampaign | Campaign | None = wanted.campaign
    if wanted.campaign_id:
        campaign = await server.engine.campaigns.get(workspace.id, wanted.campaign_id)
    calls = isinstance(campaign, NewCallCampaign) or (isinstance(campaign, Campaign) and campaign.channel == "call")
    templates, expected = ((), ()) if campaign is None else await texts_of(server.engine, workspace.id, campaign)
    options = wanted.reading(
        name=upload.file_name,
        region=wanted.options.get("region") or workspace.default_region,
        templates=templates,
        expected=expected,
        sms=not calls,
        rejects=rejects,
    )
    async with opened_list(server, workspace.id, upload_id, options) as opened:
        yield opened


def rejected_rows(
    server: Server, workspace: Workspace, upload_id: str, wanted: ListRequest, *, actor: str
) -> AsyncGenerator[bytes]:
    """Return a CSV file of the rows that cannot be loaded; see `rejects_file`."""
    return rejects_file(
        server,
        workspace,
        upload_id,
        lambda rejects: opened_for(server, workspace, upload_id, wanted, rejects=rejects),
        actor=actor,
    )


async def rejects_file(
    server: Server,
    workspace: Workspace,
    upload_id: str,
    opened_with: Callable[[str], AbstractAsyncContextManager[OpenedList]],
    *,
    actor: str,
) -> AsyncGenerator[bytes]:
    """Yield a CSV file of rejected rows; the whole list is read before the first part.

    The audit trail then notes who took how many of them.

    Args:
        server: What reads it.
        workspace: The workspace.
        upload_id: The upload.
        opened_with: Opens the list, given the path of a file for its rejected rows.
        actor: Recorded in the audit trail.
    """
    async with spool_directory(server.spool_root) as directory:
        file = directory / "rejects.csv"
        async with opened_with(str(file)) as opened:
            await opened.read_to_its_end()
            rejected = document_of_list(opened)["rejected_count"]
        await server.engine.audit.record(
            workspace.id, actor=actor, action="upload.rejects", subject=upload_id, detail=f"csv, rows: {rejected}"
        )
        async with await anyio.open_file(file, "rb") as written:
            while part := await written.read(_PART_BYTES):
                yield part


async def check_upload(server: Server, workspace: Workspace, upload_id: str, wanted: ListRequest) -> dict[str, Any]:
    """Read a list, and return what was made of it, why a load would be refused, its overlaps, and its preflight."""
    async with opened_for(server, workspace, upload_id, wanted) as opened:
        checked = await _check_list(server, workspace, wanted, opened)
    return {**document_of_list(opened), **checked}


async def _check_list(server: Server, workspace: Workspace, wanted: ListRequest, opened: OpenedList) -> dict[str, Any]:
    campaigns, campaign = server.engine.campaigns, wanted.campaign
    checked: dict[str, Any] = {"refusal": None, "audience": None, "preflight": None}
    try:
        chunks = _some(opened)
        if campaign is not None:
            chunks, unsendable = await check_text(server.engine, workspace.id, campaign, chunks)
            checked["refusal"] = None if unsendable is None else in_body_names(unsendable.message)
            preflight = await campaigns.preflight_new(
                workspace.id, campaign, chunks, leave_out=wanted.leave_out, assumptions=ForecastAssumptions()
            )
            checked["preflight"] = document_of(preflight)
            checked["audience"] = checked["preflight"]["audience"]
        elif wanted.leave_out is not None:
            counts = await campaigns.count_audience(workspace.id, chunks, leave_out=wanted.leave_out)
            checked["audience"] = document_of(counts)
        else:
            async for _ in chunks:
                pass
    except NothingToLoad as error:
        checked["refusal"] = error.message
    except InvalidRequest as error:
        raise in_campaign(in_json_names(error)) if error.details else error from None
    return checked


async def load_list(
    server: Server,
    workspace: Workspace,
    wanted: ListRequest,
    opened: OpenedList,
    key: IdempotentRequest[CampaignCreated] | str,
    *,
    actor: str,
) -> CampaignCreated:
    """Create the campaign of a request with the contacts of its list, without starting it.

    Raises:
        NothingToLoad: No row can be loaded.
        UnsendableText: No contact can be sent its text.
        InvalidRequest: A rule is broken; nothing was created.
    """
    campaigns = server.engine.campaigns
    assert wanted.campaign is not None  # noqa: S101 - required by the reader
    new = attrs.evolve(wanted.campaign, csv_column_headers=tuple(opened.columns))
    contacts = _sendable(server, workspace, new, opened)
    more: dict[str, Any] = {"leave_out": wanted.leave_out, "idempotency_key": key, "actor": actor}
    try:
        if isinstance(new, NewSmsCampaign):
            return await campaigns.create_sms(workspace.id, new, contacts, **more)
        return await campaigns.create_call(workspace.id, new, contacts, **more)
    except InvalidRequest as error:
        raise in_campaign(in_json_names(error)) if error.details else error from None


async def add_list(
    server: Server,
    workspace: Workspace,
    wanted: ListRequest,
    opened: OpenedList,
    key: IdempotentRequest[RecipientsAdded] | str,
    *,
    actor: str,
) -> RecipientsAdded:
    """Add the contacts of a list to the campaign of a request; see `add_recipients`.

    Raises:
        NothingToLoad: No row can be loaded.
    """
    return await server.engine.campaigns.add_recipients(
        workspace.id,
        wanted.campaign_id,
        _some(opened),
        leave_out=wanted.leave_out,
        idempotency_key=key,
        actor=actor,
    )


async def _sendable(
    server: Server, workspace: Workspace, new: NewSmsCampaign | NewCallCampaign, opened: OpenedList
) -> Chunks:
    """Yield the contacts of a list; raise `UnsendableText` if none can be sent the campaign's text."""
    chunks, unsendable = await check_text(server.engine, workspace.id, new, _some(opened))
    if unsendable is not None:
        raise UnsendableText(in_body_names(unsendable.message))
    async for chunk in chunks:
        yield chunk


async def _some(opened: OpenedList) -> Chunks:
    """Yield the contacts of a list; raise `NothingToLoad` if there are none."""
    empty = True
    async for chunk in opened.chunks():
        empty = False
        yield chunk
    if empty:
        raise NothingToLoad(document_of_list(opened)["rows"])


def document_of_list(opened: OpenedList) -> dict[str, Any]:
    """Return what was made of a list that was read to its end."""
    assert opened.document is not None  # noqa: S101 - all of it was read
    return opened.document
