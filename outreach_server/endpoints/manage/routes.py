"""The endpoints under /manage by path."""

from __future__ import annotations

from typing import Final

from starlette.routing import Route

from outreach_server.endpoints.manage.audience import Audience
from outreach_server.endpoints.manage.campaigns import ManagedCampaign, ManagedCampaigns, RecipientCounts
from outreach_server.endpoints.manage.contacts import ContactHistory
from outreach_server.endpoints.manage.copies import CloneCampaign, FollowUpCampaign
from outreach_server.endpoints.manage.events import Events
from outreach_server.endpoints.manage.live import CampaignNow, CampaignProgress
from outreach_server.endpoints.manage.messages import (
    CallOutcome,
    DispatchDecision,
    InboundMessages,
    LookUpDispatch,
    ManagedCalls,
    ManagedSms,
    OneInboundMessage,
    OneManagedCall,
    OneSms,
)
from outreach_server.endpoints.manage.moves import (
    ArchiveCampaign,
    CancelCampaign,
    CloseCampaign,
    PauseCampaign,
    ResumeCampaign,
    StartCampaign,
    UnarchiveCampaign,
    UnscheduleCampaign,
)
from outreach_server.endpoints.manage.planning import (
    CampaignApproval,
    CampaignClock,
    ForecastCampaign,
    KeptForecasts,
    PreflightCampaign,
    TestMessages,
)
from outreach_server.endpoints.manage.recipients import OneRecipient, Recipients, RecipientTrail, SkipRecipient
from outreach_server.endpoints.manage.register import (
    Erasures,
    OneUnreachableNumber,
    OneUnsubscribe,
    ResolveUnsubscribe,
    UnreachableNumbers,
    Unsubscribes,
)
from outreach_server.endpoints.manage.resources import FlowContacts, resource_routes
from outreach_server.endpoints.manage.results import CampaignExport, CampaignReport
from outreach_server.endpoints.manage.schedules import (
    NextRuns,
    Occurrences,
    PauseSchedule,
    ResumeSchedule,
    RunSchedule,
    SchedulePreviews,
    SkipNextRun,
)
from outreach_server.endpoints.manage.settings import (
    Accounts,
    AllSettings,
    CallSettings,
    CheckCallback,
    ContactHours,
    OneAccount,
    Prices,
    ReplySettings,
)
from outreach_server.endpoints.manage.simulate import Simulate
from outreach_server.endpoints.manage.uploads import (
    AddUpload,
    CheckUpload,
    LoadUpload,
    OneUpload,
    RejectsOfUpload,
    UploadContent,
    Uploads,
)
from outreach_server.endpoints.manage.webhooks import (
    EnableWebhook,
    PauseWebhook,
    ReplayWebhook,
    RotateWebhook,
    TestWebhook,
    WebhookAttempts,
    WebhookProgress,
)

