"""Which scope of an API key allows which operation (docs/managing.md#scopes)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from outreach.errors import InsufficientScope
from outreach.models import ApiScope

_READ: Final[tuple[ApiScope, ...]] = ("read", "manage")

SCOPES: Final[Mapping[str, tuple[ApiScope, ...]]] = {
    "createCall": ("send",),
    "getCall": ("send", *_READ),
    "listSmsCampaigns": ("send", *_READ),
    "createSmsCampaign": ("send", "manage"),
    "listCampaigns": ("send", *_READ),
    "createCampaign": ("send", "manage"),
    "updateSmsSettings": ("send", "manage"),
    "sendSms": ("send",),
}
"""The scopes of each operation of openapi.yaml; one of them is enough."""


def require_scope(operation: str, scopes: Collection[str]) -> None:
    """Check that a key may do an operation.

    Args:
        operation: Its `operationId`.
        scopes: The scopes of the key.

    Raises:
        InsufficientScope: It may not.
    """
    needed = SCOPES[operation]
    if not any(scope in scopes for scope in needed):
        raise InsufficientScope(needed)
