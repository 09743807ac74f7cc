"""The bodies of the documented operations: readers of requests, and writers of answers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from outreach.core.clock import format_timestamp
from outreach.errors import InvalidRequest, Problem
from outreach.models.audience import LeaveOut
from outreach.models.base import CARRIERS
from outreach.models.call import DIALABLE_NUMBER, Call, NewCall
from outreach.models.campaign import (
    CallerIdAllocation,
    Campaign,
    CampaignCreated,
    NewCallCampaign,
    NewRecipient,
    NewSmsCampaign,
)
from outreach.models.fields import MAX_DETAILS, FieldRule, OneOf, Refused, Text, check_value, within
from outreach.models.message import Message, NewMessage
from outreach.models.metadata import METADATA
from outreach.models.settings import SMS_SETTINGS_FIELDS, HolidayCalendar, SmsSettings, SmsSettingsUpdate
from outreach.rules.numbering import E164
from outreach.serialization.business_hours import (
    read_business_hours,
    read_holidays,
    write_business_hours,
    write_holidays,
)
from outreach.serialization.documents import chosen_fields, to_json
from outreach.serialization.field_rules import (
    Array,
    json_rule,
    make_request_converter,
    nested,
    read_object,
    require_object,
    uuid,
    variables,
    with_json_paths,
)

_SHARED_NAMES: Final = {"business_hours": "business_hours_config", "holidays": "holidays_config"}
SMS_NAMES: Final = _SHARED_NAMES | {
    "message_mode": "sms_mode",
    "message_source": "sms_message_source",
    "body": "message_body",
    "flow_id": "sms_flow_id",
    "carrier": "sms_carrier",
    "from_number": "sms_from_number",
    "from_numbers": "sms_from_numbers",
    "rate_per_minute": "sms_rate_per_minute",
}
CALL_NAMES: Final = _SHARED_NAMES | {"trunk_id": "sip_trunk_id", "cli_group": "cli_group_config"}
UPDATE_NAMES: Final = SMS_NAMES | {"cli_group": CALL_NAMES["cli_group"]}
_E164: Final = Text(pattern=E164, meaning="must be a number in E.164 such as +14155550102")

RECIPIENT_FIELDS: Final = (
    *("phone_number", "first_name", "last_name", "email", "company", "custom_variables", "external_id", "time_zone"),
)
"""The fields of a contact in JSON; the files of lists have more."""

_read_recipient = make_request_converter(NewRecipient, {"custom_variables": variables}, only=RECIPIENT_FIELDS)

_read_cli_entry = make_request_converter(
    CallerIdAllocation, {"phone": _E164}, renamed={"number_id": "phoneNumberId", "phone": "phoneE164"}
)
_CALLER_IDS: Final = Array(nested(_read_cli_entry))

LEAVE_OUT: Final = {"leave_out": nested(make_request_converter(LeaveOut, closed="whom to leave out"))}
"""The rule of the field `leave_out`."""


@attrs.frozen(kw_only=True)
class _WhomToLeaveOut:
    leave_out: LeaveOut | None = None


_read_leave_out = make_request_converter(_WhomToLeaveOut, LEAVE_OUT)
_read_audience = make_request_converter(_WhomToLeaveOut, LEAVE_OUT, closed="an audience")


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
    return _read_with_recipients(data, _sms_reader(this_year, tuple(carriers)))


def read_call_campaign(data: Any, *, this_year: int) -> tuple[NewCallCampaign, Sequence[NewRecipient]]:
    """Return a body's calling campaign and contacts; see `read_sms_campaign`.

    Raises:
        InvalidRequest: A rule is broken; the details name each place.
    """
    return _read_with_recipients(data, _call_reader(this_year))


def read_campaign_of_upload(
    data: Any, *, this_year: int, carriers: Sequence[str] = ()
) -> NewSmsCampaign | NewCallCampaign:
    """Return a campaign whose contacts are those of an upload: as in POST /campaigns, without `recipients`.

    An unknown field is refused: a campaign without a misspelled one would be another.

    Raises:
        InvalidRequest: A rule is broken; the details name each place.
    """
    if type(data) is not dict:
        raise InvalidRequest.at("", "must be an object")
    if "recipients" in data:
        raise InvalidRequest.at("recipients", "must be absent: the contacts are those of the upload")
    try:
        channel = OneOf(("call", "sms"))(data.get("channel", "call"))
        fields = {name: value for name, value in data.items() if name != "channel"}
        if channel == "sms":
            return _sms_reader(this_year, tuple(carriers), closed="an SMS campaign")(fields)
        return _call_reader(this_year, closed="a calling campaign")(fields)
    except Refused as refused:
        raise InvalidRequest(details=refused.details[:MAX_DETAILS]) from None


def read_leave_out(data: Any) -> LeaveOut | None:
    """Return whom a body leaves out by its field `leave_out`; None for nobody.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_leave_out, data).leave_out


