"""Figures of reports: costs by a table of prices, and equal steps of time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from outreach.models.forecast import ForecastAssumptions
from outreach.models.prices import Cost, CostLine, PriceKind, PriceTable


def find_price(table: PriceTable, kind: PriceKind, provider: str | None, country: str | None) -> Decimal | None:
    """Return the price of a segment or minute; None if the table has none.

    That of the provider and country takes precedence over that of the country, this over the provider's, and this over
    the general one.
    """
    known = {(one.provider, one.country): one.amount for one in table.prices if one.kind == kind}
    for key in ((provider, country), (None, country), (provider, None), (None, None)):
        if key in known:
            return known[key]
    return None


def depends_on_country(table: PriceTable | None, kind: PriceKind) -> bool:
    """Return whether a table has prices for single countries."""
    return table is not None and any(one.kind == kind and one.country is not None for one in table.prices)


def cost_of(table: PriceTable, kind: PriceKind, quantities: Mapping[tuple[str | None, str | None], int]) -> Cost:
    """Return the cost of segments or minutes, given by provider and country."""
    lines = []
    for (provider, country), quantity in sorted(
        quantities.items(), key=lambda item: (-item[1], item[0][0] or "", item[0][1] or "")
    ):
        price = find_price(table, kind, provider, country)
        amount = None if price is None else price * quantity
        lines.append(
            CostLine(kind=kind, provider=provider, country=country, quantity=quantity, price=price, amount=amount)
        )
    return Cost(
        currency=table.currency,
        amount=sum((line.amount for line in lines if line.amount is not None), Decimal()),
        lines=tuple(lines),
        unpriced=sum(line.quantity for line in lines if line.price is None),
    )


def expected_minutes(
    calls: Mapping[str | None, int], assumptions: ForecastAssumptions, attempts: int, *, double_dial: bool
) -> Mapping[str | None, int]:
    """Return the begun minutes of the calls to contacts, given by country; those that nobody answers cost nothing."""
    answered = 1 - (1 - assumptions.answer_rate) ** (attempts * 2 if double_dial else attempts)
    minutes = math.ceil(assumptions.call_seconds / 60)
    return {country: round(contacts * answered) * minutes for country, contacts in calls.items()}


_HOUR: Final = timedelta(hours=1)
_DAYS: Final = (1, 7, 28, 364)
MAX_STEPS: Final = 120
"""More than a chart can show."""

_HOURLY: Final = timedelta(days=3)


def bounds(first: datetime, last: datetime, timezone: str) -> Sequence[datetime]:
    """Return the bounds of the steps that hold both moments: one more than there are steps, at most `MAX_STEPS`.

    A step is an hour where the stretch is at most three days, else one or more whole days of the zone, from midnight to
    midnight by its clocks.
    """
    zone = ZoneInfo(timezone)
    if last - first <= _HOURLY:
        start = first.replace(minute=0, second=0, microsecond=0)
        count = int((last - start) / _HOUR) + 1
        return [start + _HOUR * index for index in range(count + 1)]
    midnight = first.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    days = (last.astimezone(zone).date() - midnight.date()).days + 1
    each = next((size for size in _DAYS if days / size <= MAX_STEPS), -(-days // MAX_STEPS))
    count = -(-days // each)
    # Of aware times Python adds to the wall clock, so that days of 23 and 25 hours are days.
    moments = [midnight + timedelta(days=each * index) for index in range(count + 1)]
    return [moment.astimezone(first.tzinfo) for moment in moments]
