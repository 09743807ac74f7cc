"""`unsubscribes import`: puts the numbers of a list on the register."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import IO, Any, BinaryIO, Final

import click

from outreach import Outreach
from outreach.models import UnsubscribeImport, UnsubscribeScope
from outreach.server_support import Field, person_key
from outreach_server.cli import interruptions
from outreach_server.cli.base import Command, actor, state, with_engine
from outreach_server.cli.documents import Document
from outreach_server.cli.lists.import_report import show_numbers, show_rejects, show_warnings
from outreach_server.cli.lists.options import LIST_OPTIONS, ColumnMapping
from outreach_server.cli.output import echo_json_with, note, plural
from outreach_server.cli.values import SCOPE, WORKSPACE, name_of, options
from outreach_server.lists.opt_outs import OptOutFile
from outreach_server.lists.rejects import Rejects
from outreach_server.lists.tables import open_table

_IN_MEMORY: Final = 1_000_000


@click.command("import", cls=Command)
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("file", type=click.File("rb"))
@click.option("--scope", type=SCOPE, default="all", show_default=True, help="Which channels are stopped.")
@click.option(
    "--map",
    "mapped",
    type=ColumnMapping(),
    multiple=True,
    help="The column of the phone number, or of the country, by its name or number: phone=COLUMN; repeat.",
)
@options(*LIST_OPTIONS)
@click.option("--dry-run", is_flag=True, help="Write nothing; show which numbers would be written.")
def import_(
    workspace_id: str,
    file: BinaryIO,
    scope: UnsubscribeScope,
    mapped: Sequence[tuple[Field, str]],
    region: str | None,
    dry_run: bool,
    **reading: Any,
) -> None:
    """Unsubscribe the numbers of a file; - is stdin.

    One number a line, or an XLSX or CSV file with a header that names the phone columns: all of them are read, or the
    one that --map names. Numbers are corrected as for campaigns. Invalid rows and the workspace's own numbers are
    reported, and the others are written once the whole file has been read. "unsubscribes undo" takes an import back.
    """
    foreign = [field for field, _ in mapped if field not in {"phone_number", "country"}]
    if foreign:
        raise click.UsageError(f"--map {foreign[0]} does not apply to a list of opt-outs: map phone, or country.")
    if len(dict(mapped)) < len(mapped):
        raise click.UsageError("--map names a field twice.")
    with (
        Rejects() as rejects,
        open_table(file, name=name_of(file), **reading) as table,
        # Written after the whole file was read, so that a file that breaks off changes nothing.
        tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, mode="w+", encoding="utf-8") as found,
    ):
        numbers = OptOutFile.open(table, mapped=dict(mapped))
        numbers.numbers.region = region
        for text in numbers.notes:
            note(text)

        async def work(engine: Outreach) -> UnsubscribeImport | None:
            workspace = await engine.workspaces.get(workspace_id)
            numbers.numbers.region = region or workspace.default_region
            numbers.own = frozenset(
                [person_key(number.phone) async for number in engine.numbers.iter_all(workspace_id)]
            )
            async for row, phone in interruptions.iterate(numbers.read(rejects)):
                found.write(f"{row} {phone}\n")
            if dry_run or numbers.numbers.total == 0:
                return None
            found.seek(0)
            return await engine.unsubscribes.import_numbers(
                workspace_id,
                interruptions.iterate(_rows(found)),
                scope=scope,
                file_name=_file_name(file),
                actor=actor(),
            )

        done = with_engine(work)
        if numbers.numbers.total == 0:
            show_rejects(rejects, hint="--json names all of them")
            raise click.ClickException(f"No row of {table.name} is a phone number to unsubscribe; nothing was added.")
        _answer(done, workspace_id, numbers, rejects)


def _answer(done: UnsubscribeImport | None, workspace_id: str, found: OptOutFile, rejects: Rejects) -> None:
    numbers, warnings = found.numbers, found.warnings()
    if state().as_json:
        result: Document = {"dry_run": True, "would_add": numbers.total}
        if done is not None:
            result = {"import_id": done.id, "added": done.added, "known": done.known}
        document = {
            "number_warnings": warnings,
            **result,
            **found.document(),
            "rejected_count": rejects.count,
        }
        echo_json_with(document, "rejected", rejects.items())
        return
    show_warnings(warnings)
    note(f"{found.table.name}: {found.table.described}; the numbers are in {found.column}.")
    for text in found.table.unread():
        note(text)
    show_numbers(numbers)
    if rejects.count:
        what = "cell" if found.has_several_columns else "row"
        many = f"1 {what} is not a number" if rejects.count == 1 else f"{rejects.count:,} {what}s are not numbers"
        note(f"{many} to unsubscribe:")
        show_rejects(rejects, hint="--json names all of them")
    if done is None:
        click.echo(f"{plural(numbers.total, 'number')} would be added. Nothing was written.")
        return
    click.echo(f"Added {done.added}.")
    if done.known:
        note(f"{done.known:,} of them were on the register already, or came twice.")
    note(f"To take it back: outreach-server unsubscribes undo {workspace_id} {done.id}")


def _file_name(file: BinaryIO) -> str:
    """Return a file's name as it can be stored: names of files may be in any encoding."""
    return PurePath(name_of(file)).name.encode("utf-8", "replace").decode()


def _rows(spool: IO[str]) -> Iterator[tuple[int, str]]:
    for line in spool:
        row, phone = line.split()
        yield int(row), phone
