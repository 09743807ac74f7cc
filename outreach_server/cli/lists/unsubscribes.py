"""`unsubscribes`: the register of numbers that must not be contacted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import click

from outreach import InvalidRequest, Outreach
from outreach.http import to_json
from outreach.models import NewUnsubscribes, UnsubscribeScope
from outreach_server.cli.base import Group, actor, state, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.lists.unsubscribe_import import import_
from outreach_server.cli.output import echo_json, note, plural, show_list, stream_array, stream_lines
from outreach_server.cli.values import SCOPE, WORKSPACE, text_of

_COLUMNS = ("phone", "scope", "source", "evidence", "created_at")
_WIDTHS = {"phone": 16, "scope": 5, "source": 10, "created_at": 27, "evidence": 0}


@click.group(cls=Group)
def unsubscribes() -> None:
    """Manage the register of numbers that must not be contacted."""


@unsubscribes.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phones", metavar="PHONE...", nargs=-1, required=True)
@click.option("--scope", type=SCOPE, default="all", show_default=True, help="Which channels are stopped.")
@click.option(
    "--evidence", type=text_of(NewUnsubscribes, "evidence"), help="Why: free text that is kept with the numbers."
)
def add(workspace_id: str, phones: tuple[str, ...], scope: UnsubscribeScope, evidence: str | None) -> None:
    """Unsubscribe numbers, with immediate effect in every campaign."""
    with _numbers_named():
        entries = with_engine(
            lambda engine: engine.unsubscribes.add(workspace_id, *phones, scope=scope, evidence=evidence, actor=actor())
        )
    show_list([to_json(entry) for entry in entries], _COLUMNS, empty="Nothing was added.")


@unsubscribes.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phones", metavar="PHONE...", nargs=-1, required=True)
@click.option(
    "--evidence", type=text_of(NewUnsubscribes, "evidence"), help="Why: free text that the audit trail keeps."
)
def remove(workspace_id: str, phones: tuple[str, ...], evidence: str | None) -> None:
    """Remove numbers from the register."""
    with _numbers_named():
        removed = with_engine(
            lambda engine: engine.unsubscribes.remove(workspace_id, *phones, evidence=evidence, actor=actor())
        )
    if state().as_json:
        echo_json({"removed": removed})
    else:
        click.echo(f"Removed {removed} of {len(phones)}.")


@contextmanager
def _numbers_named() -> Iterator[None]:
    """Let the numbers that are refused stand without their places in the call: the message quotes each."""
    try:
        yield
    except InvalidRequest as error:
        raise InvalidRequest(details=[attrs.evolve(detail, path="") for detail in error.details]) from error


@unsubscribes.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_(workspace_id: str) -> None:
    """List the register, in the order of the numbers."""
    as_json = state().as_json

    async def work(engine: Outreach) -> None:
        await engine.workspaces.get(workspace_id)
        entries = (to_json(entry) async for entry in engine.unsubscribes.iter_all(workspace_id))
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
    show_list([to_json(entry) for entry in entries], _COLUMNS, empty="No number is held.")


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


@unsubscribes.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("import_id", metavar="IMPORT_ID")
def undo(workspace_id: str, import_id: str) -> None:
    """Take the numbers of an import off the register again.

    Numbers stay that something else has put there too: a message, a call, a provider, a command, or another import.
    """
    undone = with_engine(lambda engine: engine.unsubscribes.undo_import(workspace_id, import_id, actor=actor()))
    if state().as_json:
        echo_json({"import_id": import_id, **to_json(undone)})
        return
    click.echo(f"Removed {undone.removed:,} of {plural(undone.removed + undone.kept, 'number')} of import {import_id}.")
    if undone.kept:
        note("The others stay: something else says too that their people opted out.")
    note("Contacts that were skipped meanwhile stay skipped.")


unsubscribes.add_command(import_)
