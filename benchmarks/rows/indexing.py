"""What each index costs a message: the same ledger written with all of them, and with all but one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.ledger import changes
from benchmarks.results import Results, Sample
from benchmarks.rounds import alternate
from benchmarks.rows.sending import Load
from benchmarks.settings import Settings


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    campaigns, recipients = settings.sized((200, 50), (5, 4))
    load = Load(settings=settings, campaigns=campaigns, recipients=recipients)
    settings.say(f"indexes: {load.messages:,} messages")
    noted = load.counted()
    names = indexes(Path(noted["before"]), Path(noted["after"]), rows=load.messages)
    sides: dict[str, Callable[[], Sample]] = {"outreach": load.floor_with_intents}
    sides |= {f"without {name}": partial(load.floor_with_intents, without=(name,)) for name in names}
    sides["without any"] = partial(load.floor_with_intents, without=names)
    samples = alternate(sides, settings.rounds)
    for unit in ("CPU ms a message", "bytes a message"):
        for name in list(sides)[1:]:
            results.compare(samples, name, row="indexes", case=f"{load.messages:,} messages", unit=unit)
    return results


def indexes(before: Path, after: Path, *, rows: int) -> Sequence[str]:
    """Return the indexes, beside the keys, of the tables of which so many rows differ between two states of a file."""
    written = {change.table for change in changes(before, after) if change.rows >= rows}
    with closing(sqlite3.connect(after)) as connection:
        found = connection.execute(
            "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY tbl_name, name"
        ).fetchall()
    return tuple(name for name, table in found if table in written)
