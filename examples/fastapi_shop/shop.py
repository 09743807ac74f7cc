"""A shop on FastAPI that sends its customers' contacts news of their orders: `uvicorn --factory shop:make_shop`."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from starlette.requests import Request

from outreach import NewMessage, NewWorkspace, Outreach
from outreach.events import CampaignStatusChanged, EventGap, RecipientEnded
from outreach_server import create_app, running

TABLES = """
CREATE TABLE IF NOT EXISTS merchants (token TEXT PRIMARY KEY, name TEXT NOT NULL, workspace_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outcomes (
    event INTEGER PRIMARY KEY, workspace_id TEXT NOT NULL, campaign_id TEXT NOT NULL, outcome TEXT NOT NULL
);
"""


class SignUp(BaseModel):
    name: str


class Order(BaseModel):
    number: str
    phone: str


class Shop:
    """The shop's own tables. In a larger one they are reached without blocking the loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with closing(sqlite3.connect(path)) as database:
            database.executescript(TABLES)

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._path)) as database, database:
            return database.execute(query, values).fetchall()

    async def merchant(self, request: Request) -> str | None:
        """Return the workspace of the caller: by the shop's own tokens, not by API keys."""
        token = request.headers.get("X-Shop-Token", "")
        found = self.ask("SELECT workspace_id FROM merchants WHERE token = ?", token)
        return found[0][0] if found else None

    async def keep_outcomes(self, engine: Outreach) -> None:
        """Write what becomes of each contact into the shop's table: once, however often it is told."""
        async with engine.events.subscribe(RecipientEnded, CampaignStatusChanged, name="shop", since=0) as stream:
            async for event in stream:
                match event:
                    case (
                        RecipientEnded(campaign_id=campaign, status=outcome)
                        | CampaignStatusChanged(campaign_id=campaign, status=outcome)
                    ):
                        self.ask(
                            "INSERT OR IGNORE INTO outcomes VALUES (?, ?, ?, ?)",
                            *(event.number, event.workspace_id, campaign, f"{type(event).__name__} {outcome}"),
                        )
                    case EventGap():
                        print("events may be missing:", event.first, "to", event.last)
                await stream.ack()


async def merchant(request: Request) -> str:
    """Return the workspace of a caller of the shop's own routes."""
    shop: Shop = request.app.state.shop
    workspace_id = await shop.merchant(request)
    if workspace_id is None:
        raise HTTPException(401)
    return workspace_id


Merchant = Annotated[str, Depends(merchant)]


def make_shop(directory: Path = Path()) -> FastAPI:
    shop = Shop(directory / "shop.db")
    engine = Outreach.open(f"sqlite:///{directory / 'outreach.db'}", dispatch=True)
    api = create_app(engine=engine, authenticate=shop.merchant)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with engine, running(api):
            keeping = asyncio.create_task(shop.keep_outcomes(engine))
            yield
        # The stream has ended with the engine.
        await keeping

    app = FastAPI(lifespan=lifespan)
    app.state.shop = shop
    app.mount("/outreach", api)

    @app.post("/merchants", status_code=201)
    async def sign_up(new: SignUp) -> dict[str, str]:
        workspace = await engine.workspaces.create(NewWorkspace(name=new.name, default_region="US"))
        token = secrets.token_urlsafe()
        shop.ask("INSERT INTO merchants VALUES (?, ?, ?)", token, new.name, workspace.id)
        return {"token": token}

    @app.post("/orders", status_code=201)
    async def order(new: Order, workspace_id: Merchant) -> dict[str, str]:
        message = await engine.messages.send(
            workspace_id,
            NewMessage(to=new.phone, body=f"Order {new.number} is on its way."),
            idempotency_key=f"order-{new.number}",
        )
        return {"message": message.id}

    @app.post("/campaigns/{campaign_id}/start")
    async def start(campaign_id: str, workspace_id: Merchant) -> dict[str, str]:
        return {"status": (await engine.campaigns.start(workspace_id, campaign_id)).status}

    @app.get("/outcomes")
    async def outcomes(workspace_id: Merchant) -> list[str]:
        found = shop.ask("SELECT outcome FROM outcomes WHERE workspace_id = ? ORDER BY event", workspace_id)
        return [outcome for (outcome,) in found]

    return app
