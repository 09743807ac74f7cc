"""Views of a running campaign: on a terminal, line by line, or none."""

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

from outreach import Outreach
from outreach.protocols import SystemClock
from outreach_server.cli import documents
from outreach_server.cli.campaign_picture import Snapshot, SnapshotReader, hints, messages_text
from outreach_server.cli.output import cell

POLL_SECONDS: Final = 0.5
_RATE_SECONDS: Final = 10.0
STYLES: Final = {
    "completed": "green", "active": "green", "in_progress": "cyan", "dispatching": "cyan", "waiting": "yellow",
    "paused": "yellow", "failed": "red", "unknown": "red", "unconfirmed": "red", "skipped": "magenta",
    "canceled": "bright_black", "cancelled": "bright_black", "expired": "bright_black",
}  # fmt: skip


class View(Protocol):
    """Shows a campaign while it runs."""

    def update(self, snapshot: Snapshot) -> None:
        """Show the current state."""
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
        """Print the current state, if it has changed."""
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
    """A progress bar and a table on the screen."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def update(self, snapshot: Snapshot) -> None:
        """Draw the current state."""
        self._live.update(render(snapshot), refresh=True)


def view_for(out: Console, *, silent: bool, transient: bool = False) -> tuple[View, AbstractContextManager[Any]]:
    """Return the fitting view, and the context to use it in; a transient one is erased at the end."""
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
    """Show a campaign until it has ended; return its last state."""
    clock = SystemClock()
    look = SnapshotReader(engine, workspace_id, campaign_id)
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


def groups_table(groups: Sequence[documents.Document]) -> Table:
    """Return a table of recipients by state and reason, with when they are due."""
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
