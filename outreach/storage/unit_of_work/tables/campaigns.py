"""Campaigns with their lists, approvals and forecasts, the decision trail, its subscriptions, and the audit log.

Pages are read without touching more than is shown: triggers of the schema keep the counts by status, the trigrams of
names and the revision of each workspace's list, in the transaction that writes a campaign.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Final, Unpack, cast

import attrs

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.models.approval import Approval, StartFigures
from outreach.models.campaign import AgentSnapshot, Campaign, CampaignFilters, Counters
from outreach.models.database import CampaignGroup
from outreach.models.forecast import KeptForecast
from outreach.models.resources import Agent
from outreach.models.states import APPROVAL_ENDED, CampaignStatus, TrailEntry
from outreach.models.subscription import StoredSubscription
from outreach.models.work import AuditEntry
from outreach.rules.segments import fold, trigram_query
from outreach.serialization.documents import Value, from_json, json_text, to_json
from outreach.serialization.kept_forecasts import forecast_text, read_forecast_text
from outreach.storage.unit_of_work.kinds import (
    AGENTS,
    AUDIT,
    CAMPAIGNS,
    LOADING_CAMPAIGNS,
    NO_CAMPAIGN,
    SUBSCRIPTIONS,
    TRAIL,
    WORKSPACES,
    Row,
    filtered,
)
from outreach.storage.unit_of_work.tables.base import LAST, Place, Table, json_list, page_begin
from outreach.storage.unit_of_work.unit_of_work import AlreadyExists


class Campaigns(Table):
    """Campaigns, each returned with the snapshot of its agent.

    Only `get_loading`, `publish`, `delete_loading` and the methods of additions see a loading campaign. Only
    `add_counters` and `publish` write counters.
    """

    def insert_loading(self, campaign: Campaign, *, loading_until: datetime) -> None:
        """Write a hidden campaign, which is a leftover once `loading_until` has passed."""
        key = CAMPAIGNS.key_of(campaign)
        there = self._rows.get(CAMPAIGNS, key) is not None
        if there or not self._rows.insert_many_now(LOADING_CAMPAIGNS, [(key, (campaign, loading_until))]):
            raise AlreadyExists(f"There is such a {CAMPAIGNS.noun} already.")
        self._rows.evict_ref(campaign.id)
        self._rows.evict(LOADING_CAMPAIGNS, [key])

    def extend_loading(self, workspace_id: str, campaign_id: str, *, loading_until: datetime) -> bool:
        """Extend the lease of a loading campaign; return whether it still exists and loads."""
        written = self._rows.execute(
            "campaigns.extend_loading",
            workspace_id=workspace_id,
            campaign_id=campaign_id,
            loading_until=format_timestamp(loading_until),
        )
        return written == 1

    def prefetch(self, workspace_and_campaign: Iterable[tuple[str, str]]) -> None:
        """Read many campaigns and their references in one go, for `get`."""
        keys = list(workspace_and_campaign)
        self._rows.prefetch_refs(campaign_id for _, campaign_id in keys)
        self._rows.prefetch(CAMPAIGNS, keys)

    def get_loading(self, workspace_id: str, campaign_id: str) -> Campaign | None:
        """Return a loading campaign."""
        rows = self._rows.query("campaigns.get_loading", workspace_id=workspace_id, campaign_id=campaign_id)
        found = self._rows.models(CAMPAIGNS, rows)
        return self._with_agent(found[0]) if found else None

    def publish(self, campaign: Campaign) -> None:
        """Make a loading campaign visible, with the counters and fields given."""
        counters = {f"recipients_{name}": value for name, value in attrs.asdict(campaign.counters).items()}
        published = self._rows.execute(
            "campaigns.publish", workspace_id=campaign.workspace_id, campaign_id=campaign.id, **counters
        )
        if not published:
            raise LookupError(f"There is no such {CAMPAIGNS.noun}.")
        self._rows.evict(CAMPAIGNS, [CAMPAIGNS.key_of(campaign)])
        self.update(campaign)

    def stage_addition(self, workspace_id: str, campaign_id: str, target_id: str) -> None:
        """Let the contacts of a loading campaign be moved to another campaign, or raise `LookupError`."""
        staged = self._rows.execute(
            "campaigns.stage_addition", workspace_id=workspace_id, campaign_id=campaign_id, target_id=target_id
        )
        if not staged:
            raise LookupError(f"There is no such {CAMPAIGNS.noun}.")

    def addition_target(self, workspace_id: str, campaign_id: str) -> str | None:
        """Return the campaign that the contacts of a loading one are moved to; None if they are not."""
        rows = self._rows.query("campaigns.addition_target", workspace_id=workspace_id, campaign_id=campaign_id)
        return rows[0][0] if rows else None

    def has_additions(self, workspace_id: str, campaign_id: str) -> bool:
        """Return whether contacts are still to be moved to a campaign."""
        return bool(self._rows.query("campaigns.any_addition", workspace_id=workspace_id, campaign_id=campaign_id))

    def leftovers(self, now: datetime) -> Sequence[tuple[str, str]]:
        """Return (workspace, campaign) of those whose `loading_until` has passed, by (loading_until, id)."""
        return [(row[0], row[1]) for row in self._rows.query("campaigns.leftovers", now=format_timestamp(now))]

    def delete_loading(self, workspace_id: str, campaign_id: str, *, limit: int) -> bool:
        """Delete up to `limit` recipients and trail entries of a loading campaign, then the campaign.

        Returns whether nothing is left, which is so for a campaign that is not loading.
        """
        rows = self._rows.query("campaigns.loading_number", workspace_id=workspace_id, campaign_id=campaign_id)
        if not rows:
            return True
        number = rows[0][0]
        self._rows.execute("campaigns.delete_recipients", number=number, limit=limit)
        self._rows.execute("campaigns.delete_trail", number=number, limit=limit)
        if self._rows.execute("campaigns.delete_empty", number=number) == 0:
            return False
        self._rows.evict_ref(campaign_id)
        return True

    def get(self, workspace_id: str, campaign_id: str) -> Campaign | None:
        """Return a campaign."""
        campaign = self._rows.get(CAMPAIGNS, (workspace_id, campaign_id))
        return None if campaign is None else self._with_agent(campaign)

    def find(self, campaign_id: str) -> Campaign | None:
        """Return a campaign of any workspace, for operators' commands."""
        campaign = self._one(CAMPAIGNS, "campaigns.find", campaign_id=campaign_id)
        return None if campaign is None else self._with_agent(campaign)

    def update(self, campaign: Campaign) -> None:
        """Replace a campaign, except for its counters; a change of an active one counts as a stop."""
        key = CAMPAIGNS.key_of(campaign)
        known = self._rows.get(CAMPAIGNS, key)
        if known is None:
            raise LookupError(f"There is no such {CAMPAIGNS.noun}.")
        if known.status is CampaignStatus.ACTIVE:
            self._rows.count_stop(campaign.workspace_id)
        self._rows.update(CAMPAIGNS, key, attrs.evolve(campaign, counters=known.counters, agent=None))

    def add_counters(self, workspace_id: str, campaign_id: str, change: Counters) -> Counters:
        """Add to the counters and return them."""
        return self._rows.add_counters((workspace_id, campaign_id), change)

    def in_status(self, statuses: Collection[CampaignStatus], *, workspace_id: str | None = None) -> Sequence[Campaign]:
        """Return campaigns in these statuses, of one workspace or all, oldest first by (created_at, id)."""
        found = self._list(
            CAMPAIGNS, "campaigns.in_status", statuses=json_list(sorted(set(statuses))), workspace_id=workspace_id
        )
        return self._all_with_agents(found)

    def paused_among(self, workspace_and_campaign: Collection[tuple[str, str]]) -> Sequence[Campaign]:
        """Return those of some campaigns that are paused; only they are read whole."""
        if not workspace_and_campaign:
            return []
        wanted = json_list([campaign_id for _, campaign_id in workspace_and_campaign])
        rows = self._rows.query("campaigns.statuses", CAMPAIGNS, wanted=wanted)
        paused = {(row[0], row[1]) for row in rows if row[2] == CampaignStatus.PAUSED}
        keys = [key for key in workspace_and_campaign if key in paused]
        self.prefetch(keys)
        return [found for key in keys if (found := self.get(*key)) is not None]

    def count_in_status(
        self, statuses: Collection[CampaignStatus], *, workspace_id: str | None = None
    ) -> Mapping[CampaignStatus, int]:
        """Return the number of campaigns in each of these statuses, of one workspace or all."""
        rows = self._rows.query(
            "campaigns.count_in_status", CAMPAIGNS, statuses=json_list(sorted(set(statuses))), workspace_id=workspace_id
        )
        return {**dict.fromkeys(statuses, 0), **{CampaignStatus(status): count for status, count in rows}}

    def open_groups(self) -> Sequence[CampaignGroup]:
        """Return the active, scheduled and paused campaigns of all workspaces, by status and reason of the pause."""
        return [CampaignGroup(*row) for row in self._rows.query("campaigns.open_groups", CAMPAIGNS)]

    def running(self, *, workspace_id: str | None = None, limit: int) -> Sequence[Campaign]:
        """Return active campaigns of one workspace or all, oldest first by (created_at, id)."""
        found = self._list(CAMPAIGNS, "campaigns.running", workspace_id=workspace_id, limit=limit)
        return self._all_with_agents(found)

    def paused_by_engine(self, *, workspace_id: str | None = None, limit: int) -> Sequence[Campaign]:
        """Return campaigns that the engine has paused, of one workspace or all, oldest first by (created_at, id)."""
        found = self._list(CAMPAIGNS, "campaigns.paused_by_engine", workspace_id=workspace_id, limit=limit)
        return self._all_with_agents(found)

    def taken_back(self, *, workspace_id: str | None = None, limit: int) -> Sequence[Campaign]:
        """Return campaigns whose approved start was taken back, of one workspace or all, oldest first.

        They are ready, not archived, and have not moved since what was approved has changed.
        """
        found = self._list(
            CAMPAIGNS, "campaigns.taken_back", workspace_id=workspace_id, reason=APPROVAL_ENDED, limit=limit
        )
        return self._all_with_agents(found)

    def _all_with_agents(self, campaigns: Sequence[Campaign]) -> Sequence[Campaign]:
        self._rows.prefetch(AGENTS, ((it.workspace_id, it.agent_id) for it in campaigns if it.agent_id is not None))
        return [self._with_agent(campaign) for campaign in campaigns]

    def _with_agent(self, campaign: Campaign) -> Campaign:
        """Return a campaign with the current snapshot of its agent."""
        if campaign.agent_id is None:
            return campaign
        agent = snapshot(self._rows.get(AGENTS, (campaign.workspace_id, campaign.agent_id)))
        return campaign if agent is None else attrs.evolve(campaign, agent=agent)


