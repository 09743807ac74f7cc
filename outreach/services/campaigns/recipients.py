"""The recipients of campaigns: lists of them, and what happened to each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Final

from outreach.errors import InvalidRequest
from outreach.ledger.campaigns.histories import histories, histories_of_external_id, history_at, with_phone
from outreach.ledger.campaigns.results import results_of
from outreach.ledger.common import campaign_of, recipient_of, workspace_of
from outreach.ledger.settling.skipping import skip_recipient
from outreach.models.base import Page
from outreach.models.campaign import MAX_EXTERNAL_ID, Campaign, NewRecipient, Recipient, RecipientCount, RecipientSkip
from outreach.models.dispatch import Dispatch
from outreach.models.fields import Integer, OneOf, Text, check_field, check_value
from outreach.models.states import OPEN_RECIPIENT_STATUSES, ContactHistory, RecipientStatus
from outreach.services.context import ServiceContext, require_text
from outreach.services.lists import PageRequest, iterate, moment_cursor
from outreach.storage.unit_of_work import Transaction

_MAX_POSITION: Final = 2**63 - 1
_MAX_OF_ONE_ID: Final = 1000

_FEW: Final = 10_000
"""Recipients that are looked at for a page; of more, a page is found soon among all."""


class CampaignRecipients:
    """The recipients of campaigns."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def list_recipients(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        status: RecipientStatus | None = None,
        reason: str | None = None,
        phone: str | None = None,
        external_id: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[Recipient]:
        """Return a page of a campaign's recipients, by position.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            status: Only those in this state; None for any.
            reason: Only those that wait or have ended for this reason; None for any.
            phone: Only those with this number, in any notation, or as supplied if it is none; None for any.
            external_id: Only those that the application knows by this id, of the first 1,000; None for any.
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: An argument is invalid.
        """
        if status is not None:
            check_value("status", status, OneOf(tuple(RecipientStatus)))
        if reason is not None:
            check_value("reason", reason, Text())
        if phone is not None:
            require_text("phone", phone)
        check_field(NewRecipient, "external_id", external_id)
        page_request = PageRequest("recipients", workspace_id, campaign_id, after=after, limit=limit)
        cursor = page_request.number()
        begin = -1 if cursor is None else cursor

        def fits(one: Recipient) -> bool:
            return (
                one.position > begin
                and status in {None, one.status}
                and reason in {None, one.reason}
                and external_id in {None, one.external_id}
            )

        def operation(tx: Transaction) -> Sequence[Recipient]:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            if phone is not None:
                return [one for one in with_phone(tx, campaign, phone) if fits(one)]
            if external_id is not None:
                known = tx.recipients.with_external_id(
                    workspace_id, external_id, campaign_id=campaign_id, limit=_MAX_OF_ONE_ID
                )
                return [one for one in known if fits(one)]
            return _page(tx, campaign, status, reason, after=begin, limit=limit + 1)

        found = await self._context.storage.read_ledger(workspace_id, campaign_id, operation)
        return page_request.page(found, lambda one: str(one.position))

    def iter_recipients(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        status: RecipientStatus | None = None,
        reason: str | None = None,
        phone: str | None = None,
        external_id: str | None = None,
    ) -> AsyncIterator[Recipient]:
        """Iterate over a campaign's recipients, by position; see `list_recipients`."""
        return iterate(
            partial(
                self.list_recipients,
                workspace_id,
                campaign_id,
                status=status,
                reason=reason,
                phone=phone,
                external_id=external_id,
            )
        )

    async def get_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Recipient:
        """Return the recipient at a position of a campaign's list, from 0.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such recipient.
        """
        check_value("position", position, Integer(0, _MAX_POSITION))
        return await self._context.storage.read_ledger(
            workspace_id,
            campaign_id,
            lambda tx: recipient_of(tx, campaign_of(tx, workspace_id, campaign_id), position),
        )

    async def list_appearances(
        self, workspace_id: str, external_id: str, *, after: str | None = None, limit: int = 100
    ) -> Page[Recipient]:
        """Return a page of the recipients that the application knows by an id, in all campaigns but archived ones.

        The newest campaign comes first, its recipients by position.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The id is no text of 1 to 255 characters, or `after` or `limit` is invalid.
        """
        check_value("external_id", external_id, Text(1, MAX_EXTERNAL_ID))
        page_request = PageRequest("appearances", workspace_id, external_id, after=after, limit=limit)
        begin = None
        if (cursor := page_request.moment()) is not None:
            campaign_id, _, position = cursor[1].partition("~")
            begin = (cursor[0], campaign_id, int(position))

        def operation(tx: Transaction) -> Page[Recipient]:
            workspace_of(tx, workspace_id)
            found = tx.recipients.with_external_id_anywhere(workspace_id, external_id, after=begin, limit=limit + 1)

            def cursor_of(one: Recipient) -> str:
                return moment_cursor(
                    campaign_of(tx, workspace_id, one.campaign_id).created_at, one.campaign_id, one.position
                )

            return page_request.page(found, cursor_of)

        return await self._context.storage.read(operation)

    def iter_appearances(self, workspace_id: str, external_id: str) -> AsyncIterator[Recipient]:
        """Iterate over the recipients that the application knows by an id; see `list_appearances`."""
        return iterate(partial(self.list_appearances, workspace_id, external_id))

    async def count_recipients(self, workspace_id: str, campaign_id: str) -> Sequence[RecipientCount]:
        """Return how many recipients are in each state for each reason.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        rows = await self._context.storage.read_ledger(
            workspace_id, campaign_id, lambda tx: results_of(tx, campaign_of(tx, workspace_id, campaign_id))
        )
        return [RecipientCount(status=one.status, reason=one.reason, count=one.contacts) for one in rows]

    async def skip_recipient(
        self,
        workspace_id: str,
        campaign_id: str,
        position: int,
        *,
        reason: str | None = None,
        actor: str = "library",
    ) -> Recipient:
        """Leave a contact out of a campaign that waits for its turn, and return it as `skipped: by_operator`.

        One that had a message of its flow, or an attempt, gets no other. One that was left out before stays as it is.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign; it may be a draft, run or be paused.
            position: The contact's place in the campaign's list, from 0.
            reason: Why, in up to 200 characters; kept in the audit trail, which no erasure changes.
            actor: Recorded in the audit trail and in the contact's.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such recipient.
            Conflict: A request to the contact has begun and its outcome is not final, the contact has ended, or the
                campaign has.
            InvalidRequest: `position` or `reason` is invalid.
        """
        check_value("position", position, Integer(0, _MAX_POSITION))
        check_field(RecipientSkip, "reason", reason)
        return await self._context.storage.write_in(
            workspace_id,
            lambda tx: skip_recipient(
                tx, workspace_id, campaign_id, position, note=reason, now=self._context.now(), actor=actor
            ),
        )

    async def list_dispatches(
        self, workspace_id: str, campaign_id: str, position: int, *, after: str | None = None, limit: int = 100
    ) -> Page[Dispatch]:
        """Return a page of the dispatches of one recipient, oldest first.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: `position`, `after` or `limit` is invalid.
        """
        check_value("position", position, Integer(0, _MAX_POSITION))
        page_request = PageRequest("dispatches", workspace_id, campaign_id, position, after=after, limit=limit)
        found = await self._context.storage.read_ledger(
            workspace_id,
            campaign_id,
            lambda tx: tx.dispatches.of_recipient(
                workspace_id, campaign_of(tx, workspace_id, campaign_id).id, position
            ),
        )
        return page_request.page_of_few(found)

    def iter_dispatches(self, workspace_id: str, campaign_id: str, position: int) -> AsyncIterator[Dispatch]:
        """Iterate over the dispatches of one recipient, oldest first; see `list_dispatches`."""
        return iterate(partial(self.list_dispatches, workspace_id, campaign_id, position))

    async def recipient_history(self, workspace_id: str, campaign_id: str, position: int) -> ContactHistory:
        """Return what happened to the recipient at a position, step by step, with reasons and rules.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such recipient.
        """
        check_value("position", position, Integer(0, _MAX_POSITION))
        return await self._context.storage.read_ledger(
            workspace_id, campaign_id, lambda tx: history_at(tx, workspace_id, campaign_id, position)
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
        check_field(NewRecipient, "external_id", external_id)
        if external_id is not None:
            return await self._context.storage.read_ledger(
                workspace_id,
                campaign_id,
                lambda tx: histories_of_external_id(tx, workspace_id, campaign_id, external_id),
            )
        phone = require_text("phone", phone)
        return await self._context.storage.read_ledger(
            workspace_id, campaign_id, lambda tx: histories(tx, workspace_id, campaign_id, phone)
        )


def _page(
    tx: Transaction, campaign: Campaign, status: RecipientStatus | None, reason: str | None, *, after: int, limit: int
) -> Sequence[Recipient]:
    """Return recipients by position; of a state that few are in without a look at all the others."""
    at = (campaign.workspace_id, campaign.id)
    if status is None:
        return tx.recipients.page(*at, reason=reason, after=after, limit=limit)
    rows = [row for row in results_of(tx, campaign) if row.status is status and reason in {None, row.reason}]
    count = sum(row.contacts for row in rows)
    if not count:
        return ()
    if count <= _FEW and status not in {*OPEN_RECIPIENT_STATUSES, RecipientStatus.COMPLETED}:
        return tx.recipients.page_of_few(*at, status, reason=reason, after=after, limit=limit)
    # On the first page it ends with the last one that there is.
    most = min(limit, count) if after < 0 else limit
    return tx.recipients.page(*at, status=status, reason=reason, after=after, limit=most)
