"""Writing transactions: their fences, and finding out what came of a commit whose answer was lost.

A transaction takes the fence of each workspace that it writes in, or the one of all, before it reads anything. A fence
is an advisory lock. Transactions that share no workspace have no rows in common, but for three things, which
`docs/delivery-contract.md` needs in the order of the commits, or across workspaces:

- change numbers and the numbers of the trail: drawn under one more lock, together with the COMMIT, so that it is held
  for little more than the writing of the log. PostgreSQL takes a lock of its own as late, and as long, for NOTIFY;
- the identifier of an answer, which another workspace's request may have: looked for again under that lock;
- what is written for all workspaces, such as leases: by transactions that take the fence of all.
"""

from __future__ import annotations

import hashlib
import logging
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple, cast

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from outreach.errors import StorageError
from outreach.models.work import RESTORED, STATE
from outreach.storage.base.writer import CommitUnknown, Job
from outreach.storage.postgres.backend import TAKE_NUMBERS, Session
from outreach.storage.postgres.connect import (
    BUSY_SECONDS,
    FENCE_KEY,
    LONGEST_SECONDS,
    PostgresConnection,
)
from outreach.storage.postgres.errors import (
    as_caller_error,
    first_line,
    is_busy,
    is_passing,
    is_row_error,
    translate,
)
from outreach.storage.postgres.pool import Pool
from outreach.storage.unit_of_work.kinds import ALL_WORKSPACES, everything_changed
from outreach.storage.unit_of_work.unit_of_work import RollbackRequired

FIND_OUT_SECONDS: Final = 30.0
"""How long the outcome of a commit is looked for; the server ends idle transactions long before."""

_PAUSE_SECONDS: Final = 0.1

_NO_ROW_AFTER_SECONDS: Final = 43_200.0
"""After this long without a write a missing row of `writers` is no sign of a loss: rows are deleted after a day."""

_MAX_KNOWN: Final = 1_000
"""Workspaces whose rows are kept between transactions; a transaction for all compares the counts of all of them."""

_log = logging.getLogger("outreach")


_FOREIGN: Final = " foreign"
"""Ends the writer where the row before it was not written by the transaction that it named."""

# `xmin` is the number of the transaction that wrote a row, modulo 2 ** 32; VACUUM FULL and pg_upgrade keep it.
_IS_FOREIGN: Final = """
    split_part(writer, ' ', 2) <> '' AND (split_part(writer, ' ', 2)::numeric % 4294967296)::text <> xmin::text
"""

# The values in these texts are constants, integers, or a random number in hexadecimal. Locks are taken in the order of
# the rows; the statements after that see everything that was committed during the wait.
_BEGIN: Final = """BEGIN;
    SELECT pg_advisory_xact_lock_shared({fence})
    UNION ALL SELECT pg_advisory_xact_lock(key) FROM unnest('{{{keys}}}'::bigint[]) AS key;
    SELECT version, {is_foreign} FROM fence WHERE id = 1;
    INSERT INTO workspace_versions SELECT key, 1 FROM unnest('{{{keys}}}'::bigint[]) AS key
    ON CONFLICT (key) DO UPDATE SET version = workspace_versions.version + 1 RETURNING key, version - 1;
"""

# The new values are computed from the row as it was.
_BEGIN_FOR_ALL: Final = """BEGIN;
    SELECT pg_advisory_xact_lock({fence});
    UPDATE fence SET
        version = version + 1,
        writer = '{writer} ' || pg_current_xact_id() || CASE WHEN {is_foreign} THEN '{foreign}' ELSE '' END
    WHERE id = 1 RETURNING version, writer LIKE '%{foreign}';
    SELECT key, version FROM workspace_versions WHERE key = ANY ('{{{keys}}}');
"""

_COUNT: Final = """
    INSERT INTO writers AS mine (writer, transactions, last_at) VALUES ('{writer}', {number}, now())
    ON CONFLICT (writer) DO UPDATE SET
        before = mine.transactions, transactions = excluded.transactions, last_at = excluded.last_at
    RETURNING before, EXTRACT(EPOCH FROM last_at)::float8
"""

