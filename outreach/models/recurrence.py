"""The rules by which schedules repeat: the part of RFC 5545's RRULE that days are enough for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, cast

import attrs

from outreach.models.fields import Refused

MAX_RULE_LENGTH: Final = 300

Frequency = Literal["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]

WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
"""In the order of `date.weekday()`."""

_FREQUENCIES: Final = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_BY_DAY: Final = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,5}")
_DATE: Final = re.compile(r"[0-9]{8}")
_MOST_ORDINAL: Final[Mapping[str, int]] = MappingProxyType({"MONTHLY": 5, "YEARLY": 53})
_EXAMPLE: Final = "such as FREQ=WEEKLY;BYDAY=MO,WE"


class WeekdayOf(NamedTuple):
    """A weekday of a rule.

    Attributes:
        ordinal: Which one of the month or year, from its end where it is negative; None for each.
        weekday: 0 for Monday to 6 for Sunday.
    """

    ordinal: int | None
    weekday: int


@attrs.frozen(kw_only=True)
class Recurrence:
    """A rule, read.

    Attributes:
        interval: Every how many days, weeks, months or years.
        weekdays: The weekdays; empty for no such condition, as in the next two.
        month_days: Days of the month, from its end where they are negative.
        months: Months, 1 to 12.
        count: How many runs; None for no such end.
        until: The last day; None for no such end.
    """

    frequency: Frequency
    interval: int = 1
    weekdays: tuple[WeekdayOf, ...] = ()
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    count: int | None = None
    until: date | None = None


def recurrence_rule(value: Any) -> str:
    """Return the text of a rule in upper case; refuse one that `read_recurrence` cannot read."""
    if not isinstance(value, str):
        raise Refused("must be a string")
    text = value.strip().upper().removeprefix("RRULE:")
    read_recurrence(text)
    return text


def read_recurrence(text: str) -> Recurrence:
    """Return a rule, or raise `Refused`."""
    if not 1 <= len(text) <= MAX_RULE_LENGTH:
        raise Refused(f"must have 1 to {MAX_RULE_LENGTH} characters, {_EXAMPLE}")
    given: dict[str, str] = {}
    for part in text.removesuffix(";").split(";"):
        name, equals, value = part.partition("=")
        if not equals or name in given:
            raise Refused(f"must have parts NAME=VALUE between semicolons, each once, {_EXAMPLE}")
        given[name] = value
    unknown = [name for name in given if name not in _PARTS]
    if unknown:
        raise Refused(f"has {unknown[0][:20]}; it may have {', '.join(_PARTS)}")
    if "FREQ" not in given:
        raise Refused(f"must have FREQ, {_EXAMPLE}")
    read = {_PARTS[name][0]: _PARTS[name][1](name, value) for name, value in given.items()}
    rule = Recurrence(**read)
    _check(rule)
    return rule


def _check(rule: Recurrence) -> None:
    if rule.count is not None and rule.until is not None:
        raise Refused("must have COUNT or UNTIL, not both")
    if rule.month_days and rule.frequency == "WEEKLY":
        raise Refused("must not have BYMONTHDAY with FREQ=WEEKLY")
    most = _MOST_ORDINAL.get(rule.frequency, 0)
    if rule.frequency == "YEARLY" and rule.months:
        most = _MOST_ORDINAL["MONTHLY"]
    for ordinal, weekday in rule.weekdays:
        if ordinal is not None and not 1 <= abs(ordinal) <= most:
            named = f"{ordinal}{WEEKDAYS[weekday]}"
            raise Refused(
                f"has {named} in BYDAY, which FREQ={rule.frequency} cannot have"
                if not most
                else f"has {named} in BYDAY; the number may be 1 to {most}, or -1 to -{most}"
            )


def _frequency(_: str, value: str) -> Frequency:
    if value not in _FREQUENCIES:
        raise Refused(f"FREQ must be one of {', '.join(_FREQUENCIES)}")
    return cast("Frequency", value)


def _integer(least: int, most: int, *, from_end: bool = False) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        number = int(value) if _INTEGER.fullmatch(value) else 0
        if not least <= (abs(number) if from_end else number) <= most:
            also = f", or -{least} to -{most}" if from_end else ""
            raise Refused(f"{name} must be {least} to {most}{also}")
        return number

    return read


def _each(read: Callable[[str, str], Any]) -> Callable[[str, str], Sequence[Any]]:
    return lambda name, value: tuple(dict.fromkeys(read(name, one) for one in value.split(",")))


def _weekday(_: str, value: str) -> WeekdayOf:
    match = _BY_DAY.fullmatch(value)
    if match is None:
        raise Refused("BYDAY must have days such as MO, 1MO (the first Monday) or -1FR (the last Friday)")
    return WeekdayOf(None if match[1] is None else int(match[1]), WEEKDAYS.index(match[2]))


def _date(name: str, value: str) -> date:
    try:
        if _DATE.fullmatch(value):
            return date(int(value[:4]), int(value[4:6]), int(value[6:]))
    except ValueError:
        pass
    raise Refused(f"{name} must be a day such as 20271231, without a time")


_PARTS: Final[Mapping[str, tuple[str, Callable[[str, str], Any]]]] = MappingProxyType(
    {
        "FREQ": ("frequency", _frequency),
        "INTERVAL": ("interval", _integer(1, 1000)),
        "BYDAY": ("weekdays", _each(_weekday)),
        "BYMONTHDAY": ("month_days", _each(_integer(1, 31, from_end=True))),
        "BYMONTH": ("months", _each(_integer(1, 12))),
        "COUNT": ("count", _integer(1, 10_000)),
        "UNTIL": ("until", _date),
    }
)
"""The fields of `Recurrence` by the names of the parts, with what reads each."""
