"""Settings of workspaces: messages, calls, replies, business hours and holidays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, time
from typing import Any, Final, Literal, Self

import attrs

from outreach.errors import Problem
from outreach.models.base import UNSET, Unset, set_fields
from outreach.models.fields import Checked, Instance, ListOf, Refused, Text, bounded, ruled, sized, zone

DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""In the order of `datetime.weekday()`."""

MINUTES_A_DAY: Final = 24 * 60


@attrs.frozen(kw_only=True)
class TimeWindow:
    """A half-open window of local time, in minutes after midnight.

    Attributes:
        start_minute: The first open minute, 0 to 1439.
        end_minute: The first closed minute, 0 to 1440, not equal to the start; before the start it is on the next day.
    """

    start_minute: int
    end_minute: int

    def __attrs_post_init__(self) -> None:
        """Check the bounds.

        Raises:
            ValueError: A minute is out of range, or the window is empty.
        """
        if not (0 <= self.start_minute < MINUTES_A_DAY and 0 <= self.end_minute <= MINUTES_A_DAY):
            raise ValueError(
                f"start_minute must be 0 to 1439 and end_minute 0 to 1440, not {self.start_minute} and "
                f"{self.end_minute}."
            )
        if self.start_minute == self.end_minute:
            raise ValueError(f"A window must not end at the minute at which it starts, {self.start_minute}.")

    @classmethod
    def between(cls, start: time, end: time) -> Self:
        """Return the window from one time of the day to another; `time(0)` as an end is midnight.

            TimeWindow.between(time(9), time(17, 30))

        Raises:
            ValueError: Both are the same, or not whole minutes.
        """
        if start.second or start.microsecond or end.second or end.microsecond:
            raise ValueError(f"A window begins and ends at whole minutes, not at {start} and {end}.")
        return cls(start_minute=start.hour * 60 + start.minute, end_minute=end.hour * 60 + end.minute or MINUTES_A_DAY)

    @property
    def is_overnight(self) -> bool:
        """Whether the window runs into the next day."""
        return self.end_minute < self.start_minute


def _schedule(value: Any) -> Any:
    """Return windows by day, as they are."""
    details = []
    for day, windows in Instance(Mapping)(value).items():
        if day not in DAYS:
            from outreach.core.meant import day_like, did_you_mean

            words = f"must be one of {', '.join(DAYS)}{did_you_mean(day_like(day))}"
            details.append(Problem(path=f".{day}", message=words))
        if not isinstance(windows, Sequence) or not all(isinstance(one, TimeWindow) for one in windows):
            details.append(Problem(path=f".{day}", message=f"must be a tuple of outreach.TimeWindow, not {windows!r}"))
    if details:
        raise Refused.at(details)
    return value


DEFAULT_CONCURRENCY: Final = 10
"""Recipients in one wave, where nothing else is said."""


@attrs.frozen(kw_only=True)
class BusinessHours:
    """When a campaign may contact people, and how many at a time.

        office = TimeWindow.between(time(9), time(17))
        BusinessHours(timezone="America/New_York", schedule={"monday": (office,), "friday": (office,)})

    Attributes:
        enabled: Whether the hours apply; otherwise every hour is open.
        timezone: IANA zone of the windows.
        schedule: The windows of each day, `monday` to `sunday` (`outreach.models.DAYS`); a day without any is closed.
        batch_concurrency: Recipients in one wave.
    """

    enabled: bool = True
    timezone: str = ruled(zone)
    schedule: Mapping[str, tuple[TimeWindow, ...]] = ruled(_schedule)
    batch_concurrency: int = bounded(1, 40, default=DEFAULT_CONCURRENCY)


@attrs.frozen(kw_only=True)
class Holiday:
    """One date.

    Attributes:
        date: The day, in the zone of the hours check.
        name: What people call it; may be empty.
        enabled: Whether it is observed.
    """

    date: date
    name: str
    enabled: bool


@attrs.frozen(kw_only=True)
class HolidayCalendar:
    """The holidays of a campaign.

    Attributes:
        country: Whose public holidays these are, as ISO 3166 alpha-2, or None.
        holidays: The dates, in the order in which they were given.
        subdivision: Which part of the country it is, as ISO 3166-2 without the country (`ENG` of `GB`), whose own
            holidays belong to it as well; None is the whole country.
    """

    country: str | None
    holidays: tuple[Holiday, ...]
    subdivision: str | None = None


FIRST_CONTACT_MINUTE: Final = 8 * 60
LAST_CONTACT_MINUTE: Final = 21 * 60
"""The contact hours, 8 to 21 (47 CFR 64.1200(c)(1)), in minutes after midnight."""

_PLACE: Final = Text(
    pattern=re.compile(r"[A-Z]{2}|US-[A-Z]{2}"), meaning="must be a country such as FR, or a US state such as US-FL"
)


def _narrower_schedule(value: Any) -> Any:
    """Return windows by day that lie within the contact hours."""
    details = []
    for day, windows in _schedule(value).items():
        for window in windows:
            if window.is_overnight or not (
                window.start_minute >= FIRST_CONTACT_MINUTE and window.end_minute <= LAST_CONTACT_MINUTE
            ):
                details.append(Problem(path=f".{day}", message="must lie within 08:00 to 21:00"))
                break
    if not any(value.values()):
        details.append(Problem(path="", message="must have a window on one day at least"))
    if details:
        raise Refused.at(details)
    return value


@attrs.frozen(kw_only=True)
class PlaceHours(Checked):
    """Contact hours of a country or of a US state that are narrower than 8 to 21.

        evening = TimeWindow.between(time(8), time(20))
        PlaceHours(place="US-FL", schedule=dict.fromkeys(DAYS, (evening,)), source="Fla. Stat. 501.616(6)(a)")

    Attributes:
        place: The country as ISO 3166 alpha-2, or `US-` and the code of a state.
        schedule: The windows of each day, by the contact's own time; a day without any is closed.
        source: The law or rule that they come from, 1 to 500 characters.
    """

    place: str = ruled(_PLACE)
    schedule: Mapping[str, tuple[TimeWindow, ...]] = ruled(_narrower_schedule)
    source: str = sized(1, 500)


MAX_VARIABLES: Final = 1000

_VARIABLE_NAME: Final = Text(
    pattern=re.compile(r"[A-Za-z0-9_]{1,40}"), meaning="must be 1 to 40 letters, digits and underscores"
)


ReplyPurpose = Literal["opt_out_confirmation", "opt_in_confirmation", "help"]
"""The reply to a keyword."""


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
