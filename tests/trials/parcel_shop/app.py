"""A parcel shop on FastAPI: tokens of its own, a text to each customer as a batch ships, a table of what came of it.

Written from the pages of docs/ alone, as a shop would. `uvicorn --factory app:main` serves it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import time
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.requests import Request

from outreach import BusinessHours, InvalidRequest, NewRecipient, NewSmsCampaign, Outreach, OutreachError, TimeWindow
from outreach.errors import CannotStart
from outreach.events import CampaignStatusChanged, EventGap, MessageStatusChanged, OptedOut, RecipientEnded
from outreach.models import DAYS, ApiScope
from outreach_server import Identity, create_app, running, status_of

TABLES = """
CREATE TABLE IF NOT EXISTS staff (token TEXT PRIMARY KEY, workspace_id TEXT NOT NULL, manager INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
    number TEXT PRIMARY KEY, batch TEXT NOT NULL, workspace_id TEXT NOT NULL, phone TEXT NOT NULL, name TEXT
);
CREATE TABLE IF NOT EXISTS notices (
    event INTEGER PRIMARY KEY, kind TEXT NOT NULL, campaign_id TEXT, order_number TEXT, status TEXT NOT NULL
);
"""

OFFICE = TimeWindow.between(time(9), time(18))
OFFICE_HOURS = BusinessHours(timezone="America/New_York", schedule=dict.fromkeys(DAYS[:5], (OFFICE,)))


class Batch(BaseModel):
    text: str = "Hi {{first_name|there}}, your parcel {{order}} is on its way."
    per_minute: int = 60


class Shop:
    """The shop's own tables."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with closing(sqlite3.connect(path)) as database:
            database.executescript(TABLES)

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._path)) as database, database:
            return database.execute(query, values).fetchall()

    async def identify(self, request: Request) -> Identity | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        found = self.ask("SELECT workspace_id, manager FROM staff WHERE token = ?", token)
        if scheme != "Shop" or not found:
            return None
        workspace_id, manager = found[0]
        scopes: tuple[ApiScope, ...] = ("read", "manage", "send") if manager else ("read",)
        return Identity(workspace_id=workspace_id, scopes=scopes)

    def customers(self, batch: str, workspace_id: str) -> Iterator[NewRecipient]:
        query = "SELECT number, phone, name FROM orders WHERE batch = ? AND workspace_id = ?"
        for number, phone, name in self.ask(query, batch, workspace_id):
            yield NewRecipient(
                phone_number=phone, first_name=name, custom_variables={"order": number}, external_id=number
            )

    async def record(self, engine: Outreach) -> None:
        """Write the engine's events into the shop's table; the number of an event keeps out one that is told again."""
        async with engine.events.subscribe(name="parcel shop", since=0) as stream:
            async for event in stream:
                campaign: str | None = None
                order: str | None = None
                match event:
                    case RecipientEnded() | MessageStatusChanged():
                        campaign, order, status = event.campaign_id, event.external_id, str(event.status)
                    case CampaignStatusChanged():
                        campaign, status = event.campaign_id, str(event.status)
                    case OptedOut():
                        status = "opted out"
                    case EventGap():
                        print("events may be missing:", event.first, "to", event.last)
                        continue
                    case _:
                        continue
                row = (event.number, type(event).__name__, campaign, order, status)
                self.ask("INSERT OR IGNORE INTO notices VALUES (?, ?, ?, ?, ?)", *row)
                await stream.ack()


async def manager(request: Request) -> str:
    shop: Shop = request.app.state.shop
    identity = await shop.identify(request)
    if identity is None:
        raise HTTPException(401)
    if "manage" not in identity.scopes:
        raise HTTPException(403)
    return identity.workspace_id


Manager = Annotated[str, Depends(manager)]


def make_app(engine: Outreach, shop: Shop, *, opens_engine: bool = True) -> FastAPI:
    api = create_app(engine=engine, authenticate=shop.identify)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if opens_engine:
                await stack.enter_async_context(engine)
            await stack.enter_async_context(running(api))
            recording = asyncio.create_task(shop.record(engine))
            try:
                yield
            finally:
                recording.cancel()
                await asyncio.gather(recording, return_exceptions=True)

    app = FastAPI(lifespan=lifespan)
    app.state.shop = shop
    app.mount("/outreach", api)

    @app.exception_handler(OutreachError)
    async def tell(_: Request, error: OutreachError) -> JSONResponse:
        details = error.details if isinstance(error, InvalidRequest | CannotStart) else ()
        wrong = {detail.path: detail.message for detail in details}
        return JSONResponse({"error": str(error), "wrong": wrong}, status_of(error))

    @app.post("/batches/{batch}/ship")
    async def ship(batch: str, wanted: Batch, workspace_id: Manager) -> dict[str, Any]:
        created = await engine.campaigns.create_sms(
            workspace_id,
            NewSmsCampaign(
                name=f"Batch {batch}",
                body=wanted.text,
                carrier="twilio",
                from_number="+12125550199",
                rate_per_minute=wanted.per_minute,
                business_hours=OFFICE_HOURS,
            ),
            shop.customers(batch, workspace_id),
            idempotency_key=f"batch-{batch}",
        )
        campaign = created.campaign
        if campaign.status == "ready":
            campaign = await engine.campaigns.start(workspace_id, campaign.id)
        return {"campaign": campaign.id, "status": campaign.status, "opted_out": created.opted_out_excluded}

    return app


def main() -> FastAPI:
    engine = Outreach.open("sqlite:///outreach.db", dispatch=True)
    return make_app(engine, Shop(Path("shop.db")))
