"""The phone numbers of a list as they will be dialled: their corrections, and their countries."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Final

import attrs

from outreach.server_support import (
    NumberKind,
    country_code,
    country_of,
    normalise,
    number_kind,
    read_number,
    read_number_cell,
    region_of_country,
)
from outreach_server.words import plural, visible

FIRST: Final = 5
"""The numbers that are shown one by one."""

_LANDLINES: Final = 3
_INTERNATIONAL: Final = ("+", "\uff0b", "00")
_MUCH: Final = 10
"""A correction of more than a tenth of a list may be a mistake of ours."""

_NO_REGION: Final = (
    "; write it like +14155550102, or name its region: --region for this file, --default-region for the workspace"
)

_WORDS: Final = {
    "formula": "formula taken away",
    "apostrophe": "apostrophe in front taken away",
    "decimals": "zeros behind the decimal point taken away",
    "scientific": "written out, as the exponent had kept all digits",
    "thousands": "separators of thousands taken away",
    "label": "word in front taken away",
    "quotes": "quotes taken away",
    "spaces": "remains of non-breaking spaces taken away",
    "calling_code": "read with its country code, whose plus sign was missing",
    "trunk_prefix": "read as a local mobile number without its first digits, though it starts like a country code",
}


@functools.lru_cache(maxsize=65_536)
def place_of(phone: str) -> tuple[str | None, NumberKind]:
    """Return the country and the kind of a number in E.164."""
    return country_of(phone), number_kind(phone)


@functools.cache
def _is_north_american(region: str | None) -> bool:
    return region is not None and country_code(region) == 1


@attrs.frozen(kw_only=True)
class CellNumber:
    """The reading of a cell with a number.

    Attributes:
        cell: The cell.
        text: The number as it was meant; the cell's text if nothing was done to it.
        region: The region that a local number was read in.
        phone: The number in E.164; None if there is a problem.
        corrections: The corrections, in order.
        problem: Why it is not a number, as a sentence's end behind the cell or alone; None if it is one.
    """

    cell: str
    text: str
    region: str | None
    phone: str | None
    corrections: tuple[str, ...]
    problem: str | None


@attrs.define(kw_only=True)
class Correction:
    """How many numbers were corrected in one way, with the first of them.

    Attributes:
        what: The kind of the correction.
        row: The row of the first one.
        before: Its cell.
        after: The number that was read from it.
    """

    what: str
    count: int
    row: int
    before: str
    after: str

    @property
    def words(self) -> str:
        """The correction in words, with the first example."""
        return f"{_WORDS[self.what]} (row {self.row}: {visible(self.before[:40])} → {self.after})"


@attrs.define(kw_only=True)
class ReadNumbers:
    """The numbers of a list.

    Attributes:
        region: The region of local numbers without a country of their own; None if they are refused.
        first: The first numbers, each with its row.
        corrections: The corrections, by kind.
        places: How many numbers there are of each country and kind.
        landlines: The rows of the first landlines.
    """

    region: str | None = None
    first: list[tuple[int, CellNumber]] = attrs.field(factory=list)
    corrections: dict[str, Correction] = attrs.field(factory=dict)
    places: Counter[tuple[str | None, NumberKind]] = attrs.field(factory=Counter)
    landlines: list[int] = attrs.field(factory=list)

    def read(self, cell: str, country: str = "") -> CellNumber:
        """Return what a cell was meant to hold.

        Args:
            cell: The cell of the number.
            country: That of its country, which decides how a local number is read; empty for none.
        """
        found = read_number_cell(cell)
        region, problem = self.region, "has a NUL character" if "\0" in cell else found.problem
        if country and not found.text.startswith(_INTERNATIONAL):
            region = region_of_country(country)
            if region is None and problem is None and found.text:
                problem = f"has no country code, and {country[:40]!r} is not a known country"
        phone, corrections = None, tuple(one.value for one in found.corrections)
        if problem is None:
            # Quicker, and enough where the country code is written, and in North America.
            phone = normalise(found.text, region) if found.text[:1] == "+" or _is_north_american(region) else None
            if phone is None:
                reading = read_number(found.text, region)
                phone, problem = reading.phone, reading.problem
                if reading.correction is not None:
                    corrections = (*corrections, reading.correction)
        if problem is not None:
            problem = f"{found.text[:40]!r} {problem}" if found.text else "there is no phone number"
            is_local = found.problem is None and found.text and not found.text.startswith(_INTERNATIONAL)
            if is_local and region is None and not country:
                problem += _NO_REGION
        return CellNumber(
            cell=cell, text=found.text, region=region, phone=phone, corrections=corrections, problem=problem
        )

    def count(self, row: int, number: CellNumber) -> None:
        """Count a number that is taken."""
        phone = number.phone or ""
        if len(self.first) < FIRST:
            self.first.append((row, number))
        for what in number.corrections:
            known = self.corrections.get(what)
            if known is None:
                self.corrections[what] = Correction(what=what, count=1, row=row, before=number.cell, after=phone)
            else:
                known.count += 1
        # The last three digits decide nothing in North America.
        place = place_of(f"{phone[:-3]}100" if phone.startswith("+1") else phone)
        self.places[place] += 1
        if place[1] == "landline" and len(self.landlines) < _LANDLINES:
            self.landlines.append(row)

    @property
    def total(self) -> int:
        """How many numbers were counted."""
        return self.places.total()

    def by_frequency(self) -> list[Correction]:
        """Return the corrections, the most frequent first."""
        return sorted(self.corrections.values(), key=lambda one: -one.count)

    def warnings(self, *, sms: bool) -> list[str]:
        """Return what should be looked at before these numbers are contacted.

        Args:
            sms: Whether they are to get texts.
        """
        total, found = self.total, []
        for one in self.by_frequency():
            if one.count * _MUCH > total:
                share = f"{one.count:,} of {plural(total, 'number')} ({100 * one.count // total} %)"
                same = f"{'was' if one.count == 1 else 'were'} corrected in the same way"
                found.append(f"{share} {same}: {one.words}. Check that this is what they mean.")
        landlines = sum(count for (_, kind), count in self.places.items() if kind == "landline")
        if sms and landlines:
            rows = ", ".join(map(str, self.landlines)) + (", …" if landlines > len(self.landlines) else "")
            many = plural(landlines, "number is a landline", "numbers are landlines")
            found.append(f"{many}, and hardly any landline takes texts (row{'s' * (landlines > 1)} {rows}).")
        return found
