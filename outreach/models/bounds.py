"""Bounds of fields. They stand once, on the models; validation, JSON, the command line and openapi.yaml follow them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import attrs

_KEY: Final = "outreach.bounds"


class Bounds(NamedTuple):
    """The least and the greatest value of an integer."""

    minimum: int
    maximum: int


class Length(NamedTuple):
    """The fewest and the most characters (code points) of a text."""

    minimum: int
    maximum: int


def bounded(minimum: int, maximum: int, **options: Any) -> Any:
    """Return an attrs field of a bounded integer; `options` are those of `attrs.field`."""
    return attrs.field(metadata={_KEY: Bounds(minimum, maximum)}, **options)


def sized(minimum: int, maximum: int, **options: Any) -> Any:
    """Return an attrs field of a text of bounded length; `options` are those of `attrs.field`."""
    return attrs.field(metadata={_KEY: Length(minimum, maximum)}, **options)


def bounded_fields(model: type[Any]) -> Mapping[str, Bounds | Length]:
    """Return the bounds of a model's fields that have some, by name."""
    return MappingProxyType(
        {field.name: field.metadata[_KEY] for field in attrs.fields(model) if _KEY in field.metadata}
    )


def optional_fields(model: type[Any]) -> frozenset[str]:
    """Return the names of a model's fields that may be None."""
    return frozenset(field.name for field in attrs.fields(model) if "None" in str(field.type))


def bounds_of(model: type[Any], field: str) -> Bounds | Length:
    """Return the bounds of a model's field; raise `LookupError` if it has none."""
    return bounded_fields(model)[field]
