"""Bounds of a new or changed campaign, for callers that did not go through a converter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, get_args

from outreach.clock import in_utc, is_zone
from outreach.errors import ErrorDetail, InvalidRequest
from outreach.meant import day_like, did_you_mean, zones_like
from outreach.models.base import (
    CliMode,
    ScheduleType,
    SmsMessageSource,
    SmsMode,
    bounded_fields,
)
from outreach.models.campaign import CallerIdAllocation, Campaign, NewCallCampaign, NewSmsCampaign
from outreach.models.hours import DAYS, BusinessHours, HolidayCalendar, TimeWindow
from outreach.policy.texts import text_problem
from outreach.providers.registry import Adapters
from outreach.services.validation import bound_problems, check_kind, choice_problem, provider_problem


def check_new_sms_campaign(campaign: NewSmsCampaign, adapters: Adapters) -> None:
    """Check an SMS campaign by the rules of docs/interface.md#4.3.

    Raises:
        InvalidRequest: A rule is broken; the details name each.
    """
    check_kind("campaign", campaign, NewSmsCampaign)
    details = _shared_problems(campaign)
    details += _text("from_number", campaign.from_number)
    details += _choice("message_mode", campaign.message_mode, get_args(SmsMode))
    details += _choice("message_source", campaign.message_source, get_args(SmsMessageSource))
    if campaign.carrier is not None:
        problem = provider_problem(campaign.carrier, "carrier", adapters)
        details += [ErrorDetail("carrier", problem)] if problem is not None else []
    if campaign.message_source == "custom" and campaign.body is None:
        details.append(ErrorDetail("body", "is required when message_source is custom"))
    if campaign.message_source == "flow" and campaign.flow_id is None:
        details.append(ErrorDetail("flow_id", "is required when message_source is flow"))
    _refuse(details)


def check_new_call_campaign(campaign: NewCallCampaign) -> None:
    """Check a calling campaign by the same rules as its body; see `check_new_sms_campaign`.

    Raises:
        InvalidRequest: A rule is broken; the details name each.
    """
    check_kind("campaign", campaign, NewCallCampaign)
    details = _shared_problems(campaign)
    details += _choice("cli_mode", campaign.cli_mode, get_args(CliMode))
    if campaign.cli_mode == "group" and not campaign.cli_group:
        details.append(ErrorDetail("cli_group_config", "must have at least 1 element when cli_mode is group"))
    details += _rotation("cli_group_config", campaign.cli_group)
    for name in ("ivr_enabled", "call_screen_enabled", "double_dial", "retry_voicemail"):
        details += _kind(name, getattr(campaign, name), bool, "True or False")
    _refuse(details)


def _shared_problems(campaign: NewSmsCampaign | NewCallCampaign) -> list[ErrorDetail]:
    details = _bounds("", campaign)
    details += _headers("csv_column_headers", campaign.csv_column_headers)
    details += _choice("schedule_type", campaign.schedule_type, get_args(ScheduleType))
    if campaign.schedule_type == "immediate" and isinstance(campaign.scheduled_start_at, datetime):
        words = "has no effect with schedule_type='immediate', the default: set schedule_type='scheduled'"
        details.append(ErrorDetail("scheduled_start_at", words))
    return details + _time_problems(campaign)


def check_times(campaign: Campaign) -> None:
    """Check the schedule, business hours and holidays of a changed campaign.

    Raises:
        InvalidRequest: A rule is broken; the details name each.
    """
    _refuse(_time_problems(campaign))


def _time_problems(campaign: NewSmsCampaign | NewCallCampaign | Campaign) -> list[ErrorDetail]:
    details: list[ErrorDetail] = []
    if campaign.business_hours is not None:
        details += _hours("business_hours", campaign.business_hours)
    if campaign.holidays is not None:
        details += _kind("holidays", campaign.holidays, HolidayCalendar)
    start, expiry = in_utc(campaign.scheduled_start_at), in_utc(campaign.scheduled_expires_at)
    unusable = _moment("scheduled_start_at", start) + _moment("scheduled_expires_at", expiry)
    if unusable or campaign.schedule_type != "scheduled":
        return details + unusable
    if start is None:
        details.append(ErrorDetail("scheduled_start_at", "is required when schedule_type is scheduled"))
    elif expiry is not None and expiry <= start:
        details.append(ErrorDetail("scheduled_expires_at", "must be later than scheduled_start_at"))
    return details


def _hours(path: str, hours: BusinessHours) -> list[ErrorDetail]:
    wrong = _kind(path, hours, BusinessHours)
    if wrong:
        return wrong
    # Checked on write: with an unknown zone the campaign would be active for ever and reach nobody.
    details: list[ErrorDetail] = []
    if not is_zone(hours.timezone):
        meant = did_you_mean(zones_like(hours.timezone))
        details.append(ErrorDetail(f"{path}.timezone", f"must be a time zone such as America/New_York{meant}"))
    details += [
        ErrorDetail(f"{path}.schedule.{day}", f"must be one of {', '.join(DAYS)}{did_you_mean(day_like(day))}")
        for day in hours.schedule
        if day not in DAYS
    ]
    details += [
        ErrorDetail(f"{path}.schedule.{day}", f"must be a tuple of outreach.TimeWindow, not {windows!r}")
        for day, windows in hours.schedule.items()
        if not _are_windows(windows)
    ]
    return details + _bounds(f"{path}.", hours)


def _are_windows(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(window, TimeWindow) for window in value)


def _text(path: str, value: object) -> list[ErrorDetail]:
    if value is None:
        return []
    problem = text_problem(value) if isinstance(value, str) else "must be a string"
    return [ErrorDetail(path, problem)] if problem else []


def _bounds(prefix: str, model: Any) -> list[ErrorDetail]:
    values = {name: getattr(model, name) for name in bounded_fields(type(model))}
    return [ErrorDetail(prefix + one.path, one.message) for one in bound_problems(type(model), values)]


def _choice(path: str, value: object, choices: Sequence[str]) -> list[ErrorDetail]:
    problem = choice_problem(value, choices)
    return [ErrorDetail(path, problem)] if problem else []


def _kind(path: str, value: object, kind: type, called: str | None = None) -> list[ErrorDetail]:
    if isinstance(value, kind):
        return []
    return [ErrorDetail(path, f"must be {called or f'an outreach.{kind.__name__}'}, not {type(value).__name__}")]


def _headers(path: str, headers: object) -> list[ErrorDetail]:
    # str is a Sequence too.
    if isinstance(headers, str) or not isinstance(headers, Sequence):
        return [ErrorDetail(path, f"must be a list of strings, not {type(headers).__name__}")]
    return [problem for n, header in enumerate(headers) for problem in _text(f"{path}[{n}]", header)]


def _rotation(path: str, group: object) -> list[ErrorDetail]:
    if group is None:
        return []
    if isinstance(group, str) or not isinstance(group, Sequence):
        return [ErrorDetail(path, f"must be a list of outreach.CallerIdAllocation, not {type(group).__name__}")]
    details = []
    for index, entry in enumerate(group):
        wrong = _kind(f"{path}[{index}]", entry, CallerIdAllocation)
        details += wrong or _bounds(f"{path}[{index}].", entry)
    return details


def _moment(path: str, moment: datetime | None) -> list[ErrorDetail]:
    if moment is None:
        return []
    wrong = _kind(path, moment, datetime, "a datetime")
    if wrong or moment.utcoffset() is not None:
        return wrong
    return [ErrorDetail(path, "must have a UTC offset: use datetime(..., tzinfo=UTC)")]


def _refuse(details: Sequence[ErrorDetail]) -> None:
    if details:
        raise InvalidRequest(details=details)
