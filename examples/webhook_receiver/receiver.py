"""Receives webhooks: `WEBHOOK_SECRET=whsec_... uvicorn receiver:app`. Needs standardwebhooks, starlette, uvicorn."""

from __future__ import annotations

import os

from standardwebhooks import Webhook, WebhookVerificationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
handled: set[str] = set()


async def receive(request: Request) -> Response:
    try:
        event = webhook.verify(await request.body(), dict(request.headers))
    except WebhookVerificationError:
        return Response(status_code=401)
    message_id = request.headers["webhook-id"]
    if message_id not in handled:  # better: a unique column, in the transaction that handles the event
        print(event["type"], event["data"], flush=True)
        handled.add(message_id)
    return Response(status_code=204)


app = Starlette(routes=[Route("/webhooks", receive, methods=["POST"])])
