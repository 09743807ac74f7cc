"""Settings of a workspace: SMS, calling campaigns and replies to keywords."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar, get_args

from outreach.errors import InvalidRequest
from outreach.ledger.access.usages import STARTED, campaigns_using
from outreach.ledger.campaigns.ended_approvals import take_approvals
from outreach.ledger.campaigns.transitions import texts_of
from outreach.ledger.common import (
    call_settings_of,
    record_audit,
    reply_settings_of,
    settings_of,
    wake_running_campaigns,
    workspace_of,
)
from outreach.models.campaign import Campaign
from outreach.models.settings import (
    CallSettings,
    CallSettingsUpdate,
    ReplyPurpose,
    ReplySettings,
    ReplySettingsUpdate,
    ReplyText,
    SmsSettings,
    SmsSettingsUpdate,
)
from outreach.rules.rendering import reply_text
from outreach.services.context import ServiceContext, check_kind
from outreach.services.resource import take_methods
from outreach.storage.unit_of_work import Transaction

_MAX_NAMED: Final = 5
"""How many campaigns an error names."""


class SettingsUpdate(Protocol):
    """A change of settings."""

    def apply(self, settings: Any) -> Any:
        """Return the updated settings."""
        ...


S = TypeVar("S")
U = TypeVar("U", bound=SettingsUpdate)


class WorkspaceSettings(Generic[S, U]):
    """Settings that every workspace has; those that were not changed have their defaults.

    Attributes:
        noun: What the audit trail calls them.
    """

    noun: str

    _update: type[U]

    def __init_subclass__(cls) -> None:
        _, cls._update = take_methods(cls, WorkspaceSettings)

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def get(self, workspace_id: str) -> S:
        """Return a workspace's settings.

        Raises:
            NotFound: The workspace does not exist.
        """
        return await self._context.storage.read(lambda tx: self._current(tx, workspace_of(tx, workspace_id).id))

    async def update(self, workspace_id: str, change: U, *, actor: str = "library") -> S:
        """Change the given settings and return all; concurrent changes of other settings are kept.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: By the change a message of a campaign under way would be too long for every contact.
        """
        check_kind("change", change, self._update)
        now = self._context.now()

        def operation(tx: Transaction) -> S:
            workspace_of(tx, workspace_id)
            after: S = change.apply(self._current(tx, workspace_id))
            self._put(tx, workspace_id, after, now, actor)
            action = f"{self.noun}.update"
            record_audit(tx, workspace_id, action, workspace_id, actor=actor, now=now)
            return after

        return await self._context.storage.write_in(workspace_id, operation)

    def _current(self, tx: Transaction, workspace_id: str) -> S:
        """Return the settings, or their defaults."""
        raise NotImplementedError

    def _put(self, tx: Transaction, workspace_id: str, settings: S, now: datetime, actor: str) -> None:
        """Write the settings."""
        raise NotImplementedError


class Settings(WorkspaceSettings[SmsSettings, SmsSettingsUpdate]):
    """SMS settings of workspaces (docs/interface.md#2.4 and #4.4)."""

    noun = "settings"

    def _current(self, tx: Transaction, workspace_id: str) -> SmsSettings:
        return settings_of(tx, workspace_id)

    def _put(self, tx: Transaction, workspace_id: str, settings: SmsSettings, now: datetime, actor: str) -> None:
        before = settings_of(tx, workspace_id)
        _require_texts_fit(tx, workspace_id, before, settings)
        if settings.footer != before.footer:
            take_approvals(tx, workspace_id, lambda campaign: campaign.channel == "sms", now=now, actor=actor)
        tx.settings.put(workspace_id, settings)
        wake_running_campaigns(tx, workspace_id, now)


def _require_texts_fit(tx: Transaction, workspace_id: str, before: SmsSettings, after: SmsSettings) -> None:
    """Raise `InvalidRequest` if by the change a message of a campaign under way would be too long for every contact."""
    if (before.footer, before.max_segments) == (after.footer, after.max_segments):
        return

    def breaks(campaign: Campaign) -> bool:
        return texts_of(tx, campaign, after).fits_no_contact() and not texts_of(tx, campaign, before).fits_no_contact()

    found = campaigns_using(tx, workspace_id, breaks, STARTED)
    if found:
        raise InvalidRequest.at(
            "footer_text" if after.max_segments == before.max_segments else "max_segments",
            f"would make a message too long for every contact of {', '.join(found[:_MAX_NAMED])}: "
            "shorten the footer, raise max_segments, or cancel the campaign first",
        )


class CallingSettings(WorkspaceSettings[CallSettings, CallSettingsUpdate]):
    """Retry settings of workspaces' calling campaigns (docs/rules.md#retry).

    Recipients that already wait for their next call keep its time.
    """

    noun = "call_settings"

    def _current(self, tx: Transaction, workspace_id: str) -> CallSettings:
        return call_settings_of(tx, workspace_id)

    def _put(self, tx: Transaction, workspace_id: str, settings: CallSettings, now: datetime, actor: str) -> None:
        tx.call_settings.put(workspace_id, settings)


class Replies(WorkspaceSettings[ReplySettings, ReplySettingsUpdate]):
    """Replies to STOP, START and HELP; unused where the carrier replies itself.

    A text that is changed to an empty one, or to None, has its default again.
    """

    noun = "reply_settings"

    async def effective_texts(self, workspace_id: str) -> Sequence[ReplyText]:
        """Return the three replies as they would be sent now: to STOP, START and HELP.

        Raises:
            NotFound: The workspace does not exist.
        """

        def operation(tx: Transaction) -> Sequence[ReplyText]:
            name, settings = workspace_of(tx, workspace_id).name, reply_settings_of(tx, workspace_id)
            return tuple(reply_text(settings, purpose, name) for purpose in get_args(ReplyPurpose))

        return await self._context.storage.read(operation)

    def _current(self, tx: Transaction, workspace_id: str) -> ReplySettings:
        return reply_settings_of(tx, workspace_id)

    def _put(self, tx: Transaction, workspace_id: str, settings: ReplySettings, now: datetime, actor: str) -> None:
        tx.reply_settings.put(workspace_id, settings)
