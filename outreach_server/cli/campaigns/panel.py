"""The live picture of a campaign on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
from rich import box
from rich.bar import Bar
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from outreach_server.cli import documents
from outreach_server.cli.campaigns.forecast import forecast_lines
from outreach_server.cli.campaigns.picture import Snapshot, hints, messages_text
from outreach_server.cli.durations import time_text, until_text
from outreach_server.cli.output import cell, plural
from outreach_server.words import duration

STYLES: Final = {
    "completed": "green", "active": "green", "in_progress": "cyan", "dispatching": "cyan", "waiting": "yellow",
    "paused": "yellow", "failed": "red", "unknown": "red", "unconfirmed": "red", "skipped": "magenta",
    "canceled": "bright_black", "cancelled": "bright_black", "expired": "bright_black",
}  # fmt: skip

_ORDER: Final = (
    *("completed", "in_progress", "dispatching", "waiting", "pending", "unknown", "unconfirmed", "failed", "skipped"),
    *("canceled", "expired"),
)
_WIDE: Final = 100
"""From this many columns on there is room for a bar for each result, and for whole times."""

_BAR_WIDTH: Final = 16
_PROGRAM: Final = "outreach-server"
_LEVELS: Final = "▁▂▃▄▅▆▇█"


@attrs.frozen
class Panel:
    """A campaign at one moment, as wide as the terminal."""

    snapshot: Snapshot

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the head, the progress, the facts, what it waits for, and the results."""
        snapshot = self.snapshot
        wide = options.max_width >= _WIDE
        yield _head(snapshot)
        yield _progress(snapshot)
        yield _facts(snapshot, ascii_only=options.ascii_only)
        for hint in hints(snapshot):
            # On a line of its own a command can be copied.
            text = hint.replace(f": {_PROGRAM} ", f":\n  {_PROGRAM} ")
            yield Text(text, style="yellow" if snapshot.blockers or snapshot.campaign.pause_reason else "")
        yield _results(snapshot, wide=wide)


def state_text(snapshot: Snapshot) -> str:
    """Return a campaign's status, with why it does not go on."""
    why = snapshot.campaign.pause_reason or (snapshot.blockers[0].code if snapshot.blockers else None)
    return f"{snapshot.campaign.status} ({why})" if why else str(snapshot.campaign.status)


def pace_text(snapshot: Snapshot) -> str | None:
    """Return how fast a campaign goes, against how fast it may go; None while it does not run."""
    campaign = snapshot.campaign
    if campaign.status != "active":
        return None
    pace = None if snapshot.pace_per_minute is None else f"{snapshot.pace_per_minute:,.0f}"
    if campaign.channel == "call":
        calls = f"{snapshot.in_flight} of {campaign.batch_concurrency} calls at a time"
        return calls if pace is None else f"{calls}, {pace} {'contact' if pace == '1' else 'contacts'} a minute"
    nominal = f"{plural(campaign.rate_per_minute or 0, 'contact')} a minute"
    return f"at most {nominal}" if pace is None else f"{pace} of {nominal}"


def left_text(snapshot: Snapshot) -> str | None:
    """Return how many contacts are left, and how long they take at the measured pace; None after the end."""
    campaign = snapshot.campaign
    if campaign.is_terminal:
        return None
    left = plural(campaign.counters.open, "contact")
    if snapshot.eta_seconds is None or campaign.status != "active" or snapshot.blockers:
        return left
    return f"{left}, about {duration(snapshot.eta_seconds)} left at the measured pace"


def groups_table(groups: Sequence[documents.Document], zone: str) -> Table:
    """Return a table of recipients by state and reason, with when they are due, by the clocks of a zone."""
    timed = any(group["until"] for group in groups)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("recipients", justify="right")
    table.add_column("state")
    table.add_column("why")
    if timed:
        table.add_column("until", no_wrap=True)
    for group in groups:
        status = group["status"]
        state = Text(group_name(group), style=STYLES.get(status, ""))
        until = [Text(cell(group["until"], zone))] if timed else []
        table.add_row(f"{group['count']:,}", state, Text(cell(group["why"])), *until)
    return table


