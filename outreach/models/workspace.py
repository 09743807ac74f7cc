"""Workspaces and their API keys."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import attrs

from outreach.models.base import UNSET, Unset
from outreach.models.states import WorkspaceMode, WorkspaceStatus

DEFAULT_REQUEST_LIMIT: Final = 600
"""Requests a minute that a new workspace may make."""


@attrs.frozen(kw_only=True)
class Workspace:
    """A tenant: everything else belongs to exactly one.

    Attributes:
        mode: A sandbox sends everything to the simulators, whatever carrier or provider is named.
        request_limit: Requests a minute, shared by all keys; None means no limit.
        default_region: ISO 3166 alpha-2 region in which local phone numbers are read; None reads only
            international ones.
        revision: Goes up with each change that matters to what may be sent.
        contact_hours: Whether people are contacted between 8 and 21 of their own clocks only.
        frequency_cap: How many dispatches may go to one number in 24 hours, over all campaigns; None for any.
    """

    id: str
    name: str
    mode: WorkspaceMode
    status: WorkspaceStatus
    sms_campaigns_enabled: bool
    request_limit: int | None
    default_region: str | None
    revision: int
    created_at: datetime
    updated_at: datetime
    contact_hours: bool = False
    frequency_cap: int | None = None


@attrs.frozen(kw_only=True)
class ApiKey:
    """An API key as it is stored: never the key itself.

    Attributes:
        digest: SHA-256 of the key, in hexadecimal.
        hint: The key's first characters, enough to tell keys apart and too few to use.
    """

    id: str
    workspace_id: str
    name: str
    digest: str
    hint: str
    created_at: datetime
    revoked_at: datetime | None


@attrs.frozen(kw_only=True)
class CreatedApiKey:
    """A key at the one moment when its secret is known."""

    id: str
    api_key: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class WorkspaceUpdate:
    """What to change of a workspace; `UNSET` leaves a field as it is.

    Attributes:
        request_limit: Requests a minute over all its keys; None takes the limit away.
        default_region: Region in which local numbers are read; None reads international ones only.
        contact_hours: Whether people are contacted between 8 and 21 of their own clocks only.
        frequency_cap: How many dispatches may go to one number in 24 hours; None takes the cap away.
    """

    name: str | Unset = UNSET
    status: WorkspaceStatus | Unset = UNSET
    sms_campaigns_enabled: bool | Unset = UNSET
    request_limit: int | Unset | None = UNSET
    default_region: str | Unset | None = UNSET
    contact_hours: bool | Unset = UNSET
    frequency_cap: int | Unset | None = UNSET
