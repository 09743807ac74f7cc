from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from outreach.core.clock import SystemClock
from outreach.errors import DispatchRefused
from outreach.models.work import HighWaterMark
from outreach.storage.sqlite import SqliteStorage, lock
from outreach.storage.sqlite.lock import Mount, SqliteDispatchLock, file_system_of, host_id
from outreach.testing.builders import NOW

HOLDER = """
import sys, time
from pathlib import Path
from outreach.storage.sqlite.lock import SqliteDispatchLock
lock = SqliteDispatchLock(Path(sys.argv[1]))
print(lock.take(), flush=True)
sys.stdin.read()
"""


def test_one_holds_it_and_the_other_does_not(database: Path) -> None:
    """Two storages of one process on one file exclude each other, like two processes."""
    first, second = SqliteDispatchLock(database), SqliteDispatchLock(database)
    assert first.take()
    assert not second.take()
    assert not first.take()
    first.give_back()
    assert second.take()
    assert not first.take()
    second.give_back()


def test_one_release_gives_it_back_however_often_it_was_asked_for(database: Path) -> None:
    """Asking is no counting, and neither is giving back."""
    first, second = SqliteDispatchLock(database), SqliteDispatchLock(database)
    assert first.take()
    assert not first.take()
    first.give_back()
    first.give_back()
    assert second.take()
    second.give_back()
    second.give_back()


def test_there_are_as_many_places_as_allowed(database: Path) -> None:
    """Each process takes the lowest that is free, and sees whose holder is gone."""
    first, second = SqliteDispatchLock(database, workers=2), SqliteDispatchLock(database, workers=2)
    alone = SqliteDispatchLock(database)
    assert (first.take(), second.take(), first.take(), alone.take()) == (1, 2, 0, 0)
    assert [second.is_free(place) for place in (1, 2, 3)] == [False, False, True]
    first.give_back(1)
    assert second.is_free(1)
    assert (second.take(), first.take()) == (1, 0)
    second.give_back()
    assert (alone.take(), first.is_free(2)) == (1, True)
    alone.give_back()


def test_a_database_that_another_worker_has_open_needs_no_check(database: Path) -> None:
    """It has checked it; after all of them have been killed the next one does."""
    first, second = SqliteDispatchLock(database, workers=2), SqliteDispatchLock(database, workers=2)
    assert first.take()
    first.record_high_water(HighWaterMark(database="one", epoch=1, change=0))
    assert not second.ended_uncleanly()
    first.give_back()
    assert second.ended_uncleanly()


def test_one_file_under_two_names_is_one_database(database: Path) -> None:
    """A symbolic link is no way around the lock."""
    database.touch()
    link = database.with_name("link.db")
    link.symlink_to(database)
    first, second = SqliteDispatchLock(database), SqliteDispatchLock(link)
    assert first.home() == second.home()
    assert first.take()
    assert not second.take()
    first.give_back()


def test_a_killed_process_holds_nothing(database: Path) -> None:
    """The lock goes with the process, whatever ends it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        own = SqliteDispatchLock(database)
        assert not own.take()
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert own.take()
    own.give_back()


@pytest.mark.anyio
async def test_closing_the_storage_gives_it_back(database: Path) -> None:
    """Also when nobody thought of it."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        assert storage.lock.take()
    other = SqliteDispatchLock(database)
    assert other.take()
    other.give_back()


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "afs", "glusterfs"])
def test_a_network_file_system_is_refused(database: Path, kind: str) -> None:
    """Two machines could dispatch at once; nothing is written."""
    refused = SqliteDispatchLock(database, mounts=lambda: [Mount("/", "ext4"), Mount(str(database.parent), kind)])
    with pytest.raises(DispatchRefused, match=f"network file system \\({kind}\\)"):
        refused.take()
    assert os.listdir(database.parent) == []


def test_a_local_disk_below_a_network_file_system_is_none(database: Path) -> None:
    """The deepest mount decides, and of two on one place the later one, which covers the earlier."""
    mounts = [Mount("/", "nfs"), Mount(str(database.parent), "nfs"), Mount(str(database.parent), "ext4")]
    local = SqliteDispatchLock(database, mounts=lambda: mounts)
    assert local.take()
    local.give_back()


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/data/x.db", "ext4"), ("/database/x.db", "nfs"), ("/data/far/x.db", "cifs"), ("/x.db", "nfs")],
)
def test_mounts_are_matched_by_whole_names(path: str, kind: str) -> None:
    """`/database` is not below `/data`."""
    mounts = [Mount("/data/far", "cifs"), Mount("/", "nfs"), Mount("/data", "ext4")]
    assert file_system_of(Path(path), mounts) == kind


def test_no_mount_at_all_is_no_reason_to_refuse(database: Path) -> None:
    """Where the system tells nothing, as in some sandboxes, the lock decides."""
    alone = SqliteDispatchLock(database, mounts=list)
    assert file_system_of(database, []) is None
    assert alone.take()
    alone.give_back()


def test_this_machine_names_its_mounts(tmp_path: Path) -> None:
    """The real list has an entry that a real path lies below."""
    assert file_system_of(tmp_path.resolve(), lock.system_mounts()) is not None


def test_a_lock_that_cannot_be_made_is_a_refusal(database: Path) -> None:
    """The message says what has to be different."""
    Path(f"{database}.dispatch").mkdir()
    with pytest.raises(DispatchRefused, match=r"dispatch lock .* cannot be taken"):
        SqliteDispatchLock(database).take()


