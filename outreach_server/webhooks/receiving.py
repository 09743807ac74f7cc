"""/webhooks/{account}."""

from __future__ import annotations

import logging
from typing import Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import ConfigError, InvalidRequest
from outreach_server.body import receive_callback_body
from outreach_server.context import request_state_of, server_of
from outreach_server.errors import error_response

_NOT_NOW: Final = "The account cannot be used here. The server's log says what to do."


class Webhooks(HTTPEndpoint):
    """Take in what a provider calls back; it needs no key, for each is signed."""

    async def post(self, request: Request) -> Response:
        """Answer 204 when what it tells is committed, or has been before.

        A callback that is not the provider's is a 403 and changes nothing; an address that names no account a 404.
        Where it cannot be taken in now the answer is a 5xx, after which providers come again.
        """
        account_id = request.path_params["account"]
        try:
            engine = server_of(request).engine
            # First, so that for an address of no account nothing of a body is held.
            limit = await engine.callbacks.max_body_bytes(account_id)
            async with receive_callback_body(request, limit, account_id=account_id) as body:
                await engine.callbacks.receive(
                    account_id, url=str(request.url), headers=dict(request.headers), body=body
                )
        except InvalidRequest as error:
            server_of(request).engine.log_throttle.problem(
                ("callbacks", account_id),
                "not_received",
                "A callback for account %s was not received: %s",
                account_id,
                error.message,
                action="callback_not_received",
                account_id=account_id,
                request_id=request_state_of(request).request_id,
            )
            raise
        except ConfigError as error:
            server_of(request).engine.log_throttle.problem(
                ("callbacks", account_id),
                "not_taken",
                "A callback could not be taken in: %s",
                error.message,
                level=logging.ERROR,
                action="callback_not_taken",
                request_id=request_state_of(request).request_id,
            )
            return error_response(request, 503, "internal_error", _NOT_NOW)
        return Response(status_code=204)
