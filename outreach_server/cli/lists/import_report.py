"""The report of an import: the meaning of the file's columns, its first rows, its numbers, and their corrections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import click
import orjson
from rich import box
from rich.table import Table as Grid

from outreach.server_support import NumberKind
from outreach_server.cli.output import Listing, cell, console, listing, note
from outreach_server.lists.contacts import ContactFile
from outreach_server.lists.read_numbers import ReadNumbers
from outreach_server.lists.rejects import Rejects
from outreach_server.lists.report import KINDS, by_country, mapping, other_columns, shown_rows
from outreach_server.words import plural, shortened

SHOWN: Final = 20
"""The most rejected rows to print; a file or the JSON document has all."""

_MAX_SHOWN: Final = 30
_LEFT_OUT: Final = "left out"

_MAX_COUNTRIES: Final = 15


def mapping_table(contacts: ContactFile) -> Listing:
    """Return what each column is, with its first values, as a table for people."""
    rows = [f"row {record.row}" for record in shown_rows(contacts)]
    documents = [
        {
            "column": document["column"] or f"(column {document['number']})",
            "is": document["is"] or _LEFT_OUT,
            **{row: shortened(value, _MAX_SHOWN) for row, value in zip(rows, document["first"], strict=True)},
        }
        for document in mapping(contacts)
    ]
    return listing(documents, ("column", "is", *rows))


def show_other_columns(contacts: ContactFile) -> None:
    """Show people how many numbers are from another column than the phone column."""
    for one in other_columns(contacts):
        many = plural(one["count"], "number is", "numbers are")
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
    for name in ("country", "numbers", *KINDS):
        table.add_column(name, justify="left" if name == "country" else "right")
    countries = by_country(numbers)
    for country, kinds in countries[:_MAX_COUNTRIES]:
        table.add_row(country or "unknown", f"{sum(kinds.values()):,}", *(f"{kinds[kind]:,}" for kind in KINDS))
    if len(countries) > _MAX_COUNTRIES:
        rest = sum((kinds for _, kinds in countries[_MAX_COUNTRIES:]), Counter[NumberKind]())
        others = f"{len(countries) - _MAX_COUNTRIES} others"
        table.add_row(others, f"{sum(rest.values()):,}", *(f"{rest[kind]:,}" for kind in KINDS))
    console(stderr=True).print(table)
    for one in numbers.by_frequency():
        many = plural(one.count, "number was", "numbers were")
        note(f"{many} corrected: {one.words}.")


def show_rejects(rejects: Rejects, *, hint: str) -> None:
    """Show people the first rejected rows; `hint` says where all of them are."""
    for index, item in enumerate(rejects.items()):
        if index == SHOWN:
            click.echo(f"  … and {rejects.count - SHOWN} more; {hint}", err=True)
            return
        rejected: dict[str, Any] = orjson.loads(item)
        place = f", column {cell(rejected['column'])}" if rejected["column"] else ""
        source = f"{cell(rejected['file'])}, " if "file" in rejected else ""
        click.echo(f"  {source}row {rejected['row']}{place}: {cell(rejected['message'])}", err=True)
