"""How a campaign that runs is shown: on a terminal, line by line, or not at all."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, Final, Protocol

import anyio
import attrs
import click
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from outreach import (
    PAUSES,
    Campaign,
    CampaignStatus,
    DispatchGroup,
    ErrorDetail,
    Holdup,
    Outreach,
    RecipientGroup,
    SystemClock,
)
from outreach_server.cli import documents
from outreach_server.cli.obstacles import explain_draft
from outreach_server.cli.output import cell

POLL_SECONDS: Final = 0.5
_RATE_SECONDS: Final = 10.0
_SHARE: Final = 20.0
"""What takes long is done so seldom that it takes a twentieth of the time at the most."""

NOBODY: Final = "nobody is dispatching"

STYLES: Final = {
    "completed": "green", "active": "green", "in_progress": "cyan", "dispatching": "cyan", "waiting": "yellow",
    "paused": "yellow", "failed": "red", "unknown": "red", "unconfirmed": "red", "skipped": "magenta",
    "canceled": "bright_black", "cancelled": "bright_black", "expired": "bright_black",
}  # fmt: skip


@attrs.frozen(kw_only=True)
class Snapshot:
    """A campaign at one moment.

    Attributes:
        holds: What keeps it from going on although its state would let it.
        waits: For each state and reason, until when the first of its recipients waits, where that is known.
        sent: What its requests came to at the provider.
        missing: What a draft lacks to be ready.
        rate_per_minute: Recipients that ended a minute, lately.
        eta_seconds: How long the rest takes at this rate; None when nothing moves.
    """

    campaign: Campaign
    groups: Sequence[RecipientGroup]
    holds: Sequence[Holdup] = ()
    waits: Mapping[tuple[str, str | None], datetime] = attrs.field(factory=dict)
    sent: Sequence[DispatchGroup] = ()
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


class View(Protocol):
    """Shows a campaign while it runs."""

    def update(self, snapshot: Snapshot) -> None:
        """Show how it is now."""
        ...


class Silent:
    """Shows nothing."""

    def update(self, snapshot: Snapshot) -> None:
        """Show nothing."""


class Lines:
    """Prints a line whenever something has changed."""

    def __init__(self, echo: Callable[[str], None] = click.echo) -> None:
        self._echo = echo
        self._last: tuple[object, ...] = ()

    def update(self, snapshot: Snapshot) -> None:
        """Print how it is now, unless it is as before."""
        campaign = snapshot.campaign
        messages = messages_text(campaign, snapshot.sent)
        key = (campaign.status, [hold.by for hold in snapshot.holds], campaign.counters, messages)
        if key != self._last:
            self._last = key
            groups = ", ".join(f"{group['count']} {_group_name(group)}" for group in snapshot.documents)
            ended = f"{snapshot.ended}/{campaign.counters.total} ended"
            self._echo("  ".join(filter(None, (_state(snapshot), ended, groups, messages))))
            for text in hints(snapshot):
                self._echo(text)


class Terminal:
    """Keeps a progress bar and a table on the screen up to date."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def update(self, snapshot: Snapshot) -> None:
        """Draw how it is now."""
        self._live.update(render(snapshot), refresh=True)


def view_for(out: Console, *, silent: bool, transient: bool = False) -> tuple[View, AbstractContextManager[Any]]:
    """Return the view that fits, and what has to be entered while it is used; a transient one leaves no trace."""
    if silent:
        return Silent(), nullcontext()
    if not out.is_terminal:
        return Lines(), nullcontext()
    live = Live(console=out, auto_refresh=False, transient=transient)
    return Terminal(live), live


async def follow(
    engine: Outreach,
    workspace_id: str,
    campaign_id: str,
    view: View,
    *,
    poll_seconds: float = POLL_SECONDS,
) -> Snapshot:
    """Show a campaign until it has ended for good; return how it ended."""
    clock = SystemClock()
    look = Look(engine, workspace_id, campaign_id)
    seen: deque[tuple[float, int]] = deque()
    while True:
        picture = await look.now()
        campaign = picture.campaign
        now, ended = clock.monotonic(), picture.ended
        seen.append((now, ended))
        while now - seen[0][0] > _RATE_SECONDS:
            seen.popleft()
        elapsed = now - seen[0][0]
        rate = (ended - seen[0][1]) / elapsed if elapsed > 0 else 0.0
        eta = campaign.counters.open / rate if rate > 0 else None
        snapshot = attrs.evolve(picture, rate_per_minute=rate * 60, eta_seconds=eta)
        view.update(snapshot)
        if campaign.is_terminal:
            return snapshot
        await anyio.sleep(poll_seconds)


