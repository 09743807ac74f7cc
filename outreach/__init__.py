"""An engine for SMS campaigns and AI-voice calls, for many workspaces, over swappable storage and providers.

Everything that is public is named here; whatever else may change without notice. A name is imported when it is asked
for: who needs a few of them does not wait for all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from outreach.clock import Clock, SystemClock, to_text
    from outreach.config import PUBLIC_URL_VARIABLE, EngineConfig, SimulatorConfig
    from outreach.convert.answers import (
        write_call,
        write_call_created,
        write_campaign,
        write_campaign_created,
        write_message,
        write_settings,
    )
    from outreach.convert.campaigns import read_call_campaign, read_sms_campaign
    from outreach.convert.json_text import parse_json
    from outreach.convert.plain_bodies import read_plain_body
    from outreach.convert.requests import read_new_call, read_new_message, read_settings_change
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
    from outreach.explaining import explain
    from outreach.models.account import PROVIDERS, Account, CallbackRecord
    from outreach.models.business_hours import BusinessHours, Window
    from outreach.models.call import Call, NewCall
    from outreach.models.campaign import (
        Campaign,
        CampaignCreated,
        CampaignUpdate,
        CliGroupEntry,
        Counters,
        NewCallCampaign,
        NewSmsCampaign,
    )
    from outreach.models.carriers import CARRIERS, CarrierName, Channel
    from outreach.models.directory import Agent, Flow, FlowStep, Number, Trunk, VoicemailPolicy
    from outreach.models.dispatch import Dispatch, DispatchGroup, UnknownCount
    from outreach.models.events import (
        CallEnded,
        CampaignMoved,
        Event,
        MessageReceived,
        MessageReported,
        OptedIn,
        OptedOut,
        RecipientEnded,
    )
    from outreach.models.explanation import Explanation
    from outreach.models.failures import Failure, RecipientOutcome
    from outreach.models.holdup import Holdup
    from outreach.models.holidays import Holiday, HolidayCalendar
    from outreach.models.message import InboundMessage, Message, NewMessage
    from outreach.models.pages import Page
    from outreach.models.recipient import NewRecipient, PreparedRecipient, Recipient, RecipientGroup
    from outreach.models.settings import (
        CallSettings,
        CallSettingsChange,
        ReplySettings,
        ReplySettingsChange,
        SmsSettings,
        SmsSettingsChange,
    )
    from outreach.models.start_check import StartCheck
    from outreach.models.states import (
        CallStatus,
        CampaignStatus,
        DispatchState,
        MessageStatus,
        RecipientStatus,
        WorkspaceMode,
        WorkspaceStatus,
    )
    from outreach.models.status import DispatchedBy, Dispatching, PausedCampaign, ProviderWait, Status
    from outreach.models.trail import RULES, ContactHistory, Rule, TrailStep, What
    from outreach.models.unset import UNSET, Unset
    from outreach.models.unsubscribe import Unsubscribe
    from outreach.models.work import AuditEntry
    from outreach.models.workspace import ApiKey, CreatedKey, Workspace
    from outreach.operations.request_limits import Quota
    from outreach.operations.requests import Answer
    from outreach.operations.workspaces import WorkspaceChange
    from outreach.policy.holidays import holiday_parts, parse_holidays
    from outreach.policy.phones import mask
    from outreach.policy.reasons import PAUSES, describe
    from outreach.policy.replies import ReplyText
    from outreach.protocols.adapter import AccountCheck, CredentialField
    from outreach.protocols.dispatcher import DispatcherHealth, DispatcherState
    from outreach.services.accounts import AccountSummary
    from outreach.services.agents import AgentChange
    from outreach.services.events import EventStream
    from outreach.services.flows import FlowChange
    from outreach.services.numbers import NumberChange
    from outreach.services.once import KeyedRequest
    from outreach.services.preparing import prepare
    from outreach.services.readiness import Readiness
    from outreach.services.trunks import TrunkChange
    from outreach.services.unsubscribes import RegisterImport
    from outreach.storage.upkeep import (
        Backup,
        DatabaseCheck,
        Restore,
        backup_database,
        check_database,
        migrate_database,
        restore_database,
    )

__version__ = "0.1.0"

__all__ = [
    "CARRIERS",
    "PAUSES",
    "PROVIDERS",
    "PUBLIC_URL_VARIABLE",
    "RULES",
    "UNSET",
    "Account",
    "AccountCheck",
    "AccountMissing",
    "AccountSummary",
    "Agent",
    "AgentChange",
    "AgentInactive",
    "AgentNotOutbound",
    "Answer",
    "ApiKey",
    "AuditEntry",
    "Backup",
    "BusinessHours",
    "Call",
    "CallEnded",
    "CallInProgress",
    "CallSettings",
    "CallSettingsChange",
    "CallStatus",
    "CallbackRecord",
    "CallbackRejected",
    "Campaign",
    "CampaignCreated",
    "CampaignMoved",
    "CampaignStatus",
    "CampaignUpdate",
    "CannotStart",
    "CarrierName",
    "Channel",
    "CliGroupEntry",
    "Clock",
    "ConfigError",
    "Conflict",
    "ContactHistory",
    "Counters",
    "CreatedKey",
    "CredentialField",
    "DatabaseCheck",
    "DatabaseInUse",
    "DatabaseMissing",
    "DatabaseNewer",
    "DatabaseOlder",
    "DatabaseReplaced",
    "Dispatch",
    "DispatchGroup",
    "DispatchRefused",
    "DispatchState",
    "DispatchedBy",
    "DispatcherHealth",
    "DispatcherState",
    "Dispatching",
    "EngineConfig",
    "ErrorDetail",
    "Event",
    "EventStream",
    "Explanation",
    "Failure",
    "Flow",
    "FlowChange",
    "FlowStep",
    "Forbidden",
    "Holdup",
    "Holiday",
    "HolidayCalendar",
    "IllegalTransition",
    "InboundMessage",
    "InvalidRequest",
    "KeyedRequest",
    "LeaseLost",
    "Message",
    "MessageReceived",
    "MessageReported",
    "MessageStatus",
    "NewCall",
    "NewCallCampaign",
    "NewMessage",
    "NewRecipient",
    "NewSmsCampaign",
    "NotFound",
    "Number",
    "NumberChange",
    "OptedIn",
    "OptedOut",
    "Outreach",
    "OutreachError",
    "Page",
    "PausedCampaign",
    "PreparedRecipient",
    "ProviderWait",
    "Quota",
    "RateLimited",
    "Readiness",
    "Recipient",
    "RecipientEnded",
    "RecipientGroup",
    "RecipientOutcome",
    "RecipientStatus",
    "RecipientUnsubscribed",
    "RegisterImport",
    "ReplySettings",
    "ReplySettingsChange",
    "ReplyText",
    "RequestInProgress",
    "Restore",
    "Rule",
    "SimulatorConfig",
    "SmsCampaignsDisabled",
    "SmsSettings",
    "SmsSettingsChange",
    "StartCheck",
    "Status",
    "StorageBusy",
    "StorageError",
    "SystemClock",
    "TrailStep",
    "Trunk",
    "TrunkChange",
    "Unauthorized",
    "UnknownCount",
    "Unset",
    "Unsubscribe",
    "VoicemailPolicy",
    "What",
    "Window",
    "Workspace",
    "WorkspaceChange",
    "WorkspaceMode",
    "WorkspaceStatus",
    "WorkspaceUnavailable",
    "__version__",
    "backup_database",
    "check_database",
    "describe",
    "explain",
    "holiday_parts",
    "mask",
    "migrate_database",
    "parse_holidays",
    "parse_json",
    "prepare",
    "read_call_campaign",
    "read_new_call",
    "read_new_message",
    "read_plain_body",
    "read_settings_change",
    "read_sms_campaign",
    "restore_database",
    "to_text",
    "write_call",
    "write_call_created",
    "write_campaign",
    "write_campaign_created",
    "write_message",
    "write_settings",
]

_NAMES: Final = {
    "clock": (
        "Clock",
        "SystemClock",
        "to_text",
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
        "write_settings",
    ),
    "convert.campaigns": (
        "read_call_campaign",
        "read_sms_campaign",
    ),
    "convert.json_text": ("parse_json",),
    "convert.plain_bodies": ("read_plain_body",),
    "convert.requests": (
        "read_new_call",
        "read_new_message",
        "read_settings_change",
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
        "Window",
    ),
    "models.call": (
        "Call",
        "NewCall",
    ),
    "models.campaign": (
        "Campaign",
        "CampaignCreated",
        "CampaignUpdate",
        "CliGroupEntry",
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
        "DispatchGroup",
        "UnknownCount",
    ),
    "models.events": (
        "CallEnded",
        "CampaignMoved",
        "Event",
        "MessageReceived",
        "MessageReported",
        "OptedIn",
        "OptedOut",
        "RecipientEnded",
    ),
    "models.explanation": ("Explanation",),
    "models.failures": (
        "Failure",
        "RecipientOutcome",
    ),
    "models.holdup": ("Holdup",),
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
        "RecipientGroup",
    ),
    "models.settings": (
        "CallSettings",
        "CallSettingsChange",
        "ReplySettings",
        "ReplySettingsChange",
        "SmsSettings",
        "SmsSettingsChange",
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
        "Dispatching",
        "PausedCampaign",
        "ProviderWait",
        "Status",
    ),
    "models.trail": (
        "RULES",
        "ContactHistory",
        "Rule",
        "TrailStep",
        "What",
    ),
    "models.unset": (
        "UNSET",
        "Unset",
    ),
    "models.unsubscribe": ("Unsubscribe",),
    "models.work": ("AuditEntry",),
    "models.workspace": (
        "ApiKey",
        "CreatedKey",
        "Workspace",
    ),
    "operations.request_limits": ("Quota",),
    "operations.requests": ("Answer",),
    "operations.workspaces": ("WorkspaceChange",),
    "policy.holidays": (
        "holiday_parts",
        "parse_holidays",
    ),
    "policy.phones": ("mask",),
    "policy.reasons": (
        "PAUSES",
        "describe",
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
    "services.agents": ("AgentChange",),
    "services.events": ("EventStream",),
    "services.flows": ("FlowChange",),
    "services.numbers": ("NumberChange",),
    "services.once": ("KeyedRequest",),
    "services.preparing": ("prepare",),
    "services.readiness": ("Readiness",),
    "services.trunks": ("TrunkChange",),
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
