"""/manage/campaigns/{id}/recipients: the contacts of a campaign, and what happened to each."""

from __future__ import annotations

import re
from typing import Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import NotFound, RecipientStatus
from outreach.http import document_of, read_recipient_skip, write_history, write_recipient
from outreach.models import RecipientSkip
from outreach_server.auth import authenticate_request
from outreach_server.bodies.body import parsed_audience, receive_body
from outreach_server.bodies.query import one_of, phone, words
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import (
    ACTOR,
    admit,
    for_path,
    page_response,
    path_id,
    read_optional_body,
    read_page,
)
from outreach_server.errors import answer_once, json_response

_POSITION: Final = re.compile(r"[0-9]{1,18}")


class Recipients(HTTPEndpoint):
    """List a campaign's recipients, and add some."""

    async def get(self, request: Request) -> Response:
        """Return a page, by position, of one state, reason, number and id of the application's, or of all."""
        workspace = await authenticate_request(request, "listRecipients")
        query = read_page(
            request,
            status=one_of(*RecipientStatus),
            reason=words,
            phone=phone,
            external_id=words,
            after=words,
        )
        campaigns = server_of(request).engine.campaigns
        campaign = await campaigns.get(workspace.id, path_id(request, "campaign"))
        found = await campaigns.list_recipients(workspace.id, campaign.id, **query)
        return page_response(found, lambda one: write_recipient(one, campaign.channel, campaign_status=campaign.status))

    async def post(self, request: Request) -> Response:
        """Add contacts to a campaign that has not ended, and return how many it got."""
        workspace = await admit(request, "addRecipients")
        server, campaign_id = server_of(request), path_id(request, "campaign")
        # Before the key is claimed, because reading a large body may take longer than a claim lasts.
        async with (
            receive_body(request) as body,
            parsed_audience(server, body, workspace) as (leave_out, chunks),
        ):
            return await answer_once(
                for_path(request, body),
                "addRecipients",
                lambda key: server.engine.campaigns.add_recipients(
                    workspace.id, campaign_id, chunks, leave_out=leave_out, idempotency_key=key, actor=ACTOR
                ),
                document_of,
            )


class OneRecipient(HTTPEndpoint):
    """Show a recipient."""

    async def get(self, request: Request) -> Response:
        """Return the recipient at a position."""
        workspace = await admit(request, "getRecipient")
        campaigns = server_of(request).engine.campaigns
        campaign = await campaigns.get(workspace.id, path_id(request, "campaign"))
        recipient = await campaigns.get_recipient(workspace.id, campaign.id, _position(request))
        return json_response(write_recipient(recipient, campaign.channel, campaign_status=campaign.status))


class RecipientTrail(HTTPEndpoint):
    """Show what happened to a recipient."""

    async def get(self, request: Request) -> Response:
        """Return each step with its rule and reason, and with what the provider said."""
        workspace = await admit(request, "getRecipientTrail")
        campaigns = server_of(request).engine.campaigns
        campaign = await campaigns.get(workspace.id, path_id(request, "campaign"))
        position = _position(request)
        history = await campaigns.recipient_history(workspace.id, campaign.id, position)
        failures = await campaigns.recipient_failures(workspace.id, campaign.id, position)
        return json_response(write_history(history, failures, campaign.channel, campaign_status=campaign.status))


class SkipRecipient(HTTPEndpoint):
    """Leave a recipient out."""

    async def post(self, request: Request) -> Response:
        """End a recipient that waits for its turn, and return it."""
        workspace = await admit(request, "skipRecipient")
        campaigns = server_of(request).engine.campaigns
        campaign = await campaigns.get(workspace.id, path_id(request, "campaign"))
        skip, _ = await read_optional_body(request, read_recipient_skip, default=RecipientSkip())
        skipped = await campaigns.skip_recipient(
            workspace.id, campaign.id, _position(request), reason=skip.reason, actor=ACTOR
        )
        return json_response(write_recipient(skipped, campaign.channel, campaign_status=campaign.status))


def _position(request: Request) -> int:
    given: str = request.path_params["position"]
    if not _POSITION.fullmatch(given):
        raise NotFound("recipient", given)
    return int(given)
