"""Reading the closed JSON objects of these bodies, and writing models field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

import attrs

from outreach.clock import format_timestamp
from outreach.convert.field_rules import FieldRule, Refused
from outreach.errors import ErrorDetail, InvalidRequest

T = TypeVar("T")

Document = dict[str, Any]


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


def in_array(rule: FieldRule) -> FieldRule:
    """Return a rule for objects in an array, whose fields are named as `[3].name`."""

    def read(value: Any) -> Any:
        try:
            return rule(value)
        except Refused as refused:
            dotted = [ErrorDetail(f".{one.path}" if one.path else "", one.message) for one in refused.details]
            raise Refused.at(dotted) from None

    return read


def document_of(item: object, *hidden: str) -> Document:
    """Return a model's fields as JSON types, without those that are hidden."""
    kind: Any = type(item)
    return {field.name: _plain(getattr(item, field.name)) for field in attrs.fields(kind) if field.name not in hidden}


def _plain(value: object) -> Any:
    match value:
        case Enum():
            return value.value
        case datetime():
            return format_timestamp(value)
        case Decimal():
            return format(value, "f")
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return document_of(value) if attrs.has(type(value)) else value
