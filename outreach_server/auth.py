"""Authenticates a request by API key or by the host's identity, and checks that its workspace may work now.

Scopes of a key allow operations: docs/managing.md#scopes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from starlette.requests import Request

from outreach import ConfigError, NotFound, Workspace, WorkspaceStatus
from outreach.errors import InsufficientScope, RateLimited, Unauthorized, WorkspaceUnavailable
from outreach.http import RateLimitState
from outreach.models import API_SCOPES, ApiAccess, ApiScope
from outreach.server_support import require_sms
from outreach_server.context import Authenticate, Identity, Server, request_state_of, server_of

_READ: Final[tuple[ApiScope, ...]] = ("read", "manage")
_MANAGE: Final[tuple[ApiScope, ...]] = ("manage",)


SCOPES_BY_OPERATION: Final[Mapping[str, tuple[ApiScope, ...]]] = {
    "createCall": ("send",),
    "getCall": ("send", *_READ),
    "listSmsCampaigns": ("send", *_READ),
    "createSmsCampaign": ("send", "manage"),
    "listCampaigns": ("send", *_READ),
    "createCampaign": ("send", "manage"),
    "updateSmsSettings": ("send", "manage"),
    "sendSms": ("send",),
    # They change nothing: a POST is for their body.
    "countAudience": _READ,
    "previewSchedule": _READ,
}
"""The scopes of the operations of docs/interface.md, and of those whose method does not say them."""


def scopes_of(operation: str, method: str) -> Sequence[ApiScope]:
    """Return the scopes of an operation, by its `operationId` and its HTTP method; one of them is enough."""
    return SCOPES_BY_OPERATION.get(operation) or (_READ if method in {"GET", "HEAD"} else _MANAGE)


_BEARER: Final = re.compile(r"bearer +([!-~]+) *", re.IGNORECASE | re.ASCII)


async def authenticate_request(request: Request, operation: str, *, sms_campaigns: bool = False) -> Workspace:
    """Return the workspace that a request acts for, after the checks that come before the request itself.

    Args:
        request: The request.
        operation: The operation, by its `operationId`.
        sms_campaigns: Whether the operation needs SMS campaigns to be enabled.

    Raises:
        Unauthorized: The key is missing, malformed or invalid; or the host does not know the caller.
        Forbidden: The host does not allow the caller to do it.
        WorkspaceUnavailable: The workspace may not work.
        InsufficientScope: The key may not do this.
        SmsCampaignsDisabled: SMS campaigns are needed and not enabled.
        RateLimited: The request limit is used up.
    """
    workspace = await check_access(request, operation)
    if sms_campaigns:
        require_sms(workspace.sms_campaigns_enabled)
    await _count_against_rate_limit(request, workspace)
    return workspace


async def check_access(request: Request, operation: str) -> Workspace:
    """Return the workspace that a request acts for, without counting the request.

    Raises:
        Unauthorized: The key is missing, malformed or invalid; or the host does not know the caller.
        Forbidden: The host does not allow the caller to do it.
        WorkspaceUnavailable: The workspace may not work.
        InsufficientScope: The key may not do this.
    """
    server = server_of(request)
    if server.authenticate is None:
        access = await server.engine.api_keys.authenticate(_key(request))
    else:
        access = await _of_host(server, server.authenticate, request)
    workspace = access.workspace
    request_state_of(request).workspace_id = workspace.id
    if workspace.status is not WorkspaceStatus.ACTIVE:
        raise WorkspaceUnavailable(f"The workspace is {workspace.status}. Its owner can tell why and change that.")
    needed = scopes_of(operation, request.method)
    if not any(scope in access.scopes for scope in needed):
        raise InsufficientScope(needed, of_key=server.authenticate is None)
    return workspace


async def _of_host(server: Server, authenticate: Authenticate, request: Request) -> ApiAccess:
    """Return the workspace that the host says a request acts for, and what it may do there.

    Raises:
        Unauthorized: The host does not know the caller.
        Forbidden: The host does not allow the caller to do it.
        WorkspaceUnavailable: The workspace is not there.
        ConfigError: What the host says is neither an `Identity` nor a workspace's identifier.
    """
    # Without the body: what is read here would be missing where it is needed.
    result: object = authenticate(Request(request.scope))
    if not isinstance(result, Awaitable):
        raise ConfigError(f"authenticate must be an async function; it returned {type(result).__name__} at once.")
    found: object = await result
    if found is None:
        raise Unauthorized("The request carries nothing that says who sends it, or nothing that is valid here.")
    identity = Identity(workspace_id=found) if isinstance(found, str) else found
    if not isinstance(identity, Identity):
        raise ConfigError(
            f"authenticate returned {type(found).__name__}; "
            "it must return an outreach_server.Identity, a workspace's identifier, or None."
        )
    if isinstance(identity.scopes, str) or not set(identity.scopes) <= set(API_SCOPES):
        raise ConfigError(f"authenticate returned the scopes {identity.scopes!r}; there are {', '.join(API_SCOPES)}.")
    try:
        workspace = await server.engine.workspaces.get(identity.workspace_id)
    except NotFound:
        raise WorkspaceUnavailable("The workspace of the caller does not exist here.") from None
    return ApiAccess(workspace=workspace, scopes=identity.scopes)


async def _count_against_rate_limit(request: Request, workspace: Workspace) -> None:
    """Count a request against the limit of its workspace (docs/interface.md#request-limit).

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
