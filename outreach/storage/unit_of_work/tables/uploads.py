"""Files that are uploaded in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.core.clock import format_timestamp
from outreach.models.upload import Upload
from outreach.storage.unit_of_work.kinds import UPLOADS
from outreach.storage.unit_of_work.tables.base import IdentifiedTable


class Uploads(IdentifiedTable[Upload]):
    """Uploads and their chunks, which are never cached."""

    def list(self, workspace_id: str) -> Sequence[Upload]:
        """Return a workspace's uploads, expired ones included, oldest first by (created_at, id)."""
        return self._list(UPLOADS, "uploads.list", workspace_id=workspace_id)

    def insert(self, upload: Upload) -> None:
        """Write a new upload."""
        self._rows.insert(UPLOADS, UPLOADS.key_of(upload), upload)

    def add_chunk(self, upload: Upload, start_byte: int, content: bytes) -> None:
        """Write a chunk of an upload that is there."""
        self._rows.execute(
            "uploads.add_chunk",
            workspace_id=upload.workspace_id,
            upload_id=upload.id,
            start_byte=start_byte,
            content=content,
        )

    def chunk(self, workspace_id: str, upload_id: str, start_byte: int) -> bytes | None:
        """Return the chunk that begins at a byte."""
        found = self._rows.query(
            "uploads.chunk", UPLOADS, workspace_id=workspace_id, upload_id=upload_id, start_byte=start_byte
        )
        return bytes(found[0][0]) if found else None

    def sweep(self, now: datetime, *, limit: int) -> int:
        """Delete up to `limit` chunks of expired uploads (`expires_at` at or before now), and such without chunks.

        Returns:
            How many rows were deleted.
        """
        until = format_timestamp(now)
        deleted = self._rows.execute("uploads.sweep_chunks", now=until, limit=limit)
        return deleted + self._rows.execute_on(UPLOADS, "uploads.sweep", now=until, limit=limit)
