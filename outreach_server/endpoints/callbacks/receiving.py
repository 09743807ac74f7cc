"""/webhooks/{account}."""

from __future__ import annotations

import logging
from typing import Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import ConfigError, InvalidRequest, NotFound
from outreach.server_support import log_throttle_of, masked
from outreach_server.bodies.body import receive_callback_body
from outreach_server.context import request_state_of, server_of
from outreach_server.endpoints.callbacks.misdirection import note_misdirection
from outreach_server.errors import error_response

_NOT_NOW: Final = "The account cannot be used here. The server's log says what to do."


class ProviderCallbacks(HTTPEndpoint):
    """Receive a provider's callbacks, which are signed and need no key."""

    async def post(self, request: Request) -> Response:
        """Return 204 when the events are committed, now or before.

        A callback that is not from the provider is a 403 and changes nothing; an unknown account a 404. A temporary
        problem is a 5xx, after which providers retry.
        """
        account_id = request.path_params["account"]
        try:
            engine = server_of(request).engine
            # First, so that nothing of a body is held for an unknown account.
            limit = await engine.callbacks.max_body_bytes(account_id)
            async with receive_callback_body(request, limit, account_id=account_id) as body:
                await engine.callbacks.receive(
                    account_id,
                    url=str(request.url),
                    # A repeated header's last value, which the nearest proxy wrote; the mapping would return the first.
                    headers=dict(request.headers.items()),
                    body=body,
                )
        except NotFound:
            # The id of an account in other letters, perhaps.
            await note_misdirection(request, "path")
            raise
        except InvalidRequest as error:
            log_throttle_of(server_of(request).engine).problem(
                ("callbacks", account_id),
                "not_received",
                "callback for account %s not received: %s",
                account_id,
                error.message,
                action="callback_not_received",
                account_id=account_id,
                request_id=request_state_of(request).request_id,
            )
            raise
        except ConfigError as error:
            log_throttle_of(server_of(request).engine).problem(
                ("callbacks", account_id),
                "not_taken",
                "could not store a callback: %s",
                masked(error.message),
                level=logging.ERROR,
                action="callback_not_taken",
                request_id=request_state_of(request).request_id,
            )
            return error_response(request, 503, "internal_error", _NOT_NOW)
        return Response(status_code=204)

    async def method_not_allowed(self, request: Request) -> Response:
        """Return 405, and warn if the account exists: its provider may be set to another method than POST."""
        await note_misdirection(request, "method")
        return await super().method_not_allowed(request)
