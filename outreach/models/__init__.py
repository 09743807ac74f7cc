"""The data of the engine: what its services take and return. A public module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.core.lazy_names import imported_when_used
from outreach.models import resources
from outreach.models.resources import *  # noqa: F403 - its `__all__` says what is public there

if TYPE_CHECKING:
    from outreach.models.account import (
        PROVIDERS,
        Account,
        CallbackCheck,
        CallbackFault,
        CallbackRecord,
        Misdirection,
        Provider,
        ProviderKind,
        RekeyResult,
    )
    from outreach.models.approval import Approval, ApprovalReason, StartApproval, StartFigures
    from outreach.models.archive import PurgeResult, RetentionResult
    from outreach.models.audience import AudienceCounts, CampaignOverlap, LeaveOut
    from outreach.models.base import (
        CARRIERS,
        UNSET,
        CarrierName,
        Channel,
        CliMode,
        Page,
        ScheduleType,
        SmsMessageSource,
        SmsMode,
        Unset,
    )
    from outreach.models.call import Call, CallOutcome, CallOutcomeFilter, CallVerdict, NewCall, NewCallOutcome
    from outreach.models.campaign import (
        AgentSnapshot,
        CallerIdAllocation,
        Campaign,
        CampaignCreated,
        CampaignFilters,
        CampaignUpdate,
        Counters,
        FollowUpCreated,
        FollowUpExclusion,
        NewCallCampaign,
        NewFollowUp,
        NewSmsCampaign,
        PauseReason,
        RecipientsAdded,
    )
    from outreach.models.campaign_report import (
        CallFigures,
        CampaignReport,
        ExportedContact,
        ExportedReply,
        ExportFormat,
        FailureCount,
        MessageFigures,
        ResultCount,
        SenderFigures,
        TimeBucket,
    )
    from outreach.models.clock import AudienceClock, ClockHour, ClosedBy
    from outreach.models.database import CampaignGroup, EngineFigures
    from outreach.models.diagnosis import DatabaseCode, Diagnosis, EngineCode
    from outreach.models.dispatch import (
        DecisionResult,
        Dispatch,
        DispatchCount,
        DispatchFilter,
        DispatchLookUp,
        FailureClass,
        OperatorDecision,
        UnknownDispatchCount,
    )
    from outreach.models.fields import Bounds, Length, bounds_of
    from outreach.models.forecast import (
        BindingRule,
        Forecast,
        ForecastAssumptions,
        ForecastHour,
        ForecastPhase,
        ForecastReason,
        KeptForecast,
    )
    from outreach.models.health import DispatcherHealth, DispatcherState
    from outreach.models.history import HistoryItem, HistoryKind
    from outreach.models.hours import DAYS, BusinessHours, Holiday, HolidayCalendar, PlaceHours, TimeWindow
    from outreach.models.live import CampaignNow, CampaignProgress, ProgressPoint
    from outreach.models.message import InboundMessage, Keyword, Message, NewMessage, NewTestMessage, ReplyPurpose
    from outreach.models.preflight import (
        CharacterReplacement,
        ContactExample,
        ContactPreview,
        CostlyCharacter,
        Encodings,
        HeldBack,
        LeftOut,
        LeftOutRule,
        PlaceholderProblem,
        Preflight,
        RenderedMessage,
        ReplacedText,
        SegmentShare,
    )
    from outreach.models.prices import Cost, CostLine, Price, PriceKind, PriceTable, ProviderCost
    from outreach.models.recipient import NewRecipient, PreparedRecipient, Recipient, RecipientCount, RecipientSkip
    from outreach.models.recovery import ContactedMeanwhile, ListedContacts
    from outreach.models.reports import Explanation, ProviderFailure, RecipientOutcome
    from outreach.models.settings import (
        CallSettings,
        CallSettingsUpdate,
        ReplySettings,
        ReplySettingsUpdate,
        ReplyText,
        SmsSettings,
        SmsSettingsUpdate,
    )
    from outreach.models.simulation import NewSimulation, SimulatedKind, Simulation
    from outreach.models.states import (
        CallStatus,
        CampaignAction,
        CampaignStatus,
        DispatchState,
        MessageStatus,
        RecipientStatus,
        WorkspaceMode,
        WorkspaceStatus,
    )
    from outreach.models.status import (
        AccountInTrouble,
        DiskUse,
        DispatchedBy,
        DispatchOverview,
        EngineStatus,
        LiveWorker,
        PausedCampaign,
        Readiness,
        RunningCampaign,
        SilentAccount,
        StartCheck,
        ThrottledProvider,
    )
    from outreach.models.text_warning import TextWarning
    from outreach.models.trail import ContactHistory, HeldBackRule, TrailRule, TrailStep, TrailStepKind, ZoneSource
    from outreach.models.unreachable import UnreachableNumber
    from outreach.models.unsubscribe import (
        NewUnsubscribes,
        Unsubscribe,
        UnsubscribeImport,
        UnsubscribeScope,
        UnsubscribeUndo,
    )
    from outreach.models.upload import MAX_CHUNK_BYTES, MAX_UPLOAD_BYTES, NewUpload, Upload
    from outreach.models.user import (
        ROLES,
        CreatedInvitation,
        Invitation,
        InvitationKind,
        Member,
        NewUser,
        Role,
        SecondFactor,
        SecondFactorSecret,
        Session,
        SetUp,
        SignedIn,
        User,
        UserUpdate,
        Visit,
    )
    from outreach.models.work import AuditEntry
    from outreach.models.workspace import (
        API_SCOPES,
        DEFAULT_SCOPES,
        ApiAccess,
        ApiKey,
        ApiScope,
        CreatedApiKey,
        NewWorkspace,
        Workspace,
        WorkspaceUpdate,
    )

__all__ = [
    "API_SCOPES",
    "CARRIERS",
    "DAYS",
    "DEFAULT_SCOPES",
    "MAX_CHUNK_BYTES",
    "MAX_UPLOAD_BYTES",
    "PROVIDERS",
    "ROLES",
    "UNSET",
    "Account",
    "AccountInTrouble",
    "AgentSnapshot",
    "ApiAccess",
    "ApiKey",
    "ApiScope",
    "Approval",
    "ApprovalReason",
    "AudienceClock",
    "AudienceCounts",
    "AuditEntry",
    "BindingRule",
    "Bounds",
    "BusinessHours",
    "Call",
    "CallFigures",
    "CallOutcome",
    "CallOutcomeFilter",
    "CallSettings",
    "CallSettingsUpdate",
    "CallStatus",
    "CallVerdict",
    "CallbackCheck",
    "CallbackFault",
    "CallbackRecord",
    "CallerIdAllocation",
    "Campaign",
    "CampaignAction",
    "CampaignCreated",
    "CampaignFilters",
    "CampaignGroup",
    "CampaignNow",
    "CampaignOverlap",
    "CampaignProgress",
    "CampaignReport",
    "CampaignStatus",
    "CampaignUpdate",
    "CarrierName",
    "Channel",
    "CharacterReplacement",
    "CliMode",
    "ClockHour",
    "ClosedBy",
    "ContactExample",
    "ContactHistory",
    "ContactPreview",
    "ContactedMeanwhile",
    "Cost",
    "CostLine",
    "CostlyCharacter",
    "Counters",
    "CreatedApiKey",
    "CreatedInvitation",
    "DatabaseCode",
    "DecisionResult",
    "Diagnosis",
    "DiskUse",
    "Dispatch",
    "DispatchCount",
    "DispatchFilter",
    "DispatchLookUp",
    "DispatchOverview",
    "DispatchState",
    "DispatchedBy",
    "DispatcherHealth",
    "DispatcherState",
    "Encodings",
    "EngineCode",
    "EngineFigures",
    "EngineStatus",
    "Explanation",
    "ExportFormat",
    "ExportedContact",
    "ExportedReply",
    "FailureClass",
    "FailureCount",
    "FollowUpCreated",
    "FollowUpExclusion",
    "Forecast",
    "ForecastAssumptions",
    "ForecastHour",
    "ForecastPhase",
    "ForecastReason",
    "HeldBack",
    "HeldBackRule",
    "HistoryItem",
    "HistoryKind",
    "Holiday",
    "HolidayCalendar",
    "InboundMessage",
    "Invitation",
    "InvitationKind",
    "KeptForecast",
    "Keyword",
    "LeaveOut",
    "LeftOut",
    "LeftOutRule",
    "Length",
    "ListedContacts",
    "LiveWorker",
    "Member",
    "Message",
    "MessageFigures",
    "MessageStatus",
    "Misdirection",
    "NewCall",
    "NewCallCampaign",
    "NewCallOutcome",
    "NewFollowUp",
    "NewMessage",
    "NewRecipient",
    "NewSimulation",
    "NewSmsCampaign",
    "NewTestMessage",
    "NewUnsubscribes",
    "NewUpload",
    "NewUser",
    "NewWorkspace",
    "OperatorDecision",
    "Page",
    "PauseReason",
    "PausedCampaign",
    "PlaceHours",
    "PlaceholderProblem",
    "Preflight",
    "PreparedRecipient",
    "Price",
    "PriceKind",
    "PriceTable",
    "ProgressPoint",
    "Provider",
    "ProviderCost",
    "ProviderFailure",
    "ProviderKind",
    "PurgeResult",
    "Readiness",
    "Recipient",
    "RecipientCount",
    "RecipientOutcome",
    "RecipientSkip",
    "RecipientStatus",
    "RecipientsAdded",
    "RekeyResult",
    "RenderedMessage",
    "ReplacedText",
    "ReplyPurpose",
    "ReplySettings",
    "ReplySettingsUpdate",
    "ReplyText",
    "ResultCount",
    "RetentionResult",
    "Role",
    "RunningCampaign",
    "ScheduleType",
    "SecondFactor",
    "SecondFactorSecret",
    "SegmentShare",
    "SenderFigures",
    "Session",
    "SetUp",
    "SignedIn",
    "SilentAccount",
    "SimulatedKind",
    "Simulation",
    "SmsMessageSource",
    "SmsMode",
    "SmsSettings",
    "SmsSettingsUpdate",
    "StartApproval",
    "StartCheck",
    "StartFigures",
    "TextWarning",
    "ThrottledProvider",
    "TimeBucket",
    "TimeWindow",
    "TrailRule",
    "TrailStep",
    "TrailStepKind",
    "UnknownDispatchCount",
    "UnreachableNumber",
    "Unset",
    "Unsubscribe",
    "UnsubscribeImport",
    "UnsubscribeScope",
    "UnsubscribeUndo",
    "Upload",
    "User",
    "UserUpdate",
    "Visit",
    "Workspace",
    "WorkspaceMode",
    "WorkspaceStatus",
    "WorkspaceUpdate",
    "ZoneSource",
    "bounds_of",
]
__all__ += resources.__all__

if not TYPE_CHECKING:  # which would accept any name otherwise
    __getattr__, __dir__ = imported_when_used(
        globals(),
        {
            "models.account": (
                "PROVIDERS Account CallbackCheck CallbackFault CallbackRecord Misdirection Provider ProviderKind "
                "RekeyResult"
            ),
            "models.approval": "Approval ApprovalReason StartApproval StartFigures",
            "models.archive": "PurgeResult RetentionResult",
            "models.audience": "AudienceCounts CampaignOverlap LeaveOut",
            "models.base": (
                "CARRIERS UNSET CarrierName Channel CliMode Page ScheduleType SmsMessageSource SmsMode Unset"
            ),
            "models.call": "Call CallOutcome CallOutcomeFilter CallVerdict NewCall NewCallOutcome",
            "models.campaign": (
                "AgentSnapshot CallerIdAllocation Campaign CampaignCreated CampaignFilters CampaignUpdate Counters "
                "FollowUpCreated FollowUpExclusion NewCallCampaign NewFollowUp NewSmsCampaign PauseReason "
                "RecipientsAdded"
            ),
            "models.campaign_report": (
                "CallFigures CampaignReport ExportedContact ExportedReply ExportFormat FailureCount MessageFigures "
                "ResultCount SenderFigures TimeBucket"
            ),
            "models.clock": "AudienceClock ClockHour ClosedBy",
            "models.database": "CampaignGroup EngineFigures",
            "models.diagnosis": "DatabaseCode Diagnosis EngineCode",
            "models.dispatch": (
                "DecisionResult Dispatch DispatchCount DispatchFilter DispatchLookUp FailureClass OperatorDecision "
                "UnknownDispatchCount"
            ),
            "models.fields": "Bounds Length bounds_of",
            "models.forecast": (
                "BindingRule Forecast ForecastAssumptions ForecastHour ForecastPhase ForecastReason KeptForecast"
            ),
            "models.health": "DispatcherHealth DispatcherState",
            "models.history": "HistoryItem HistoryKind",
            "models.hours": "DAYS BusinessHours Holiday HolidayCalendar PlaceHours TimeWindow",
            "models.live": "CampaignNow CampaignProgress ProgressPoint",
            "models.message": "InboundMessage Keyword Message NewMessage NewTestMessage ReplyPurpose",
            "models.preflight": (
                "CharacterReplacement ContactExample ContactPreview CostlyCharacter Encodings HeldBack LeftOut "
                "LeftOutRule PlaceholderProblem Preflight RenderedMessage ReplacedText SegmentShare"
            ),
            "models.prices": "Cost CostLine Price PriceKind PriceTable ProviderCost",
            "models.recipient": "NewRecipient PreparedRecipient Recipient RecipientCount RecipientSkip",
            "models.recovery": "ContactedMeanwhile ListedContacts",
            "models.reports": "Explanation ProviderFailure RecipientOutcome",
            "models.settings": (
                "CallSettings CallSettingsUpdate ReplySettings ReplySettingsUpdate ReplyText SmsSettings "
                "SmsSettingsUpdate"
            ),
            "models.simulation": "NewSimulation SimulatedKind Simulation",
            "models.states": (
                "CallStatus CampaignAction CampaignStatus DispatchState MessageStatus RecipientStatus WorkspaceMode "
                "WorkspaceStatus"
            ),
            "models.status": (
                "AccountInTrouble DiskUse DispatchedBy DispatchOverview EngineStatus "
                "LiveWorker PausedCampaign Readiness RunningCampaign SilentAccount StartCheck ThrottledProvider"
            ),
            "models.text_warning": "TextWarning",
            "models.trail": "ContactHistory HeldBackRule TrailRule TrailStep TrailStepKind ZoneSource",
            "models.unreachable": "UnreachableNumber",
            "models.unsubscribe": "NewUnsubscribes Unsubscribe UnsubscribeImport UnsubscribeScope UnsubscribeUndo",
            "models.upload": "MAX_CHUNK_BYTES MAX_UPLOAD_BYTES NewUpload Upload",
            "models.user": (
                "ROLES CreatedInvitation Invitation InvitationKind Member NewUser Role SecondFactor "
                "SecondFactorSecret Session SetUp SignedIn User UserUpdate Visit"
            ),
            "models.work": "AuditEntry",
            "models.workspace": (
                "API_SCOPES DEFAULT_SCOPES ApiAccess ApiKey ApiScope CreatedApiKey NewWorkspace Workspace "
                "WorkspaceUpdate"
            ),
        },
    )
