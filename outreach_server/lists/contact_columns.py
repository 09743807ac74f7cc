"""The meaning of the columns of a list of contacts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final, get_args

import attrs

from outreach.server_support import (
    LAST_NAMES_BESIDE,
    NAMES,
    NUMBERS,
    VARIABLES_TOO,
    Field,
    bare_phone_name,
    composed,
    fields_of_headers,
    is_contact_zone,
    name_spellings,
    plain,
    read_number_cell,
    region_of_country,
)
from outreach_server.lists.csv_records import Record
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.read_numbers import CellNumber, ReadNumbers

FIELDS: Final = get_args(Field)
"""The fields of a contact that columns can have."""

_ANY_DIGIT: Final = re.compile(r"\d")
_LOOKS_LIKE_A_PHONE: Final = re.compile(r"\+?[\d\s().-]{7,}")
_NOT_MAPPED: Final[Mapping[Field, str]] = MappingProxyType({})


@attrs.frozen(kw_only=True)
class Columns:
    """The meaning of a file's columns.

    Attributes:
        headers: The column names, in the file's order.
        phone: Index of the phone number.
        other_phones: Indices of the columns that have it where that one has none, in their order.
        fields: (index, field) of the other fields of a contact.
        variables: (index, name) of custom variables; the columns of the external id and of the place are too.
        country: Index of the country that local numbers are read in; None if no column has it.
        notes: Hints for people on how the columns were read.
    """

    headers: tuple[str, ...]
    phone: int
    fields: tuple[tuple[int, Field], ...]
    variables: tuple[tuple[int, str], ...]
    country: int | None
    notes: tuple[str, ...]
    other_phones: tuple[int, ...] = ()

    def meaning(self, index: int) -> str | None:
        """Return what a column is: a field, a `{{variable}}`, or None if it is left out."""
        if index == self.phone:
            return "phone_number"
        named: list[str] = [field for at, field in self.fields if at == index]
        if index == self.country:
            named.append("country")
        named += [f"{{{{{name}}}}}" for at, name in self.variables if at == index]
        return ", ".join(named) or None

    def phone_of(self, record: Record) -> int:
        """Return the column of a row's phone number: the first one with a digit; that of the number if none has one."""
        if not self.other_phones:
            return self.phone
        columns = (self.phone, *self.other_phones)
        return next((at for at in columns if _ANY_DIGIT.search(_cell(record.cells, at))), self.phone)

    def with_number(self, record: Record, number: str) -> Record:
        """Return a row with another number, which is the only one that it has."""
        cells = [*record.cells, *[""] * (self.phone + 1 - len(record.cells))]
        for at in self.other_phones:
            if at < len(cells):
                cells[at] = ""
        cells[self.phone] = number
        return record._replace(cells=cells, numbers={})

    def number(self, record: Record, numbers: ReadNumbers) -> CellNumber:
        """Return the number of a row, which may have fewer cells than the header.

        A cell that holds a number is read as it is shown if its format only puts something in front of the digits or
        between them, and if that is a phone number; else by its digits.
        """
        country = _cell(record.cells, self.country) if self.country is not None else ""
        phone = self.phone_of(record)
        shown, digits = _cell(record.cells, phone), record.numbers.get(phone)
        if digits is None:
            return numbers.read(shown, country)
        texts = [shown, digits] if re.sub(r"\D", "", shown).endswith(digits) else [digits]
        readings = [numbers.read(text, country) for text in texts]
        found = next((one for one in readings if one.problem is None), readings[0])
        return attrs.evolve(found, cell=shown)


def _cell(cells: Sequence[str], index: int) -> str:
    return cells[index].strip() if index < len(cells) else ""


def field_of(name: str) -> Field | None:
    """Return the field of a name, such as `phone`; None if there is none."""
    known = name.strip().lower()
    return next((field for field in FIELDS if known in {field, field.removesuffix("_number")}), None)


