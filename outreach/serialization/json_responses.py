"""Writers of HTTP responses, as JSON-ready dicts (docs/interface.md#2)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from outreach.core.clock import format_timestamp
from outreach.models.call import Call
from outreach.models.campaign import Campaign, CampaignCreated
from outreach.models.message import Message
from outreach.models.settings import SMS_SETTINGS_FIELDS, SmsSettings
from outreach.serialization.business_hours import write_business_hours
from outreach.serialization.documents import chosen_fields, to_json
from outreach.serialization.holidays import write_holidays

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