def group_name(group: documents.Document) -> str:
    """Return the state of a group of recipients, with its reason."""
    return f"{group['status']}: {cell(group['reason'])}" if group["reason"] else str(group["status"])


def _head(snapshot: Snapshot) -> RenderableType:
    campaign = snapshot.campaign
    head = Table.grid(expand=True, padding=(0, 2, 0, 0))
    head.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    head.add_column(no_wrap=True, justify="right")
    status = Text(state_text(snapshot), style=f"bold {STYLES.get(campaign.status, '')}")
    head.add_row(Text(cell(campaign.name), style="bold"), status)
    return head


def _progress(snapshot: Snapshot) -> RenderableType:
    total, ended = snapshot.campaign.counters.total, snapshot.ended
    line = Table.grid(expand=True, padding=(0, 2, 0, 0))
    line.add_column(ratio=1)
    line.add_column(no_wrap=True, justify="right")
    # Rounded down: all is done only when nobody is left.
    share = 100 * ended // total if total else 100
    bar = ProgressBar(total=max(1, total), completed=ended if total else 1)
    line.add_row(bar, Text(f"{ended:,} of {total:,} ended  {share:3} %"))
    return line


def _facts(snapshot: Snapshot, *, ascii_only: bool) -> RenderableType:
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for label, text in _labelled(snapshot, ascii_only=ascii_only):
        facts.add_row(label, Text(text))
    return facts


def _labelled(snapshot: Snapshot, *, ascii_only: bool) -> Iterator[tuple[str, str]]:
    campaign = snapshot.campaign
    if campaign.started_at is not None:
        ended_at = campaign.completed_at or snapshot.at
        took = duration((ended_at - campaign.started_at).total_seconds())
        when = time_text(campaign.started_at, campaign.timezone)
        yield "Started", f"{when}, took {took}" if campaign.is_terminal else f"{when}, {took} ago"
    pace = pace_text(snapshot)
    if pace is not None:
        yield "Pace", pace if ascii_only else f"{pace}  {_sparkline(snapshot.paces)}".rstrip()
    left = left_text(snapshot)
    if left is not None:
        yield "Left", left
    for line in forecast_lines(snapshot.forecast, campaign.timezone) if snapshot.forecast is not None else ():
        label, _, words = line.partition(": ")
        yield label, words
    messages = messages_text(campaign, snapshot.sent)
    if messages:
        label, _, counts = messages.partition(": ")
        yield label, counts


def _sparkline(values: Sequence[float]) -> str:
    highest = max(values, default=0.0)
    if highest <= 0:
        return ""
    return "".join(_LEVELS[round(value / highest * (len(_LEVELS) - 1))] for value in values)


def _results(snapshot: Snapshot, *, wide: bool) -> RenderableType:
    groups = sorted(snapshot.documents, key=lambda group: _ORDER.index(group["status"]))
    total = max(1, snapshot.campaign.counters.total)
    timed = any(group["until"] for group in groups)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    table.add_column("contacts", justify="right", no_wrap=True)
    if wide:
        table.add_column("", width=_BAR_WIDTH)
    table.add_column("result", overflow="fold")
    if timed:
        table.add_column("until", overflow="fold")
    for group in groups:
        style = STYLES.get(group["status"], "")
        share = Bar(size=total, begin=0, end=group["count"], width=_BAR_WIDTH, color=style or "default")
        result = Text(str(group["status"]).replace("_", " "), style=style)
        result.append(f": {cell(group['why'] or group['reason'])}" if group["why"] or group["reason"] else "")
        due = snapshot.waits.get((group["status"], group["reason"]))
        until = (
            [Text("" if due is None else until_text(due, snapshot.at, snapshot.campaign.timezone, brief=not wide))]
            if timed
            else []
        )
        table.add_row(f"{group['count']:,}", *([share] if wide else []), result, *until)
    return table
