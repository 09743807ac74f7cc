"""How a campaign that runs is shown: on a terminal, line by line, or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
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

from outreach import Campaign, CampaignStatus, Channel, Outreach, RecipientGroup, SystemClock
from outreach_server.cli import documents
from outreach_server.cli.output import cell

POLL_SECONDS: Final = 0.5
_RATE_SECONDS: Final = 10.0

STYLES: Final = {
    "completed": "green", "active": "green", "in_progress": "cyan", "dispatching": "cyan", "waiting": "yellow",
    "paused": "yellow", "failed": "red", "unknown": "red", "unconfirmed": "red", "skipped": "magenta",
    "canceled": "bright_black", "cancelled": "bright_black", "expired": "bright_black",
}  # fmt: skip

WHY: Final = {
    ("left out", "opted_out"): "on the unsubscribe register: never even written",
    ("completed", None): "accepted by the carrier",
    ("skipped", "duplicate"): "the same number stands earlier in the list",
    ("skipped", "invalid_number"): "no possible phone number: never handed to a carrier",
    ("skipped", "opted_out"): "on the unsubscribe register",
    ("failed", "over_segment_cap"): "the text is longer than the settings allow",
    ("failed", "empty_message"): "the template left nothing to send",
    ("unconfirmed", None): "nobody can tell whether it went out: not sent again",
    ("pending", None): "not attempted yet",
    ("dispatching", None): "on its way to the carrier",
}


CALL_WHY: Final = {
    ("completed", None): "the call took place",
    ("skipped", "invalid_number"): "no possible phone number: never called",
    ("failed", "agent_unavailable"): "the agent may not call out",
    ("unconfirmed", None): "nobody can tell whether the phone rang: not called again",
    ("dispatching", None): "on its way to the voice provider",
    ("in_progress", "calling"): "ringing, or talking",
}
"""Of calls, where another word is right than for messages."""


@attrs.frozen(kw_only=True)
class Snapshot:
    """A campaign at one moment.

    Attributes:
        held_by: What keeps it from sending although its state would let it; None when nothing does.
        rate_per_minute: Recipients that ended a minute, lately.
        eta_seconds: How long the rest takes at this rate; None when nothing moves.
    """

    campaign: Campaign
    groups: Sequence[RecipientGroup]
    held_by: str | None = None
    rate_per_minute: float
    eta_seconds: float | None

    @property
    def ended(self) -> int:
        """Recipients that have ended."""
        counters = self.campaign.counters
        return counters.total - counters.open


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
        key = (campaign.status, snapshot.held_by, campaign.counters)
        if key != self._last:
            self._last = key
            groups = ", ".join(f"{group.count} {_group_name(documents.group(group))}" for group in snapshot.groups)
            self._echo(f"{_state(snapshot)}  {snapshot.ended}/{campaign.counters.total} ended  {groups}")
            waits_for = what_it_waits_for(campaign)
            if waits_for is not None:
                self._echo(waits_for)


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
    seen: deque[tuple[float, int]] = deque()
    while True:
        # In this order, so that a campaign that is over is shown with its last groups.
        campaign = await engine.campaigns.get(workspace_id, campaign_id)
        groups = await engine.campaigns.groups(workspace_id, campaign_id)
        owner = await engine.workspaces.get(workspace_id)
        held_by = documents.held_by(campaign, owner, await engine.campaigns.held_until(workspace_id, campaign_id))
        now, ended = clock.monotonic(), campaign.counters.total - campaign.counters.open
        seen.append((now, ended))
        while now - seen[0][0] > _RATE_SECONDS:
            seen.popleft()
        elapsed = now - seen[0][0]
        rate = (ended - seen[0][1]) / elapsed if elapsed > 0 else 0.0
        eta = campaign.counters.open / rate if rate > 0 else None
        snapshot = Snapshot(
            campaign=campaign, groups=groups, held_by=held_by, rate_per_minute=rate * 60, eta_seconds=eta
        )
        view.update(snapshot)
        if campaign.is_terminal:
            return snapshot
        await anyio.sleep(poll_seconds)


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
    table = groups_table([documents.group(group) for group in snapshot.groups], campaign.channel)
    waits_for = what_it_waits_for(campaign)
    return Group(head, table) if waits_for is None else Group(head, Text(waits_for), table)


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


def groups_table(groups: Sequence[documents.Document], channel: Channel) -> Table:
    """Return a table of how many recipients are in which state, and why."""
    words = {**WHY, **CALL_WHY} if channel == "call" else WHY
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("recipients", justify="right")
    table.add_column("state")
    table.add_column("why")
    for group in groups:
        status, reason = group["status"], group["reason"]
        why = words.get((status, reason)) or cell(reason)
        table.add_row(str(group["count"]), Text(_group_name(group), style=STYLES.get(status, "")), why)
    return table


def _state(snapshot: Snapshot) -> str:
    why = snapshot.campaign.pause_reason or snapshot.held_by
    return f"{snapshot.campaign.status} ({why})" if why else str(snapshot.campaign.status)


def _group_name(group: documents.Document) -> str:
    return f"{group['status']}: {cell(group['reason'])}" if group["reason"] else str(group["status"])


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