# The count is that of the latest commit, also of one after this statement began.
_COVER: Final = """
    INSERT INTO workspace_versions
    SELECT key, 1 FROM unnest(%s::bigint[]) AS key WHERE pg_try_advisory_xact_lock(key)
    ON CONFLICT (key) DO UPDATE SET version = workspace_versions.version + 1 RETURNING key, version - 1
"""

_TRY_FENCE: Final = f"SELECT pg_try_advisory_xact_lock_shared({FENCE_KEY})"

_VERSIONS: Final = "SELECT key, version FROM workspace_versions WHERE key = ANY (%s)"

_REFUSE_TAKEN_ANSWERS: Final = "SELECT refuse_taken_answers(%s::text[], %s::text[], %s::text[])"

_FORGET_ENDED_WRITERS: Final = "DELETE FROM writers WHERE last_at < now() - interval '1 day'"

# While the transaction goes on, it holds the fence of all, or shares it. A server that cannot be written may lag.
_LOOK: Final = """BEGIN;
    SELECT pg_advisory_xact_lock({fence});
    SELECT FROM fence WHERE id = 1 FOR UPDATE;
    SELECT transactions FROM writers WHERE writer = '{writer}'
"""

# The driver takes a statement for prepared, for as long as the connection lasts, that the server has skipped after an
# error in a pipeline. It forgets all that it has prepared after a rollback, but only one that it prepares for the first
# time: nothing else may run this text.
_ROLL_BACK: Final = "ROLLBACK TRANSACTION"

_MARK_RESTORED: Final = "UPDATE home SET host = split_part(host, %(state)s, 1) || %(state)s || %(restored)s"


_MISSING: Final = "the row of the table fence is missing: restore all rows of the schema"


class FenceMissing(psycopg.InternalError):
    """The fence's row is missing, such as during a restore: a transaction that waited for it sees no new row."""


def keys_of(workspace_ids: Iterable[str]) -> Sequence[int]:
    """Return the keys of the fences of workspaces, in the order in which they are taken."""
    return sorted({fence_key(one) for one in workspace_ids})


@lru_cache(maxsize=10_000)
def fence_key(workspace_id: str) -> int:
    """Return the key of a workspace's fence, a hash of 64 bits."""
    written = workspace_id.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(written, digest_size=8).digest(), signed=True)


class _Taken(NamedTuple):
    """The counts that a transaction reads once it has its fences.

    Attributes:
        version: The count of transactions for all workspaces.
        is_foreign: Whether anything else has written it.
        versions: The counts of workspaces, by the key of their fences.
        transactions: How many transactions of this process have been committed; None without its row.
        at: When it began by the server's clock, in seconds.
    """

    version: int
    is_foreign: bool
    versions: Mapping[int, int]
    transactions: int | None
    at: float


