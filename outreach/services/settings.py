"""Settings of a workspace: SMS, calling campaigns and replies to keywords."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, get_args

from outreach.errors import ErrorDetail, InvalidRequest
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
from outreach.policy.texts import text_problem
from outreach.services.context import ServiceContext
from outreach.services.validation import bound_problems, check_bounds, check_flags, check_texts, validated_fields
from outreach.working_set import Transaction

MAX_VARIABLES: Final = 1000
VARIABLE_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,40}")


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
            InvalidRequest: A value is out of its bounds; nothing was changed.
        """
        _check(change)
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
            InvalidRequest: A value is out of its bounds; nothing was changed.
        """
        check_bounds(CallSettings, validated_fields(change, CallSettingsUpdate))
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


def _check(change: SmsSettingsUpdate) -> None:
    changes = validated_fields(change, SmsSettingsUpdate)
    check_flags(changes, "footer_enabled", "retry_enabled")
    details = bound_problems(SmsSettings, changes)
    for index, name in enumerate(check_texts("custom_variables", changes.get("custom_variables", ()))):
        if index >= MAX_VARIABLES:
            details.append(ErrorDetail("custom_variables", f"must be at most {MAX_VARIABLES} names"))
            break
        if not VARIABLE_NAME.fullmatch(name):
            details.append(ErrorDetail(f"custom_variables[{index}]", "must be 1 to 40 letters, digits and underscores"))
    if details:
        raise InvalidRequest(details=details)


MAX_REPLY: Final = 320
"""Characters of a reply: two segments in GSM-7."""

_TEXTS: Final = ("stop_text", "start_text", "help_text")


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
            InvalidRequest: A text is too long, blank or cannot be stored everywhere; nothing was changed.
        """
        changes = validated_fields(change, ReplySettingsUpdate, clearable=_TEXTS)
        check_flags(changes, "enabled", "help_when_opted_out")
        details = [
            ErrorDetail(name, problem)
            for name in _TEXTS
            if (text := changes.get(name)) is not None and (problem := _problem(text)) is not None
        ]
        if details:
            raise InvalidRequest(details=details)

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


def _problem(text: str) -> str | None:
    problem = text_problem(text)
    if problem is None and len(text) > MAX_REPLY:
        problem = f"must have at most {MAX_REPLY} characters, not {len(text)}"
    if problem is None and text and not text.strip():
        problem = "must not be blank; an empty text restores the default"
    return problem
