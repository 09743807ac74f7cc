"""The named queries in SQLite's dialect (`storage.sql`), and those that SQLite alone has, each file read once.

Reading and writing rows by key is generated from the models' fields (`sqlite.backend`). `{trail_places}` stands for as
many placeholders as the table has columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from outreach.storage.sql import Dialect
from outreach.storage.unit_of_work.kinds import AUDIT, TRAIL

_EACH: Final = "json_each(:$0) AS wanted"

DIALECT: Final = Dialect(
    package=__name__,
    left_out=re.compile(r"::\w+"),
    limits_parts=False,
    words={
        **{f"{kind.table}_places": ", ".join("?" * len(kind.columns)) for kind in (AUDIT, TRAIL)},
        "join": "CROSS JOIN",
        "each": _EACH,
        "each_row": _EACH,
        "part": "json_extract(wanted.value, '$[$0]')",
        "values": "SELECT value FROM json_each(:$0)",
        "in": "IN (",
        "not_in": "NOT IN (",
        "end": ")",
        "is": "IS",
        "row": "rowid",
        "serial": "rowid",
        "instr": "instr",
        "same": "$0 = $1",
        "apart": "",
        "field": "json_extract(report, '$.$0')",
        # `value` of true is 1.
        "has_pair": (
            "($0 IS NOT NULL AND EXISTS (SELECT 1 FROM json_each($0) AS pair WHERE $1 = pair.key || '='"
            " || CASE WHEN pair.type IN ('text', 'integer') THEN pair.value"
            " WHEN pair.type IN ('true', 'false') THEN pair.type END))"
        ),
        "has_digits": "instr($0, CAST(:digits AS BLOB)) > 0",
        "private": "$0 GLOB '* *' OR $0 GLOB '*[0-9][0-9][0-9][0-9][0-9][0-9][0-9]*'",
        "days_before": "strftime('%Y-%m-%dT%H:%M:%f', :now, '-' || $0 || ' days')",
        # Stored times have six decimal places.
        "milliseconds": (
            "((strftime('%s', substr($1, 1, 19)) - strftime('%s', substr($0, 1, 19))) * 1000000"
            " + substr($1, 21, 6) - substr($0, 21, 6)) / 1000"
        ),
    },
)


@cache
def statement(name: str) -> str:
    """Return the query of a name such as `campaigns.leftovers`, or raise `KeyError`."""
    aggregate, _, query = name.partition(".")
    return load(aggregate)[query]


@cache
def load(aggregate: str) -> Mapping[str, str]:
    """Return the queries about one thing by their names, or raise `KeyError`."""
    return DIALECT.load(aggregate)
