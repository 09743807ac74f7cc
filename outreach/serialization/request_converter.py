"""The strict converter of requests: it makes a model of a JSON object by the kinds of the model's fields.

A rule converts what JSON has no form for (times, nested models) and checks each value; the model checks itself as it is
constructed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from outreach.errors import InvalidRequest, Problem
from outreach.models.fields import MAX_DETAILS, FieldRule, Integer, ListOf, Refused, fields_of, moment, within
from outreach.models.metadata import JsonObject
from outreach.serialization.field_rules import Array, OrNull, json_object, timestamp, with_numbers, without_fraction
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
    without: Collection[str] = (),
) -> Callable[[Any], T]:
    """Return a function that makes a model of a JSON object, or refuses it with every wrong place.

    Args:
        cls: An attrs class.
        rules: Rules of fields, by their names in the class, that take another form in JSON than in the class.
        renamed: JSON names of fields with another name there.
        closed: What to call the object in the error about an unknown field; None to ignore such fields.
        never_null: Fields that may be None in the class, but not null in JSON.
        ignored: Returns the names of fields that mean nothing beside the values of the others.
        without: Fields of the class that a JSON object does not have.
    """
    rules, names = rules or {}, renamed or {}
    fields = {name: field for name, field in fields_of(cls).items() if name not in without}
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
            # What one field says about another names both.
            told = [attrs.evolve(one, message=_NAME.sub(in_json, one.message)) for one in error.details]
            raise Refused.at(with_json_paths(told, names)) from None

    return read


def read_object(reader: Callable[[Any], T], data: Any) -> T:
    """Return the model of a body.

    Raises:
        InvalidRequest: A rule is broken; the details name each place.
    """
    if type(data) is not dict:
        raise InvalidRequest.at("", "The body must be a JSON object.")
    try:
        return reader(data)
    except Refused as refused:
        raise InvalidRequest(details=refused.details) from None


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
