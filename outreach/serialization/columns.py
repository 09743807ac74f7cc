"""Conversion between models and rows, by the models' own fields: a stored field is named once, in its model.

A column has its field's name (except `to` and `sender`, which queries could not use unquoted). Times are texts of one
width, booleans 0 and 1, enumerations their values, compound values compact JSON. Rows are trusted: this package wrote
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin

import attrs
import orjson

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.core.copying import maker_of
from outreach.serialization.documents import converter, from_json

M = TypeVar("M")

Value = str | int | bytes | None
"""The value of one column."""

RENAMED: Final = {"to": "to_number"}
"""Columns whose names differ from their fields'."""

_PLAIN: Final = (str, int, bytes)


class Columns(Generic[M]):
    """The columns of a model.

    Args:
        model: The model.
        without: Fields that have no column.

    Attributes:
        names: The columns, in the order of the model's fields.
    """

    def __init__(self, model: type[M], *, without: Sequence[str] = ()) -> None:
        attrs.resolve_types(model)  # type: ignore[type-var]
        fields = [field for field in attrs.fields(model) if field.name not in without]  # type: ignore[arg-type]
        self._model = model
        self._fields = tuple(field.name for field in fields)
        self._make = maker_of(model, self._fields)
        self.names = tuple(RENAMED.get(name, name) for name in self._fields)
        getter = attrgetter(*self._fields)
        self._values: Callable[[M], Sequence[Any]] = getter if len(fields) > 1 else lambda model: (getter(model),)
        codecs = [(index, codec) for index, field in enumerate(fields) if (codec := _codec(field.type)) is not None]
        self._writers = [(index, writer) for index, (writer, _) in codecs]
        self._readers = [(index, reader) for index, (_, reader) in codecs]
        self._mappings = [index for index, field in enumerate(fields) if _is_mapping(field.type)]

    def row(self, model: M) -> list[Value]:
        """Return a model's columns."""
        values = list(self._values(model))
        for index, write in self._writers:
            if values[index] is not None:
                values[index] = write(values[index])
        return values

    def model(self, row: Sequence[Any], **more: Any) -> M:
        """Return the model of a row; `more` are the fields that have no column."""
        values = list(row)
        for index, read in self._readers:
            if values[index] is not None:
                values[index] = read(values[index])
        for index in self._mappings:
            # An empty mapping has no value: a million contacts without variables store nothing for them.
            if values[index] is None:
                values[index] = {}
        if self._make is not None:
            made: M = self._make(values)
            return made
        return self._model(**dict(zip(self._fields, values, strict=True)), **more)


_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_text(value: object) -> str:
    """Return a value as compact JSON."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # Such as an integer of more than 64 bits.
        return _encode(value)


_decode: Final = json.JSONDecoder().raw_decode


def _from_json_text(text: str) -> Any:
    # What `json.loads` does besides takes longer than to decode the variables of a contact.
    return _decode(text)[0]


_Codec = tuple[Callable[[Any], Value], Callable[[Any], Any]]


def _codec(kind: Any) -> _Codec | None:
    """Return the writer and reader of a type's non-None values; None for a type that is stored as it is."""
    kind = _required(kind)
    if kind in _PLAIN or get_origin(kind) is Literal:
        return None
    if kind is datetime:
        return format_timestamp, parse_timestamp
    if kind is date:
        return date.isoformat, date.fromisoformat
    if kind is Decimal:
        return _millionths, money_of
    if kind is bool:
        return int, bool
    if isinstance(kind, type) and issubclass(kind, Enum):
        # The database driver has no adapter for enum members.
        # A call of the class takes ten times as long.
        return str, {member.value: member for member in kind}.__getitem__
    if _is_mapping(kind):
        return json_text, _from_json_text
    return (
        lambda value: json_text(converter.unstructure(value, unstructure_as=kind)),
        lambda text: from_json(kind, json.loads(text)),
    )


_MILLIONTH: Final = Decimal(1).scaleb(-6)


def _millionths(amount: Decimal) -> int:
    """Return an amount of money as databases add it up exactly."""
    return int(amount.quantize(_MILLIONTH) / _MILLIONTH)


def money_of(count: int) -> Decimal:
    """Return an amount of money that is stored as millionths."""
    amount = (count * _MILLIONTH).normalize()
    return amount if amount.as_tuple().exponent <= 0 else amount.quantize(Decimal(1))  # type: ignore[operator]


def _required(kind: Any) -> Any:
    """Return a type without its None."""
    if get_origin(kind) in {Union, UnionType}:
        return Union[tuple(one for one in get_args(kind) if one is not NoneType)]  # noqa: UP007 - made of what is left
    return kind


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping
