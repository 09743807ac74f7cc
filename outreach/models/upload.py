"""Files that clients upload in chunks, such as lists of contacts."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import attrs

from outreach.models.fields import Checked, bounded, sized

MAX_UPLOAD_BYTES: Final = 200_000_000
MIN_CHUNK_BYTES: Final = 64 * 1024
"""The smallest chunk but the last one: it bounds the rows of an upload."""

MAX_CHUNK_BYTES: Final = 4 * 1024 * 1024
MAX_UPLOADS: Final = 10
"""Uploads that a workspace may have at a time."""


@attrs.frozen(kw_only=True)
class NewUpload(Checked):
    """A file to upload.

    Attributes:
        file_name: Its name, for people and in messages.
        size_bytes: How long it is.
    """

    file_name: str = sized(1, 255)
    size_bytes: int = bounded(1, MAX_UPLOAD_BYTES)


@attrs.frozen(kw_only=True)
class Upload:
    """A file that is uploaded, or was.

    Attributes:
        size_bytes: How long it is.
        received_bytes: How much of it is there: the offset of the next chunk.
        expires_at: When it is deleted.
    """

    id: str
    workspace_id: str
    file_name: str
    size_bytes: int
    received_bytes: int
    created_at: datetime
    expires_at: datetime

    @property
    def is_complete(self) -> bool:
        """Whether all of it is there."""
        return self.received_bytes == self.size_bytes