@attrs.define
class Look:
    """Looks at a campaign, again and again; what is costly where it is large is looked at less often."""

    _engine: Outreach
    _workspace_id: str
    _campaign_id: str
    _sent: Sequence[DispatchGroup] = ()
    _again_at: float = 0.0

    async def now(self) -> Snapshot:
        """Return how it is now, its rate left open."""
        engine, place = self._engine, (self._workspace_id, self._campaign_id)
        # In this order, so that a campaign that is over is shown with its last groups.
        campaign = await engine.campaigns.get(*place)
        groups = await engine.campaigns.groups(*place)
        began = time.monotonic()
        if campaign.is_terminal or began >= self._again_at:
            self._sent = await engine.failures.groups(*place)
            took = time.monotonic() - began
            self._again_at = began + took * _SHARE
        return Snapshot(
            campaign=campaign,
            groups=groups,
            holds=await engine.holdups.of_campaign(*place),
            waits=await engine.holdups.of_recipients(*place),
            sent=self._sent,
            missing=await engine.campaigns.missing(*place) if campaign.status is CampaignStatus.DRAFT else (),
            rate_per_minute=0.0,
            eta_seconds=None,
        )


def render(snapshot: Snapshot) -> RenderableType:
    """Return the picture of a campaign at one moment."""
    campaign = snapshot.campaign
    total = max(1, campaign.counters.total)
    head = Table.grid(padding=(0, 2))
    status = Text(_state(snapshot), style=STYLES.get(campaign.status, ""))
    facts = [f"{snapshot.ended}/{campaign.counters.total}"]
    if not campaign.is_terminal:
        facts.append(f"{snapshot.rate_per_minute:.0f}/min")
        facts.append(f"about {_duration(snapshot.eta_seconds)} left" if snapshot.eta_seconds else "")
    head.add_row(
        Text(cell(campaign.name), style="bold"),
        status,
        ProgressBar(total=total, completed=snapshot.ended, width=40),
        *(Text(fact) for fact in facts),
    )
    table = groups_table(snapshot.documents)
    messages = messages_text(campaign, snapshot.sent)
    return Group(head, *(Text(text) for text in hints(snapshot)), table, *([Text(messages)] if messages else []))


def hints(snapshot: Snapshot) -> list[str]:
    """Return what people have to know or to do before a campaign goes on, each in a line."""
    campaign = snapshot.campaign
    paused = PAUSES.get(campaign.pause_reason or "")
    waits_for = explain_draft(snapshot.missing, campaign) if snapshot.missing else what_it_waits_for(campaign)
    return [
        *([f"It is paused: {paused}."] if paused else []),
        *([waits_for] if waits_for is not None else []),
        *(hold_text(hold) for hold in snapshot.holds),
    ]


def hold_text(hold: Holdup) -> str:
    """Return what keeps a campaign from going on, until when, and what to do."""
    until = f" Until {documents.plain(hold.until)}." if hold.until is not None else ""
    todo = " Start one with: outreach-server serve" if hold.by == NOBODY else ""
    return f"{hold.why}{until}{todo}"


def message_counts(campaign: Campaign, sent: Sequence[DispatchGroup]) -> dict[str, int] | None:
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


def messages_text(campaign: Campaign, sent: Sequence[DispatchGroup]) -> str:
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


def what_it_waits_for(campaign: Campaign) -> str | None:
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


def groups_table(groups: Sequence[documents.Document]) -> Table:
    """Return a table of how many recipients are in which state, why, and until when the first of them waits."""
    timed = any(group["until"] for group in groups)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("recipients", justify="right")
    table.add_column("state")
    table.add_column("why")
    if timed:
        table.add_column("until")
    for group in groups:
        status = group["status"]
        state = Text(_group_name(group), style=STYLES.get(status, ""))
        until = [Text(cell(group["until"]))] if timed else []
        table.add_row(str(group["count"]), state, Text(cell(group["why"])), *until)
    return table


def _state(snapshot: Snapshot) -> str:
    why = snapshot.campaign.pause_reason or (snapshot.holds[0].by if snapshot.holds else None)
    return f"{snapshot.campaign.status} ({why})" if why else str(snapshot.campaign.status)


def _group_name(group: documents.Document) -> str:
    return f"{group['status']}: {cell(group['reason'])}" if group["reason"] else str(group["status"])


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
