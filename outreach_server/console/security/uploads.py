"""Forms with a file: bounded, and kept in a temporary file until the request has been answered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from outreach.models import MAX_UPLOAD_BYTES
from outreach_server.console.security.forms import IDLE_SECONDS, MAX_FIELDS, MAX_FORM_BYTES, read_form

MAX_FILE_FORM_BYTES: Final = MAX_UPLOAD_BYTES + MAX_FORM_BYTES

_WITH_FILE: Final = "multipart/form-data"


def may_have_file(request: Request) -> bool:
    """Return whether a form may have a file, and so be large."""
    return request.headers.get("content-type", "").lower().startswith(_WITH_FILE)


@asynccontextmanager
async def received_form(request: Request) -> AsyncIterator[tuple[Mapping[str, str], UploadFile | None]]:
    """Provide the fields of a form, the first of each name, and its file; the file is deleted at the end.

    Raises:
        HTTPException: It is too large, too slow, or no form.
    """
    if not may_have_file(request):
        yield await read_form(request), None
        return
    received = 0

    async def receive() -> Message:
        nonlocal received
        try:
            with anyio.fail_after(IDLE_SECONDS):
                message = await request.receive()
        except TimeoutError:
            raise HTTPException(408) from None
        received += len(message.get("body", b""))
        if received > MAX_FILE_FORM_BYTES:
            raise HTTPException(413)
        return message

    bounded = Request(request.scope, receive)
    try:
        form = await bounded.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MAX_FORM_BYTES)
    except UnicodeError:
        # By a charset that a request names.
        raise HTTPException(400) from None
    try:
        fields: dict[str, str] = {}
        file: UploadFile | None = None
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                file = value
            else:
                fields.setdefault(name, value)
        yield fields, file
    finally:
        await form.close()
