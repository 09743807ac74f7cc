"""Files of named queries.

A query begins with a line `-- name --` and a comment with its reason. A word in braces stands for a text that the
storage gives, such as the columns of a table in the order of a row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType
from typing import Final

_HEADER: Final = re.compile(r"^-- (\w+) --$", re.MULTILINE)


def read_queries(package: str, aggregate: str, macros: Mapping[str, str]) -> Mapping[str, str]:
    """Return the queries of one file of a package by their names."""
    return parse(resources.files(package).joinpath(f"{aggregate}.sql").read_text(encoding="utf-8"), macros)


def parse(text: str, macros: Mapping[str, str]) -> Mapping[str, str]:
    """Return the queries of a text by their names; raise `ValueError` for a repeated name or a missing comment."""
    queries: dict[str, str] = {}
    _, *parts = _HEADER.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if name in queries:
            raise ValueError(f"The query {name!r} is there twice.")
        if not body.lstrip().startswith("--"):
            raise ValueError(f"The query {name!r} has no comment that says what it is for.")
        queries[name] = re.sub(r"\{(\w+)\}", lambda found: macros[found[1]], body.strip())
    return MappingProxyType(queries)
