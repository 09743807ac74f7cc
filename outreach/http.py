"""Reads and writes the bodies of the HTTP interface. A public module, for endpoints of your own.

`IdempotentRequest` is here too: a service's method that gets one as its `idempotency_key` stores the HTTP response with
what it makes (docs/embedding.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.core.lazy_names import imported_when_used

if TYPE_CHECKING:
    from outreach.core.clock import format_timestamp as format_timestamp
    from outreach.models.base import JsonPage as JsonPage
    from outreach.models.work import (
        MAX_IDEMPOTENCY_DAYS as MAX_IDEMPOTENCY_DAYS,
        AnswerReplayed as AnswerReplayed,
        IdempotencyKey as IdempotencyKey,
        IdempotentRequest as IdempotentRequest,
        LastingKey as LastingKey,
        RateLimitState as RateLimitState,
        StoredAnswer as StoredAnswer,
    )
    from outreach.serialization.business_hours import parse_holidays as parse_holidays
    from outreach.serialization.campaigns import (
        in_json_names as in_json_names,
        read_audience as read_audience,
        read_call_campaign as read_call_campaign,
        read_campaign_of_upload as read_campaign_of_upload,
        read_leave_out as read_leave_out,
        read_metadata as read_metadata,
        read_new_call as read_new_call,
        read_new_message as read_new_message,
        read_sms_campaign as read_sms_campaign,
        read_sms_settings_update as read_sms_settings_update,
        write_call as write_call,
        write_call_created as write_call_created,
        write_call_details as write_call_details,
        write_campaign as write_campaign,
        write_campaign_created as write_campaign_created,
        write_managed_call as write_managed_call,
        write_message as write_message,
        write_sms_settings as write_sms_settings,
    )
    from outreach.serialization.documents import (
        document_of as document_of,
        to_json as to_json,
        write_blocker as write_blocker,
    )
    from outreach.serialization.exports import EXPORT_CONTENT_TYPES as EXPORT_CONTENT_TYPES
    from outreach.serialization.exports.rows import write_exported_contact as write_exported_contact
    from outreach.serialization.json_parsing import parse_json as parse_json
    from outreach.serialization.json_reports import write_campaign_report as write_campaign_report
    from outreach.serialization.manage.campaigns import (
        EVENT_TYPES as EVENT_TYPES,
        in_update_names as in_update_names,
        read_campaign_start as read_campaign_start,
        read_campaign_update as read_campaign_update,
        write_event as write_event,
        write_history as write_history,
        write_managed_campaign as write_managed_campaign,
        write_recipient as write_recipient,
        write_recipient_count as write_recipient_count,
    )
    from outreach.serialization.manage.copies import (
        CampaignClone as CampaignClone,
        read_campaign_clone as read_campaign_clone,
        read_new_follow_up as read_new_follow_up,
        read_new_test_message as read_new_test_message,
        write_campaign_copy as write_campaign_copy,
        write_follow_up as write_follow_up,
    )
    from outreach.serialization.manage.resources import (
        FLOW_BODIES as FLOW_BODIES,
        DispatchDecision as DispatchDecision,
        ResourceBodies as ResourceBodies,
        number_bodies as number_bodies,
        read_call_settings_update as read_call_settings_update,
        read_call_verdict as read_call_verdict,
        read_decision as read_decision,
        read_dispatch_decision as read_dispatch_decision,
        read_erasure as read_erasure,
        read_narrower_hours as read_narrower_hours,
        read_new_unsubscribes as read_new_unsubscribes,
        read_recipient_skip as read_recipient_skip,
        read_reply_settings_update as read_reply_settings_update,
        resource_bodies as resource_bodies,
        write_account as write_account,
        write_contact_hours as write_contact_hours,
        write_history_item as write_history_item,
        write_inbound_message as write_inbound_message,
        write_managed_sms as write_managed_sms,
        write_reply_settings as write_reply_settings,
        write_settings as write_settings,
        write_sms as write_sms,
        write_unsubscribe as write_unsubscribe,
    )
    from outreach.serialization.manage.schedules import (
        SCHEDULE_BODIES as SCHEDULE_BODIES,
        write_occurrence as write_occurrence,
    )
    from outreach.serialization.manage.simulation import read_new_simulation as read_new_simulation
    from outreach.serialization.manage.uploads import (
        read_new_upload as read_new_upload,
        write_upload as write_upload,
    )
    from outreach.serialization.manage.webhooks import (
        WEBHOOK_BODIES as WEBHOOK_BODIES,
        read_webhook_replay as read_webhook_replay,
        read_webhook_rotation as read_webhook_rotation,
        write_webhook_attempt as write_webhook_attempt,
        write_webhook_progress as write_webhook_progress,
    )
    from outreach.serialization.planning import (
        read_price_table as read_price_table,
        write_price_table as write_price_table,
    )


if not TYPE_CHECKING:  # which would accept any name otherwise
    __getattr__, __dir__, __all__ = imported_when_used(
        globals(),
        {
            "core.clock": "format_timestamp",
            "models.base": "JsonPage",
            "models.work": (
                "MAX_IDEMPOTENCY_DAYS AnswerReplayed IdempotencyKey IdempotentRequest LastingKey RateLimitState "
                "StoredAnswer"
            ),
            "serialization.business_hours": "parse_holidays",
            "serialization.campaigns": (
                "in_json_names read_audience read_call_campaign read_campaign_of_upload read_leave_out read_metadata "
                "read_new_call read_new_message read_sms_campaign read_sms_settings_update write_call "
                "write_call_created write_call_details write_campaign write_campaign_created write_managed_call "
                "write_message write_sms_settings"
            ),
            "serialization.documents": "document_of to_json write_blocker",
            "serialization.exports": "EXPORT_CONTENT_TYPES",
            "serialization.exports.rows": "write_exported_contact",
            "serialization.json_parsing": "parse_json",
            "serialization.json_reports": "write_campaign_report",
            "serialization.manage.campaigns": (
                "EVENT_TYPES in_update_names read_campaign_start read_campaign_update write_event write_history "
                "write_managed_campaign write_recipient write_recipient_count"
            ),
            "serialization.manage.copies": (
                "CampaignClone read_campaign_clone read_new_follow_up read_new_test_message write_campaign_copy "
                "write_follow_up"
            ),
            "serialization.manage.resources": (
                "FLOW_BODIES DispatchDecision ResourceBodies number_bodies read_call_settings_update "
                "read_call_verdict read_decision read_dispatch_decision read_erasure read_narrower_hours "
                "read_new_unsubscribes read_recipient_skip read_reply_settings_update resource_bodies write_account "
                "write_contact_hours write_history_item write_inbound_message write_managed_sms write_reply_settings "
                "write_settings write_sms write_unsubscribe"
            ),
            "serialization.manage.schedules": "SCHEDULE_BODIES write_occurrence",
            "serialization.manage.simulation": "read_new_simulation",
            "serialization.manage.uploads": "read_new_upload write_upload",
            "serialization.manage.webhooks": (
                "WEBHOOK_BODIES read_webhook_replay read_webhook_rotation write_webhook_attempt write_webhook_progress"
            ),
            "serialization.planning": "read_price_table write_price_table",
        },
    )
