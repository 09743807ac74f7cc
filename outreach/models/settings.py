"""SMS settings of a workspace (docs/interface.md#2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from outreach.models.base import UNSET, Unset, set_fields
from outreach.models.message import ReplyPurpose


@attrs.frozen(kw_only=True)
class SmsSettings:
    """SMS settings of a workspace; the defaults are those before any change (docs/interface.md#settings).

    Attributes:
        retry_max_attempts: Total attempts a recipient and message, the first included.
        custom_variables: Names that the workspace declares; they carry no values.
        revision: Goes up with each change.
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
        """The footer that campaign messages carry; None when there is none."""
        return self.footer_text if self.footer_enabled and self.footer_text else None


@attrs.frozen(kw_only=True)
class CallSettings:
    """How a workspace's calling campaigns try again; one budget for all reasons (docs/rules.md#retry).

    Attributes:
        retry_max_attempts: Total attempts a recipient, the first included; 1 never tries again.
        retry_delay_minutes: Wait between attempts.
    """

    retry_max_attempts: int = 3
    retry_delay_minutes: int = 30


@attrs.frozen(kw_only=True)
class CallSettingsUpdate:
    """The fields to change; `UNSET` leaves a field as it is, and none can be cleared."""

    retry_max_attempts: int | Unset = UNSET
    retry_delay_minutes: int | Unset = UNSET

    def apply(self, settings: CallSettings) -> CallSettings:
        """Return the settings with this change made."""
        return attrs.evolve(settings, **set_fields(self))


@attrs.frozen(kw_only=True)
class ReplySettings:
    """How a workspace answers STOP, START and HELP where the carrier does not.

    Attributes:
        enabled: Whether anything is answered; a STOP takes effect in any case.
        stop_text: The one confirmation after an opt-out; an empty text takes the default, which names the workspace.
        start_text: The confirmation after an opt-in; empty as above.
        help_text: The answer to HELP; empty as above.
        help_when_opted_out: Whether HELP is answered to numbers on the register too.
    """

    enabled: bool = True
    stop_text: str = ""
    start_text: str = ""
    help_text: str = ""
    help_when_opted_out: bool = False


@attrs.frozen(kw_only=True)
class ReplySettingsUpdate:
    """The fields to change; `UNSET` leaves a field as it is; a text that is empty or None takes the default again."""

    enabled: bool | Unset = UNSET
    stop_text: str | Unset | None = UNSET
    start_text: str | Unset | None = UNSET
    help_text: str | Unset | None = UNSET
    help_when_opted_out: bool | Unset = UNSET

    def apply(self, settings: ReplySettings) -> ReplySettings:
        """Return the settings with this change made."""
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
        """Return the settings after this change."""
        changes = set_fields(self)
        if "custom_variables" in changes:
            changes["custom_variables"] = tuple(changes["custom_variables"])
        return attrs.evolve(settings, **changes, revision=settings.revision + 1)


SMS_SETTINGS_FIELDS: Final = tuple(field.name for field in attrs.fields(SmsSettingsUpdate))
"""The settings' fields, in the interface's order."""


@attrs.frozen(kw_only=True)
class ReplyText:
    """One answer as it is sent.

    Attributes:
        segments: How many segments it takes.
    """

    purpose: ReplyPurpose
    text: str
    segments: int
