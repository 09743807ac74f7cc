"""Narrower contact hours of countries and US states, one a line: `US-FL: mon-sun 08:00-20:00 (Fla. Stat. 501.616)`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from outreach import InvalidRequest, WorkspaceUpdate
from outreach.http import document_of
from outreach.models import PlaceHours
from outreach_server.console.pages.set_up.inputs import Input
from outreach_server.console.pages.set_up.nouns import On, Result, Sent
from outreach_server.hours import Opening, WrongHours, place_text, read_opening, schedule_of

NAME: Final = "narrower_hours"

_LONGEST: Final = 60_000
_WRITTEN: Final = re.compile(r"([A-Za-z]{2}(?:-[A-Za-z]{2})?)\s*:\s*([^()]+?)\s*\((.+)\)")
_WINDOWS: Final = re.compile(r"(\D+?)\s+(\d.*)")
_NOTATION: Final = "is not such as `US-FL: mon-sun 08:00-20:00 (Fla. Stat. 501.616)`"


async def fields(on: On) -> Sequence[Input]:
    """Return the field with the hours of a workspace."""
    return [
        Input(
            name=NAME,
            label="Hours of countries and US states",
            kind="area",
            hint="One place a line, with its hours by the contact's own time, within 08:00 to 21:00, and the law or "
            "rule that they come from. Such as: US-FL: mon-sat 08:00-20:00; sun 10:00-18:00 (Fla. Stat. 501.616)",
            longest=_LONGEST,
            value="\n".join(_line(one) for one in on.one.workspace.narrower_hours),
        )
    ]


async def save(sent: Sent) -> Result:
    """Replace all of them.

    Raises:
        InvalidRequest: A line has no such hours, or a place is not known; the message names the line.
    """
    found: list[PlaceHours] = []
    lines: list[int] = []
    for number, line in enumerate(str(sent.values[NAME]).splitlines(), 1):
        if line.strip():
            lines.append(number)
            try:
                found.append(_parse_place_hours(line.strip()))
            except WrongHours as error:
                raise InvalidRequest.at(NAME, f"line {number}: {error}") from None
            except InvalidRequest as error:
                raise InvalidRequest.at(NAME, f"line {number}: {_words(error, '')}") from None
    if tuple(found) == tuple(sent.one.workspace.narrower_hours):
        return Result()
    try:
        await sent.engine.workspaces.update(sent.place, WorkspaceUpdate(narrower_hours=found), actor=sent.actor)
    except InvalidRequest as error:
        place = re.match(rf"{NAME}\[(\d+)\]", error.details[0].path) if error.details else None
        where = "" if place is None else f"line {lines[int(place[1])]}: "
        raise InvalidRequest.at(NAME, f"{where}{_words(error, f'{NAME}[{place[1]}].' if place else '')}") from None
    return Result()


def _words(error: InvalidRequest, before: str) -> str:
    """Return the first detail of an error, with the path behind `before`."""
    if not error.details:
        return error.message
    return f"{error.details[0].path.removeprefix(before)} {error.details[0].message}"


def _line(hours: PlaceHours) -> str:
    return place_text(document_of(hours))


def _parse_place_hours(line: str) -> PlaceHours:
    """Return the hours of a line.

    Raises:
        WrongHours: It is written otherwise.
        InvalidRequest: A value cannot be.
    """
    found = _WRITTEN.fullmatch(line)
    if found is None:
        raise WrongHours(f"{line[:100]!r} {_NOTATION}.")
    return PlaceHours(place=found[1].upper(), schedule=schedule_of(list(_openings(found[2]))), source=found[3].strip())


def _openings(text: str) -> Iterator[Opening]:
    for part in text.split(";"):
        days = _WINDOWS.fullmatch(part.strip())
        if days is None:
            yield read_opening(part.strip())
            continue
        yield from (read_opening(f"{days[1]} {window.strip()}") for window in days[2].split(","))
