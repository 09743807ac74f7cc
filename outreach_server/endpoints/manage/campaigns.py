"""/manage/campaigns/{id}: reading and changing a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import get_args

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import Campaign, CampaignStatus, InvalidRequest
from outreach.errors import Problem
from outreach.http import in_update_names, read_campaign_update, write_managed_campaign, write_recipient_count
from outreach.models import Channel
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import flag, one_of, words
from outreach_server.context import Server, server_of
from outreach_server.endpoints.manage.common import (
    ACTOR,
    admit,
    page_response,
    path_id,
    read_body,
    read_page,
    refuse_body,
)
from outreach_server.errors import json_response


class ManagedCampaigns(HTTPEndpoint):
    """List campaigns."""

    async def get(self, request: Request) -> Response:
        """Return a page of campaigns, newest first."""
        workspace = await authenticate_request(request, "listManagedCampaigns")
        query = read_page(
            request,
            channel=one_of(*get_args(Channel)),
            status=one_of(*CampaignStatus),
            search=words,
            external_id=words,
            metadata=words,
            archived=flag,
            after=words,
        )
        engine = server_of(request).engine
        found = await engine.campaigns.list(workspace.id, **{"archived": False, **query})
        return page_response(found, partial(write_managed_campaign, now=engine.now()))


class ManagedCampaign(HTTPEndpoint):
    """Show, change and delete a campaign."""

    async def get(self, request: Request) -> Response:
        """Return a campaign with what blocks it."""
        workspace = await admit(request, "getCampaign")
        server = server_of(request)
        campaign = await server.engine.campaigns.get(workspace.id, path_id(request, "campaign"))
        return await _shown(server, campaign)

    async def patch(self, request: Request) -> Response:
        """Change the given fields of a campaign; what has not been sent goes out as it then says."""
        workspace = await admit(request, "updateCampaign")
        server = server_of(request)
        campaign_id = path_id(request, "campaign")
        read = partial(read_campaign_update, this_year=server.engine.now().year, carriers=server.carriers)
        change, _ = await read_body(request, read)
        try:
            campaign = await server.engine.campaigns.update(workspace.id, campaign_id, change, actor=ACTOR)
        except InvalidRequest as error:
            raise InvalidRequest(details=in_update_names(error.details)) from None
        return await _shown(server, campaign)

    async def delete(self, request: Request) -> Response:
        """Delete a campaign that has not started, or erase the contacts of an ended one; return it."""
        workspace = await admit(request, "deleteCampaign")
        await refuse_body(request)
        server = server_of(request)
        campaigns = server.engine.campaigns
        campaign = await campaigns.get(workspace.id, path_id(request, "campaign"))
        erased = await campaigns.delete(workspace.id, campaign.id, actor=ACTOR)
        return json_response(write_managed_campaign(erased or campaign, now=server.engine.now()))


class RecipientCounts(HTTPEndpoint):
    """Count a campaign's recipients."""

    async def get(self, request: Request) -> Response:
        """Return how many recipients are in each state for each reason."""
        workspace = await admit(request, "countRecipients")
        campaigns = server_of(request).engine.campaigns
        campaign = await campaigns.get(workspace.id, path_id(request, "campaign"))
        groups = await campaigns.count_recipients(workspace.id, campaign.id)
        due = await campaigns.next_due_times(workspace.id, campaign.id)
        return json_response(
            {
                "data": [
                    write_recipient_count(group, campaign.channel, due, campaign_status=campaign.status)
                    for group in groups
                ]
            }
        )


async def _shown(server: Server, campaign: Campaign) -> Response:
    engine = server.engine
    blockers: Sequence[Problem] = await engine.campaigns.blockers(campaign.workspace_id, campaign.id)
    return json_response(write_managed_campaign(campaign, now=engine.now(), blockers=blockers))
