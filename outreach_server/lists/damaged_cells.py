"""The cells of a list whose characters an earlier program damaged; they are loaded as they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import attrs

from outreach.server_support import REPLACED, decoded_once
from outreach_server.words import plural, shortened, visible

FIRST: Final = 3
"""The rows that are shown of each kind."""

_MAX_SHOWN: Final = 40

Damage = Literal["replaced", "encoded_twice"]

_WORDS: Final[dict[Damage, tuple[str, str]]] = {
    "replaced": (
        f"characters that were lost before this file was written ({REPLACED})",
        "Write the file anew from its source, as UTF-8",
    ),
    "encoded_twice": (
        "text that was probably encoded twice",
        "Where that is so, write the file anew from its source, as UTF-8",
    ),
}


@attrs.define(kw_only=True)
class DamagedRows:
    """The rows with one kind of damage.

    Attributes:
        count: How many.
        first: The first ones: the row, the column, the cell, and what it probably was.
    """

    count: int = 0
    first: list[dict[str, Any]] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class DamagedCells:
    """The damage in the rows that were loaded so far, by its kind."""

    rows: dict[Damage, DamagedRows] = attrs.field(factory=dict)

    def count(self, row: int, cells: Iterable[tuple[str, str]]) -> None:
        """Count a row by its cells, each after the name of its column."""
        seen: set[Damage] = set()
        for column, text in cells:
            if text.isascii():
                continue
            if REPLACED in text:
                self._note("replaced", seen, row, column, text, None)
            if (probably := decoded_once(text)) is not None:
                self._note("encoded_twice", seen, row, column, text, probably)

    def _note(self, damage: Damage, seen: set[Damage], row: int, column: str, text: str, probably: str | None) -> None:
        if damage in seen:
            return
        seen.add(damage)
        found = self.rows.setdefault(damage, DamagedRows())
        found.count += 1
        if len(found.first) < FIRST:
            found.first.append({"row": row, "column": column, "cell": text, "probably": probably})

    def document(self) -> list[dict[str, Any]]:
        """Return how many rows have each kind of damage, and the first of them."""
        return [{"what": what, "rows": found.count, "first": found.first} for what, found in self.rows.items()]

    def warnings(self) -> list[str]:
        """Return for people what is damaged, and what to do."""
        return [_warning(what, found) for what, found in self.rows.items()]


def _warning(damage: Damage, found: DamagedRows) -> str:
    what, advice = _WORDS[damage]
    many = plural(found.count, "row has", "rows have")
    examples = "; ".join(_example(one) for one in found.first) + ("; …" if found.count > len(found.first) else "")
    return f"{many} {what}: {examples}. {advice}: cells are loaded as they are."


def _example(one: dict[str, Any]) -> str:
    probably = "" if one["probably"] is None else f", probably {_short(one['probably'])}"
    return f"row {one['row']}, {visible(str(one['column']))} {_short(one['cell'])}{probably}"


def _short(text: object) -> str:
    return repr(visible(shortened(str(text), _MAX_SHOWN)))
