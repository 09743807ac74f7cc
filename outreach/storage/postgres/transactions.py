"""Writing transactions: the fence, and finding out what came of a commit whose answer was lost.

One fence serves all workspaces, also for operations `Within` some of them. A group holds it for its statements and one
sync of the disk.

Measured on two busy cores with 240 campaigns of one workspace: two workers waited for the fence for 0.35 of their time,
four for 0.56. On a database each, the most that finer fences could give, two sent 1.1 to 2 times as many messages, four
2.7 times. With a fence for each workspace, transactions would still wait for each other at `last_change` and
`trail_numbers`, whose order is that of the commits, and an answer with the identifier of another workspace's request
would have to be found by a unique index.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Final, cast

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from outreach.errors import StorageError
from outreach.models.work import RESTORED, STATE
from outreach.storage.base.writer import CommitUnknown
from outreach.storage.postgres.backend import Session
from outreach.storage.postgres.connect import BUSY_SECONDS, LONGEST_SECONDS, PostgresConnection
from outreach.storage.postgres.errors import as_caller_error, first_line, is_passing, translate
from outreach.storage.postgres.pool import Pool
from outreach.storage.unit_of_work.unit_of_work import RollbackRequired

FIND_OUT_SECONDS: Final = 30.0
"""How long the outcome of a commit is looked for; the server ends idle transactions long before."""

_PAUSE_SECONDS: Final = 0.1

_log = logging.getLogger("outreach")


_FOREIGN: Final = " foreign"
"""Ends the writer where the row before it was not written by the transaction that it named."""

# `xmin` is the number of the transaction that wrote a row, modulo 2 ** 32; VACUUM FULL and pg_upgrade keep it. What is
# assigned is computed from the row as it was.
_BEGIN: Final = """BEGIN;
    UPDATE fence SET version = version + 1, writer = '{writer} ' || pg_current_xact_id() || CASE
        WHEN split_part(writer, ' ', 2) = '' THEN ''
        WHEN (split_part(writer, ' ', 2)::numeric % 4294967296)::text = xmin::text THEN ''
        ELSE '{foreign}'
    END
    WHERE id = 1 RETURNING version, writer LIKE '%{foreign}';
    INSERT INTO writers VALUES ('{writer}', {number}, now())
    ON CONFLICT (writer) DO UPDATE SET transactions = excluded.transactions, last_at = excluded.last_at
"""

_FORGET_ENDED_WRITERS: Final = "DELETE FROM writers WHERE last_at < now() - interval '1 day'"

# While the transaction goes on, it holds the fence.
_LOOK: Final = """BEGIN;
    SELECT FROM fence WHERE id = 1 FOR UPDATE;
    SELECT transactions FROM writers WHERE writer = '{writer}'
"""

_MARK_RESTORED: Final = "UPDATE home SET host = split_part(host, %(state)s, 1) || %(state)s || %(restored)s"


_MISSING: Final = "the row of the table fence is missing: restore all rows of the schema"


class FenceMissing(psycopg.InternalError):
    """The fence's row is missing, such as during a restore: a transaction that waited for it sees no new row."""


