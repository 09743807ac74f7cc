"""/manage/campaigns/{id}/start and the other moves of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import Campaign
from outreach.errors import CannotStart, ErrorDetail
from outreach.http import StoredAnswer, in_update_names, read_campaign_start, write_managed_campaign
from outreach.models import CampaignAction
from outreach_server.body import Body
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, keyed, path_id, read_optional_body, refuse_body
from outreach_server.replies import JSON, answer_of


class _Move(HTTPEndpoint):
    operation: ClassVar[str]
    action: ClassVar[CampaignAction]

    async def post(self, request: Request) -> Response:
        """Move the campaign, and return it as it is then."""
        workspace = await admit(request, self.operation)
        engine = server_of(request).engine
        campaign_id = path_id(request, "campaign")
        allow, body = await self.read(request)

        def render(campaign: Campaign, warnings: Sequence[ErrorDetail]) -> StoredAnswer:
            return answer_of(write_managed_campaign(campaign, now=engine.now(), warnings=warnings))

        try:
            answer = await engine.http.move_campaign(
                workspace.id,
                campaign_id,
                self.action,
                request=keyed(request, self.operation, body),
                render=render,
                allow_unknown_placeholders=allow,
                actor=ACTOR,
            )
        except CannotStart as error:
            raise CannotStart(in_update_names(error.details)) from None
        return Response(answer.body, media_type=JSON)

    async def read(self, request: Request) -> tuple[bool, Body]:
        """Return whether placeholders without a value are allowed, and the body."""
        return False, await refuse_body(request)


class StartCampaign(_Move):
    """Start a campaign."""

    operation, action = "startCampaign", CampaignAction.START

    async def read(self, request: Request) -> tuple[bool, Body]:
        """Return whether placeholders without a value are allowed, and the body."""
        return await read_optional_body(request, read_campaign_start, default=False)


class UnscheduleCampaign(_Move):
    """Take a scheduled campaign back."""

    operation, action = "unscheduleCampaign", CampaignAction.UNSCHEDULE


class PauseCampaign(_Move):
    """Pause a campaign."""

    operation, action = "pauseCampaign", CampaignAction.PAUSE


class ResumeCampaign(_Move):
    """Resume a campaign."""

    operation, action = "resumeCampaign", CampaignAction.RESUME


class CancelCampaign(_Move):
    """Cancel a campaign."""

    operation, action = "cancelCampaign", CampaignAction.CANCEL
