"""The costs of a workspace's messages and calls, by its own table."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, Literal

import attrs

from outreach.errors import Problem
from outreach.models.fields import ListOf, Model, Refused, Text, ruled, sized

PriceKind = Literal["sms", "call"]

_USUAL_PLACES: Final = 2
_PLACES: Final = {
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI"), 0),
    **dict.fromkeys(("VND", "VUV", "XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}
"""The decimals of currencies by ISO 4217, where these are not two."""

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_COUNTRY: Final = re.compile(r"[A-Z]{2}")
MAX_PRICES: Final = 2000
_MAX_AMOUNT: Final = Decimal(1000)
_MAX_DECIMALS: Final = 6


def _currency(value: Any) -> str:
    if not isinstance(value, str) or not _CURRENCY.fullmatch(value):
        from outreach.core.meant import currency_like, did_you_mean

        raise Refused(f"must be three capital letters such as USD{did_you_mean(currency_like(value))}")
    return value


def _amount(value: Any) -> Decimal:
    if not isinstance(value, Decimal):
        raise Refused(f"must be a Decimal, not {type(value).__name__}")
    if not value.is_finite() or not 0 <= value <= _MAX_AMOUNT or -int(value.as_tuple().exponent) > _MAX_DECIMALS:
        raise Refused(f"must be from 0 to {_MAX_AMOUNT}, with at most {_MAX_DECIMALS} decimal places")
    return value


def unknown_country(written: str) -> Refused:
    """Return the refusal of a text that is no country; it names those that the text may mean."""
    from outreach.core.meant import did_you_mean, regions_like

    return Refused(f"must be a country's two capital letters, such as US{did_you_mean(regions_like(written))}")


@attrs.frozen
class _Country(Text):
    """Two capital letters."""

    def __call__(self, value: Any) -> str:
        """Return the letters."""
        if isinstance(value, str) and not _COUNTRY.fullmatch(value):
            raise unknown_country(value)
        return Text.__call__(self, value)


@attrs.frozen
class _Prices(ListOf):
    """Prices, each for another kind, provider and country."""

    def __call__(self, value: Any) -> tuple[Any, ...]:
        """Return the prices; the refusal names each that is for the same as an earlier one."""
        prices = ListOf.__call__(self, value)
        seen: set[tuple[str, str | None, str | None]] = set()
        details: list[Problem] = []
        for index, price in enumerate(prices):
            key = (price.kind, price.provider, price.country)
            if key in seen:
                message = "is for the same kind, provider and country as an earlier one"
                details.append(Problem(path=f"[{index}]", message=message))
            seen.add(key)
        if details:
            raise Refused.at(details)
        return prices


@attrs.frozen(kw_only=True)
class Price:
    """One price: of an SMS segment, or of a minute of a call.

    Attributes:
        amount: In the table's currency.
        provider: For this carrier or voice provider only; None for every other.
        country: For numbers of this country only, as ISO 3166 alpha-2; None for every other.
    """

    kind: PriceKind
    amount: Decimal = ruled(_amount)
    provider: str | None = sized(0, 100, default=None)
    country: str | None = ruled(_Country(pattern=_COUNTRY), default=None)


@attrs.frozen(kw_only=True)
class PriceTable:
    """The prices of a workspace.

    The price of a request is that of its provider and country, else of its country, else of its provider, else the
    general one of its kind.

    Attributes:
        currency: ISO 4217, such as `USD`.
    """

    currency: str = ruled(_currency)
    prices: tuple[Price, ...] = ruled(_Prices(Model(Price), 1, MAX_PRICES))


@attrs.frozen(kw_only=True)
class CostLine:
    """The cost of a campaign's requests through one provider to one country.

    Attributes:
        country: ISO 3166 alpha-2; None if the prices do not depend on it, or if it is unknown.
        quantity: SMS segments, or minutes of calls.
        price: Of one of them; None if the table has none.
        amount: In the table's currency; None without a price.
    """

    kind: PriceKind
    provider: str | None
    country: str | None
    quantity: int
    price: Decimal | None
    amount: Decimal | None


@attrs.frozen(kw_only=True)
class Cost:
    """The cost of a campaign by the workspace's prices: expected by a preflight, of what was sent in a report.

    Attributes:
        currency: ISO 4217.
        amount: The sum of the lines that have a price.
        lines: By provider and country, the largest quantity first.
        unpriced: Segments or minutes without a price, which `amount` does not have.
    """

    currency: str
    amount: Decimal
    lines: tuple[CostLine, ...]
    unpriced: int

    @property
    def amount_text(self) -> str:
        """The amount for people, rounded to the decimals of its currency, with its digits in groups: `1,234.50`."""
        return _for_people(self.amount, self.currency)


@attrs.frozen(kw_only=True)
class ProviderCost:
    """The providers' charges for calls in one currency, as far as they report them.

    Attributes:
        currency: ISO 4217.
        calls: The calls whose sum is `amount`.
    """

    currency: str
    amount: Decimal
    calls: int

    @property
    def amount_text(self) -> str:
        """The amount for people, as that of `Cost`."""
        return _for_people(self.amount, self.currency)


def _for_people(amount: Decimal, currency: str) -> str:
    places = _PLACES.get(currency, _USUAL_PLACES)
    smallest = Decimal(1).scaleb(-places)
    if 0 < amount < smallest / 2:
        return f"less than {smallest:f}"
    return f"{amount.quantize(smallest, ROUND_HALF_UP):,f}"
