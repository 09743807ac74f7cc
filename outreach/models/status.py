"""How everything is at one moment: who dispatches, what runs, and what needs a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.models.campaign import PauseReason
from outreach.models.carriers import Channel
from outreach.models.dispatch import UnknownCount
from outreach.models.unsubscribe import Unsubscribe

DispatchedBy = Literal["this_process", "another_process", "nobody"]


@attrs.frozen(kw_only=True)
class Dispatching:
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
    def why_not(self) -> str | None:
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
        why: The same in words, as `PAUSES` has them: a part of a sentence.
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
class ProviderWait:
    """A provider that asked a workspace to be left alone for a while: what waits goes on by itself.

    Attributes:
        until: Requests begin again then.
    """

    workspace_id: str
    provider: str
    until: datetime


@attrs.frozen(kw_only=True)
class Status:
    """How one workspace is, or all of them.

    Lists have a hundred entries at the most, and unknown requests are counted up to ten thousand; `shortened` names
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
            `engine.unsubscribes.decide` decides.
        shortened: Which of `paused`, `unknown`, `waits` and `held` are not all.
    """

    at: datetime
    workspace_id: str | None
    dispatching: Dispatching
    active_campaigns: int
    scheduled_campaigns: int
    paused: Sequence[PausedCampaign]
    unknown: Sequence[UnknownCount]
    waits: Sequence[ProviderWait]
    held: Sequence[Unsubscribe]
    shortened: Sequence[str]

    @property
    def needs_somebody(self) -> bool:
        """Whether anything of it goes on only when a person does something."""
        return bool(self.dispatching.by == "nobody" or self.paused or self.unknown or self.held)
