"""Pages of campaigns, read without touching more than is shown.

Triggers of the schema keep the counts by status, the trigrams of names and the revision of each workspace's list, in
the transaction that writes a campaign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Final, Unpack, cast

import attrs

from outreach.core.clock import format_timestamp
from outreach.models.campaign import AgentSnapshot, Campaign, CampaignFilters
from outreach.rules.texts import fold, trigram_query
from outreach.serialization.columns import Value, json_text
from outreach.storage.unit_of_work.backend import Row, filtered
from outreach.storage.unit_of_work.kinds import AGENTS, CAMPAIGNS, NO_CAMPAIGN, WORKSPACES
from outreach.storage.unit_of_work.tables.base import LAST, Table
from outreach.storage.unit_of_work.tables.campaigns import snapshot

_ID: Final = CAMPAIGNS.columns.index("id")
_WORKSPACE: Final = CAMPAIGNS.columns.index("workspace_id")
_AGENT: Final = CAMPAIGNS.columns.index("agent_id")

_COUNTED: Final = {"channel", "status"}
"""The filters by which the schema counts campaigns, and by which its indexes are ordered."""

_MAX_INDEXED_NAMES: Final = 10_000
"""From so many matching names on, a scan is faster than the index."""


@attrs.frozen
class StoredCampaign:
    """A campaign as stored: the values of its columns and the current snapshot of its agent.

    Comparing two is much cheaper than making the models.
    """

    row: tuple[Any, ...]
    agent: AgentSnapshot | None

    @property
    def id(self) -> str:
        """Its identifier."""
        return str(self.row[_ID])

    def campaign(self) -> Campaign:
        """Return a new model."""
        made = CAMPAIGNS.model(self.row, NO_CAMPAIGN)
        return made if self.agent is None else attrs.evolve(made, agent=self.agent)


class CampaignLists(Table):
    """Pages of a workspace's campaigns; loading ones are left out."""

    def revision(self, workspace_id: str) -> int | None:
        """Return a number that rises with every change in a workspace's campaign lists; None without the workspace."""
        rows = self._rows.query("campaigns.list", CAMPAIGNS, AGENTS, WORKSPACES, workspace_id=workspace_id)
        return int(rows[0][1]) if rows else None

    def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        offset: int = 0,
        after: tuple[datetime, str] | None = None,
        **filters: Unpack[CampaignFilters],
    ) -> tuple[Sequence[StoredCampaign], int]:
        """Return campaigns newest first by (created_at, id), both descending, and the total number of matches.

        They begin behind `after`, which is such a pair, and leave the first `offset` out; the total is that of all.
        `search` matches case-insensitively for every script (`rules.texts.fold`).
        """
        wanted: dict[str, Value] = {
            name: value.value if isinstance(value, Enum) else value
            for name, value in cast("Mapping[str, Any]", filters).items()
            if value not in {None, ""}
        }
        archived = wanted.pop("archived", None)
        if "search" in wanted:
            wanted["search"] = fold(str(wanted["search"]))
        begin: Mapping[str, Value] = {
            "workspace_id": workspace_id,
            "after_at": LAST if after is None else format_timestamp(after[0]),
            "after_id": "" if after is None else after[1],
        }
        if "external_id" in wanted:
            if archived is not None:
                wanted["archived"] = int(archived)
            given = {**begin, "external_id": wanted.pop("external_id")}
            found = self._filtered("campaigns.of_external_id", wanted, given)
        elif archived is not None and (archived or self._has_archived(workspace_id)):
            name = "campaigns.archived" if archived else "campaigns.unarchived"
            found = self._filtered(name, wanted, begin)
        elif wanted.keys() <= _COUNTED:
            [[total]] = self._filtered("campaigns.count", wanted, {"workspace_id": workspace_id})
            page = {**begin, "offset": offset, "limit": limit}
            rows = self._filtered("campaigns.page", wanted, page) if offset < (total or 0) else []
            return self._stored(workspace_id, [row[0] for row in rows]), total or 0
        else:
            names = self._name_lookup(workspace_id, str(wanted.get("search", "")))
            found = self._filtered("campaigns.found" if names else "campaigns.scanned", wanted, {**begin, **names})
        total, numbers = len(found), _behind(found)[offset : offset + limit]
        return self._stored(workspace_id, numbers), total

    def _has_archived(self, workspace_id: str) -> bool:
        return bool(self._rows.query("campaigns.any_archived", CAMPAIGNS, workspace_id=workspace_id))

    def _filtered(self, name: str, filters: Mapping[str, Value], values: Mapping[str, Value]) -> Sequence[Row]:
        """Run a query with the conditions of these filters."""
        return self._rows.query(filtered(name, filters), CAMPAIGNS, **filters, **values)

    def _name_lookup(self, workspace_id: str, folded: str) -> Mapping[str, Value]:
        """Return the index lookup of a text; empty if the index does not help or too many names match."""
        phrase = trigram_query(folded)
        lists = self._rows.query("campaigns.list", WORKSPACES, workspace_id=workspace_id)
        if phrase is None or not lists:
            return {}
        names: Mapping[str, Value] = {"phrase": phrase, "list": lists[0][0]}
        [[count]] = self._rows.query("campaigns.names_with", CAMPAIGNS, **names, limit=_MAX_INDEXED_NAMES)
        return names if count < _MAX_INDEXED_NAMES else {}

    def _stored(self, workspace_id: str, numbers: Sequence[int]) -> Sequence[StoredCampaign]:
        rows: Sequence[Row] = self._rows.query(
            "campaigns.of_numbers", CAMPAIGNS, workspace_id=workspace_id, numbers=json_text(list(numbers))
        )
        agents = [None if row[_AGENT] is None else (row[_WORKSPACE], row[_AGENT]) for row in rows]
        self._rows.prefetch(AGENTS, (key for key in agents if key is not None))
        return [
            StoredCampaign(tuple(row), None if key is None else snapshot(self._rows.get(AGENTS, key)))
            for row, key in zip(rows, agents, strict=True)
        ]


def _behind(found: Sequence[Row]) -> list[int]:
    """Return the numbers of those campaigns that come after a page's cursor."""
    return [row[0] for row in found if row[1]]
