"""The ledger floor: the rows that a run of the engine wrote, written by `executemany` in groups.

Told: `before` and `after`, two states of the file of that run; `database`, a file that is not there yet; `units`, how
many messages or receipts lie between the two; `group`, how many of them share a transaction; `unit`, what they are;
`without`, indexes that are dropped first. With `writes`, a file in which that run's writes were noted, all of them are
made, in their order: an intent before its outcome. Otherwise each row is written once, as it was in the end.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

from benchmarks.ledger import apply, assert_same, changes, copy, drop_indexes, drop_triggers, opened, size_of
from benchmarks.sides.telling import tell, told
from benchmarks.writes import recorded, replay


def main() -> None:
    """Write them, and check that the same rows are there then."""
    arguments = told()
    before, after, database = (Path(arguments[name]) for name in ("before", "after", "database"))
    copy(before, database)
    drop_triggers(database)
    drop_indexes(database, arguments["without"])
    size = size_of(database)
    units, noted = arguments["units"], arguments.get("writes")
    parts = math.ceil(units / arguments["group"])
    todo = [] if noted else changes(before, after)
    writes = recorded(Path(noted)) if noted else []
    if noted:
        parts *= 2  # intents and outcomes are committed apart
    with opened(database) as connection:
        begun, computing = time.perf_counter(), time.process_time()
        for part in range(parts):
            if noted:
                replay(connection, writes, part, parts)
            else:
                apply(connection, todo, part, parts)
        seconds, used = time.perf_counter() - begun, time.process_time() - computing
    assert_same(database, after)
    unit = arguments["unit"]
    rows = sum(change.rows for change in todo) + len(writes)
    tell(
        {
            f"{unit}s a second": units / seconds,
            f"CPU ms a {unit}": used / units * 1000,
            f"bytes a {unit}": (size_of(database) - size) / units,
            "rows": rows,
        }
    )


if __name__ == "__main__":
    main()
