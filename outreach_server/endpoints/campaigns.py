"""/campaigns and /sms-campaigns."""

from __future__ import annotations

import logging
from typing import ClassVar, Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import CampaignCreated, InvalidRequest, NewCallCampaign, NewSmsCampaign, NotFound, Workspace
from outreach.errors import StorageError
from outreach.http import IdempotentRequest, in_json_names, write_campaign_created
from outreach.models import CampaignFilters, Channel
from outreach_server.auth import authenticate_request
from outreach_server.bodies.body import Chunks, parsed_campaign, receive_body
from outreach_server.bodies.query import read_list_query
from outreach_server.bodies.reading import ParseOptions
from outreach_server.context import Server, server_of
from outreach_server.errors import JSON, answer_once

_log = logging.getLogger(__name__)

_MAX_NAME_LENGTH: Final = 40
_MAX_NAMES: Final = 10


class Campaigns(HTTPEndpoint):
    """List and create campaigns of both channels (docs/interface.md#campaigns)."""

    list_operation: ClassVar[str] = "listCampaigns"
    create_operation: ClassVar[str] = "createCampaign"
    channel: ClassVar[Channel | None] = None
    """The only channel; None where a body names it."""

    @classmethod
    async def list(cls, request: Request) -> Response:
        """List campaigns, newest first.

        Raises:
            OutreachError: The request is refused.
        """
        workspace = await authenticate_request(request, cls.list_operation)
        query = read_list_query(request.scope["query_string"])
        filters: CampaignFilters = {**query.filters, "channel": cls.channel}
        found = await server_of(request).engine.http.list_campaigns(
            workspace.id, page=query.page, page_size=query.page_size, **filters
        )
        body = b'{"data":%b,"pagination":{"page":%b,"page_size":%d,"total":%d}}' % (
            found.items,
            query.page_echo,
            found.page_size,
            found.total,
        )
        return Response(body, media_type=JSON)

    async def get(self, request: Request) -> Response:
        """Return a page of the list."""
        return await self.list(request)

    async def post(self, request: Request) -> Response:
        """Create a campaign with its contacts, without starting it."""
        is_sms = self.channel == "sms"
        workspace = await authenticate_request(request, self.create_operation, sms_campaigns=is_sms)
        server = server_of(request)
        reading = ParseOptions(
            channel_from_body=self.channel is None,
            sms_campaigns_enabled=workspace.sms_campaigns_enabled,
            default_region=workspace.default_region,
            this_year=server.engine.now().year,
            carriers=server.carriers,
        )
        # Before the key is claimed, because reading a large body may take longer than a claim lasts.
        async with (
            receive_body(request) as body,
            parsed_campaign(server, body, reading, workspace_id=workspace.id) as (campaign, chunks),
        ):
            return await answer_once(
                body,
                self.create_operation,
                lambda key: _create(server, workspace, campaign, chunks, key),
                lambda created: write_campaign_created(created, now=server.engine.now()),
            )


class SmsCampaigns(Campaigns):
    """List and create SMS campaigns (docs/interface.md#4.2 and #4.3)."""

    list_operation = "listSmsCampaigns"
    create_operation = "createSmsCampaign"
    channel = "sms"


async def _create(
    server: Server,
    workspace: Workspace,
    campaign: NewSmsCampaign | NewCallCampaign,
    chunks: Chunks,
    key: IdempotentRequest[CampaignCreated],
) -> CampaignCreated:
    campaigns = server.engine.campaigns
    if isinstance(campaign, NewSmsCampaign):
        try:
            created = await campaigns.create_sms(workspace.id, campaign, chunks, idempotency_key=key, actor="api")
        except InvalidRequest as error:
            raise in_json_names(error) from None
        except NotFound as error:
            # An SMS campaign refers to nothing that could be missing, so the campaign itself is gone, and the interface
            # has no 404 here.
            raise StorageError("The campaign was deleted while its contacts were being loaded.") from error
    else:
        created = await campaigns.create_call(workspace.id, campaign, chunks, idempotency_key=key, actor="api")
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