def snapshot(agent: Agent | None) -> AgentSnapshot | None:
    """Return the compact view of an agent for its campaigns."""
    if agent is None:
        return None
    return AgentSnapshot(id=agent.id, name=agent.name, provider=agent.provider, is_active=agent.is_active)


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
        `search` matches case-insensitively for every script (`rules.segments.fold`).
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
            **page_begin(after, after_at=LAST, after_id=""),
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


class Approvals(Table):
    """Approvals by campaign and revision; not cached."""

    def put(self, workspace_id: str, campaign_id: str, approval: Approval) -> None:
        """Write the approval of a revision, in the place of an earlier one."""
        number = self._rows.number(workspace_id, campaign_id)
        if number is None:
            raise LookupError("There is no such campaign.")
        self._rows.execute(
            "approvals.put",
            number=number,
            revision=approval.revision,
            approved_by=approval.approved_by,
            approved_at=format_timestamp(approval.approved_at),
            figures=json_text(to_json(approval.figures)),
        )

    def get(self, workspace_id: str, campaign_id: str, revision: int) -> Approval | None:
        """Return the approval of a revision; None without one."""
        rows = self._campaign_rows("approvals.get", workspace_id, campaign_id, revision=revision)
        for approved_by, approved_at, figures in rows:
            return Approval(
                revision=revision,
                approved_by=approved_by,
                approved_at=parse_timestamp(approved_at),
                figures=from_json(StartFigures, json.loads(figures)),
            )
        return None

    def has_any(self, workspace_id: str, campaign_id: str) -> bool:
        """Return whether any revision of a campaign has an approval."""
        return bool(self._campaign_rows("approvals.any", workspace_id, campaign_id))

    def delete(self, workspace_id: str, campaign_id: str) -> None:
        """Delete the approvals of all revisions of a campaign."""
        number = self._rows.number(workspace_id, campaign_id)
        self._rows.execute("approvals.delete", number=number)


