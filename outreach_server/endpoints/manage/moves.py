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
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, path_id, read_optional_body, refuse_body
from outreach_server.errors import answer_once

_WARNED_OF: Final = frozenset({"start", "resume"})


class Move(HTTPEndpoint):
    """Move a campaign."""

    operation: ClassVar[str]
    method: ClassVar[str]
    """The name of the service's method."""

    async def post(self, request: Request) -> Response:
        """Move the campaign, and return it as it is then."""
        workspace = await admit(request, self.operation)
        engine = server_of(request).engine
        campaign_id = path_id(request, "campaign")
        options: Mapping[str, bool] = {}
        if self.method == "start":
            allow, body = await read_optional_body(request, read_campaign_start, default=False)
            options = {"allow_unknown_placeholders": allow}
        else:
            body = await refuse_body(request)
        move = getattr(engine.campaigns, self.method)
        warnings: Sequence[Problem] = ()
        if self.method in _WARNED_OF:
            # Where the campaign is gone, a used key still replays its answer.
            with suppress(NotFound):
                warnings = await engine.campaigns.start_warnings(workspace.id, campaign_id)
        try:
            return await answer_once(
                body,
                self.operation,
                lambda key: move(workspace.id, campaign_id, idempotency_key=key, actor=ACTOR, **options),
                lambda campaign: write_managed_campaign(campaign, now=engine.now(), warnings=warnings),
                status=200,
            )
        except CannotStart as error:
            raise CannotStart(in_update_names(error.details)) from None


MOVES: Final = {
    name: (f"{name}Campaign", name)
    for name in ("start", "unschedule", "pause", "resume", "cancel", "close", "archive", "unarchive")
}
"""The operation and the service's method of each move, by the end of its path."""
