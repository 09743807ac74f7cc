"""References that PostgreSQL's triggers hold instead of foreign keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from outreach.core.clock import SystemClock
from outreach.storage.postgres import postgres_storage_from_url
from tests import postgres
from tests.storage.sqlite_support import set_up

Connection = psycopg.Connection[tuple[Any, ...]]

pytestmark = pytest.mark.anyio


async def test_a_recipient_belongs_to_a_campaign_that_is_there() -> None:
    """A statement with one row too many writes none; a campaign with recipients stays; without them it can go."""
    url = postgres.empty_database()
    async with postgres_storage_from_url(url, clock=SystemClock()) as storage:
        await storage.write(lambda tx: set_up(tx, recipients=2))
    with psycopg.connect(url, autocommit=True, options="-c search_path=outreach") as connection:
        [(number,)] = connection.execute("SELECT number FROM campaigns").fetchall()
        with pytest.raises(psycopg.errors.ForeignKeyViolation, match=f"refer to campaign {number + 1}"):
            insert(connection, [number, number + 1])
        with pytest.raises(psycopg.errors.ForeignKeyViolation, match=f"refer to campaign {number + 1}"):
            copy_in(connection, [number, number + 1])
        assert connection.execute("SELECT count(*) FROM recipients").fetchall() == [(2,)]
        with pytest.raises(psycopg.errors.ForeignKeyViolation, match=f"recipients refer to campaign {number}"):
            connection.execute("DELETE FROM campaigns")
        connection.execute("DELETE FROM recipients")
        connection.execute("DELETE FROM campaigns")
        assert connection.execute("SELECT count(*) FROM campaigns").fetchall() == [(0,)]


def insert(connection: Connection, numbers: Sequence[int]) -> None:
    """Insert a recipient of each of these campaigns."""
    connection.execute(
        "INSERT INTO recipients (campaign_number, position, phone_number, status) "
        "SELECT number, 7, 'x', 'pending' FROM unnest(%s::bigint[]) AS given (number)",
        (list(numbers),),
    )


def copy_in(connection: Connection, numbers: Sequence[int]) -> None:
    """Copy in a recipient of each of these campaigns, as loading does."""
    statement = "COPY recipients (campaign_number, position, phone_number, status) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for number in numbers:
            copy.write_row((number, 8, "x", "pending"))
