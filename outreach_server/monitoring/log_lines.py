"""The form of log lines: text for people, JSON for programs. docs/reference/log.md has the schema."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from outreach.server_support import described, log_error, masked
from outreach_server.monitoring.log_context import DISPATCH_ID, REQUEST_ID
from outreach_server.monitoring.log_queue import LogQueue
from outreach_server.monitoring.lost_connections import LostConnections

NO_ACTION: Final = "other"
"""The action of lines that other libraries write."""

FIELDS: Final = (
    "workspace_id",
    "account_id",
    "campaign_id",
    "provider",
    "reason",
    "unit",
    "count",
    "error_type",
    "method",
    "endpoint",
    "status",
    "duration_ms",
    "client",
    "seconds",
)
"""The fields that a line may have beside those that all have, in their order; this is what all of them mean:

    at: in each line: when, RFC 3339 in UTC, milliseconds
    level: in each line: `debug`, `info`, `warning`, `error` or `critical`
    logger: in each line: which part wrote it
    action: in each line: what it is about; `other` for lines of other libraries
    message: in each line: the same for people; its words may change
    request_id: in each line: the id of the HTTP request in which it was written, as in `X-Request-Id`; null outside one
    dispatch_id: in each line: the dispatch that it is about, libraries under it included; null where there is none
    workspace_id: the workspace that it concerns, where that is known
    account_id: the account at a provider that it concerns
    campaign_id: the campaign that it concerns
    provider: the provider that it concerns
    reason: the class of a failure or pause, or the action of lines that were left out
    unit: the campaign, message or call whose slice failed
    count: how many times
    error_type: the class of an error
    traceback: where an unexpected error was raised, without its words (docs/logging.md#errors)
    method: of an HTTP request
    endpoint: of an HTTP request: the operation, never the path, which may hold a number
    status: of an HTTP request
    duration_ms: of an HTTP request
    client: of an HTTP request: the client's address, with the setting `log_client_address`
    seconds: how long something took
"""

LINES_A_SECOND: Final = 100
"""Lines with the same action; more are counted, and their number is logged."""

_MAX_ACTIONS: Final = 500


class FloodFilter(logging.Filter):
    """Lets at most `LINES_A_SECOND` lines of each action pass in a second; errors of all kinds included.

    The first line of the next second is followed by one that says how many were left out.

    Args:
        now: Seconds on a monotonic clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._lock = threading.Lock()
        self._second = float("-inf")
        self._passed: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written."""
        action = action_of(record)
        left_out: dict[str, int] = {}
        with self._lock:
            now = self._now()
            if now - self._second >= 1:
                self._second, left_out = now, self._left_out
                self._passed, self._left_out = {}, {}
            if len(self._passed) >= _MAX_ACTIONS:
                action = NO_ACTION
            passed = self._passed.get(action, 0)
            self._passed[action] = passed + 1
            if passed >= LINES_A_SECOND:
                self._left_out[action] = self._left_out.get(action, 0) + 1
        for name, count in left_out.items():
            _log.warning(
                "%d lines with the action %s were left out in one second",
                count,
                name,
                extra={"action": "lines_left_out", "count": count, "reason": name},
            )
        return passed < LINES_A_SECOND


class TextFormatter(logging.Formatter):
    """A line for people: time, level, logger and message, then the ids that the message does not have."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and below it where an error was raised."""
        record.message, record.asctime = message_of(record), self.formatTime(record)
        line, below = self.formatMessage(record), traceback_of(record)
        return line if below is None else f"{line}\n{below}"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        """Return the line alone."""
        line = super().formatMessage(record)
        ids = {"request": request_id_of(record), "dispatch": dispatch_id_of(record)}
        more = [f"{name} {value}" for name, value in ids.items() if value is not None and value not in line]
        return f"{line} ({', '.join(more)})" if more else line


class JsonFormatter(logging.Formatter):
    """A line for programs: one JSON object, whose first fields every line has."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "action": action_of(record),
            "message": message_of(record),
            "request_id": request_id_of(record),
            "dispatch_id": dispatch_id_of(record),
        }
        for name in FIELDS:
            value = getattr(record, name, None)
            if value is not None:
                line[name] = value
        if record.exc_info and record.exc_info[1] is not None:
            line["error_type"] = type(record.exc_info[1]).__name__
        below = traceback_of(record)
        if below is not None:
            line["traceback"] = below
        try:
            return orjson.dumps(line, default=str).decode()
        except orjson.JSONEncodeError:
            # A text that is no UTF-8, such as the name of a file: a line that cannot be written would be lost.
            return json.dumps(line, default=str, separators=(",", ":"))


def action_of(record: logging.LogRecord) -> str:
    """Return what a line is about."""
    return str(getattr(record, "action", NO_ACTION))


def message_of(record: logging.LogRecord) -> str:
    """Return a line's message; of another library's about an error, what can be shown of it.

    Such as asyncio's, which contains the arguments of a failed callback, and a failed task's error with its words.
    """
    message = record.getMessage()
    if record.exc_info and record.exc_info[1] is not None:
        return masked(next(iter(message.splitlines()), ""))
    return message


def traceback_of(record: logging.LogRecord) -> str | None:
    """Return where the error of a line was raised, without its words, which may hold what no log may."""
    if record.exc_info and record.exc_info[1] is not None:
        return described(record.exc_info[1])
    # Of the engine's own lines: made by the same function.
    return record.exc_text


def request_id_of(record: logging.LogRecord) -> str | None:
    """Return the id of the request in which a line was written, if there was one."""
    return getattr(record, "request_id", None) or REQUEST_ID.get()


def dispatch_id_of(record: logging.LogRecord) -> str | None:
    """Return the id of the dispatch that a line is about, if there is one."""
    return getattr(record, "dispatch_id", None) or DISPATCH_ID.get()


def log_to_stderr(level: str, form: str = "text") -> None:
    """Configure a server's logging: on stderr, bounded; without access lines of libraries, which contain searches.

    Args:
        level: The least severe level that is logged.
        form: What lines look like: `text` or `json`.
    """
    handler = _handler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.addFilter(LostConnections())
    handler.addFilter(FloodFilter())
    logging.basicConfig(handlers=[handler], level=level.upper())
    if _queue() is not None:
        _log_what_nothing_catches()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # A line for each job, with its arguments.
    logging.getLogger("procrastinate").setLevel(logging.WARNING)


def log_failure(message: str) -> bool:
    """Log why the command failed, and return True; do nothing where the log is not for programs, or has no errors.

    Args:
        message: Why.
    """
    for_programs = any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)
    if not for_programs or not _log.isEnabledFor(logging.ERROR):
        return False
    _log.error("%s", message, extra={"action": "command_failed"})
    return True


def write_line(line: str) -> bool:
    """Write a line as it is after those of the log, and return True; do nothing where this process writes no log."""
    queue = _queue()
    if queue is None:
        return False
    queue.write_line(line)
    return True


def _handler() -> logging.Handler:
    try:
        return LogQueue(sys.stderr.fileno())
    except (AttributeError, OSError):
        # Something in its place that has no file, as in a test.
        return logging.StreamHandler(sys.stderr)


def _queue() -> LogQueue | None:
    return next((one for one in logging.getLogger().handlers if isinstance(one, LogQueue)), None)


def _log_what_nothing_catches() -> None:
    """Log errors that Python would write to stderr, where it shows their messages and may block without a reader."""
    sys.excepthook = lambda _kind, error, _raised: _log_crash("The process ends in an error", error)
    threading.excepthook = lambda crash: _log_crash("A thread has ended in an error", crash.exc_value)
    sys.unraisablehook = lambda crash: _log_crash("An error could not be raised anywhere", crash.exc_value)


def _log_crash(what: str, error: BaseException | None) -> None:
    if not isinstance(error, SystemExit):
        # A level that every log has.
        log_error(_log, logging.CRITICAL, what, error=error, extra={"action": "crashed"})


_log = logging.getLogger("outreach_server")
