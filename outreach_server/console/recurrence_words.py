"""Rules by which schedules repeat, in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from types import MappingProxyType
from typing import Final

from outreach.server_support import WEEKDAYS, Recurrence, read_recurrence
from outreach_server.console import words
from outreach_server.console.clocks import DAY_NAMES, MONTH_NAMES, DateStyle

RULE_DAYS: Final = MappingProxyType(dict(zip(WEEKDAYS, DAY_NAMES, strict=True)))
"""The names of the weekdays by those of rules."""

_UNITS: Final = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
_ORDINALS: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}
_FEW_WEEKDAYS: Final = 5


def rule_words(rule: str, starts_on: date, dates: DateStyle) -> str:
    """Return a rule that was checked, in words.

    Args:
        rule: The rule.
        starts_on: The day from which it counts, which says what the rule leaves out.
        dates: How days are written.
    """
    found = read_recurrence(rule)
    unit = _UNITS[found.frequency]
    said = [f"Every {unit}" if found.interval == 1 else f"Every {found.interval} {unit}s"]
    if found.months:
        said.append(f"in {_listed([MONTH_NAMES[month - 1] for month in sorted(found.months)])}")
    if found.month_days:
        said.append(f"on {_month_days(found.month_days)} of {'the' if found.frequency == 'MONTHLY' else 'each'} month")
        if found.weekdays:
            said.append(f"if it is {_weekdays(found)}")
    elif found.weekdays:
        said.append(f"on {_weekdays(found)}")
    else:
        said += _like(found, starts_on, dates)
    text = " ".join(said)
    if found.count is not None:
        text += f", {words.plural(found.count, 'time')}"
    if found.until is not None:
        text += f", until {dates.day(found.until)}"
    return text


def is_same_rule(one: str, other: str) -> bool:
    """Return whether two rules that were checked mean the same."""
    return _plain(read_recurrence(one)) == _plain(read_recurrence(other))


def _plain(rule: Recurrence) -> tuple[object, ...]:
    days = sorted(rule.weekdays, key=lambda one: (one.ordinal or 0, one.weekday))
    return (
        *(rule.frequency, rule.interval, days, sorted(rule.month_days), sorted(rule.months)),
        *(rule.count, rule.until),
    )


def _like(rule: Recurrence, starts_on: date, dates: DateStyle) -> Sequence[str]:
    """Return the day of a rule that names none: that of its first day."""
    match rule.frequency:
        case "DAILY":
            return ()
        case "WEEKLY":
            return (f"on {DAY_NAMES[starts_on.weekday()]}",)
        case "YEARLY" if not rule.months:
            return (f"on {dates.day(starts_on, year=False)}",)
        case _:
            return (f"on day {starts_on.day}",)


def _weekdays(rule: Recurrence) -> str:
    """Return the weekdays of a rule, such as `Monday and Friday`, or `the first Monday of the month`."""
    days = sorted(rule.weekdays, key=lambda one: one.weekday)
    if [one.weekday for one in days] == list(range(_FEW_WEEKDAYS)) and not any(one.ordinal for one in days):
        return f"{DAY_NAMES[0]} to {DAY_NAMES[_FEW_WEEKDAYS - 1]}"
    named = [
        DAY_NAMES[one.weekday] if one.ordinal is None else f"the {_ordinal(one.ordinal)} {DAY_NAMES[one.weekday]}"
        for one in days
    ]
    if all(one.ordinal is None for one in days):
        return _listed(named)
    of_year = rule.frequency == "YEARLY" and not rule.months
    return f"{_listed(named)} of the {'year' if of_year else 'month'}"


def _month_days(days: Sequence[int]) -> str:
    first = [str(day) for day in sorted(days) if day > 0]
    last = [f"the {_ordinal(day)} day" for day in sorted(days, reverse=True) if day < 0]
    plain = [f"{'day' if len(first) == 1 else 'days'} {_listed(first)}"] if first else []
    return _listed([*plain, *last])


def _ordinal(place: int) -> str:
    """Return a place in a month or year, from its end where it is negative."""
    number = abs(place)
    ending = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    word = _ORDINALS.get(number, f"{number}{ending}")
    if place > 0:
        return word
    return "last" if place == -1 else f"{word} to last"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
