"""The floor of creating a campaign: parse the body, structure it, normalise the numbers, one `executemany`, one commit.

Told: `body`, a file with the body of the request; `before` and `after`, two states of the engine's file between which
it has created that campaign; `table`, the engine's table of contacts; `repeats`.

The contacts that are written are those of the engine's own file, in its own table: the work before is done and thrown
away.
"""

from __future__ import annotations

import re
import statistics
import time
from pathlib import Path
from typing import Any, Final

import orjson

from benchmarks.ledger import apply, changes, copy, drop_triggers, opened
from benchmarks.sides.telling import tell, told

_SEPARATORS: Final = str.maketrans("", "", " \t-.()")
_E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")
_TEXTS: Final = ("first_name", "last_name", "email", "company")


def structured(raw: bytes) -> list[tuple[Any, ...]]:
    """Return the contacts of a body as rows, each field of its type and each number in E.164."""
    rows = []
    for contact in orjson.loads(raw)["recipients"]:
        phone = contact["phone_number"].translate(_SEPARATORS)
        texts = [contact.get(name) for name in _TEXTS]
        variables = contact.get("custom_variables") or {}
        if not _E164.fullmatch(phone) or any(type(text) is not str for text in texts) or type(variables) is not dict:
            raise ValueError(contact)
        rows.append((phone, *texts, orjson.dumps(variables).decode()))
    return rows


def main() -> None:
    """Do it so many times."""
    arguments = told()
    raw = Path(arguments["body"]).read_bytes()
    rows = len(structured(raw))
    before, after, table = Path(arguments["before"]), Path(arguments["after"]), arguments["table"]
    todo = {change.table: change for change in changes(before, after)}
    (statement, written) = todo.pop(table).inserted
    taken = []
    for number in range(arguments["repeats"]):
        database = copy(before, after.with_suffix(f".floor{number}"))
        drop_triggers(database)
        with opened(database) as connection:
            apply(connection, list(todo.values()), 0, 1)  # the campaign itself, and what else its creation wrote
            begun = time.perf_counter()
            structured(raw)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statement, written)
            connection.execute("COMMIT")
            taken.append(time.perf_counter() - begun)
        for path in database.parent.glob(f"{database.name}*"):
            path.unlink()
    tell({"ms": statistics.median(taken) * 1000, "contacts": rows})


if __name__ == "__main__":
    main()
