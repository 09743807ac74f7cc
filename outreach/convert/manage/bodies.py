"""Reading the closed JSON objects of these bodies, and writing models field by field."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import attrs

from outreach.clock import format_timestamp

Document = dict[str, Any]


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
