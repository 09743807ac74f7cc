"""The named queries: one file for each aggregate, read once.

A query begins with a line `-- name --` and a comment with its reason. Reading and writing rows by key is generated from
the models' fields (`sqlite.backend`). In a query `{recipients}` stands for that table's columns in the order of a row,
and `{trail_places}` for as many placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final

from outreach.working_set.kinds import ALL_KINDS, AUDIT, TRAIL

_HEADER: Final = re.compile(r"^-- (\w+) --$", re.MULTILINE)

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
    text = resources.files(__name__).joinpath(f"{aggregate}.sql").read_text(encoding="utf-8")
    return parse(text)


def parse(text: str) -> Mapping[str, str]:
    """Return the queries of a text by their names; raise `ValueError` for a repeated name or a missing comment."""
    queries: dict[str, str] = {}
    _, *parts = _HEADER.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if name in queries:
            raise ValueError(f"The query {name!r} is there twice.")
        if not body.lstrip().startswith("--"):
            raise ValueError(f"The query {name!r} has no comment that says what it is for.")
        queries[name] = re.sub(r"\{(\w+)\}", lambda found: _COLUMNS[found[1]], body.strip())
    return MappingProxyType(queries)
