"""The decision trail with the named subscriptions to it, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from outreach.core.clock import format_timestamp
from outreach.models.subscription import StoredSubscription
from outreach.models.trail import TrailEntry
from outreach.models.work import AuditEntry
from outreach.serialization.columns import Value
from outreach.storage.unit_of_work.backend import filtered
from outreach.storage.unit_of_work.kinds import AUDIT, SUBSCRIPTIONS, TRAIL
from outreach.storage.unit_of_work.tables.base import Place, Table

_LAST_NUMBER: Final = 2**63 - 1


class Trail(Table):
    """The decision trail; append only, except that a `held` entry can be prolonged.

    Entries are numbered from 1 over the whole database, in the order of their commits; numbers are never reused.
    """

    def append(self, entry: TrailEntry) -> None:
        """Write an entry under the next number, or raise `LookupError` without such a campaign."""
        row = TRAIL.row((), entry)
        if entry.campaign_id is not None:
            number = self._rows.number(entry.workspace_id, entry.campaign_id)
            if number is None:
                raise LookupError("There is no such campaign.")
            row[TRAIL.campaign or 0] = number
        self._rows.append("trail", "append", row)

    def prolong(self, workspace_id: str, campaign_id: str, position: int, due_at: datetime) -> None:
        """Extend a recipient's latest `held` entry, if any, until `due_at` and count a repeat."""
        number = self._rows.number(workspace_id, campaign_id)
        if number is not None:
            self._rows.append("trail", "prolong", (format_timestamp(due_at), number, position))

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[TrailEntry]:
        """Return the entries of one recipient, by number."""
        number = self._rows.number(workspace_id, campaign_id)
        return self._entries(TRAIL, "trail.of_recipient", number=number, position=position)

    def of_campaign(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the latest `limit` entries of a campaign itself, by number."""
        number = self._rows.number(workspace_id, campaign_id)
        return self._entries(TRAIL, "trail.of_campaign", number=number, limit=limit)[::-1]

    def of_workspace(self, workspace_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the latest `limit` entries of the workspace itself, by number."""
        return self._entries(TRAIL, "trail.of_workspace", workspace_id=workspace_id, limit=limit)[::-1]

    def of_number(self, workspace_id: str, phone: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the latest `limit` entries of the person at a phone number, by number."""
        entries = [
            entry
            for form in self._forms(workspace_id, phone)
            for entry in self._entries(TRAIL, "trail.of_number", workspace_id=workspace_id, phone=form, limit=limit)
        ]
        return sorted(entries, key=lambda entry: entry.number)[-limit:]

    def opt_outs_of_person(
        self, workspace_id: str, phone: str, *, after: Place | None = None, limit: int
    ) -> Sequence[TrailEntry]:
        """Return when the person at a number came onto the register and left it, by (at, number), descending."""
        rows = self._rows_of_person("trail.opt_outs_of_person", TRAIL, workspace_id, phone, after=after, limit=limit)
        found = self._rows.models(TRAIL, rows)
        return sorted(found, key=lambda entry: (entry.at, entry.number), reverse=True)[:limit]

    def between(self, workspace_id: str | None, after: int, until: int) -> Sequence[TrailEntry]:
        """Return those of a workspace, or all, numbered above `after` and up to `until`, by number."""
        return self._entries(TRAIL, "trail.between", workspace_id=workspace_id, after=after, until=until)

    def count_opt_outs(self, after: int, until: int) -> Mapping[str, int]:
        """Return the opt-outs numbered above `after` and up to `until` in all workspaces, by source."""
        rows = self._rows.query("trail.count_opt_outs", TRAIL, after=after, until=until)
        return {str(source): count for source, count in rows}

    def last_number(self) -> int:
        """Return the highest number ever given; 0 in a new database."""
        rows = self._rows.query("trail.last_number", TRAIL)
        return int(rows[0][0]) if rows else 0

    def purged_until(self) -> int:
        """Return the highest number of an entry that was deleted although its campaign is there; 0 when none was.

        The engine deletes none: only the entries of a campaign whose loading was given up, or which was deleted before
        it started, go with it, and are not counted here.
        """
        return int(self._rows.query("trail.purged_until", TRAIL)[0][0])


class Audit(Table):
    """The audit log; append only.

    An entry raises the change number: a database that lacks what somebody did, such as a revoked key, is behind its
    high-water mark.
    """

    def append(self, entry: AuditEntry) -> None:
        """Write an entry, under a new change number."""
        self._rows.next_change()
        self._rows.append("audit", "append", AUDIT.row((), entry))

    def list(self, workspace_id: str | None, *, limit: int = 1000) -> Sequence[AuditEntry]:
        """Return the newest entries of a workspace, or all, the last one first."""
        return [entry for _, entry in self.numbered(workspace_id, limit=limit)]

    def numbered(
        self,
        workspace_id: str | None,
        *,
        actor: str | None = None,
        action: str | None = None,
        subject: str | None = None,
        after: int | None = None,
        limit: int,
    ) -> Sequence[tuple[int, AuditEntry]]:
        """Return what `list` does, each entry with its number, from below the number `after` on.

        The filters are for the entries of one workspace.
        """
        filters: dict[str, Value] = {"actor": actor, "action": action, "subject": subject}
        given = {name: value for name, value in filters.items() if value is not None}
        name = "audit.list_all" if workspace_id is None else filtered("audit.list", given)
        values: dict[str, Value] = {} if workspace_id is None else {"workspace_id": workspace_id, **given}
        rows = self._rows.query(name, AUDIT, **values, after=_LAST_NUMBER if after is None else after, limit=limit)
        return list(zip((row[0] for row in rows), self._rows.models(AUDIT, [row[1:] for row in rows]), strict=True))


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
