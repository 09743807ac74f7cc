"""Preflights, forecasts and price tables as JSON."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from outreach.models.fields import Refused, check_value, fields_of
from outreach.models.prices import MAX_PRICES, Price, PriceTable
from outreach.serialization.documents import document_of
from outreach.serialization.field_rules import Array, make_request_converter, nested

_AMOUNT: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?")


def write_price_table(table: PriceTable | None) -> dict[str, Any]:
    """Return a price table, an empty one for None; amounts are texts, so that no place is lost."""
    return {"currency": None, "prices": []} if table is None else document_of(table)


def read_price_table(value: object) -> PriceTable:
    """Return the price table of a JSON value: `{"currency", "prices": [{"kind", "amount", "provider", "country"}]}`.

    An amount is a text such as `"0.0079"`; provider and country may be null or absent.

    Raises:
        InvalidRequest: The value has another form, or a field that it has not; the details name each place.
    """
    table: PriceTable = check_value("", value, _read_price_table)
    return table


def _amount(value: Any) -> Decimal:
    if not isinstance(value, str) or not _AMOUNT.fullmatch(value):
        raise Refused('must be a text such as "0.0079"')
    amount: Decimal = fields_of(Price)["amount"].check(Decimal(value))
    return amount


_read_price: Final = make_request_converter(Price, {"amount": _amount}, closed="a price")
_read_price_table: Final = make_request_converter(
    PriceTable, {"prices": Array(nested(_read_price), 1, MAX_PRICES)}, closed="a price table"
)
