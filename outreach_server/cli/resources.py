"""The commands that all resources of a workspace have: create, list, update and remove."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import click

from outreach import Outreach
from outreach_server.cli import documents
from outreach_server.cli.base import Command, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import NAME, WORKSPACE, Identifier, clear


class ClearOption(click.Option):
    """An option of `update` that clears a field, such as `--no-trunk`.

    Args:
        field: The field.
        meaning: The help.
        word: The name of the option that sets the field, without dashes.
    """

    def __init__(self, field: str, meaning: str, *, word: str = "") -> None:
        self.field, self.word = field, word or field.replace("_", "-")
        super().__init__([f"--no-{self.word}", f"no_{field}"], is_flag=True, help=meaning)


@attrs.frozen
class ResourceCommands:
    """Makes the commands of a resource. Each option has the name of the field of the model that it sets.

    Attributes:
        noun: What one of them is called.
        service: Returns its service.
        title: The field by which people know one of them.
    """

    noun: str
    service: Callable[[Outreach], Any]
    title: str = "name"

    def create(self, new: Callable[..., Any], meaning: str, *params: click.Parameter) -> click.Command:
        """Return `create`, which makes the model of the options that were given."""

        def run(workspace_id: str, **values: Any) -> None:
            made = new(**_given(values))
            show(
                documents.resource(
                    with_engine(lambda engine: self.service(engine).create(workspace_id, made, actor=actor()))
                )
            )

        return Command("create", help=meaning, callback=run, params=[workspace_argument(), *params])

    def list(self, *columns: str, empty: str) -> click.Command:
        """Return `list`; the text for an empty list may hold `WORKSPACE_ID`."""

        def run(workspace_id: str) -> None:
            found = with_engine(lambda engine: collect(self.service(engine).iter_all(workspace_id)))
            show_list(
                [documents.resource(one) for one in found],
                columns,
                empty=empty.replace("WORKSPACE_ID", workspace_id),
            )

        return Command("list", help=f"List a workspace's {self.noun}s.", callback=run, params=[workspace_argument()])

    def update(self, update: Callable[..., Any], meaning: str, *params: click.Parameter) -> click.Command:
        """Return `update`, which changes the fields whose options were given."""
        arguments = self.arguments()

        def run(**values: Any) -> None:
            place = {argument.name: values.pop(argument.name) for argument in arguments}
            change = update(**_changes(params, values))

            async def work(engine: Outreach) -> Any:
                return await self.service(engine).update(*await self.locate(engine, place), change, actor=actor())

            show(documents.resource(with_engine(work)))

        return Command("update", help=meaning, callback=run, params=[*arguments, *params])

    def remove(self, meaning: str) -> click.Command:
        """Return `remove`."""

        def run(**place: Any) -> None:
            async def work(engine: Outreach) -> Any:
                return await self.service(engine).remove(*await self.locate(engine, place), actor=actor())

            gone = with_engine(work)
            show({"id": gone.id, self.title: getattr(gone, self.title), "removed": True})

        return Command("remove", help=meaning, callback=run, params=[*self.arguments()])

    def arguments(self) -> Sequence[click.Argument]:
        """Return the arguments that name one resource."""
        metavar = None if self.title == "name" else self.title.upper()
        return (
            workspace_argument(),
            click.Argument([f"{self.noun}_id"], type=Identifier(self.noun), metavar=metavar),
        )

    async def locate(self, engine: Outreach, place: Mapping[str, Any]) -> tuple[str, str]:
        """Return the workspace and the identifier that the arguments name."""
        return place["workspace_id"], place[f"{self.noun}_id"]


def workspace_argument() -> click.Argument:
    """Return the argument that names a workspace."""
    return click.Argument(["workspace_id"], type=WORKSPACE)


def name_argument() -> click.Argument:
    """Return the argument that names what is created."""
    return click.Argument(["name"], type=NAME)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given; one that may be repeated is an empty tuple where it was not."""
    return {name: value for name, value in values.items() if value is not None and value != ()}


def _changes(params: Sequence[click.Parameter], values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields to change, None for those to clear.

    Raises:
        UsageError: There are none, or a field is to be set and cleared.
    """
    clearing = [one for one in params if isinstance(one, ClearOption)]
    cleared = [one for one in clearing if values.pop(f"no_{one.field}")]
    changes = _given(values)
    for one in cleared:
        clear(changes, one.field, True, option=one.word)
    if not changes:
        raise click.UsageError("Name something to change; see --help.")
    return changes
