"""Template variables: any JSON value as the text that stands for it in a message or a prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

import attrs


@attrs.frozen
class WrittenNumber:
    """A number of a JSON document by the characters that it was written with: `1.10`, `1e5`.

    A parser that must not round delivers it where no integer of 64 bits can stand for the number.
    """

    text: str


JSON: TypeAlias = "str | int | float | Decimal | WrittenNumber | bool | Sequence[JSON] | Mapping[str, JSON] | None"
"""What a JSON document holds; a parser that must not round numbers may deliver `Decimal` or `WrittenNumber`."""


def as_text(value: JSON) -> str:
    """Return a JSON value as text.

    A string is itself, a number is as it was written, true and false are words, null is nothing, and anything
    else is compact JSON.

    Raises:
        ValueError: The value is or holds a number that JSON cannot write (NaN, infinity).
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else _compact(value)


def _compact(value: JSON) -> str:
    """Return compact JSON.

    `json.dumps` cannot write a `Decimal` digit by digit, so the containers are written here.
    """
    if isinstance(value, WrittenNumber):
        return value.text
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("JSON has no such number.")
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, Mapping):
        members = (f"{json.dumps(key, ensure_ascii=False)}:{_compact(item)}" for key, item in value.items())
        return "{" + ",".join(members) + "}"
    return "[" + ",".join(map(_compact, value)) + "]"
