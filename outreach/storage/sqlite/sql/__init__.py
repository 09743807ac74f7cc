"""The named queries: one file for each aggregate, read once (`storage.base.queries`).

Reading and writing rows by key is generated from the models' fields (`sqlite.backend`). In a query `{recipients}`
stands for that table's columns in the order of a row, and `{trail_places}` for as many placeholders.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from outreach.storage.base.queries import read_queries
from outreach.working_set.kinds import ALL_KINDS, AUDIT, TRAIL

_COLUMNS: Final = {
    **{kind.table: ", ".join(f"{kind.table}.{name}" for name in kind.columns) for kind in ALL_KINDS},
    **{kind.table: ", ".join(kind.columns) for kind in (AUDIT, TRAIL)},
    **{f"{kind.table}_places": ", ".join("?" * len(kind.columns)) for kind in (AUDIT, TRAIL)},
}


@cache
def statement(name: str) -> str:
    """Return the query of a name such as `campaigns.leftovers`, or raise `KeyError`."""
    aggregate, _, query = name.partition(".")
    return load(aggregate)[query]


@cache
def load(aggregate: str) -> Mapping[str, str]:
    """Return the queries of one file by their names; raise `ValueError` for a repeated name."""
    return read_queries(__name__, aggregate, _COLUMNS)
