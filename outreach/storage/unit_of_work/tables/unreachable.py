"""Numbers that providers have reported as unreachable."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import get_args

from outreach.core.clock import format_timestamp
from outreach.models.base import Channel
from outreach.models.unreachable import UnreachableNumber
from outreach.storage.unit_of_work.kinds import UNREACHABLE_NUMBERS
from outreach.storage.unit_of_work.tables.base import Table


class UnreachableNumbers(Table):
    """One row a number and channel; (workspace, number, channel) is unique."""

    def put(self, number: UnreachableNumber) -> None:
        """Insert or replace what was reported of a number."""
        self._rows.put(UNREACHABLE_NUMBERS, UNREACHABLE_NUMBERS.key_of(number), number)

    def remove(self, workspace_id: str, phone: str) -> bool:
        """Remove the person at a number, under every form of it and on every channel; return whether it was there."""
        found = [
            self._rows.delete(UNREACHABLE_NUMBERS, (workspace_id, form, channel))
            for form in self._forms(workspace_id, phone)
            for channel in get_args(Channel)
        ]
        return any(found)

    def page(self, workspace_id: str, *, after: tuple[str, str] = ("", ""), limit: int) -> Sequence[UnreachableNumber]:
        """Return a workspace's numbers by (phone, channel), from `after` on."""
        return self._list(
            UNREACHABLE_NUMBERS,
            "unreachable.page",
            workspace_id=workspace_id,
            after_phone=after[0],
            after_channel=after[1],
            limit=limit,
        )

    def among(self, workspace_id: str, channel: Channel, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers (at most 1,000) whose person is unreachable on a channel."""
        if not phones:
            return frozenset()
        return self._persons_among(
            "unreachable.among", UNREACHABLE_NUMBERS, workspace_id=workspace_id, phones=phones, channel=channel
        )

    def delete_old(self, workspace_id: str, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` that were reported before a moment; return how many."""
        return self._rows.execute_on(
            UNREACHABLE_NUMBERS,
            "unreachable.old",
            workspace_id=workspace_id,
            before=format_timestamp(before),
            limit=limit,
        )
