"""A log that nobody reads: what logs goes on, and the log says what it has lost."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from outreach_server.monitoring.log_context import REQUEST_ID
from outreach_server.monitoring.log_lines import JsonFormatter
from outreach_server.monitoring.log_queue import LogQueue
from tests.logged import BODY, NUMBER, SECRETS

ROOT = Path(__file__).resolve().parents[2]


class Pipe:
    """A pipe with a log at its one end, and somebody who reads when he is told to at the other."""

    def __init__(self, **settings: float) -> None:
        self.reader, self.writer = os.pipe()
        self.queue = LogQueue(self.writer, **settings)  # type: ignore[arg-type]
        self.queue.setFormatter(JsonFormatter())
        self.log = logging.Logger("outreach.test")
        self.log.addHandler(self.queue)

    def fill(self) -> int:
        """Fill the pipe, so that nothing more goes into it; return with how many bytes."""
        return fill(self.writer)

    def read(self, size: int) -> bytes:
        """Read so many bytes."""
        found = b""
        while len(found) < size:
            found += os.read(self.reader, size - len(found))
        return found

    def lines(self, last: str) -> list[dict[str, object]]:
        """Read lines up to the one with a message."""
        found: list[dict[str, object]] = []
        with os.fdopen(os.dup(self.reader), "rb") as stream:
            while not found or found[-1]["message"] != last:
                found.append(json.loads(stream.readline()))
        return found

    def close(self) -> None:
        """Close it, also while a thread waits for it."""
        self.queue.close()
        os.close(self.reader)
        thread = self.queue._thread
        if thread is not None:
            thread.join(60)
            assert not thread.is_alive()
        os.close(self.writer)


def fill(descriptor: int) -> int:
    """Fill a pipe to its last byte, and let its writers wait again; return with how many bytes."""
    os.set_blocking(descriptor, False)
    size = 0
    for piece in (b"." * 4096, b"."):
        with suppress(BlockingIOError):
            while True:
                size += os.write(descriptor, piece)
    os.set_blocking(descriptor, True)
    return size


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """Return a pipe whose log may have some lines waiting."""
    made = Pipe(max_bytes=20_000, drain_seconds=0.05)
    yield made
    made.close()


def test_lines_keep_their_order_and_their_request(pipe: Pipe) -> None:
    """The thread that writes them belongs to none."""
    filled = pipe.fill()
    for number in range(50):
        token = REQUEST_ID.set(f"r-{number}")
        pipe.log.info("Line %d", number)
        REQUEST_ID.reset(token)
    pipe.read(filled)
    lines = pipe.lines("Line 49")
    assert [line["message"] for line in lines] == [f"Line {number}" for number in range(50)]
    assert [line["request_id"] for line in lines] == [f"r-{number}" for number in range(50)]


def test_what_is_too_much_is_lost_and_counted_at_its_place(pipe: Pipe) -> None:
    """A thread that logs does not wait. The next line that gets through says how many are missing."""
    filled = pipe.fill()
    for number in range(10_000):
        pipe.log.info("Line %d", number)
    assert pipe.queue._waiting_bytes <= 20_000
    pipe.read(filled)
    while pipe.queue._waiting or pipe.queue._is_writing:
        pipe.queue.flush()
    pipe.log.info("Again")
    following = lost = 0
    for line in pipe.lines("Again")[:-1]:
        if line["action"] == "lines_lost":
            assert line["level"] == "warning"
            lost += int(str(line["count"]))
            following += int(str(line["count"]))
        else:
            assert line["message"] == f"Line {following}"
            following += 1
    assert following == 10_000
    assert lost > 9_000


def test_the_end_waits_for_a_reader_that_reads_and_not_for_one_that_does_not(pipe: Pipe) -> None:
    """Bounded, and what comes after the end keeps nobody."""
    filled = pipe.fill()
    pipe.log.info("First")
    pipe.queue.flush()
    reader = threading.Thread(target=pipe.read, args=(filled,))
    reader.start()
    reader.join()
    pipe.log.info("Last")
    while pipe.queue._waiting or pipe.queue._is_writing:
        pipe.queue.flush()
    pipe.queue.close()
    pipe.log.info("After the end")
    assert [line["message"] for line in pipe.lines("After the end")] == ["First", "Last", "After the end"]
    pipe.fill()
    pipe.log.info("For nobody")


def test_a_log_on_a_full_disk_says_how_many_it_has_lost(tmp_path: Path) -> None:
    """Once there is room again; a line that was cut stays a line of its own."""
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
    queue = LogQueue(descriptor)
    queue.setFormatter(JsonFormatter())
    log = logging.Logger("outreach.test")
    log.addHandler(queue)
    real, room = os.write, 10

    def write(to: int, text: bytes) -> int:
        nonlocal room
        if to != descriptor:
            return real(to, text)
        if room == 0:
            raise OSError(28, "No space left on device")
        written = real(to, bytes(text)[:room])
        room -= written
        return written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", write)
        for number in range(3):
            log.info("Line %d", number)
            queue.flush()
    log.info("Again")
    queue.flush()
    queue.close()
    cut, note, again = path.read_text().splitlines()
    os.close(descriptor)
    assert len(cut) == 10
    assert (json.loads(note)["action"], json.loads(note)["count"]) == ("lines_lost", 3)
    assert json.loads(again)["message"] == "Again"


def test_a_pipe_that_somebody_has_set_not_to_wait_loses_nothing(pipe: Pipe) -> None:
    """Such as another process that has the same stderr."""
    filled = pipe.fill()
    os.set_blocking(pipe.writer, False)
    pipe.log.info("Line")
    pipe.read(filled)
    assert [line["message"] for line in pipe.lines("Line")] == ["Line"]


def test_a_line_that_cannot_be_formatted_is_logged_without_its_arguments(pipe: Pipe) -> None:
    """The line names the place in the code, where the call has to be mended."""
    pipe.log.info("%d times", f"{NUMBER} {BODY}")
    pipe.log.info("End")
    failed, _ = pipe.lines("End")
    assert failed["action"] == "line_failed"
    assert "test_log_queue.py" in str(failed["message"])
    assert "TypeError" in str(failed["traceback"])
    assert not any(secret in json.dumps(failed) for secret in SECRETS)


FORK = """
import logging, os
from outreach_server.monitoring import log_lines
log_lines.log_to_stderr("info")
log = logging.getLogger("own")
log.info("Parent 1")
child = os.fork()
log.info("Parent 2" if child else "Child")
if not child:
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_forked_child_writes_its_own_lines_and_none_of_its_parents() -> None:
    """Its parent's thread is not there, and what waits in the parent is written by that."""
    told = run(FORK)
    assert sorted(line.rpartition(": ")[2] for line in told.splitlines()) == ["Child", "Parent 1", "Parent 2"]


