"""Preflights, forecasts and price tables as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any, Final

import attrs

from outreach.models.approval import StartApproval
from outreach.models.clock import AudienceClock
from outreach.models.fields import FieldRule, Refused, Text, check_value
from outreach.models.forecast import Forecast, KeptForecast
from outreach.models.live import CampaignNow, CampaignProgress
from outreach.models.preflight import Preflight
from outreach.models.prices import Price, PriceTable
from outreach.serialization.documents import document_of
from outreach.serialization.field_rules import Array, Checks, OrNull, json_object
from outreach.serialization.json_parsing import shown

MAX_PRICES: Final = 2000
_TEXT: Final = Text(0, 100)
_AMOUNT: Final = re.compile(r"1000(\.0{1,6})?|[0-9]{1,3}(\.[0-9]{1,6})?")


def write_preflight(preflight: Preflight) -> dict[str, Any]:
    """Return a preflight with every field, under its name; amounts are texts, so that no place is lost."""
    return document_of(preflight)


def write_forecast(forecast: Forecast) -> dict[str, Any]:
    """Return a forecast with every field, under its name."""
    return document_of(forecast)


def write_kept_forecast(forecast: KeptForecast) -> dict[str, Any]:
    """Return a kept forecast with every field, under its name."""
    return document_of(forecast)


def write_audience_clock(found: AudienceClock) -> dict[str, Any]:
    """Return how many contacts can be reached in which hour."""
    return document_of(found)


def write_start_approval(found: StartApproval) -> dict[str, Any]:
    """Return whether a start needs approval, and the approval; the amount is a text, so that no place is lost."""
    return document_of(found)


def write_campaign_now(found: CampaignNow) -> dict[str, Any]:
    """Return what a campaign waits for now."""
    return document_of(found)


def write_campaign_progress(found: CampaignProgress) -> dict[str, Any]:
    """Return a campaign's requests by steps of time."""
    return document_of(found)


def write_price_table(table: PriceTable | None) -> dict[str, Any]:
    """Return a price table, an empty one for None; amounts are texts, so that no place is lost."""
    return {"currency": None, "prices": []} if table is None else document_of(table)


def read_price_table(value: object) -> PriceTable:
    """Return the price table of a JSON value: `{"currency", "prices": [{"kind", "amount", "provider", "country"}]}`.

    An amount is a text such as `"0.0079"`, with at most six decimal places; provider and country may be null or absent.

    Raises:
        InvalidRequest: The value has another form, or a field that it has not; the details name each place.
    """
    table: PriceTable = check_value("", value, _price_table)
    return table


def _price_table(value: Any) -> PriceTable:
    checks = Checks()
    given = json_object(value)
    _refuse_others(checks, given, attrs.fields_dict(PriceTable).keys(), "")
    currency = checks.read("currency", _TEXT, given.get("currency"))
    prices = checks.read("prices", Array(_price, maximum=MAX_PRICES), given.get("prices"))
    checks.finish()
    return PriceTable(currency=currency, prices=prices)


def _price(value: Any) -> Price:
    checks = Checks()
    given = json_object(value)
    _refuse_others(checks, given, _PRICE_RULES.keys(), ".")
    price = {name: checks.read(f".{name}", rule, given.get(name)) for name, rule in _PRICE_RULES.items()}
    checks.finish()
    return Price(**price)


def _amount(value: Any) -> Decimal:
    if not _AMOUNT.fullmatch(_required_text(value)):
        raise Refused('must be a text such as "0.0079", from 0 to 1000 with at most 6 decimal places')
    return Decimal(value)


def _required_text(value: Any) -> str:
    if value is None:
        raise Refused("is required")
    return _TEXT(value)


_PRICE_RULES: Final[Mapping[str, FieldRule]] = {
    "kind": _required_text,
    "amount": _amount,
    "provider": OrNull(_TEXT),
    "country": OrNull(_TEXT),
}


def _refuse_others(checks: Checks, given: Mapping[str, Any], known: Set[str], prefix: str) -> None:
    for name in sorted(given.keys() - known):
        checks.note(f"{prefix}{shown(name)}", "is not a field of a price table")
