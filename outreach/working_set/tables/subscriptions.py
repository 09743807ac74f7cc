"""Named subscriptions to events."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.models.subscription import StoredSubscription
from outreach.working_set.kinds import SUBSCRIPTIONS
from outreach.working_set.tables.base import Table


class Subscriptions(Table):
    """The positions and leases of named subscriptions; names are unique over all workspaces."""

    def get(self, name: str) -> StoredSubscription | None:
        """Return a subscription."""
        return self._rows.get(SUBSCRIPTIONS, (name,))

    def put(self, subscription: StoredSubscription) -> None:
        """Insert or replace a subscription."""
        self._rows.put(SUBSCRIPTIONS, SUBSCRIPTIONS.key_of(subscription), subscription)

    def delete(self, name: str) -> bool:
        """Delete a subscription; return whether it existed."""
        return self._rows.delete(SUBSCRIPTIONS, (name,))

    def list(self) -> Sequence[StoredSubscription]:
        """Return all subscriptions by name."""
        return self._list(SUBSCRIPTIONS, "subscriptions.list")
