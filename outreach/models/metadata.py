"""Metadata: a JSON object that an application attaches to a message, a call or a campaign, and gets back."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import attrs
import orjson

from outreach.models.fields import Refused, Text, require_storable

MAX_DEPTH: Final = 64
"""The deepest nesting of a value of any form."""

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


@attrs.frozen
class JsonObject:
    """A JSON object that is kept as it is.

    Attributes:
        maximum: The most bytes as compact JSON in UTF-8.
    """

    maximum: int

    def __call__(self, value: Any) -> dict[str, Any]:
        """Return a copy of the object."""
        if not isinstance(value, Mapping):
            raise Refused("must be an object")
        found: dict[str, Any] = _copied(value, 1)
        size = len(orjson.dumps(found))
        if size > self.maximum:
            raise Refused(f"must have at most {self.maximum} bytes as JSON, has {size}")
        return found


METADATA: Final = JsonObject(4096)
"""The rule of metadata."""


_PAIR: Final = Text(1, 255)


def metadata_pair(value: Any) -> str:
    """Return a filter by metadata: a name and its text, whole number, true or false, such as `team=7`."""
    pair = _PAIR(value)
    if "=" not in pair:
        raise Refused("must be a name and a value of the metadata, such as team=7")
    return pair


def _copied(value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        require_storable(value)
        return value
    if kind is int and _LOWEST <= value <= _HIGHEST:
        return value
    if kind is float and isfinite(value):
        return value
    if kind in {int, float}:
        raise Refused("must not hold a number that needs more than 64 bits: write it as a text")
    if depth > MAX_DEPTH:
        raise Refused(f"must not be nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return {_name(key): _copied(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(item, depth + 1) for item in value]
    raise Refused(f"must hold JSON values only, not {kind.__name__}")


def _name(key: Any) -> str:
    if type(key) is not str:
        raise Refused(f"must have names that are strings, not {type(key).__name__}")
    require_storable(key)
    return key
