"""What a single value of a request may be. A rule takes a value of exactly its JSON type, or refuses it.

Nothing is turned into something else: `"60"`, `60.5` and `true` are no integers, and `1` is no boolean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

import attrs

from outreach.convert.json_parsing import shown
from outreach.errors import ErrorDetail
from outreach.policy.texts import RawNumber, as_text

FieldRule = Callable[[Any], Any]
"""Returns the value in the form that the models hold; raises `Refused`."""

MAX_DETAILS: Final = 50
"""Places that one answer names: a hostile body must not make a huge answer."""

MAX_DEPTH: Final = 64
"""Levels of arrays and objects in a value whose form is free."""

_MAX_INTEGER_LENGTH: Final = 64
_MAX_DIGITS: Final = 18
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Refused(ValueError):
    """A value is not what its rule asks for.

    Args:
        message: What would be right.
        path: The place inside the value, to be appended to the value's own.
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.details: Sequence[ErrorDetail] = (ErrorDetail(path, message),)

    @classmethod
    def at(cls, details: Sequence[ErrorDetail]) -> Refused:
        """Return the refusal for several places at once."""
        refused = cls(details[0].message)
        refused.details = tuple(details)
        return refused


@attrs.frozen(kw_only=True)
class Text:
    """A string that every database can store, its length in code points.

    Attributes:
        pattern: What all of it must match, with `meaning` to say so.
    """

    minimum: int = 0
    maximum: int | None = None
    pattern: re.Pattern[str] | None = None
    meaning: str = ""

    def __call__(self, value: Any) -> str:
        """Return the string."""
        if type(value) is not str:
            raise Refused("must be a string")
        if self.pattern is not None:
            if not self.pattern.fullmatch(value):
                raise Refused(self.meaning)
            return value
        if len(value) < self.minimum or (self.maximum is not None and len(value) > self.maximum):
            raise Refused(f"{self._bounds()}, has {len(value)}")
        # Most texts are ASCII, of which the check is one look at a flag and one search.
        if ("\x00" in value) if value.isascii() else _UNSTORABLE.search(value):
            raise Refused("must not contain NUL or half of a surrogate pair")
        return value

    def _bounds(self) -> str:
        if self.maximum is None:
            return f"must have at least {self.minimum} character{'s' if self.minimum != 1 else ''}"
        if self.minimum == 0:
            return f"must have at most {self.maximum} characters"
        return f"must have {self.minimum} to {self.maximum} characters"


@attrs.frozen
class Integer:
    """An integer within bounds. `60.0` is one, as JSON Schema has it; `60.5` and `true` are none."""

    minimum: int
    maximum: int

    def __call__(self, value: Any) -> int:
        """Return the integer."""
        value = without_fraction(value)
        if type(value) is not int:
            raise Refused(f"must be an integer from {self.minimum} to {self.maximum}")
        if not self.minimum <= value <= self.maximum:
            raise Refused(f"must be between {self.minimum} and {self.maximum}")
        return value


def without_fraction(value: Any) -> Any:
    """Return the integer that a number such as `60.0` or `6e1` is; anything else as it came."""
    if type(value) is not RawNumber or len(value.text) > _MAX_INTEGER_LENGTH:
        return value
    try:
        number = Decimal(value.text)
    except ArithmeticError:
        # Its exponent is larger than the arithmetic knows.
        return value
    # The size first: what `1e999999` stands for must not be written out.
    if number.adjusted() > _MAX_DIGITS or number != number.to_integral_value():
        return value
    return int(number)


def boolean(value: Any) -> bool:
    """Take true or false."""
    if type(value) is not bool:
        raise Refused("must be true or false")
    return value


@attrs.frozen
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def __call__(self, value: Any) -> str:
        """Return the word."""
        if type(value) is not str or value not in self.words:
            raise Refused(f"must be one of {', '.join(self.words)}")
        return value


def uuid(value: Any) -> str:
    """Take a UUID in the usual form and return it in lower case."""
    if type(value) is not str or not _UUID.fullmatch(value):
        raise Refused("must be a UUID such as 01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01")
    return value.lower()


def timestamp(value: Any) -> datetime:
    """Take a timestamp and return it in UTC."""
    moment = read_timestamp(value) if type(value) is str else None
    if moment is None:
        raise Refused("must be a timestamp by RFC 3339 such as 2026-12-01T09:00:00Z, years 0002 to 9998")
    return moment


