"""How the one file unpacks itself and becomes the program; `make binary-check` tries the real one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

LAUNCHER: Final = Path(__file__).resolve().parents[2] / ".ci" / "binary" / "one_file.py"
LARGE: Final = 3_000_000
NAMED: Final = "outreach-server"
PROGRAM: Final = """\
#!/bin/sh
echo "$$ $OUTREACH_ONE_FILE $*"
test "$1" != wait || exec sleep 1000
exit 7
"""


def load() -> ModuleType:
    """Load the module that writes the file."""
    found = importlib.util.spec_from_file_location("one_file", LAUNCHER)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


one_file: Final = load()
pytestmark = pytest.mark.skipif(not one_file.can_compile(), reason="no compiler of C with zlib here")
_ALONE: Final = ("unshare", "--user", "--map-root-user", "--mount")
needs_mounts: Final = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*_ALONE, "mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True, check=False).returncode != 0,
    reason="this machine lets nobody mount a file system",
)


def write(place: Path, *, version: str = "1", **told: int) -> Path:
    """Write the file of a program that says its process, and return it."""
    source = place / f"source-{version}"
    deep = source / "_internal" / ("a" * 60) / ("b" * 60)
    deep.mkdir(parents=True, exist_ok=True)
    (deep / "large").write_bytes(b"x" * LARGE)
    (deep / "version").write_text(version)
    (source / "_internal" / "empty").touch()
    if not (source / "_internal" / "link").is_symlink():
        (source / "_internal" / "link").symlink_to("empty")
    (source / NAMED).write_text(PROGRAM)
    (source / NAMED).chmod(0o755)
    target = place / f"file-{version}"
    one_file.write(source, target, **told)
    return target


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Where it unpacks itself."""
    return tmp_path / "cache" / NAMED


def variables(place: Path) -> dict[str, str]:
    """Return the environment of a start."""
    (place / "tmp").mkdir(exist_ok=True)
    return {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(place / "cache"), "TMPDIR": str(place / "tmp")}


def start(file: Path, *before: str) -> subprocess.CompletedProcess[str]:
    """Start it, and wait for its end."""
    return subprocess.run(
        [*before, file, "one", "two"], env=variables(file.parent), capture_output=True, text=True, check=False
    )