def read_columns(
    cells: Sequence[str], *, mapped: Mapping[Field, str] = _NOT_MAPPED, several_phones: bool = False
) -> Columns:
    """Return the meaning of the columns by their header.

    Args:
        cells: The header row.
        mapped: The columns of fields, by name or by number from 1; an empty one is no column. Other fields go by the
            usual names.
        several_phones: Whether several columns may have the same name of a phone number; the first one is taken.

    Raises:
        UnreadableList: Not exactly one column is the phone number, a mapped column is not there or mapped twice,
            or a name cannot be stored.
    """
    headers = tuple(
        composed(cell.strip(" \t\r\n\u00a0\u200b\ufeff").removeprefix("\u00ef\u00bb\u00bf")) for cell in cells
    )
    if any("\0" in header for header in headers):
        raise UnreadableList("The header holds NUL characters. If the file is UTF-16: --encoding utf-16-le.")
    chosen: dict[Field, int] = {field: _named(headers, column) for field, column in mapped.items() if column}
    for at in chosen.values():
        if list(chosen.values()).count(at) > 1:
            raise UnreadableList(f"Column {headers[at]!r} is mapped to two fields.")
    other_phones: Sequence[int] = ()
    if "phone_number" not in chosen:
        chosen["phone_number"], other_phones = _phone_column(headers, set(chosen.values()), several_phones)
    for field in FIELDS:
        index = _first(headers, field, set(chosen.values())) if field not in {*chosen, *mapped} else None
        if index is not None:
            chosen[field] = index
    if "first_name" in chosen and "last_name" not in {*chosen, *mapped}:
        beside = LAST_NAMES_BESIDE.get(plain(headers[chosen["first_name"]]))
        index = next((at for at, header in enumerate(headers) if plain(header) == beside), None)
        if index is not None and index not in chosen.values():
            chosen["last_name"] = index
    variables, notes = _variables(headers, {index for field, index in chosen.items() if field not in VARIABLES_TOO})
    return Columns(
        headers=headers,
        phone=chosen["phone_number"],
        fields=tuple((index, field) for field, index in chosen.items() if field not in {"phone_number", "country"}),
        variables=variables,
        country=chosen.get("country"),
        notes=(*_phone_notes(headers, chosen["phone_number"], other_phones), *notes),
        # `Number` may be any number, such as that of the row or of the customer.
        other_phones=tuple(at for at in other_phones if plain(headers[at]) not in NUMBERS),
    )


def _phone_notes(headers: Sequence[str], phone: int, others: Sequence[int]) -> Iterator[str]:
    """Yield which of several columns is the phone number, and which ones are read where it has none."""
    if not others:
        return
    read = [repr(headers[at]) for at in others if plain(headers[at]) not in NUMBERS]
    left = [repr(headers[at]) for at in others if plain(headers[at]) in NUMBERS]
    note = f"{headers[phone]!r} is the phone number"
    note += f", and where it is empty {', then '.join(read)}" if read else ""
    note += f"; {' and '.join(left)} may be one too" if left else ""
    yield f"{note}: --map phone=COLUMN reads one column alone."


def without_foreign_country(
    columns: Columns, first_rows: Iterable[Sequence[str]], *, mapped: Mapping[Field, str] = _NOT_MAPPED
) -> Columns:
    """Return the columns without a country whose first values are not countries: in some lists `Land` is a state.

    Args:
        columns: The columns.
        first_rows: The cells of the first rows.
        mapped: As for `read_columns`: a column that is named there stays.
    """
    if columns.country is None or "country" in mapped:
        return columns
    found = _first_unknown(first_rows, columns.country, lambda text: region_of_country(text) is not None)
    if found is None:
        return columns
    note = (
        f"{columns.headers[columns.country]!r} is not read as the country of the numbers, because {found[:40]!r} "
        "is not a known country; --map country=COLUMN names another column."
    )
    return attrs.evolve(columns, country=None, notes=(*columns.notes, note))


def without_foreign_zone(
    columns: Columns, first_rows: Iterable[Sequence[str]], *, mapped: Mapping[Field, str] = _NOT_MAPPED
) -> Columns:
    """Return the columns without a time zone whose first values are none, such as `Eastern`."""
    zone = next((index for index, field in columns.fields if field == "time_zone"), None)
    if zone is None or "time_zone" in mapped:
        return columns
    found = _first_unknown(first_rows, zone, is_contact_zone)
    if found is None:
        return columns
    note = (
        f"{columns.headers[zone]!r} is not read as the time zone, because {found[:40]!r} is not a name such as "
        "America/New_York; --map time_zone=COLUMN names another column."
    )
    fields = tuple(one for one in columns.fields if one[0] != zone)
    return attrs.evolve(columns, fields=fields, notes=(*columns.notes, note))


