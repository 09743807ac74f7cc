"""The providers' reasons for failed requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from outreach.ledger.campaigns.failures import explained_failure, is_failure, leaves_acceptance_open
from outreach.ledger.common import campaign_of
from outreach.models.call import Call
from outreach.models.campaign import NewRecipient, Recipient
from outreach.models.dispatch import Dispatch, DispatchCount
from outreach.models.fields import check_field
from outreach.models.message import Message
from outreach.models.reports import ProviderFailure, RecipientOutcome
from outreach.models.states import CallStatus, DispatchState, RecipientStatus
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

_BATCH: Final = 500


async def message_failure(context: ServiceContext, message: Message) -> ProviderFailure | None:
    """Return the carrier's last failure of a single message; None if nothing went wrong."""

    def operation(tx: Transaction) -> ProviderFailure | None:
        last = last_failure(tx.dispatches.of_message(message.workspace_id, message.id))
        return last or _given_up(message.carrier, message.reason)

    return await context.storage.read(operation)


async def call_failure(context: ServiceContext, call: Call) -> ProviderFailure | None:
    """Return the voice provider's last failure of a call; None if nothing went wrong."""

    def operation(tx: Transaction) -> ProviderFailure | None:
        last = last_failure(tx.dispatches.of_call(call.workspace_id, call.id), call)
        return last or _given_up(call.provider, call.error)

    return await context.storage.read(operation)


class CampaignResults:
    """The provider failures of campaigns, in the provider's words and in plain English."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def recipient_failures(
        self, workspace_id: str, campaign_id: str, position: int
    ) -> dict[str, ProviderFailure]:
        """Return the failures of a recipient's requests, by dispatch id.

        Raises:
            NotFound: The workspace has no such campaign.
        """

        def operation(tx: Transaction) -> dict[str, ProviderFailure]:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            dispatches = tx.dispatches.of_recipient(workspace_id, campaign.id, position)
            found = {one.id: last_failure([one], _call_of(tx, one)) for one in dispatches}
            return {identifier: failure for identifier, failure in found.items() if failure is not None}

        return await self._context.storage.read_ledger(workspace_id, campaign_id, operation)

    async def provider_failures(self, workspace_id: str, campaign_id: str) -> Sequence[tuple[ProviderFailure, int]]:
        """Return what went wrong in a campaign with the number of requests, most frequent first.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return [
            (_failure(one.provider, one.reason, one.error_code, one.error_message, one.state), one.count)
            for one in await self.count_dispatches(workspace_id, campaign_id)
            if is_failure(one)
        ]

    async def count_dispatches(self, workspace_id: str, campaign_id: str) -> Sequence[DispatchCount]:
        """Return how many requests of a campaign had each outcome, most frequent first.

        This reads every request: with millions it takes seconds.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read_ledger(
            workspace_id,
            campaign_id,
            lambda tx: tx.dispatches.groups(workspace_id, campaign_of(tx, workspace_id, campaign_id).id),
        )

    async def iter_outcomes(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        status: RecipientStatus | None = None,
        external_id: str | None = None,
    ) -> AsyncIterator[RecipientOutcome]:
        """Iterate over a campaign's recipients by position, each with its provider failure, if any.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            status: Only recipients in this state; None for all.
            external_id: Only recipients that the application knows by this id (at most 500); None for all.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: The id is no text of 1 to 255 characters.
        """
        check_field(NewRecipient, "external_id", external_id)
        after = -1
        while True:

            def operation(tx: Transaction, after: int = after) -> tuple[Sequence[RecipientOutcome], int | None]:
                campaign = campaign_of(tx, workspace_id, campaign_id)
                if external_id is not None:
                    rows = tx.recipients.with_external_id(
                        workspace_id, external_id, campaign_id=campaign.id, limit=_BATCH
                    )
                else:
                    rows = tx.recipients.page(workspace_id, campaign.id, after=after, limit=_BATCH)
                wanted = [_outcome(tx, workspace_id, row) for row in rows if status in {None, row.status}]
                more = external_id is None and len(rows) == _BATCH
                return wanted, rows[-1].position if more else None

            batch, last = await self._context.storage.read_ledger(workspace_id, campaign_id, operation)
            for outcome in batch:
                yield outcome
            if last is None:
                return
            after = last


def _outcome(tx: Transaction, workspace_id: str, recipient: Recipient) -> RecipientOutcome:
    if not (recipient.dispatched or recipient.tries or recipient.attempts):
        return RecipientOutcome(recipient=recipient, failure=None)
    dispatches = tx.dispatches.of_recipient(workspace_id, recipient.campaign_id, recipient.position)
    failure = None
    if recipient.status is not RecipientStatus.COMPLETED:
        failure = last_failure(dispatches, _call_of(tx, dispatches[-1]) if dispatches else None)
    return RecipientOutcome(recipient=recipient, failure=failure, report=dispatches[-1].report if dispatches else None)


def _call_of(tx: Transaction, dispatch: Dispatch) -> Call | None:
    return None if dispatch.call_id is None else tx.calls.get(dispatch.workspace_id, dispatch.call_id)


def _given_up(provider: str, reason: str | None) -> ProviderFailure | None:
    """Return why a message or call had no accepted request, from its `reason`."""
    if reason is None:
        return None
    return explained_failure(provider, reason, None, False, None)


def last_failure(dispatches: Sequence[Dispatch], call: Call | None = None) -> ProviderFailure | None:
    """Return what the provider said of the last of some requests; None if it has not failed."""
    # A withdrawn request never reached the provider.
    last = next((one for one in reversed(dispatches) if one.state is not DispatchState.WITHDRAWN), None)
    if last is None:
        return None
    code = last.error_code
    if code is None and call is not None and call.status in {CallStatus.FAILED, CallStatus.CANCELED}:
        code = call.error
    if last.reason is None and code is None:
        return None
    return _failure(last.provider, last.reason, code, last.error_message, last.state)


def _failure(
    provider: str, reason: str | None, code: str | None, error_message: str | None, state: DispatchState
) -> ProviderFailure:
    return explained_failure(provider, reason, code, leaves_acceptance_open(state, reason), error_message)