class Forecasts(Table):
    """Forecasts as they were at the start of campaigns and after changes; not cached."""

    def keep(self, workspace_id: str, basis: str, forecast: KeptForecast, *, most: int) -> bool:
        """Keep a forecast, unless there is one about the same; return whether there was none.

        Args:
            workspace_id: The workspace.
            basis: What it is about.
            forecast: The forecast.
            most: Of more of the campaign, those between the first and the latest ones are deleted.
        """
        number = self._rows.number(workspace_id, forecast.campaign_id)
        if number is None:
            return False
        written = self._rows.execute(
            "campaigns.keep_forecast",
            number=number,
            basis=basis,
            made_at=format_timestamp(forecast.at),
            content=forecast_text(forecast),
        )
        if written:
            self._rows.execute("campaigns.delete_forecasts", number=number, latest=most - 1)
        return bool(written)

    def has(self, workspace_id: str, campaign_id: str, basis: str) -> bool:
        """Return whether a forecast about this is kept."""
        return bool(self._campaign_rows("campaigns.has_forecast", workspace_id, campaign_id, basis=basis))

    def of_campaign(self, workspace_id: str, campaign_id: str) -> Sequence[KeptForecast]:
        """Return a campaign's forecasts, by (made_at, basis)."""
        rows = self._campaign_rows("campaigns.forecasts", workspace_id, campaign_id)
        return [read_forecast_text(content, campaign_id=campaign_id) for (content,) in rows]


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
        self._rows.raise_change()
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
        subjects: Collection[str] | None = None,
        after: int | None = None,
        limit: int,
    ) -> Sequence[tuple[int, AuditEntry]]:
        """Return what `list` does, each entry with its number, from below the number `after` on.

        The filters are for the entries of one workspace.
        """
        wanted = None if subjects is None else json_text([*subjects])
        filters: dict[str, Value] = {"actor": actor, "action": action, "subjects": wanted}
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