def test_nothing_is_noted_at_first(database: Path) -> None:
    """No note is no high water."""
    assert SqliteDispatchLock(database).high_water() is None


def test_the_note_is_what_was_written_last(database: Path) -> None:
    """Also for another process, and only its owner may read it."""
    SqliteDispatchLock(database).record_high_water(HighWaterMark(database="one", epoch=3, change=40))
    mark = HighWaterMark(database="one", epoch=4, change=2**62)
    SqliteDispatchLock(database).record_high_water(mark)
    assert SqliteDispatchLock(database).high_water() == mark
    note = Path(f"{database}.dispatch-note")
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert os.listdir(database.parent) == [note.name]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\x00",
        b"[]",
        b"7",
        b"null",
        b"{}",
        b'{"database": "one", "epoch": 1}',
        b'{"database": "one", "epoch": "1", "change": 2}',
        b'{"database": "one", "epoch": true, "change": 2}',
        b'{"database": 1, "epoch": 1, "change": 2}',
        b'{"database": "one", "epoch": 1, "change": 2, "renewed_at": 7}',
        b'{"database": "one", "epoch": 1, "change": 2, "renewed_at": "2026-11-20T16:10:25"}',
        b"[" * 100_000,
    ],
)
def test_a_note_that_was_torn_is_none(database: Path, content: bytes) -> None:
    """Garbage is no reason to stop, and is written over."""
    Path(f"{database}.dispatch-note").write_bytes(content)
    own = SqliteDispatchLock(database)
    assert own.high_water() is None
    mark = HighWaterMark(database="one", epoch=1, change=2, renewed_at=NOW)
    own.record_high_water(mark)
    assert own.high_water() == mark


def test_a_note_of_an_earlier_version_does_not_say_when(database: Path) -> None:
    """It still tells epochs and changes."""
    Path(f"{database}.dispatch-note").write_bytes(b'{"database": "one", "epoch": 1, "change": 2}')
    assert SqliteDispatchLock(database).high_water() == HighWaterMark(database="one", epoch=1, change=2)


def test_a_second_note_shows_a_directory_that_was_set_back(database: Path, tmp_path: Path) -> None:
    """The further of the two counts; that of another database says nothing."""
    state = tmp_path / "state"
    state.mkdir()
    own, old = SqliteDispatchLock(database, state_dir=state), SqliteDispatchLock(database)
    before = HighWaterMark(database="one", epoch=3, change=40)
    after = HighWaterMark(database="one", epoch=3, change=41)
    own.record_high_water(before)
    own.record_high_water(after)
    old.record_high_water(before)
    assert (own.high_water(), old.high_water()) == (after, before)
    further = HighWaterMark(database="one", epoch=4, change=41)
    old.record_high_water(further)
    assert own.high_water() == further
    other = HighWaterMark(database="two", epoch=1, change=1)
    old.record_high_water(other)
    assert own.high_water() == other
    Path(f"{database}.dispatch-note").unlink()
    assert own.high_water() == after
    (kept,) = state.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_state_directory_that_is_that_of_the_database_has_no_second_note(database: Path) -> None:
    """It would be set back with the first one."""
    mark = HighWaterMark(database="one", epoch=3, change=40)
    SqliteDispatchLock(database, state_dir=database.parent).record_high_water(mark)
    assert os.listdir(database.parent) == [f"{database.name}.dispatch-note"]


def test_a_second_note_that_cannot_be_written_is_a_refusal(database: Path, tmp_path: Path) -> None:
    """As the first one."""
    own = SqliteDispatchLock(database, state_dir=tmp_path / "missing")
    with pytest.raises(DispatchRefused, match="The state directory must be writable"):
        own.record_high_water(HighWaterMark(database="one", epoch=1, change=2))


def test_a_note_that_cannot_be_written_is_a_refusal(database: Path) -> None:
    """Dispatching without it would not notice an older copy."""
    Path(f"{database}.dispatch-note").mkdir()
    with pytest.raises(DispatchRefused, match=r"high-water mark .* cannot be written"):
        SqliteDispatchLock(database).record_high_water(HighWaterMark(database="one", epoch=1, change=2))


def test_home_is_this_machine_and_the_whole_path(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the file is named."""
    monkeypatch.chdir(database.parent)
    assert SqliteDispatchLock(Path(database.name)).home() == SqliteDispatchLock(database).home()
    assert SqliteDispatchLock(database).home().path == str(database.resolve())


def test_the_host_is_stable_and_tells_machines_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's identifier counts, and its name; where there is no identifier, the network card's."""
    assert host_id() == host_id()
    machine = tmp_path / "machine-id"
    monkeypatch.setattr(lock, "_MACHINE_ID", machine)
    seen = {host_id()}
    monkeypatch.setattr(uuid, "getnode", lambda: 0x0242AC110002)
    seen.add(host_id())
    monkeypatch.setattr(uuid, "getnode", lambda: 0x0342AC110002)
    made_up = host_id()
    monkeypatch.setattr(uuid, "getnode", lambda: 0x0342AC110003)
    assert host_id() == made_up, "a number that was made up says nothing"
    machine.write_text("0123456789abcdef\n")
    seen.add(host_id())
    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    seen.add(host_id())
    assert len({*seen, made_up}) >= 4
