"""`campaigns import`: creates a campaign from spreadsheets or CSV files."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

import attrs
import click
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from outreach import Campaign, CampaignCreated, NewCallCampaign, NewSmsCampaign, Outreach, Workspace
from outreach.http import document_of, to_json
from outreach.models import ForecastAssumptions, LeaveOut, PlaceholderProblem, Preflight, PreparedRecipient
from outreach.server_support import Field, holiday_parts
from outreach_server.cli import documents, interruptions
from outreach_server.cli.base import Command, actor, state, with_engine
from outreach_server.cli.campaigns.audience import LEAVE_OUT_OPTIONS, audience_document, show_audience
from outreach_server.cli.campaigns.forecast import forecast_lines
from outreach_server.cli.campaigns.options import OPTIONS, CampaignOptions
from outreach_server.cli.campaigns.preflight import show_preflight
from outreach_server.cli.durations import time_text
from outreach_server.cli.lists.import_report import (
    mapping_table,
    show_numbers,
    show_other_columns,
    show_rejects,
    show_warnings,
)
from outreach_server.cli.lists.options import LIST_OPTIONS, ColumnMapping
from outreach_server.cli.output import console, echo_json_with, fields, note, plural
from outreach_server.cli.problems import explain_placeholders, explain_start, explain_values
from outreach_server.cli.values import WORKSPACE, name_of, options
from outreach_server.lists.contacts import ContactFile
from outreach_server.lists.errors import NothingToLoad, UnsendableText
from outreach_server.lists.rejects import Rejects
from outreach_server.lists.report import list_document
from outreach_server.lists.tables import open_table
from outreach_server.lists.texts import check_text, texts_of

_MAX_PARTS: Final = 5

Chunk = list[PreparedRecipient]


FILE_OPTIONS: Final = (
    click.option(
        "--map",
        "mapped",
        type=ColumnMapping(),
        multiple=True,
        help="The column of phone, first_name, last_name, email, company, external_id, country, time_zone, zip_code or "
        "state: its name or number.",
    ),
    *LIST_OPTIONS,
    click.option("--rejects", type=click.Path(dir_okay=False, path_type=Path), help="A CSV file for bad rows."),
)
"""How a list is read."""


@click.command("import", cls=Command)
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("files", metavar="FILE...", type=click.File("rb"), nargs=-1, required=True)
@options(*OPTIONS)
@options(*LEAVE_OUT_OPTIONS)
@options(*FILE_OPTIONS)
@click.option("--dry-run", is_flag=True, help="Create nothing; show what it would do (campaigns preflight, forecast).")
@click.option("--contact", metavar="PHONE", help="With --dry-run: show this contact alone.")
@click.pass_context
def import_(
    ctx: click.Context,
    /,
    workspace_id: str,
    files: Sequence[BinaryIO],
    dry_run: bool,
    contact: str | None,
    left_out_campaigns: Sequence[str],
    left_out_days: int | None,
    **given: Any,
) -> None:
    """Load a campaign from XLSX or CSV files; nothing is sent before it is started.

    It sends messages (--message, or --flow), or places calls (--channel call --agent AGENT).

    The first line names the columns. Phone number, first and last name, email and company are recognised by their usual
    names in many languages, in any case; every other column is a variable of that name. - is stdin. Several files are
    one list, in their order. How many of it are in other campaigns is shown.

    What spreadsheets do to numbers is corrected where no digit is lost. Rows with a missing or invalid number and
    malformed rows are reported and not loaded (over HTTP an invalid number is loaded, and skipped). Numbers on the
    unsubscribe register are excluded; a number that occurs twice is contacted once. Local numbers are read in the
    country of their row, else in --region, else in the workspace's default region.
    """
    wanted = CampaignOptions(**{field.name: given.pop(field.name) for field in attrs.fields(CampaignOptions)})
    wanted.check(ctx)
    if contact is not None and not dry_run:
        raise click.UsageError("--contact is for a --dry-run.")
    with opened_files(files, **given) as opened:
        wanted_import = _Import(
            workspace_id=workspace_id,
            wanted=wanted,
            leave_out=LeaveOut(campaigns=left_out_campaigns, contacted_within_days=left_out_days),
            **opened,
        )
        show = with_engine((lambda engine: wanted_import.preview(engine, contact)) if dry_run else wanted_import.load)
        show()


@contextmanager
def opened_files(
    files: Sequence[BinaryIO],
    *,
    mapped: Sequence[tuple[Field, str]],
    region: str | None,
    sheet: str | None,
    encoding: str | None,
    delimiter: str,
    rejects: Path | None,
) -> Iterator[dict[str, Any]]:
    """Open the files of a list, and provide the fields of `ListFiles`."""
    if len(dict(mapped)) < len(mapped):
        raise click.UsageError("--map names a field twice.")
    with ExitStack() as opened:
        tables = [
            opened.enter_context(
                open_table(file, name=name_of(file), encoding=encoding, delimiter=delimiter, sheet=sheet)
            )
            for file in files
        ]
        lists = [ContactFile.open(table, mapped=dict(mapped)) for table in tables]
        if rejects is not None and len({one.columns.headers for one in lists}) > 1:
            raise click.UsageError("--rejects needs files with the same columns. Import the others on their own.")
        for one in lists:
            one.numbers.region = region
        # Last: what is wrong with the command leaves an earlier file as it is.
        rejects_file = None if rejects is None else opened.enter_context(_opened_rejects(rejects, files))
        collected = opened.enter_context(Rejects(rejects_file))
        with _progress(_sizes(files)) as progress:
            yield {
                "lists": lists,
                "rejects": collected,
                "rejects_file": rejects_file,
                "advance": lambda: progress(sum(table.position() for table in tables)),
            }


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _opened_rejects(file: Path, lists: Sequence[BinaryIO]) -> TextIO:
    """Open the file of bad rows, which hold people's numbers: nobody else may read it."""
    for one in lists:
        with suppress(OSError):
            if os.path.samestat(os.fstat(one.fileno()), file.stat()):
                raise click.UsageError(f"--rejects {str(file)!r} is the list itself. Name another file.")
    try:
        return open(file, "w", encoding="utf-8", newline="", opener=_open_private)
    except OSError as error:
        raise click.ClickException(f"Could not write {str(file)!r}: {error.strerror}.") from error