@contextmanager
def running(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Let it run, as the process that was started, until the block ends."""
    with subprocess.Popen([file, "wait"], env=variables(file.parent), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().split()[0] == str(process.pid)
            yield process
        finally:
            process.kill()


def left(place: Path) -> set[str]:
    """Return the files below the places where it may unpack itself."""
    return {path.name for name in ("cache", "tmp") for path in (place / name).rglob("*") if path.is_file()}


def test_it_unpacks_itself_once_and_becomes_the_program(tmp_path: Path, cache: Path) -> None:
    """Its process, arguments and exit status are the program's, which finds all of its files."""
    file = write(tmp_path)
    with running(file):
        (program,) = cache.iterdir()
    begun = program.stat().st_ctime_ns
    assert program.stat().st_mode & 0o777 == 0o700
    source = tmp_path / "source-1"
    assert {path.relative_to(program) for path in program.rglob("*")} == {
        path.relative_to(source) for path in source.rglob("*")
    }
    assert (program / "_internal" / "link").readlink() == Path("empty")
    assert next(program.rglob("large")).stat().st_size == LARGE
    done = start(file)
    _, own, *words = done.stdout.split()
    assert (done.returncode, own, words) == (7, str(file), ["one", "two"])
    assert program.stat().st_ctime_ns == begun
    assert not any((tmp_path / "tmp").iterdir())


def test_starts_at_the_same_time_unpack_one_copy(tmp_path: Path, cache: Path) -> None:
    """The others wait for it."""
    file = write(tmp_path)
    starts = [subprocess.Popen([file], env=variables(tmp_path), stdout=subprocess.DEVNULL) for _ in range(8)]
    assert [one.wait() for one in starts] == [7] * 8
    assert len(list(cache.iterdir())) == 1


def test_too_little_space_is_said_in_words_before_anything_is_written(tmp_path: Path, cache: Path) -> None:
    """With every place that was tried, what is free there, and what to do."""
    done = start(write(tmp_path, SPACE=10**18))
    assert done.returncode == 1
    for place in (cache, tmp_path / "tmp" / f"{NAMED}-{os.geteuid()}"):
        assert f"  {place}: no space: " in done.stderr
    assert " MB and " in done.stderr
    assert "Make room there, name another directory by the variable XDG_CACHE_HOME" in done.stderr
    assert left(tmp_path) == set()
    assert not cache.exists()


@needs_mounts
def test_a_disk_that_fills_while_it_unpacks_is_left_as_it_was(tmp_path: Path, cache: Path) -> None:
    """Another program took the space after it was found to be free."""
    file = write(tmp_path, SPACE=1)
    for name in ("cache", "tmp"):
        (tmp_path / name).mkdir()
    script = (
        'cd "$1"; for d in cache tmp; do mount -t tmpfs -o size=1m,mode=700 x $d; done; ./file-1; echo $?; '
        "find cache tmp -type f; df --output=used -k cache tmp"
    )
    done = start(file, *_ALONE, "sh", "-c", script, "sh", str(tmp_path))
    assert done.stdout.split() == ["1", "Used", "0", "0"]
    assert f"  {cache}: no space: " in done.stderr


@needs_mounts
def test_where_nothing_may_be_executed_it_takes_the_next_place(tmp_path: Path) -> None:
    """And says so where there is none."""
    file = write(tmp_path)
    for name in ("cache", "tmp"):
        (tmp_path / name).mkdir()
    script = 'cd "$1"; for d in $2; do mount -t tmpfs -o noexec,mode=700 x $d; done; ./file-1; echo $?; ls tmp'
    taken = start(file, *_ALONE, "sh", "-c", script, "sh", str(tmp_path), "cache")
    assert taken.stdout.split()[-2:] == ["7", f"{NAMED}-0"]
    refused = start(file, *_ALONE, "sh", "-c", script, "sh", str(tmp_path), "cache tmp")
    assert refused.stdout.split()[0] == "1"
    assert refused.stderr.count("mounted with noexec") == 2


def test_a_directory_that_others_can_write_is_not_used(tmp_path: Path, cache: Path) -> None:
    """They could put another program there."""
    file = write(tmp_path)
    for place in (cache, tmp_path / "tmp" / f"{NAMED}-{os.geteuid()}"):
        place.mkdir(parents=True)
        place.chmod(0o777)
    done = start(file)
    assert done.returncode == 1
    assert done.stderr.count("others can write there") == 2
    assert left(tmp_path) == set()


def test_what_a_killed_start_has_left_goes_with_the_next(tmp_path: Path, cache: Path) -> None:
    """It lies under one name, so that it does not add up."""
    (cache / "unfinished").mkdir(parents=True)
    cache.chmod(0o700)
    (cache / "unfinished" / "half").write_bytes(b"x")
    assert start(write(tmp_path)).returncode == 7
    assert "half" not in left(tmp_path)
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", ["deleted", "emptied"])
def test_a_copy_that_lost_files_is_replaced(tmp_path: Path, cache: Path, damage: str) -> None:
    """What cleans directories up deletes old files one by one, and a power cut leaves them empty."""
    file = write(tmp_path)
    assert start(file).returncode == 7
    lost = next(cache.rglob("large"))
    if damage == "deleted":
        lost.unlink()
    else:
        lost.write_bytes(b"")
    assert start(file).returncode == 7
    assert next(cache.rglob("large")).stat().st_size == LARGE
    assert len(list(cache.iterdir())) == 1


def test_other_versions_go_unless_they_run(tmp_path: Path, cache: Path) -> None:
    """Also after the one that runs was killed."""
    first, second, third = (write(tmp_path, version=version) for version in "123")
    with running(first) as process:
        assert start(second).returncode == 7
        assert {path.read_text() for path in cache.rglob("version")} == {"1", "2"}
        process.kill()
        process.wait()
    assert start(third).returncode == 7
    assert {path.read_text() for path in cache.rglob("version")} == {"3"}


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_file_says_so(tmp_path: Path, damage: str) -> None:
    """A copy that was cut off, or has another byte in its archive."""
    file = write(tmp_path)
    content = bytearray(file.read_bytes())
    if damage == "cut":
        del content[-100:]
    else:
        content[-50] ^= 1
    file.write_bytes(content)
    done = start(file)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: this file is damaged or cut off. Copy it again.\n"
    assert left(tmp_path) == set()


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    """Whatever times its files have, and where it lies."""
    first = write(tmp_path).read_bytes()
    os.utime(tmp_path / "source-1" / NAMED, (0, 0))
    (tmp_path / "other").mkdir()
    assert write(tmp_path / "other").read_bytes() == first
