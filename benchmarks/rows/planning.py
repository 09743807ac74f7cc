"""How long it takes to tell what a campaign will do to each contact, and when it will be done."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from decimal import Decimal
from functools import partial
from typing import Final

import anyio

from benchmarks.results import Results, Sample, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import Settings
from benchmarks.tenants import Tenant, tenant
from outreach import Outreach
from outreach.models import Price, PriceTable, WorkspaceUpdate

_SECONDS: Final = "s"
_EACH: Final = "us a contact"


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    large, small = settings.sized((100_000, 1000), (1000, 10))
    many, few = (tenant(settings.place(f"preflight-{count}"), contacts=count) for count in (large, small))
    for case, work in (("preflight", _preflight), ("forecast", _forecast)):
        settings.say(f"preflight: {case} of {large} contacts")
        sides: dict[str, Callable[[], Sample]] = {
            "outreach": partial(_took, many, large, work),
            "a hundredth": partial(_took, few, small, work),
        }
        samples = alternate(sides, settings.rounds)
        name = f"{case}, {large:,} contacts"
        results.compare(samples, "a hundredth", row="preflight", case=name, unit=_EACH)
        results.figure(samples["outreach"], _SECONDS, row="preflight", case=name, wanted=at_most(2))
    return results


async def _preflight(engine: Outreach, workspace_id: str, campaign_id: str) -> None:
    await engine.campaigns.preflight(workspace_id, campaign_id)


async def _forecast(engine: Outreach, workspace_id: str, campaign_id: str) -> None:
    await engine.campaigns.forecast(workspace_id, campaign_id)


def _took(of: Tenant, contacts: int, work: Callable[[Outreach, str, str], Awaitable[None]]) -> Sample:
    seconds = anyio.run(_timed, of, work)
    return {_SECONDS: seconds, _EACH: seconds / contacts * 1e6}


async def _timed(of: Tenant, work: Callable[[Outreach, str, str], Awaitable[None]]) -> float:
    """Return the seconds, with the rules of a live workspace: contact hours, and prices by country."""
    async with Outreach.open(of.url) as engine:
        await engine.workspaces.update(of.workspace_id, WorkspaceUpdate(contact_hours=True))
        prices = (Price(kind="sms", amount=Decimal("0.0079"), country="US"),)
        await engine.prices.update(of.workspace_id, PriceTable(currency="USD", prices=prices))
        (campaign,) = (await engine.campaigns.list(of.workspace_id)).items
        begun = time.perf_counter()
        await work(engine, of.workspace_id, campaign.id)
        return time.perf_counter() - begun
