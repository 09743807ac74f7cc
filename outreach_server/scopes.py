"""Which scope of an API key allows which operation (docs/managing.md#scopes)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from outreach.errors import InsufficientScope
from outreach.models import ApiScope
from outreach.server_support import RESOURCE_SERVICES

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
    "createUpload": _MANAGE,
    "addUploadChunk": _MANAGE,
    "removeUpload": _MANAGE,
    "checkUpload": _MANAGE,
    "listUploadRejects": _MANAGE,
    "loadUpload": _MANAGE,
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
