"""What the engine tells in the log, so that no trouble can flood it: one line, then a count a minute, then its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

import attrs

from outreach.clock import Clock
from outreach.errors import StorageError

Subject = tuple[str, ...]
"""What is in trouble: an account, the database, a part of the engine."""

DATABASE: Final[Subject] = ("database",)

MINUTE: Final = 60.0

LINES_A_MINUTE: Final = 60
"""Lines of all kinds together; what comes beyond is counted, and the count is told."""

MAX_KINDS: Final = 2000
"""Troubles that are remembered; a subject's kinds are few, its number is that of accounts."""

FORGET_MINUTES: Final = 30
"""Trouble that nobody has seen for this long is new when it comes again."""

_log = logging.getLogger("outreach")


def account(workspace_id: str, provider: str) -> Subject:
    """Return the subject of a workspace's account at a provider."""
    return ("account", workspace_id, provider)


@attrs.define(kw_only=True)
class _Trouble:
    """One kind of trouble of one subject.

    Attributes:
        text: What was told of it first.
        told_at: When it was told last, on the monotonic clock.
        seen_at: When it came last.
        more: How often it has come since it was told.
        total: How often it has come since it began.
        told_open: Whether its last line is one that says that it is there.
        is_open: Whether it is there.
    """

    text: str
    level: int
    extra: dict[str, Any]
    told_at: float
    seen_at: float
    more: int = 0
    total: int = 1
    told_open: bool = True
    is_open: bool = True


F = TypeVar("F", bound=Callable[..., Any])


def _one_at_a_time(method: F) -> F:
    """Let one thread at a time into these methods."""

    @wraps(method)
    def locked(self: LogThrottle, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast("F", locked)


class LogThrottle:
    """The engine's one place for log lines that may come often.

    Each kind of trouble has at most one line a minute, and one when it is over; all of them together have at most
    `LINES_A_MINUTE`. Any thread may use it.

    Args:
        clock: Where the minutes come from.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._troubles: dict[Subject, dict[str, _Trouble]] = {}
        self._count = 0
        self._window = float("-inf")
        self._lines = 0
        self._left_out = 0

    @_one_at_a_time
    def log(self, level: int, message: str, *args: object, **extra: Any) -> None:
        """Write a line about something that happened once, such as a pause."""
        self._write(level, message % args, extra)

    @_one_at_a_time
    def problem(
        self,
        subject: Subject,
        kind: str,
        message: str,
        *args: object,
        level: int = logging.WARNING,
        error: BaseException | None = None,
        **extra: Any,
    ) -> None:
        """Tell of trouble: the first time at once, with the traceback of an error; then a count a minute.

        Args:
            subject: What is in trouble.
            kind: Which trouble it is: few for a subject.
            message: What is wrong and what to do; no secret, no message body, no full number.
            *args: What belongs into the message.
            level: Of the line.
            error: Whose traceback tells more.
            extra: Fields of the record.
        """
        now = self._clock.monotonic()
        known = self._troubles.get(subject, {}).get(kind)
        if known is None:
            text = message % args
            self._remember(subject, kind, _Trouble(text=text, level=level, extra=extra, told_at=now, seen_at=now))
            self._write(level, text, extra, error)
            return
        known.seen_at = now
        known.more += 1
        known.total = known.total + 1 if known.is_open else 1
        known.is_open = True
        self._tell_count(known, now)

    def failure(self, action: str, error: Exception, message: str, *args: object, **extra: Any) -> None:
        """Tell of an unexpected error; one of the database is the database's trouble, whatever was being done.

        Args:
            action: What was being done, for programs.
            error: What went wrong.
            message: What was being done, for people.
            *args: What belongs into the message.
            extra: Fields of the record.
        """
        extra = {**extra, "action": action, "error_type": type(error).__name__}
        if isinstance(error, StorageError):
            kind = str(getattr(error.__cause__, "sqlite_errorname", type(error).__name__))
            self.problem(DATABASE, kind, "%s", error.message, level=logging.ERROR, **extra)
            return
        self.problem((action,), type(error).__name__, message, *args, level=logging.ERROR, error=error, **extra)

    @_one_at_a_time
    def recovered(self, subject: Subject, message: str, *args: object, **extra: Any) -> None:
        """Tell once that a subject's trouble is over; nothing when it had none, or when its trouble was not told."""
        told = total = 0
        for trouble in self._troubles.get(subject, {}).values():
            if trouble.is_open:
                total += trouble.total
                told += trouble.told_open
                trouble.is_open = trouble.told_open = False
                trouble.more = 0
        if told:
            count = f" It was in trouble {total} times." if total > 1 else ""
            self._write(logging.WARNING, f"{message % args}{count}", extra)

    @_one_at_a_time
    def latest_problem(self, subject: Subject) -> tuple[str, float] | None:
        """Return the kind of a subject's latest trouble that is not over, and how many seconds ago it came."""
        kinds = self._troubles.get(subject, {})
        found = [(trouble.seen_at, kind) for kind, trouble in kinds.items() if trouble.is_open]
        if not found:
            return None
        seen_at, kind = max(found)
        return kind, self._clock.monotonic() - seen_at

    @_one_at_a_time
    def flush_counts(self) -> None:
        """Tell the counts whose minute is over, and forget what is long over; to be called now and then."""
        now = self._clock.monotonic()
        self._tell_left_out(now)
        for subject, kinds in list(self._troubles.items()):
            for kind, trouble in list(kinds.items()):
                if trouble.more and trouble.is_open:
                    self._tell_count(trouble, now)
                elif now - trouble.seen_at > (FORGET_MINUTES * MINUTE if trouble.is_open else MINUTE):
                    del kinds[kind]
                    self._count -= 1
            if not kinds:
                del self._troubles[subject]

    def _tell_count(self, trouble: _Trouble, now: float) -> None:
        if now - trouble.told_at < MINUTE:
            return
        seconds = now - trouble.told_at
        more = f" ({trouble.more} times in the last {seconds:.0f} s)" if trouble.more > 1 else ""
        if self._write(trouble.level, f"{trouble.text}{more}", trouble.extra):
            trouble.told_at, trouble.more, trouble.told_open = now, 0, True

    def _remember(self, subject: Subject, kind: str, trouble: _Trouble) -> None:
        if self._count >= MAX_KINDS:
            oldest = next(iter(self._troubles))
            self._count -= len(self._troubles.pop(oldest))
        self._troubles.setdefault(subject, {})[kind] = trouble
        self._count += 1

    def _write(self, level: int, text: str, extra: dict[str, Any], error: BaseException | None = None) -> bool:
        now = self._clock.monotonic()
        if now - self._window >= MINUTE:
            self._window, self._lines = now, 0
            self._tell_left_out(now)
        if self._lines >= LINES_A_MINUTE:
            self._left_out += 1
            return False
        self._lines += 1
        _log.log(level, "%s", text, exc_info=error, extra=extra)
        return True

    def _tell_left_out(self, now: float) -> None:
        if self._left_out and (self._lines == 0 or now - self._window >= MINUTE):
            count, self._left_out = self._left_out, 0
            _log.warning(
                "%d more lines were left out in the last minute: too much is in trouble at once.",
                count,
                extra={"action": "lines_left_out", "count": count},
            )
