"""The JSON bodies of the HTTP interface: reading requests and writing responses. A public module, for servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.clock import format_timestamp
from outreach.config import PUBLIC_URL_VARIABLE
from outreach.convert.campaigns import in_json_names, read_call_campaign, read_sms_campaign
from outreach.convert.fast_bodies import read_simple_body
from outreach.convert.json_parsing import parse_json
from outreach.convert.json_requests import read_new_call, read_new_message, read_sms_settings_update
from outreach.convert.json_responses import (
    write_call,
    write_call_created,
    write_campaign,
    write_campaign_created,
    write_message,
    write_sms_settings,
)
from outreach.models.base import JsonPage
from outreach.models.http import IdempotentRequest, RateLimitState, StoredAnswer
from outreach.policy.holidays import holiday_parts, parse_holidays
from outreach.services.contacts import prepare_recipient

if TYPE_CHECKING:
    from outreach.engine import Outreach
    from outreach.log_throttle import LogThrottle

__all__ = [
    "PUBLIC_URL_VARIABLE",
    "IdempotentRequest",
    "JsonPage",
    "RateLimitState",
    "StoredAnswer",
    "format_timestamp",
    "holiday_parts",
    "in_json_names",
    "log_throttle_of",
    "parse_holidays",
    "parse_json",
    "prepare_recipient",
    "read_call_campaign",
    "read_new_call",
    "read_new_message",
    "read_simple_body",
    "read_sms_campaign",
    "read_sms_settings_update",
    "write_call",
    "write_call_created",
    "write_campaign",
    "write_campaign_created",
    "write_message",
    "write_sms_settings",
]


def log_throttle_of(engine: Outreach) -> LogThrottle:
    """Return what writes an engine's own log lines, which cannot flood the log, for the lines of a server around it.

    What is told to it of the database counts for `engine.readiness()` too.
    """
    return engine._log_throttle
