"""What docs/interface.md says in its sections 2 to 8, and the rows of its section 10: one name for each.

A test names what it checks with `@pytest.mark.sentence("4.3 rule 2")`; `test_registry.py` finds what nobody names.
"""

from __future__ import annotations

from typing import Final

CAMPAIGN_FIELDS: Final = (
    "id", "workspace_id", "agent_id", "name", "description", "status", "effective_status", "schedule_type",
    "scheduled_start_at", "scheduled_expires_at", "business_hours_only", "timezone", "total_recipients",
    "pending_calls", "completed_calls", "successful_calls", "failed_calls", "created_at", "updated_at", "started_at",
    "completed_at", "channel", "business_hours_config", "holidays_config", "batch_concurrency", "sip_trunk_id",
    "cli_mode", "cli_group_config", "ivr_enabled", "call_screen_enabled", "double_dial", "csv_column_headers",
    "sms_mode", "sms_message_source", "sms_message_body", "sms_flow_id", "sms_carrier", "sms_from_number",
    "sms_rate_per_minute", "agent",
)  # fmt: skip
RECIPIENT_FIELDS: Final = ("phone_number", "first_name", "last_name", "email", "company", "custom_variables")
SETTINGS_FIELDS: Final = (
    "footer_enabled", "footer_text", "max_segments", "retry_enabled", "retry_max_attempts", "retry_delay_minutes",
    "custom_variables",
)  # fmt: skip
CREATE_FIELDS: Final = (
    "channel", "name", "description", "sms_mode", "sms_message_source", "message_body", "sms_flow_id", "sms_carrier",
    "sms_from_number", "sms_rate_per_minute", "recipients", "csv_column_headers", "schedule_type",
    "scheduled_start_at", "scheduled_expires_at", "business_hours_config", "holidays_config",
)  # fmt: skip
STATUSES: Final = {
    "POST /calls": (400, 401, 403, 404, 409, 429),
    "GET /sms-campaigns": (400, 401, 403, 429),
    "POST /sms-campaigns": (400, 401, 403, 429),
    "PATCH /sms/settings": (400, 401, 403, 429),
}
LIMITS: Final = (
    "to", "page", "page_size", "name", "description", "message_body", "sms_rate_per_minute", "recipients",
    "batch_concurrency", "footer_text", "max_segments", "retry_max_attempts", "retry_delay_minutes",
    "custom_variables", "request rate",
)  # fmt: skip
ROWS: Final = (
    "carrier identifiers", "error envelope", "codes", "order of checks", "statuses", "fields of an answer", "agents",
    "variables", "to", "callId", "409 call_in_progress", "unknown fields", "channel on POST /sms-campaigns",
    "message_body", "sms_flow_id", "sms_from_number", "null", "types", "lengths", "text", "query", "order", "search",
    "timestamps", "schedule", "raw status and expiry", "business hours, stored", "business hours, days-shaped request",
    "holidays", "duplicates in a request", "numbers that are not numbers", "same number", "register", "request limit",
    "safe retry", "settings, before any PATCH", "SMS counters", "POST /sms", "GET /calls/{id}",
    "GET /campaigns, POST /campaigns", "ids",
)  # fmt: skip

SENTENCES: Final = frozenset(
    {
        *(f"2.1 {field}" for field in ("success", "provider", "callId")),
        *(f"2.2 {field}" for field in CAMPAIGN_FIELDS),
        "2.2 sms_opted_out_excluded",
        "2.2 message_body appears as sms_message_body",
        "2.2 days-shaped is normalised",
        *(f"2.3 {field}" for field in RECIPIENT_FIELDS),
        *(f"2.4 {field}" for field in SETTINGS_FIELDS),
        *(f"2.5 {field}" for field in ("page", "page_size", "total")),
        *(f"3 {row}" for row in ("values", "ready", "draft", "nothing is sent")),
        *(f"3 rule {number}" for number in range(1, 5)),
        *(f"4.1 {part}" for part in ("queues", "agent_id", "to", "variables", "201", "poll")),
        *(f"4.2 {part}" for part in ("newest first", "no calling campaigns", "200", "echo and total")),
        *(f"4.2 {part}" for part in ("page", "page_size", "status", "search")),
        *(f"4.3 {field}" for field in CREATE_FIELDS),
        *(f"4.3 rule {number}" for number in range(1, 6)),
        "4.3 contacts in one request",
        "4.3 placeholders",
        "4.3 201",
        *(f"4.4 {part}" for part in ("only the fields to change", "unknown fields", "out of range", "200")),
        *(f"4.4 {part}" for part in ("footer on campaign messages", "no footer on POST /sms")),
        *(f"5 rule {number}" for number in range(1, 6)),
        *(f"7 {operation} {status}" for operation, statuses in STATUSES.items() for status in statuses),
        "7 one envelope",
        "7 code invalid_request",
        *(f"8 {limit}" for limit in LIMITS),
        *(f"row {row}" for row in ROWS),
    }
)
