"""`campaigns import`: an SMS campaign out of a CSV file, row by row."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import BinaryIO, TextIO

import anyio.lowlevel
import attrs
import click
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from outreach import CampaignCreated, CarrierName, NewRecipient, NewSmsCampaign, Outreach, PreparedRecipient, prepare
from outreach_server.cli import documents, interruptions
from outreach_server.cli.base import Command, actor, state, with_engine
from outreach_server.cli.contacts import ContactFile
from outreach_server.cli.csv_lines import Encoding, Source
from outreach_server.cli.csv_records import Delimiter
from outreach_server.cli.output import console, echo_json_with, fields, note
from outreach_server.cli.rejects import Rejects
from outreach_server.cli.values import CARRIER, MOMENT, WORKSPACE, Text, name_of

Chunk = list[PreparedRecipient]


@click.command("import", cls=Command)
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("file", metavar="FILE.csv", type=click.File("rb"))
@click.option("--name", type=Text(1, 100), required=True, help="The campaign's name.")
@click.option("--message", type=Text(0, 1600), required=True, help="The text; {{first_name}} or {{any column}} in it.")
@click.option("--from", "from_number", metavar="NUMBER", help="The sending number.")
@click.option("--carrier", type=CARRIER, help="The carrier; by default that of the sending number.")
@click.option("--rate", type=click.IntRange(1, 600), default=60, show_default=True, help="Messages a minute.")
@click.option("--description", type=Text(0, 500), help="For people.")
@click.option("--schedule-at", type=MOMENT, help="Start it then, and not at once when it is started.")
@click.option("--expires-at", type=MOMENT, help="Reach nobody from then on.")
@click.option("--encoding", type=Encoding(), help="The file's encoding; by default its byte order mark's, or UTF-8.")
@click.option("--delimiter", type=Delimiter(), default="auto", show_default=True, help="What parts the cells.")
@click.option("--phone-column", metavar="NAME", help="The column with the phone number.")
@click.option(
    "--rejects", "rejects_file", type=click.File("w", encoding="utf-8", lazy=False), help="A CSV file for bad rows."
)
def import_(
    workspace_id: str,
    file: BinaryIO,
    name: str,
    message: str,
    from_number: str | None,
    carrier: CarrierName | None,
    rate: int,
    description: str | None,
    schedule_at: datetime | None,
    expires_at: datetime | None,
    encoding: str | None,
    delimiter: str,
    phone_column: str | None,
    rejects_file: TextIO | None,
) -> None:
    """Load an SMS campaign from a CSV file; nothing is sent before it is started.

    The first line names the columns. Phone number, first and last name, email and company go by their usual
    names, in whatever case; every other column is a variable of its own name for the message. - is stdin.

    Rows without a number, with one that is no possible number, or that are malformed are named and not loaded,
    the others are (over HTTP an impossible number is loaded, and skipped). Numbers on the unsubscribe register
    are left out; a number that comes twice is reached once.
    """
    if schedule_at is not None and expires_at is not None and expires_at <= schedule_at:
        raise click.UsageError("--expires-at must come after --schedule-at.")
    new = NewSmsCampaign(
        name=name,
        description=description,
        message_body=message,
        sms_carrier=carrier,
        sms_from_number=from_number,
        sms_rate_per_minute=rate,
        schedule_type="scheduled" if schedule_at is not None else "immediate",
        scheduled_start_at=schedule_at,
        scheduled_expires_at=expires_at,
    )
    source = Source(file, name=name_of(file), encoding=encoding)
    size = _size(file)
    with Rejects(rejects_file) as rejects:
        contacts = ContactFile.open(source, delimiter=delimiter, phone_column=phone_column)
        for text in contacts.columns.notes:
            note(text)
        new = attrs.evolve(new, csv_column_headers=contacts.columns.headers)
        with _progress(size) as advance:
            made, duplicates = with_engine(
                lambda engine: _load(engine, workspace_id, new, contacts, rejects, lambda: advance(source.position))
            )
        _answer(made, contacts, rejects, duplicates, rejects_file)


async def _load(
    engine: Outreach,
    workspace_id: str,
    new: NewSmsCampaign,
    contacts: ContactFile,
    rejects: Rejects,
    advance: Callable[[], None],
) -> tuple[CampaignCreated, int]:
    workspace = await engine.workspaces.get(workspace_id)
    chunks = contacts.chunks(rejects, default_region=workspace.default_region)
    with interruptions.reading():
        first = next(chunks, None)
    if first is None:
        # Looked at before anything is created, so that nothing has to be undone.
        rejects.tell(hint="--rejects FILE.csv writes all of them")
        raise click.ClickException(f"No row can be loaded, of {contacts.rows}. Nothing was created.")
    if new.sms_from_number is not None and new.sms_carrier is None:
        sender = prepare(NewRecipient(phone_number=new.sms_from_number), workspace.default_region).phone
        owned = [number for number in await engine.numbers.list(workspace_id) if number.phone == sender]
        new = attrs.evolve(new, sms_carrier=owned[0].carrier if owned else None)
    made = await engine.create_campaign.sms(workspace_id, new, _stream(first, chunks, advance), actor=actor())
    groups = await engine.campaigns.groups(workspace_id, made.campaign.id)
    return made, sum(group.count for group in groups if group.reason == "duplicate")


async def _stream(first: Chunk, rest: Iterator[Chunk], advance: Callable[[], None]) -> AsyncIterator[Chunk]:
    yield first
    while True:
        with interruptions.reading():
            chunk = next(rest, None)
        if chunk is None:
            return
        advance()
        yield chunk
        # An interruption is heard between chunks, also while the file has only bad rows.
        await anyio.lowlevel.checkpoint()


def _answer(
    made: CampaignCreated, contacts: ContactFile, rejects: Rejects, duplicates: int, rejects_file: TextIO | None
) -> None:
    campaign = made.campaign
    counts = {
        "sms_opted_out_excluded": made.opted_out_excluded,
        "duplicates": duplicates,
        "rows": contacts.rows,
        "rejected_count": rejects.count,
    }
    if state().as_json:
        echo_json_with({**documents.campaign(campaign), **counts}, "rejected", rejects.items())
        return
    document = {
        "id": campaign.id,
        "name": campaign.name,
        "status": campaign.status,
        "rows": contacts.rows,
        "loaded": campaign.counters.total,
        "of them duplicates": duplicates,
        "left out, opted out": made.opted_out_excluded,
        "rejected": rejects.count,
        "variables": [name for _, name in contacts.columns.variables],
    }
    console().print(fields(document))
    if rejects.count:
        note("These rows were not loaded:")
        where = f"all are in {rejects_file.name}" if rejects_file else "--rejects FILE.csv writes all of them"
        rejects.tell(hint=where)
    if campaign.status == "draft":
        note(f"It is a draft. Finish it: outreach-server campaigns update {campaign.id} --from NUMBER --carrier NAME")
    else:
        note(f"Start it with: outreach-server campaigns start {campaign.id}")


def _size(file: BinaryIO) -> int | None:
    """Return how many bytes a file has; None where that cannot be known, as of a pipe."""
    try:
        here = file.tell()
        end = file.seek(0, 2)
        file.seek(here)
    except (OSError, ValueError):
        return None
    return end


@contextmanager
def _progress(size: int | None) -> Iterator[Callable[[int], None]]:
    """Show how much of the file is read, where stderr is a terminal and somebody may be waiting."""
    out = console(stderr=True)
    columns = (TextColumn("Loading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        task = progress.add_task("load", total=size)
        yield lambda position: progress.update(task, completed=position)
