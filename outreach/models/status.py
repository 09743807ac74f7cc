"""The overall status: who dispatches, what runs, and what needs a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.models.account import AdapterProblem
from outreach.models.base import Channel
from outreach.models.campaign import PauseReason
from outreach.models.dispatch import UnknownDispatchCount
from outreach.models.unsubscribe import Unsubscribe

DispatchedBy = Literal["this_process", "another_process", "nobody"]


DispatcherState = Literal["off", "starting", "checking", "dispatching", "standing_by", "refused", "stopping"]
"""The state of a dispatcher.

`off`: not asked to dispatch. `starting`: requesting a lease. `checking`: checking the database after a crash, before
anything is sent. `standing_by`: as many processes as allowed dispatch, and this one does when one of them ends.
`refused`: dispatch is disabled for this database here.
"""


@attrs.frozen(kw_only=True)
class DispatcherHealth:
    """The health of a dispatcher.

    Attributes:
        state: What it does.
        dispatching: Whether it holds the lease.
        epoch: The epoch of the lease; None without it.
        active_units: Units in work now.
        failures: Slices that ended in an unexpected error since the start.
        last_error: Class name and time of the latest of those, if any.
        refused: Why dispatch is disabled here, in words; else None.
        refused_reason: The same in one word (`errors.DispatchRefused`).
        lease_seconds_left: How long the lease lasts without another heartbeat; None without it.
        heartbeat_seconds_ago: The age of the last heartbeat; None without the lease.
    """

    state: DispatcherState = "off"
    dispatching: bool
    epoch: int | None
    active_units: int
    failures: int
    last_error: str | None
    refused: str | None = None
    refused_reason: str | None = None
    lease_seconds_left: float | None = None
    heartbeat_seconds_ago: float | None = None


@attrs.frozen(kw_only=True)
class DispatchOverview:
    """Who dispatches from a database.

    The lease's holder writes a heartbeat every few seconds; one without a heartbeat for `EngineConfig.lease_seconds` is
    considered gone. Processes that stand by are not recorded.

    Attributes:
        by: `this_process`, `another_process`, or `nobody`.
        epoch: Of the latest lease; each lease raises it by one. None if there was none.
        heartbeat_at: The latest heartbeat; None if there was none.
        heartbeat_seconds_ago: Its age; None if there was none.
    """

    by: DispatchedBy
    epoch: int | None
    heartbeat_at: datetime | None
    heartbeat_seconds_ago: float | None

    @property
    def problem(self) -> str | None:
        """A sentence that no process dispatches, and since when; None while one does."""
        if self.by != "nobody":
            return None
        at = self.heartbeat_at
        since = "and none ever has" if at is None else f"since {at:%Y-%m-%d %H:%M:%S} UTC"
        return f"No process sends from this database, {since}."


@attrs.frozen(kw_only=True)
class PausedCampaign:
    """A campaign that the engine has paused, until an operator resumes it.

    Attributes:
        id: The campaign's id.
        provider: Its carrier or voice provider, if any.
        provider_installed: Whether the provider has an adapter here; without one the campaign cannot go on.
        agent_id: The agent of its calls; None for messages.
        reason: `Campaign.pause_reason`.
        why: The same in words, as in `PAUSE_REASONS`, or that its adapter is not installed: a part of a sentence.
    """

    id: str
    workspace_id: str
    name: str
    channel: Channel
    provider: str | None
    agent_id: str | None
    reason: PauseReason
    why: str
    provider_installed: bool = True


@attrs.frozen(kw_only=True)
class ThrottledProvider:
    """A provider that throttles a workspace; waiting work resumes by itself.

    Attributes:
        until: When requests resume.
    """

    workspace_id: str
    provider: str
    until: datetime


@attrs.frozen(kw_only=True)
class EngineStatus:
    """The status of one workspace, or of all.

    Lists have at most a hundred entries, and unknown requests are counted up to ten thousand; `truncated` names what is
    not complete.

    Attributes:
        at: The time.
        workspace_id: The workspace; None for all.
        dispatching: Who dispatches from the whole database.
        active_campaigns: The number of active campaigns.
        scheduled_campaigns: The number of campaigns that wait for their start.
        paused: Campaigns paused by the engine, oldest first; `engine.campaigns.resume` resumes them.
        unknown: Requests with an unknown outcome, oldest first; `engine.dispatches.list_unknown` lists them,
            `engine.dispatches.resolve` decides.
        waits: Throttles of providers, the first to end first.
        held: Held numbers, whose message may have been an opt-out, latest first; `engine.unsubscribes.resolve` decides.
        truncated: Which of `paused`, `unknown`, `waits` and `held` are incomplete.
        adapter_problems: Adapters of installed packages that cannot be used in this process.
    """

    at: datetime
    workspace_id: str | None
    dispatching: DispatchOverview
    active_campaigns: int
    scheduled_campaigns: int
    paused: Sequence[PausedCampaign]
    unknown: Sequence[UnknownDispatchCount]
    waits: Sequence[ThrottledProvider]
    held: Sequence[Unsubscribe]
    truncated: Sequence[str]
    adapter_problems: Sequence[AdapterProblem] = ()

    @property
    def needs_attention(self) -> bool:
        """Whether anything waits for a person."""
        waiting = self.paused or self.unknown or self.held or self.adapter_problems
        return bool(self.dispatching.by == "nobody" or waiting)


@attrs.frozen(kw_only=True)
class Readiness:
    """Whether this process can work now.

    Attributes:
        ready: Whether there are no `reasons`.
        reasons: What prevents it, a sentence each.
        write_seconds: Duration of a small write with its commit; None if it failed or timed out.
        write_error: Why it failed, or another write did within the last `LATELY_SECONDS`: `locked` (not done within
            `WRITE_SECONDS`), or the name of the error, such as `SQLITE_FULL`; else None.
        dispatcher: The dispatcher's health.
        adapter_problems: Adapters of installed packages that cannot be used; everything else goes on, and is ready.
    """

    ready: bool
    reasons: Sequence[str]
    write_seconds: float | None
    write_error: str | None
    dispatcher: DispatcherHealth
    adapter_problems: Sequence[AdapterProblem] = ()


@attrs.frozen(kw_only=True)
class CampaignBlocker:
    """One thing that blocks a campaign.

    Attributes:
        by: `workspace_suspended` (or another status of the workspace), `no_dispatcher`, `provider_hold`,
            `business_hours` or `holidays`.
        until: When it ends; None if unknown, or if a person has to act.
        why: The same in a sentence.
    """

    by: str
    until: datetime | None
    why: str


@attrs.frozen(kw_only=True)
class StartCheck:
    """The result of checking a campaign's contacts before it starts.

    Attributes:
        contacts: Contacts that would be contacted.
        checked: How many of them were checked, from the first on.
        failures_by_reason: How many of these will fail, by reason: `over_segment_cap` or `empty_message`.
    """

    contacts: int
    checked: int
    failures_by_reason: Mapping[str, int]

    @property
    def failing(self) -> int:
        """The number of checked contacts that will fail."""
        return sum(self.failures_by_reason.values())
