"""The options of the commands that read a list."""

from __future__ import annotations

from typing import Final

import click

from outreach.server_support import Field
from outreach_server.cli.values import Region
from outreach_server.lists.contact_columns import FIELDS, field_of
from outreach_server.lists.csv_lines import is_encoding
from outreach_server.lists.csv_records import DELIMITERS, delimiter_of
from outreach_server.lists.tables import AUTO


class ColumnMapping(click.ParamType[tuple[Field, str]]):
    """`FIELD=COLUMN`: the column of a field, by its name or its number from 1; nothing after the sign is no column."""

    name = "FIELD=COLUMN"

    def convert(
        self, value: str | tuple[Field, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Field, str]:
        """Return the field and the column's name or number."""
        if isinstance(value, tuple):
            return value
        wanted, sign, column = value.partition("=")
        field = field_of(wanted)
        if not sign or field is None:
            names = ", ".join(field.removesuffix("_number") for field in FIELDS)
            self.fail(f"{value!r} is not FIELD=COLUMN, where the field is one of {names}.", param, ctx)
        if field == "phone_number" and not column.strip():
            self.fail("The phone number needs a column.", param, ctx)
        return field, column.strip()


class Delimiter(click.ParamType[str]):
    """The separator of a row's cells."""

    name = "delimiter"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return `auto` or one character."""
        character = delimiter_of(value)
        if character is None:
            self.fail(f"{value!r} is neither auto, one character, nor one of {', '.join(DELIMITERS)}.", param, ctx)
        return character


class Encoding(click.ParamType[str]):
    """The name of a text encoding."""

    name = "encoding"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, checked."""
        if not is_encoding(value):
            self.fail(f"{value!r} is not a text encoding; use a name such as utf-8, cp1252 or utf-16.", param, ctx)
        return value


LIST_OPTIONS: Final = (
    click.option(
        "--region",
        type=Region(),
        metavar="REGION",
        help="The region of this file's local numbers, such as US; by default the workspace's.",
    ),
    click.option("--sheet", metavar="NAME", help="The sheet of an XLSX file; by default the first visible one."),
    click.option("--encoding", type=Encoding(), help="The encoding of a text file; by default it is detected."),
    click.option("--delimiter", type=Delimiter(), default=AUTO, show_default=True, help="What separates the cells."),
)
"""How a list is read: the region of its numbers, and the options of `open_table`."""
