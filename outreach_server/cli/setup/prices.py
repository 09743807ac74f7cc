"""`settings prices`: what messages and calls cost a workspace, for the estimates of a preflight."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, TextIO

import click
import orjson

from outreach.http import read_price_table, write_price_table
from outreach.models import Channel, Cost, Price, PriceTable, ProviderCost
from outreach.server_support import did_you_mean, nearest
from outreach_server.cli.base import Group, actor, state, with_engine
from outreach_server.cli.output import console, echo_json, listing, note
from outreach_server.cli.values import WORKSPACE

_WRITTEN: Final = re.compile(r"(sms|call)(?:/([^/=]*))?(?:/([^/=]*))?=(.+)")
_AMOUNT: Final = re.compile(r"\d+(\.\d+)?")
_COLUMNS: Final = ("kind", "provider", "country", "amount", "of")
_UNITS: Final = {"sms": "segment", "call": "minute"}


@click.group(cls=Group)
def prices() -> None:
    """Show and set what messages and calls cost a workspace."""


@prices.command("show")
@click.argument("workspace_id", type=WORKSPACE)
def show_(workspace_id: str) -> None:
    """Show the prices."""
    _show(with_engine(lambda engine: engine.prices.get(workspace_id)), workspace_id)


@prices.command("set")
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--currency", metavar="USD", help="Their currency, by ISO 4217.")
@click.option(
    "--price",
    "written",
    multiple=True,
    metavar="KIND[/PROVIDER[/COUNTRY]]=AMOUNT",
    help="A price of an SMS segment or a minute of a call, such as sms/twilio/US=0.0079; * is every other one.",
)
@click.option("--file", type=click.File("r", encoding="utf-8"), help='JSON: {"currency", "prices": [{"kind", …}]}.')
def set_(workspace_id: str, currency: str | None, written: Sequence[str], file: TextIO | None) -> None:
    """Replace the prices of a workspace."""
    if (file is None) == (not written) or (file is None) != (currency is not None):
        raise click.UsageError("Give --currency with one or more --price, or a --file.")
    if file is not None:
        try:
            table = read_price_table(orjson.loads(file.read()))
        except orjson.JSONDecodeError as error:
            raise click.ClickException(f"{file.name} is not JSON: {error}") from None
    else:
        table = PriceTable(currency=currency or "", prices=tuple(_price(text) for text in written))
    _show(with_engine(lambda engine: engine.prices.update(workspace_id, table, actor=actor())), workspace_id)


@prices.command("remove")
@click.argument("workspace_id", type=WORKSPACE)
def remove(workspace_id: str) -> None:
    """Remove the prices of a workspace."""
    with_engine(lambda engine: engine.prices.remove(workspace_id, actor=actor()))
    _show(None, workspace_id)


def _price(text: str) -> Price:
    found = _WRITTEN.fullmatch(text)
    if found is None:
        kind = re.split("[/=]", text)[0]
        hint = "." if kind in _UNITS else f": {kind!r} is no kind{did_you_mean(nearest(kind, _UNITS)) or '.'}"
        raise click.UsageError(f"--price {text!r} is not of the form KIND[/PROVIDER[/COUNTRY]]=AMOUNT{hint}")
    kind, provider, country, amount = found.groups()
    try:
        value = Decimal(amount)
    except InvalidOperation:
        number = re.sub("[^0-9.]", "", amount.replace(",", "."))
        hint = did_you_mean(number if _AMOUNT.fullmatch(number) else None) or ", such as 0.0079."
        raise click.UsageError(f"--price {text!r}: {amount!r} is not an amount{hint}") from None
    return Price(
        kind="sms" if kind == "sms" else "call",
        amount=value,
        provider=None if provider in {None, "", "*"} else provider,
        country=None if country in {None, "", "*"} else country,
    )


def cost_text(cost: Cost | None, channel: Channel) -> str | None:
    """Return a cost, and how much has no price; None without prices."""
    if cost is None:
        return None
    unpriced = f", and {cost.unpriced:,} {_UNITS[channel]}s without a price" if cost.unpriced else ""
    return f"{cost.amount_text} {cost.currency}{unpriced}"


def provider_cost_text(cost: ProviderCost) -> str:
    """Return what providers charge in one currency, and for how many calls."""
    return f"{cost.amount_text} {cost.currency} for {cost.calls:,} calls"


def _show(table: PriceTable | None, workspace_id: str) -> None:
    if state().as_json:
        echo_json(write_price_table(table))
        return
    if table is None:
        note(f"There are no prices. Set them with: outreach-server settings prices set {workspace_id}")
        return
    rows = [
        {
            "kind": one.kind,
            "provider": one.provider or "every other",
            "country": one.country or "every other",
            "amount": f"{one.amount:f} {table.currency}",
            "of": f"a {_UNITS[one.kind]}",
        }
        for one in table.prices
    ]
    console().print(listing(rows, _COLUMNS))
