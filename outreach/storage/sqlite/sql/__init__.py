"""The named queries: one file an aggregate, read once.

A query begins with a line `-- name --`, followed by a comment that gives its reason. Only the plain reading and writing
of rows by their key is put together from the models' fields (`sqlite.backend`); `{recipients}` in a query stands for
the columns of that table in the order in which rows are read, `{trail_places}` for as many values.
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
    """Return the query that goes by a name such as `campaigns.leftovers`.

    Raises:
        KeyError: There is none.
    """
    aggregate, _, query = name.partition(".")
    return load(aggregate)[query]


@cache
def load(aggregate: str) -> Mapping[str, str]:
    """Return the queries of one file by their names.

    Raises:
        ValueError: The file holds a name twice.
    """
    text = resources.files(__name__).joinpath(f"{aggregate}.sql").read_text(encoding="utf-8")
    return parse(text)


def parse(text: str) -> Mapping[str, str]:
    """Return the queries that a text holds by their names.

    Raises:
        ValueError: A name is there twice, or a query has no comment.
    """
    queries: dict[str, str] = {}
    _, *parts = _HEADER.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if name in queries:
            raise ValueError(f"The query {name!r} is there twice.")
        if not body.lstrip().startswith("--"):
            raise ValueError(f"The query {name!r} has no comment that says what it is for.")
        queries[name] = re.sub(r"\{(\w+)\}", lambda found: _COLUMNS[found[1]], body.strip())
    return MappingProxyType(queries)
