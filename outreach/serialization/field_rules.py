"""The strict converter of requests: it makes a model of a JSON object by the kinds of the model's fields.

A rule converts what JSON has no form for (times, nested models) and checks each value; the model checks itself as it is
constructed. A value of another JSON type is never converted: `"60"`, `60.5` and `true` are not integers, and `1` is not
a boolean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Final, TypeVar

import attrs

from outreach.core.meant import did_you_mean, moment_like
from outreach.errors import InvalidRequest, Problem
from outreach.models.fields import (
    MAX_DETAILS,
    UUID,
    FieldRule,
    Integer,
    ListOf,
    Refused,
    fields_of,
    moment,
    require_storable,
    within,
)
from outreach.models.metadata import MAX_DEPTH, JsonObject
from outreach.rules.segments import RawNumber, as_text
from outreach.serialization.json_parsing import shown

T = TypeVar("T")

_HEAD: Final = re.compile(r"^\w+")
_NAME: Final = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
"""A word that is surely the name of a field."""


def make_request_converter(
    cls: type[T],
    rules: Mapping[str, FieldRule] | None = None,
    *,
    renamed: Mapping[str, str] | None = None,
    closed: str | None = None,
    never_null: Collection[str] = (),
    ignored: Callable[[Mapping[str, Any]], Collection[str]] = lambda _: (),
    only: Collection[str] | None = None,
) -> Callable[[Any], T]:
    """Return a function that makes a model of a JSON object, or refuses it with every wrong place.

    Args:
        cls: An attrs class.
        rules: Rules of fields, by their names in the class, that take another form in JSON than in the class.
        renamed: JSON names of fields with another name there.
        closed: What to call the object in the error about an unknown field; None to ignore such fields.
        never_null: Fields that may be None in the class, but not null in JSON.
        ignored: Returns the names of fields that mean nothing beside the values of the others.
        only: The fields of the class that a JSON object has; None for all.
    """
    rules, names = rules or {}, renamed or {}
    fields = {name: field for name, field in fields_of(cls).items() if only is None or name in only}
    if not rules.keys() <= fields.keys():
        raise TypeError(f"{cls.__name__} has the fields {sorted(fields)}, but rules for {sorted(rules)}.")
    readers: dict[str, tuple[str, FieldRule]] = {}
    for name, field in fields.items():
        rule = rules.get(name) or json_rule(field.rule)
        nullable = field.optional and name not in never_null
        readers[names.get(name, name)] = name, OrNull(rule) if nullable else rule
    required = {field.name for field in attrs.fields(cls) if field.default is attrs.NOTHING}  # type: ignore[arg-type]

    def in_json(name: re.Match[str]) -> str:
        return names.get(name[0], name[0])

    def read(value: Any) -> T:
        json_object(value)
        given: dict[str, Any] = {}
        details: list[Problem] = []
        for place, (name, rule) in readers.items():
            try:
                if place in value:
                    given[name] = rule(value[place])
                elif name in required:
                    raise Refused("is required")
            except Refused as refused:
                details += within(place, refused.details)
        if closed is not None:
            unknown = sorted(value.keys() - readers.keys())
            details += [Problem(path=shown(name), message=f"is not a field of {closed}") for name in unknown]
        if details:
            raise Refused.at(details[:MAX_DETAILS])
        for name in ignored(given):
            given.pop(name, None)
        try:
            return cls(**given)
        except InvalidRequest as error:
            # A problem of one field may name another one too.
            written = [attrs.evolve(one, message=_NAME.sub(in_json, one.message)) for one in error.details]
            raise Refused.at(with_json_paths(written, names)) from None

    return read


def read_object(reader: Callable[[Any], T], data: Any) -> T:
    """Return the model of a body.

    Raises:
        InvalidRequest: A rule is broken; the details name each place.
    """
    require_object(data)
    try:
        return reader(data)
    except Refused as refused:
        raise InvalidRequest(details=refused.details) from None


def require_object(data: Any) -> None:
    """Raise `InvalidRequest` if a body is no JSON object."""
    if type(data) is not dict:
        raise InvalidRequest.at("", "The body must be a JSON object.")


def json_rule(rule: FieldRule) -> FieldRule:
    """Return the rule of a field for JSON, which has one kind of numbers, arrays, and no times."""
    if isinstance(rule, Integer):
        return lambda value: rule(without_fraction(value))
    if isinstance(rule, JsonObject):
        return lambda value: rule(with_numbers(value))
    if isinstance(rule, ListOf):
        return Array(json_rule(rule.rule), rule.minimum, rule.maximum)
    return timestamp if rule is moment else rule


def nested(read: FieldRule) -> FieldRule:
    """Return a rule for an object inside a value, whose fields are named as `.name`."""

    def rule(value: Any) -> Any:
        try:
            return read(value)
        except Refused as refused:
            dotted = [attrs.evolve(one, path=f".{one.path}" if one.path else "") for one in refused.details]
            raise Refused.at(dotted) from None

    return rule


def with_json_paths(details: Iterable[Problem], names: Mapping[str, str]) -> list[Problem]:
    """Return details of errors about a model with the JSON names of its fields in their paths."""
    return [
        attrs.evolve(one, path=_HEAD.sub(lambda head: names.get(head[0], head[0]), one.path, count=1))
        for one in details
    ]


_MAX_INTEGER_LENGTH: Final = 64
_MAX_DIGITS: Final = 18


def without_fraction(value: Any) -> Any:
    """Return a number such as `60.0` or `6e1` as an integer; anything else unchanged."""
    if type(value) is not RawNumber or len(value.text) > _MAX_INTEGER_LENGTH:
        return value
    try:
        number = Decimal(value.text)
    except ArithmeticError:
        # The exponent is too large for decimal.
        return value
    # Size first: `1e999999` must not be expanded.
    if number.adjusted() > _MAX_DIGITS or number != number.to_integral_value():
        return value
    return int(number)


def with_numbers(value: Any, depth: int = 1) -> Any:
    """Return a value of any form with its numbers as Python has them; refuse those that 64 bits would round."""
    if type(value) is RawNumber:
        number = float(value.text)
        try:
            is_exact = isfinite(number) and Decimal(value.text) == Decimal(repr(number))
        except ArithmeticError:
            # The exponent is too large for decimal.
            is_exact = False
        if not is_exact:
            raise Refused("must not hold a number that needs more than 64 bits: write it as a text")
        return number
    if type(value) is dict or type(value) is list:
        if depth > MAX_DEPTH:
            raise Refused(f"must not be nested more than {MAX_DEPTH} levels deep")
        if type(value) is dict:
            return {key: with_numbers(item, depth + 1) for key, item in value.items()}
        return [with_numbers(item, depth + 1) for item in value]
    return value


def uuid(value: Any) -> str:
    """Return a UUID in lower case."""
    if type(value) is not str or not UUID.fullmatch(value):
        raise Refused("must be a UUID such as 01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01")
    return value.lower()


def timestamp(value: Any) -> datetime:
    """Return a timestamp in UTC."""
    moment = read_timestamp(value) if type(value) is str else None
    if moment is None:
        meant = did_you_mean([f"{one}:00Z" for one in moment_like(value)])
        raise Refused(f"must be a timestamp by RFC 3339 such as 2026-12-01T09:00:00Z, years 0002 to 9998{meant}")
    return moment


class Checks:
    """Checks several values, and refuses all that are wrong together."""

    def __init__(self) -> None:
        self._details: list[Problem] = []

    def read(self, path: str, rule: FieldRule, value: Any) -> Any:
        """Return what a rule makes of a value; note why it refuses the value, and return None."""
        try:
            return rule(value)
        except Refused as refused:
            self._details += within(path, refused.details)
            return None

    def note(self, path: str, message: str) -> None:
        """Note that a value is wrong."""
        self._details.append(Problem(path=path, message=message))

    def finish(self) -> None:
        """Raise `Refused` if something was wrong."""
        if self._details:
            raise Refused.at(self._details[:MAX_DETAILS])


def json_object(value: Any) -> dict[str, Any]:
    """Return a JSON object."""
    if type(value) is not dict:
        raise Refused("must be an object")
    return value


@attrs.frozen
class OrNull:
    """Another rule's value, or null."""

    rule: FieldRule

    def __call__(self, value: Any) -> Any:
        """Return None, or what the other rule returns."""
        if value is None:
            return None
        try:
            return self.rule(value)
        except Refused as refused:
            if refused.details == (Problem(message="must be a string"),):
                raise Refused("must be a string or null") from None
            raise


