"""Captures the single query of an operation, and supplies the query's rows when the operation runs again."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from outreach.serialization.documents import Value
from outreach.storage.postgres.backend import PostgresBackend
from outreach.storage.postgres.sql import Types
from outreach.storage.unit_of_work.kinds import Kind, Row

_PLACEHOLDER: Final = re.compile(r"%(?:\(([a-z_]+)\))?s")


class CapturedQuery(NamedTuple):
    """A statement with numbered parameters, and their values; a tuple stands for an array."""

    statement: str
    values: tuple[Value | tuple[Value, ...], ...]


class QueryCaptured(BaseException):
    """Ends an operation once its query is captured; not an `Exception`, which the operation might catch."""


class SingleQueryBackend(PostgresBackend):
    """Captures the query that an operation makes, or returns its rows where they are known.

    Attributes:
        captured: The query that the operation made.
        answered: A query with its rows, once the server has returned them.
    """

    def __init__(self, types: Types) -> None:
        super().__init__(types)
        self.captured: CapturedQuery | None = None
        self.answered: tuple[CapturedQuery, Sequence[Row]] | None = None
        self._numbered: dict[str, tuple[str, Sequence[str]]] = {}

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        """Return the query's rows, or capture the query and end the operation."""
        statement, names = self._number(self._queries[name])
        return self._capture(CapturedQuery(statement, tuple(values[name] for name in names)))

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Sequence[Row]:
        """Return the query's rows, or capture the query and end the operation."""
        statement, _ = self._number(self._statement("load", kind))
        return self._capture(CapturedQuery(statement, tuple(zip(*keys, strict=True))))

    def _capture(self, query: CapturedQuery) -> Sequence[Row]:
        if self.answered is not None and self.answered[0] == query:
            return self.answered[1]
        self.captured = query
        raise QueryCaptured

    def _number(self, statement: str) -> tuple[str, Sequence[str]]:
        """Return a statement with numbered parameters, and their names in this order, which are empty without names."""
        if statement not in self._numbered:
            names: list[str] = []

            def number(found: re.Match[str]) -> str:
                if not found[1] or found[1] not in names:
                    names.append(found[1])
                    return f"${len(names)}"
                return f"${names.index(found[1]) + 1}"

            numbered = _PLACEHOLDER.sub(number, statement).replace("%%", "%")
            self._numbered[statement] = numbered, names
        return self._numbered[statement]
