"""The endpoints under /manage by path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.endpoints import HTTPEndpoint
from starlette.routing import Route

from outreach_server.endpoints.manage import (
    audience,
    campaigns,
    contacts,
    copies,
    events,
    live,
    messages,
    moves,
    planning,
    recipients,
    register,
    resources,
    results,
    schedules,
    settings,
    simulate,
    uploads,
    webhooks,
)


def move_routes(path: str, base: type[HTTPEndpoint], table: Mapping[str, tuple[str, str]]) -> Sequence[Route]:
    """Return the routes of the moves of an object.

    Args:
        path: The path of the object.
        base: The endpoint of a move.
        table: The operation and the service's method, by the end of the path.
    """
    # Metrics know an operation by the name of its endpoint.
    return [
        Route(
            f"{path}/{end}",
            type(operation[0].upper() + operation[1:], (base,), {"operation": operation, "method": method}),
        )
        for end, (operation, method) in table.items()
    ]


MANAGE_ROUTES: Final = (
    Route("/manage/campaigns", campaigns.ManagedCampaigns),
    Route("/manage/campaigns/{id}", campaigns.ManagedCampaign),
    *move_routes("/manage/campaigns/{id}", moves.Move, moves.MOVES),
    Route("/manage/campaigns/{id}/preflight", planning.PreflightCampaign),
    Route("/manage/campaigns/{id}/forecast", planning.ForecastCampaign),
    Route("/manage/campaigns/{id}/forecasts", planning.KeptForecasts),
    Route("/manage/campaigns/{id}/clock", planning.CampaignClock),
    Route("/manage/campaigns/{id}/approval", planning.CampaignApproval),
    Route("/manage/campaigns/{id}/now", live.CampaignNow),
    Route("/manage/campaigns/{id}/progress", live.CampaignProgress),
    Route("/manage/campaigns/{id}/test-messages", planning.TestMessages),
    Route("/manage/campaigns/{id}/report", results.CampaignReport),
    Route("/manage/campaigns/{id}/export", results.CampaignExport),
    Route("/manage/campaigns/{id}/clone", copies.CloneCampaign),
    Route("/manage/campaigns/{id}/follow-up", copies.FollowUpCampaign),
    Route("/manage/campaigns/{id}/results", campaigns.RecipientCounts),
    Route("/manage/campaigns/{id}/recipients", recipients.Recipients),
    Route("/manage/campaigns/{id}/recipients/{position}", recipients.OneRecipient),
    Route("/manage/campaigns/{id}/recipients/{position}/trail", recipients.RecipientTrail),
    Route("/manage/campaigns/{id}/recipients/{position}/skip", recipients.SkipRecipient),
    Route("/manage/sms", messages.ManagedSms),
    Route("/manage/sms/{id}", messages.OneSms),
    Route("/manage/calls", messages.ManagedCalls),
    Route("/manage/calls/{id}", messages.OneManagedCall),
    Route("/manage/calls/{id}/outcome", messages.CallOutcome),
    Route("/manage/dispatches/decision", messages.DispatchDecision),
    Route("/manage/dispatches/{id}/look-up", messages.LookUpDispatch),
    Route("/manage/inbound", messages.InboundMessages),
    Route("/manage/inbound/{id}", messages.OneInboundMessage),
    Route("/manage/audience", audience.Audience),
    Route("/manage/contacts/{phone}/history", contacts.ContactHistory),
    Route("/manage/unsubscribes", register.Unsubscribes),
    Route("/manage/unsubscribes/{phone}", register.OneUnsubscribe),
    Route("/manage/unsubscribes/{phone}/resolve", register.ResolveUnsubscribe),
    Route("/manage/unreachable-numbers", register.UnreachableNumbers),
    Route("/manage/unreachable-numbers/{phone}", register.OneUnreachableNumber),
    Route("/manage/erasures", register.Erasures),
    Route("/manage/flows/{id}/contacts", resources.FlowContacts),
    *resources.resource_routes(),
    *move_routes("/manage/schedules/{id}", schedules.Move, schedules.MOVES),
    Route("/manage/schedules/{id}/next-runs", schedules.NextRuns),
    Route("/manage/schedules/{id}/occurrences", schedules.Occurrences),
    Route("/manage/schedule-previews", schedules.SchedulePreviews),
    *move_routes("/manage/webhooks/{id}", webhooks.Move, webhooks.MOVES),
    Route("/manage/webhooks/{id}/rotate", webhooks.RotateWebhook),
    Route("/manage/webhooks/{id}/replay", webhooks.ReplayWebhook),
    Route("/manage/webhooks/{id}/progress", webhooks.WebhookProgress),
    Route("/manage/webhooks/{id}/attempts", webhooks.WebhookAttempts),
    Route("/manage/uploads", uploads.Uploads),
    Route("/manage/uploads/{id}", uploads.OneUpload),
    Route("/manage/uploads/{id}/content", uploads.UploadContent),
    Route("/manage/uploads/{id}/check", uploads.CheckUpload),
    Route("/manage/uploads/{id}/rejects", uploads.RejectsOfUpload),
    Route("/manage/uploads/{id}/load", uploads.LoadUpload),
    Route("/manage/uploads/{id}/add", uploads.AddUpload),
    Route("/manage/settings", settings.AllSettings),
    Route("/manage/settings/calls", settings.CallSettings),
    Route("/manage/settings/replies", settings.ReplySettings),
    Route("/manage/settings/contact-hours", settings.ContactHours),
    Route("/manage/settings/prices", settings.Prices),
    Route("/manage/accounts", settings.Accounts),
    Route("/manage/accounts/{id}", settings.OneAccount),
    Route("/manage/accounts/{id}/check-callback", settings.CheckCallback),
    Route("/manage/simulate", simulate.Simulate),
    Route("/manage/events", events.Events),
)
"""The operations of openapi.yaml with the tag `manage`."""
