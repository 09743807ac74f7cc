"""Files that are uploaded into the database in chunks, so that any process can go on with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import attrs

from outreach.errors import Conflict, InvalidRequest, NotFound
from outreach.ledger.common import record_audit, workspace_of
from outreach.models.base import Page
from outreach.models.fields import Integer, check_value
from outreach.models.upload import MAX_CHUNK_BYTES, MAX_UPLOAD_BYTES, MAX_UPLOADS, MIN_CHUNK_BYTES, NewUpload, Upload
from outreach.models.work import IdempotencyKey
from outreach.services.context import ServiceContext, check_kind
from outreach.services.idempotency import Idempotency
from outreach.services.lists import PageRequest, iterate
from outreach.storage.unit_of_work import Transaction

_KEPT: Final = timedelta(days=1)

_DELETED_AT_ONCE: Final = 16
"""Chunks of one transaction."""


class Uploads:
    """The uploads of workspaces: files that arrive in chunks, and are deleted after a day."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)

    async def create(
        self,
        workspace_id: str,
        new: NewUpload,
        *,
        idempotency_key: IdempotencyKey[Upload] = None,
        actor: str = "library",
    ) -> Upload:
        """Begin an upload; `add_chunk` brings its content.

        Args:
            workspace_id: The workspace.
            new: The file.
            idempotency_key: A name for this upload: for a day, the same key returns the same upload.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A value is invalid, or the key was used with other content.
            Conflict: The workspace has as many uploads as it may have.
            RequestInProgress: The first call with this key is still running.
        """
        check_kind("new", new, NewUpload)
        identifier, now = self._context.ids(), self._context.now()

        def operation(tx: Transaction) -> Upload:
            workspace_of(tx, workspace_id)
            if sum(one.expires_at > now for one in tx.uploads.list(workspace_id)) >= MAX_UPLOADS:
                raise Conflict(
                    f"The workspace has {MAX_UPLOADS} uploads, and may have no more. Delete one, or wait until one is "
                    "gone after its day."
                )
            made = Upload(
                id=identifier,
                workspace_id=workspace_id,
                file_name=new.file_name,
                size_bytes=new.size_bytes,
                received_bytes=0,
                created_at=now,
                expires_at=now + _KEPT,
            )
            tx.uploads.insert(made)
            _record(tx, "create", made, now, actor)
            return made

        return await self._keys.written(
            workspace_id,
            "uploads.create",
            idempotency_key,
            operation,
            content=new,
            find=lambda tx, identifier: _existing(tx, workspace_id, identifier, now),
        )

    async def add_chunk(self, workspace_id: str, upload_id: str, offset: int, content: bytes) -> Upload:
        """Add the next chunk of a file, and return the upload. A chunk that is sent again changes nothing.

        Args:
            workspace_id: The workspace.
            upload_id: The upload.
            offset: Where in the file the chunk begins, in bytes: what the upload's `received_bytes` says.
            content: 64 KiB to 4 MiB; the last chunk may be smaller.

        Raises:
            NotFound: The workspace has no such upload, or it is gone after its day.
            InvalidRequest: The chunk is too small, too large, or ends behind the end of the file.
            Conflict: It does not begin where the chunks before it end, or is another one than what is there.
        """
        check_value("offset", offset, Integer(0, MAX_UPLOAD_BYTES))
        _check_content(content)
        end = offset + len(content)

        def operation(tx: Transaction) -> Upload:
            upload = _existing(tx, workspace_id, upload_id, self._context.now())
            if end > upload.size_bytes:
                raise InvalidRequest.at(
                    "content", f"must end within the file, which has {upload.size_bytes} bytes; it ends at {end}"
                )
            if not content or (len(content) < MIN_CHUNK_BYTES and end < upload.size_bytes):
                raise InvalidRequest.at(
                    "content", f"must have at least {MIN_CHUNK_BYTES} bytes; only the last chunk may be smaller"
                )
            if offset < upload.received_bytes and tx.uploads.chunk(workspace_id, upload_id, offset) == content:
                return upload
            if offset != upload.received_bytes:
                raise Conflict(
                    f"The upload has {upload.received_bytes} bytes; the next chunk begins at offset "
                    f"{upload.received_bytes}, and a chunk that is sent again must be the same as before."
                )
            tx.uploads.add_chunk(upload, offset, content)
            longer = attrs.evolve(upload, received_bytes=end)
            tx.uploads.update(longer)
            return longer

        return await self._context.storage.write_in(workspace_id, operation)

    async def get(self, workspace_id: str, upload_id: str) -> Upload:
        """Return an upload.

        Raises:
            NotFound: The workspace has no such upload, or it is gone after its day.
        """
        return await self._context.storage.read(lambda tx: _existing(tx, workspace_id, upload_id, self._context.now()))

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Upload]:
        """Return a page of a workspace's uploads, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("uploads", workspace_id, after=after, limit=limit)
        now = self._context.now()
        found = await self._context.storage.read(lambda tx: tx.uploads.list(workspace_of(tx, workspace_id).id))
        return page_request.page_of_few([one for one in found if one.expires_at > now])

    def iter_all(self, workspace_id: str) -> AsyncIterator[Upload]:
        """Iterate over a workspace's uploads, oldest first; see `list`."""
        return iterate(partial(self.list, workspace_id))

    async def iter_content(self, workspace_id: str, upload_id: str) -> AsyncIterator[bytes]:
        """Iterate over the content of a whole file, chunk by chunk.

        Raises:
            NotFound: The workspace has no such upload, or it is gone after its day.
            Conflict: It is not complete.
        """
        upload = await self.get(workspace_id, upload_id)
        if not upload.is_complete:
            raise Conflict(
                f"The upload has {upload.received_bytes} of its {upload.size_bytes} bytes. Send the rest first."
            )
        offset = 0
        while offset < upload.size_bytes:
            content = await self._context.storage.read(partial(_chunk, workspace_id, upload_id, offset))
            if content is None:
                raise NotFound("upload", upload_id)
            yield content
            offset += len(content)

    async def remove(self, workspace_id: str, upload_id: str, *, actor: str = "library") -> Upload:
        """Delete an upload before its day is over, and return it.

        Raises:
            NotFound: The workspace has no such upload, or it is gone after its day.
        """
        now = self._context.now()

        def hide(tx: Transaction) -> Upload:
            upload = _existing(tx, workspace_id, upload_id, now)
            tx.uploads.update(attrs.evolve(upload, expires_at=now))
            _record(tx, "remove", upload, now, actor)
            return upload

        upload = await self._context.storage.write_in(workspace_id, hide)
        # Where this is cut off, the sweep of expired uploads goes on.
        while await self._context.storage.write(lambda tx: tx.uploads.sweep(now, limit=_DELETED_AT_ONCE), bulk=True):
            pass
        return upload


def _check_content(content: object) -> None:
    """Check that a chunk is of bytes, and not too large.

    Raises:
        InvalidRequest: It is not.
    """
    if not isinstance(content, bytes):
        raise InvalidRequest.at("content", f"must be bytes, not {type(content).__name__}")
    if len(content) > MAX_CHUNK_BYTES:
        raise InvalidRequest.at("content", f"must have at most {MAX_CHUNK_BYTES} bytes")


def _chunk(workspace_id: str, upload_id: str, offset: int, tx: Transaction) -> bytes | None:
    return tx.uploads.chunk(workspace_id, upload_id, offset)


def _existing(tx: Transaction, workspace_id: str, upload_id: str, now: datetime) -> Upload:
    upload = tx.uploads.get(workspace_id, upload_id)
    if upload is None or upload.expires_at <= now:
        raise NotFound("upload", upload_id)
    return upload


def _record(tx: Transaction, action: str, upload: Upload, now: datetime, actor: str) -> None:
    record_audit(tx, upload.workspace_id, f"upload.{action}", upload.id, actor=actor, now=now)