class FencedTransactions:
    """Transactions that take fences first, so that those that share a workspace run one after the other.

    The row `fence` counts the transactions for all workspaces, and `workspace_versions` those of each: where a count is
    as this process has left it, no other one has written there since, and its cached rows are still true. A server that
    has taken over may have lost transactions, and given their numbers to others: the counts say nothing over a
    connection that is newer than the last transaction, or to another server.

    A process counts its transactions in a row of its own. By that, one whose commit got no answer is found, and a
    server that has lost some.

    The row `fence` names the transaction that wrote it. Where another one wrote it, the rows were restored into tables
    that were there, or come by replication: the database is marked, and the next worker pauses what runs
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
        self._last_timeline, self._last_at = "", float("-inf")
        self._number = self._last_number = 0
        # By the server's clock: the one of this machine stands still while it is suspended.
        self._counted_at = self._last_counted_at = float("-inf")
        # The workspaces whose fences the transaction has; None for all.
        self._workspace_ids: set[str] | None = None
        self._fence_is_busy = False
        self._version = 0
        self._versions: dict[str, int] = {}
        self._ends = self._gives_up_at = float("inf")

    def end(self) -> None:
        """Run nothing again any more: the storage is closing."""
        self._ends = time.monotonic()

    def begin(self, workspace_ids: frozenset[str] | None = None) -> None:
        """Begin a transaction by taking fences.

        Args:
            workspace_ids: The workspaces that it writes in; None for all.

        Raises:
            FenceMissing: The row of the fence is not there now.
            psycopg.Error: The database cannot be used.
        """
        connection = self._connection = self._pool.getconn()
        self._session.backend.connection = connection
        connection.longest_seconds = LONGEST_SECONDS
        self._number += 1
        taken = self._take(connection, workspace_ids)
        if taken.is_foreign and workspace_ids is not None:
            # Only a transaction for all may mark the database.
            connection.execute("ROLLBACK")
            workspace_ids = None
            taken = self._take(connection, None)
        self._workspace_ids = None if workspace_ids is None else set(workspace_ids)
        if self._number == 1:
            connection.execute(_FORGET_ENDED_WRITERS)
        if taken.is_foreign:
            connection.execute(_MARK_RESTORED, {"state": STATE, "restored": RESTORED})
        has_lost, self._counted_at = self._has_lost(taken), taken.at
        same_server = connection.timeline == self._last_timeline and connection.made_at <= self._last_at
        if self._last_timeline not in {"", connection.timeline} or has_lost:
            self.server_changes, self._last_timeline = self.server_changes + 1, connection.timeline
        expected, self._version = self._version + (workspace_ids is None), taken.version
        is_unknown = has_lost or taken.is_foreign or not same_server or taken.version != expected
        self._note_changes(workspace_ids, taken.versions, is_unknown=is_unknown)

    def _take(self, connection: PostgresConnection, workspace_ids: frozenset[str] | None) -> _Taken:
        """Begin, take fences, and read the counts of transactions."""
        compared = self._versions if workspace_ids is None else workspace_ids
        texts = {
            "fence": FENCE_KEY,
            "keys": ",".join(map(str, keys_of(compared))),
            "is_foreign": _IS_FOREIGN,
            "foreign": _FOREIGN,
            "writer": self._writer,
            "number": self._number,
        }
        begin = _BEGIN_FOR_ALL if workspace_ids is None else _BEGIN
        self._fence_is_busy = False
        try:
            cursor = connection.execute((begin + _COUNT).format(**texts))
        except errors.LockNotAvailable:
            # The error does not name the lock.
            connection.execute("ROLLBACK")
            self._fence_is_busy = connection.execute(_TRY_FENCE).fetchone() == (False,)
            raise
        results = []
        while cursor.nextset():
            results.append(cursor.fetchall() if cursor.description is not None else [])
        _, fence, versions, [(transactions, at)] = results
        if not fence:
            raise FenceMissing(_MISSING)
        [(version, is_foreign)] = fence
        return _Taken(version, is_foreign, dict(versions), transactions, at)

    def _note_changes(
        self, workspace_ids: frozenset[str] | None, versions: Mapping[int, int], *, is_unknown: bool
    ) -> None:
        """Note the counts of workspaces, and which rows others may have changed; all of them if that is unknown."""
        if is_unknown or len(self._versions) > _MAX_KNOWN:
            self._versions.clear()
        changed = self._compare(self._versions if workspace_ids is None else workspace_ids, versions)
        if is_unknown:
            self._session.backend.changed = everything_changed
        elif workspace_ids is not None:
            self._session.backend.changed = changed.__contains__ if changed else None
        else:
            # Rows are known, too, of workspaces whose counts are not.
            unchanged = {ALL_WORKSPACES, *self._versions} - changed
            self._session.backend.changed = lambda one: one not in unchanged

    def _compare(self, workspace_ids: Iterable[str], versions: Mapping[int, int]) -> set[str]:
        """Note the counts of workspaces; return those whose count is not as this process has left it."""
        changed = set()
        for one in list(workspace_ids):
            version = versions.get(fence_key(one), 0)
            if self._versions.get(one) != version:
                changed.add(one)
                self._versions[one] = version
        return changed

    def _has_lost(self, taken: _Taken) -> bool:
        """Return whether the database has lost transactions of this process, and report them once."""
        found = taken.transactions
        if found is None and taken.at - self._last_counted_at > _NO_ROW_AFTER_SECONDS:
            # Its row may have been deleted.
            return False
        lost = self._last_number - (found or 0)
        if lost <= 0:
            return False
        _log.error(
            "The database has lost the last %d or more transactions: a server that did not have them has taken "
            "over, or a copy was restored. Contacts that they reached may be contacted again.",
            lost,
            extra={"action": "commits_lost"},
        )
        self._last_number = found or 0
        self._on_loss()
        return True

    def cover(self, workspace_ids: frozenset[str] | None) -> bool:
        """Take the fences of further workspaces, unless another transaction has one; return whether all are taken.

        It never waits, so no two transactions wait for each other.
        """
        if self._workspace_ids is None:
            return True
        if workspace_ids is None:
            return False
        wanted = workspace_ids - self._workspace_ids
        if not wanted:
            return True
        connection = cast("PostgresConnection", self._connection)
        versions: dict[int, int] = dict(connection.execute(_COVER, (keys_of(wanted),)).fetchall())
        covered = {one for one in wanted if fence_key(one) in versions}
        changed = self._compare(covered, versions)
        self._session.rows.forget_changed(changed.__contains__)
        if changed and self._session.rows.answers:
            # An identifier may have been stored there since it was looked for, which the commit would not find.
            return False
        self._workspace_ids |= covered
        return covered == wanted

    def commit(self) -> None:
        """Write what was kept for it, and commit; when the answer is lost, find out.

        Raises:
            RollbackRequired: A row was refused.
            psycopg.Error: Nothing was written.
            CommitUnknown: It could not be found out.
        """
        connection = cast("PostgresConnection", self._connection)
        answers, uncounted = self._unseen_answers(), self._uncounted()
        backend, counts = self._session.backend, None
        try:
            if answers or uncounted or backend.is_keeping:
                with connection.pipeline():
                    if answers:
                        connection.execute(TAKE_NUMBERS)
                        connection.execute(_REFUSE_TAKEN_ANSWERS, answers)
                    backend.send_numbered()
                    counts = connection.execute(_VERSIONS, (keys_of(uncounted),)) if uncounted else None
                    cursor = connection.execute("COMMIT")
            else:
                cursor = connection.execute("COMMIT")
        except psycopg.Error as error:
            if connection.info.transaction_status == TransactionStatus.INERROR:
                # A statement before the COMMIT has failed.
                if is_row_error(error):
                    raise RollbackRequired from error
                raise
            # With any error, a server that ends the connection may have crashed after it had written.
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
            if counts is not None:
                self._compare(uncounted, dict(counts.fetchall()))
        for one in self._workspace_ids or ():
            self._versions[one] += 1
        self._last_number, self._last_counted_at = self._number, self._counted_at
        self._last_timeline, self._last_at = connection.timeline, time.monotonic()
        self._gives_up_at = float("inf")
        self._give_back()

    def _uncounted(self) -> Collection[str]:
        """Return the workspaces whose rows a transaction for all has cached, unless they are many."""
        if self._workspace_ids is not None:
            return ()
        found = self._session.rows.cached_workspaces() - self._versions.keys()
        return found if len(found) <= _MAX_KNOWN else ()

    def _unseen_answers(self) -> tuple[list[str], ...]:
        """Return the providers and the identifiers of answers that no other workspace had, and the own workspaces."""
        own = self._workspace_ids
        answers = [] if own is None else [name for name, having in self._session.rows.answers.items() if having <= own]
        return (*map(list, zip(*answers, strict=True)), list(own or ())) if answers else ()

    def roll_back(self) -> None:
        """Undo the transaction, if it is still there."""
        connection = self._connection
        if connection is not None and not connection.closed:
            with suppress(psycopg.Error):
                connection.execute(_ROLL_BACK, prepare=True)
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

    def fails_too(self, error: BaseException, first: Job, other: Job) -> bool:
        """Return whether another job fails too. A busy fence of workspaces fails only the jobs that need it."""
        if not is_busy(error) or self._fence_is_busy or other.workspace_ids is None:
            return True
        return first.workspace_ids is not None and not first.workspace_ids.isdisjoint(other.workspace_ids)

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
        cast("PostgresConnection", self._connection).close()
        # Readers may have all others: the pool makes a new one in its place.
        self._give_back()
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
        cursor = connection.execute(_LOOK.format(fence=FENCE_KEY, writer=self._writer))
        try:
            cursor.nextset()
            cursor.nextset()
            if not cursor.fetchall():
                raise FenceMissing(_MISSING)
            cursor.nextset()
            return cursor.fetchall() == [(self._number,)]
        finally:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
