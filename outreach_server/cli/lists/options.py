"""The options of the commands that read a list."""

from __future__ import annotations

from typing import Final

import click

from outreach.server_support import Field
from outreach_server.cli.values import REGION, Reader
from outreach_server.lists.contact_columns import FIELDS, field_of
from outreach_server.lists.csv_lines import is_encoding
from outreach_server.lists.csv_records import DELIMITERS, delimiter_of
from outreach_server.lists.tables import AUTO


class ColumnMapping(Reader[tuple[Field, str]]):
    """`FIELD=COLUMN`: the column of a field, by its name or its number from 1; nothing after the sign is no column."""

    def __init__(self) -> None:
        super().__init__("FIELD=COLUMN", _column_mapping)


def _column_mapping(text: str) -> tuple[Field, str]:
    wanted, sign, column = text.partition("=")
    field = field_of(wanted)
    if not sign or field is None:
        names = ", ".join(field.removesuffix("_number") for field in FIELDS)
        raise ValueError(f"{text!r} is not FIELD=COLUMN, where the field is one of {names}.")
    if field == "phone_number" and not column.strip():
        raise ValueError("The phone number needs a column.")
    return field, column.strip()


def _delimiter(text: str) -> str:
    """Return the separator of a row's cells: `auto` or one character."""
    character = delimiter_of(text)
    if character is None:
        raise ValueError(f"{text!r} is neither auto, one character, nor one of {', '.join(DELIMITERS)}.")
    return character


def _encoding(text: str) -> str:
    """Return the name of a text encoding."""
    if not is_encoding(text):
        raise ValueError(f"{text!r} is not a text encoding; use a name such as utf-8, cp1252 or utf-16.")
    return text


LIST_OPTIONS: Final = (
    click.option(
        "--region",
        type=REGION,
        metavar="REGION",
        help="The region of this file's local numbers, such as US; by default the workspace's.",
    ),
    click.option("--sheet", metavar="NAME", help="The sheet of an XLSX file; by default the first visible one."),
    click.option(
        "--encoding", type=Reader("encoding", _encoding), help="The encoding of a text file; by default it is detected."
    ),
    click.option(
        "--delimiter",
        type=Reader("delimiter", _delimiter),
        default=AUTO,
        show_default=True,
        help="What separates the cells.",
    ),
)
"""How a list is read: the region of its numbers, and the options of `open_table`."""
