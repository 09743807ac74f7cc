"""What POST /sms-campaigns and POST /campaigns share."""

from __future__ import annotations

import logging
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from outreach import CampaignCreated, InvalidRequest, NewSmsCampaign, NotFound, Workspace
from outreach.errors import StorageError
from outreach.http import IdempotentRequest, in_json_names, write_campaign_created
from outreach_server.bodies.body import receive_body
from outreach_server.bodies.preparation import PreparedCampaign, prepared_campaign
from outreach_server.bodies.reading import ParseOptions
from outreach_server.context import Server, server_of
from outreach_server.replies import answer_once

_log = logging.getLogger(__name__)

_MAX_NAME_LENGTH: Final = 40
_MAX_NAMES: Final = 10


async def create_campaign(
    request: Request, workspace: Workspace, *, operation: str, channel_from_body: bool
) -> Response:
    """Create a campaign with its contacts.

    Args:
        request: The request.
        workspace: The workspace.
        operation: The operation's name, which scopes its idempotency keys.
        channel_from_body: Whether the body names the channel; otherwise it is SMS.

    Raises:
        OutreachError: The request is refused.
    """
    server = server_of(request)
    reading = ParseOptions(
        channel_from_body=channel_from_body,
        sms_campaigns_enabled=workspace.sms_campaigns_enabled,
        default_region=workspace.default_region,
        this_year=server.engine.now().year,
        carriers=server.carriers,
    )
    # Before the key is claimed, because reading a large body may take longer than a claim lasts.
    async with (
        receive_body(request) as body,
        prepared_campaign(server, body, reading, workspace_id=workspace.id) as prepared,
    ):
        return await answer_once(
            body,
            operation,
            lambda key: _create(server, workspace, prepared, key),
            lambda created: write_campaign_created(created, now=server.engine.now()),
        )


async def _create(
    server: Server, workspace: Workspace, prepared: PreparedCampaign, key: IdempotentRequest[CampaignCreated]
) -> CampaignCreated:
    campaigns = server.engine.campaigns
    if isinstance(prepared.campaign, NewSmsCampaign):
        try:
            created = await campaigns.create_sms(
                workspace.id, prepared.campaign, prepared.chunks, idempotency_key=key, actor="api"
            )
        except InvalidRequest as error:
            raise in_json_names(error) from None
        except NotFound as error:
            # An SMS campaign refers to nothing that could be missing, so the campaign itself is gone, and the interface
            # has no 404 here.
            raise StorageError("The campaign was deleted while its contacts were being loaded.") from error
    else:
        created = await campaigns.create_call(
            workspace.id, prepared.campaign, prepared.chunks, idempotency_key=key, actor="api"
        )
    _warn_of_blanks(created)
    return created


def _warn_of_blanks(created: CampaignCreated) -> None:
    """Log placeholders without a value; the response has no field for them."""
    unknown = created.unknown_placeholders
    if unknown:
        _log.warning(
            "campaign has %d placeholder(s) without a value: %s: %s",
            len(unknown),
            created.campaign.id,
            # repr, because the text between braces may be anything.
            ", ".join(repr(name[:_MAX_NAME_LENGTH]) for name in unknown[:_MAX_NAMES]),
            extra={"action": "unknown_placeholders", "campaign_id": created.campaign.id},
        )
