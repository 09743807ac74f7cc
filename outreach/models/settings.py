"""SMS settings of a workspace (docs/interface.md#2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from outreach.models.base import UNSET, Unset, bounded, set_fields, sized
from outreach.models.message import ReplyPurpose


@attrs.frozen(kw_only=True)
class SmsSettings:
    """SMS settings of a workspace, with the defaults of docs/interface.md#settings.

    Attributes:
        retry_max_attempts: Attempts per recipient and message, the first included.
        custom_variables: Names of variables that the workspace declares, without values.
        revision: Increases with each change.
    """

    footer_enabled: bool = True
    footer_text: str = sized(0, 120, default="Reply STOP to opt out")
    max_segments: int = bounded(1, 5, default=5)
    retry_enabled: bool = False
    retry_max_attempts: int = bounded(1, 3, default=3)
    retry_delay_minutes: int = bounded(5, 120, default=15)
    custom_variables: tuple[str, ...] = ()
    revision: int = 0

    @property
    def footer(self) -> str | None:
        """The footer of campaign messages, if enabled."""
        return self.footer_text if self.footer_enabled and self.footer_text else None


@attrs.frozen(kw_only=True)
class CallSettings:
    """Retries of a workspace's calling campaigns, one budget for all reasons (docs/rules.md#retry).

    Attributes:
        retry_max_attempts: Attempts per recipient, the first included; 1 for no retry.
        retry_delay_minutes: Wait between attempts.
    """

    retry_max_attempts: int = bounded(1, 10, default=3)
    retry_delay_minutes: int = bounded(1, 1440, default=30)


@attrs.frozen(kw_only=True)
class CallSettingsUpdate:
    """The fields to change; `UNSET` leaves a field as it is, and none can be cleared."""

    retry_max_attempts: int | Unset = UNSET
    retry_delay_minutes: int | Unset = UNSET

    def apply(self, settings: CallSettings) -> CallSettings:
        """Return the updated settings."""
        return attrs.evolve(settings, **set_fields(self))


@attrs.frozen(kw_only=True)
class ReplySettings:
    """Replies to STOP, START and HELP where the carrier does not reply.

    Attributes:
        enabled: Whether to reply; a STOP takes effect in any case.
        stop_text: The one confirmation of an opt-out; empty for the default, which names the workspace.
        start_text: The confirmation of an opt-in; empty for the default.
        help_text: The reply to HELP; empty for the default.
        help_when_opted_out: Whether to reply to HELP from unsubscribed numbers too.
    """

    enabled: bool = True
    stop_text: str = sized(0, 320, default="")
    start_text: str = sized(0, 320, default="")
    help_text: str = sized(0, 320, default="")
    help_when_opted_out: bool = False


@attrs.frozen(kw_only=True)
class ReplySettingsUpdate:
    """The fields to change; `UNSET` leaves a field as it is; an empty text or None restores the default."""

    enabled: bool | Unset = UNSET
    stop_text: str | Unset | None = UNSET
    start_text: str | Unset | None = UNSET
    help_text: str | Unset | None = UNSET
    help_when_opted_out: bool | Unset = UNSET

    def apply(self, settings: ReplySettings) -> ReplySettings:
        """Return the updated settings."""
        texts = {name: "" for name, value in set_fields(self).items() if value is None}
        return attrs.evolve(settings, **set_fields(self) | texts)


@attrs.frozen(kw_only=True)
class SmsSettingsUpdate:
    """The fields to change; `UNSET` leaves a field as it is, and none can be cleared."""

    footer_enabled: bool | Unset = UNSET
    footer_text: str | Unset = UNSET
    max_segments: int | Unset = UNSET
    retry_enabled: bool | Unset = UNSET
    retry_max_attempts: int | Unset = UNSET
    retry_delay_minutes: int | Unset = UNSET
    custom_variables: Sequence[str] | Unset = UNSET

    def apply(self, settings: SmsSettings) -> SmsSettings:
        """Return the updated settings."""
        changes = set_fields(self)
        if "custom_variables" in changes:
            changes["custom_variables"] = tuple(changes["custom_variables"])
        return attrs.evolve(settings, **changes, revision=settings.revision + 1)


SMS_SETTINGS_FIELDS: Final = tuple(field.name for field in attrs.fields(SmsSettingsUpdate))
"""The settings' fields, in the interface's order."""


@attrs.frozen(kw_only=True)
class ReplyText:
    """One reply as it is sent.

    Attributes:
        segments: Its SMS segments.
    """

    purpose: ReplyPurpose
    text: str
    segments: int
