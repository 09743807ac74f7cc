"""Who asks: the API key or the host's own identity, the workspace that it acts for, and whether that may work now."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request

from outreach import ConfigError, NotFound, Workspace, WorkspaceStatus
from outreach.errors import SmsCampaignsDisabled, Unauthorized, WorkspaceUnavailable
from outreach_server.context import Authenticate, Server, request_state_of, server_of
from outreach_server.limits import count_against_rate_limit

_BEARER: Final = re.compile(r"bearer +([!-~]+) *", re.IGNORECASE | re.ASCII)


async def authenticate_request(request: Request, *, sms_campaigns: bool = False) -> Workspace:
    """Return the workspace that a request acts for, after the checks that come before the request itself.

    Args:
        request: The request.
        sms_campaigns: Whether the operation needs SMS campaigns to be enabled.

    Raises:
        Unauthorized: The key is missing, malformed or worthless; or the host does not know who asks.
        Forbidden: The host does not let who asks do it.
        WorkspaceUnavailable: The workspace may not work.
        SmsCampaignsDisabled: SMS campaigns are needed and not enabled.
        RateLimited: The request limit is used up.
    """
    server = server_of(request)
    if server.authenticate is None:
        workspace = await server.engine.api_keys.authenticate(_key(request))
    else:
        workspace = await _of_host(server, server.authenticate, request)
    request_state_of(request).workspace_id = workspace.id
    if workspace.status is not WorkspaceStatus.ACTIVE:
        raise WorkspaceUnavailable(f"The workspace is {workspace.status}. Its owner can tell why and change that.")
    if sms_campaigns:
        require_sms_campaigns(enabled=workspace.sms_campaigns_enabled)
    await count_against_rate_limit(request, workspace)
    return workspace


async def _of_host(server: Server, authenticate: Authenticate, request: Request) -> Workspace:
    """Return the workspace that the host says a request acts for.

    Raises:
        Unauthorized: The host does not know who asks.
        Forbidden: The host does not let who asks do it.
        WorkspaceUnavailable: The workspace is not there.
        ConfigError: What the host says is no workspace's identifier.
    """
    # Without the body: what is read here would be missing where it is needed.
    workspace_id: object = await authenticate(Request(request.scope))
    if workspace_id is None:
        raise Unauthorized("Nobody is signed in with this request, or not so that this server knows who it is.")
    if not isinstance(workspace_id, str):
        raise ConfigError(
            f"authenticate returned {type(workspace_id).__name__}; it must return a workspace's identifier, or None."
        )
    try:
        return await server.engine.workspaces.get(workspace_id)
    except NotFound:
        raise WorkspaceUnavailable("The workspace of whoever asks does not exist here.") from None


def require_sms_campaigns(*, enabled: bool) -> None:
    """Stop where SMS campaigns are not enabled.

    Raises:
        SmsCampaignsDisabled: They are not.
    """
    if not enabled:
        raise SmsCampaignsDisabled(
            "SMS campaigns are not enabled for this workspace. An organization owner can turn them on."
        )


def _key(request: Request) -> str:
    given = request.headers.getlist("Authorization")
    if not given:
        raise Unauthorized("The Authorization header is missing. Send: Authorization: Bearer <API_KEY>.")
    if len(given) > 1:
        raise Unauthorized("There is more than one Authorization header. Send one: Authorization: Bearer <API_KEY>.")
    match = _BEARER.fullmatch(given[0].strip())
    if match is None:
        raise Unauthorized("The Authorization header is malformed. Send: Authorization: Bearer <API_KEY>.")
    return match[1]
