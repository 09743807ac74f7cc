"""The data of the engine: what its services take and return. A public module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.core.lazy_names import imported_when_used
from outreach.models import resources
from outreach.models.resources import *  # noqa: F403 - its `__all__` says what is public there

if TYPE_CHECKING:
    from outreach.models.account import (
        PROVIDERS as PROVIDERS,
        Account as Account,
        CallbackCheck as CallbackCheck,
        CallbackFault as CallbackFault,
        Misdirection as Misdirection,
        Provider as Provider,
        ProviderKind as ProviderKind,
        RekeyResult as RekeyResult,
    )
    from outreach.models.approval import (
        Approval as Approval,
        ApprovalReason as ApprovalReason,
        StartApproval as StartApproval,
        StartFigures as StartFigures,
    )
    from outreach.models.archive import (
        PurgeResult as PurgeResult,
        RetentionResult as RetentionResult,
    )
    from outreach.models.audience import (
        AudienceCounts as AudienceCounts,
        CampaignOverlap as CampaignOverlap,
        LeaveOut as LeaveOut,
    )
    from outreach.models.base import (
        CARRIERS as CARRIERS,
        UNSET as UNSET,
        CarrierName as CarrierName,
        Channel as Channel,
        CliMode as CliMode,
        Page as Page,
        ScheduleType as ScheduleType,
        SmsMessageSource as SmsMessageSource,
        SmsMode as SmsMode,
        Unset as Unset,
    )
    from outreach.models.call import (
        Call as Call,
        CallOutcome as CallOutcome,
        CallOutcomeFilter as CallOutcomeFilter,
        CallVerdict as CallVerdict,
        NewCall as NewCall,
        NewCallOutcome as NewCallOutcome,
    )
    from outreach.models.campaign import (
        AgentSnapshot as AgentSnapshot,
        CallerIdAllocation as CallerIdAllocation,
        Campaign as Campaign,
        CampaignCreated as CampaignCreated,
        CampaignFilters as CampaignFilters,
        CampaignUpdate as CampaignUpdate,
        Counters as Counters,
        FollowUpCreated as FollowUpCreated,
        FollowUpExclusion as FollowUpExclusion,
        NewCallCampaign as NewCallCampaign,
        NewFollowUp as NewFollowUp,
        NewRecipient as NewRecipient,
        NewSmsCampaign as NewSmsCampaign,
        PauseReason as PauseReason,
        PreparedRecipient as PreparedRecipient,
        Recipient as Recipient,
        RecipientCount as RecipientCount,
        RecipientSkip as RecipientSkip,
        RecipientsAdded as RecipientsAdded,
    )
    from outreach.models.campaign_report import (
        CallFigures as CallFigures,
        CampaignReport as CampaignReport,
        ExportFormat as ExportFormat,
        ExportedContact as ExportedContact,
        ExportedReply as ExportedReply,
        FailureCount as FailureCount,
        MessageFigures as MessageFigures,
        ResultCount as ResultCount,
        SenderFigures as SenderFigures,
        TimeBucket as TimeBucket,
    )
    from outreach.models.clock import (
        AudienceClock as AudienceClock,
        ClockHour as ClockHour,
        ClosedBy as ClosedBy,
    )
    from outreach.models.database import (
        CampaignGroup as CampaignGroup,
        EngineFigures as EngineFigures,
        WebhookLag as WebhookLag,
    )
    from outreach.models.diagnosis import (
        DatabaseCode as DatabaseCode,
        Diagnosis as Diagnosis,
        EngineCode as EngineCode,
    )
    from outreach.models.dispatch import (
        DecisionResult as DecisionResult,
        Dispatch as Dispatch,
        DispatchCount as DispatchCount,
        DispatchFilter as DispatchFilter,
        DispatchLookUp as DispatchLookUp,
        FailureClass as FailureClass,
        OperatorDecision as OperatorDecision,
        UnknownDispatchCount as UnknownDispatchCount,
    )
    from outreach.models.fields import (
        Bounds as Bounds,
        Length as Length,
        bounds_of as bounds_of,
    )
    from outreach.models.forecast import (
        BindingRule as BindingRule,
        Forecast as Forecast,
        ForecastAssumptions as ForecastAssumptions,
        ForecastHour as ForecastHour,
        ForecastPhase as ForecastPhase,
        ForecastReason as ForecastReason,
        KeptForecast as KeptForecast,
    )
    from outreach.models.health import (
        DispatcherHealth as DispatcherHealth,
        DispatcherState as DispatcherState,
    )
    from outreach.models.history import (
        HistoryItem as HistoryItem,
        HistoryKind as HistoryKind,
    )
    from outreach.models.live import (
        CampaignNow as CampaignNow,
        CampaignProgress as CampaignProgress,
        ProgressPoint as ProgressPoint,
    )
    from outreach.models.message import (
        InboundMessage as InboundMessage,
        Keyword as Keyword,
        Message as Message,
        NewMessage as NewMessage,
        NewTestMessage as NewTestMessage,
    )
    from outreach.models.preflight import (
        CharacterReplacement as CharacterReplacement,
        ContactExample as ContactExample,
        ContactPreview as ContactPreview,
        CostlyCharacter as CostlyCharacter,
        Encodings as Encodings,
        HeldBack as HeldBack,
        LeftOut as LeftOut,
        LeftOutRule as LeftOutRule,
        PlaceholderProblem as PlaceholderProblem,
        Preflight as Preflight,
        RenderedMessage as RenderedMessage,
        ReplacedText as ReplacedText,
        SegmentShare as SegmentShare,
    )
    from outreach.models.prices import (
        Cost as Cost,
        CostLine as CostLine,
        Price as Price,
        PriceKind as PriceKind,
        PriceTable as PriceTable,
        ProviderCost as ProviderCost,
    )
    from outreach.models.recovery import (
        ContactedMeanwhile as ContactedMeanwhile,
        ListedContacts as ListedContacts,
    )
    from outreach.models.reports import (
        CallbackRecord as CallbackRecord,
        Explanation as Explanation,
        ProviderFailure as ProviderFailure,
        RecipientOutcome as RecipientOutcome,
    )
    from outreach.models.schedule import (
        NewSchedule as NewSchedule,
        NewScheduleApproval as NewScheduleApproval,
        Occurrence as Occurrence,
        OccurrenceState as OccurrenceState,
        PlannedRun as PlannedRun,
        Schedule as Schedule,
        ScheduleApproval as ScheduleApproval,
        ScheduleState as ScheduleState,
        ScheduleUpdate as ScheduleUpdate,
    )
    from outreach.models.settings import (
        DAYS as DAYS,
        BusinessHours as BusinessHours,
        CallSettings as CallSettings,
        CallSettingsUpdate as CallSettingsUpdate,
        Holiday as Holiday,
        HolidayCalendar as HolidayCalendar,
        PlaceHours as PlaceHours,
        ReplyPurpose as ReplyPurpose,
        ReplySettings as ReplySettings,
        ReplySettingsUpdate as ReplySettingsUpdate,
        ReplyText as ReplyText,
        SmsSettings as SmsSettings,
        SmsSettingsUpdate as SmsSettingsUpdate,
        TimeWindow as TimeWindow,
    )
    from outreach.models.simulation import (
        NewSimulation as NewSimulation,
        SimulatedKind as SimulatedKind,
        Simulation as Simulation,
    )
    from outreach.models.states import (
        CallStatus as CallStatus,
        CampaignAction as CampaignAction,
        CampaignStatus as CampaignStatus,
        ContactHistory as ContactHistory,
        DispatchState as DispatchState,
        HeldBackRule as HeldBackRule,
        MessageStatus as MessageStatus,
        RecipientStatus as RecipientStatus,
        TrailRule as TrailRule,
        TrailStep as TrailStep,
        TrailStepKind as TrailStepKind,
        WorkspaceMode as WorkspaceMode,
        WorkspaceStatus as WorkspaceStatus,
        ZoneSource as ZoneSource,
    )
    from outreach.models.status import (
        AccountInTrouble as AccountInTrouble,
        BlockedRun as BlockedRun,
        DisabledWebhook as DisabledWebhook,
        FailingWebhook as FailingWebhook,
        DiskUse as DiskUse,
        DispatchOverview as DispatchOverview,
        DispatchedBy as DispatchedBy,
        EngineStatus as EngineStatus,
        LiveWorker as LiveWorker,
        PausedCampaign as PausedCampaign,
        PausedSchedule as PausedSchedule,
        StartTakenBack as StartTakenBack,
        Readiness as Readiness,
        RunningCampaign as RunningCampaign,
        SilentAccount as SilentAccount,
        StartCheck as StartCheck,
        ThrottledProvider as ThrottledProvider,
        Versions as Versions,
    )
    from outreach.models.text_warning import TextWarning as TextWarning
    from outreach.models.unreachable import UnreachableNumber as UnreachableNumber
    from outreach.models.unsubscribe import (
        NewUnsubscribes as NewUnsubscribes,
        Unsubscribe as Unsubscribe,
        UnsubscribeImport as UnsubscribeImport,
        UnsubscribeScope as UnsubscribeScope,
        UnsubscribeUndo as UnsubscribeUndo,
    )
    from outreach.models.upload import (
        MAX_CHUNK_BYTES as MAX_CHUNK_BYTES,
        MAX_UPLOAD_BYTES as MAX_UPLOAD_BYTES,
        NewUpload as NewUpload,
        Upload as Upload,
    )
    from outreach.models.user import (
        ROLES as ROLES,
        CreatedInvitation as CreatedInvitation,
        Invitation as Invitation,
        InvitationKind as InvitationKind,
        Member as Member,
        NewUser as NewUser,
        Role as Role,
        SecondFactor as SecondFactor,
        SecondFactorSecret as SecondFactorSecret,
        Session as Session,
        SetUp as SetUp,
        SignedIn as SignedIn,
        User as User,
        UserUpdate as UserUpdate,
        Visit as Visit,
    )
    from outreach.models.webhook import (
        CreatedWebhook as CreatedWebhook,
        NewWebhook as NewWebhook,
        Webhook as Webhook,
        WebhookAttempt as WebhookAttempt,
        WebhookCursor as WebhookCursor,
        WebhookPayload as WebhookPayload,
        WebhookProgress as WebhookProgress,
        WebhookReplay as WebhookReplay,
        WebhookRotation as WebhookRotation,
        WebhookState as WebhookState,
        WebhookUpdate as WebhookUpdate,
    )
    from outreach.models.work import AuditEntry as AuditEntry
    from outreach.models.workspace import (
        API_SCOPES as API_SCOPES,
        DEFAULT_SCOPES as DEFAULT_SCOPES,
        ApiAccess as ApiAccess,
        ApiKey as ApiKey,
        ApiScope as ApiScope,
        CreatedApiKey as CreatedApiKey,
        NewWorkspace as NewWorkspace,
        Workspace as Workspace,
        WorkspaceUpdate as WorkspaceUpdate,
    )


if not TYPE_CHECKING:  # which would accept any name otherwise
    __getattr__, __dir__, __all__ = imported_when_used(
        globals(),
        {
            "models.account": (
                "PROVIDERS Account CallbackCheck CallbackFault Misdirection Provider ProviderKind RekeyResult"
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
                "FollowUpCreated FollowUpExclusion NewCallCampaign NewFollowUp NewRecipient NewSmsCampaign PauseReason "
                "PreparedRecipient Recipient RecipientCount RecipientSkip RecipientsAdded"
            ),
            "models.campaign_report": (
                "CallFigures CampaignReport ExportFormat ExportedContact ExportedReply FailureCount MessageFigures "
                "ResultCount SenderFigures TimeBucket"
            ),
            "models.clock": "AudienceClock ClockHour ClosedBy",
            "models.database": "CampaignGroup EngineFigures WebhookLag",
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
            "models.live": "CampaignNow CampaignProgress ProgressPoint",
            "models.message": "InboundMessage Keyword Message NewMessage NewTestMessage",
            "models.preflight": (
                "CharacterReplacement ContactExample ContactPreview CostlyCharacter Encodings HeldBack LeftOut "
                "LeftOutRule PlaceholderProblem Preflight RenderedMessage ReplacedText SegmentShare"
            ),
            "models.prices": "Cost CostLine Price PriceKind PriceTable ProviderCost",
            "models.recovery": "ContactedMeanwhile ListedContacts",
            "models.reports": "CallbackRecord Explanation ProviderFailure RecipientOutcome",
            "models.schedule": (
                "NewSchedule NewScheduleApproval Occurrence OccurrenceState PlannedRun Schedule ScheduleApproval "
                "ScheduleState ScheduleUpdate"
            ),
            "models.settings": (
                "DAYS BusinessHours CallSettings CallSettingsUpdate Holiday HolidayCalendar PlaceHours ReplyPurpose "
                "ReplySettings ReplySettingsUpdate ReplyText SmsSettings SmsSettingsUpdate TimeWindow"
            ),
            "models.simulation": "NewSimulation SimulatedKind Simulation",
            "models.states": (
                "CallStatus CampaignAction CampaignStatus ContactHistory DispatchState HeldBackRule MessageStatus "
                "RecipientStatus TrailRule TrailStep TrailStepKind WorkspaceMode WorkspaceStatus ZoneSource"
            ),
            "models.status": (
                "AccountInTrouble BlockedRun DisabledWebhook DiskUse DispatchOverview DispatchedBy EngineStatus "
                "FailingWebhook LiveWorker PausedCampaign PausedSchedule Readiness RunningCampaign SilentAccount "
                "StartCheck StartTakenBack ThrottledProvider Versions"
            ),
            "models.text_warning": "TextWarning",
            "models.unreachable": "UnreachableNumber",
            "models.unsubscribe": "NewUnsubscribes Unsubscribe UnsubscribeImport UnsubscribeScope UnsubscribeUndo",
            "models.upload": "MAX_CHUNK_BYTES MAX_UPLOAD_BYTES NewUpload Upload",
            "models.user": (
                "ROLES CreatedInvitation Invitation InvitationKind Member NewUser Role SecondFactor SecondFactorSecret "
                "Session SetUp SignedIn User UserUpdate Visit"
            ),
            "models.webhook": (
                "CreatedWebhook NewWebhook Webhook WebhookAttempt WebhookCursor WebhookPayload WebhookProgress "
                "WebhookReplay WebhookRotation WebhookState WebhookUpdate"
            ),
            "models.work": "AuditEntry",
            "models.workspace": (
                "API_SCOPES DEFAULT_SCOPES ApiAccess ApiKey ApiScope CreatedApiKey NewWorkspace Workspace "
                "WorkspaceUpdate"
            ),
        },
    )
    __all__ += resources.__all__
