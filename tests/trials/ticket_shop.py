"""A shop on FastAPI that sells tickets: orders are confirmed by SMS, and its promoters run campaigns over HTTP.

Written from README.md and docs/embedding.md alone, as a team would.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from pydantic import BaseModel
from starlette.requests import Request

from outreach import InvalidRequest, NewMessage, NewSmsCampaign, Outreach
from outreach.events import CampaignStatusChanged, RecipientEnded
from outreach_server import create_app, running

SENDER = "+14155550199"


class Order(BaseModel):
    number: int
    phone: str
    show: str


class Books:
    """The shop's own tables: here two dictionaries in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.data: dict[str, dict[str, str]] = (
            json.loads(file.read_text()) if file.exists() else {"promoters": {}, "outcomes": {}}
        )

    def save(self) -> None:
        self._file.write_text(json.dumps(self.data))

    async def promoter_of(self, request: Request) -> str | None:
        return self.data["promoters"].get(request.headers.get("X-Session", ""))


async def signed_in(request: Request) -> str:
    books: Books = request.app.state.books
    workspace = await books.promoter_of(request)
    if workspace is None:
        raise HTTPException(401)
    return workspace


SignedIn = Annotated[str, Depends(signed_in)]


def make_app(directory: Path) -> FastAPI:
    books = Books(directory / "books.json")
    engine = Outreach.open(f"sqlite:///{directory / 'outreach.db'}", dispatch=True)

    api = create_app(engine=engine, authenticate=books.promoter_of)

    async def keep_books() -> None:
        async with engine.events.subscribe(RecipientEnded, CampaignStatusChanged, name="books", since=0) as stream:
            async for event in stream:
                if isinstance(event, RecipientEnded | CampaignStatusChanged):
                    books.data["outcomes"][str(event.number)] = f"{type(event).__name__} {event.status}"
                    books.save()
                await stream.ack()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with engine, running(api):
            keeping = asyncio.create_task(keep_books())
            yield
        await keeping

    app = FastAPI(lifespan=lifespan)
    app.state.books = books
    app.mount("/sms", api)

    @app.exception_handler(InvalidRequest)
    async def refuse(_: Request, error: InvalidRequest) -> JSONResponse:
        first = error.details[0]
        return JSONResponse({"error": f"{first.path} {first.message}"}, 400)

    @app.post("/promoters", status_code=201)
    async def sign_up(session: str) -> None:
        workspace = await engine.workspaces.create(session, default_region="US")
        books.data["promoters"][session] = workspace.id
        books.save()

    @app.post("/orders", status_code=201)
    async def order(new: Order, workspace: SignedIn) -> str:
        text = NewMessage(to=new.phone, body=f"Your tickets for {new.show}", from_number=SENDER, carrier="twilio")
        message = await engine.messages.send(workspace, text, idempotency_key=f"order-{new.number}")
        return message.id

    @app.post("/reminders", status_code=201)
    async def remind(show: str, phones: list[str], workspace: SignedIn) -> str:
        campaign = NewSmsCampaign(name=show, body=f"Tonight: {show}", carrier="twilio", from_number=SENDER)
        made = await engine.campaigns.create_sms(workspace, campaign, ({"phone_number": phone} for phone in phones))
        await engine.campaigns.start(workspace, made.campaign.id)
        return made.campaign.id

    @app.get("/outcomes")
    async def outcomes(workspace: SignedIn) -> list[str]:
        return list(books.data["outcomes"].values())

    return app


def main(directory: Path) -> None:
    session = {"X-Session": "ann"}
    hamlet = {"number": 1, "phone": "(415) 555-0102", "show": "Hamlet"}
    with TestClient(make_app(directory)) as shop:
        shop.post("/promoters", params={"session": "ann"})
        print("signed out:", shop.post("/orders", json=hamlet).status_code, shop.get("/sms/sms-campaigns").status_code)
        first, second = (shop.post("/orders", json=hamlet, headers=session) for _ in range(2))
        print(f"order: {first.status_code}, again the same: {first.json() == second.json()}")
        wrong = shop.post("/orders", json=hamlet | {"number": 2, "phone": "12"}, headers=session)
        print("wrong number:", wrong.status_code, wrong.json()["error"])
        body = {
            "name": "Lear",
            "message_body": "Lear tonight",
            "sms_carrier": "twilio",
            "sms_from_number": SENDER,
            "recipients": [{"phone_number": "(415) 555-0107"}],
        }
        made = shop.post("/sms/sms-campaigns", json=body, headers=session)
        print("campaign over HTTP:", made.status_code, made.json()["status"])
        phones = [f"(415) 555-010{digit}" for digit in range(3, 6)]
        assert shop.post("/reminders", params={"show": "Lear"}, json=phones, headers=session).status_code == 201
    with TestClient(make_app(directory)) as shop:
        deadline = time.monotonic() + 60
        while "CampaignStatusChanged completed" not in (told := shop.get("/outcomes", headers=session).json()):
            assert time.monotonic() < deadline, told
            time.sleep(0.05)
    print(f"after a restart: {told.count('RecipientEnded completed')} reached, campaign completed")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
