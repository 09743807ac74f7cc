"""An engine for SMS campaigns and AI-voice calls, for many workspaces, over swappable storage and providers.

Everything that is public is named here; whatever else may change without notice.
"""

from __future__ import annotations

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
    DatabaseMissing,
    DatabaseNewer,
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
from outreach.models.dispatch import Dispatch, DispatchGroup
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
from outreach.models.trail import RULES, ContactHistory, Rule, TrailStep, What
from outreach.models.unset import UNSET, Unset
from outreach.models.unsubscribe import Unsubscribe
from outreach.models.work import AuditEntry
from outreach.models.workspace import ApiKey, CreatedKey, Workspace
from outreach.operations.requests import Answer, Quota
from outreach.operations.workspaces import WorkspaceChange
from outreach.policy.holidays import parse_holidays
from outreach.policy.phones import mask
from outreach.policy.reasons import PAUSES, describe
from outreach.policy.replies import ReplyText
from outreach.protocols.adapter import AccountCheck, CredentialField
from outreach.protocols.dispatcher import DispatcherHealth
from outreach.services.accounts import AccountSummary
from outreach.services.agents import AgentChange
from outreach.services.events import EventStream
from outreach.services.flows import FlowChange
from outreach.services.numbers import NumberChange
from outreach.services.preparing import prepare
from outreach.services.requests import Attempt, Claim
from outreach.services.trunks import TrunkChange
from outreach.services.unsubscribes import RegisterImport

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
    "Attempt",
    "AuditEntry",
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
    "Claim",
    "CliGroupEntry",
    "Clock",
    "ConfigError",
    "Conflict",
    "ContactHistory",
    "Counters",
    "CreatedKey",
    "CredentialField",
    "DatabaseMissing",
    "DatabaseNewer",
    "Dispatch",
    "DispatchGroup",
    "DispatchRefused",
    "DispatchState",
    "DispatcherHealth",
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
    "PreparedRecipient",
    "Quota",
    "RateLimited",
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
    "Rule",
    "SimulatorConfig",
    "SmsCampaignsDisabled",
    "SmsSettings",
    "SmsSettingsChange",
    "StartCheck",
    "StorageError",
    "SystemClock",
    "TrailStep",
    "Trunk",
    "TrunkChange",
    "Unauthorized",
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
    "describe",
    "explain",
    "mask",
    "parse_holidays",
    "parse_json",
    "prepare",
    "read_call_campaign",
    "read_new_call",
    "read_new_message",
    "read_settings_change",
    "read_sms_campaign",
    "to_text",
    "write_call",
    "write_call_created",
    "write_campaign",
    "write_campaign_created",
    "write_message",
    "write_settings",
]