class FencedTransactions:
    """Transactions that take the fence first, so that those of all processes run one after the other.

    The fence is one row, which counts the transactions: where the count has gone up by one, no other client has written
    since the last transaction of this process, and its cached rows are still true. A server that has taken over may
    have lost transactions, and given their numbers to others: the count says nothing over a connection that is newer
    than the last transaction, or to another server.

    A process counts its transactions in a row of its own, by which one whose commit got no answer is found.

    The fence names the transaction that wrote it. Where another one wrote it, the rows were restored into tables that
    were there, or come by replication: the database is marked, and the next worker pauses what runs
    (docs/delivery-contract.md#rule-10).

    Args:
        pool: Where connections come from.
        session: The unit of work that writes.
        on_loss: Called when the database has lost transactions.

    Attributes:
        server_changes: How often another server was found, or one that had lost transactions.
    """

    def __init__(self, pool: Pool, session: Session, *, on_loss: Callable[[], None] = lambda: None) -> None:
        self.server_changes = 0
        self._on_loss = on_loss
        self._pool = pool
        self._session = session
        self._writer = uuid.uuid4().hex
        self._connection: PostgresConnection | None = None
        self._version = self._last_version = 0
        self._last_timeline, self._last_at = "", float("-inf")
        self._number = 0
        self._ends = self._gives_up_at = float("inf")

    def end(self) -> None:
        """Run nothing again any more: the storage is closing."""
        self._ends = time.monotonic()

    def begin(self) -> None:
        """Begin a transaction by taking the fence.

        Raises:
            FenceMissing: It is not there now.
            psycopg.Error: The database cannot be used.
        """
        connection = self._connection = self._pool.getconn()
        self._session.backend.connection = connection
        connection.longest_seconds = LONGEST_SECONDS
        self._number += 1
        # A random number in hexadecimal, a constant, and an integer.
        cursor = connection.execute(_BEGIN.format(writer=self._writer, foreign=_FOREIGN, number=self._number))
        cursor.nextset()
        taken = cursor.fetchall()
        if not taken:
            raise FenceMissing(_MISSING)
        [(self._version, is_foreign)] = taken
        if self._number == 1:
            connection.execute(_FORGET_ENDED_WRITERS)
        if is_foreign:
            connection.execute(_MARK_RESTORED, {"state": STATE, "restored": RESTORED})
        same_server = connection.timeline == self._last_timeline and connection.made_at <= self._last_at
        if is_foreign or not same_server or self._version != self._last_version + 1:
            self._session.backend.known_version += 1
        if self._last_timeline not in {"", connection.timeline} or self._version <= self._last_version:
            self.server_changes, self._last_timeline = self.server_changes + 1, connection.timeline
        if self._version <= self._last_version:
            _log.error(
                "The database has lost the last %d or more transactions: a server that did not have them has taken "
                "over, or a copy was restored. Contacts that they reached may be contacted again.",
                self._last_version - self._version + 1,
                extra={"action": "commits_lost"},
            )
            # Once.
            self._last_version = 0
            self._on_loss()

    def commit(self) -> None:
        """Commit; when the answer is lost, find out.

        Raises:
            psycopg.Error: Nothing was written.
            CommitUnknown: It could not be found out.
        """
        connection = cast("PostgresConnection", self._connection)
        try:
            cursor = connection.execute("COMMIT")
        except psycopg.Error as error:
            # Whatever it says, a server that ends the connection with it may have crashed after it had written.
            if not (is_passing(error) or connection.closed):
                raise
            if not self._was_committed(error):
                raise
            _log.info(
                "A commit whose answer was lost has been found in the database.", extra={"action": "commit_found"}
            )
        else:
            if cursor.statusmessage != "COMMIT":
                raise errors.InFailedSqlTransaction("the transaction had failed before, and was undone")
        self._last_version = self._version
        self._last_timeline, self._last_at = connection.timeline, time.monotonic()
        self._gives_up_at = float("inf")
        self._give_back()

    def roll_back(self) -> None:
        """Undo the transaction, if it is still there."""
        connection = self._connection
        if connection is not None and not connection.closed:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
        self._give_back()

    def check_open(self, error: BaseException) -> None:
        """Raise if the transaction cannot go on: PostgreSQL does nothing more in one after an error."""
        connection = self._connection
        status = TransactionStatus.UNKNOWN if connection is None else connection.info.transaction_status
        if status == TransactionStatus.INTRANS:
            return
        if isinstance(error, psycopg.Error) and (is_passing(error) or status != TransactionStatus.INERROR):
            raise error
        raise RollbackRequired

    def may_run_again(self, error: BaseException) -> bool:
        """Return whether the error may pass by, for some seconds after the first; look for live connections before."""
        now = time.monotonic()
        may_pass = is_passing(error) or isinstance(error, FenceMissing)
        if not may_pass or now > self._ends:
            self._gives_up_at = float("inf")
            return False
        if self._gives_up_at == float("inf"):
            self._gives_up_at = now + BUSY_SECONDS
        elif now > self._gives_up_at:
            self._gives_up_at = float("inf")
            return False
        self._pool.find_live(error)
        time.sleep(_PAUSE_SECONDS)
        return True

    def as_caller_error(self, error: BaseException) -> BaseException:
        """Return the error for the caller."""
        return as_caller_error(error)

    def as_storage_error(self, error: BaseException) -> StorageError | None:
        """Return the driver's error translated."""
        return translate(error) if isinstance(error, psycopg.Error) else None

    def name_of(self, error: BaseException) -> str:
        """Return the name of an error's class, which for one of the server is its own name."""
        return type(error).__name__

    def _give_back(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._pool.putconn(connection)

    # ------------------------------------------------------------------------- a commit without an answer

    def _was_committed(self, lost: psycopg.Error) -> bool:
        """Return whether the present transaction was committed, or raise `CommitUnknown`."""
        until, last = time.monotonic() + FIND_OUT_SECONDS, lost
        while True:
            self._pool.find_live(last)
            try:
                with self._pool.connection() as connection:
                    return self._look(connection)
            # Any other error than a lost connection says nothing of the commit either.
            except psycopg.Error as error:
                last = error
                if time.monotonic() > min(until, self._ends + BUSY_SECONDS):
                    raise CommitUnknown(
                        "The connection to the database was lost during a commit, and the database could not be asked "
                        f"whether it was done: it may have been written. ({first_line(error)})"
                    ) from lost
            time.sleep(_PAUSE_SECONDS)

    def _look(self, connection: PostgresConnection) -> bool:
        """Return whether the present transaction was committed, once it is over."""
        cursor = connection.execute(_LOOK.format(writer=self._writer))
        try:
            cursor.nextset()
            if not cursor.fetchall():
                raise FenceMissing(_MISSING)
            cursor.nextset()
            return cursor.fetchall() == [(self._number,)]
        finally:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
