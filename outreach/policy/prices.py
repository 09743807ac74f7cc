"""Finding a price, and adding up what a campaign costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from outreach.models.forecast import ForecastAssumptions
from outreach.models.prices import CostEstimate, CostLine, PriceKind, PriceTable


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


def estimate_cost(
    table: PriceTable, kind: PriceKind, provider: str | None, quantities: Mapping[str | None, int]
) -> CostEstimate:
    """Return the cost of segments or minutes, given by country."""
    lines = []
    for country, quantity in sorted(quantities.items(), key=lambda item: (-item[1], item[0] or "")):
        price = find_price(table, kind, provider, country)
        amount = None if price is None else price * quantity
        lines.append(
            CostLine(kind=kind, provider=provider, country=country, quantity=quantity, price=price, amount=amount)
        )
    return CostEstimate(
        currency=table.currency,
        amount=sum((line.amount for line in lines if line.amount is not None), Decimal()),
        lines=tuple(lines),
        unpriced=sum(line.quantity for line in lines if line.price is None),
    )


def expected_minutes(
    calls: Mapping[str | None, int], assumptions: ForecastAssumptions, attempts: int
) -> Mapping[str | None, int]:
    """Return the begun minutes of the calls to contacts, given by country; those that nobody answers cost nothing."""
    answered = 1 - (1 - assumptions.answer_rate) ** attempts
    minutes = math.ceil(assumptions.call_seconds / 60)
    return {country: round(contacts * answered) * minutes for country, contacts in calls.items()}