def read_audience(data: Any) -> tuple[LeaveOut | None, Sequence[NewRecipient]]:
    """Return whom a body of contacts leaves out, None for nobody, and the contacts.

    Raises:
        InvalidRequest: A field is unknown or a rule is broken; the details name each place.
    """
    whom, recipients = _read_with_recipients(
        data, lambda body: _read_audience({name: value for name, value in body.items() if name != "recipients"})
    )
    return whom.leave_out, recipients


def in_json_names(error: InvalidRequest) -> InvalidRequest:
    """Return an error about a new SMS campaign with the JSON names of its fields."""
    return InvalidRequest(details=with_json_paths(error.details, SMS_NAMES))


def _read_with_recipients(data: Any, reader: Callable[[Any], Any]) -> tuple[Any, Sequence[NewRecipient]]:
    require_object(data)
    details: list[Problem] = []
    campaign: Any = None
    recipients: Sequence[NewRecipient] = ()
    try:
        campaign = reader(data)
    except Refused as refused:
        details += refused.details
    try:
        recipients = _read_recipients(data)
    except Refused as refused:
        details += within("recipients", refused.details)
    if details:
        raise InvalidRequest(details=details[:MAX_DETAILS])
    return campaign, recipients


def _read_recipients(data: dict[str, Any]) -> Sequence[NewRecipient]:
    if "recipients" not in data:
        raise Refused("is required")
    return Array(nested(_read_recipient), minimum=1)(data["recipients"])


def _unused_start(given: Mapping[str, Any]) -> Collection[str]:
    """Return the start of a campaign that has no schedule, which the interface ignores."""
    return ("scheduled_start_at",) if given.get("schedule_type", "immediate") == "immediate" else ()


def times_rules(this_year: int) -> dict[str, FieldRule]:
    """Return the rules of the hours and holidays of a campaign."""
    return {"business_hours": read_business_hours, "holidays": functools.partial(holidays_rule, this_year=this_year)}


@functools.lru_cache(maxsize=4)
def _sms_reader(
    this_year: int, carriers: tuple[str, ...], *, closed: str | None = None
) -> Callable[[Any], NewSmsCampaign]:
    rules = times_rules(this_year) | {
        "flow_id": uuid,
        "carrier": OneOf((*CARRIERS, *carriers)),
    }
    return make_request_converter(
        NewSmsCampaign,
        rules,
        renamed=SMS_NAMES,
        closed=closed,
        never_null=("description", "body"),
        ignored=_unused_start,
    )


def caller_ids(value: Any) -> Sequence[CallerIdAllocation]:
    """Return the caller IDs of a JSON array."""
    found: Sequence[CallerIdAllocation] = _CALLER_IDS(value)
    return found


@functools.lru_cache(maxsize=4)
def _call_reader(this_year: int, *, closed: str | None = None) -> Callable[[Any], NewCallCampaign]:
    rules = times_rules(this_year) | {"agent_id": uuid, "trunk_id": uuid, "cli_group": caller_ids}
    never_null = ("description", "batch_concurrency")
    return make_request_converter(
        NewCallCampaign, rules, renamed=CALL_NAMES, closed=closed, never_null=never_null, ignored=_unused_start
    )


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
    return read_holidays(value, this_year=this_year)


_read_call: Final = make_request_converter(NewCall, {"agent_id": uuid, "variables": variables})


@functools.lru_cache(maxsize=4)
def _message_reader(carriers: tuple[str, ...]) -> Callable[[Any], NewMessage]:
    return make_request_converter(NewMessage, {"to": DIALABLE_NUMBER, "carrier": OneOf((*CARRIERS, *carriers))})


_read_settings: Final = make_request_converter(SmsSettingsUpdate, closed="the SMS settings")


def read_new_call(data: Any) -> NewCall:
    """Return the call of a body of POST /calls; unknown fields are ignored.

    Raises:
        InvalidRequest: A rule of docs/interface.md#4.1 is broken; the details name each place.
    """
    return read_object(_read_call, data)


def read_new_message(data: Any, *, carriers: Sequence[str] = ()) -> NewMessage:
    """Return the message of a body of POST /sms; unknown fields are ignored.

    Args:
        data: The parsed JSON, see `parse_json`.
        carriers: Carriers that are accepted beside those of the interface.

    Raises:
        InvalidRequest: A rule is broken; the details name each place.
    """
    return read_object(_message_reader(tuple(carriers)), data)


def read_metadata(data: Any) -> dict[str, Any]:
    """Return metadata, a JSON object of at most 4,096 bytes.

    Args:
        data: The parsed JSON, see `parse_json`.

    Raises:
        InvalidRequest: It is no such object, or holds a number of more than 64 bits.
    """
    found: dict[str, Any] = check_value("metadata", data, json_rule(METADATA))
    return found


