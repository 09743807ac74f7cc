"""A campaign at one moment: how far it is, what it waits for and why, and what its messages came to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach import Campaign, CampaignStatus, Outreach
from outreach.errors import ErrorDetail
from outreach.models import CampaignBlocker, DispatchCount, RecipientCount
from outreach.reasons import PAUSE_REASONS
from outreach_server.cli import documents
from outreach_server.cli.nobody import no_dispatcher_text
from outreach_server.cli.obstacles import explain_obstacles

_SHARE: Final = 20.0
"""What takes long is done so seldom that it takes a twentieth of the time at the most."""

_NOT_STARTED: Final = frozenset({CampaignStatus.DRAFT, CampaignStatus.READY})
_NOBODY: Final = "no_dispatcher"


@attrs.frozen(kw_only=True)
class Snapshot:
    """A campaign at one moment.

    Attributes:
        holds: What keeps it from going on although its state would let it.
        waits: For each state and reason, until when the first of its recipients waits, where that is known.
        sent: What its requests came to at the provider.
        missing: What is in the way of the start of one that has not been started.
        rate_per_minute: Recipients that ended a minute, lately.
        eta_seconds: How long the rest takes at this rate; None when nothing moves.
    """

    campaign: Campaign
    groups: Sequence[RecipientCount]
    holds: Sequence[CampaignBlocker] = ()
    waits: Mapping[tuple[str, str | None], datetime] = attrs.field(factory=dict)
    sent: Sequence[DispatchCount] = ()
    missing: Sequence[ErrorDetail] = ()
    rate_per_minute: float
    eta_seconds: float | None

    @property
    def ended(self) -> int:
        """Recipients that have ended."""
        counters = self.campaign.counters
        return counters.total - counters.open

    @property
    def documents(self) -> list[documents.Document]:
        """How many recipients are in which state, why, and until when."""
        shown = [documents.group(group, self.campaign.channel, self.waits) for group in self.groups]
        counts = message_counts(self.campaign, self.sent)
        for document in shown:
            if counts is not None and (document["status"], document["reason"]) == ("completed", None):
                document["why"] = _how_sent(counts)
        return shown


@attrs.define
class SnapshotReader:
    """Looks at a campaign, again and again; what is costly where it is large is looked at less often."""

    _engine: Outreach
    _workspace_id: str
    _campaign_id: str
    _sent: Sequence[DispatchCount] = ()
    _again_at: float = 0.0

    async def now(self) -> Snapshot:
        """Return how it is now, its rate left open."""
        engine, place = self._engine, (self._workspace_id, self._campaign_id)
        # In this order, so that a campaign that is over is shown with its last groups.
        campaign = await engine.campaigns.get(*place)
        groups = await engine.campaigns.count_recipients(*place)
        began = time.monotonic()
        if campaign.is_terminal or began >= self._again_at:
            self._sent = await engine.campaigns.count_dispatches(*place)
            took = time.monotonic() - began
            self._again_at = began + took * _SHARE
        return Snapshot(
            campaign=campaign,
            groups=groups,
            holds=await engine.campaigns.blockers(*place),
            waits=await engine.campaigns.next_due_times(*place),
            sent=self._sent,
            missing=await engine.campaigns.start_problems(*place) if campaign.status in _NOT_STARTED else (),
            rate_per_minute=0.0,
            eta_seconds=None,
        )


def hints(snapshot: Snapshot) -> list[str]:
    """Return what people have to know or to do before a campaign goes on, each in a line."""
    campaign = snapshot.campaign
    paused = PAUSE_REASONS.get(campaign.pause_reason or "")
    waits_for = explain_obstacles(snapshot.missing, campaign) if snapshot.missing else waiting_text(campaign)
    return [
        *([f"It is paused: {paused}."] if paused else []),
        *([waits_for] if waits_for is not None else []),
        *(hold_text(hold) for hold in snapshot.holds),
    ]


def hold_text(hold: CampaignBlocker) -> str:
    """Return what keeps a campaign from going on, until when, and what to do."""
    if hold.by == _NOBODY:
        return no_dispatcher_text(hold.why)
    until = f" Until {documents.plain(hold.until)}." if hold.until is not None else ""
    return f"{hold.why}{until}"


def message_counts(campaign: Campaign, sent: Sequence[DispatchCount]) -> dict[str, int] | None:
    """Return what the messages of a campaign came to at the carrier; None of calls.

    Messages and not contacts: a retry and each message of a flow count.
    """
    if campaign.channel == "call":
        return None
    counts = dict.fromkeys(("accepted", "delivered", "failed", "unknown"), 0)
    for group in sent:
        if group.state == "accepted":
            name = str(group.report) if group.report in {"delivered", "failed"} else "accepted"
            counts[name] += group.count
        elif group.state == "refused":
            counts["failed"] += group.count
        elif group.state in {"unknown", "unconfirmed", "given_up"}:
            counts["unknown"] += group.count
    return counts


def _how_sent(counts: Mapping[str, int]) -> str:
    """Return what is known of messages that were sent: that a carrier took them is not yet that they arrived."""
    if not counts["delivered"]:
        return "sent, not yet confirmed"
    return "sent, and some of it not yet confirmed" if counts["accepted"] else "sent and confirmed"


def messages_text(campaign: Campaign, sent: Sequence[DispatchCount]) -> str:
    """Return what the messages of a campaign came to, in a line; empty where there are none."""
    counts = message_counts(campaign, sent)
    if counts is None or not any(counts.values()):
        return ""
    words = {
        "delivered": "delivered",
        "accepted": "sent, not yet confirmed",
        "failed": "failed",
        "unknown": "nobody knows of",
    }
    return "Messages: " + ", ".join(f"{counts[name]} {words[name]}" for name in words if counts[name])


def waiting_text(campaign: Campaign) -> str | None:
    """Return what has to happen before a campaign goes on, in words; None when nobody has to do anything."""
    match campaign.status:
        case CampaignStatus.DRAFT:
            return f"It is not ready yet: finish it with outreach-server campaigns update {campaign.id}"
        case CampaignStatus.READY:
            return f"It waits to be started: outreach-server campaigns start {campaign.id}"
        case CampaignStatus.SCHEDULED:
            return f"A running server starts it at {documents.plain(campaign.scheduled_start_at)}."
        case CampaignStatus.PAUSED:
            return f"It waits to be resumed: outreach-server campaigns resume {campaign.id}"
        case _:
            return None
