"""The probable meaning of an invalid value: a word, a day, a time, a date, a zone, a country, a currency."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from typing import Final

from outreach.core.clock import zone_names

_MAX_LENGTH: Final = 64
"""Longer values are no slips, and would take long to compare."""

_MAX_MEANT: Final = 3
_NEAR: Final = 0.7
_NEAR_ZONE: Final = 0.8

# The names of days, months and countries are loaded when a value is wrong.

_ABBREVIATED: Final = {
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "GMT": "Europe/London",
    "BST": "Europe/London",
    "CEST": "Europe/Berlin",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "AEST": "Australia/Sydney",
}
"""Abbreviations that the database of zones does not have, or has without summer time."""

_CURRENCIES: Final = {
    "$": "USD",
    "us$": "USD",
    "dollar": "USD",
    "dollars": "USD",
    "€": "EUR",
    "euro": "EUR",
    "euros": "EUR",
    "£": "GBP",
    "pound": "GBP",
    "pounds": "GBP",
    "sterling": "GBP",
    "¥": "JPY",
    "yen": "JPY",
    "₹": "INR",
    "rupee": "INR",
    "rupees": "INR",
    "franc": "CHF",
    "franken": "CHF",
    "zł": "PLN",
    "zloty": "PLN",
    "real": "BRL",
    "r$": "BRL",
    "a$": "AUD",
    "c$": "CAD",
    "₽": "RUB",
    "₺": "TRY",
    "₪": "ILS",
    "shekel": "ILS",
    "yuan": "CNY",
}

_CLOCK: Final = re.compile(r"(\d{1,2})(?:[:.h ]?(\d{2}))?(?::\d{2})?\s*(?:([ap])\.?m\.?|uhr|h)?", re.IGNORECASE)
_UNTIL: Final = re.compile(r"\s*(?:[-\u2013]|\b(?:to|bis)\b)\s*")
_ONE_TIME: Final = r"\d{1,2}(?:[:.h]?\d{2})?\s?(?:[ap]\.?m\.?|uhr|h)?"
_TIMES_FIRST: Final = re.compile(rf"({_ONE_TIME}){_UNTIL.pattern}({_ONE_TIME})[\s,]+(?:on\s+)?(.+)", re.IGNORECASE)
_NAMED_TIMES: Final = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}
_YEAR_FIRST: Final = re.compile(r"(\d{4})[-/. ]?(\d{1,2})[-/. ]?(\d{1,2})")
_YEAR_LAST: Final = re.compile(r"(\d{1,2})([-/. ])\s*(\d{1,2})[-/. ]\s*(\d{4}|\d{2})")
_NAMED: Final = re.compile(r"(?:(\d{1,2})\W*([^\W\d]+)|([^\W\d]+)\W*(\d{1,2}))(?:st|nd|rd|th)?\W+(\d{4})")
_NUMBER: Final = re.compile(
    r"(\d{1,9}|\d{1,3}(?:[,.' ]\d{3}){1,2}) ?(|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)",
    re.ASCII,
)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
"""The seconds of a unit, by its first letter."""

_MINUTES_A_DAY: Final = 24 * 60
_CENTURY: Final = 2000


def _short(written: object) -> str:
    """Return a text without blanks around it; nothing where it is none, or too long for a slip."""
    return written.strip() if isinstance(written, str) and len(written) <= _MAX_LENGTH else ""


def did_you_mean(meant: str | Sequence[str] | None) -> str:
    """Return what ends a message about a value: `; did you mean active?`; nothing where nothing is meant."""
    names = [meant] if isinstance(meant, str) else meant
    return f"; did you mean {' or '.join(names)}?" if names else ""


def sentence(text: str) -> str:
    """Return a message with its full stop, unless it ends by asking what was meant."""
    return text if text.endswith("?") else f"{text}."


def nearest(written: object, words: Iterable[str]) -> str | None:
    """Return the word that a text with another case, a slip or a missing end stands for; None if none is near."""
    if not isinstance(written, str) or not 0 < len(written) <= _MAX_LENGTH:
        return None
    folded = {word.casefold(): word for word in words}
    text = "_".join(written.casefold().split())
    for form in (text, text.replace("-", "_"), text.replace("_", "-")):
        if form in folded:
            return folded[form]
    near = get_close_matches(text, folded, n=1, cutoff=_NEAR)
    return folded[near[0]] if near else None


def day_like(written: object) -> str | None:
    """Return the day of the week of an abbreviation, a slip, or a name in another language; None if it is not clear."""
    if not isinstance(written, str) or not 1 < len(written) <= _MAX_LENGTH:
        return None
    from outreach.core.meant.date_formats import DATE_NAMES

    text = written.casefold().strip(" .")
    days = tuple(day.lower() for day in DATE_NAMES["en"].days)
    found = {
        day
        for names in DATE_NAMES.values()
        for words in (names.days, names.short_days)
        for day, word in zip(days, words, strict=True)
        if word.casefold() == text
    }
    found |= {day for day in days if day.startswith(text)}
    if not found:
        return nearest(text, days)
    return found.pop() if len(found) == 1 else None


def time_like(written: object) -> str | None:
    """Return a time of day as `HH:MM`, such as that of `9am`, `9` or `9.30`; None if it is none."""
    if isinstance(written, str) and written.strip().lower() in _NAMED_TIMES:
        return _NAMED_TIMES[written.strip().lower()]
    found = _CLOCK.fullmatch(written.strip()) if isinstance(written, str) else None
    if found is None:
        return None
    hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    if minute > 59 or hour * 60 + minute > _MINUTES_A_DAY:
        return None
    return f"{hour:02}:{minute:02}"


def hours_like(written: object) -> str | None:
    """Return opening hours as `mon-fri 09:00-17:00` where their times stand before their days; None if they do not."""
    found = _TIMES_FIRST.fullmatch(_short(written))
    if found is None:
        return None
    start, end = time_like(found[1]), time_like(found[2])
    spans = [[day_like(day.strip()) for day in _UNTIL.split(part, maxsplit=1)] for part in found[3].split(",")]
    days = ",".join("-".join(day[:3] for day in span if day is not None) for span in spans)
    if found[3].strip().casefold() == "daily":
        days = "daily"
    elif any(day is None for span in spans for day in span):
        return None
    return None if start is None or end is None else f"{days} {start}-{end}"


def dates_like(written: object) -> Sequence[str]:
    """Return the dates that a text may mean, such as `24.12.2026`; two where day and month are ambiguous."""
    text = _short(written)
    if (found := _YEAR_FIRST.fullmatch(text)) is not None:
        return _dates((found[1], found[2], found[3]))
    if (found := _YEAR_LAST.fullmatch(text)) is not None:
        day, separator, month, year = found.groups()
        # Dots are written by those who write the day first.
        both = ((year, month, day),) if separator == "." else ((year, month, day), (year, day, month))
        return _dates(*both)
    if (found := _NAMED.fullmatch(text)) is not None:
        month = _months().get((found[2] or found[3]).casefold())
        return () if month is None else _dates((found[5], str(month), found[1] or found[4]))
    return ()


def moment_like(written: object) -> Sequence[str]:
    """Return the moments without offset that a text may mean, such as `24.12.2026 9am`: `2026-12-24T09:00`."""
    text = _short(written)
    for found in re.finditer(r"[T\s,]+(?:at\s+|um\s+)?", text, re.IGNORECASE):
        days, clock = dates_like(text[: found.start()]), time_like(text[found.end() :])
        if days and clock not in {None, "24:00"}:
            return [f"{day}T{clock}" for day in days]
    return ()


def zones_like(written: object) -> Sequence[str]:
    """Return the time zones that a text may mean: by their city, in another spelling, or nearly so."""
    text = _short(written)
    if text.upper() in _ABBREVIATED:
        return [_ABBREVIATED[text.upper()]]
    wanted = "_".join(text.casefold().split())
    places = {name.casefold(): name for name in sorted(zone_names()) if "/" in name and not name.startswith("Etc/")}
    exact = [name for folded, name in places.items() if wanted in {folded, folded.rpartition("/")[2]}]
    if exact:
        return exact[:_MAX_MEANT]
    cities = {folded.rpartition("/")[2]: name for folded, name in places.items()}
    near = get_close_matches(wanted, [*places, *cities], n=_MAX_MEANT, cutoff=_NEAR_ZONE)
    return list(dict.fromkeys(places.get(one) or cities[one] for one in near))


def regions_like(written: object) -> Sequence[str]:
    """Return the codes of the countries that a text may mean, each with its name where the text is not that."""
    if not isinstance(written, str) or len(written) > _MAX_LENGTH:
        return ()
    from outreach.core.meant.countries import countries_like, region_of_country

    region = region_of_country(written)
    if region is not None:
        return [region]
    return [f"{code} ({name})" for code, name in countries_like(written)]


def currency_like(written: object) -> str | None:
    """Return the code of a currency, such as that of `euro` or `usd`; None if it is not known."""
    text = _short(written).casefold()
    if re.fullmatch("[a-z]{3}", text):
        return text.upper()
    near = get_close_matches(text, _CURRENCIES, n=1, cutoff=_NEAR)
    return _CURRENCIES.get(text) or (_CURRENCIES[near[0]] if near else None)


def number_like(written: object, unit: str = "") -> str | None:
    """Return the whole number that a text may mean, such as that of `1,000` or `2h`; None if it is none.

    Args:
        written: The text.
        unit: What is counted: `seconds`, `minutes` or `days`; a duration in another unit is converted.
    """
    found = _NUMBER.fullmatch(written.strip().casefold()) if isinstance(written, str) else None
    if found is None:
        return None
    number = int(re.sub("[,.' ]", "", found[1]))
    own, given = _SECONDS.get(unit[:1]), _SECONDS.get(found[2][:1]) if found[2] else None
    if own is None or given is None:
        return str(number) if not found[2] else None
    whole, rest = divmod(number * given, own)
    return None if rest else str(whole)


def _dates(*parts: tuple[str, str, str]) -> Sequence[str]:
    found: dict[str, None] = {}
    for year, month, day in parts:
        try:
            full = int(year) + (_CENTURY if len(year) == 2 else 0)
            found[date(full, int(month), int(day)).isoformat()] = None
        except ValueError:
            continue
    return list(found)


def _months() -> Mapping[str, int]:
    """Return the months by their names in all languages that dates are written in."""
    from outreach.core.meant.date_formats import DATE_NAMES

    return {
        name.casefold(): at
        for names in reversed(list(DATE_NAMES.values()))
        for months in (names.short_months, names.months)
        for at, name in enumerate(months, 1)
    }
