"""Pages of campaigns, read without touching more than is shown.

Triggers of the schema keep the counts by status, the trigrams of names and the revision of each workspace's list, in
the transaction that writes a campaign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from outreach.core.clock import format_timestamp
from outreach.models.base import Channel
from outreach.models.campaign import AgentSnapshot, Campaign
from outreach.models.states import CampaignStatus
from outreach.rules.texts import fold, trigram_query
from outreach.serialization.columns import Value, json_text
from outreach.storage.unit_of_work.backend import Row, filtered
from outreach.storage.unit_of_work.kinds import AGENTS, CAMPAIGNS, NO_CAMPAIGN, WORKSPACES
from outreach.storage.unit_of_work.tables.base import LAST, Table
from outreach.storage.unit_of_work.tables.campaigns import snapshot

_ID: Final = CAMPAIGNS.columns.index("id")
_WORKSPACE: Final = CAMPAIGNS.columns.index("workspace_id")
_AGENT: Final = CAMPAIGNS.columns.index("agent_id")

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
        channel: Channel | None,
        status: CampaignStatus | None,
        search: str | None,
        limit: int,
        offset: int = 0,
        after: tuple[datetime, str] | None = None,
        archived: bool | None = None,
    ) -> tuple[Sequence[StoredCampaign], int]:
        """Return campaigns newest first by (created_at, id), both descending, and the total number of matches.

        They begin behind `after`, which is such a pair, and leave the first `offset` out; the total is that of all.
        `search` matches part of the name, case-insensitively for every script (`policy.texts.fold`). `archived` is
        whether only archived campaigns, or only others, are wanted; None for all.
        """
        filters: dict[str, Value] = {"channel": channel, "status": None if status is None else status.value}
        begin: Mapping[str, Value] = {
            "workspace_id": workspace_id,
            "after_at": LAST if after is None else format_timestamp(after[0]),
            "after_id": "" if after is None else after[1],
        }
        if archived is not None and (archived or self._has_archived(workspace_id)):
            name = "campaigns.archived" if archived else "campaigns.unarchived"
            found = self._filtered(name, {**filters, "search": fold(search) if search else None}, begin)
            total, numbers = len(found), _behind(found)[offset : offset + limit]
        elif search:
            found = self._found(workspace_id, fold(search), filters, begin)
            total, numbers = len(found), _behind(found)[offset : offset + limit]
        else:
            [[counted]] = self._filtered("campaigns.count", filters, {"workspace_id": workspace_id})
            total = counted or 0
            page = {**begin, "offset": offset, "limit": limit}
            numbers = [row[0] for row in self._filtered("campaigns.page", filters, page)] if offset < total else []
        return self._stored(workspace_id, numbers), total

    def _has_archived(self, workspace_id: str) -> bool:
        return bool(self._rows.query("campaigns.any_archived", CAMPAIGNS, workspace_id=workspace_id))

    def _filtered(self, name: str, filters: Mapping[str, Value], values: Mapping[str, Value]) -> Sequence[Row]:
        """Run a query with the conditions of those filters that are not None."""
        given = {one: value for one, value in filters.items() if value is not None}
        return self._rows.query(filtered(name, given), CAMPAIGNS, **given, **values)

    def _found(
        self, workspace_id: str, folded: str, filters: Mapping[str, Value], begin: Mapping[str, Value]
    ) -> Sequence[Row]:
        """Return the numbers of all campaigns whose name contains a text, newest first, and whether they are behind."""
        names = self._name_lookup(workspace_id, trigram_query(folded))
        name = "campaigns.found" if names else "campaigns.found_by_looking"
        return self._filtered(name, filters, {**begin, **names, "search": folded})

    def _name_lookup(self, workspace_id: str, phrase: str | None) -> Mapping[str, Value]:
        """Return the index lookup of a text; empty if the index does not help or too many names match."""
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
