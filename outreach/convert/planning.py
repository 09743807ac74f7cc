"""Preflights, forecasts and price tables as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any, Final

from outreach.convert.json_parsing import shown
from outreach.convert.json_reader import JsonReader
from outreach.convert.manage.bodies import document_of
from outreach.models.forecast import Forecast
from outreach.models.preflight import Preflight
from outreach.models.prices import Price, PriceTable

MAX_PRICES: Final = 2000
_MAX_TEXT: Final = 100
_AMOUNT: Final = re.compile(r"1000(\.0{1,6})?|[0-9]{1,3}(\.[0-9]{1,6})?")
_PRICE_FIELDS: Final = frozenset({"kind", "amount", "provider", "country"})


def write_preflight(preflight: Preflight) -> dict[str, Any]:
    """Return a preflight with every field, under its name; amounts are texts, so that no place is lost."""
    return document_of(preflight)


def write_forecast(forecast: Forecast) -> dict[str, Any]:
    """Return a forecast with every field, under its name."""
    return document_of(forecast)


def write_price_table(table: PriceTable | None) -> dict[str, Any]:
    """Return a price table, an empty one for None; amounts are texts, so that no place is lost."""
    return {"currency": None, "prices": []} if table is None else document_of(table)


def read_price_table(value: object) -> PriceTable:
    """Return the price table of a JSON value: `{"currency", "prices": [{"kind", "amount", "provider", "country"}]}`.

    An amount is a text such as `"0.0079"`, with at most six decimal places; provider and country may be null or absent.

    Raises:
        InvalidRequest: The value has another form, or a field that it has not; the details name each place.
    """
    reader = JsonReader()
    table = reader.read_object(value, "")
    if table is None:
        table = {"currency": "", "prices": []}
    _refuse_others(reader, table, {"currency", "prices"}, "")
    currency = reader.read_text(table.get("currency"), "currency", most=_MAX_TEXT)
    prices = []
    for index, entry in enumerate(reader.read_array(table.get("prices"), "prices", most=MAX_PRICES) or ()):
        path = f"prices[{index}]"
        given = reader.read_object(entry, path)
        if given is not None:
            _refuse_others(reader, given, _PRICE_FIELDS, f"{path}.")
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
        if _AMOUNT.fullmatch(texts["amount"]):
            amount = Decimal(texts["amount"])
        else:
            message = 'must be a text such as "0.0079", from 0 to 1000 with at most 6 decimal places'
            reader.note(f"{path}.amount", message)
    if texts["kind"] is None or amount is None:
        return None
    kind: Any = texts["kind"]
    return Price(kind=kind, amount=amount, provider=texts["provider"], country=texts["country"])


def _refuse_others(reader: JsonReader, given: Mapping[str, object], known: Set[str], prefix: str) -> None:
    for name in sorted(given.keys() - known):
        reader.note(f"{prefix}{shown(name)}", "is not a field of a price table")
