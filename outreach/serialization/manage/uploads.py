"""Uploads of files."""

from __future__ import annotations

from typing import Any, Final

from outreach.models.upload import NewUpload, Upload
from outreach.serialization.documents import document_of
from outreach.serialization.field_rules import make_request_converter, read_object

_read_upload: Final = make_request_converter(NewUpload, closed="an upload")


def read_new_upload(data: Any) -> NewUpload:
    """Return the upload of a body of POST /manage/uploads.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_upload, data)


def write_upload(upload: Upload) -> dict[str, Any]:
    """Return an upload."""
    return {**document_of(upload, "workspace_id"), "is_complete": upload.is_complete}
