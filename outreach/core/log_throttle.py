"""Log lines that cannot flood the log: a problem has one line, then a count per minute, then a line at its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

import attrs

from outreach.core.clock import Clock
from outreach.core.logged_errors import log_error, masked
from outreach.errors import StorageError

Subject = tuple[str, ...]
"""The subject of a problem: an account, the database, a part of the engine."""

DATABASE: Final[Subject] = ("database",)

DISPATCH: Final[Subject] = ("dispatch",)
"""Whether anything may be dispatched from the database here."""

MINUTE: Final = 60.0

LINES_A_MINUTE: Final = 60
"""Lines of all kinds together; more are counted, and the count is logged."""

MAX_KINDS: Final = 2000
"""Problems that are remembered."""

FORGET_MINUTES: Final = 30
"""A problem that returns after this long is a new one."""

_log = logging.getLogger("outreach")


def account(workspace_id: str, provider: str) -> Subject:
    """Return the subject of a workspace's account at a provider."""
    return ("account", workspace_id, provider)


@attrs.define(kw_only=True)
class _Problem:
    """One kind of problem of one subject.

    Attributes:
        text: The first line.
        logged_at: When it was last logged, on the monotonic clock.
        seen_at: When it last occurred.
        more: Occurrences since it was logged.
        total: Occurrences since it began.
        logged_as_open: Whether its last line says that it is open.
        is_open: Whether it is open.
    """

    text: str
    level: int
    extra: dict[str, Any]
    logged_at: float
    seen_at: float
    more: int = 0
    total: int = 1
    logged_as_open: bool = True
    is_open: bool = True


F = TypeVar("F", bound=Callable[..., Any])


def _one_at_a_time(method: F) -> F:
    """Serialise these methods across threads."""

    @wraps(method)
    def locked(self: LogThrottle, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast("F", locked)


class LogThrottle:
    """Writes log lines that may be frequent; thread-safe.

    Each kind of problem has at most one line per minute, and one when it is over; all together have at most
    `LINES_A_MINUTE`.

    Args:
        clock: Measures the minutes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._problems: dict[Subject, dict[str, _Problem]] = {}
        self._count = 0
        self._window = float("-inf")
        self._lines = 0
        self._left_out = 0

    @_one_at_a_time
    def log(self, level: int, message: str, *args: object, **extra: Any) -> None:
        """Log something that happened once, such as a pause."""
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
        """Log a problem: the first time at once, with the place of an error; then a count per minute.

        Args:
            subject: What has the problem.
            kind: Which problem; a subject has few kinds.
            message: What is wrong and what to do; no secret, no message body, no full number.
            *args: Arguments of the message.
            level: The log level.
            error: An error whose place helps.
            extra: Fields of the record.
        """
        now = self._clock.monotonic()
        known = self._problems.get(subject, {}).get(kind)
        if known is None:
            text = message % args
            self._remember(subject, kind, _Problem(text=text, level=level, extra=extra, logged_at=now, seen_at=now))
            self._write(level, text, extra, error)
            return
        known.seen_at = now
        known.more += 1
        known.total = known.total + 1 if known.is_open else 1
        known.is_open = True
        self._log_count(known, now)

    def failure(self, action: str, error: Exception, message: str, *args: object, **extra: Any) -> None:
        """Log an unexpected error; a storage error counts as a problem of the database, whatever the action.

        Args:
            action: The failed action, for programs.
            error: The error.
            message: The failed action, for people.
            *args: Arguments of the message.
            extra: Fields of the record.
        """
        extra = {**extra, "action": action, "error_type": type(error).__name__}
        if isinstance(error, StorageError):
            # A driver may quote a value of a row.
            self.problem(DATABASE, _kind_of(error), "%s", masked(error.message), level=logging.ERROR, **extra)
            return
        self.problem((action,), type(error).__name__, message, *args, level=logging.ERROR, error=error, **extra)

    @_one_at_a_time
    def recovered(self, subject: Subject, message: str, *args: object, **extra: Any) -> None:
        """Log once that a subject's problems are over, if they were logged."""
        logged = total = 0
        for problem in self._problems.get(subject, {}).values():
            if problem.is_open:
                total += problem.total
                logged += problem.logged_as_open
                problem.is_open = problem.logged_as_open = False
                problem.more = 0
        if logged:
            count = f" It occurred {total} times." if total > 1 else ""
            self._write(logging.WARNING, f"{message % args}{count}", extra)

    @_one_at_a_time
    def latest_problem(self, subject: Subject) -> tuple[str, float] | None:
        """Return the kind of a subject's latest open problem, and how many seconds ago it occurred."""
        kinds = self._problems.get(subject, {})
        found = [(problem.seen_at, kind) for kind, problem in kinds.items() if problem.is_open]
        if not found:
            return None
        seen_at, kind = max(found)
        return kind, self._clock.monotonic() - seen_at

    @_one_at_a_time
    def flush_counts(self) -> None:
        """Log the counts whose minute is over, and forget old problems; call it regularly."""
        now = self._clock.monotonic()
        self._log_left_out(now)
        for subject, kinds in list(self._problems.items()):
            for kind, problem in list(kinds.items()):
                if problem.more and problem.is_open:
                    self._log_count(problem, now)
                elif now - problem.seen_at > (FORGET_MINUTES * MINUTE if problem.is_open else MINUTE):
                    del kinds[kind]
                    self._count -= 1
            if not kinds:
                del self._problems[subject]

    def _log_count(self, problem: _Problem, now: float) -> None:
        if now - problem.logged_at < MINUTE:
            return
        seconds = now - problem.logged_at
        more = f" ({problem.more} times in the last {seconds:.0f} s)" if problem.more > 1 else ""
        if self._write(problem.level, f"{problem.text}{more}", problem.extra):
            problem.logged_at, problem.more, problem.logged_as_open = now, 0, True

    def _remember(self, subject: Subject, kind: str, problem: _Problem) -> None:
        if self._count >= MAX_KINDS:
            oldest = next(iter(self._problems))
            self._count -= len(self._problems.pop(oldest))
        self._problems.setdefault(subject, {})[kind] = problem
        self._count += 1

    def _write(self, level: int, text: str, extra: dict[str, Any], error: BaseException | None = None) -> bool:
        now = self._clock.monotonic()
        if now - self._window >= MINUTE:
            self._window, self._lines = now, 0
            self._log_left_out(now)
        if self._lines >= LINES_A_MINUTE:
            self._left_out += 1
            return False
        self._lines += 1
        _emit(level, text, error, extra)
        return True

    def _log_left_out(self, now: float) -> None:
        if self._left_out and (self._lines == 0 or now - self._window >= MINUTE):
            count, self._left_out = self._left_out, 0
            text = f"{count} more lines were left out in one minute: too many problems at once"
            _emit(logging.WARNING, text, None, {"action": "lines_left_out", "count": count})


def _kind_of(error: StorageError) -> str:
    """Return the name that the database's server or SQLite gives an error; all lost connections are of one kind."""
    cause = error.__cause__
    named = error if getattr(cause, "sqlstate", None) is None else cause
    return str(getattr(cause, "sqlite_errorname", type(named).__name__))


def _emit(level: int, text: str, error: BaseException | None, extra: dict[str, Any]) -> None:
    try:
        log_error(_log, level, "%s", text, error=error, extra=extra)
    except Exception:
        # A log handler of the host may raise, such as when its server is down. That must not end the logged work.
        logging.Handler().handleError(logging.makeLogRecord({"msg": text}))
