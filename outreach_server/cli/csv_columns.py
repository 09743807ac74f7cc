"""The meaning of a CSV file's columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

import attrs
import click

Field = Literal["phone_number", "first_name", "last_name", "email", "company"]

ALIASES: Final[dict[Field, tuple[str, ...]]] = {
    "phone_number": (
        "phonenumber", "phone", "phoneno", "mobile", "mobilenumber", "mobilephone", "mobileno", "cell", "cellphone",
        "cellnumber", "telephone", "telephonenumber", "tel", "contactnumber", "msisdn", "number",
    ),
    "first_name": ("firstname", "first", "givenname", "forename", "fname"),
    "last_name": ("lastname", "last", "surname", "familyname", "lname"),
    "email": ("email", "emailaddress", "mail"),
    "company": ("company", "companyname", "organization", "organisation", "employer"),
}  # fmt: skip
"""Names of columns, without case, spaces and punctuation; of several phone columns the first name here wins."""

_PUNCTUATION: Final = re.compile(r"[\W_]+")
_LOOKS_LIKE_A_PHONE: Final = re.compile(r"\+?[\d\s().-]{7,}")


@attrs.frozen(kw_only=True)
class Columns:
    """The meaning of a file's columns.

    Attributes:
        headers: The column names, in the file's order.
        phone: Index of the phone number.
        fields: (index, field) of the other fields of a contact.
        variables: (index, name) of custom variables.
        notes: Hints for people on how the columns were read.
    """

    headers: tuple[str, ...]
    phone: int
    fields: tuple[tuple[int, Field], ...]
    variables: tuple[tuple[int, str], ...]
    notes: tuple[str, ...]


def read_columns(cells: Sequence[str], *, phone_column: str | None) -> Columns:
    """Return the meaning of the columns by their header.

    Args:
        cells: The header row.
        phone_column: The name of the phone number's column; None for the usual names.

    Raises:
        click.ClickException: Not exactly one column is the phone number, or a name cannot be stored.
    """
    headers = tuple(cell.strip() for cell in cells)
    if any("\0" in header for header in headers):
        raise click.ClickException("The header holds NUL characters. If the file is UTF-16: --encoding utf-16-le.")
    phone = _phone_column(headers, phone_column)
    taken = {phone}
    fields: list[tuple[int, Field]] = []
    for field in ALIASES:
        index = _first(headers, field, taken)
        if index is not None and field != "phone_number":
            fields.append((index, field))
            taken.add(index)
    variables, notes = _variables(headers, taken)
    return Columns(headers=headers, phone=phone, fields=tuple(fields), variables=variables, notes=notes)


def find_phone_column(cells: Sequence[str]) -> int | None:
    """Return the first column with a usual name of a phone number, if any."""
    return _first([cell.strip() for cell in cells], "phone_number", set())


def _phone_column(headers: Sequence[str], wanted: str | None) -> int:
    if wanted is not None:
        matches = [index for index, header in enumerate(headers) if header.casefold() == wanted.strip().casefold()]
        if not matches:
            raise click.ClickException(f"There is no column {wanted!r}. The columns are: {_names(headers)}.")
    else:
        first = _first(headers, "phone_number", set())
        if first is None:
            hint = (
                " The first line looks like a contact; it must name the columns."
                if any(_LOOKS_LIKE_A_PHONE.fullmatch(header) for header in headers)
                else " Name it with --phone-column."
            )
            raise click.ClickException(f"No column is the phone number. The columns are: {_names(headers)}.{hint}")
        matches = [index for index, header in enumerate(headers) if _plain(header) == _plain(headers[first])]
    if len(matches) > 1:
        places = " and ".join(str(index + 1) for index in matches)
        raise click.ClickException(
            f"Columns {places} are both called {headers[matches[0]]!r}, so the phone number is ambiguous. Rename one."
        )
    return matches[0]


def _first(headers: Sequence[str], field: Field, taken: set[int]) -> int | None:
    plain = [_plain(header) for header in headers]
    for alias in ALIASES[field]:
        for index, name in enumerate(plain):
            if name == alias and index not in taken:
                return index
    return None


def _variables(headers: Sequence[str], taken: set[int]) -> tuple[tuple[tuple[int, str], ...], tuple[str, ...]]:
    variables: list[tuple[int, str]] = []
    notes: list[str] = []
    used = {header for index, header in enumerate(headers) if index in taken}
    for index, header in enumerate(headers):
        if index in taken:
            continue
        if not header:
            notes.append(f"Column {index + 1} has no name and is left out.")
            continue
        name, number = header, 1
        while name in used:
            number += 1
            name = f"{header}_{number}"
        if name != header:
            notes.append(f"Column {index + 1} is called {header!r} like one before it; its variable is {name!r}.")
        used.add(name)
        variables.append((index, name))
    return tuple(variables), tuple(notes)


def _plain(header: str) -> str:
    return _PUNCTUATION.sub("", header).casefold()


def _names(headers: Sequence[str]) -> str:
    return ", ".join(repr(header[:40]) for header in headers[:20]) + (", …" if len(headers) > 20 else "")
