"""/manage/uploads: lists of contacts that are uploaded in chunks, checked, and loaded into a campaign."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import attrs
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import CampaignCreated, InvalidRequest, NewCallCampaign, NewSmsCampaign, Workspace
from outreach.http import (
    EXPORT_CONTENT_TYPES,
    IdempotentRequest,
    document_of,
    in_json_names,
    read_new_upload,
    write_campaign_copy,
    write_preflight,
    write_upload,
)
from outreach.models import MAX_CHUNK_BYTES, MAX_UPLOAD_BYTES, ForecastAssumptions
from outreach_server.auth import authenticate_request
from outreach_server.bodies.body import receive_content
from outreach_server.bodies.spool import spool_directory
from outreach_server.bodies.strict_query import read_query, whole, words
from outreach_server.context import Server, server_of
from outreach_server.download import DownloadResponse
from outreach_server.endpoints.manage.common import (
    ACTOR,
    admit,
    page_response,
    path_id,
    read_body,
    read_optional_body,
    read_page,
    refuse_body,
)
from outreach_server.lists.errors import NothingToLoad, UnsendableText, in_body_names
from outreach_server.lists.opening import OpenedList, opened_list
from outreach_server.lists.requests import ListRequest, in_campaign, read_list_request
from outreach_server.lists.texts import Chunks, check_text, texts_of
from outreach_server.replies import answer_once, json_response

_PART_BYTES: Final = 64 * 1024

_offset: Final = whole(0, MAX_UPLOAD_BYTES)


class Uploads(HTTPEndpoint):
    """List uploads and begin one."""

    async def get(self, request: Request) -> Response:
        """Return a page of the uploads, oldest first."""
        workspace = await authenticate_request(request, "listUploads")
        found = await server_of(request).engine.uploads.list(workspace.id, **read_page(request, after=words))
        return page_response(found, write_upload)

    async def post(self, request: Request) -> Response:
        """Begin an upload."""
        workspace = await admit(request, "createUpload")
        new, body = await read_body(request, read_new_upload)
        uploads = server_of(request).engine.uploads
        return await answer_once(
            body,
            "createUpload",
            lambda key: uploads.create(workspace.id, new, idempotency_key=key, actor=ACTOR),
            write_upload,
        )


class OneUpload(HTTPEndpoint):
    """Look at an upload, and delete it."""

    async def get(self, request: Request) -> Response:
        """Return an upload."""
        workspace = await admit(request, "getUpload")
        found = await server_of(request).engine.uploads.get(workspace.id, path_id(request, "upload"))
        return json_response(write_upload(found))

    async def delete(self, request: Request) -> Response:
        """Delete an upload, and return it."""
        workspace = await admit(request, "removeUpload")
        await refuse_body(request)
        uploads = server_of(request).engine.uploads
        return json_response(write_upload(await uploads.remove(workspace.id, path_id(request, "upload"), actor=ACTOR)))


class UploadContent(HTTPEndpoint):
    """Receive the content of an upload."""

    async def put(self, request: Request) -> Response:
        """Add the next chunk; one that is sent again changes nothing."""
        workspace = await authenticate_request(request, "addUploadChunk")
        offset = read_query(request, offset=_offset).get("offset", 0)
        server, upload_id = server_of(request), path_id(request, "upload")
        async with receive_content(request, min(server.max_body_bytes, MAX_CHUNK_BYTES)) as content:
            upload = await server.engine.uploads.add_chunk(workspace.id, upload_id, offset, content)
        return json_response(write_upload(upload))


class CheckUpload(HTTPEndpoint):
    """Read an uploaded list without loading it."""

    async def post(self, request: Request) -> Response:
        """Return what its columns mean, its numbers, its rejected rows and, given a campaign, its preflight."""
        workspace = await admit(request, "checkUpload")
        server, upload_id = server_of(request), path_id(request, "upload")
        read = partial(_read_request, server, needs_campaign=False)
        wanted, _ = await read_optional_body(request, read, read({}))
        async with _opened(server, workspace, upload_id, wanted) as opened:
            checked = await _checked(server, workspace, wanted, opened)
        return json_response({**_document(opened), **checked})


class RejectsOfUpload(HTTPEndpoint):
    """Read an uploaded list, and return the rows that cannot be loaded."""

    async def post(self, request: Request) -> Response:
        """Return a CSV file of them, each with its number, what is wrong, and its own cells."""
        workspace = await admit(request, "listUploadRejects")
        server, upload_id = server_of(request), path_id(request, "upload")
        read = partial(_read_request, server, needs_campaign=False)
        wanted, _ = await read_optional_body(request, read, read({}))
        return DownloadResponse(
            _rejects(server, workspace, upload_id, wanted),
            name=f"rejects-{upload_id}.csv",
            content_type=EXPORT_CONTENT_TYPES["csv"],
        )


class LoadUpload(HTTPEndpoint):
    """Load an uploaded list into a campaign."""

    async def post(self, request: Request) -> Response:
        """Create a campaign of the list's contacts, without starting it."""
        workspace = await admit(request, "loadUpload")
        server, upload_id = server_of(request), path_id(request, "upload")
        read = partial(_read_request, server, needs_campaign=True)
        wanted, body = await read_body(request, read)
        async with _opened(server, workspace, upload_id, wanted) as opened:
            return await answer_once(
                body,
                "loadUpload",
                lambda key: _load(server, workspace, wanted, opened, key),
                lambda made: {**write_campaign_copy(made, now=server.engine.now()), **_document(opened)},
            )


