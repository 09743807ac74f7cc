"""`unsubscribes`: the register of numbers that must not be contacted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, BinaryIO, Literal

import anyio
import click

from outreach import InvalidRequest, NewRecipient, Outreach
from outreach.models import UnsubscribeImport
from outreach.server_support import prepare_recipient, read_number_cell
from outreach_server.cli import documents, interruptions
from outreach_server.cli.base import Group, actor, collect, state, with_engine
from outreach_server.cli.contact_columns import find_phone_columns
from outreach_server.cli.csv_lines import Encoding
from outreach_server.cli.output import echo_json, echo_json_with, note, show_list, stream_array, stream_lines
from outreach_server.cli.rejects import Rejects
from outreach_server.cli.tables import Table, is_blank, open_table
from outreach_server.cli.values import SCOPE, WORKSPACE, Text, name_of

Scope = Literal["all", "sms", "call"]

_COLUMNS = ("phone", "scope", "source", "evidence", "created_at")
_WIDTHS = {"phone": 16, "scope": 5, "source": 10, "created_at": 27, "evidence": 0}


@click.group(cls=Group)
def unsubscribes() -> None:
    """Manage the register of numbers that must not be contacted."""


@unsubscribes.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phones", metavar="PHONE...", nargs=-1, required=True)
@click.option("--scope", type=SCOPE, default="all", show_default=True, help="Which channels are stopped.")
@click.option("--evidence", type=Text(0, 1000), help="Why: free text that is kept with the numbers.")
def add(workspace_id: str, phones: tuple[str, ...], scope: Scope, evidence: str | None) -> None:
    """Unsubscribe numbers, with immediate effect in every campaign."""
    entries = with_engine(
        lambda engine: engine.unsubscribes.add(workspace_id, *phones, scope=scope, evidence=evidence, actor=actor())
    )
    show_list([documents.unsubscribe(entry) for entry in entries], _COLUMNS, empty="Nothing was added.")


@unsubscribes.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phones", metavar="PHONE...", nargs=-1, required=True)
def remove(workspace_id: str, phones: tuple[str, ...]) -> None:
    """Remove numbers from the register."""
    removed = with_engine(lambda engine: engine.unsubscribes.remove(workspace_id, *phones, actor=actor()))
    if state().as_json:
        echo_json({"removed": removed})
    else:
        click.echo(f"Removed {removed} of {len(phones)}.")


@unsubscribes.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_(workspace_id: str) -> None:
    """List the register, in the order of the numbers."""
    as_json = state().as_json

    async def work(engine: Outreach) -> None:
        await engine.workspaces.get(workspace_id)
        entries = (documents.unsubscribe(entry) async for entry in engine.unsubscribes.iter_all(workspace_id))
        if as_json:
            await stream_array(entries)
        elif await stream_lines(entries, _WIDTHS) == 0:
            note("The register is empty.")

    with_engine(work)


@unsubscribes.command()
@click.argument("workspace_id", type=WORKSPACE)
def held(workspace_id: str) -> None:
    """List held numbers: each wrote what may be an opt-out, and needs a decision."""
    entries = with_engine(lambda engine: collect(engine.unsubscribes.iter_held(workspace_id)))
    show_list([documents.unsubscribe(entry) for entry in entries], _COLUMNS, empty="No number is held.")


@unsubscribes.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phone")
@click.option("--opted-out", "meaning", flag_value="opted_out", help="It was an opt-out: unsubscribe the number.")
@click.option("--not-opted-out", "meaning", flag_value="other", help="It was not: campaigns continue with the number.")
def resolve(workspace_id: str, phone: str, meaning: str | None) -> None:
    """Decide whether the message of a held number was an opt-out."""
    if meaning is None:
        raise click.UsageError("Give --opted-out or --not-opted-out.")
    opted_out = meaning == "opted_out"
    with_engine(lambda engine: engine.unsubscribes.resolve(workspace_id, phone, opted_out=opted_out, actor=actor()))
    if state().as_json:
        echo_json({"phone": phone, "opted_out": opted_out})
    else:
        click.echo(f"{phone} is on the register." if opted_out else f"Campaigns continue with {phone}.")


@unsubscribes.command("import")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("file", type=click.File("rb"))
@click.option("--scope", type=SCOPE, default="all", show_default=True, help="Which channels are stopped.")
@click.option("--sheet", metavar="NAME", help="The sheet of an XLSX file; by default the first visible one.")
@click.option("--encoding", type=Encoding(), help="The encoding of a text file; by default it is detected.")
def import_(workspace_id: str, file: BinaryIO, scope: Scope, sheet: str | None, encoding: str | None) -> None:
    """Unsubscribe the numbers of a file; - is stdin.

    One number a line, or an XLSX or CSV file: with a header that names the phone column, else the first column counts.
    Numbers are corrected as for campaigns; invalid rows are reported, and the others are written.
    """
    with Rejects() as rejects, open_table(file, name=name_of(file), encoding=encoding, sheet=sheet) as table:
        for text in table.notes:
            note(text)

        async def work(engine: Outreach) -> UnsubscribeImport:
            region = (await engine.workspaces.get(workspace_id)).default_region
            numbers = _possible(table, rejects, region)
            return await engine.unsubscribes.import_numbers(workspace_id, _async(numbers), scope=scope, actor=actor())

        added = with_engine(work).added
        if added == 0 and rejects.count:
            rejects.report(hint="--json names all of them")
            raise click.ClickException(f"No row of {table.name} is a phone number; nothing was added.")
        if state().as_json:
            echo_json_with({"added": added, "rejected_count": rejects.count}, "rejected", rejects.items())
        else:
            click.echo(f"Added {added}.")
            if rejects.count:
                note(f"{rejects.count} rows are not phone numbers:")
                rejects.report(hint="--json names all of them")


def _possible(table: Table, rejects: Rejects, region: str | None) -> Iterator[str]:
    """Iterate over the numbers of a file; report invalid rows."""
    column: int | None = None
    for record in table.records:
        if is_blank(record):
            continue
        if column is None:
            header = find_phone_columns(record.cells)
            column = header[0] if header else 0
            if len(header) > 1:
                used, *others = (repr(record.cells[index].strip()) for index in header)
                note(f"Only {used} is read; {' and '.join(others)} may hold numbers too: import these on their own.")
            if header:
                continue
        number = read_number_cell(record.cells[column].strip() if column < len(record.cells) else "")
        unknown = f"{number.text[:40]!r} {number.problem}" if number.problem is not None else None
        problem = record.problem or unknown or _problem(number.text, region)
        if problem is None:
            yield number.text
        else:
            rejects.add(row=record.row, line=record.line, column=None, message=problem)


def _problem(raw: str, region: str | None) -> str | None:
    try:
        prepared = prepare_recipient(NewRecipient(phone_number=raw), region, path="")
    except InvalidRequest as error:
        return error.details[0].message if raw else "there is no phone number"
    return f"{raw[:40]!r} is not a phone number" if prepared.phone is None else None


async def _async(items: Iterator[Any]) -> AsyncIterator[Any]:
    while True:
        with interruptions.reading():
            item = next(items, None)
        if item is None:
            return
        yield item
        await anyio.lowlevel.checkpoint()
