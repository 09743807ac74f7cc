"""Copying all rows of one database into another, of whatever kind."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from itertools import islice
from typing import Any, Final, Protocol

import attrs

from outreach.errors import StorageError
from outreach.models.work import COPIED_FROM, COPIED_TO, DatabaseHome
from outreach.storage.base.progress import Progress

Row = Sequence[Any]

UNFINISHED: Final = "unfinished-copy"
"""The migration that a database is recorded to have while a copy into it is unfinished, so that no process opens it."""

UNFINISHED_MESSAGE: Final = (
    "A copy into this database was not finished. Run `outreach-server db copy` from the same database again: it goes "
    "on where it ended. Or copy into another one."
)

_SLICE: Final = 5_000
"""Rows of one transaction."""

_DERIVED: Final = ("campaign_lists", "campaign_counts")
"""Tables that triggers fill while others are written; their rows are replaced at the end."""


@attrs.frozen(kw_only=True)
class Table:
    """A table that is copied.

    Attributes:
        name: Its name.
        columns: Its columns, in the order of a row here.
        key: The columns that order its rows.
        is_seeded: Whether a new database holds rows of it, which are replaced.
    """

    name: str
    columns: Sequence[str]
    key: Sequence[str]
    is_seeded: bool


class Endpoint(Protocol):
    """A database that no other process has open, from or to which rows are copied."""

    def identity(self) -> str:
        """Return the identifier given to the database at its creation, which its copies share."""
        ...

    def home(self) -> DatabaseHome | None:
        """Return where the database was when the last worker began, if one ever did; or the mark of a copy."""
        ...

    def set_home(self, home: DatabaseHome) -> None:
        """Write where the database is, or the mark of a copy."""
        ...

    def rows(self, table: Table, after: Row | None) -> Generator[Row, None, None]:
        """Return the rows of a table in the order of its key, those after a key."""
        ...

    def last_trail_number(self) -> int:
        """Return the highest number that the trail has given."""
        ...

    def transaction(self) -> AbstractContextManager[object]:
        """Run the block in a transaction."""
        ...

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Write rows."""
        ...

    def clear(self, table: Table) -> None:
        """Delete all rows of a table."""
        ...

    def copied_until(self) -> Mapping[str, Row | None] | None:
        """Return how far the unfinished copy into it has come: the last key of each table; None without one."""
        ...

    def note(self, name: str, after: Row | None) -> None:
        """Note how far a table has come; the first note makes the copy an unfinished one."""
        ...

    def finish(self, last_trail_number: int) -> None:
        """Go on with the numbers of what was copied, and remove the notes."""
        ...


def copy_rows(
    source: Endpoint, target: Endpoint, tables: Sequence[Table], progress: Progress, *, names: tuple[str, str]
) -> Mapping[str, int]:
    """Copy all rows, and compare their counts and checksums; return the counts.

    Both databases are marked, so that they do not both send: the source dispatches no more, the target starts paused.

    Args:
        source: Where from; nothing in it is changed but the mark.
        target: A new database, or one with an unfinished copy of this source.
        tables: The tables, each after those that it refers to.
        progress: Receives the progress.
        names: The names of both databases, for the marks; without passwords.

    Raises:
        StorageError: The target holds something else, or the source has changed since the copy was begun.
    """
    until = _begin(source, target, tables)
    for table in tables:
        if table.is_seeded or table.name in _DERIVED:
            continue
        _copy_table(source, target, table, until.get(table.name), progress)
        if table.name == "workspaces":
            # By their numbers the names of campaigns are indexed.
            _replace(source, target, [one for one in tables if one.name == "campaign_lists"])
    with target.transaction():
        _replace(source, target, [one for one in tables if one.is_seeded or one.name in _DERIVED])
        target.finish(source.last_trail_number())
        rows = {table.name: _compare(source, target, table, progress) for table in tables}
        target.set_home(DatabaseHome(host=COPIED_FROM, path=names[0]))
        # Before the target can be opened: a crash in between leaves a copy that goes on, never two that send.
        source.set_home(DatabaseHome(host=COPIED_TO, path=names[1]))
    return rows


def _begin(source: Endpoint, target: Endpoint, tables: Sequence[Table]) -> Mapping[str, Row | None]:
    identity = source.identity()
    until = target.copied_until()
    if until is None:
        for table in tables:
            if not table.is_seeded and _holds_any(target, table):
                home = target.home()
                if home is not None and home.copied_to is not None and target.identity() == identity:
                    raise StorageError(
                        f"The database to copy into was itself copied to {home.copied_to}, and keeps the data of that "
                        "moment. Nothing was changed. To go back, name a new file, or a database without the schema "
                        "`outreach`, and use that one from then on."
                    )
                raise StorageError("The database to copy into holds data already. Nothing was changed. Name a new one.")
        with target.transaction():
            target.note("", [identity])
        return {}
    if until.get("") != [identity]:
        raise StorageError(
            "The database to copy into holds an unfinished copy of another one. Nothing was changed. Name a new one."
        )
    return until


def _holds_any(endpoint: Endpoint, table: Table) -> bool:
    with closing(endpoint.rows(table, None)) as rows:
        return next(rows, None) is not None


def _copy_table(source: Endpoint, target: Endpoint, table: Table, after: Row | None, progress: Progress) -> None:
    count = 0
    key = [table.columns.index(name) for name in table.key]
    with closing(source.rows(table, after)) as rows:
        while batch := list(islice(rows, _SLICE)):
            with target.transaction():
                target.insert(table, batch)
                target.note(table.name, [batch[-1][index] for index in key])
            count += len(batch)
            progress.at(f"{table.name}, {count:,} rows")


def _replace(source: Endpoint, target: Endpoint, tables: Iterable[Table]) -> None:
    with target.transaction():
        for table in tables:
            target.clear(table)
            target.insert(table, list(source.rows(table, None)))


def _compare(source: Endpoint, target: Endpoint, table: Table, progress: Progress) -> int:
    """Return the number of rows of a table, which both have, or raise `StorageError`."""
    progress.at(f"comparing {table.name}")
    ours, theirs = _checksum(source, table), _checksum(target, table)
    if ours != theirs:
        raise StorageError(
            f"The rows of {table.name} are not the same in both databases ({ours[0]:,} and {theirs[0]:,}): the one "
            "that is copied has changed since the copy was begun. Copy it into a new database."
        )
    return ours[0]


def _checksum(endpoint: Endpoint, table: Table) -> tuple[int, int]:
    count, total = 0, 0
    with closing(endpoint.rows(table, None)) as rows:
        for row in rows:
            count += 1
            # The same Python values have the same form, whatever database they come from.
            total += int.from_bytes(hashlib.blake2b(repr(tuple(row)).encode(), digest_size=16).digest(), "big")
    return count, total % 2**128