@attrs.frozen
class OrNull:
    """What another rule takes, or null."""

    rule: FieldRule

    def __call__(self, value: Any) -> Any:
        """Return None, or what the other rule returns."""
        if value is None:
            return None
        try:
            return self.rule(value)
        except Refused as refused:
            if refused.details == (ErrorDetail("", "must be a string"),):
                raise Refused("must be a string or null") from None
            raise


@attrs.frozen
class Array:
    """An array whose elements follow one rule."""

    rule: FieldRule
    minimum: int = 0

    def __call__(self, value: Any) -> tuple[Any, ...]:
        """Return the elements; name each wrong one, up to a bound."""
        if type(value) is not list:
            raise Refused("must be an array")
        if len(value) < self.minimum:
            raise Refused(f"must have at least {self.minimum} element{'s' if self.minimum != 1 else ''}")
        found: list[Any] = []
        details: list[ErrorDetail] = []
        for index, item in enumerate(value):
            try:
                found.append(self.rule(item))
            except Refused as refused:
                details += within(f"[{index}]", refused.details)
                if len(details) >= MAX_DETAILS:
                    break
        if details:
            raise Refused.at(details[:MAX_DETAILS])
        return tuple(found)


def variables(value: Any) -> Mapping[str, Any]:
    """Take an object of template variables with values of any kind.

    Values that a 64-bit reader would round are returned as the text that stands for them in a template; all
    others as they are.
    """
    if type(value) is not dict:
        raise Refused("must be an object")
    found: dict[str, Any] = {}
    for key, item in value.items():
        _check_text(key, f".{shown(key)}")
        if type(item) is str:
            _check_text(item, f".{shown(key)}")
            found[key] = item
        else:
            has_written_number = _check_free(item, f".{shown(key)}")
            found[key] = as_text(item) if has_written_number else item
    return found


def within(prefix: str, details: Sequence[ErrorDetail]) -> list[ErrorDetail]:
    """Return details as seen from around the place that they were found in."""
    return [ErrorDetail(prefix + detail.path, detail.message) for detail in details]


def _check_free(value: Any, path: str) -> bool:
    """Check a value of any form; return whether it holds a number that a 64-bit reader would round."""
    written = False
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if type(item) is str:
            _check_text(item, path)
        elif type(item) is RawNumber:
            written = True
        elif type(item) is dict or type(item) is list:
            if depth > MAX_DEPTH:
                raise Refused(f"must not be nested more than {MAX_DEPTH} levels deep", path)
            if type(item) is dict:
                for key in item:
                    _check_text(key, path)
                waiting += ((inner, depth + 1) for inner in item.values())
            else:
                waiting += ((inner, depth + 1) for inner in item)
    return written


def _check_text(text: str, path: str) -> None:
    if ("\x00" in text) if text.isascii() else _UNSTORABLE.search(text):
        raise Refused("must not contain NUL or half of a surrogate pair", path)


_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))?"
)
_LEAP_SECOND: Final = 60
_FIRST_YEAR, _LAST_YEAR = 2, 9998
"""In the years outside, a moment may have no name in UTC that can be stored."""


def read_timestamp(text: str) -> datetime | None:
    """Return the moment in UTC that a text names, or None when it names none.

    Without an offset it is UTC. A leap second is the first moment of the next minute, as clocks that know no
    leap seconds show it; digits beyond microseconds are cut.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, _, sign, offset_hours, offset_minutes = match.groups()[6:]
    if not _FIRST_YEAR <= year <= _LAST_YEAR or int(offset_hours or 0) > 23 or int(offset_minutes or 0) > 59:
        return None
    is_leap = second == _LEAP_SECOND
    try:
        local = datetime(
            year,
            month,
            day,
            hour,
            minute,
            second - is_leap,
            0 if is_leap else int((fraction or "")[:6].ljust(6, "0")),
            tzinfo=_zone(sign, offset_hours, offset_minutes),
        )
    except ValueError:
        return None
    return local.astimezone(UTC) + timedelta(seconds=is_leap)


def _zone(sign: str | None, hours: str | None, minutes: str | None) -> timezone:
    if sign is None or hours is None or minutes is None:
        return UTC
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-offset if sign == "-" else offset)
