"""`campaigns report` and `export`: the results of a campaign, and of each of its contacts."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import click
import orjson
from rich.console import Console

from outreach import Campaign, Outreach
from outreach.http import write_campaign_report
from outreach.integrations.report_page import render_report_page
from outreach.models import CampaignReport, ExportFormat
from outreach_server.cli.base import Command, actor, state, with_campaign
from outreach_server.cli.durations import time_text
from outreach_server.cli.files import write_parts, write_text
from outreach_server.cli.output import Listing, console, echo_json, fields, listing, note, rendered, stream_array
from outreach_server.cli.setup.prices import cost_text, provider_cost_text
from outreach_server.cli.values import CAMPAIGN, OneOf

_NO_PRICES = "unknown: set the workspace's prices with outreach-server settings prices set"
_NOT_SHOWN = {"milliseconds", "seconds", "provider_costs"}
"""Fields that people see as minutes, or in words."""

_EXPORTS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".xlsx": "xlsx"}
_REPORTS = {".html": "html", ".htm": "html", ".json": "json", ".txt": "text"}


@click.command("report", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option(
    "--format",
    "kind",
    type=OneOf(["text", "json", "html"]),
    help="Text, a JSON document, or one HTML page with charts; by default as the file is named, else text.",
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file, instead of standard output.")
def report_(campaign_id: str, kind: Literal["text", "json", "html"] | None, output: Path | None) -> None:
    """Show what became of a campaign: contacted, delivered, failed and why, replies, opt-outs, over time."""
    if state().as_json and output is None:
        if kind in {"text", "html"}:
            raise click.UsageError(
                "With --json the report is a JSON document: name a file with --output for another form."
            )
        kind = "json"
    wanted = kind or _format_of(output, _REPORTS, default="text")
    made = with_campaign(campaign_id, lambda engine, one: engine.campaigns.report(one.workspace_id, one.id))
    if wanted == "html":
        _give(render_report_page(made), output)
    elif wanted == "json":
        document = write_campaign_report(made)
        if output is None:
            echo_json(document)
        else:
            _give(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n", output)
    elif output is None:
        _show(made, console())
    else:
        _give(rendered(lambda out: _show(made, out)), output)


def _format_of(output: Path | None, formats: Mapping[str, str], *, default: str) -> str:
    """Return the format by the ending of a file's name; the default without a file, or without an ending.

    Raises:
        click.UsageError: The ending is that of another kind of file.
    """
    ending = output.suffix.lower() if output is not None else ""
    if ending and ending not in formats:
        known = ", ".join(formats)
        raise click.UsageError(
            f"A file named {ending} cannot be written. Name --output with one of {known}, or give --format."
        )
    return formats.get(ending, default)


def _give(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    write_text(text, output)
    if state().as_json:
        echo_json({"file": str(output)})
    else:
        note(f"Wrote {output}.")


def _show(made: CampaignReport, out: Console) -> None:
    """Print a report for people."""
    document = write_campaign_report(made)
    names = ("name", "channel", "status", "started_at", "completed_at", "erased_at", "contacts", "contacted")
    more = ("successful", "failed", "open", "replies", "repliers", "opt_outs")
    shown = {name: document[name] for name in (*names, *more) if document[name] not in {None, ""}}
    out.print(fields(_grouped(shown) | {"cost": cost_text(made.cost, made.channel) or _NO_PRICES}, made.timezone))
    out.print("The contacts by result:")
    out.print(
        _table(
            ("contacts", "status", "reason", "meaning"),
            [(one.contacts, one.status.value, one.reason, one.meaning) for one in made.results],
            made.timezone,
        )
    )
    figures: Mapping[str, Any] = document["messages"] or document["calls"]
    out.print("Messages, retries included:" if made.messages is not None else "Calls, retries included:")
    shown = _grouped({name: value for name, value in figures.items() if name not in _NOT_SHOWN})
    if made.calls is not None and made.calls.provider_costs:
        shown["provider_costs"] = ", ".join(provider_cost_text(one) for one in made.calls.provider_costs)
    out.print(fields(shown))
    if made.senders:
        out.print("Messages by number of the sender pool:")
        columns = ("from_number", "requests", "accepted", "delivered", "undelivered", "refused", "opt_outs")
        of_numbers = [tuple(getattr(one, name) for name in columns) for one in made.senders]
        out.print(_table(columns, of_numbers, made.timezone))
    if made.failures:
        out.print("What went wrong at the provider, by how many requests:")
        rows = [
            (
                one.requests,
                one.failure.provider,
                one.failure.error_code or one.failure.reason,
                one.failure.meaning or one.failure.error_message,
            )
            for one in made.failures
        ]
        out.print(_table(("requests", "provider", "error", "meaning"), rows, made.timezone))
    if made.over_time:
        out.print("Over time:")
        steps = [
            (time_text(one.since, made.timezone, seconds=False), one.requests, one.replies, one.opt_outs)
            for one in made.over_time
        ]
        out.print(_table(("since", "requests", "replies", "opt_outs"), steps, made.timezone))


def _grouped(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return figures for people, with their digits in groups."""
    return {
        name: f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else value
        for name, value in figures.items()
    }


def _table(names: tuple[str, ...], rows: Sequence[tuple[object, ...]], zone: str) -> Listing:
    """Return a table of figures, with their digits in groups."""
    return listing([_grouped(dict(zip(names, row, strict=True))) for row in rows], names, zone)


def _exported(engine: Outreach, campaign: Campaign, kind: ExportFormat) -> AsyncIterator[bytes]:
    return engine.campaigns.export(campaign.workspace_id, campaign.id, kind, actor=actor())


async def _documents(parts: AsyncIterator[bytes]) -> AsyncIterator[Mapping[str, Any]]:
    """Iterate over the documents of an export, whose parts end at the end of a line."""
    async for part in parts:
        for line in part.splitlines():
            yield orjson.loads(line)


@click.command("export", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option(
    "--format",
    "kind",
    type=OneOf(get_args(ExportFormat)),
    help="By default as the file is named, else csv.",
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file, instead of standard output.")
def export_(campaign_id: str, kind: ExportFormat | None, output: Path | None) -> None:
    """Export a campaign's contacts, a row each: the text it got, every status and time, replies, calls.

    Cells that a spreadsheet would run are made harmless.
    """
    if state().as_json and output is None:
        if kind is not None:
            raise click.UsageError("With --json the contacts are a JSON array: name a file with --output for a format.")
        with_campaign(campaign_id, lambda engine, one: stream_array(_documents(_exported(engine, one, "jsonl"))))
        return
    chosen: Any = kind or _format_of(output, _EXPORTS, default="csv")
    if chosen == "xlsx" and output is None and sys.stdout.isatty():
        raise click.UsageError("An XLSX file is not for a terminal: name a file with --output.")
    size = with_campaign(campaign_id, lambda engine, one: write_parts(_exported(engine, one, chosen), output))
    if output is None:
        return
    if state().as_json:
        echo_json({"file": str(output), "format": chosen, "bytes": size})
    else:
        note(f"Wrote {output} ({size:,} bytes).")
