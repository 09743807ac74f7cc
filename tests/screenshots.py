"""Make the pictures of the console: `make screenshots`, or `python -m tests.screenshots DIRECTORY`.

A clinic's sandbox works for an hour of virtual time; then Chromium looks at its pages, in both themes.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from outreach import (
    BusinessHours,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
    SimulatorConfig,
    TimeWindow,
)
from outreach.models import DAYS, Price, PriceTable
from outreach.testing.clock import ShiftedClock
from outreach.testing.virtual_time import VirtualTimeLoop
from outreach_server.console import ConsoleUser, Role, create_console
from tests.console.chromium import browser, serving

BEGAN: Final = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
"""A Monday, nine in the morning in New York."""

SENDER: Final = "+12125550100"
NAMES: Final = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Frances", "Ken")
SIMULATOR: Final = SimulatorConfig(latency_ms=20, seed=4, failure_rate=0.02)
WIDTHS: Final = {"overview": 1280, "campaign": 1280, "check": 1280, "contact": 1280, "phone": 390}
HEIGHTS: Final = {"phone": 844}
SHOWN: Final = {"check": "main button.primary"}
"""What is scrolled to, where it is not at the top."""

MOST_BYTES: Final = 1_500_000


def people(area: int, count: int) -> list[NewRecipient]:
    """Return people of an area, with numbers reserved for fiction and others that nobody has."""
    return [
        NewRecipient(
            phone_number=f"+1{area}555{number:04}",
            first_name=NAMES[number % len(NAMES)],
            custom_variables={"slot": f"{8 + number % 9}:{15 * (number % 4):02}"},
        )
        for number in range(count)
    ]


async def past(database: str) -> Mapping[str, str]:
    """Let the clinic work for an hour; return the path of each page, by the name of its picture."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    async with Outreach.open(database, dispatch=True, clock=loop.clock, simulator=SIMULATOR) as engine:
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme Clinic", default_region="US"))).id
        await engine.numbers.create(workspace, NewNumber(phone=SENDER, carrier="twilio"))
        prices = PriceTable(currency="USD", prices=(Price(kind="sms", amount=Decimal("0.0079")),))
        await engine.prices.update(workspace, prices)

        async def create(name: str, body: str, to: list[NewRecipient], *, hours: BusinessHours | None = None) -> str:
            new = NewSmsCampaign(
                name=name,
                body=body,
                carrier="twilio",
                from_number=SENDER,
                rate_per_minute=20,
                business_hours=hours,
            )
            return (await engine.campaigns.create_sms(workspace, new, to)).campaign.id

        shots = await create("Flu shots", "Hi {{first_name}}, flu shots are here. Walk in today!", people(212, 180))
        await engine.campaigns.start(workspace, shots)
        await asyncio.sleep(12 * 60)
        visits = await create(
            "Check-ups in March", "Hi {{first_name}}, your check-up is tomorrow at {{slot}}.", people(303, 1200)
        )
        await engine.campaigns.start(workspace, visits)
        windows = (TimeWindow.between(time(8), time(18)),)
        hours = BusinessHours(timezone="Pacific/Honolulu", schedule=dict.fromkeys(DAYS, windows))
        letters = await create("Recall, Honolulu", "Hi {{first_name}}, please call us.", people(808, 212), hours=hours)
        await engine.campaigns.start(workspace, letters)
        draft = await create("Spring check-ups", "Hi {{first_name}}, spring check-ups are open.", people(415, 640))
        await asyncio.sleep(40 * 60)
        for phone, body in (
            ("+13035550012", "STOP"),
            ("+13035550031", "please don't stop by before nine"),
            ("+13035550007", "Can I come at 4 instead?"),
            ("+13035550019", "Thank you, see you then"),
        ):
            await engine.messages.receive(workspace, from_number=phone, to=SENDER, body=body)
            await asyncio.sleep(120)
        campaign = f"/w/{workspace}/campaigns/{visits}"
        return {
            "overview": f"/w/{workspace}/",
            "campaign": campaign,
            "check": f"/w/{workspace}/campaigns/new/check?campaign={draft}",
            "contact": f"{campaign}/contacts/12",
            "phone": campaign,
        }


def present(database: str, at: datetime) -> Starlette:
    """Return the console of the clinic, whose time goes on from a moment."""
    opened: list[Outreach] = []

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with Outreach.open(database, dispatch=True, clock=ShiftedClock(at), simulator=SIMULATOR) as engine:
            opened.append(engine)
            console = create_console(engine=engine, identify=identify)
            app.router.routes.append(Mount("/", console))
            yield

    async def identify(request: Request) -> ConsoleUser | None:
        page = await opened[0].workspaces.list()
        roles = {one.id: Role.MANAGER for one in page.items}
        return ConsoleUser(id="ann", name="Ann Miller", workspaces=roles, time_zone="America/New_York")

    return Starlette(lifespan=lifespan)


def main(directory: Path) -> None:
    """Write the pictures."""
    directory.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        database = f"sqlite:///{place}/clinic.db"
        with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(start=BEGAN)) as runner:
            pages = runner.run(past(database))
        with serving(present(database, BEGAN + timedelta(hours=1))) as url, browser() as chromium:
            for theme in ("light", "dark"):
                for name, path in pages.items():
                    size: Any = {"width": WIDTHS[name], "height": HEIGHTS.get(name, 860)}
                    page = chromium.new_page(viewport=size, color_scheme=theme, reduced_motion="reduce")
                    page.goto(f"{url}{path}")
                    page.wait_for_timeout(3_000)  # the forecast and the live figures come
                    if name in SHOWN:
                        page.locator(SHOWN[name]).last.scroll_into_view_if_needed()
                    page.screenshot(path=directory / f"{name}-{theme}.png")
                    page.close()
    taken = sum(one.stat().st_size for one in directory.glob("*.png"))
    sys.stdout.write(f"{len(pages) * 2} pictures in {directory}, {taken // 1000:,} kB\n")
    if taken > MOST_BYTES:
        sys.exit(f"They take more than {MOST_BYTES // 1000:,} kB: show less of each page.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
