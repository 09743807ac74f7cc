"""The named queries: one file an aggregate, read once.

A query begins with a line `-- name --`, followed by a comment that gives its reason. Nothing else in the
package holds SQL, and no query is put together at run time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType

_HEADER = re.compile(r"^-- (\w+) --$", re.MULTILINE)


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
        queries[name] = body.strip()
    return MappingProxyType(queries)
