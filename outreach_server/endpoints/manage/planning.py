"""/manage/campaigns/{id}/preflight, forecast and test-messages: what a campaign will do, before it does."""

from __future__ import annotations

from typing import Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import NotFound
from outreach.http import (
    document_of,
    read_new_test_message,
    write_sms,
)
from outreach.models import ForecastAssumptions
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import number, phone, read_query
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, path_id, read_body
from outreach_server.errors import answer_once, json_response

_share: Final = number(0, 1)
_seconds: Final = number(0, 86_400)


class PreflightCampaign(HTTPEndpoint):
    """Tell what a campaign will do to its contacts."""

    async def get(self, request: Request) -> Response:
        """Return who will be contacted, who is left out and why, the texts, and the cost."""
        workspace = await authenticate_request(request, "preflightCampaign")
        query = read_query(request, contact=phone)
        campaigns = server_of(request).engine.campaigns
        contact = query.get("contact")
        found = await campaigns.preflight(workspace.id, path_id(request, "campaign"), contact=contact)
        if contact is not None and not found.asked:
            raise NotFound("recipient", contact)
        return json_response(document_of(found))


class ForecastCampaign(HTTPEndpoint):
    """Tell when a campaign will be done."""

    async def get(self, request: Request) -> Response:
        """Return start, end, the hours between and what limits it, of what is left of the campaign."""
        workspace = await authenticate_request(request, "forecastCampaign")
        query = read_query(
            request,
            answer_rate=_share,
            call_seconds=_seconds,
            ring_seconds=_seconds,
            failure_rate=_share,
            receipt_seconds=_seconds,
        )
        campaigns = server_of(request).engine.campaigns
        assumed = ForecastAssumptions(**query)
        found = await campaigns.forecast(workspace.id, path_id(request, "campaign"), assumptions=assumed)
        return json_response(document_of(found))


class KeptForecasts(HTTPEndpoint):
    """Tell what was forecast at a campaign's start."""

    async def get(self, request: Request) -> Response:
        """Return the forecasts that were kept at the start and after changes, oldest first."""
        workspace = await admit(request, "listForecasts")
        campaigns = server_of(request).engine.campaigns
        found = await campaigns.forecasts(workspace.id, path_id(request, "campaign"))
        return json_response({"data": [document_of(one) for one in found]})


class CampaignClock(HTTPEndpoint):
    """Tell when a campaign's contacts can be reached."""

    async def get(self, request: Request) -> Response:
        """Return how many can be reached in each of 24 hours."""
        workspace = await admit(request, "getCampaignClock")
        campaigns = server_of(request).engine.campaigns
        return json_response(document_of(await campaigns.clock(workspace.id, path_id(request, "campaign"))))


class CampaignApproval(HTTPEndpoint):
    """Tell whether people need approval to start a campaign."""

    async def get(self, request: Request) -> Response:
        """Return why it needs approval, who has changed it last, and the approval that it has."""
        workspace = await admit(request, "getCampaignApproval")
        campaigns = server_of(request).engine.campaigns
        return json_response(document_of(await campaigns.approval(workspace.id, path_id(request, "campaign"))))


class TestMessages(HTTPEndpoint):
    """Try a campaign's text."""

    async def post(self, request: Request) -> Response:
        """Send what a contact would get to a number of one's own."""
        workspace = await admit(request, "sendTestMessage")
        campaign_id = path_id(request, "campaign")
        trial, body = await read_body(request, read_new_test_message)
        messages = server_of(request).engine.messages
        return await answer_once(
            body,
            "sendTestMessage",
            lambda key: messages.send_test(workspace.id, campaign_id, trial, idempotency_key=key, actor=ACTOR),
            lambda message: write_sms(message, None),
        )
