"""The request limit of a workspace (docs/interface.md#request-limit; draft-ietf-httpapi-ratelimit-headers)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from outreach import Workspace
from outreach.errors import RateLimited
from outreach.http import RateLimitState
from outreach_server.context import request_state_of, server_of


async def count_against_rate_limit(request: Request, workspace: Workspace) -> None:
    """Count a request against its workspace's limit.

    Raises:
        RateLimited: The limit is used up.
        StorageBusy: It cannot be counted now.
    """
    exchange = request_state_of(request)
    try:
        exchange.quota = await server_of(request).engine.http.count_request(workspace)
    except RateLimited as error:
        exchange.quota = RateLimitState(limit=error.limit, remaining=0, reset_seconds=error.retry_after_seconds)
        raise


def limit_headers(quota: RateLimitState | None) -> Sequence[tuple[bytes, bytes]]:
    """Return the rate-limit headers; none without a limit or a count."""
    if quota is None:
        return ()
    return (
        (b"ratelimit-policy", b'"workspace";q=%d;w=60' % quota.limit),
        (b"ratelimit", b'"workspace";r=%d;t=%d' % (quota.remaining, quota.reset_seconds)),
    )
