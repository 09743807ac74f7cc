"""Uploads: files in chunks, of one workspace, gone after a day."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from outreach import Conflict, InvalidRequest, NewWorkspace, NotFound, Outreach
from outreach.models import NewUpload, Upload
from outreach.models.upload import MAX_CHUNK_BYTES, MAX_UPLOADS, MIN_CHUNK_BYTES
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE

pytestmark = pytest.mark.virtual_time

CHUNK = b"a" * MIN_CHUNK_BYTES
REST = b"the end"
SIZE = len(CHUNK) + len(REST)


async def _workspace(engine: Outreach) -> str:
    return (await engine.workspaces.create(NewWorkspace(name="Acme"))).id


async def _begun(engine: Outreach, workspace_id: str) -> Upload:
    return await engine.uploads.create(workspace_id, NewUpload(file_name="list.csv", size_bytes=SIZE))


async def _content(engine: Outreach, workspace_id: str, upload_id: str) -> bytes:
    return b"".join([content async for content in engine.uploads.iter_content(workspace_id, upload_id)])


async def test_a_file_arrives_in_chunks_each_counted_once(engine: Outreach) -> None:
    """A chunk that is sent again changes nothing, whenever it comes."""
    workspace_id = await _workspace(engine)
    upload = await _begun(engine, workspace_id)
    for _ in range(2):
        found = await engine.uploads.add_chunk(workspace_id, upload.id, 0, CHUNK)
        assert (found.received_bytes, found.is_complete) == (len(CHUNK), False)
    with pytest.raises(Conflict, match=f"has {len(CHUNK)} of its {SIZE} bytes"):
        await _content(engine, workspace_id, upload.id)
    for offset, content in ((len(CHUNK), REST), (0, CHUNK), (len(CHUNK), REST)):
        found = await engine.uploads.add_chunk(workspace_id, upload.id, offset, content)
        assert found.is_complete
    assert await _content(engine, workspace_id, upload.id) == CHUNK + REST
    assert list(await engine.uploads.list(workspace_id)) == [await engine.uploads.get(workspace_id, upload.id)]


async def test_the_same_chunk_from_two_senders_counts_once(engine: Outreach) -> None:
    """Whichever comes first."""
    workspace_id = await _workspace(engine)
    upload = await _begun(engine, workspace_id)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(engine.uploads.add_chunk, workspace_id, upload.id, 0, CHUNK)
    assert (await engine.uploads.get(workspace_id, upload.id)).received_bytes == len(CHUNK)


@pytest.mark.parametrize(
    ("offset", "content", "problem"),
    [
        (1, CHUNK, "begins at offset 65536"),
        (0, b"b" * MIN_CHUNK_BYTES, "the same as before"),
        (0, CHUNK + REST, "the same as before"),
        (SIZE - 1, REST[:1], "begins at offset 65536"),
    ],
)
async def test_a_chunk_begins_where_the_ones_before_end(
    engine: Outreach, offset: int, content: bytes, problem: str
) -> None:
    """The error says where, and what is there stays."""
    workspace_id = await _workspace(engine)
    upload = await _begun(engine, workspace_id)
    await engine.uploads.add_chunk(workspace_id, upload.id, 0, CHUNK)
    with pytest.raises(Conflict, match=problem):
        await engine.uploads.add_chunk(workspace_id, upload.id, offset, content)
    await engine.uploads.add_chunk(workspace_id, upload.id, len(CHUNK), REST)
    assert await _content(engine, workspace_id, upload.id) == CHUNK + REST


@pytest.mark.parametrize(
    ("offset", "content", "problem"),
    [
        (0, b"a" * (MIN_CHUNK_BYTES - 1), "at least 65536 bytes"),
        (0, b"", "at least"),
        (0, b"a" * (SIZE + 1), "end within the file"),
        (0, b"a" * (MAX_CHUNK_BYTES + 1), "at most"),
        (-1, CHUNK, "offset"),
        (0, "text", "must be bytes"),
    ],
)
async def test_chunks_have_bounds(engine: Outreach, offset: int, content: bytes, problem: str) -> None:
    """So that an upload has few rows, and no row is large."""
    workspace_id = await _workspace(engine)
    upload = await _begun(engine, workspace_id)
    with pytest.raises(InvalidRequest, match=problem):
        await engine.uploads.add_chunk(workspace_id, upload.id, offset, content)
    assert (await engine.uploads.get(workspace_id, upload.id)).received_bytes == 0


async def test_a_file_has_at_most_200_megabytes(engine: Outreach) -> None:
    """What is larger is refused before it is sent."""
    for size in (0, 200_000_001):
        with pytest.raises(InvalidRequest, match="size_bytes"):
            NewUpload(file_name="list.csv", size_bytes=size)


async def test_a_workspace_has_few_uploads_at_a_time(engine: Outreach) -> None:
    """Another one has its own; one that is deleted, or is over, makes room."""
    workspace_id, other = await _workspace(engine), await _workspace(engine)
    uploads = [await _begun(engine, workspace_id) for _ in range(MAX_UPLOADS)]
    with pytest.raises(Conflict, match="has 10 uploads"):
        await _begun(engine, workspace_id)
    await _begun(engine, other)
    await engine.uploads.remove(workspace_id, uploads[3].id)
    await _begun(engine, workspace_id)
    with pytest.raises(Conflict):
        await _begun(engine, workspace_id)
    await anyio.sleep(timedelta(days=1).total_seconds() + 1)
    await _begun(engine, workspace_id)
    assert len(await engine.uploads.list(workspace_id)) == 1


async def test_a_key_begins_an_upload_once(engine: Outreach) -> None:
    """So a client can try again."""
    workspace_id = await _workspace(engine)
    new = NewUpload(file_name="list.csv", size_bytes=1)
    first = await engine.uploads.create(workspace_id, new, idempotency_key="it")
    assert await engine.uploads.create(workspace_id, new, idempotency_key="it") == first
    assert len(await engine.uploads.list(workspace_id)) == 1


async def test_an_upload_is_of_one_workspace(engine: Outreach) -> None:
    """For others it is not there."""
    workspace_id, other = await _workspace(engine), await _workspace(engine)
    upload = await _begun(engine, workspace_id)
    await engine.uploads.add_chunk(workspace_id, upload.id, 0, CHUNK)
    with pytest.raises(NotFound):
        await engine.uploads.get(other, upload.id)
    with pytest.raises(NotFound):
        await engine.uploads.add_chunk(other, upload.id, len(CHUNK), REST)
    with pytest.raises(NotFound):
        await engine.uploads.remove(other, upload.id)
    with pytest.raises(NotFound):
        await _content(engine, other, upload.id)
    assert list(await engine.uploads.list(other)) == []
    assert [one.id async for one in engine.uploads.iter_all(workspace_id)] == [upload.id]


async def test_an_upload_is_gone_after_a_day(engine: Outreach) -> None:
    """At the second, though its rows are deleted later."""
    workspace_id = await _workspace(engine)
    upload = await _begun(engine, workspace_id)
    await anyio.sleep((upload.expires_at - engine.now()).total_seconds() - 1)
    await engine.uploads.add_chunk(workspace_id, upload.id, 0, CHUNK)
    await anyio.sleep(1)
    with pytest.raises(NotFound):
        await engine.uploads.get(workspace_id, upload.id)
    with pytest.raises(NotFound):
        await engine.uploads.add_chunk(workspace_id, upload.id, len(CHUNK), REST)


async def test_a_removed_upload_leaves_no_rows(engine: Outreach) -> None:
    """However many chunks it has; the audit names it."""
    workspace_id = await _workspace(engine)
    new = NewUpload(file_name="list.csv", size_bytes=MIN_CHUNK_BYTES * 40)
    upload, kept = await engine.uploads.create(workspace_id, new), await _begun(engine, workspace_id)
    await engine.uploads.add_chunk(workspace_id, kept.id, 0, CHUNK)
    for number in range(40):
        await engine.uploads.add_chunk(workspace_id, upload.id, number * MIN_CHUNK_BYTES, CHUNK)
    await engine.uploads.remove(workspace_id, upload.id)
    storage = engine._storage
    chunk = await storage.read(lambda tx: tx.uploads.chunk(workspace_id, upload.id, 39 * MIN_CHUNK_BYTES))
    assert chunk is None
    assert await storage.read(lambda tx: tx.uploads.get(workspace_id, upload.id)) is None
    assert await storage.read(lambda tx: tx.uploads.chunk(workspace_id, kept.id, 0)) == CHUNK
    actions = [entry.action for entry in await engine.audit.list(workspace_id)]
    assert actions.count("upload.remove") == 1


async def test_the_sweep_deletes_in_slices(storage: Storage) -> None:
    """Expired ones of all workspaces, and no others; an upload goes after its last chunk."""
    for workspace_id in (THIS_WORKSPACE, OTHER_WORKSPACE):
        for number, expires_at in enumerate((NOW, NOW + timedelta(seconds=1))):
            upload = Upload(
                id=f"u{number}",
                workspace_id=workspace_id,
                file_name="list.csv",
                size_bytes=2,
                received_bytes=2,
                created_at=NOW - timedelta(days=1),
                expires_at=expires_at,
            )
            await storage.write(lambda tx, upload=upload: tx.uploads.insert(upload))  # type: ignore[misc]
            for start in range(2):
                await storage.write(
                    lambda tx, upload=upload, start=start: tx.uploads.add_chunk(upload, start, b"a")  # type: ignore[misc]
                )
    assert [await storage.write(lambda tx: tx.uploads.sweep(NOW, limit=3)) for _ in range(4)] == [4, 2, 0, 0]
    for workspace_id in (THIS_WORKSPACE, OTHER_WORKSPACE):
        found = await storage.read(lambda tx, owner=workspace_id: tx.uploads.list(owner))  # type: ignore[misc]
        assert [one.id for one in found] == ["u1"]
        assert await storage.read(lambda tx, owner=workspace_id: tx.uploads.chunk(owner, "u1", 1)) == b"a"  # type: ignore[misc]
