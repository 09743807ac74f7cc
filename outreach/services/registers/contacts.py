"""Everything with one number."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from outreach.errors import InvalidRequest
from outreach.ledger.common import workspace_of
from outreach.ledger.number_history import HistoryPlace, Placed, history_of_number
from outreach.models.base import Page
from outreach.models.history import HistoryItem
from outreach.rules.phones import parse_inbound_sender
from outreach.services.context import ServiceContext, phone_problem, require_text
from outreach.services.lists import PageRequest, iterate, moment_cursor
from outreach.storage.unit_of_work import Transaction


class Contacts:
    """The people whom workspaces write to and call, by their numbers."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def list_history(
        self, workspace_id: str, phone: str, *, after: str | None = None, limit: int = 100
    ) -> Page[HistoryItem]:
        """Return a page of everything with one number, newest first.

        These are its places in campaigns, the messages to it and from it, its calls, and when it came onto the register
        and left it. All spellings of the number count. A number without any of them has an empty page.

        Campaigns in a ledger archive are left out. Of an erased person nothing is found but the register's entry.

        Args:
            workspace_id: The workspace.
            phone: The number in any notation; a local one is read in the workspace's default region.
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: It is not a phone number, or `after` or `limit` is invalid.
        """
        require_text("phone", phone)
        page_request = PageRequest("history", workspace_id, phone, after=after, limit=limit)
        begin = None
        if (cursor := page_request.moment()) is not None:
            source, id_, number = cursor[1].split("~")
            begin = HistoryPlace(cursor[0], int(source), id_, int(number))

        def operation(tx: Transaction) -> Page[Placed]:
            region = workspace_of(tx, workspace_id).default_region
            normalised = parse_inbound_sender(phone, region).phone
            if normalised is None:
                raise InvalidRequest.at("phone", phone_problem(phone, region))
            found = history_of_number(tx, workspace_id, normalised, after=begin, limit=limit + 1)
            return page_request.page(found, lambda one: moment_cursor(*one[0]))

        page = await self._context.storage.read(operation)
        return Page(items=[item for _, item in page], next=page.next)

    def iter_history(self, workspace_id: str, phone: str) -> AsyncIterator[HistoryItem]:
        """Iterate over everything with one number, newest first; see `list_history`."""
        return iterate(partial(self.list_history, workspace_id, phone))
