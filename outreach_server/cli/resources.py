"""The commands that all resources of a workspace have: create, list, update and remove.

They follow from the definition of the resource, with an option for each field that has an `Option`; agents and flows
have options of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import click

from outreach import Outreach
from outreach.models import INTERNAL_FIELDS, Bounds
from outreach.server_support import RESOURCE_SERVICES, bounded_fields, fields_of
from outreach_server.cli import documents
from outreach_server.cli.base import Command, Group, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import CARRIER, NAME, WORKSPACE, Identifier, clear, integer_of, text_of


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
        name: The engine's attribute, and the name of the group.
    """

    name: str

    @property
    def definition(self) -> Any:
        """The definition of the resource."""
        return RESOURCE_SERVICES[self.name]

    @property
    def noun(self) -> str:
        """What one of them is called."""
        return RESOURCE_SERVICES[self.name].kind.noun

    def service(self, engine: Outreach) -> Any:
        """Return the resource's service."""
        return getattr(engine, self.name)

    def create(self, meaning: str, *params: click.Parameter) -> click.Command:
        """Return `create`, which makes the model of the options that were given."""

        def run(workspace_id: str, **values: Any) -> None:
            made = self.definition.new(**_given(values))
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

        return Command("list", help=f"List a workspace's {self.name}.", callback=run, params=[workspace_argument()])

    def update(self, meaning: str, *params: click.Parameter) -> click.Command:
        """Return `update`, which changes the fields whose options were given."""
        arguments = self.arguments()

        def run(**values: Any) -> None:
            place = {argument.name: values.pop(argument.name) for argument in arguments}
            change = self.definition.change(**_changes(params, values))

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
            title = self.definition.title
            show({"id": gone.id, title: getattr(gone, title), "removed": True})

        return Command("remove", help=meaning, callback=run, params=[*self.arguments()])

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


def resource_group(name: str, purpose: str) -> Group:
    """Return the commands of a resource that has none of its own.

    Args:
        name: The engine's attribute.
        purpose: The help of the group.
    """
    resource = ResourceCommands(name)
    definition = resource.definition
    called, title, texts = definition.called, definition.title, definition.commands
    shown = [field.name for field in attrs.fields(definition.model)]
    hidden = {"workspace_id", *INTERNAL_FIELDS}
    return Group(
        name,
        help=purpose,
        commands=[
            resource.create(
                texts.create or f"Create {called} called {title.upper()}.",
                name_argument() if title == "name" else click.Argument([title]),
                *_options(definition.new, title),
            ),
            resource.list(
                *(texts.columns or [field for field in shown if field not in hidden]),
                empty=f"The workspace has no {name}. {texts.empty}".rstrip(),
            ),
            resource.update(
                texts.update or f"Change {called}.",
                *([click.Option(["--name"], type=NAME, help="A new name.")] if title == "name" else []),
                *_options(definition.change, title),
            ),
            resource.remove(texts.remove or f"Remove {called}, unless it is in use."),
        ],
    )


def _options(model: type[Any], title: str) -> Iterator[click.Parameter]:
    """Yield the options of the fields of a `New…` or an `…Update`, each with the one that clears it."""
    bounds = bounded_fields(model)
    for name, field in fields_of(model).items():
        option = field.option
        if name == title or option is None:
            continue
        kind: click.ParamType[Any] | None = None
        if option.names:
            kind = CARRIER if option.names == "carrier" else Identifier(option.names)
        elif isinstance(bounds.get(name), Bounds):
            kind = integer_of(model, name)
        elif not field.optional:
            kind = text_of(model, name)
        word = option.word or name.replace("_", "-")
        yield click.Option(
            [f"--{word}", name],
            type=kind,
            metavar=option.metavar,
            required=attrs.fields_dict(model)[name].default is attrs.NOTHING,
            help=option.meaning,
        )
        if field.unsettable and field.optional and option.cleared:
            yield ClearOption(name, option.cleared, word=word)


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
