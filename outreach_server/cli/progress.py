"""Follows a running campaign: as a picture on a terminal, line by line, or silently."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

import anyio
import attrs
import click
from rich.console import Console
from rich.live import Live

from outreach import Outreach
from outreach.protocols import SystemClock
from outreach_server.cli.campaigns.forecast import forecast_lines
from outreach_server.cli.campaigns.panel import Panel, group_name, pace_text, state_text
from outreach_server.cli.campaigns.picture import Snapshot, SnapshotReader, hints, messages_text

POLL_SECONDS: Final = 0.5
LINE_SECONDS: Final = 5.0
"""Lines about numbers alone are at least so far apart."""

_PACE_SECONDS: Final = 30.0
_SAMPLE_SECONDS: Final = 5.0
_MAX_SAMPLES: Final = 24


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
    """Prints a line when something has changed: at once what a person has to know, numbers every few seconds."""

    def __init__(self, echo: Callable[[str], None] = click.echo) -> None:
        self._echo = echo
        self._state: object = None
        self._numbers: object = None
        self._logged_at: float | None = None

    def update(self, snapshot: Snapshot) -> None:
        """Print the current state, if it has changed."""
        campaign = snapshot.campaign
        messages = messages_text(campaign, snapshot.sent)
        state = snapshot.state
        changed = state != self._state
        numbers = (campaign.counters, messages)
        now = snapshot.at.timestamp()
        soon = self._logged_at is not None and abs(now - self._logged_at) < LINE_SECONDS and not campaign.is_terminal
        if not changed and (numbers == self._numbers or soon):
            return
        self._state, self._numbers, self._logged_at = state, numbers, now
        groups = ", ".join(f"{group['count']} {group_name(group)}" for group in snapshot.documents)
        ended = f"{snapshot.ended}/{campaign.counters.total} ended"
        self._echo("  ".join(filter(None, (state_text(snapshot), ended, pace_text(snapshot), groups, messages))))
        for text in hints(snapshot):
            self._echo(text)
        for text in (
            forecast_lines(snapshot.forecast, campaign.timezone) if changed and snapshot.forecast is not None else ()
        ):
            self._echo(text)


class Terminal:
    """A picture on the screen."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def update(self, snapshot: Snapshot) -> None:
        """Draw the current state."""
        self._live.update(Panel(snapshot), refresh=True)


def view_for(out: Console, *, silent: bool, transient: bool = False) -> tuple[View, AbstractContextManager[Any]]:
    """Return the fitting view, and the context to use it in; a transient one is erased at the end."""
    if silent:
        return Silent(), nullcontext()
    if not out.is_terminal:
        return Lines(), nullcontext()
    live = Live(console=out, auto_refresh=False, transient=transient)
    return Terminal(live), live


class PaceMeter:
    """Measures how many contacts are begun and have ended a minute, over the last half minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, int]] = deque()
        self._samples: deque[float] = deque(maxlen=_MAX_SAMPLES)
        self._sampled_at: float | None = None

    def measure(self, snapshot: Snapshot, now: float) -> Snapshot:
        """Return a snapshot with its pace; `now` is a monotonic time in seconds."""
        counters = snapshot.campaign.counters
        self._seen.append((now, counters.total - counters.pending, snapshot.ended))
        # The last look before the window stays: looks may be farther apart than it is long.
        while len(self._seen) > 1 and now - self._seen[1][0] >= _PACE_SECONDS:
            self._seen.popleft()
        then, begun_then, ended_then = self._seen[0]
        elapsed = now - then
        if elapsed <= 0:
            return snapshot
        # A cancelled campaign's contacts are closed, and a retry puts one back: neither is a pace.
        begun = max(0, self._seen[-1][1] - begun_then) / elapsed
        ended = max(0, snapshot.ended - ended_then) / elapsed
        if self._sampled_at is None or now - self._sampled_at >= _SAMPLE_SECONDS:
            self._sampled_at = now
            self._samples.append(begun * 60)
        # A contact not begun takes longer than one that only waits for a report.
        left = counters.pending / begun if counters.pending and begun > 0 else None
        if not counters.pending and ended > 0:
            left = counters.open / ended
        return attrs.evolve(snapshot, pace_per_minute=begun * 60, paces=tuple(self._samples), eta_seconds=left)


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
    look = SnapshotReader(engine, workspace_id, campaign_id, clock, forecasts=not isinstance(view, Silent))
    meter = PaceMeter()
    while True:
        snapshot = meter.measure(await look.now(), clock.monotonic())
        view.update(snapshot)
        if snapshot.campaign.is_terminal:
            return snapshot
        await anyio.sleep(poll_seconds)
