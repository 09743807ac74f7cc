from __future__ import annotations

import logging
import random
import sqlite3

import psycopg
import pytest
from psycopg_pool import PoolTimeout

from outreach.core.log_throttle import DATABASE, LINES_A_MINUTE, MAX_KINDS, LogThrottle, account
from outreach.errors import StorageError, StorageUnreachable
from outreach.testing.clock import ManualClock


class Told:
    """Some log_throttle, the clock that they go by, and what they have told."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.clock = ManualClock()
        self.log_throttle = LogThrottle(self.clock)
        self._caplog = caplog

    @property
    def lines(self) -> list[str]:
        """Return the lines."""
        return [record.getMessage() for record in self._caplog.records]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    """Return notices that have told nothing."""
    caplog.set_level(logging.INFO)
    return Told(caplog)


THIS_WORKSPACE = account("w1", "twilio")


def test_a_problem_is_logged_once_then_counted_each_minute_and_its_end_logged_once(told: Told) -> None:
    """However often it comes."""
    for _ in range(600):
        told.log_throttle.problem(THIS_WORKSPACE, "timeout", "%s does not answer.", "twilio", action="a")
        told.clock.advance(0.25)
    assert told.lines == [
        "twilio does not answer.",
        "twilio does not answer. (240 times in the last 60 s)",
        "twilio does not answer. (240 times in the last 60 s)",
    ]
    for _ in range(3):
        told.log_throttle.recovered(THIS_WORKSPACE, "%s answers again.", "twilio")
    assert told.lines[3:] == ["twilio answers again. It occurred 600 times."]


def test_a_count_is_logged_also_when_nothing_more_comes(told: Told) -> None:
    """`remind` sees to it, once."""
    for _ in range(5):
        told.log_throttle.problem(THIS_WORKSPACE, "timeout", "No answer.")
    for _ in range(30):
        told.clock.advance(5)
        told.log_throttle.flush_counts()
    assert told.lines == ["No answer.", "No answer. (4 times in the last 60 s)"]


def test_each_class_of_each_account_is_reported(told: Told) -> None:
    """One that is in trouble hides no other."""
    for whose in (THIS_WORKSPACE, account("w1", "telnyx"), account("w2", "twilio")):
        for kind in ("timeout", "provider_auth"):
            told.log_throttle.problem(whose, kind, "%s %s", "/".join(whose), kind)
    assert len(told.lines) == 6


def test_trouble_that_comes_and_goes_is_no_flood(told: Told) -> None:
    """Half of all requests fail: the lines are a minute apart, and each end follows a beginning."""
    for _ in range(1200):
        told.log_throttle.problem(THIS_WORKSPACE, "timeout", "No answer.")
        told.log_throttle.recovered(THIS_WORKSPACE, "Answers again.")
        told.clock.advance(0.5)
    assert len(told.lines) <= 2 * 11
    kinds = ["again" in line for line in told.lines]
    assert kinds == [number % 2 == 1 for number in range(len(kinds))]


def test_all_lines_together_are_bounded(told: Told) -> None:
    """Ten thousand accounts in trouble at once: at most so many lines a minute, and how many were left out."""
    for _ in range(3):
        for number in range(10_000):
            told.log_throttle.problem(account(f"w{number}", "twilio"), "timeout", "No answer for %d.", number)
        assert len(told.lines) <= LINES_A_MINUTE + 1
        told.clock.advance(61)
        told.log_throttle.flush_counts()
        assert "more lines were left out in one minute" in told.lines[LINES_A_MINUTE]
        del told._caplog.records[:]


class Away(logging.Handler):
    """A handler of the host whose server is away."""

    def emit(self, record: logging.LogRecord) -> None:
        """Fail, as a handler must not."""
        raise ConnectionError


def test_a_handler_that_raises_ends_nothing(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """The work that logs goes on: logging itself handles the error."""
    away = Away()
    logging.getLogger("outreach").addHandler(away)
    try:
        told.log_throttle.problem(THIS_WORKSPACE, "timeout", "No answer.")
    finally:
        logging.getLogger("outreach").removeHandler(away)
    shown = capsys.readouterr().err
    assert "ConnectionError" in shown
    assert "'No answer.'" in shown


def test_what_is_remembered_is_bounded(told: Told) -> None:
    """Whatever the subjects are named."""
    rng = random.Random(8)
    for _ in range(5000):
        told.log_throttle.problem(account(f"w{rng.randrange(10**9)}", "x"), f"{rng.random()}", "No answer.")
    assert told.log_throttle._count == sum(map(len, told.log_throttle._problems.values())) <= MAX_KINDS
    told.clock.advance(3600)
    told.log_throttle.flush_counts()
    told.clock.advance(3600)
    told.log_throttle.flush_counts()
    told.clock.advance(3600)
    told.log_throttle.flush_counts()
    assert told.log_throttle._count == len(told.log_throttle._problems) == 0


def test_a_full_disk_is_one_line_whatever_was_being_done(told: Told) -> None:
    """No traceback: the message says what to do."""
    full = StorageError("Nothing was written. The disk is full.")
    cause = sqlite3.OperationalError("database or disk is full")
    cause.sqlite_errorname = "SQLITE_FULL"
    full.__cause__ = cause
    for number in range(1000):
        told.log_throttle.failure(f"action_{number % 7}", full, "What %d did failed.", number)
    assert told.lines == ["Nothing was written. The disk is full."]
    assert told._caplog.records[0].exc_info is None
    told.log_throttle.recovered(DATABASE, "It takes writes again.")
    assert told.lines[1:] == ["It takes writes again. It occurred 1000 times."]


def test_another_refusal_of_a_server_is_a_line_of_its_own(told: Told) -> None:
    """A database that is read-only after its server has ended all connections; all lost connections are one kind."""

    def fail(message: str, cause: psycopg.Error) -> None:
        error = StorageUnreachable(message)
        error.__cause__ = cause
        told.log_throttle.failure("renew_failed", error, "The lease was not renewed.")

    fail("The connection was lost.", psycopg.OperationalError("server closed the connection"))
    fail("No connection.", PoolTimeout("couldn't get a connection"))
    fail("The database takes no writes.", psycopg.errors.ReadOnlySqlTransaction("cannot execute UPDATE"))
    assert told.lines == ["The connection was lost.", "The database takes no writes."]


def test_the_place_of_an_unexpected_error_is_logged_once(told: Told) -> None:
    """The next one of its kind is counted."""
    for _ in range(100):
        told.log_throttle.failure("slice_failed", ZeroDivisionError("0"), "A slice failed.")
        told.log_throttle.failure("slice_failed", KeyError("k"), "A slice failed.")
    assert [record.exc_text for record in told._caplog.records] == ["ZeroDivisionError", "KeyError"]
    told.clock.advance(60)
    told.log_throttle.flush_counts()
    assert [record.exc_text for record in told._caplog.records[2:]] == [None, None]


def test_an_end_without_a_problem_is_not_logged(told: Told) -> None:
    """Every accepted message says that its account works."""
    told.log_throttle.recovered(THIS_WORKSPACE, "Again.")
    assert told.lines == []
