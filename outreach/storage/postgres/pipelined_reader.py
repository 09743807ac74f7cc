"""Queries that the event loop runs itself, because a thread switch takes longer than the server's answer."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer

from outreach.models.work import DatabaseHome
from outreach.protocols.storage import OneQuery
from outreach.storage.base import threads
from outreach.storage.postgres.connect import BUSY_SECONDS, PostgresConnection, connect
from outreach.storage.postgres.pool import configure
from outreach.storage.postgres.single_query import CapturedQuery, QueryCaptured, SingleQueryBackend
from outreach.storage.postgres.sql import Types
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import Row
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork

_PAUSE_SECONDS: Final = 1.0
"""How long no new connection is tried after one was lost or refused."""

_ANSWER_SECONDS: Final = BUSY_SECONDS
"""A connection without an answer for this long counts as lost: every query waits for the answer to the first."""


class Answer(NamedTuple):
    """The result of an operation."""

    result: Any


class Encoded(NamedTuple):
    """An encoded query: the name of its prepared statement, and its values."""

    name: bytes
    values: Sequence[pq.abc.Buffer | None]
    formats: Sequence[pq.Format]


_MOST_ENCODED: Final = 1_000
"""The most encoded queries that are cached: most queries are repeated."""

_Waiting = asyncio.Future[Sequence[Row] | None]


class PipelinedReader:
    """Runs operations of one query over its own connection, without a thread.

    An operation runs once to capture its query, and again with the query's rows. The first operation starts connecting.
    A reader in a thread must run the operation where there is no connection, where the operation is not one query
    with plain values, and where an answer takes longer than five to ten seconds.

    Args:
        conninfo: How to connect.
        types: The type of each column.
        home: The database that is read; None if that is not known.
    """

    def __init__(self, conninfo: str, types: Types, *, home: DatabaseHome | None = None) -> None:
        self._conninfo = conninfo
        self._home = home
        self._loop = asyncio.get_running_loop()
        self._backend = SingleQueryBackend(types)
        self._rows = UnitOfWork(self._backend, read_only=True)
        self._transaction = Transaction(self._rows)
        self._connection: PostgresConnection | None = None
        # The library forgets it with the connection.
        self._socket = -1
        self._prepared: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self._encoded: dict[CapturedQuery, Encoded] = {}
        self._unsent: dict[CapturedQuery, list[_Waiting]] = {}
        self._sent: deque[list[_Waiting]] = deque()
        self._found: pq.abc.PGresult | None = None
        self._watched: list[_Waiting] | None = None
        self._connects = self._closed = False
        self._not_before = 0.0

    @property
    def connected(self) -> bool:
        """Whether it has a connection."""
        return self._connection is not None

    async def run(self, operation: OneQuery[Any]) -> Answer | None:
        """Run an operation; return None where a reader has to."""
        if self._connection is None:
            self._connect()
            return None
        query = self._capture_query(operation)
        if query is None:
            return None
        waiting: _Waiting = self._loop.create_future()
        first = not self._unsent
        self._unsent.setdefault(query, []).append(waiting)
        if not self._sent:
            self._send()
        elif first:
            # While another answer is awaited, equal queries of one turn of the loop share one answer.
            self._loop.call_soon(self._send)
        with threads.waiting_outside():
            rows = await waiting
        return None if rows is None else self._finish(operation, query, rows)

    def close(self) -> None:
        """Disconnect for good; operations that still wait return None."""
        self._closed = True
        self._drop()

    def _capture_query(self, operation: OneQuery[Any]) -> CapturedQuery | None:
        self._backend.answered = self._backend.captured = None
        # A reader raises any other error of the operation.
        with suppress(QueryCaptured, Exception):
            operation(self._transaction)
        return self._backend.captured

    def _finish(self, operation: OneQuery[Any], query: CapturedQuery, rows: Sequence[Row]) -> Answer | None:
        self._backend.answered = (query, rows)
        try:
            return Answer(operation(self._transaction))
        except QueryCaptured:
            return None
        finally:
            # The next operation must query again. An operation without an answer has cached nothing.
            self._rows.forget()

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, {}
        for query, waiting in unsent.items():
            if self._connection is None or not self._send_one(self._connection, query):
                _give(waiting, None)
            else:
                self._sent.append(waiting)
        self._flush()
        if self._watched is None:
            self._watch()

    def _send_one(self, connection: PostgresConnection, query: CapturedQuery) -> bool:
        """Send a query; return False if the driver cannot encode its values."""
        try:
            encoded = self._encoded.get(query) or self._encode(connection, query)
            if encoded is None:
                return False
            connection.pgconn.send_query_prepared(*encoded)
            connection.pgconn.pipeline_sync()
        except psycopg.Error:
            self._drop()
            return False
        return True

    def _encode(self, connection: PostgresConnection, query: CapturedQuery) -> Encoded | None:
        """Prepare a query's statement and encode the query; return None if the driver cannot encode its values."""
        transformer = Transformer(connection)
        given = [list(value) if isinstance(value, tuple) else value for value in query.values]
        try:
            values = transformer.dump_sequence(given, [PyFormat.AUTO] * len(given))
        except (psycopg.Error, ValueError):  # the latter for half of a pair of surrogates
            return None
        types = tuple(transformer.types or ())
        name = self._prepared.get((query.statement, types))
        if name is None:
            name = b"query_%d" % len(self._prepared)
            connection.pgconn.send_prepare(name, query.statement.encode(), types)
            self._prepared[query.statement, types] = name
        if len(self._encoded) >= _MOST_ENCODED:
            self._encoded.clear()
        encoded = self._encoded[query] = Encoded(name, values, list(transformer.formats or ()))
        return encoded

    def _flush(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            more = connection.pgconn.flush()
        except psycopg.Error:
            self._drop()
            return
        if more:
            self._loop.add_writer(self._socket, self._flush)
        else:
            self._loop.remove_writer(self._socket)

    def _receive(self) -> None:
        connection = self._connection
        if connection is None:
            return
        pgconn = connection.pgconn
        try:
            pgconn.consume_input()
            while self._sent and not pgconn.is_busy():
                result = pgconn.get_result()
                # None stands between the results of one query.
                if result is None:
                    continue
                if result.status == pq.ExecStatus.PIPELINE_SYNC:
                    found, self._found = self._found, None
                    rows = None if found is None else _rows_of(connection, found)
                    _give(self._sent.popleft(), rows)
                elif result.status == pq.ExecStatus.TUPLES_OK:
                    self._found = result
                elif result.status != pq.ExecStatus.COMMAND_OK:
                    # A reader raises the error; prepared statements may have become invalid.
                    self._drop()
                    return
        except psycopg.Error:
            self._drop()

    def _watch(self) -> None:
        """Look after a while whether the first of the answers that are awaited has come."""
        self._watched = self._sent[0] if self._sent else None
        if self._watched is not None:
            self._loop.call_later(_ANSWER_SECONDS, self._look)

    def _look(self) -> None:
        # The answer may be here: some loops look at their clocks before they look at what has arrived.
        self._receive()
        if self._sent and self._sent[0] is self._watched:
            self._drop()
        self._watch()

    def _connect(self) -> None:
        if self._connects or self._closed or self._loop.time() < self._not_before:
            return
        self._connects = True
        thread = threading.Thread(target=self._connect_in_thread, name="outreach-postgres-pipelined", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the process may have no more threads
            self._connected(None)

    def _connect_in_thread(self) -> None:
        connection = None
        with suppress(psycopg.Error, OSError):
            connection = connect(self._conninfo)
            configure(connection, home=self._home)
            connection.pgconn.nonblocking = 1
            connection.pgconn.enter_pipeline_mode()
        try:
            self._loop.call_soon_threadsafe(self._connected, connection)
        except RuntimeError:  # the loop was closed
            _close(connection)

    def _connected(self, connection: PostgresConnection | None) -> None:
        self._connects = False
        self._not_before = self._loop.time() + _PAUSE_SECONDS
        if connection is None or self._closed or connection.pgconn.pipeline_status != pq.PipelineStatus.ON:
            _close(connection)
            return
        try:
            self._loop.add_reader(connection.pgconn.socket, self._receive)
        except NotImplementedError:  # a loop that cannot wait for a socket of a library
            self._closed = True
            _close(connection)
            return
        self._connection, self._socket = connection, connection.pgconn.socket

    def _drop(self) -> None:
        """Close the connection; operations that wait for an answer return None, and a reader runs them."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._not_before = self._loop.time() + _PAUSE_SECONDS
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            _close(connection)
        self._prepared.clear()
        self._encoded.clear()
        self._found = None
        while self._sent:
            _give(self._sent.popleft(), None)


def _rows_of(connection: PostgresConnection, result: pq.abc.PGresult) -> Sequence[Row] | None:
    """Return an answer's rows; None if the driver cannot read them. A reader raises the error."""
    transformer = Transformer(connection)
    transformer.set_pgresult(result)
    try:
        return transformer.load_rows(0, result.ntuples, tuple)
    except (psycopg.Error, ValueError):
        return None


def _give(waiting: Sequence[_Waiting], rows: Sequence[Row] | None) -> None:
    for one in waiting:
        if not one.done():
            one.set_result(rows)


def _close(connection: PostgresConnection | None) -> None:
    if connection is not None:
        with suppress(psycopg.Error):
            connection.pgconn.finish()
