"""Workspaces and their API keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, get_args

import attrs

from outreach.errors import SmsCampaignsDisabled
from outreach.models.base import UNSET, Unset
from outreach.models.fields import Checked, ListOf, Model, Refused, bounded, ruled, sized
from outreach.models.settings import PlaceHours
from outreach.models.states import WorkspaceMode, WorkspaceStatus

DEFAULT_REQUEST_LIMIT: Final = 600
"""Requests per minute of a new workspace."""

ApiScope = Literal["send", "manage", "read"]
"""The right of an API key: to `send` calls, messages and campaigns, to `manage` everything else, or only to `read`."""

API_SCOPES: Final[tuple[ApiScope, ...]] = get_args(ApiScope)
"""All scopes."""

DEFAULT_SCOPES: Final[tuple[ApiScope, ...]] = ("send",)
"""The scopes of a key that is created without any: the operations of the interface document."""


MAX_PLACES: Final = 300
"""Countries and states with hours of their own."""


@attrs.frozen
class _HoursOfPlaces(ListOf):
    """Hours of places, with each place once."""

    def __call__(self, value: Any) -> tuple[Any, ...]:
        """Return the hours."""
        found = ListOf.__call__(self, value)
        places = [one.place for one in found]
        for index, place in enumerate(places):
            if place in places[:index]:
                raise Refused(f"is {place} again: name each place once", f"[{index}].place")
        return found


@attrs.frozen(kw_only=True)
class Workspace:
    """A tenant: everything else belongs to exactly one.

    Attributes:
        mode: A sandbox sends everything to the simulators, whatever carrier or provider is named.
        request_limit: HTTP requests per minute over all keys; None for no limit.
        default_region: ISO 3166 alpha-2 region of local numbers; None accepts international ones only.
        revision: Increases with each change that affects sending.
        contact_hours: Contact people only from 8 to 21 in their own time zones.
        frequency_cap: Dispatches to one number in 24 hours, over all campaigns; None for no cap.
        retention_days: Days after their end for which contacts and texts are kept; None for good.
        skip_unreachable: Leave numbers out that a provider has reported as unreachable on the channel.
        narrower_hours: Contact hours of countries and US states that are narrower; only with `contact_hours`.
        approve_over_contacts: People need approval to start campaigns with more contacts; None for no such limit.
        approve_over_amount: People need approval to start campaigns that cost more; None for no such limit.
        managers_export: Managers may export personal data in the console; owners always may.
    """

    _hidden: ClassVar = ("revision",)

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
    retention_days: int | None = None
    skip_unreachable: bool = False
    narrower_hours: tuple[PlaceHours, ...] = attrs.field(converter=tuple, default=())
    approve_over_contacts: int | None = None
    approve_over_amount: int | None = None
    managers_export: bool = True


def require_sms(enabled: bool) -> None:
    """Raise `SmsCampaignsDisabled` if a workspace does not have SMS campaigns enabled."""
    if not enabled:
        raise SmsCampaignsDisabled


@attrs.frozen(kw_only=True)
class NewWorkspace(Checked):
    """A workspace to create.

    Attributes:
        name: 1 to 255 characters.
        mode: A sandbox sends everything to the simulators, whatever carrier or provider is named.
        sms_campaigns_enabled: Whether SMS campaigns may be created (docs/interface.md#4.3, rule 1).
        request_limit: HTTP requests per minute over all its keys, 1 to 1,000,000; None for no limit.
        default_region: Region of local numbers, such as `US`; None accepts international ones only.
        contact_hours: Contact people only from 8 to 21 in their own time zones; None for True in a live workspace and
            False in a sandbox.
        frequency_cap: Dispatches to one number in 24 hours, over all campaigns, 1 to 1,000; None for no cap.
        retention_days: Days after their end for which contacts and texts are kept, 1 to 36,500; None for good.
        skip_unreachable: Leave numbers out that a provider has reported as unreachable on the channel.
        narrower_hours: Contact hours of countries and US states that are narrower; only with `contact_hours`.
        approve_over_contacts: People need a second person's approval to start campaigns with more contacts, 0 (for
            every start) to 1,000,000,000; None for no such limit.
        approve_over_amount: The same for campaigns that cost more, in whole units of the price table's currency.
        managers_export: Managers may export personal data in the console; owners always may.
    """

    name: str = sized(1, 255)
    mode: WorkspaceMode = WorkspaceMode.SANDBOX
    sms_campaigns_enabled: bool = True
    request_limit: int | None = bounded(1, 1_000_000, default=DEFAULT_REQUEST_LIMIT)
    default_region: str | None = None
    contact_hours: bool | None = None
    frequency_cap: int | None = bounded(1, 1000, default=None)
    retention_days: int | None = bounded(1, 36_500, default=None)
    skip_unreachable: bool = False
    narrower_hours: Sequence[PlaceHours] = ruled(_HoursOfPlaces(Model(PlaceHours), maximum=MAX_PLACES), default=())
    approve_over_contacts: int | None = bounded(0, 1_000_000_000, default=None)
    approve_over_amount: int | None = bounded(0, 1_000_000_000, default=None)
    managers_export: bool = True


@attrs.frozen(kw_only=True)
class ApiKey:
    """A stored API key, without the key itself.

    Attributes:
        digest: SHA-256 of the key, in hexadecimal.
        hint: The key's first characters, to tell keys apart.
        scopes: What it may do.
        made_by: The actor who made it, such as `user:ID`; None for an old one.
        last_used_at: Its last use, to the hour; None before the first.
    """

    id: str
    workspace_id: str
    name: str
    digest: str
    hint: str
    created_at: datetime
    revoked_at: datetime | None
    scopes: tuple[ApiScope, ...] = DEFAULT_SCOPES
    made_by: str | None = None
    last_used_at: datetime | None = None


@attrs.frozen(kw_only=True)
class ApiAccess:
    """A caller's permissions.

    Attributes:
        workspace: The workspace that the request acts for, whatever its status.
        scopes: What it may do there.
    """

    workspace: Workspace
    scopes: Collection[ApiScope]


@attrs.frozen(kw_only=True)
class CreatedApiKey:
    """A new key with its secret, which is not stored."""

    id: str
    api_key: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class WorkspaceUpdate(Checked):
    """The fields of a workspace to change; `UNSET` leaves a field as it is.

    Attributes:
        request_limit: HTTP requests per minute over all its keys; None for no limit.
        default_region: Region of local numbers; None accepts international ones only.
        contact_hours: Contact people only from 8 to 21 in their own time zones.
        frequency_cap: Dispatches to one number in 24 hours; None for no cap.
        retention_days: Days after their end for which contacts and texts are kept, 1 to 36,500; None for good.
        skip_unreachable: Leave numbers out that a provider has reported as unreachable on the channel.
        narrower_hours: Contact hours of countries and US states that are narrower; only with `contact_hours`.
        approve_over_contacts: People need a second person's approval to start campaigns with more contacts; None for
            no such limit.
        approve_over_amount: The same for campaigns that cost more; None for no such limit.
        managers_export: Managers may export personal data in the console; owners always may.
    """

    _rules_from: ClassVar = (NewWorkspace,)

    name: str | Unset = UNSET
    status: WorkspaceStatus | Unset = UNSET
    sms_campaigns_enabled: bool | Unset = UNSET
    request_limit: int | Unset | None = UNSET
    default_region: str | Unset | None = UNSET
    contact_hours: bool | Unset = UNSET
    frequency_cap: int | Unset | None = UNSET
    retention_days: int | Unset | None = UNSET
    skip_unreachable: bool | Unset = UNSET
    narrower_hours: Sequence[PlaceHours] | Unset = UNSET
    approve_over_contacts: int | Unset | None = UNSET
    approve_over_amount: int | Unset | None = UNSET
    managers_export: bool | Unset = UNSET
