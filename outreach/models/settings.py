"""SMS settings of a workspace (docs/interface.md#2.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs

from outreach.errors import Problem
from outreach.models.base import UNSET, Unset, set_fields
from outreach.models.fields import Checked, ListOf, Text, bounded, ruled, sized
from outreach.models.message import ReplyPurpose

MAX_VARIABLES: Final = 1000

_VARIABLE_NAME: Final = Text(
    pattern=re.compile(r"[A-Za-z0-9_]{1,40}"), meaning="must be 1 to 40 letters, digits and underscores"
)


@attrs.frozen(kw_only=True)
class SmsSettings:
    """SMS settings of a workspace, with the defaults of docs/interface.md#settings.

    Attributes:
        retry_max_attempts: Attempts per recipient and message, the first included.
        custom_variables: Names of variables that the workspace declares, without values.
        revision: Increases with each change.
    """

    footer_enabled: bool = True
    footer_text: str = "Reply STOP to opt out"
    max_segments: int = 5
    retry_enabled: bool = False
    retry_max_attempts: int = 3
    retry_delay_minutes: int = 15
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

    retry_max_attempts: int = 3
    retry_delay_minutes: int = 30


@attrs.frozen(kw_only=True)
class CallSettingsUpdate(Checked):
    """The fields to change; `UNSET` leaves a field as it is, and none can be cleared."""

    retry_max_attempts: int | Unset = bounded(1, 10, default=UNSET)
    retry_delay_minutes: int | Unset = bounded(1, 1440, default=UNSET)

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
    stop_text: str = ""
    start_text: str = ""
    help_text: str = ""
    help_when_opted_out: bool = False


@attrs.frozen(kw_only=True)
class ReplySettingsUpdate(Checked):
    """The fields to change; `UNSET` leaves a field as it is; an empty text or None restores the default."""

    enabled: bool | Unset = UNSET
    stop_text: str | Unset | None = sized(0, 320, default=UNSET)
    start_text: str | Unset | None = sized(0, 320, default=UNSET)
    help_text: str | Unset | None = sized(0, 320, default=UNSET)
    help_when_opted_out: bool | Unset = UNSET

    def _problems(self) -> Sequence[Problem]:
        problem = "must not be blank; an empty text restores the default"
        texts = set_fields(self).items()
        return [Problem(path=name, message=problem) for name, text in texts if isinstance(text, str) and text.isspace()]

    def apply(self, settings: ReplySettings) -> ReplySettings:
        """Return the updated settings."""
        texts = {name: "" for name, value in set_fields(self).items() if value is None}
        return attrs.evolve(settings, **set_fields(self) | texts)


@attrs.frozen(kw_only=True)
class SmsSettingsUpdate(Checked):
    """The fields to change; `UNSET` leaves a field as it is, and none can be cleared."""

    footer_enabled: bool | Unset = UNSET
    footer_text: str | Unset = sized(0, 120, default=UNSET)
    max_segments: int | Unset = bounded(1, 5, default=UNSET)
    retry_enabled: bool | Unset = UNSET
    retry_max_attempts: int | Unset = bounded(1, 3, default=UNSET)
    retry_delay_minutes: int | Unset = bounded(5, 120, default=UNSET)
    custom_variables: Sequence[str] | Unset = ruled(ListOf(_VARIABLE_NAME), default=UNSET)

    def _problems(self) -> Sequence[Problem]:
        if self.custom_variables is UNSET or len(self.custom_variables) <= MAX_VARIABLES:
            return ()
        return (Problem(path="custom_variables", message=f"must be at most {MAX_VARIABLES} names"),)

    def apply(self, settings: SmsSettings) -> SmsSettings:
        """Return the updated settings."""
        return attrs.evolve(settings, **set_fields(self), revision=settings.revision + 1)


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