@attrs.frozen
class Array:
    """An array whose elements follow one rule; see `ListOf`."""

    rule: FieldRule
    minimum: int = 0
    maximum: int | None = None

    def __call__(self, value: Any) -> tuple[Any, ...]:
        """Return the elements."""
        if type(value) is not list:
            raise Refused("must be an array")
        return ListOf(self.rule, self.minimum, self.maximum)(value)


def variables(value: Any) -> Mapping[str, Any]:
    """Return an object of template variables with values of any kind.

    Numbers that 64 bits would round are returned as their text.
    """
    found: dict[str, Any] = {}
    for key, item in json_object(value).items():
        require_storable(key, f".{shown(key)}")
        if type(item) is str:
            require_storable(item, f".{shown(key)}")
            found[key] = item
        else:
            has_written_number = _check_free(item, f".{shown(key)}")
            found[key] = as_text(item) if has_written_number else item
    return found


def _check_free(value: Any, path: str) -> bool:
    """Check a value of any form; return whether it has a number that 64 bits would round."""
    written = False
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if type(item) is str:
            require_storable(item, path)
        elif type(item) is RawNumber:
            written = True
        elif type(item) is dict or type(item) is list:
            if depth > MAX_DEPTH:
                raise Refused(f"must not be nested more than {MAX_DEPTH} levels deep", path)
            if type(item) is dict:
                for key in item:
                    require_storable(key, path)
                waiting += ((inner, depth + 1) for inner in item.values())
            else:
                waiting += ((inner, depth + 1) for inner in item)
    return written


_TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:)([0-9]{2})(\.[0-9]+)?"
    r"([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
)
_LEAP_SECOND: Final = "60"
_FIRST_YEAR, _LAST_YEAR = 2, 9998
"""Outside these years, a time may have no storable form in UTC."""


def read_timestamp(text: str) -> datetime | None:
    """Return a timestamp in UTC, or None for an invalid one.

    Without an offset it is UTC. A leap second becomes the next second; digits beyond microseconds are cut.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None or not _FIRST_YEAR <= int(text[:4]) <= _LAST_YEAR:
        return None
    minute, second, fraction, offset = match.groups(default="")
    is_leap = second == _LEAP_SECOND
    seconds = "59" if is_leap else second + fraction
    try:
        local = datetime.fromisoformat(f"{minute}{seconds}{offset.upper() or 'Z'}")
    except ValueError:
        return None
    return local.astimezone(UTC) + timedelta(seconds=is_leap)
