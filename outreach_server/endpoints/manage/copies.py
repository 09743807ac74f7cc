"""/manage/campaigns/{id}/clone, follow-up, archive and unarchive."""

from __future__ import annotations

from typing import ClassVar

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
    write_managed_campaign,
)
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import (
    ACTOR,
    admit,
    keyed,
    path_id,
    read_body,
    read_optional_body,
    refuse_body,
)
from outreach_server.replies import JSON, answer_of, created_response


class CloneCampaign(HTTPEndpoint):
    """Make a campaign like another one."""

    async def post(self, request: Request) -> Response:
        """Create a campaign with the same contacts, and return it."""
        workspace = await admit(request, "cloneCampaign")
        engine = server_of(request).engine
        campaign_id = path_id(request, "campaign")
        name, body = await read_optional_body(request, read_campaign_clone, default=read_campaign_clone({}))
        try:
            answer = await engine.http.clone_campaign(
                workspace.id,
                campaign_id,
                name=name,
                request=keyed(request, "cloneCampaign", body),
                render=lambda made: answer_of(write_campaign_copy(made, now=engine.now())),
                actor=ACTOR,
            )
        except InvalidRequest as error:
            raise InvalidRequest(details=in_update_names(error.details)) from None
        return created_response(answer)


class FollowUpCampaign(HTTPEndpoint):
    """Make a campaign of those who had given results in another one."""

    async def post(self, request: Request) -> Response:
        """Create a campaign of these contacts, and return it with whom it leaves out."""
        workspace = await admit(request, "followUpCampaign")
        engine = server_of(request).engine
        campaign_id = path_id(request, "campaign")
        new, body = await read_body(request, read_new_follow_up)
        try:
            answer = await engine.http.follow_up_campaign(
                workspace.id,
                campaign_id,
                new,
                request=keyed(request, "followUpCampaign", body),
                render=lambda made: answer_of(write_follow_up(made, now=engine.now())),
                actor=ACTOR,
            )
        except InvalidRequest as error:
            raise InvalidRequest(details=in_update_names(error.details)) from None
        return created_response(answer)


class _Placing(HTTPEndpoint):
    operation: ClassVar[str]
    archived: ClassVar[bool]

    async def post(self, request: Request) -> Response:
        """Hide the campaign from lists or bring it back, and return it."""
        workspace = await admit(request, self.operation)
        engine = server_of(request).engine
        campaign_id = path_id(request, "campaign")
        body = await refuse_body(request)
        answer = await engine.http.archive_campaign(
            workspace.id,
            campaign_id,
            archived=self.archived,
            request=keyed(request, self.operation, body),
            render=lambda campaign: answer_of(write_managed_campaign(campaign, now=engine.now())),
            actor=ACTOR,
        )
        return Response(answer.body, media_type=JSON)


class ArchiveCampaign(_Placing):
    """Put a campaign away."""

    operation, archived = "archiveCampaign", True


class UnarchiveCampaign(_Placing):
    """Bring an archived campaign back."""

    operation, archived = "unarchiveCampaign", False