def _first_unknown(rows: Iterable[Sequence[str]], column: int, is_known: Callable[[str], bool]) -> str | None:
    """Return the first value of a column if none of its values is known; None without a value."""
    found = [text for cells in rows if (text := _cell(cells, column))]
    return found[0] if found and not any(map(is_known, found)) else None


def with_named(columns: Columns, names: AbstractSet[str]) -> Columns:
    """Return the columns with those as variables too that are fields, and that a text names by their own names.

    A column with a usual name of its field needs none: the engine knows it (`fields_of_headers`).

    Args:
        columns: The columns.
        names: What the text names, as `name_spellings` writes it.
    """
    usual = fields_of_headers(columns.headers)
    known = {index for index, _ in columns.variables}
    fields: dict[int, Field] = dict(columns.fields) | {columns.phone: "phone_number"}
    more = tuple(
        (index, columns.headers[index])
        for index, field in fields.items()
        if index not in known
        and usual.get(columns.headers[index]) != field
        and not names.isdisjoint(name_spellings(columns.headers[index]))
    )
    return attrs.evolve(columns, variables=columns.variables + more)


def find_phone_columns(cells: Sequence[str]) -> Sequence[int]:
    """Return the columns with a usual name of a phone number, the plainest name first."""
    return list(_all([cell.strip() for cell in cells], "phone_number", set()))


def _named(headers: Sequence[str], column: str) -> int:
    """Return the one column of a name, or of a number if none has that name."""
    wanted = {spelling.casefold() for spelling in name_spellings(column)}
    matches = [
        index
        for index, header in enumerate(headers)
        if any(spelling.casefold() in wanted for spelling in name_spellings(header))
    ]
    if not matches and column.isascii() and column.isdecimal() and 1 <= int(column) <= len(headers):
        return int(column) - 1
    if not matches:
        raise UnreadableList(f"There is no column {column!r}. The columns are: {_listed(headers)}.")
    _require_one(headers, matches)
    return matches[0]


def _phone_column(headers: Sequence[str], taken: set[int], several: bool) -> tuple[int, Sequence[int]]:
    """Return the column of the phone number by its name, and the others that may be one too."""
    found = list(_all(headers, "phone_number", taken))
    if not found:
        hint = (
            " The first line looks like a contact; it must name the columns."
            if any(_LOOKS_LIKE_A_PHONE.fullmatch(cell) and read_number_cell(cell).problem is None for cell in headers)
            else " Name it with --map phone=COLUMN."
        )
        raise UnreadableList(f"No column is the phone number. The columns are: {_listed(headers)}.{hint}")
    name = plain(headers[found[0]])
    if not several:
        _require_one(headers, [index for index, header in enumerate(headers) if plain(header) == name])
    return found[0], found[1:]


def _require_one(headers: Sequence[str], matches: Sequence[int]) -> None:
    if len(matches) > 1:
        places = " and ".join(str(index + 1) for index in matches)
        raise UnreadableList(
            f"Columns {places} are both called {headers[matches[0]]!r}. Rename one, or map the column by its number: "
            f"--map phone={matches[0] + 1}"
        )


_LAST_DIGITS: Final = re.compile(r"[0-9]{1,3}$")


def _all(headers: Sequence[str], field: Field, taken: set[int]) -> Iterator[int]:
    names = [plain(header) for header in headers]
    # `Phone` before `customer_phone`.
    forms = [names, [bare_phone_name(name) for name in names]] if field == "phone_number" else [names]
    # `Phone 1` before `Phone 2`, wherever they stand.
    order = sorted(range(len(names)), key=lambda index: int((_LAST_DIGITS.search(names[index]) or ["0"])[0]))
    given = set(taken)
    for wanted in NAMES[field]:
        for form in forms:
            for index in order:
                if form[index] == wanted and index not in given:
                    given.add(index)
                    yield index


def _first(headers: Sequence[str], field: Field, taken: set[int]) -> int | None:
    return next(_all(headers, field, taken), None)


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


def _listed(headers: Sequence[str]) -> str:
    return ", ".join(repr(header[:40]) for header in headers[:20]) + (", …" if len(headers) > 20 else "")