def run(script: str, status: int = 0) -> str:
    """Run a program; return what it has written to stderr."""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, timeout=120, check=False, capture_output=True, text=True
    )
    assert ended.returncode == status, ended.stderr
    return ended.stderr


CRASH = f"""
import logging, os, threading
from outreach_server.monitoring import log_lines
log_lines.log_to_stderr("critical", "json")

class Odd:
    def __del__(self):
        raise KeyError({NUMBER!r})

def fail():
    raise ValueError("bad number {NUMBER}: {BODY}")

def main():
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    Odd()
    fail()

main()
"""


def test_errors_that_nothing_catches_are_lines_without_words() -> None:
    """Of the process, of a thread, and where nothing can catch them; at every level, and before the process is gone."""
    lines = [json.loads(line) for line in run(CRASH, status=1).splitlines()]
    assert [(line["action"], line["error_type"]) for line in lines] == [
        ("crashed", "ValueError"),
        ("crashed", "KeyError"),
        ("crashed", "ValueError"),
    ]
    assert [part in lines[-1]["traceback"] for part in ("in main", "in fail")] == [True, True]
    assert not any(secret in json.dumps(lines) for secret in SECRETS)


ABORT = """
import logging, os, signal, sys
from outreach_server.monitoring import log_lines
log_lines.log_to_stderr("info")
logging.getLogger("own").info("The last words")
sys.stdout.write("up\\n")
sys.stdout.flush()
signal.pause()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs its signal")
def test_the_last_words_of_a_process_that_is_aborted_are_there() -> None:
    """As a watchdog does it: the thread has written them long before."""
    with subprocess.Popen(
        [sys.executable, "-c", ABORT], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"up\n"
        assert b"The last words" in process.stderr.readline()
        process.send_signal(6)
        assert process.wait(60) == -6


FULL = """
import logging, sys
from outreach_server.monitoring import log_lines
log_lines.log_to_stderr("info")
for number in range(1000):
    logging.getLogger("own").info("Line %d", number)
raise ValueError
"""


def test_a_pipe_that_nobody_reads_keeps_no_process_from_its_end() -> None:
    """Neither its lines nor its last error."""
    reader, writer = os.pipe()
    try:
        fill(writer)
        ended = subprocess.run([sys.executable, "-c", FULL], cwd=ROOT, timeout=120, check=False, stderr=writer)
        assert ended.returncode == 1
    finally:
        os.close(reader)
        os.close(writer)
