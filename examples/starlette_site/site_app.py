"""A site on Starlette that confirms sign-ups by SMS: `uvicorn --factory site_app:make_site`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from outreach import InvalidRequest, NewMessage, NewWorkspace, Outreach
from outreach_server import create_app, running

SENDER = "+14155550199"


def make_site(directory: Path = Path()) -> Starlette:
    engine = Outreach.open(f"sqlite:///{directory / 'outreach.db'}", dispatch=True)
    # API keys of the engine open it: `outreach-server keys create WORKSPACE_ID`.
    api = create_app(engine=engine)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with engine, running(api):
            known = await engine.workspaces.list(limit=1)
            workspace = (
                known.items[0]
                if known
                else await engine.workspaces.create(NewWorkspace(name="Site", default_region="US"))
            )
            app.state.workspace_id = workspace.id
            yield

    async def sign_up(request: Request) -> Response:
        given = await request.json()
        body = f"Welcome, {given['name']}!"
        # Once for each number, however often the form is sent.
        key = f"sign-up-{given['phone']}"
        try:
            welcome = NewMessage(to=given["phone"], body=body, from_number=SENDER, carrier="twilio")
            message = await engine.messages.send(request.app.state.workspace_id, welcome, idempotency_key=key)
        except InvalidRequest as error:
            return JSONResponse({"problems": [detail.message for detail in error.details]}, status_code=422)
        return JSONResponse({"message": message.id}, status_code=201)

    routes = [Route("/sign-ups", sign_up, methods=["POST"]), Mount("/outreach", api)]
    return Starlette(routes=routes, lifespan=lifespan)
