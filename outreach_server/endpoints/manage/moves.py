"""/manage/campaigns/{id}/start and the other moves of a campaign, archiving among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import NotFound
from outreach.errors import CannotStart, Problem
from outreach.http import in_update_names, read_campaign_start, write_managed_campaign
from outreach_server.bodies.body import Body
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, path_id, read_optional_body, refuse_body
from outreach_server.errors import answer_once

_WARNED_OF: Final = frozenset({"start", "resume"})


class _Move(HTTPEndpoint):
    method: ClassVar[str]
    """The name of the service's method; the operation is called `startCampaign`, and so on."""

    async def post(self, request: Request) -> Response:
        """Move the campaign, and return it as it is then."""
        operation = f"{self.method}Campaign"
        workspace = await admit(request, operation)
        engine = server_of(request).engine
        campaign_id = path_id(request, "campaign")
        options, body = await self.read(request)
        move = getattr(engine.campaigns, self.method)
        warnings: Sequence[Problem] = ()
        if self.method in _WARNED_OF:
            # Where the campaign is gone, a used key still replays its answer.
            with suppress(NotFound):
                warnings = await engine.campaigns.start_warnings(workspace.id, campaign_id)
        try:
            return await answer_once(
                body,
                operation,
                lambda key: move(workspace.id, campaign_id, idempotency_key=key, actor=ACTOR, **options),
                lambda campaign: write_managed_campaign(campaign, now=engine.now(), warnings=warnings),
                status=200,
            )
        except CannotStart as error:
            raise CannotStart(in_update_names(error.details)) from None

    async def read(self, request: Request) -> tuple[Mapping[str, bool], Body]:
        """Return the method's options, and the body."""
        return {}, await refuse_body(request)


class StartCampaign(_Move):
    """Start a campaign."""

    method = "start"

    async def read(self, request: Request) -> tuple[Mapping[str, bool], Body]:
        """Return whether placeholders without a value are allowed, and the body."""
        allow, body = await read_optional_body(request, read_campaign_start, default=False)
        return {"allow_unknown_placeholders": allow}, body


class UnscheduleCampaign(_Move):
    """Take a scheduled campaign back."""

    method = "unschedule"


class PauseCampaign(_Move):
    """Pause a campaign."""

    method = "pause"


class ResumeCampaign(_Move):
    """Resume a campaign."""

    method = "resume"


class CancelCampaign(_Move):
    """Cancel a campaign."""

    method = "cancel"


class CloseCampaign(_Move):
    """Let a campaign that stays open complete."""

    method = "close"


class ArchiveCampaign(_Move):
    """Hide a campaign from lists."""

    method = "archive"


class UnarchiveCampaign(_Move):
    """Bring an archived campaign back into the lists."""

    method = "unarchive"