@attrs.frozen(kw_only=True)
class ListFiles:
    """The files of a list of contacts.

    Attributes:
        lists: The files, in their order.
        advance: Called when more of the files has been read.
    """

    lists: Sequence[ContactFile]
    rejects: Rejects
    rejects_file: TextIO | None
    advance: Callable[[], None]

    async def begin(
        self, engine: Outreach, workspace: Workspace, campaign: NewSmsCampaign | NewCallCampaign | Campaign
    ) -> AsyncIterator[Chunk]:
        """Return the contacts as they are read, for a campaign; raise `NothingToLoad` if there are none."""
        texts = await texts_of(engine, workspace.id, campaign)
        for contacts in self.lists:
            contacts.numbers.region = contacts.numbers.region or workspace.default_region
            contacts.use_texts(*texts)
        chunks = self._chunks()
        with interruptions.reading():
            first = next(chunks, None)
        if first is None:
            # Checked before anything is created, so that nothing has to be undone.
            self._show_columns()
            show_rejects(self.rejects, hint="--rejects FILE.csv writes all of them")
            raise NothingToLoad(self._rows)
        return self._stream(first, chunks)

    def _chunks(self) -> Iterator[Chunk]:
        for contacts in self.lists:
            if len(self.lists) > 1:
                self.rejects.source = contacts.table.name
            yield from contacts.chunks(self.rejects)

    async def _stream(self, first: Chunk, rest: Iterator[Chunk]) -> AsyncIterator[Chunk]:
        yield first
        async for chunk in interruptions.iterate(rest):
            self.advance()
            yield chunk

    @property
    def _rows(self) -> int:
        return sum(contacts.rows for contacts in self.lists)

    def _problems(self) -> list[PlaceholderProblem]:
        return [problem for contacts in self.lists for problem in contacts.tally.problems()]

    def _warnings(self, *, sms: bool) -> list[str]:
        return [warning for contacts in self.lists for warning in self._told(contacts, contacts.warnings(sms=sms))]

    def _told(self, contacts: ContactFile, texts: Iterable[str]) -> list[str]:
        """Return hints on a file, with its name if there are several."""
        return [text if len(self.lists) == 1 else f"{contacts.table.name}: {text}" for text in texts]

    def _document(self, content: Mapping[str, Any], *, sms: bool) -> Mapping[str, Any]:
        """Return a document with what was made of the file, or of each if there are several; warnings stand first."""
        warnings = [
            text for contacts in self.lists for text in self._told(contacts, contacts.numbers.warnings(sms=sms))
        ]
        return {"number_warnings": warnings, **content, **self._files_document()}

    def _files_document(self) -> Mapping[str, Any]:
        rows = {"rows": self._rows, "rejected_count": self.rejects.count}
        if len(self.lists) == 1:
            return {**list_document(self.lists[0]), **rows}
        files = [
            {
                "file": contacts.table.name,
                "rows": contacts.rows,
                "rejected_count": contacts.rows - contacts.loaded,
                **list_document(contacts),
            }
            for contacts in self.lists
        ]
        return {"files": files, **rows}

    def _show_columns(self) -> None:
        for contacts in self.lists:
            _show_columns(contacts)

    def _show_rows(self) -> None:
        rejects, rejects_file = self.rejects, self.rejects_file
        for contacts in self.lists:
            for text in self._told(contacts, contacts.table.unread()):
                note(text)
            if len(self.lists) > 1:
                note(f"{contacts.table.name}: {plural(contacts.rows, 'row')}, {contacts.loaded:,} read")
            show_numbers(contacts.numbers)
            show_other_columns(contacts)
        if rejects.count:
            note("These rows are not loaded:")
            where = f"all are in {rejects_file.name}" if rejects_file else "--rejects FILE.csv writes all of them"
            show_rejects(rejects, hint=where)


