"""Numbers that providers have reported as unreachable."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from outreach.ledger.common import record_audit, workspace_of
from outreach.models.base import Page
from outreach.models.unreachable import UnreachableNumber
from outreach.rules.phones import canonical_phone
from outreach.services.context import ServiceContext, require_phone, require_text
from outreach.services.lists import PageRequest, iterate
from outreach.storage.unit_of_work import Transaction


class UnreachableNumbers:
    """The numbers that take no messages or no calls, as carriers and voice providers reported.

    Every report is kept; campaigns leave the numbers out if the workspace's `skip_unreachable` is set.
    """

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[UnreachableNumber]:
        """Return a page of a workspace's unreachable numbers, by number.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        wanted = PageRequest("unreachable numbers", workspace_id, after=after, limit=limit)
        phone, _, channel = (wanted.cursor or "").partition("~")
        found = await self._context.storage.read(
            lambda tx: tx.unreachable_numbers.page(
                workspace_of(tx, workspace_id).id, after=(phone, channel), limit=limit + 1
            )
        )
        return wanted.page(found, lambda one: f"{one.phone}~{one.channel}")

    def iter_all(self, workspace_id: str) -> AsyncIterator[UnreachableNumber]:
        """Iterate over all unreachable numbers; see `list`."""
        return iterate(partial(self.list, workspace_id))

    async def remove(self, workspace_id: str, phone: str, *, actor: str = "library") -> bool:
        """Take a number off on all channels, so that later campaigns contact it; return whether it was there.

        Contacts that were skipped stay skipped.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: It is no phone number.
        """
        raw = require_text("phone", phone)

        def operation(tx: Transaction) -> bool:
            number = require_phone("phone", canonical_phone(raw, workspace_of(tx, workspace_id).default_region))
            removed = tx.unreachable_numbers.remove(workspace_id, number)
            if removed:
                record_audit(tx, workspace_id, "unreachable.remove", workspace_id, actor=actor, now=self._context.now())
            return removed

        return await self._context.storage.write_in(workspace_id, operation)
