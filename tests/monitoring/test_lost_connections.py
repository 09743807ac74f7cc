"""A restart of PostgreSQL in the log of a server: one line, whatever the libraries write of it."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from procrastinate.exceptions import ConnectorException
from psycopg_pool import ConnectionPool, PoolTimeout

from outreach_server.monitoring import lost_connections
from outreach_server.monitoring.log_lines import JsonFormatter
from outreach_server.monitoring.lost_connections import LostConnections

AWAY = psycopg.OperationalError('connection failed: connection to server at "127.0.0.1" failed: Connection refused')
RESTARTING = psycopg.OperationalError("connection failed: FATAL:  the database system is starting up")
ENDED = psycopg.errors.AdminShutdown("terminating connection due to administrator command\nSSL closed")


class Log:
    """The loggers of the libraries, and what a server writes of them."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lines: list[dict[str, Any]] = []
        self.handler = logging.Handler()
        self.handler.emit = self._emit  # type: ignore[method-assign]
        self.handler.setFormatter(JsonFormatter())
        self.handler.addFilter(LostConnections(lambda: self.now))
        libraries = [logging.getLogger(name) for name in ("procrastinate", "psycopg.pool", "asyncio")]
        self._loggers = [*libraries, lost_connections._log]
        for logger in self._loggers:
            logger.addHandler(self.handler)

    def _emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.handler.format(record)))

    @property
    def actions(self) -> list[str]:
        """The actions of the lines."""
        return [line["action"] for line in self.lines]

    def close(self) -> None:
        """Take the handler away."""
        for logger in self._loggers:
            logger.removeHandler(self.handler)

    def interrupt(self) -> None:
        """Write what the libraries write when a server is restarted."""
        pool, worker = logging.getLogger("psycopg.pool"), logging.getLogger("procrastinate.worker.worker")
        worker.error("Side task %s failed, stopping worker", "listener", exc_info=wrapped(ENDED))
        logging.getLogger("procrastinate.utils").exception("listener error", exc_info=wrapped(ENDED))
        pool.warning("discarding broken connection: %s", "<Connection [BAD]>")
        for error in (RESTARTING, AWAY, AWAY):
            pool.warning("error connecting in %r: %s", "outreach", error)


def wrapped(cause: Exception) -> ConnectorException:
    """Return an error as Procrastinate raises it."""
    error = ConnectorException()
    error.__cause__ = cause
    return error


@pytest.fixture
def log() -> Iterator[Log]:
    """The log of a server."""
    log = Log()
    yield log
    log.close()


def test_an_interruption_is_one_line(log: Log) -> None:
    """Without a traceback; another one after it has its own."""
    log.interrupt()
    [line] = log.lines
    assert (line["logger"], line["level"], line["action"]) == ("outreach_server", "warning", "connections_lost")
    assert line["message"].endswith("made again: terminating connection due to administrator command")
    assert "traceback" not in line
    log.now += 10
    log.interrupt()
    assert log.actions == ["connections_lost"] * 2


def test_a_server_that_is_read_only_is_one_line_a_minute(log: Log) -> None:
    """Procrastinate tries again and again, and writes a traceback each time."""
    refusal = psycopg.errors.ReadOnlySqlTransaction("cannot execute UPDATE in a read-only transaction")
    worker = logging.getLogger("procrastinate.worker.worker")
    for _ in range(100):
        worker.error("Side task %s failed, stopping worker", "heartbeat", exc_info=wrapped(refusal))
        logging.getLogger("procrastinate.utils").exception("periodic error", exc_info=wrapped(refusal))
        log.now += 0.5
    assert log.actions == ["database_read_only"]
    (line,) = log.lines
    assert (line["logger"], line["level"]) == ("outreach_server", "warning")
    assert "read-only transaction" in line["message"]
    assert "error" not in line
    log.now += 60
    worker.error("Side task %s failed, stopping worker", "heartbeat", exc_info=wrapped(refusal))
    assert log.actions == ["database_read_only"] * 2


def test_a_long_interruption_is_a_line_a_minute(log: Log) -> None:
    """However often connecting is tried; waits for a connection belong to it."""
    log.interrupt()
    for _ in range(6):
        for _ in range(20):
            log.now += 1
            logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "outreach", AWAY)
            logging.getLogger("procrastinate").error("failed", exc_info=wrapped(PoolTimeout("after 10 s")))
    assert log.actions == ["connections_lost"] * 3


def test_a_wait_in_vain_is_a_line_too_and_hides_no_cause_after_it(log: Log) -> None:
    """Of a server that is silent, a task may tell before the pool does."""
    for _ in range(2):
        logging.getLogger("procrastinate").error("failed", exc_info=wrapped(PoolTimeout("after 10 s")))
        logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "outreach", AWAY)
    first, second = log.lines
    assert "There was no connection to PostgreSQL: after 10 s." in first["message"]
    assert "Connection refused" in second["message"]
    assert log.actions == ["connections_lost"] * 2
    assert "traceback" not in first


def test_real_errors_pass(log: Log) -> None:
    """What no restart explains, before and during one."""
    refused = psycopg.OperationalError('connection failed: FATAL:  password authentication failed for user "x"')
    logging.getLogger("procrastinate").error("failed", exc_info=wrapped(ValueError("x")))
    log.interrupt()
    logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "outreach", refused)
    for cause in (psycopg.errors.UndefinedFunction("none"), psycopg.errors.DiskFull("full"), ValueError("x")):
        logging.getLogger("procrastinate").error("failed", exc_info=wrapped(cause))
    logging.getLogger("psycopg.pool").warning("rolling back returned connection: %s", "<Connection>")
    assert log.actions == ["other", "connections_lost", *["other"] * 5]
    assert "password authentication failed" in log.lines[2]["message"]
    assert "UndefinedFunction" in log.lines[3]["traceback"]


def test_all_lines_are_shown_to_who_asks_for_them(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    """With `--log-level debug`."""
    caplog.set_level(logging.DEBUG)
    log.interrupt()
    assert "connections_lost" not in log.actions
    assert len(log.lines) == 6


def test_the_pools_own_lines_are_known(log: Log) -> None:
    """Of the installed version, for a server that does not answer."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"host=127.0.0.1 port={taken.getsockname()[1]} dbname=x user=x connect_timeout=1"
        with (
            ConnectionPool(address, min_size=1, open=False, name="outreach", reconnect_timeout=0.1) as pool,
            pytest.raises(PoolTimeout),
        ):
            pool.wait(timeout=0.5)
    assert log.actions == ["connections_lost"]


def test_an_error_that_a_task_of_procrastinate_left_to_asyncio_is_no_traceback(log: Log) -> None:
    """Those of anybody else are asyncio's to tell."""
    log.interrupt()
    asyncio_log = logging.getLogger("asyncio")
    asyncio_log.error("Task exception was never retrieved", exc_info=wrapped(PoolTimeout("after 10 s")))
    assert log.actions == ["connections_lost"]
    asyncio_log.error("Task exception was never retrieved", exc_info=ValueError())
    asyncio_log.error("Task was destroyed but it is pending!")
    assert [line["logger"] for line in log.lines] == ["outreach_server", "asyncio", "asyncio"]