@attrs.frozen(kw_only=True)
class _Import(ListFiles):
    """An import of files."""

    workspace_id: str
    wanted: CampaignOptions
    leave_out: LeaveOut

    async def load(self, engine: Outreach) -> Callable[[], None]:
        """Create the campaign, and return what shows it."""
        new, stream = await self._read(engine)
        self._show_columns()
        stream, unsendable = await check_text(engine, self.workspace_id, new, stream)
        if unsendable is not None:
            raise unsendable
        more: dict[str, Any] = {"leave_out": self.leave_out, "actor": actor()}
        if isinstance(new, NewSmsCampaign):
            made = await engine.campaigns.create_sms(self.workspace_id, new, stream, **more)
        else:
            made = await engine.campaigns.create_call(self.workspace_id, new, stream, **more)
        groups = await engine.campaigns.count_recipients(self.workspace_id, made.campaign.id)
        return partial(self._show_made, made, sum(group.count for group in groups if group.reason == "duplicate"))

    async def preview(self, engine: Outreach, contact: str | None) -> Callable[[], None]:
        """Return what shows what the import would do, and raises the error that it would end with."""
        new, stream = await self._read(engine)
        stream, unsendable = await check_text(engine, self.workspace_id, new, stream)
        found = await engine.campaigns.preflight_new(
            self.workspace_id,
            new,
            stream,
            leave_out=self.leave_out,
            contact=contact,
            assumptions=ForecastAssumptions(),
        )
        return partial(self._show_preview, found, contact, unsendable)

    async def _read(self, engine: Outreach) -> tuple[NewSmsCampaign | NewCallCampaign, AsyncIterator[Chunk]]:
        """Return the campaign that is wanted, and its contacts as they are read."""
        workspace = await engine.workspaces.get(self.workspace_id)
        headers = tuple(dict.fromkeys(header for contacts in self.lists for header in contacts.columns.headers))
        new = attrs.evolve(await self.wanted.campaign(engine, workspace), csv_column_headers=headers)
        return new, await self.begin(engine, workspace, new)

    def _show_preview(self, found: Preflight, contact: str | None, unsendable: UnsendableText | None) -> None:
        """Show what the import would do; raise the error that it would end with."""
        rejects, sms = self.rejects, found.channel == "sms"
        if state().as_json:
            document = self._document({"dry_run": True, **document_of(found)}, sms=sms)
            echo_json_with(document, "rejected", rejects.items())
            if unsendable is not None:
                raise unsendable
            return
        show_warnings(self._warnings(sms=sms))
        self._show_columns()
        show_preflight(found, self.wanted.zone, contact)
        if found.forecast is not None and contact is None:
            for line in forecast_lines(found.forecast, self.wanted.zone):
                note(line)
        self._show_rows()
        show_audience(found.audience, self.leave_out.contacted_within_days)
        if unsendable is not None:
            raise unsendable
        left_out = {one.rule: one.count for one in found.left_out}
        opted_out, duplicates = left_out.get("opted_out", 0), left_out.get("duplicate", 0)
        elsewhere = found.audience.left_out if found.audience is not None else 0
        loaded = self._rows - rejects.count - opted_out - elsewhere
        said = f"Of {plural(self._rows, 'row')} {loaded:,} would be loaded"
        if duplicates:
            said += f", {duplicates:,} of them {'a duplicate' if duplicates == 1 else 'duplicates'}"
        if opted_out:
            said += f"; {opted_out:,} {'has' if opted_out == 1 else 'have'} opted out"
        if elsewhere:
            said += f"; {elsewhere:,} would be left out"
        note(f"\n{said}. Nothing was created.")

    def _show_made(self, made: CampaignCreated, duplicates: int) -> None:
        """Show the campaign; `duplicates` are contacts whose number occurs earlier in the files."""
        rejects, campaign = self.rejects, made.campaign
        sms = campaign.channel == "sms"
        if state().as_json:
            counts = {
                "missing": to_json(made.missing),
                "unknown_placeholders": list(made.unknown_placeholders),
                "placeholder_problems": to_json(self._problems()),
                "text_warnings": to_json(made.text_warnings),
                "sms_opted_out_excluded": made.opted_out_excluded,
                "duplicates": duplicates,
                **audience_document(made.audience),
            }
            document = self._document({**documents.campaign(campaign), **counts}, sms=sms)
            echo_json_with(document, "rejected", rejects.items())
            return
        show_warnings(self._warnings(sms=sms))
        document = {
            "id": campaign.id,
            "name": campaign.name,
            "status": campaign.status,
            "rows": self._rows,
            "loaded": campaign.counters.total,
            "of them duplicates": duplicates,
            "left out, opted out": made.opted_out_excluded,
            "rejected": rejects.count,
        }
        if made.audience is not None and made.audience.left_out:
            document["left out, in other campaigns or contacted"] = made.audience.left_out
        times = {"starts": campaign.scheduled_start_at, "expires": campaign.scheduled_expires_at}
        document |= {name: time_text(at, campaign.timezone) for name, at in times.items() if at is not None}
        console().print(fields(document))
        self._show_rows()
        show_audience(made.audience, self.leave_out.contacted_within_days)
        if made.unknown_placeholders:
            note(explain_placeholders(made.unknown_placeholders, campaign))
        for contacts in self.lists:
            counted = plural(contacts.loaded, "row")
            lines = explain_values(contacts.tally.problems(), counted, unknown=made.unknown_placeholders)
            for line in self._told(contacts, lines):
                note(line)
        for warning in made.text_warnings:
            note(warning.message)
        if (parts := _parts_left_out(campaign)) is not None:
            note(parts)
        if made.missing:
            note(explain_start(made.missing, campaign))
        else:
            note(f"Start it with: outreach-server campaigns start {campaign.id}")


