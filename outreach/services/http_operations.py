"""What an application needs that serves the engine over HTTP itself: stored responses, the list as bytes, the limit.

Each operation here does what the service's method of nearly the same name does, under an Idempotency-Key: the response
that `render` makes of the result is stored in the transaction of the operation, and a repeated key returns it, byte by
byte. `outreach_server` is such an application. Who calls the engine from a program needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outreach.errors import ErrorDetail
from outreach.models.base import Channel, JsonPage
from outreach.models.call import Call, NewCall
from outreach.models.campaign import (
    Campaign,
    CampaignCreated,
    FollowUpCreated,
    NewCallCampaign,
    NewFollowUp,
    NewSmsCampaign,
)
from outreach.models.message import Message, NewMessage, NewTestMessage
from outreach.models.resources import Agent, Flow, NewAgent, NewFlow, NewNumber, Number
from outreach.models.states import CampaignAction, CampaignStatus
from outreach.models.unsubscribe import NewUnsubscribes, Unsubscribe
from outreach.models.work import IdempotentRequest, RateLimitState, StoredAnswer
from outreach.models.workspace import Workspace
from outreach.services.agents import Agents
from outreach.services.calls import Calls
from outreach.services.campaigns import Campaigns, numbered_page
from outreach.services.contacts import RecipientSource
from outreach.services.flows import Flows
from outreach.services.messages import Messages
from outreach.services.numbers import Numbers
from outreach.services.rate_limits import RateLimiter
from outreach.services.unsubscribes import Unsubscribes


class HttpOperations:
    """Operations with a stored response: `Outreach.http`.

    `request` is the request with its Idempotency-Key, None without a key. Every operation also raises
    `InvalidRequest` where the key was used with other content or its response named somebody who was purged since,
    and `RequestInProgress` while the first request with it is still running.
    """

    def __init__(
        self,
        *,
        agents: Agents,
        calls: Calls,
        campaigns: Campaigns,
        flows: Flows,
        messages: Messages,
        numbers: Numbers,
        unsubscribes: Unsubscribes,
        rate_limits: RateLimiter,
    ) -> None:
        self._agents = agents
        self._calls = calls
        self._campaigns = campaigns
        self._flows = flows
        self._messages = messages
        self._numbers = numbers
        self._unsubscribes = unsubscribes
        self._rate_limits = rate_limits

    async def count_request(self, workspace: Workspace) -> RateLimitState | None:
        """Count a request against its workspace's limit; return what is left, None without a limit.

        Raises:
            RateLimited: The limit is reached.
            StorageBusy: The database takes no writes, and the allowance for that is used up.
        """
        return await self._rate_limits.acquire(workspace)

    async def list_campaigns(
        self,
        workspace_id: str,
        *,
        channel: Channel | None = None,
        status: CampaignStatus | None = None,
        search: str | None = None,
        page: int = 1,
        page_size: int = 20,
    ) -> JsonPage:
        """Return a page of campaigns as JSON with the interface's fields, newest first, archived ones among them.

        A rendered page is reused until any process changes what it shows.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: An argument is invalid.
        """
        asked = numbered_page(workspace_id, channel, status, search, page, page_size)
        return await self._campaigns._pages.get(asked)

    async def create_agent(
        self,
        workspace_id: str,
        new: NewAgent,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Agent], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        """Create an agent.

        Raises:
            OutreachError: See `agents.create`.
        """
        return await self._agents._create_response(workspace_id, new, request=request, render=render, actor=actor)

    async def create_call(
        self,
        workspace_id: str,
        new: NewCall,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Call], StoredAnswer],
    ) -> StoredAnswer:
        """Queue a call.

        Raises:
            OutreachError: See `calls.create`.
        """
        return await self._calls._create_response(workspace_id, new, request=request, render=render)

    async def create_sms_campaign(
        self,
        workspace_id: str,
        campaign: NewSmsCampaign,
        recipients: RecipientSource,
        *,
        request: IdempotentRequest | None,
        render: Callable[[CampaignCreated], StoredAnswer],
        actor: str,
    ) -> StoredAnswer:
        """Create an SMS campaign.

        Raises:
            OutreachError: See `campaigns.create_sms`.
        """
        return await self._campaigns._create_sms_response(
            workspace_id, campaign, recipients, request=request, render=render, actor=actor
        )

    async def create_call_campaign(
        self,
        workspace_id: str,
        campaign: NewCallCampaign,
        recipients: RecipientSource,
        *,
        request: IdempotentRequest | None,
        render: Callable[[CampaignCreated], StoredAnswer],
        actor: str,
    ) -> StoredAnswer:
        """Create a calling campaign.

        Raises:
            OutreachError: See `campaigns.create_call`.
        """
        return await self._campaigns._create_call_response(
            workspace_id, campaign, recipients, request=request, render=render, actor=actor
        )

    async def move_campaign(
        self,
        workspace_id: str,
        campaign_id: str,
        action: CampaignAction,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Campaign, Sequence[ErrorDetail]], StoredAnswer],
        allow_unknown_placeholders: bool = False,
        actor: str = "library",
    ) -> StoredAnswer:
        """Start, unschedule, pause, resume or cancel a campaign.

        `render` also gets the warnings of a start or a resume (`campaigns.start_warnings`).

        Raises:
            OutreachError: See `campaigns.start`, `unschedule`, `pause`, `resume` and `cancel`.
            InvalidRequest: The action is none of these.
        """
        return await self._campaigns._move_response(
            workspace_id,
            campaign_id,
            action,
            request=request,
            render=render,
            allow_unknown_placeholders=allow_unknown_placeholders,
            actor=actor,
        )

    async def archive_campaign(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        archived: bool,
        request: IdempotentRequest | None,
        render: Callable[[Campaign], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        """Archive a campaign, or bring it back.

        Raises:
            OutreachError: See `campaigns.archive` and `campaigns.unarchive`.
        """
        return await self._campaigns._archive_response(
            workspace_id, campaign_id, archived=archived, request=request, render=render, actor=actor
        )

    async def clone_campaign(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        name: str | None,
        request: IdempotentRequest | None,
        render: Callable[[CampaignCreated], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        """Clone a campaign.

        Raises:
            OutreachError: See `campaigns.clone`.
        """
        return await self._campaigns._clone_response(
            workspace_id, campaign_id, name=name, request=request, render=render, actor=actor
        )

    async def follow_up_campaign(
        self,
        workspace_id: str,
        campaign_id: str,
        new: NewFollowUp,
        *,
        request: IdempotentRequest | None,
        render: Callable[[FollowUpCreated], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        """Follow a campaign up.

        Raises:
            OutreachError: See `campaigns.follow_up`.
        """
        return await self._campaigns._follow_up_response(
            workspace_id, campaign_id, new, request=request, render=render, actor=actor
        )

    async def create_flow(
        self,
        workspace_id: str,
        new: NewFlow,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Flow], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        """Create a flow.

        Raises:
            OutreachError: See `flows.create`.
        """
        return await self._flows._create_response(workspace_id, new, request=request, render=render, actor=actor)

    async def send_message(
        self,
        workspace_id: str,
        new: NewMessage,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Message], StoredAnswer],
    ) -> StoredAnswer:
        """Queue a message.

        Raises:
            OutreachError: See `messages.send`.
        """
        return await self._messages._send_response(workspace_id, new, request=request, render=render)

    async def send_test_message(
        self,
        workspace_id: str,
        campaign_id: str,
        new: NewTestMessage,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Message], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        """Send a test message.

        Raises:
            OutreachError: See `messages.send_test`.
        """
        return await self._messages._send_test_response(
            workspace_id, campaign_id, new, request=request, render=render, actor=actor
        )

    async def create_number(
        self,
        workspace_id: str,
        new: NewNumber,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Number], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        """Add a number.

        Raises:
            OutreachError: See `numbers.create`.
        """
        return await self._numbers._create_response(workspace_id, new, request=request, render=render, actor=actor)

    async def add_unsubscribes(
        self,
        workspace_id: str,
        new: NewUnsubscribes,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Sequence[Unsubscribe]], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        """Unsubscribe numbers.

        Raises:
            OutreachError: See `unsubscribes.add`.
        """
        return await self._unsubscribes._add_response(workspace_id, new, request=request, render=render, actor=actor)

    async def resolve_unsubscribe(
        self,
        workspace_id: str,
        phone: str,
        *,
        opted_out: bool,
        request: IdempotentRequest | None,
        render: Callable[[Unsubscribe], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        """Decide on a held number.

        Raises:
            OutreachError: See `unsubscribes.resolve`.
        """
        return await self._unsubscribes._resolve_response(
            workspace_id, phone, opted_out=opted_out, request=request, render=render, actor=actor
        )
