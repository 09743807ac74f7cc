"""/manage/uploads: lists of contacts that are uploaded in chunks, checked, and loaded into campaigns."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import (
    EXPORT_CONTENT_TYPES,
    document_of,
    read_new_upload,
    write_campaign_copy,
    write_upload,
)
from outreach.models import MAX_CHUNK_BYTES, MAX_UPLOAD_BYTES
from outreach_server.auth import authenticate_request
from outreach_server.bodies.body import receive_content
from outreach_server.bodies.query import read_query, whole, words
from outreach_server.context import Server, server_of
from outreach_server.disconnects import while_client_waits
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
from outreach_server.errors import answer_once, json_response
from outreach_server.lists.loading import add_list, check_upload, document_of_list, load_list, opened_for, rejected_rows
from outreach_server.lists.requests import ListRequest, read_list_request

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
        read = partial(_read_request, server)
        wanted, _ = await read_optional_body(request, read, read({}))
        return json_response(await while_client_waits(request, check_upload(server, workspace, upload_id, wanted)))


class RejectsOfUpload(HTTPEndpoint):
    """Read an uploaded list, and return the rows that cannot be loaded."""

    async def post(self, request: Request) -> Response:
        """Return a CSV file of them, each with its number, what is wrong, and its own cells."""
        workspace = await admit(request, "listUploadRejects")
        server, upload_id = server_of(request), path_id(request, "upload")
        read = partial(_read_request, server)
        wanted, _ = await read_optional_body(request, read, read({}))
        upload = await server.engine.uploads.get(workspace.id, upload_id)
        return DownloadResponse(
            rejected_rows(server, workspace, upload.id, wanted, actor=ACTOR),
            name=f"rejects-{upload.id}.csv",
            content_type=EXPORT_CONTENT_TYPES["csv"],
        )


class LoadUpload(HTTPEndpoint):
    """Load an uploaded list into a campaign."""

    async def post(self, request: Request) -> Response:
        """Create a campaign of the list's contacts, without starting it."""
        workspace = await admit(request, "loadUpload")
        server, upload_id = server_of(request), path_id(request, "upload")
        read = partial(_read_request, server, needs="campaign")
        wanted, body = await read_body(request, read)
        async with opened_for(server, workspace, upload_id, wanted) as opened:
            return await answer_once(
                body,
                "loadUpload",
                lambda key: load_list(server, workspace, wanted, opened, key, actor=ACTOR),
                lambda made: {**write_campaign_copy(made, now=server.engine.now()), **document_of_list(opened)},
            )


class AddUpload(HTTPEndpoint):
    """Add an uploaded list to a campaign."""

    async def post(self, request: Request) -> Response:
        """Add the list's contacts to a campaign that has not ended."""
        workspace = await admit(request, "addUpload")
        server, upload_id = server_of(request), path_id(request, "upload")
        wanted, body = await read_body(request, partial(_read_request, server, needs="campaign_id"))
        async with opened_for(server, workspace, upload_id, wanted) as opened:
            return await answer_once(
                body,
                "addUpload",
                lambda key: add_list(server, workspace, wanted, opened, key, actor=ACTOR),
                lambda added: {**document_of(added), **document_of_list(opened)},
            )


def _read_request(server: Server, data: Any, *, needs: str | None = None) -> ListRequest:
    return read_list_request(data, this_year=server.engine.now().year, carriers=server.carriers, needs=needs)
