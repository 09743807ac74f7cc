from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable

import aiosqlite
import pytest

from outreach.storage.sqlite import thread

pytestmark = pytest.mark.anyio


async def test_functions_get_the_raw_connection_in_its_thread() -> None:
    """A function is given sqlite3's own connection, in a thread that is not the loop's."""
    async with aiosqlite.connect(":memory:") as connection:
        kind, name = await thread.call(connection, lambda raw: (type(raw), threading.current_thread().name))
    assert kind is sqlite3.Connection
    assert name != threading.current_thread().name


async def test_functions_run_in_the_order_in_which_they_were_posted() -> None:
    """What is posted runs before what is called afterwards."""
    ran: list[int] = []

    def appending(number: int) -> Callable[[sqlite3.Connection], None]:
        return lambda _: ran.append(number)

    async with aiosqlite.connect(":memory:") as connection:
        for number in range(5):
            thread.post(connection, appending(number))
        await thread.call(connection, appending(5))
    assert ran == [0, 1, 2, 3, 4, 5]


async def test_what_a_called_function_raises_is_raised() -> None:
    """The error of a function that is waited for is the caller's."""
    async with aiosqlite.connect(":memory:") as connection:
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await thread.call(connection, lambda raw: raw.execute("SELECT * FROM absent"))


async def test_a_posted_function_runs_before_the_connection_closes() -> None:
    """Closing waits for what was posted."""
    ran = []
    async with aiosqlite.connect(":memory:") as connection:
        thread.post(connection, lambda raw: ran.append(raw.execute("SELECT 1").fetchone()))
    assert ran == [(1,)]
