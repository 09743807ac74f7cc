"""Authenticates a request by API key or by the host's identity, and checks that its workspace may work now.

Scopes of a key allow operations: docs/managing.md#scopes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, Final

from starlette.requests import Request

from outreach import ConfigError, NotFound, Workspace, WorkspaceStatus
from outreach.errors import InsufficientScope, RateLimited, SmsCampaignsDisabled, Unauthorized, WorkspaceUnavailable
from outreach.http import RateLimitState
from outreach.models import API_SCOPES, ApiAccess, ApiScope
from outreach.server_support import RESOURCE_SERVICES
from outreach_server.context import Authenticate, Identity, Server, request_state_of, server_of

_READ: Final[tuple[ApiScope, ...]] = ("read", "manage")
_MANAGE: Final[tuple[ApiScope, ...]] = ("manage",)


def resource_operation(definition: Any, method: str) -> str:
    """Return the `operationId` of a method of a resource, such as `listAgents`."""
    verb = definition.created if method == "create" else method
    return f"{verb}{definition.kind.noun.capitalize()}{'s' if method == 'list' else ''}"


SCOPES: Final[Mapping[str, tuple[ApiScope, ...]]] = {
    "createCall": ("send",),
    "getCall": ("send", *_READ),
    "listSmsCampaigns": ("send", *_READ),
    "createSmsCampaign": ("send", "manage"),
    "listCampaigns": ("send", *_READ),
    "createCampaign": ("send", "manage"),
    "updateSmsSettings": ("send", "manage"),
    "sendSms": ("send",),
    "listManagedCampaigns": _READ,
    "getCampaign": _READ,
    "countFlowContacts": _READ,
    "countRecipients": _READ,
    "listRecipients": _READ,
    "getRecipient": _READ,
    "getRecipientTrail": _READ,
    "listSms": _READ,
    "getSms": _READ,
    "listCalls": _READ,
    "getCallDetails": _READ,
    "listInbound": _READ,
    "getInbound": _READ,
    "countAudience": _READ,
    "getContactHistory": _READ,
    "listUnsubscribes": _READ,
    "getUnsubscribe": _READ,
    "getSettings": _READ,
    "listUnreachableNumbers": _READ,
    "listAccounts": _READ,
    "getAccount": _READ,
    "listEvents": _READ,
    "preflightCampaign": _READ,
    "forecastCampaign": _READ,
    "listForecasts": _READ,
    "getCampaignClock": _READ,
    "getCampaignApproval": _READ,
    "getCampaignNow": _READ,
    "getCampaignProgress": _READ,
    "reportCampaign": _READ,
    "exportCampaign": _READ,
    "getPrices": _READ,
    "listUploads": _READ,
    "getUpload": _READ,
    "listNextRuns": _READ,
    "listOccurrences": _READ,
    "previewSchedule": _READ,
    "pauseSchedule": _MANAGE,
    "resumeSchedule": _MANAGE,
    "runSchedule": _MANAGE,
    "skipNextRun": _MANAGE,
    "getWebhookProgress": _READ,
    "listWebhookAttempts": _READ,
    "pauseWebhook": _MANAGE,
    "enableWebhook": _MANAGE,
    "testWebhook": _MANAGE,
    "rotateWebhook": _MANAGE,
    "replayWebhook": _MANAGE,
    "createUpload": _MANAGE,
    "addUploadChunk": _MANAGE,
    "removeUpload": _MANAGE,
    "checkUpload": _MANAGE,
    "listUploadRejects": _MANAGE,
    "loadUpload": _MANAGE,
    "addUpload": _MANAGE,
    "updateCampaign": _MANAGE,
    "deleteCampaign": _MANAGE,
    "sendTestMessage": _MANAGE,
    "cloneCampaign": _MANAGE,
    "followUpCampaign": _MANAGE,
    "addRecipients": _MANAGE,
    "closeCampaign": _MANAGE,
    "archiveCampaign": _MANAGE,
    "unarchiveCampaign": _MANAGE,
    "skipRecipient": _MANAGE,
    "checkCallback": _MANAGE,
    "simulateEvent": _MANAGE,
    "setPrices": _MANAGE,
    "removePrices": _MANAGE,
    "startCampaign": _MANAGE,
    "unscheduleCampaign": _MANAGE,
    "pauseCampaign": _MANAGE,
    "resumeCampaign": _MANAGE,
    "cancelCampaign": _MANAGE,
    "addUnsubscribes": _MANAGE,
    "removeUnsubscribe": _MANAGE,
    "removeUnreachableNumber": _MANAGE,
    "resolveUnsubscribe": _MANAGE,
    "setCallOutcome": _MANAGE,
    "decideDispatches": _MANAGE,
    "lookUpDispatch": _MANAGE,
    "erasePerson": _MANAGE,
    "updateCallSettings": _MANAGE,
    "updateReplySettings": _MANAGE,
    "setContactHours": _MANAGE,
    **{
        resource_operation(one, method): _READ if method in {"list", "get"} else _MANAGE
        for one in RESOURCE_SERVICES.values()
        for method in one.managed
    },
}
"""The scopes of each operation of openapi.yaml; one of them is enough."""


def require_scope(operation: str, scopes: Collection[str], *, of_key: bool = True) -> None:
    """Check that the caller may do an operation.

    Args:
        operation: Its `operationId`.
        scopes: Their scopes.
        of_key: Whether an API key has them, not an identity of the host.

    Raises:
        InsufficientScope: It may not.
    """
    needed = SCOPES[operation]
    if not any(scope in scopes for scope in needed):
        raise InsufficientScope(needed, of_key=of_key)


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
    if sms_campaigns and not workspace.sms_campaigns_enabled:
        raise SmsCampaignsDisabled
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
    require_scope(operation, access.scopes, of_key=server.authenticate is None)
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
