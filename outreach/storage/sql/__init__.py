r"""The named queries, each once for all databases, in files by what they are about.

A query begins with a line `-- name --` and a comment with its reason. What one database lacks is left out there:

| in the text | SQLite | PostgreSQL |
|---|---|---|
| `::bigint` | left out | casts |
| `INDEXED BY name` | the index that is used | left out |

A word in braces stands for what each database has in its own way:

| word | meaning | SQLite | PostgreSQL |
|---|---|---|---|
| `{recipients}` | the table's columns in the order of a row | | |
| `{join}` | `JOIN`; SQLite reads the left side first | `CROSS JOIN` | `JOIN` |
| `{each:ids}` | rows `wanted` with a `value`, from a JSON array | `json_each` | `json_array_elements_text` |
| `{each_row:ids}` | the same for arrays in an array, with a `key` | `json_each` | `json_array_elements` |
| `{part:0}` | the first element of `wanted.value`; a text | `json_extract` | `->>` |
| `{values:ids}` | a query of the elements of a JSON array | `json_each` | `json_array_elements_text` |
| `{in} SELECT … {end}` | looks each row up by its key | `IN (…)` | `= ANY (ARRAY(…))` |
| `{not_in} SELECT … {end}` | its opposite | `NOT IN (…)` | `<> ALL (ARRAY(…))` |
| `{is}` | equal, or both null | `IS` | `IS NOT DISTINCT FROM` |
| `{row}` | the place of a row | `rowid` | `ctid` |
| `{serial}` | the number of a dispatch in the order of insertion | `rowid` | `number` |
| `{instr}(a, b)` | where the text `b` begins in `a`, literally; 0 for nowhere | `instr` | `strpos` |
| `{same:a\|b}` | equal texts of any length, found by the index of their beginnings | `=` | `left(…, 200)` too |
| `{apart}` | at the end of a subquery: it is not merged with the outer query | | `OFFSET 0` |
| `{field:name}` | a field of an early event's report, as its index has it | `json_extract` | `->>` |
| `{has_pair:a\|b}` | whether the JSON object `a` has the pair `b`, as `KEY=VALUE` | `json_each` | `json_each` |
| `{has_digits:body}` | whether bytes contain `:digits` | `instr` | `position` |
| `{private:error}` | whether a text has a blank, or seven digits in a row | `GLOB` | `~` |
| `{days_before:days}` | the moment so many days before `:now` | `strftime` | `make_interval` |
| `{milliseconds:a\|b}` | whole milliseconds from `a` to `b` | `strftime` | `extract` |

A line that ends with `-- if given` is the condition of a filter. Such a query has a name for each choice of filters:
`page` has none of them, and `page?channel,status` has both (`unit_of_work.kinds.filtered`). A query with `-- or each`
but without that filter is made for each channel, and merged in its order, for which each channel has an index.

In a file with a part `filters`, which is no query, `{filters}` stands for its conditions.

The query `list` of a resource follows from its table.

A query that differs in more than words stands beside its backend, in a file of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from importlib import resources
from itertools import combinations
from types import MappingProxyType
from typing import Final, get_args

import attrs

from outreach.models.base import Channel
from outreach.storage.unit_of_work.kinds import ALL_KINDS, AUDIT, RESOURCE_KINDS, TRAIL, filtered

_HEADER: Final = re.compile(r"^-- (\w+) --$", re.MULTILINE)
_WORD: Final = re.compile(r"\{(\w+)(?::([^{}]*))?\}")

_CONDITION: Final = re.compile(r"^(.*:(\w+).*)  -- (?:if given|or each)$", re.MULTILINE)
_EACH: Final = "  -- or each"
_PAGE: Final = "LIMIT :limit OFFSET :offset"

_COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{kind.table: ", ".join(f"{kind.table}.{name}" for name in kind.columns) for kind in ALL_KINDS},
        **{kind.table: ", ".join(kind.columns) for kind in (AUDIT, TRAIL)},
    }
)

_LIST: Final = """
-- list --
-- Those of a workspace: few, and all of them are read.
SELECT {{{table}}} FROM {table} WHERE workspace_id = :workspace_id ORDER BY created_at, id
"""
RESOURCE_LISTS: Final = {kind.table: _LIST.format(table=kind.table) for kind in RESOURCE_KINDS.values()}
"""The list of each resource's table."""


@attrs.frozen(kw_only=True)
class Dialect:
    """How a database writes the queries.

    Attributes:
        package: The package of the queries that it alone has.
        words: The text of each word; `$0` and `$1` stand for what follows the word's colon, parted by `|`.
        left_out: What is left out.
        limits_parts: Whether each part of a merged page gets a limit, without which all of its rows would be read.
    """

    package: str
    words: Mapping[str, str]
    left_out: re.Pattern[str]
    limits_parts: bool

    def load(self, aggregate: str) -> Mapping[str, str]:
        """Return the queries about one thing by their names; see `parse` for the error."""
        files = [resources.files(package).joinpath(f"{aggregate}.sql") for package in (__name__, self.package)]
        texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
        queries = dict(parse("\n".join([*texts, RESOURCE_LISTS.get(aggregate, "")])))
        # Its comment is left out.
        conditions = queries.pop("filters", "").partition("\n")[2]
        return MappingProxyType(
            {
                filtered(name, chosen): self.write(self._choose(query, chosen))
                for name, text in queries.items()
                for query in [text.replace("{filters}", conditions)]
                for chosen in _choices(query)
            }
        )

    def write(self, text: str) -> str:
        """Return a query as this database has it; raise `KeyError` for an unknown word."""
        # A word may have another one behind its colon.
        while _WORD.search(text):
            text = _WORD.sub(self._word, text)
        return self.left_out.sub("", text)

    def _choose(self, text: str, chosen: Collection[str]) -> str:
        """Return a query with the conditions of some filters."""
        if _EACH in text and "channel" not in chosen:
            text = self._merge(text)
        return _CONDITION.sub(lambda found: found[1] if found[2] in chosen else "", text)

    def _merge(self, text: str) -> str:
        """Return a query of one channel for both, in its order."""
        query, order = text.split("\nORDER BY", 1)
        parts = [query.replace(f":channel{_EACH}", f"'{channel}'") for channel in get_args(Channel)]
        if self.limits_parts and _PAGE in order:
            limited = order.replace(_PAGE, "LIMIT :limit::bigint + :offset::bigint")
            parts = [f"({part}\nORDER BY{limited})" for part in parts]
        return "\nUNION ALL\n".join(parts) + f"\nORDER BY{order}"

    def _word(self, found: re.Match[str]) -> str:
        text = self.words[found[1]] if found[1] in self.words else _COLUMNS[found[1]]
        for number, given in enumerate((found[2] or "").split("|")):
            text = text.replace(f"${number}", given)
        return text


def _choices(text: str) -> Iterator[Collection[str]]:
    """Yield each choice of a query's filters."""
    filters = sorted({found[2] for found in _CONDITION.finditer(text)})
    for count in range(len(filters) + 1):
        yield from combinations(filters, count)


def parse(text: str) -> Mapping[str, str]:
    """Return the queries of a text by their names; raise `ValueError` for a repeated name or a missing comment."""
    queries: dict[str, str] = {}
    _, *parts = _HEADER.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if name in queries:
            raise ValueError(f"The query {name!r} is there twice.")
        if not body.lstrip().startswith("--"):
            raise ValueError(f"The query {name!r} has no comment that says what it is for.")
        queries[name] = body.strip()
    return queries
