"""An engine for SMS campaigns and AI-voice calls, for many workspaces, over swappable storage and providers.

Everything that is public is named here; whatever else may change without notice. A name is imported when it is asked
for: who needs a few of them does not wait for all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from outreach.clock import Clock, SystemClock, format_timestamp
    from outreach.config import PUBLIC_URL_VARIABLE, EngineConfig, SimulatorConfig
    from outreach.convert.campaigns import read_call_campaign, read_sms_campaign
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
    from outreach.engine import Outreach
    from outreach.errors import (
        AccountMissing,
        AgentInactive,
        AgentNotOutbound,
        CallbackRejected,
        CallInProgress,
        CannotStart,
        ConfigError,
        Conflict,
        DatabaseInUse,
        DatabaseMissing,
        DatabaseNewer,
        DatabaseOlder,
        DatabaseReplaced,
        DispatchRefused,
        ErrorDetail,
        Forbidden,
        IllegalTransition,
        InvalidRequest,
        LeaseLost,
        NotFound,
        OutreachError,
        RateLimited,
        RecipientUnsubscribed,
        RequestInProgress,
        SmsCampaignsDisabled,
        StorageBusy,
        StorageError,
        Unauthorized,
        WorkspaceUnavailable,
    )
    from outreach.models.account import PROVIDERS, Account, AccountSummary, CallbackRecord
    from outreach.models.base import CARRIERS, UNSET, CarrierName, Channel, Page, Unset
    from outreach.models.call import Call, NewCall
    from outreach.models.campaign import (
        CallerIdAllocation,
        Campaign,
        CampaignCreated,
        CampaignUpdate,
        Counters,
        NewCallCampaign,
        NewSmsCampaign,
    )
    from outreach.models.database import Backup, DatabaseCheck, Restore
    from outreach.models.dispatch import Dispatch, DispatchCount, UnknownDispatchCount
    from outreach.models.events import (
        CallEnded,
        CampaignStatusChanged,
        Event,
        MessageReceived,
        MessageStatusChanged,
        OptedIn,
        OptedOut,
        RecipientEnded,
    )
    from outreach.models.failures import Explanation, ProviderFailure, RecipientOutcome
    from outreach.models.hours import BusinessHours, Holiday, HolidayCalendar, TimeWindow
    from outreach.models.http import IdempotentRequest, RateLimitState, StoredAnswer
    from outreach.models.message import InboundMessage, Message, NewMessage
    from outreach.models.recipient import NewRecipient, PreparedRecipient, Recipient, RecipientCount
    from outreach.models.resources import (
        Agent,
        AgentUpdate,
        Flow,
        FlowStep,
        FlowUpdate,
        Number,
        NumberUpdate,
        Trunk,
        TrunkUpdate,
        VoicemailPolicy,
    )
    from outreach.models.settings import (
        CallSettings,
        CallSettingsUpdate,
        ReplySettings,
        ReplySettingsUpdate,
        ReplyText,
        SmsSettings,
        SmsSettingsUpdate,
    )
    from outreach.models.states import (
        CallStatus,
        CampaignStatus,
        DispatchState,
        MessageStatus,
        RecipientStatus,
        WorkspaceMode,
        WorkspaceStatus,
    )
    from outreach.models.status import (
        CampaignBlocker,
        DispatchedBy,
        DispatchOverview,
        EngineStatus,
        PausedCampaign,
        Readiness,
        StartCheck,
        ThrottledProvider,
    )
    from outreach.models.trail import TRAIL_RULES, ContactHistory, TrailRule, TrailStep, TrailStepKind
    from outreach.models.unsubscribe import RegisterImport, Unsubscribe
    from outreach.models.work import AuditEntry
    from outreach.models.workspace import ApiKey, CreatedApiKey, Workspace, WorkspaceUpdate
    from outreach.policy.explanations import PAUSE_REASONS, describe_reason
    from outreach.policy.holidays import holiday_parts, parse_holidays
    from outreach.policy.phones import mask_phone
    from outreach.protocols.adapter import AccountCheck, CredentialField
    from outreach.protocols.dispatcher import DispatcherHealth, DispatcherState
    from outreach.providers.registry import explain
    from outreach.services.contacts import prepare_recipient
    from outreach.services.events import EventStream
    from outreach.storage.maintenance import (
        backup_database,
        check_database,
        migrate_database,
        restore_database,
    )

__version__ = "0.1.0"

__all__ = [
    "CARRIERS",
    "PAUSE_REASONS",
    "PROVIDERS",
    "PUBLIC_URL_VARIABLE",
    "TRAIL_RULES",
    "UNSET",
    "Account",
    "AccountCheck",
    "AccountMissing",
    "AccountSummary",
    "Agent",
    "AgentUpdate",
    "AgentInactive",
    "AgentNotOutbound",
    "StoredAnswer",
    "ApiKey",
    "AuditEntry",
    "Backup",
    "BusinessHours",
    "Call",
    "CallEnded",
    "CallInProgress",
    "CallSettings",
    "CallSettingsUpdate",
    "CallStatus",
    "CallbackRecord",
    "CallbackRejected",
    "Campaign",
    "CampaignCreated",
    "CampaignStatusChanged",
    "CampaignStatus",
    "CampaignUpdate",
    "CannotStart",
    "CarrierName",
    "Channel",
    "CallerIdAllocation",
    "Clock",
    "ConfigError",
    "Conflict",
    "ContactHistory",
    "Counters",
    "CreatedApiKey",
    "CredentialField",
    "DatabaseCheck",
    "DatabaseInUse",
    "DatabaseMissing",
    "DatabaseNewer",
    "DatabaseOlder",
    "DatabaseReplaced",
    "Dispatch",
    "DispatchCount",
    "DispatchRefused",
    "DispatchState",
    "DispatchedBy",
    "DispatcherHealth",
    "DispatcherState",
    "DispatchOverview",
    "EngineConfig",
    "ErrorDetail",
    "Event",
    "EventStream",
    "Explanation",
    "ProviderFailure",
    "Flow",
    "FlowUpdate",
    "FlowStep",
    "Forbidden",
    "CampaignBlocker",
    "Holiday",
    "HolidayCalendar",
    "IllegalTransition",
    "InboundMessage",
    "InvalidRequest",
    "IdempotentRequest",
    "LeaseLost",
    "Message",
    "MessageReceived",
    "MessageStatusChanged",
    "MessageStatus",
    "NewCall",
    "NewCallCampaign",
    "NewMessage",
    "NewRecipient",
    "NewSmsCampaign",
    "NotFound",
    "Number",
    "NumberUpdate",
    "OptedIn",
    "OptedOut",
    "Outreach",
    "OutreachError",
    "Page",
    "PausedCampaign",
    "PreparedRecipient",
    "ThrottledProvider",
    "RateLimitState",
    "RateLimited",
    "Readiness",
    "Recipient",
    "RecipientEnded",
    "RecipientCount",
    "RecipientOutcome",
    "RecipientStatus",
    "RecipientUnsubscribed",
    "RegisterImport",
    "ReplySettings",
    "ReplySettingsUpdate",
    "ReplyText",
    "RequestInProgress",
    "Restore",
    "TrailRule",
    "SimulatorConfig",
    "SmsCampaignsDisabled",
    "SmsSettings",
    "SmsSettingsUpdate",
    "StartCheck",
    "EngineStatus",
    "StorageBusy",
    "StorageError",
    "SystemClock",
    "TrailStep",
    "Trunk",
    "TrunkUpdate",
    "Unauthorized",
    "UnknownDispatchCount",
    "Unset",
    "Unsubscribe",
    "VoicemailPolicy",
    "TrailStepKind",
    "TimeWindow",
    "Workspace",
    "WorkspaceUpdate",
    "WorkspaceMode",
    "WorkspaceStatus",
    "WorkspaceUnavailable",
    "__version__",
    "backup_database",
    "check_database",
    "describe_reason",
    "explain",
    "holiday_parts",
    "mask_phone",
    "migrate_database",
    "parse_holidays",
    "parse_json",
    "prepare_recipient",
    "read_call_campaign",
    "read_new_call",
    "read_new_message",
    "read_simple_body",
    "read_sms_settings_update",
    "read_sms_campaign",
    "restore_database",
    "format_timestamp",
    "write_call",
    "write_call_created",
    "write_campaign",
    "write_campaign_created",
    "write_message",
    "write_sms_settings",
]

_NAMES: Final = {
    "clock": (
        "Clock",
        "SystemClock",
        "format_timestamp",
    ),
    "config": (
        "PUBLIC_URL_VARIABLE",
        "EngineConfig",
        "SimulatorConfig",
    ),
    "convert.answers": (
        "write_call",
        "write_call_created",
        "write_campaign",
        "write_campaign_created",
        "write_message",
        "write_sms_settings",
    ),
    "convert.campaigns": (
        "read_call_campaign",
        "read_sms_campaign",
    ),
    "convert.json_text": ("parse_json",),
    "convert.plain_bodies": ("read_simple_body",),
    "convert.requests": (
        "read_new_call",
        "read_new_message",
        "read_sms_settings_update",
    ),
    "engine": ("Outreach",),
    "errors": (
        "AccountMissing",
        "AgentInactive",
        "AgentNotOutbound",
        "CallInProgress",
        "CallbackRejected",
        "CannotStart",
        "ConfigError",
        "Conflict",
        "DatabaseInUse",
        "DatabaseMissing",
        "DatabaseNewer",
        "DatabaseOlder",
        "DatabaseReplaced",
        "DispatchRefused",
        "ErrorDetail",
        "Forbidden",
        "IllegalTransition",
        "InvalidRequest",
        "LeaseLost",
        "NotFound",
        "OutreachError",
        "RateLimited",
        "RecipientUnsubscribed",
        "RequestInProgress",
        "SmsCampaignsDisabled",
        "StorageBusy",
        "StorageError",
        "Unauthorized",
        "WorkspaceUnavailable",
    ),
    "explaining": ("explain",),
    "models.account": (
        "PROVIDERS",
        "Account",
        "CallbackRecord",
    ),
    "models.business_hours": (
        "BusinessHours",
        "TimeWindow",
    ),
    "models.call": (
        "Call",
        "NewCall",
    ),
    "models.campaign": (
        "Campaign",
        "CampaignCreated",
        "CampaignUpdate",
        "CallerIdAllocation",
        "Counters",
        "NewCallCampaign",
        "NewSmsCampaign",
    ),
    "models.carriers": (
        "CARRIERS",
        "CarrierName",
        "Channel",
    ),
    "models.directory": (
        "Agent",
        "Flow",
        "FlowStep",
        "Number",
        "Trunk",
        "VoicemailPolicy",
    ),
    "models.dispatch": (
        "Dispatch",
        "DispatchCount",
        "UnknownDispatchCount",
    ),
    "models.events": (
        "CallEnded",
        "CampaignStatusChanged",
        "Event",
        "MessageReceived",
        "MessageStatusChanged",
        "OptedIn",
        "OptedOut",
        "RecipientEnded",
    ),
    "models.explanation": ("Explanation",),
    "models.failures": (
        "ProviderFailure",
        "RecipientOutcome",
    ),
    "models.holdup": ("CampaignBlocker",),
    "models.holidays": (
        "Holiday",
        "HolidayCalendar",
    ),
    "models.message": (
        "InboundMessage",
        "Message",
        "NewMessage",
    ),
    "models.pages": ("Page",),
    "models.recipient": (
        "NewRecipient",
        "PreparedRecipient",
        "Recipient",
        "RecipientCount",
    ),
    "models.settings": (
        "CallSettings",
        "CallSettingsUpdate",
        "ReplySettings",
        "ReplySettingsUpdate",
        "SmsSettings",
        "SmsSettingsUpdate",
    ),
    "models.start_check": ("StartCheck",),
    "models.states": (
        "CallStatus",
        "CampaignStatus",
        "DispatchState",
        "MessageStatus",
        "RecipientStatus",
        "WorkspaceMode",
        "WorkspaceStatus",
    ),
    "models.status": (
        "DispatchedBy",
        "DispatchOverview",
        "PausedCampaign",
        "ThrottledProvider",
        "EngineStatus",
    ),
    "models.trail": (
        "TRAIL_RULES",
        "ContactHistory",
        "TrailRule",
        "TrailStep",
        "TrailStepKind",
    ),
    "models.unset": (
        "UNSET",
        "Unset",
    ),
    "models.unsubscribe": ("Unsubscribe",),
    "models.work": ("AuditEntry",),
    "models.workspace": (
        "ApiKey",
        "CreatedApiKey",
        "Workspace",
    ),
    "operations.request_limits": ("RateLimitState",),
    "operations.requests": ("StoredAnswer",),
    "operations.workspaces": ("WorkspaceUpdate",),
    "policy.holidays": (
        "holiday_parts",
        "parse_holidays",
    ),
    "policy.phones": ("mask_phone",),
    "policy.reasons": (
        "PAUSE_REASONS",
        "describe_reason",
    ),
    "policy.replies": ("ReplyText",),
    "protocols.adapter": (
        "AccountCheck",
        "CredentialField",
    ),
    "protocols.dispatcher": (
        "DispatcherHealth",
        "DispatcherState",
    ),
    "services.accounts": ("AccountSummary",),
    "services.agents": ("AgentUpdate",),
    "services.events": ("EventStream",),
    "services.flows": ("FlowUpdate",),
    "services.numbers": ("NumberUpdate",),
    "services.once": ("IdempotentRequest",),
    "services.preparing": ("prepare_recipient",),
    "services.readiness": ("Readiness",),
    "services.trunks": ("TrunkUpdate",),
    "services.unsubscribes": ("RegisterImport",),
    "storage.upkeep": (
        "Backup",
        "DatabaseCheck",
        "Restore",
        "backup_database",
        "check_database",
        "migrate_database",
        "restore_database",
    ),
}
"""Where each name is, as the imports above tell type checkers."""

_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names}

# Hidden from type checkers, for which it would make every name one of this package.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name that is asked for the first time."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        """Return the names that are there already, and those that can be."""
        return sorted({*globals(), *__all__})
