"""/manage/campaigns/{id}/clone and follow-up: campaigns made of another one."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import InvalidRequest
from outreach.http import (
    in_update_names,
    read_campaign_clone,
    read_new_follow_up,
    write_campaign_copy,
    write_follow_up,
)
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, path_id, read_body, read_optional_body
from outreach_server.errors import answer_once


class CloneCampaign(HTTPEndpoint):
    """Make a campaign like another one."""

    async def post(self, request: Request) -> Response:
        """Create a campaign with the same contacts, and return it."""
        workspace = await admit(request, "cloneCampaign")
        engine = server_of(request).engine
        campaign_id = path_id(request, "campaign")
        clone, body = await read_optional_body(request, read_campaign_clone, default=read_campaign_clone({}))
        try:
            return await answer_once(
                body,
                "cloneCampaign",
                lambda key: engine.campaigns.clone(
                    workspace.id,
                    campaign_id,
                    name=clone.name,
                    leave_out=clone.leave_out,
                    idempotency_key=key,
                    actor=ACTOR,
                ),
                lambda made: write_campaign_copy(made, now=engine.now()),
            )
        except InvalidRequest as error:
            raise InvalidRequest(details=in_update_names(error.details)) from None


class FollowUpCampaign(HTTPEndpoint):
    """Make a campaign of those who had given results in another one."""

    async def post(self, request: Request) -> Response:
        """Create a campaign of these contacts, and return it with whom it leaves out."""
        workspace = await admit(request, "followUpCampaign")
        engine = server_of(request).engine
        campaign_id = path_id(request, "campaign")
        new, body = await read_body(request, read_new_follow_up)
        try:
            return await answer_once(
                body,
                "followUpCampaign",
                lambda key: engine.campaigns.follow_up(
                    workspace.id, campaign_id, new, idempotency_key=key, actor=ACTOR
                ),
                lambda made: write_follow_up(made, now=engine.now()),
            )
        except InvalidRequest as error:
            raise InvalidRequest(details=in_update_names(error.details)) from None
