"""Writes log lines in a thread, so that a log pipe without a reader, or a slow disk, stops nothing else."""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import Final

from outreach.server_support import described

MAX_BYTES: Final = 4 * 1024 * 1024
"""Lines that wait to be written; more are lost, and counted."""

DRAIN_SECONDS: Final = 1.0
"""How long the end of the process waits for lines to be written."""

_BATCH_BYTES: Final = 64 * 1024
_PIPE_BYTES: Final = 512
"""The number of bytes that any pipe with room takes at once (POSIX)."""


class LogQueue(logging.Handler):
    """A handler whose lines are written to a file descriptor by a thread, in their order.

    The thread that logs a line formats it, so that it has the ids of its request or dispatch. The file
    descriptor is written directly, because a thread that waits in a stream of Python holds the stream's lock, which the
    interpreter takes as it ends.

    Args:
        descriptor: The file descriptor, such as that of stderr.
        max_bytes: Lines that wait; more are lost, and counted.
        drain_seconds: How long `flush` waits.
    """

    def __init__(self, descriptor: int, *, max_bytes: int = MAX_BYTES, drain_seconds: float = DRAIN_SECONDS) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._drain_seconds = drain_seconds
        self._process = os.getpid()
        # Reentrant, as by default: the garbage collector may log while a line is put in.
        self._changed = threading.Condition()
        # A number stands for as many lines that were lost at this place.
        self._waiting: deque[bytes | int] = deque()
        self._waiting_bytes = 0
        self._thread: threading.Thread | None = None
        self._is_writing = self._is_closed = False
        self._ends_within_a_line = False

    def emit(self, record: logging.LogRecord) -> None:
        """Hand the line to the thread."""
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
        else:
            self.write_line(line)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name that logging calls
        """Write a line about one that cannot be formatted; as logging does it, its arguments would be shown."""
        error = sys.exc_info()[1]
        instead = logging.makeLogRecord(
            {
                "name": record.name,
                "levelno": logging.ERROR,
                "levelname": "ERROR",
                "msg": f"A line of {record.pathname}:{record.lineno} could not be formatted",
                "action": "line_failed",
                "exc_text": None if error is None else described(error),
            }
        )
        self.write_line(self.format(instead))

    def write_line(self, line: str) -> None:
        """Hand a line that is formatted to the thread."""
        text = f"{line}\n".encode("utf-8", "backslashreplace")
        if os.getpid() != self._process:
            # A forked child has no such thread, and may hold a lock of one that is not there.
            with suppress(OSError):
                self._write(text)
            return
        with self._changed:
            if not self._is_closed:
                self._put(text)
                return
        _write_without_waiting(self._descriptor, text)

    def flush(self) -> None:
        """Wait until the lines are written, but not for long."""
        if os.getpid() == self._process:
            with self._changed:
                self._changed.wait_for(lambda: not self._waiting and not self._is_writing, timeout=self._drain_seconds)

    def close(self) -> None:
        """End the thread; lines that come later are written if that needs no waiting."""
        if os.getpid() == self._process:
            with self._changed:
                self._is_closed = True
                self._changed.notify_all()
        super().close()

    def _put(self, text: bytes) -> None:
        if not self._waiting:
            self._waiting_bytes = 0
        elif self._waiting_bytes + len(text) > self._max_bytes:
            if isinstance(self._waiting[-1], int):
                self._waiting[-1] += 1
            else:
                self._waiting.append(1)
            return
        self._waiting.append(text)
        self._waiting_bytes += len(text)
        if self._thread is None:
            # It must not keep the process from its end.
            self._thread = threading.Thread(target=self._write_all, name="outreach-log", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _write_all(self) -> None:
        lost = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                lines, newly_lost = self._take()
                self._is_writing = True
            lost += newly_lost
            try:
                self._write(b"".join([self._note(lost), *lines] if lost else lines))
                lost = 0
            except OSError:
                # The disk is full, or no process will ever read: the next line is tried again.
                lost += len(lines)
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    def _take(self) -> tuple[list[bytes], int]:
        """Return the next lines, and how many were lost before them."""
        lines: list[bytes] = []
        lost = size = 0
        while self._waiting and size < _BATCH_BYTES:
            first = self._waiting[0]
            if isinstance(first, int):
                if lines:
                    break
                lost += first
            else:
                lines.append(first)
                size += len(first)
            self._waiting.popleft()
        self._waiting_bytes -= size
        return lines, lost

    def _note(self, lost: int) -> bytes:
        record = logging.makeLogRecord(
            {
                "name": "outreach_server",
                "levelno": logging.WARNING,
                "levelname": "WARNING",
                "msg": f"{lost} lines of the log were lost here: nobody read it, or it could not be written",
                "action": "lines_lost",
                "count": lost,
            }
        )
        return f"{self.format(record)}\n".encode()

    def _write(self, text: bytes) -> None:
        """Write it all, however long that takes.

        Raises:
            OSError: It cannot be written.
        """
        if self._ends_within_a_line:
            text = b"\n" + text
        left = memoryview(text)
        while left:
            try:
                written = os.write(self._descriptor, left)
            except BlockingIOError:
                # Another process has set it so, for all processes that share it.
                select.select([], [self._descriptor], [])
                continue
            self._ends_within_a_line = left[written - 1] != ord("\n")
            left = left[written:]


def _write_without_waiting(descriptor: int, text: bytes) -> None:
    """Write what there is room for: after the log was closed, nothing may keep the process from its end."""
    with suppress(OSError):
        if not hasattr(select, "poll"):
            os.write(descriptor, text)
            return
        room = select.poll()
        room.register(descriptor, select.POLLOUT)
        while text and room.poll(0):
            text = text[os.write(descriptor, text[:_PIPE_BYTES]) :]
