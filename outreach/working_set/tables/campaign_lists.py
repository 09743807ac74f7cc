"""Lists of campaigns, read without looking at more than what is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from outreach.convert.columns import Value, json_text
from outreach.models.base import Channel
from outreach.models.campaign import AgentSnapshot, Campaign
from outreach.models.states import CampaignStatus
from outreach.policy.texts import fold, trigram_query
from outreach.working_set.backend import Row
from outreach.working_set.kinds import AGENTS, CAMPAIGNS, NO_CAMPAIGN, WORKSPACES
from outreach.working_set.tables.base import Table
from outreach.working_set.tables.campaigns import snapshot

_ID: Final = CAMPAIGNS.columns.index("id")
_WORKSPACE: Final = CAMPAIGNS.columns.index("workspace_id")
_AGENT: Final = CAMPAIGNS.columns.index("agent_id")

_MANY: Final = 10_000
"""Names that hold a text: from so many on, to look at every name takes less than to go by the index."""

_PAGES: Final = {
    (False, False): "campaigns.page_of_both",
    (False, True): "campaigns.page_of_both_in_status",
    (True, False): "campaigns.page",
    (True, True): "campaigns.page_in_status",
}
"""The query of a page, by whether it is of one channel and of one status."""


@attrs.frozen
class StoredCampaign:
    """A campaign as it is stored: equal to another one where nothing of the two differs, counters and agent included.

    To compare it takes much less than to make the model.

    Attributes:
        row: The values of its columns.
        agent: The snapshot of its agent, as that is now.
    """

    row: tuple[Any, ...]
    agent: AgentSnapshot | None

    @property
    def id(self) -> str:
        """Its identifier."""
        return str(self.row[_ID])

    def campaign(self) -> Campaign:
        """Return the model, made anew each time."""
        made = CAMPAIGNS.model(self.row, NO_CAMPAIGN)
        return made if self.agent is None else attrs.evolve(made, agent=self.agent)


class CampaignLists(Table):
    """Pages of a workspace's campaigns; those that are loading are on none."""

    def revision(self, workspace_id: str) -> int | None:
        """Return a number that goes up with whatever changes in a list of a workspace's campaigns.

        It may go up with more than that. None where there is no such workspace.
        """
        rows = self._rows.query("campaigns.list", CAMPAIGNS, AGENTS, WORKSPACES, workspace_id=workspace_id)
        return int(rows[0][1]) if rows else None

    def page(
        self,
        workspace_id: str,
        *,
        channel: Channel | None,
        status: CampaignStatus | None,
        search: str | None,
        offset: int,
        limit: int,
    ) -> tuple[Sequence[StoredCampaign], int]:
        """Return campaigns newest first by (created_at, id), both descending, and how many match in all.

        `search` matches a part of the name, case-insensitively for every script (`policy.texts.fold`).
        `offset` may be any integer from 0 on, however large.
        """
        wanted: Mapping[str, Value] = {
            "workspace_id": workspace_id,
            "channel": channel,
            "status": None if status is None else status.value,
        }
        if search:
            found = self._found(workspace_id, fold(search), wanted)
            total, numbers = len(found), found[offset : offset + limit]
        else:
            [[counted]] = self._rows.query("campaigns.count", CAMPAIGNS, **wanted)
            total = counted or 0
            numbers = self._numbers(wanted, offset=offset, limit=limit) if offset < total else []
        return self._stored(workspace_id, numbers), total

    def _found(self, workspace_id: str, folded: str, wanted: Mapping[str, Value]) -> list[int]:
        """Return the numbers of all whose name holds a text, newest first."""
        rows: Sequence[Row]
        if names := self._few_names(workspace_id, trigram_query(folded)):
            rows = self._rows.query("campaigns.found", CAMPAIGNS, **wanted, **names, search=folded)
        elif wanted["channel"] is not None:
            rows = self._rows.query("campaigns.found_by_looking", CAMPAIGNS, **wanted, search=folded)
        else:
            both = {name: value for name, value in wanted.items() if name != "channel"}
            rows = self._rows.query("campaigns.found_of_both_by_looking", CAMPAIGNS, **both, search=folded)
        return [row[0] for row in rows]

    def _few_names(self, workspace_id: str, asked: str | None) -> Mapping[str, Value]:
        """Return what the index of names is asked for; nothing where it is of no use, or so many names have it."""
        lists = self._rows.query("campaigns.list", WORKSPACES, workspace_id=workspace_id)
        if asked is None or not lists:
            return {}
        names: Mapping[str, Value] = {"phrase": asked, "list": lists[0][0]}
        [[count]] = self._rows.query("campaigns.names_with", CAMPAIGNS, **names, limit=_MANY)
        return names if count < _MANY else {}

    def _numbers(self, wanted: Mapping[str, Value], *, offset: int, limit: int) -> list[int]:
        """Return the numbers of those on a page that there is, newest first."""
        query = _PAGES[wanted["channel"] is not None, wanted["status"] is not None]
        given = {name: value for name, value in wanted.items() if value is not None}
        return [row[0] for row in self._rows.query(query, CAMPAIGNS, **given, offset=offset, limit=limit)]

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
