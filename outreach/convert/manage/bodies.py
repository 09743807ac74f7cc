"""Reading the closed JSON objects of these bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from outreach.convert.field_rules import FieldRule, Refused
from outreach.errors import ErrorDetail, InvalidRequest

T = TypeVar("T")


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
    """Return a rule for objects in an array, whose fields are told as `[3].name`."""

    def read(value: Any) -> Any:
        try:
            return rule(value)
        except Refused as refused:
            dotted = [ErrorDetail(f".{one.path}" if one.path else "", one.message) for one in refused.details]
            raise Refused.at(dotted) from None

    return read
