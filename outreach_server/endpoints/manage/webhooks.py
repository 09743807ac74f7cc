"""/manage/webhooks/{id}/…: the actions on endpoints, and the attempts of deliveries to them."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import (
    WEBHOOK_BODIES,
    read_webhook_replay,
    read_webhook_rotation,
    write_webhook_attempt,
    write_webhook_progress,
)
from outreach.models import WebhookRotation
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import flag, words
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import (
    ACTOR,
    admit,
    page_response,
    path_id,
    read_body,
    read_optional_body,
    read_page,
)
from outreach_server.errors import answer_once, json_response


class RotateWebhook(HTTPEndpoint):
    """Replace the secret of an endpoint."""

    async def post(self, request: Request) -> Response:
        """Return the endpoint with its new secret."""
        workspace = await admit(request, "rotateWebhook")
        webhook_id = path_id(request, "webhook")
        how, body = await read_optional_body(request, read_webhook_rotation, WebhookRotation())
        rotate = server_of(request).engine.webhooks.rotate
        return await answer_once(
            body,
            "rotateWebhook",
            lambda key: rotate(workspace.id, webhook_id, how, idempotency_key=key, actor=ACTOR),
            WEBHOOK_BODIES.write,
            status=200,
            kept=WEBHOOK_BODIES.repeated,
        )


class ReplayWebhook(HTTPEndpoint):
    """Deliver events again."""

    async def post(self, request: Request) -> Response:
        """Return the endpoint."""
        workspace = await admit(request, "replayWebhook")
        webhook_id = path_id(request, "webhook")
        start, _ = await read_body(request, read_webhook_replay)
        replayed = await server_of(request).engine.webhooks.replay(workspace.id, webhook_id, start, actor=ACTOR)
        return json_response(WEBHOOK_BODIES.write(replayed))


class WebhookProgress(HTTPEndpoint):
    """How the deliveries to an endpoint go."""

    async def get(self, request: Request) -> Response:
        """Return what waits, and what came of the latest delivery."""
        workspace = await authenticate_request(request, "getWebhookProgress")
        webhooks, webhook_id = server_of(request).engine.webhooks, path_id(request, "webhook")
        [progress] = await webhooks.progress(workspace.id, webhook_id)
        return json_response(write_webhook_progress(progress))


class WebhookAttempts(HTTPEndpoint):
    """The attempts of deliveries to an endpoint."""

    async def get(self, request: Request) -> Response:
        """Return a page, the latest first."""
        workspace = await authenticate_request(request, "listWebhookAttempts")
        webhooks, webhook_id = server_of(request).engine.webhooks, path_id(request, "webhook")
        page = await webhooks.list_attempts(workspace.id, webhook_id, **read_page(request, after=words, failed=flag))
        return page_response(page, write_webhook_attempt)