def _read_request(server: Server, data: Any, *, needs_campaign: bool) -> ListRequest:
    return read_list_request(
        data, this_year=server.engine.now().year, carriers=server.carriers, needs_campaign=needs_campaign
    )


@asynccontextmanager
async def _opened(
    server: Server, workspace: Workspace, upload_id: str, wanted: ListRequest, *, rejects: str | None = None
) -> AsyncIterator[OpenedList]:
    upload = await server.engine.uploads.get(workspace.id, upload_id)
    campaign = wanted.campaign
    templates, expected = ((), ()) if campaign is None else await texts_of(server.engine, workspace.id, campaign)
    options = wanted.reading(
        name=upload.file_name,
        region=wanted.options.get("region") or workspace.default_region,
        templates=templates,
        expected=expected,
        sms=campaign is None or isinstance(campaign, NewSmsCampaign),
        rejects=rejects,
    )
    async with opened_list(server, workspace.id, upload_id, options) as opened:
        yield opened


async def _rejects(server: Server, workspace: Workspace, upload_id: str, wanted: ListRequest) -> AsyncGenerator[bytes]:
    """Yield a CSV file of the rows that cannot be loaded; the whole list is read before the first part."""
    async with spool_directory(server.spool_root) as directory:
        file = directory / "rejects.csv"
        async with _opened(server, workspace, upload_id, wanted, rejects=str(file)) as opened:
            async for _ in opened.chunks():
                pass
        async with await anyio.open_file(file, "rb") as written:
            while part := await written.read(_PART_BYTES):
                yield part


async def _checked(server: Server, workspace: Workspace, wanted: ListRequest, opened: OpenedList) -> dict[str, Any]:
    """Read a list, and return why a load would be refused, its overlaps, and the preflight of its campaign."""
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
            checked["preflight"] = write_preflight(preflight)
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


async def _load(
    server: Server,
    workspace: Workspace,
    wanted: ListRequest,
    opened: OpenedList,
    key: IdempotentRequest[CampaignCreated],
) -> CampaignCreated:
    campaigns = server.engine.campaigns
    assert wanted.campaign is not None  # noqa: S101 - required by the reader
    new = attrs.evolve(wanted.campaign, csv_column_headers=tuple(opened.columns))
    contacts = _sendable(server, workspace, new, opened)
    more: dict[str, Any] = {"leave_out": wanted.leave_out, "idempotency_key": key, "actor": ACTOR}
    try:
        if isinstance(new, NewSmsCampaign):
            return await campaigns.create_sms(workspace.id, new, contacts, **more)
        return await campaigns.create_call(workspace.id, new, contacts, **more)
    except InvalidRequest as error:
        raise in_campaign(in_json_names(error)) if error.details else error from None


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
        raise NothingToLoad(_document(opened)["rows"])


def _document(opened: OpenedList) -> dict[str, Any]:
    assert opened.document is not None  # noqa: S101 - all of it was read
    return opened.document