def read_sms_settings_update(data: Any) -> SmsSettingsUpdate:
    """Return the update of a body of PATCH /sms/settings; unknown fields are refused.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_settings, data)


_CALL: Final = (
    *("id", "agent_id", "campaign_id", "provider", "provider_call_id", "to", "from_number", "status", "outcome"),
    *("answered_by", "variables", "attempt", "error", "created_at", "dialed_at", "answered_at", "ended_at"),
)
_CALL_NAMES: Final = {"provider_call_id": "callId", "from_number": "from"}


def write_campaign(campaign: Campaign, *, now: datetime) -> dict[str, Any]:
    """Return a campaign with every field, null where not applicable; `agent` only if assigned."""
    hours, counters = campaign.business_hours, campaign.counters
    written: dict[str, Any] = {
        "id": campaign.id,
        "workspace_id": campaign.workspace_id,
        "agent_id": campaign.agent_id,
        "name": campaign.name,
        "description": campaign.description,
        "status": campaign.status.value,
        "effective_status": campaign.effective_status(now).value,
        "schedule_type": campaign.schedule_type,
        "scheduled_start_at": _moment(campaign.scheduled_start_at),
        "scheduled_expires_at": _moment(campaign.scheduled_expires_at),
        "business_hours_only": hours is not None and hours.enabled,
        "timezone": None if hours is None else hours.timezone,
        "total_recipients": counters.total,
        "pending_calls": counters.pending,
        "completed_calls": counters.completed,
        "successful_calls": counters.successful,
        "failed_calls": counters.failed,
        "created_at": format_timestamp(campaign.created_at),
        "updated_at": format_timestamp(campaign.updated_at),
        "started_at": _moment(campaign.started_at),
        "completed_at": _moment(campaign.completed_at),
        "channel": campaign.channel,
        "business_hours_config": None if hours is None else write_business_hours(hours),
        "holidays_config": None if campaign.holidays is None else write_holidays(campaign.holidays),
        "batch_concurrency": campaign.batch_concurrency,
        "sip_trunk_id": campaign.trunk_id,
        "cli_mode": campaign.cli_mode,
        "cli_group_config": _cli_group(campaign),
        "ivr_enabled": campaign.ivr_enabled,
        "call_screen_enabled": campaign.call_screen_enabled,
        "double_dial": campaign.double_dial,
        "csv_column_headers": list(campaign.csv_column_headers),
        "sms_mode": campaign.message_mode,
        "sms_message_source": campaign.message_source,
        "sms_message_body": campaign.body,
        "sms_flow_id": campaign.flow_id,
        "sms_carrier": campaign.carrier,
        "sms_from_number": campaign.from_number,
        "sms_rate_per_minute": campaign.rate_per_minute,
    }
    if (agent := campaign.agent) is not None:
        written["agent"] = to_json(agent)
    return written


def write_campaign_created(created: CampaignCreated, *, now: datetime) -> dict[str, Any]:
    """Return a new campaign, with the number of excluded contacts."""
    written = write_campaign(created.campaign, now=now)
    return written | {"sms_opted_out_excluded": created.opted_out_excluded}


def write_sms_settings(settings: SmsSettings) -> dict[str, Any]:
    """Return all SMS settings."""
    return chosen_fields(settings, SMS_SETTINGS_FIELDS)


def write_call_created(call: Call) -> dict[str, Any]:
    """Return the response to POST /calls; `callId` is absent until the provider accepts the call."""
    written: dict[str, Any] = {"success": True, "provider": call.provider}
    return written if call.provider_call_id is None else written | {"callId": call.provider_call_id}


def write_call(call: Call) -> dict[str, Any]:
    """Return a call record."""
    written = chosen_fields(call, _CALL, renamed=_CALL_NAMES)
    return written | {"duration_seconds": call.duration_seconds, "summary": call.summary}


def write_managed_call(call: Call) -> dict[str, Any]:
    """Return a call record as it is under /manage."""
    return write_call(call) | chosen_fields(call, ("cost", "cost_currency", "judged_at", "external_id", "metadata"))


def write_call_details(call: Call, transcript: str | None) -> dict[str, Any]:
    """Return a call record with what was said in it."""
    return write_managed_call(call) | {"transcript": transcript}


def write_message(message: Message) -> dict[str, Any]:
    """Return the response to POST /sms."""
    return {"success": True, **chosen_fields(message, ("id", "carrier", "status", "segments"))}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)


def _cli_group(campaign: Campaign) -> list[dict[str, Any]] | None:
    if campaign.cli_group is None:
        return None
    return [
        {"phoneNumberId": entry.number_id, "phoneE164": entry.phone, "count": entry.count}
        for entry in campaign.cli_group
    ]
