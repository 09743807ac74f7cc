"""The named queries in PostgreSQL's dialect: the same names, parameters and columns as SQLite's.

In a query `{recipients}` stands for that table's columns in the order of a row. A statement that runs for many rows
takes an array for each column; `{trail_rows}` stands for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from outreach.storage.base.queries import read_queries
from outreach.working_set.kinds import ALL_KINDS, AUDIT, TRAIL

Types = Mapping[str, Mapping[str, str]]
"""The type of each column of each table, as a query writes it."""

_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)")


class Queries:
    """The queries as psycopg takes them, each file read once."""

    def __init__(self, types: Types) -> None:
        self._files: dict[str, Mapping[str, str]] = {}
        self._macros = {
            **{kind.table: ", ".join(f"{kind.table}.{name}" for name in kind.columns) for kind in ALL_KINDS},
            **{kind.table: ", ".join(kind.columns) for kind in (AUDIT, TRAIL)},
            **{f"{kind.table}_rows": arrays(types, kind.table, kind.columns) for kind in (AUDIT, TRAIL)},
            "trail_values": ", ".join(name for name in TRAIL.columns if name != "number"),
        }

    def __getitem__(self, name: str) -> str:
        """Return the query of a name such as `campaigns.leftovers`, or raise `KeyError`."""
        aggregate, _, query = name.partition(".")
        if aggregate not in self._files:
            texts = read_queries(__name__, aggregate, self._macros)
            self._files[aggregate] = {name: for_driver(text) for name, text in texts.items()}
        return self._files[aggregate][query]


def arrays(types: Types, table: str, columns: tuple[str, ...]) -> str:
    """Return the source of many rows of a table: an array of each column."""
    return f"unnest({', '.join(f'?::{types[table][name]}[]' for name in columns)})"


def for_driver(text: str) -> str:
    """Return a query with psycopg's placeholders."""
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%").replace("?", "%s"))
