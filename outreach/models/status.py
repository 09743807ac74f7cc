"""How everything is at one moment: who dispatches, what runs, and what needs a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.models.base import Channel
from outreach.models.campaign import PauseReason
from outreach.models.dispatch import UnknownDispatchCount
from outreach.models.unsubscribe import Unsubscribe

DispatchedBy = Literal["this_process", "another_process", "nobody"]


DispatcherState = Literal["off", "starting", "checking", "dispatching", "standing_by", "refused", "stopping"]
"""What a dispatcher does.

`off`: it was not asked to dispatch. `starting`: it asks for the right, or could not ask. `checking`: after a crash it
looks the database through before it sends anything. `standing_by`: another process has the right, and this one takes
over when that ends. `refused`: nothing may be dispatched from this database here.
"""


@attrs.frozen(kw_only=True)
class DispatcherHealth:
    """How a dispatcher is.

    Attributes:
        state: What it does.
        dispatching: Whether it holds the right to dispatch now.
        epoch: The epoch of that right; None without it.
        active_units: Units being worked on at this moment.
        failures: Slices that ended in an unexpected error since the start.
        last_error: Class name and time of the latest of those; None when there was none.
        refused: Why it does not dispatch here at all, in words; None when nothing forbids it.
        refused_reason: The same in one word (`errors.DispatchRefused`).
        lease_seconds_left: How long the right lasts without another heartbeat; None without it.
        heartbeat_seconds_ago: How long ago the right was taken or renewed; None without it.
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
    """Who sends from a database.

    A process that has the right to dispatch says so every few seconds (its heartbeat); one that has said nothing for
    `EngineConfig.lease_seconds` is taken for gone. Which processes stand by is known to themselves alone.

    Attributes:
        by: `this_process`, `another_process`, or `nobody`.
        epoch: Of the latest that dispatched; it rises by one with each. None where none ever has.
        heartbeat_at: Of the latest that dispatched; None where none ever has.
        heartbeat_seconds_ago: How long ago that was; None where none ever has.
    """

    by: DispatchedBy
    epoch: int | None
    heartbeat_at: datetime | None
    heartbeat_seconds_ago: float | None

    @property
    def problem(self) -> str | None:
        """That nobody dispatches, and since when, in a sentence; None while somebody does."""
        if self.by != "nobody":
            return None
        at = self.heartbeat_at
        since = "and none ever has" if at is None else f"since {at:%Y-%m-%d %H:%M:%S} UTC"
        return f"No process sends from this database, {since}."


@attrs.frozen(kw_only=True)
class PausedCampaign:
    """A campaign that the engine has paused by itself: it goes on when somebody resumes it.

    Attributes:
        id: Of the campaign.
        provider: The carrier or voice provider that it goes to; None where it has none.
        agent_id: Of the agent that makes its calls; None of messages.
        reason: `Campaign.pause_reason`.
        why: The same in words, as `PAUSE_REASONS` has them: a part of a sentence.
    """

    id: str
    workspace_id: str
    name: str
    channel: Channel
    provider: str | None
    agent_id: str | None
    reason: PauseReason
    why: str


@attrs.frozen(kw_only=True)
class ThrottledProvider:
    """A provider that asked a workspace to be left alone for a while: what waits goes on by itself.

    Attributes:
        until: Requests begin again then.
    """

    workspace_id: str
    provider: str
    until: datetime


@attrs.frozen(kw_only=True)
class EngineStatus:
    """How one workspace is, or all of them.

    Lists have a hundred entries at the most, and unknown requests are counted up to ten thousand; `truncated` names
    what goes on beyond that.

    Attributes:
        at: The moment.
        workspace_id: Whose status; None for all.
        dispatching: Who sends from the database: of the whole of it, whichever workspace was asked for.
        active_campaigns: How many are active.
        scheduled_campaigns: How many wait for their start.
        paused: Campaigns that the engine has paused by itself, oldest first; `engine.campaigns.resume` resumes them.
        unknown: Requests of which nobody knows what became, what is oldest first; `engine.dispatches.unknown` lists
            them, `engine.dispatches.resolve` decides.
        waits: Providers that asked to be left alone, what ends first first.
        held: Numbers that are held back from campaigns because of a message that may be an opt-out, the latest first;
            `engine.unsubscribes.resolve` decides.
        truncated: Which of `paused`, `unknown`, `waits` and `held` are not all.
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

    @property
    def needs_attention(self) -> bool:
        """Whether anything of it goes on only when a person does something."""
        return bool(self.dispatching.by == "nobody" or self.paused or self.unknown or self.held)


@attrs.frozen(kw_only=True)
class Readiness:
    """Whether this process can do its work now.

    Attributes:
        ready: Whether nothing is in the way.
        reasons: What is in the way, a sentence each.
        write_seconds: How long a small write took, its commit included; None when it was not done in time, or failed.
        write_error: Why it failed, or another write did within the last `LATELY_SECONDS`: `locked` (not done within
            `WRITE_SECONDS`), or the name of the error, such as `SQLITE_FULL`; None when none did.
        dispatcher: How dispatching is.
    """

    ready: bool
    reasons: Sequence[str]
    write_seconds: float | None
    write_error: str | None
    dispatcher: DispatcherHealth


@attrs.frozen(kw_only=True)
class CampaignBlocker:
    """One thing that keeps a campaign from going on.

    Attributes:
        by: What: `workspace_suspended` (or another status of the workspace), `no_dispatcher`, `provider_hold`,
            `business_hours` or `holidays`.
        until: Until when, as far as is known; None where somebody has to do something.
        why: The same in a sentence.
    """

    by: str
    until: datetime | None
    why: str


@attrs.frozen(kw_only=True)
class StartCheck:
    """What a look at a campaign's contacts tells before it starts.

    Attributes:
        contacts: Contacts that would be reached: those that are neither left out nor skipped already.
        checked: How many of them were looked at, from the first on.
        failures_by_reason: Of these, how many will fail, by reason: `over_segment_cap` or `empty_message`.
    """

    contacts: int
    checked: int
    failures_by_reason: Mapping[str, int]

    @property
    def failing(self) -> int:
        """How many of those that were looked at will fail."""
        return sum(self.failures_by_reason.values())
