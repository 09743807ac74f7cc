"""SMS settings of a workspace (interface, section 2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class SmsSettings:
    """SMS settings of a workspace; the defaults are those before any change (design, section 3).

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
    """How a workspace's calling campaigns try again; one budget for all reasons (design, section 6).

    Attributes:
        retry_max_attempts: Total attempts a recipient, the first included; 1 never tries again.
        retry_delay_minutes: Wait between attempts.
    """

    retry_max_attempts: int = 3
    retry_delay_minutes: int = 30


@attrs.frozen(kw_only=True)
class CallSettingsChange:
    """The fields to change; None leaves a field as it is."""

    retry_max_attempts: int | None = None
    retry_delay_minutes: int | None = None

    def apply(self, settings: CallSettings) -> CallSettings:
        """Return the settings with this change made."""
        return attrs.evolve(settings, **attrs.asdict(self, filter=lambda _, value: value is not None))


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
class ReplySettingsChange:
    """The fields to change; None leaves a field as it is, an empty text takes the default again."""

    enabled: bool | None = None
    stop_text: str | None = None
    start_text: str | None = None
    help_text: str | None = None
    help_when_opted_out: bool | None = None

    def apply(self, settings: ReplySettings) -> ReplySettings:
        """Return the settings with this change made."""
        return attrs.evolve(settings, **attrs.asdict(self, filter=lambda _, value: value is not None))


@attrs.frozen(kw_only=True)
class SmsSettingsChange:
    """The fields to change; None leaves a field as it is (no field of the settings can be null)."""

    footer_enabled: bool | None = None
    footer_text: str | None = None
    max_segments: int | None = None
    retry_enabled: bool | None = None
    retry_max_attempts: int | None = None
    retry_delay_minutes: int | None = None
    custom_variables: Sequence[str] | None = None

    def apply(self, settings: SmsSettings) -> SmsSettings:
        """Return the settings after this change."""
        changes = {name: value for name in FIELDS if (value := getattr(self, name)) is not None}
        if "custom_variables" in changes:
            changes["custom_variables"] = tuple(changes["custom_variables"])
        return attrs.evolve(settings, **changes, revision=settings.revision + 1)


FIELDS: Final = tuple(field.name for field in attrs.fields(SmsSettingsChange))
"""The settings' fields, in the interface's order."""
