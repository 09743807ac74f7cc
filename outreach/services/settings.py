"""Settings of a workspace: SMS, calling campaigns and replies to keywords."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from outreach.models.message import ReplyPurpose
from outreach.models.settings import (
    CallSettings,
    CallSettingsUpdate,
    ReplySettings,
    ReplySettingsUpdate,
    ReplyText,
    SmsSettings,
    SmsSettingsUpdate,
)
from outreach.operations.common import (
    call_settings_of,
    record_audit,
    reply_settings_of,
    settings_of,
    wake_running_campaigns,
    workspace_of,
)
from outreach.policy.rendering import reply_text
from outreach.services.context import ServiceContext
from outreach.services.validation import check_kind
from outreach.working_set import Transaction


class Settings:
    """SMS settings of workspaces (docs/interface.md#2.4 and #4.4)."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def get(self, workspace_id: str) -> SmsSettings:
        """Return a workspace's SMS settings.

        Raises:
            NotFound: The workspace does not exist.
        """
        return await self._context.storage.read(lambda tx: settings_of(tx, workspace_of(tx, workspace_id).id))

    async def update(self, workspace_id: str, change: SmsSettingsUpdate, *, actor: str = "library") -> SmsSettings:
        """Change the given fields and return all; concurrent changes of other fields are kept.

        Raises:
            NotFound: The workspace does not exist.
        """
        check_kind("change", change, SmsSettingsUpdate)
        now = self._context.now()

        def operation(tx: Transaction) -> SmsSettings:
            workspace_of(tx, workspace_id)
            after = change.apply(settings_of(tx, workspace_id))
            tx.settings.put(workspace_id, after)
            wake_running_campaigns(tx, workspace_id, now)
            record_audit(
                tx, now=now, workspace_id=workspace_id, actor=actor, action="settings.update", subject=workspace_id
            )
            return after

        return await self._context.storage.write(operation)


class CallingSettings:
    """Retry settings of workspaces' calling campaigns (docs/rules.md#retry)."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def get(self, workspace_id: str) -> CallSettings:
        """Return a workspace's settings for calling campaigns.

        Raises:
            NotFound: The workspace does not exist.
        """
        return await self._context.storage.read(lambda tx: call_settings_of(tx, workspace_of(tx, workspace_id).id))

    async def update(self, workspace_id: str, change: CallSettingsUpdate, *, actor: str = "library") -> CallSettings:
        """Change the given fields and return all; recipients that wait already keep their time.

        Raises:
            NotFound: The workspace does not exist.
        """
        check_kind("change", change, CallSettingsUpdate)
        now = self._context.now()

        def operation(tx: Transaction) -> CallSettings:
            workspace_of(tx, workspace_id)
            after = change.apply(call_settings_of(tx, workspace_id))
            tx.call_settings.put(workspace_id, after)
            record_audit(
                tx,
                now=now,
                workspace_id=workspace_id,
                actor=actor,
                action="call_settings.update",
                subject=workspace_id,
            )
            return after

        return await self._context.storage.write(operation)


class Replies:
    """Replies to STOP, START and HELP; unused where the carrier replies itself."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def get(self, workspace_id: str) -> ReplySettings:
        """Return a workspace's reply settings.

        Raises:
            NotFound: The workspace does not exist.
        """
        return await self._context.storage.read(lambda tx: reply_settings_of(tx, workspace_of(tx, workspace_id).id))

    async def effective_texts(self, workspace_id: str) -> Sequence[ReplyText]:
        """Return the three replies as they would be sent now: to STOP, START and HELP.

        Raises:
            NotFound: The workspace does not exist.
        """

        def operation(tx: Transaction) -> Sequence[ReplyText]:
            name, settings = workspace_of(tx, workspace_id).name, reply_settings_of(tx, workspace_id)
            return tuple(reply_text(settings, purpose, name) for purpose in get_args(ReplyPurpose))

        return await self._context.storage.read(operation)

    async def update(self, workspace_id: str, change: ReplySettingsUpdate, *, actor: str = "library") -> ReplySettings:
        """Change the given fields and return all; an empty text or None restores the default.

        Raises:
            NotFound: The workspace does not exist.
        """
        check_kind("change", change, ReplySettingsUpdate)

        def operation(tx: Transaction) -> ReplySettings:
            workspace_of(tx, workspace_id)
            after = change.apply(reply_settings_of(tx, workspace_id))
            tx.reply_settings.put(workspace_id, after)
            record_audit(
                tx,
                now=self._context.now(),
                workspace_id=workspace_id,
                actor=actor,
                action="reply_settings.update",
                subject=workspace_id,
            )
            return after

        return await self._context.storage.write(operation)
