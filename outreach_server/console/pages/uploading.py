"""Files of forms, kept as uploads of the workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final

import attrs
from starlette.datastructures import UploadFile

from outreach import InvalidRequest, NotFound
from outreach.errors import Conflict
from outreach.models import MAX_CHUNK_BYTES, NewUpload, Upload
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_views import MomentView, moment_of
from outreach_server.console.sent_again import is_sent_before

_OTHER_FILE: Final = (
    "This form was sent before, and the file that it had then was taken. This one was not. If you want it too, choose "
    "it again and send the form again."
)


@attrs.frozen(kw_only=True)
class ReadingField:
    """A choice of how a file is read.

    Attributes:
        hint: The meaning of an empty value.
    """

    name: str
    label: str
    hint: str


REGION: Final = ReadingField(
    name="region", label="Country of local numbers", hint="Such as US or DE. Empty: that of the workspace."
)
SHEET: Final = ReadingField(name="sheet", label="Sheet of a workbook", hint="Empty: the first one that is not hidden.")


@attrs.frozen(kw_only=True)
class KeptFile:
    """A file that is kept for a day and was not loaded.

    Attributes:
        url: Where it is loaded; empty while not all of it is there.
    """

    id: str
    name: str
    url: str
    at: MomentView


def problem_of(file: UploadFile | None, wanted: str) -> str:
    """Return what is wrong with the file of a form; empty for one with content.

    Args:
        file: The file; None where none was chosen.
        wanted: What is asked for.
    """
    if file is None or not file.filename:
        return wanted
    return "" if file.size else f"This file is empty. {wanted}"


async def kept_file(visit: Visit, file: UploadFile, key: str, *, instead_of: str = "") -> Upload:
    """Keep a file, once for a key.

    Args:
        visit: The request.
        file: The file.
        key: The key of the form.
        instead_of: The id of an upload that is deleted before: a workspace may have few.

    Raises:
        InvalidRequest: It is too large, or another file was sent with the key.
        Conflict: The workspace has as many as it may have.
    """
    uploads, place = visit.engine.uploads, visit.place.id
    if instead_of:
        await discard(visit, instead_of)
    new = NewUpload(file_name=_file_name(file), size_bytes=file.size or 0)
    try:
        upload = await uploads.create(place, new, idempotency_key=key, actor=visit.actor)
    except InvalidRequest as error:
        raise InvalidRequest(_OTHER_FILE) if is_sent_before(error) else error from error
    except NotFound as error:
        # Its contacts were loaded, and it was deleted.
        raise InvalidRequest(_OTHER_FILE) from error
    offset = 0
    while chunk := await file.read(MAX_CHUNK_BYTES):
        try:
            await uploads.add_chunk(place, upload.id, offset, chunk)
        except Conflict as error:
            # Another file of the same name and size.
            raise InvalidRequest(_OTHER_FILE) from error
        offset += len(chunk)
    return upload


async def discard(visit: Visit, upload_id: str) -> None:
    """Delete a file that is kept, if it is still there."""
    with suppress(NotFound):
        await visit.engine.uploads.remove(visit.place.id, upload_id, actor=visit.actor)


async def kept_files(visit: Visit, url_of: Callable[[Upload], str], *, without: str) -> Sequence[KeptFile]:
    """Return the files of the workspace that are kept.

    Args:
        visit: The request.
        url_of: Returns where a whole file is loaded.
        without: The id of an upload that is left out.
    """
    clocks = visit.clocks()
    return [
        KeptFile(
            id=one.id,
            name=one.file_name,
            url=url_of(one) if one.is_complete else "",
            at=moment_of(one.created_at, visit.now, clocks),
        )
        for one in (await visit.engine.uploads.list(visit.place.id)).items
        if one.id != without
    ]


def _file_name(file: UploadFile) -> str:
    """Return the name of a file without its folders: some browsers send the whole path."""
    name = (file.filename or "").replace("\\", "/").replace("\0", "")
    return PurePosixPath(name).name.encode("utf-8", "replace").decode()[-255:] or "list"
