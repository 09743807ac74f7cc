"""The named queries in PostgreSQL's dialect (`storage.sql`), and those that PostgreSQL alone has.

A statement that runs for many rows takes an array for each column; `{trail_rows}` stands for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from outreach.storage.sql import Dialect
from outreach.storage.unit_of_work.kinds import AUDIT, TRAIL

Types = Mapping[str, Mapping[str, str]]
"""The type of each column of each table, as a query writes it."""

_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)")

DIALECT: Final = Dialect(
    package=__name__,
    left_out=re.compile(r" INDEXED BY \w+"),
    limits_parts=True,
    words={
        "trail_values": ", ".join(name for name in TRAIL.columns if name != "number"),
        "join": "JOIN",
        "each": "json_array_elements_text(:$0::json) AS wanted (value)",
        "each_row": "json_array_elements(:$0::json) WITH ORDINALITY AS wanted (value, key)",
        "part": "(wanted.value ->> $0)",
        "values": "SELECT json_array_elements_text(:$0::json)",
        "in": "= ANY (ARRAY(",
        "not_in": "<> ALL (ARRAY(",
        "end": "))",
        "is": "IS NOT DISTINCT FROM",
        "row": "ctid",
        "serial": "number",
        "instr": "strpos",
        "same": "left($0, 200) = left($1, 200) AND $0 = $1",
        "apart": "OFFSET 0",
        "field": "report::json ->> '$0'",
        "has_pair": (
            "($0 IS NOT NULL AND EXISTS (SELECT 1 FROM json_each($0::json) AS pair WHERE $1 = pair.key || '='"
            " || (pair.value #>> '{}') AND (json_typeof(pair.value) IN ('string', 'boolean')"
            " OR pair.value::text ~ '^[-0-9]+$')))"
        ),
        "has_digits": "position(convert_to(:digits::text, 'UTF8') IN $0) > 0",
        "private": "$0 ~ ' |[0-9][0-9][0-9][0-9][0-9][0-9][0-9]'",
        "days_before": (
            "to_char((:now::timestamptz AT TIME ZONE 'UTC') - make_interval(days => $0::integer),"
            """ 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
        ),
        "milliseconds": "floor(extract(epoch FROM $1::timestamptz - $0::timestamptz) * 1000)::bigint",
    },
)


class Queries:
    """The queries as psycopg takes them, each file read once."""

    def __init__(self, types: Types) -> None:
        self._files: dict[str, Mapping[str, str]] = {}
        rows = {f"{kind.table}_rows": arrays(types, kind.table, kind.columns) for kind in (AUDIT, TRAIL)}
        self._dialect = attrs.evolve(DIALECT, words={**DIALECT.words, **rows})

    def __getitem__(self, name: str) -> str:
        """Return the query of a name such as `campaigns.leftovers`, or raise `KeyError`."""
        aggregate, _, query = name.partition(".")
        if aggregate not in self._files:
            texts = self._dialect.load(aggregate)
            self._files[aggregate] = {name: for_driver(text) for name, text in texts.items()}
        return self._files[aggregate][query]


def arrays(types: Types, table: str, columns: tuple[str, ...]) -> str:
    """Return the source of many rows of a table: an array of each column."""
    return f"unnest({', '.join(f'?::{types[table][name]}[]' for name in columns)})"


def for_driver(text: str) -> str:
    """Return a query with psycopg's placeholders."""
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%").replace("?", "%s"))
