"""The reading of a list, as JSON: the meaning of its columns, its first rows, its numbers, and their corrections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from outreach.server_support import NumberKind, read_cell
from outreach_server.lists.contacts import ContactFile
from outreach_server.lists.csv_records import Record
from outreach_server.lists.read_numbers import CellNumber, ReadNumbers, place_of

KINDS: Final = get_args(NumberKind)
"""The kinds of numbers, in the order in which they are shown."""


def list_document(contacts: ContactFile) -> Mapping[str, Any]:
    """Return how a list is read, what its columns mean, and what was corrected in its numbers."""
    return {
        "read_as": contacts.table.described,
        "notes": [*contacts.notes, *contacts.table.unread()],
        "mapping": mapping(contacts),
        "numbers": numbers_document(contacts.numbers),
        "other_columns": other_columns(contacts),
        "corrected": corrected(contacts.numbers),
        "damaged": contacts.damaged.document(),
    }


def mapping(contacts: ContactFile) -> list[dict[str, Any]]:
    """Return the document of each column: its name, what it is, and what is read from the first rows that are loaded.

    If none is, it is what the first rows hold.
    """
    columns = contacts.columns
    return [
        {
            "number": index + 1,
            "column": header,
            "is": columns.meaning(index),
            "first": [_shown_cell(contacts, record, index) for record in shown_rows(contacts)],
        }
        for index, header in enumerate(columns.headers)
    ]


def shown_rows(contacts: ContactFile) -> Sequence[Record]:
    """Return the rows that stand for a list."""
    return contacts.first_loaded or contacts.first_rows


def _shown_cell(contacts: ContactFile, record: Record, index: int) -> str:
    text = record.cells[index].strip() if index < len(record.cells) else ""
    if index != contacts.columns.phone_of(record) or not contacts.first_loaded:
        return read_cell(text)
    number = contacts.number(record)
    return text if number.phone in {None, text} else f"{text} → {number.phone}"


def numbers_document(numbers: ReadNumbers) -> dict[str, Any]:
    """Return the numbers as they will be dialled: the first ones, and all by country and kind."""
    return {
        "count": numbers.total,
        "first": [_first(row, number) for row, number in numbers.first],
        "by_country": [
            {"country": country, "count": sum(kinds.values()), **{kind: kinds[kind] for kind in KINDS}}
            for country, kinds in by_country(numbers)
        ],
    }


def _first(row: int, number: CellNumber) -> dict[str, Any]:
    country, kind = place_of(number.phone or "")
    return {"row": row, "cell": number.cell, "phone": number.phone, "country": country, "kind": kind}


def corrected(numbers: ReadNumbers) -> list[dict[str, Any]]:
    """Return what was done to how many numbers, with the first of each kind; the most frequent first."""
    return [
        {"what": one.what, "count": one.count, "row": one.row, "before": one.before, "after": one.after}
        for one in numbers.by_frequency()
    ]


def other_columns(contacts: ContactFile) -> list[dict[str, Any]]:
    """Return how many numbers are from another column than the phone column, with the first row."""
    headers = contacts.columns.headers
    return [
        {"column": headers[at], "count": count, "row": row}
        for at, (count, row) in sorted(contacts.from_other_columns.items())
    ]


def by_country(numbers: ReadNumbers) -> list[tuple[str | None, Counter[NumberKind]]]:
    """Return how many numbers of each kind a country has, the country with the most first."""
    found: dict[str | None, Counter[NumberKind]] = {}
    for (country, kind), count in numbers.places.items():
        found.setdefault(country, Counter())[kind] += count
    return sorted(found.items(), key=lambda one: (-one[1].total(), one[0] or ""))
