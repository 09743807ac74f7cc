"""Finding out the one query of an operation, and giving the operation its answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from outreach.convert.columns import Value
from outreach.storage.postgres.backend import PostgresBackend
from outreach.storage.postgres.sql import Types
from outreach.working_set.backend import Row
from outreach.working_set.kinds import Kind

_PLACEHOLDER: Final = re.compile(r"%(?:\(([a-z_]+)\))?s")


class Question(NamedTuple):
    """A statement with numbered parameters, and their values; a tuple stands for an array."""

    statement: str
    values: tuple[Value | tuple[Value, ...], ...]


class Asked(BaseException):
    """Ends an operation whose query has yet to be answered; not an `Exception`, which the operation might catch."""


class OneAnswer(PostgresBackend):
    """Notes the query that an operation makes, or gives it the answer.

    Attributes:
        asked: What the operation asked for.
        answered: A question with its answer, once it is there.
    """

    def __init__(self, types: Types) -> None:
        super().__init__(types)
        self.asked: Question | None = None
        self.answered: tuple[Question, Sequence[Row]] | None = None
        self._numbered: dict[str, tuple[str, Sequence[str]]] = {}

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        """Return the answer, or end the operation."""
        statement, names = self._number(self._queries[name])
        return self._ask(Question(statement, tuple(values[name] for name in names)))

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Sequence[Row]:
        """Return the answer, or end the operation."""
        statement, _ = self._number(self._statement("load", kind))
        return self._ask(Question(statement, tuple(zip(*keys, strict=True))))

    def _ask(self, question: Question) -> Sequence[Row]:
        if self.answered is not None and self.answered[0] == question:
            return self.answered[1]
        self.asked = question
        raise Asked

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
