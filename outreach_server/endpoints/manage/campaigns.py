"""/manage/campaigns/{id}: reading and changing a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import Campaign, InvalidRequest
from outreach.http import in_update_names, read_campaign_update, write_managed_campaign, write_recipient_count
from outreach.models import CampaignBlocker
from outreach_server.context import Server, server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, list_response, path_id, read_body
from outreach_server.replies import json_response


class ManagedCampaign(HTTPEndpoint):
    """Show and change a campaign."""

    async def get(self, request: Request) -> Response:
        """Return a campaign with what blocks it."""
        workspace = await admit(request, "getCampaign")
        server = server_of(request)
        campaign = await server.engine.campaigns.get(workspace.id, path_id(request, "campaign"))
        return await _shown(server, campaign)

    async def patch(self, request: Request) -> Response:
        """Change the given fields of a campaign that has not started."""
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


class RecipientCounts(HTTPEndpoint):
    """Count a campaign's recipients."""

    async def get(self, request: Request) -> Response:
        """Return how many recipients are in each state for each reason."""
        workspace = await admit(request, "countRecipients")
        campaigns = server_of(request).engine.campaigns
        campaign = await campaigns.get(workspace.id, path_id(request, "campaign"))
        groups = await campaigns.count_recipients(workspace.id, campaign.id)
        due = await campaigns.next_due_times(workspace.id, campaign.id)
        return list_response(groups, lambda group: write_recipient_count(group, campaign.channel, due))


async def _shown(server: Server, campaign: Campaign) -> Response:
    engine = server.engine
    blockers: Sequence[CampaignBlocker] = await engine.campaigns.blockers(campaign.workspace_id, campaign.id)
    return json_response(write_managed_campaign(campaign, now=engine.now(), blockers=blockers))
