"""The commands that all resources of a workspace have: create, list, update and remove.

They follow from the definition of the resource, with an option for each field that has an `Option`; agents and flows
have options of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import attrs
import click

from outreach import Outreach
from outreach.server_support import RESOURCE_SERVICES, hidden_fields
from outreach_server.cli import documents
from outreach_server.cli.base import Command, Group, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.model_options import given_changes, given_fields, options_of
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import NAME, WORKSPACE, Identifier


@attrs.frozen
class ResourceCommands:
    """Makes the commands of a resource. Each option has the name of the field of the model that it sets.

    Attributes:
        name: The engine's attribute, and the name of the group.
        write: Returns the document of one of them.
    """

    name: str
    write: Callable[[Any], documents.Document] = documents.resource

    @property
    def definition(self) -> Any:
        """The definition of the resource."""
        return RESOURCE_SERVICES[self.name]

    @property
    def noun(self) -> str:
        """The name of one of them, such as `trunk`."""
        return RESOURCE_SERVICES[self.name].kind.noun

    def service(self, engine: Outreach) -> Any:
        """Return the resource's service."""
        return getattr(engine, self.name)

    def create(self, meaning: str, *params: click.Parameter) -> click.Command:
        """Return `create`, which makes the model of the options that were given."""

        def run(workspace_id: str, **values: Any) -> None:
            new = self.definition.new(**given_fields(values))
            self.show(lambda engine: self.service(engine).create(workspace_id, new, actor=actor()))

        return Command("create", help=meaning, callback=run, params=[workspace_argument(), *params])

    def list(self, *columns: str, empty: str) -> click.Command:
        """Return `list`; the text for an empty list may hold `WORKSPACE_ID`."""

        def run(workspace_id: str) -> None:
            found = with_engine(lambda engine: collect(self.service(engine).iter_all(workspace_id)))
            show_list(
                [self.write(one) for one in found],
                columns,
                empty=empty.replace("WORKSPACE_ID", workspace_id),
            )

        return Command("list", help=f"List a workspace's {self.name}.", callback=run, params=[workspace_argument()])

    def update(self, meaning: str, *params: click.Parameter) -> click.Command:
        """Return `update`, which changes the fields whose options were given."""
        arguments = self.arguments()

        def run(**values: Any) -> None:
            place = {argument.name: values.pop(argument.name) for argument in arguments}
            change = self.definition.change(**given_changes(values))

            async def work(engine: Outreach) -> Any:
                return await self.service(engine).update(*await self.locate(engine, place), change, actor=actor())

            self.show(work)

        return self.command("update", meaning, run, *params)

    def remove(self, meaning: str) -> click.Command:
        """Return `remove`."""

        def run(**place: Any) -> None:
            async def work(engine: Outreach) -> Any:
                return await self.service(engine).remove(*await self.locate(engine, place), actor=actor())

            gone = with_engine(work)
            title = self.definition.title
            show({"id": gone.id, title: getattr(gone, title), "removed": True})

        return self.command("remove", meaning, run)

    def show(self, work: Callable[[Outreach], Awaitable[Any]]) -> None:
        """Do work with the engine, and print the resource that it returns."""
        show(self.write(with_engine(work)))

    def command(self, name: str, meaning: str, run: Callable[..., None], *params: click.Parameter) -> click.Command:
        """Return a command about one resource, whose function gets the arguments that name it too."""
        return Command(name, help=meaning, callback=run, params=[*self.arguments(), *params])

    def move(self, name: str, meaning: str) -> click.Command:
        """Return the command that calls the service's method of the same name."""

        def run(**place: Any) -> None:
            async def work(engine: Outreach) -> Any:
                method = getattr(self.service(engine), name.replace("-", "_"))
                return await method(*await self.locate(engine, place), actor=actor())

            self.show(work)

        return self.command(name, meaning, run)

    def arguments(self) -> Sequence[click.Argument]:
        """Return the arguments that name one resource."""
        title = self.definition.title
        metavar = None if title == "name" else title.upper()
        return (
            workspace_argument(),
            click.Argument([f"{self.noun}_id"], type=Identifier(self.noun), metavar=metavar),
        )

    async def locate(self, engine: Outreach, place: Mapping[str, Any]) -> tuple[str, str]:
        """Return the workspace and the identifier that the arguments name."""
        return place["workspace_id"], place[f"{self.noun}_id"]


def resource_group(name: str) -> Group:
    """Return the commands of a resource that has none of its own.

    Args:
        name: The engine's attribute.
    """
    resource = ResourceCommands(name)
    definition = resource.definition
    called, title, texts = definition.called, definition.title, definition.commands
    shown = [field.name for field in attrs.fields(definition.model)]
    hidden = {"workspace_id", *hidden_fields(definition.model)}
    return Group(
        name,
        commands=[
            resource.create(
                texts.create or f"Create {called} called {title.upper()}.",
                name_argument() if title == "name" else click.Argument([title]),
                *options_of(definition.new),
            ),
            resource.list(
                *(texts.columns or [field for field in shown if field not in hidden]),
                empty=f"The workspace has no {name}. {texts.empty}".rstrip(),
            ),
            resource.update(
                texts.update or f"Change {called}.",
                *([click.Option(["--name"], type=NAME, help="A new name.")] if title == "name" else []),
                *options_of(definition.change),
            ),
            resource.remove(texts.remove or f"Remove {called}, unless it is in use."),
        ],
    )


def workspace_argument() -> click.Argument:
    """Return the argument that names a workspace."""
    return click.Argument(["workspace_id"], type=WORKSPACE)


def name_argument() -> click.Argument:
    """Return the argument that names what is created."""
    return click.Argument(["name"], type=NAME)
