"""Readers of the bodies of POST /sms-campaigns and POST /campaigns."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from outreach.convert.business_hours import parse_business_hours
from outreach.convert.field_rules import (
    MAX_DETAILS,
    Array,
    FieldRule,
    OneOf,
    OrNull,
    Refused,
    Text,
    timestamp,
    uuid,
    variables,
    within,
    without_fraction,
)
from outreach.convert.holidays import parse_holidays
from outreach.convert.request_converter import make_request_converter
from outreach.errors import ErrorDetail, InvalidRequest
from outreach.models.base import CARRIERS
from outreach.models.campaign import CallerIdAllocation, NewCallCampaign, NewSmsCampaign
from outreach.models.hours import BusinessHours, HolidayCalendar
from outreach.models.recipient import MAX_EXTERNAL_ID, NewRecipient

_SHARED_NAMES: Final = {"business_hours": "business_hours_config", "holidays": "holidays_config"}
_SMS_NAMES: Final = _SHARED_NAMES | {
    "message_mode": "sms_mode",
    "message_source": "sms_message_source",
    "body": "message_body",
    "flow_id": "sms_flow_id",
    "carrier": "sms_carrier",
    "from_number": "sms_from_number",
    "rate_per_minute": "sms_rate_per_minute",
}
_CALL_NAMES: Final = _SHARED_NAMES | {"trunk_id": "sip_trunk_id", "cli_group": "cli_group_config"}
_E164: Final = Text(pattern=re.compile(r"\+[1-9][0-9]{6,14}"), meaning="must be a number in E.164 such as +14155550102")

_read_recipient = make_request_converter(
    NewRecipient,
    {
        "phone_number": Text(minimum=1),
        "first_name": OrNull(Text()),
        "last_name": OrNull(Text()),
        "email": OrNull(Text()),
        "company": OrNull(Text()),
        "custom_variables": variables,
        "external_id": OrNull(Text(minimum=1, maximum=MAX_EXTERNAL_ID)),
    },
)

_read_cli_entry = make_request_converter(
    CallerIdAllocation,
    {"number_id": Text(minimum=1), "phone": _E164},
    renamed={"number_id": "phoneNumberId", "phone": "phoneE164"},
)


def read_sms_campaign(
    data: Any, *, this_year: int, carriers: Sequence[str] = ()
) -> tuple[NewSmsCampaign, Sequence[NewRecipient]]:
    """Return a body's SMS campaign and contacts; unknown fields are ignored.

    Args:
        data: The parsed JSON, see `parse_json`.
        this_year: The first year of a country's holidays.
        carriers: Carriers that are accepted beside those of the interface.

    Raises:
        InvalidRequest: A rule of docs/interface.md#4.3 is broken; the details name each place.
    """
    return _read(data, _sms_reader(this_year, tuple(carriers)), _check_sms)


def read_call_campaign(data: Any, *, this_year: int) -> tuple[NewCallCampaign, Sequence[NewRecipient]]:
    """Return a body's calling campaign and contacts; see `read_sms_campaign`.

    Raises:
        InvalidRequest: A rule is broken; the details name each place.
    """
    return _read(data, _call_reader(this_year), _check_call)


def in_json_names(error: InvalidRequest) -> InvalidRequest:
    """Return an error about a new SMS campaign with the JSON names of its fields."""
    details = [attrs.evolve(detail, path=_SMS_NAMES.get(detail.path, detail.path)) for detail in error.details]
    return InvalidRequest(details=details)


def _read(
    data: Any, reader: Callable[[Any], Any], check: Callable[[Any, list[ErrorDetail]], None]
) -> tuple[Any, Sequence[NewRecipient]]:
    if type(data) is not dict:
        raise InvalidRequest.at("", "The body must be a JSON object.")
    details: list[ErrorDetail] = []
    campaign: Any = None
    recipients = None
    try:
        campaign = reader(data)
    except Refused as refused:
        details += refused.details
    else:
        check(campaign, details)
        if campaign.schedule_type == "immediate":
            # In the interface a start without a schedule is ignored.
            campaign = attrs.evolve(campaign, scheduled_start_at=None)
    try:
        recipients = _read_recipients(data)
    except Refused as refused:
        details += within("recipients", refused.details)
    if details or campaign is None or recipients is None:
        raise InvalidRequest(details=details[:MAX_DETAILS])
    return campaign, recipients


def _read_recipients(data: dict[str, Any]) -> Sequence[NewRecipient]:
    if "recipients" not in data:
        raise Refused("is required")
    return Array(_in_array(_read_recipient), minimum=1)(data["recipients"])


def _in_array(read: FieldRule) -> FieldRule:
    """Prefix paths inside an element with its index: `[3].phone_number`."""

    def rule(value: Any) -> Any:
        try:
            return read(value)
        except Refused as refused:
            dotted = [ErrorDetail(f".{d.path}" if d.path else "", d.message) for d in refused.details]
            raise Refused.at(dotted) from None

    return rule


def _shared(this_year: int) -> dict[str, FieldRule]:
    return {
        "csv_column_headers": Array(Text()),
        "scheduled_start_at": OrNull(timestamp),
        "scheduled_expires_at": OrNull(timestamp),
        "business_hours": OrNull(business_hours_rule),
        "holidays": OrNull(functools.partial(holidays_rule, this_year=this_year)),
    }


@functools.lru_cache(maxsize=4)
def _sms_reader(this_year: int, carriers: tuple[str, ...]) -> Callable[[Any], NewSmsCampaign]:
    rules = _shared(this_year) | {
        "flow_id": OrNull(uuid),
        "carrier": OrNull(OneOf((*CARRIERS, *carriers))),
        "from_number": OrNull(sending_number),
    }
    return make_request_converter(NewSmsCampaign, rules, renamed=_SMS_NAMES)


@functools.lru_cache(maxsize=4)
def _call_reader(this_year: int) -> Callable[[Any], NewCallCampaign]:
    rules = _shared(this_year) | {
        "agent_id": uuid,
        "trunk_id": OrNull(uuid),
        "cli_group": OrNull(Array(_in_array(_read_cli_entry))),
    }
    return make_request_converter(NewCallCampaign, rules, renamed=_CALL_NAMES)


def sending_number(value: Any) -> str | None:
    """Return a sending number; None for an empty one."""
    return Text()(value) or None


def business_hours_rule(value: Any) -> BusinessHours:
    """Return business hours in any of their forms."""
    if type(value) is dict and "batchConcurrency" in value:
        value = value | {"batchConcurrency": without_fraction(value["batchConcurrency"])}
    try:
        return parse_business_hours(value, path="")
    except InvalidRequest as error:
        raise Refused.at(error.details) from None


def holidays_rule(value: Any, *, this_year: int) -> HolidayCalendar:
    """Return a calendar; that of a country without dates has its public holidays from this year on."""
    if type(value) is dict:
        # The library accepts calendars without a country, the HTTP interface does not.
        if value.get("country") is None:
            raise Refused("is required: the two-letter code of a country, such as US", ".country")
        if value.get("holidays", ()) is None:
            raise Refused("must be an array", ".holidays")
        if value.get("subdivision", "") is None:
            raise Refused("must be a string", ".subdivision")
    try:
        return parse_holidays(value, this_year=this_year, path="")
    except InvalidRequest as error:
        raise Refused.at(error.details) from None


def _check_sms(campaign: NewSmsCampaign, details: list[ErrorDetail]) -> None:
    if campaign.message_source == "custom" and campaign.body is None:
        details.append(ErrorDetail("message_body", "is required when sms_message_source is custom"))
    if campaign.message_source == "flow" and campaign.flow_id is None:
        details.append(ErrorDetail("sms_flow_id", "is required when sms_message_source is flow"))
    _check_schedule(campaign, details)


def _check_call(campaign: NewCallCampaign, details: list[ErrorDetail]) -> None:
    if campaign.cli_mode == "group" and not campaign.cli_group:
        details.append(ErrorDetail("cli_group_config", "must have at least 1 element when cli_mode is group"))
    _check_schedule(campaign, details)


def _check_schedule(campaign: NewSmsCampaign | NewCallCampaign, details: list[ErrorDetail]) -> None:
    if campaign.schedule_type != "scheduled":
        return
    start, expiry = campaign.scheduled_start_at, campaign.scheduled_expires_at
    if start is None:
        details.append(ErrorDetail("scheduled_start_at", "is required when schedule_type is scheduled"))
    elif expiry is not None and expiry <= start:
        details.append(ErrorDetail("scheduled_expires_at", "must be later than scheduled_start_at"))
