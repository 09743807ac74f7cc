"""Preflights, forecasts and price tables as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final

import attrs

from outreach.clock import format_timestamp
from outreach.convert.json_reader import JsonReader
from outreach.models.forecast import Forecast
from outreach.models.preflight import Preflight
from outreach.models.prices import Price, PriceTable

MAX_PRICES: Final = 2000
_MAX_TEXT: Final = 100


def write_preflight(preflight: Preflight) -> dict[str, Any]:
    """Return a preflight with every field, under its name; amounts are texts, so that no place is lost."""
    return _object(preflight)


def write_forecast(forecast: Forecast) -> dict[str, Any]:
    """Return a forecast with every field, under its name."""
    return _object(forecast)


def write_price_table(table: PriceTable) -> dict[str, Any]:
    """Return a price table; amounts are texts, so that no place is lost."""
    return _object(table)


def read_price_table(value: object) -> PriceTable:
    """Return the price table of a JSON value: `{"currency", "prices": [{"kind", "amount", "provider", "country"}]}`.

    An amount is a text such as `"0.0079"`; provider and country may be null or absent.

    Raises:
        InvalidRequest: The value has another form; the details name each place.
    """
    reader = JsonReader()
    table = reader.read_object(value, "prices") or {}
    currency = reader.read_text(table.get("currency"), "currency", most=_MAX_TEXT)
    prices = []
    for index, entry in enumerate(reader.read_array(table.get("prices"), "prices", most=MAX_PRICES) or ()):
        path = f"prices[{index}]"
        given = reader.read_object(entry, path)
        if given is not None:
            prices.append(_price(reader, given, path))
    reader.finish()
    return PriceTable(currency=currency or "", prices=tuple(price for price in prices if price is not None))


def _price(reader: JsonReader, given: Mapping[str, object], path: str) -> Price | None:
    texts = {
        name: None if given.get(name) is None else reader.read_text(given[name], f"{path}.{name}", most=_MAX_TEXT)
        for name in ("kind", "amount", "provider", "country")
    }
    amount = None
    for name in ("kind", "amount"):
        if given.get(name) is None:
            reader.note(f"{path}.{name}", "is required")
    if texts["amount"] is not None:
        try:
            amount = Decimal(texts["amount"])
        except InvalidOperation:
            reader.note(f"{path}.amount", 'must be a text such as "0.0079"')
    if texts["kind"] is None or amount is None:
        return None
    kind: Any = texts["kind"]
    return Price(kind=kind, amount=amount, provider=texts["provider"], country=texts["country"])


def _object(model: object) -> dict[str, Any]:
    kind: Any = type(model)
    return {field.name: _plain(getattr(model, field.name)) for field in attrs.fields(kind)}


def _plain(value: object) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case Enum():
            return value.value
        case str():
            return value
        case Decimal():
            return format(value, "f")
        case datetime():
            return format_timestamp(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return _object(value)