def _show_columns(contacts: ContactFile) -> None:
    table = contacts.table
    for text in contacts.notes:
        note(text)
    if not state().as_json:
        note(f"{table.name}: {table.described}")
        console(stderr=True).print(mapping_table(contacts))


def _sizes(files: Sequence[BinaryIO]) -> int | None:
    """Return the size of all files in bytes; None if that of one is unknown."""
    sizes = [_size(file) for file in files]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _size(file: BinaryIO) -> int | None:
    """Return the size of a file in bytes; None if unknown, as for a pipe."""
    try:
        here = file.tell()
        end = file.seek(0, 2)
        file.seek(here)
    except (OSError, ValueError):
        return None
    return end


@contextmanager
def _progress(size: int | None) -> Iterator[Callable[[int], None]]:
    """Show how much of the file has been read, if stderr is a terminal."""
    out = console(stderr=True)
    columns = (TextColumn("Loading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        task = progress.add_task("load", total=size)
        yield lambda position: progress.update(task, completed=position)


def _parts_left_out(campaign: Campaign) -> str | None:
    """Return a hint if a calendar has the holidays of a whole country whose parts have more."""
    calendar = campaign.holidays
    if calendar is None or calendar.country is None or calendar.subdivision is not None:
        return None
    country, parts = calendar.country, holiday_parts(calendar.country)
    if not parts:
        return None
    named = ", ".join(f"{country}-{part}" for part in parts[:_MAX_PARTS])
    more = ", and so on" if len(parts) > _MAX_PARTS else ""
    return (
        f"Nobody is contacted on the national holidays of {country}. Its parts may have more; --holidays includes them "
        f"as: {named}{more}."
    )