MANAGE_ROUTES: Final = (
    Route("/manage/campaigns", ManagedCampaigns),
    Route("/manage/campaigns/{id}", ManagedCampaign),
    Route("/manage/campaigns/{id}/start", StartCampaign),
    Route("/manage/campaigns/{id}/unschedule", UnscheduleCampaign),
    Route("/manage/campaigns/{id}/pause", PauseCampaign),
    Route("/manage/campaigns/{id}/resume", ResumeCampaign),
    Route("/manage/campaigns/{id}/cancel", CancelCampaign),
    Route("/manage/campaigns/{id}/close", CloseCampaign),
    Route("/manage/campaigns/{id}/preflight", PreflightCampaign),
    Route("/manage/campaigns/{id}/forecast", ForecastCampaign),
    Route("/manage/campaigns/{id}/forecasts", KeptForecasts),
    Route("/manage/campaigns/{id}/clock", CampaignClock),
    Route("/manage/campaigns/{id}/approval", CampaignApproval),
    Route("/manage/campaigns/{id}/now", CampaignNow),
    Route("/manage/campaigns/{id}/progress", CampaignProgress),
    Route("/manage/campaigns/{id}/test-messages", TestMessages),
    Route("/manage/campaigns/{id}/report", CampaignReport),
    Route("/manage/campaigns/{id}/export", CampaignExport),
    Route("/manage/campaigns/{id}/clone", CloneCampaign),
    Route("/manage/campaigns/{id}/follow-up", FollowUpCampaign),
    Route("/manage/campaigns/{id}/archive", ArchiveCampaign),
    Route("/manage/campaigns/{id}/unarchive", UnarchiveCampaign),
    Route("/manage/campaigns/{id}/results", RecipientCounts),
    Route("/manage/campaigns/{id}/recipients", Recipients),
    Route("/manage/campaigns/{id}/recipients/{position}", OneRecipient),
    Route("/manage/campaigns/{id}/recipients/{position}/trail", RecipientTrail),
    Route("/manage/campaigns/{id}/recipients/{position}/skip", SkipRecipient),
    Route("/manage/sms", ManagedSms),
    Route("/manage/sms/{id}", OneSms),
    Route("/manage/calls", ManagedCalls),
    Route("/manage/calls/{id}", OneManagedCall),
    Route("/manage/calls/{id}/outcome", CallOutcome),
    Route("/manage/dispatches/decision", DispatchDecision),
    Route("/manage/dispatches/{id}/look-up", LookUpDispatch),
    Route("/manage/inbound", InboundMessages),
    Route("/manage/inbound/{id}", OneInboundMessage),
    Route("/manage/audience", Audience),
    Route("/manage/contacts/{phone}/history", ContactHistory),
    Route("/manage/unsubscribes", Unsubscribes),
    Route("/manage/unsubscribes/{phone}", OneUnsubscribe),
    Route("/manage/unsubscribes/{phone}/resolve", ResolveUnsubscribe),
    Route("/manage/unreachable-numbers", UnreachableNumbers),
    Route("/manage/unreachable-numbers/{phone}", OneUnreachableNumber),
    Route("/manage/erasures", Erasures),
    Route("/manage/flows/{id}/contacts", FlowContacts),
    *resource_routes(),
    Route("/manage/schedules/{id}/pause", PauseSchedule),
    Route("/manage/schedules/{id}/resume", ResumeSchedule),
    Route("/manage/schedules/{id}/run", RunSchedule),
    Route("/manage/schedules/{id}/skip-next", SkipNextRun),
    Route("/manage/schedules/{id}/next-runs", NextRuns),
    Route("/manage/schedules/{id}/occurrences", Occurrences),
    Route("/manage/schedule-previews", SchedulePreviews),
    Route("/manage/webhooks/{id}/pause", PauseWebhook),
    Route("/manage/webhooks/{id}/enable", EnableWebhook),
    Route("/manage/webhooks/{id}/test", TestWebhook),
    Route("/manage/webhooks/{id}/rotate", RotateWebhook),
    Route("/manage/webhooks/{id}/replay", ReplayWebhook),
    Route("/manage/webhooks/{id}/progress", WebhookProgress),
    Route("/manage/webhooks/{id}/attempts", WebhookAttempts),
    Route("/manage/uploads", Uploads),
    Route("/manage/uploads/{id}", OneUpload),
    Route("/manage/uploads/{id}/content", UploadContent),
    Route("/manage/uploads/{id}/check", CheckUpload),
    Route("/manage/uploads/{id}/rejects", RejectsOfUpload),
    Route("/manage/uploads/{id}/load", LoadUpload),
    Route("/manage/uploads/{id}/add", AddUpload),
    Route("/manage/settings", AllSettings),
    Route("/manage/settings/calls", CallSettings),
    Route("/manage/settings/replies", ReplySettings),
    Route("/manage/settings/contact-hours", ContactHours),
    Route("/manage/settings/prices", Prices),
    Route("/manage/accounts", Accounts),
    Route("/manage/accounts/{id}", OneAccount),
    Route("/manage/accounts/{id}/check-callback", CheckCallback),
    Route("/manage/simulate", Simulate),
    Route("/manage/events", Events),
)
"""The operations of openapi.yaml with the tag `manage`."""
