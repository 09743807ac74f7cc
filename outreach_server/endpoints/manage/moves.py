"""/manage/campaigns/{id}/start and the other moves of campaigns, schedules and webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from outreach import NotFound
from outreach.errors import CannotStart, Problem
from outreach.http import (
    SCHEDULE_BODIES,
    WEBHOOK_BODIES,
    ResourceBodies,
    in_update_names,
    read_campaign_start,
    write_managed_campaign,
)
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, path_id, read_optional_body, refuse_body
from outreach_server.errors import answer_once, json_response

_WARNED_OF: Final = frozenset({"start", "resume"})


class Move(HTTPEndpoint):
    """Change the state of a resource.

    Attributes:
        kind: What is changed, such as `schedule`.
        bodies: How its bodies are written.
        has_key: Whether the operation takes an `Idempotency-Key`.
        operation: The `operationId`.
        method: The name of the service's method.
    """

    kind: ClassVar[str]
    bodies: ClassVar[ResourceBodies[Any, Any]]
    has_key: ClassVar[bool] = True
    operation: ClassVar[str]
    method: ClassVar[str]

    async def post(self, request: Request) -> Response:
        """Change the resource, and return it as it is then."""
        workspace = await admit(request, self.operation)
        identifier = path_id(request, self.kind)
        body = await refuse_body(request)
        service = getattr(server_of(request).engine, f"{self.kind}s")
        move = partial(getattr(service, self.method), workspace.id, identifier, actor=ACTOR)
        write = self.bodies.write
        if not self.has_key:
            return json_response(write(await move()))
        return await answer_once(body, self.operation, lambda key: move(idempotency_key=key), write, status=200)


class ScheduleMove(Move):
    """Change the state of a schedule."""

    kind = "schedule"
    bodies = SCHEDULE_BODIES


class WebhookMove(Move):
    """Change the state of an endpoint."""

    kind = "webhook"
    bodies = WEBHOOK_BODIES
    has_key = False


class CampaignMove(Move):
    """Move a campaign, with what has to be known before a start."""

    kind = "campaign"

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


_MOVES: Final[Mapping[type[Move], Mapping[str, tuple[str, str]]]] = {
    CampaignMove: {
        name: (f"{name}Campaign", name)
        for name in ("start", "unschedule", "pause", "resume", "cancel", "close", "archive", "unarchive")
    },
    ScheduleMove: {
        "pause": ("pauseSchedule", "pause"),
        "resume": ("resumeSchedule", "resume"),
        "run": ("runSchedule", "run_now"),
        "skip-next": ("skipNextRun", "skip_next"),
    },
    WebhookMove: {name: (f"{name}Webhook", name) for name in ("pause", "enable", "test")},
}
"""The operation and the service's method of each move, by the end of its path."""

# Metrics know an operation by the name of its endpoint.
MOVE_ROUTES: Final = tuple(
    Route(
        f"/manage/{base.kind}s/{{id}}/{end}",
        type(operation[0].upper() + operation[1:], (base,), {"operation": operation, "method": method}),
    )
    for base, moves in _MOVES.items()
    for end, (operation, method) in moves.items()
)
