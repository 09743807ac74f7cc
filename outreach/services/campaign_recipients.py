"""The recipients of campaigns: lists of them, and what happened to each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from outreach.errors import InvalidRequest, NotFound
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient, RecipientCount
from outreach.models.states import RecipientStatus
from outreach.models.trail import ContactHistory
from outreach.operations.campaigns.histories import histories, histories_of_external_id, history_at, with_phone
from outreach.operations.common import campaign_of, workspace_of
from outreach.services.contacts import MAX_EXTERNAL_ID
from outreach.services.context import ServiceContext
from outreach.services.ledgers import read_ledger
from outreach.services.validation import check_choice, check_integer, check_limit, check_name, require_text
from outreach.working_set import Transaction

_BATCH: Final = 500
_MAX_POSITION: Final = 2**63 - 1
_MAX_OF_ONE_ID: Final = 1000


class CampaignRecipients:
    """The recipients of campaigns."""

    _context: ServiceContext

    async def iter_recipients(self, workspace_id: str, campaign_id: str) -> AsyncIterator[Recipient]:
        """Iterate over a campaign's recipients by position.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        await self._context.storage.read(lambda tx: campaign_of(tx, workspace_id, campaign_id))
        after = -1
        while True:
            start = after
            batch = await read_ledger(
                self._context,
                workspace_id,
                campaign_id,
                lambda tx, start=start: tx.recipients.page(  # type: ignore[misc]
                    workspace_id, campaign_id, after=start, limit=_BATCH
                ),
            )
            for recipient in batch:
                yield recipient
            if len(batch) < _BATCH:
                return
            after = batch[-1].position

    async def list_recipients(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        status: RecipientStatus | None = None,
        reason: str | None = None,
        phone: str | None = None,
        external_id: str | None = None,
        after: int = -1,
        limit: int = 1000,
    ) -> Sequence[Recipient]:
        """Return recipients by position.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            status: Only those in this state; None for any.
            reason: Only those that wait or have ended for this reason; None for any.
            phone: Only those with this number, in any notation, or as supplied if it is none; None for any.
            external_id: Only those that the application knows by this id, of the first 1,000; None for any.
            after: Only positions greater than this one, such as that of the last recipient of the page before.
            limit: The largest number of recipients.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: An argument is invalid.
        """
        if status is not None:
            check_choice("status", status, tuple(RecipientStatus))
        if reason is not None and not isinstance(reason, str):
            raise InvalidRequest.at("reason", f"must be a text, not {type(reason).__name__}")
        if phone is not None:
            require_text("phone", phone)
        if external_id is not None:
            check_name("external_id", external_id, MAX_EXTERNAL_ID)
        check_integer("after", after, -1, _MAX_POSITION)
        check_limit(limit)

        def fits(one: Recipient) -> bool:
            return (
                one.position > after
                and status in {None, one.status}
                and reason in {None, one.reason}
                and external_id in {None, one.external_id}
            )

        def operation(tx: Transaction) -> Sequence[Recipient]:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            if phone is not None:
                return [one for one in with_phone(tx, campaign, phone) if fits(one)][:limit]
            if external_id is not None:
                known = tx.recipients.with_external_id(
                    workspace_id, external_id, campaign_id=campaign_id, limit=_MAX_OF_ONE_ID
                )
                return [one for one in known if fits(one)][:limit]
            return tx.recipients.page(workspace_id, campaign_id, status=status, reason=reason, after=after, limit=limit)

        return await read_ledger(self._context, workspace_id, campaign_id, operation)

    async def get_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Recipient:
        """Return the recipient at a position of a campaign's list, from 0.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such recipient.
        """

        def operation(tx: Transaction) -> Recipient | None:
            campaign_of(tx, workspace_id, campaign_id)
            return tx.recipients.get(workspace_id, campaign_id, position)

        check_integer("position", position, 0, _MAX_POSITION)
        recipient = await read_ledger(self._context, workspace_id, campaign_id, operation)
        if recipient is None:
            raise NotFound("recipient", str(position))
        return recipient

    async def recipients(
        self, workspace_id: str, *, external_id: str, campaign_id: str | None = None, limit: int = 100
    ) -> Sequence[Recipient]:
        """Return the recipients that the application knows by an id, the newest campaign first.

        Without a campaign, those of archived campaigns are left out.

        Args:
            workspace_id: The workspace.
            external_id: The id, as supplied with the contact.
            campaign_id: Of this campaign only; None for all of the workspace.
            limit: The most to return.

        Raises:
            NotFound: There is no such workspace or campaign.
            InvalidRequest: The id is no text of 1 to 255 characters, or the limit is not positive.
        """
        check_name("external_id", external_id, MAX_EXTERNAL_ID)
        check_limit(limit)

        def operation(tx: Transaction) -> Sequence[Recipient]:
            workspace_of(tx, workspace_id)
            if campaign_id is not None:
                campaign_of(tx, workspace_id, campaign_id)
            return tx.recipients.with_external_id(workspace_id, external_id, campaign_id=campaign_id, limit=limit)

        if campaign_id is not None:
            return await read_ledger(self._context, workspace_id, campaign_id, operation)
        return await self._context.storage.read(operation)

    async def count_recipients(self, workspace_id: str, campaign_id: str) -> Sequence[RecipientCount]:
        """Return how many recipients are in each state for each reason.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await read_ledger(
            self._context,
            workspace_id,
            campaign_id,
            lambda tx: tx.recipients.groups(workspace_id, campaign_of(tx, workspace_id, campaign_id).id),
        )

    async def dispatches(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[Dispatch]:
        """Return the dispatches of one recipient, oldest first.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await read_ledger(
            self._context,
            workspace_id,
            campaign_id,
            lambda tx: tx.dispatches.of_recipient(
                workspace_id, campaign_of(tx, workspace_id, campaign_id).id, position
            ),
        )

    async def recipient_history(self, workspace_id: str, campaign_id: str, position: int) -> ContactHistory:
        """Return what happened to the recipient at a position, step by step, with reasons and rules.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such recipient.
        """
        check_integer("position", position, 0, _MAX_POSITION)
        return await read_ledger(
            self._context, workspace_id, campaign_id, lambda tx: history_at(tx, workspace_id, campaign_id, position)
        )

    async def contact_history(
        self, workspace_id: str, campaign_id: str, phone: str | None = None, *, external_id: str | None = None
    ) -> Sequence[ContactHistory]:
        """Return what happened to a contact in a campaign, step by step, with reasons and rules.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            phone: The number in any notation; a local one is read in the workspace's default region, an invalid one is
                searched as supplied.
            external_id: The application's own name of the contact, instead of its number.

        Returns:
            A history for each position of the number or id: it can occur twice. A number excluded at creation because
            it was unsubscribed has one history without a `position`.

        Raises:
            NotFound: The workspace has no such campaign, or the number is neither in it nor unsubscribed, or the id is
                not in it.
            InvalidRequest: Not exactly one of both is given, or it is not a string.
        """
        if (phone is None) == (external_id is None):
            raise InvalidRequest.at("phone", "name the contact, either by its phone number or by its external_id")
        if external_id is not None:
            check_name("external_id", external_id, MAX_EXTERNAL_ID)
            return await read_ledger(
                self._context,
                workspace_id,
                campaign_id,
                lambda tx: histories_of_external_id(tx, workspace_id, campaign_id, external_id),
            )
        phone = require_text("phone", phone)
        return await read_ledger(
            self._context, workspace_id, campaign_id, lambda tx: histories(tx, workspace_id, campaign_id, phone)
        )
