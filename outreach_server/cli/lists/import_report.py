"""What an import made of a file: the meaning of its columns, its first rows, its numbers, and what was corrected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, get_args

from rich import box
from rich.table import Table as Grid

from outreach.server_support import NumberKind, read_cell
from outreach_server.cli.documents import Document
from outreach_server.cli.lists.contacts import ContactFile
from outreach_server.cli.lists.csv_records import Record
from outreach_server.cli.lists.read_numbers import CellNumber, ReadNumbers, place_of
from outreach_server.cli.output import Listing, cell, console, listing, note

_MAX_SHOWN: Final = 30
_LEFT_OUT: Final = "left out"

_MAX_COUNTRIES: Final = 15
_KINDS: Final = get_args(NumberKind)


def mapping_table(contacts: ContactFile) -> Listing:
    """Return what each column is, with its first values, as a table for people."""
    rows = [f"row {record.row}" for record in _shown_rows(contacts)]
    documents = [
        {
            "column": document["column"] or f"(column {document['number']})",
            "is": document["is"] or _LEFT_OUT,
            **{row: _shortened(value) for row, value in zip(rows, document["first"], strict=True)},
        }
        for document in mapping(contacts)
    ]
    return listing(documents, ("column", "is", *rows))


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def mapping(contacts: ContactFile) -> list[Document]:
    """Return the document of each column: its name, what it is, and what is read from the first rows that are loaded.

    If none is, it is what the first rows hold.
    """
    columns = contacts.columns
    return [
        {
            "number": index + 1,
            "column": header,
            "is": columns.meaning(index),
            "first": [_read(contacts, record, index) for record in _shown_rows(contacts)],
        }
        for index, header in enumerate(columns.headers)
    ]


def _shown_rows(contacts: ContactFile) -> Sequence[Record]:
    return contacts.first_loaded or contacts.first_rows


def _read(contacts: ContactFile, record: Record, index: int) -> str:
    text = record.cells[index].strip() if index < len(record.cells) else ""
    if index != contacts.columns.phone_of(record) or not contacts.first_loaded:
        return read_cell(text)
    number = contacts.number(record)
    return text if number.phone in {None, text} else f"{text} → {number.phone}"


def numbers_document(numbers: ReadNumbers) -> Document:
    """Return the numbers as they will be dialled: the first ones, and all by country and kind."""
    return {
        "count": numbers.total,
        "first": [_first(row, number) for row, number in numbers.first],
        "by_country": [
            {"country": country, "count": sum(kinds.values()), **{kind: kinds[kind] for kind in _KINDS}}
            for country, kinds in _by_country(numbers)
        ],
    }


def _first(row: int, number: CellNumber) -> Document:
    country, kind = place_of(number.phone or "")
    return {"row": row, "cell": number.cell, "phone": number.phone, "country": country, "kind": kind}


def corrected(numbers: ReadNumbers) -> list[Document]:
    """Return what was done to how many numbers, with the first of each kind; the most frequent first."""
    return [
        {"what": one.what, "count": one.count, "row": one.row, "before": one.before, "after": one.after}
        for one in numbers.by_frequency()
    ]


def other_columns(contacts: ContactFile) -> list[Document]:
    """Return how many numbers are from another column than the phone column, with the first row."""
    headers = contacts.columns.headers
    return [
        {"column": headers[at], "count": count, "row": row}
        for at, (count, row) in sorted(contacts.from_other_columns.items())
    ]


def show_other_columns(contacts: ContactFile) -> None:
    """Show people how many numbers are from another column than the phone column."""
    for one in other_columns(contacts):
        many = "1 number is" if one["count"] == 1 else f"{one['count']:,} numbers are"
        empty = contacts.columns.headers[contacts.columns.phone]
        note(f"{many} from {one['column']!r}, as {empty!r} is empty there (row {one['row']}).")


def show_warnings(warnings: Iterable[str]) -> None:
    """Show people what to look at before anything else."""
    for text in warnings:
        note(f"Look at this first: {text}")


def show_numbers(numbers: ReadNumbers) -> None:
    """Show people the numbers as they will be dialled, and what was corrected in them."""
    if not numbers.total:
        return
    note("Numbers as they will be stored and dialled:")
    for row, number in numbers.first:
        note(f"  row {row}: {cell(number.cell[:_MAX_SHOWN])} → {number.phone}")
    table = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("country", "numbers", *_KINDS):
        table.add_column(name, justify="left" if name == "country" else "right")
    countries = _by_country(numbers)
    for country, kinds in countries[:_MAX_COUNTRIES]:
        table.add_row(country or "unknown", f"{sum(kinds.values()):,}", *(f"{kinds[kind]:,}" for kind in _KINDS))
    if len(countries) > _MAX_COUNTRIES:
        rest = sum((kinds for _, kinds in countries[_MAX_COUNTRIES:]), Counter[NumberKind]())
        others = f"{len(countries) - _MAX_COUNTRIES} others"
        table.add_row(others, f"{sum(rest.values()):,}", *(f"{rest[kind]:,}" for kind in _KINDS))
    console(stderr=True).print(table)
    for one in numbers.by_frequency():
        many = "1 number was" if one.count == 1 else f"{one.count:,} numbers were"
        note(f"{many} corrected: {one.words}.")


def _by_country(numbers: ReadNumbers) -> list[tuple[str | None, Counter[NumberKind]]]:
    """Return how many numbers of each kind a country has, the country with the most first."""
    found: dict[str | None, Counter[NumberKind]] = {}
    for (country, kind), count in numbers.places.items():
        found.setdefault(country, Counter())[kind] += count
    return sorted(found.items(), key=lambda one: (-one[1].total(), one[0] or ""))
