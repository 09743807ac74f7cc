"""Options of commands that follow from the fields of models: each sets the field of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import attrs
import click
from click.core import ParameterSource

from outreach.models import Length
from outreach.server_support import ListOf, Option, bounded_fields, fields_of
from outreach_server.cli.values import CARRIER, REGION, Identifier, OneOf, integer_of, text_of

F = TypeVar("F", bound=Callable[..., Any])

NO_CHANGE: Final = "Name something to change; see --help."


class ClearOption(click.Option):
    """An option that clears a field, such as `--no-trunk`.

    Args:
        field: The field.
        meaning: The help.
        word: What follows `--no-`; by default the name of the field.
        value: What the field is then.
    """

    def __init__(self, field: str, meaning: str, *, word: str = "", value: Any = None) -> None:
        self.field, self.value = field, value
        super().__init__([f"--no-{word or field.replace('_', '-')}", f"no_{field}"], is_flag=True, help=meaning)


def options_of(
    model: type[Any], shown: Mapping[str, Option] | None = None, *, prefix: str = ""
) -> Iterator[click.Option]:
    """Yield options for fields of a model, each with the one that clears it.

    Args:
        model: A model of a request.
        shown: The options by field, in their order; by default those that stand on the model.
        prefix: What the names of the options and their parameters begin with, such as `call_`.
    """
    fields = fields_of(model)
    found = {name: field.option for name, field in fields.items() if field.option} if shown is None else shown
    for name, option in found.items():
        word = f"{prefix}{option.word or name}".replace("_", "-")
        default = attrs.fields_dict(model)[name].default
        given = default if type(default) is int else None
        is_flag = fields[name].is_flag
        is_list = isinstance(fields[name].rule, ListOf)
        yield click.Option(
            [f"--{word}/--no-{word}" if is_flag else f"--{word}", f"{prefix}{name}"],
            type=None if is_flag else _kind(model, name, option),
            metavar=option.metavar,
            multiple=is_list,
            required=default is attrs.NOTHING,
            default=given,
            show_default=given is not None,
            help=option.meaning,
        )
        if option.cleared and (fields[name].unsettable or given is not None):
            yield ClearOption(f"{prefix}{name}", option.cleared, word=word)


def with_params(*params: click.Parameter) -> Callable[[F], F]:
    """Return a decorator that adds parameters to a function that becomes a command, in this order."""

    def add(function: F) -> F:
        # Where click's own decorators collect them, from the last to the first.
        vars(function).setdefault("__click_params__", []).extend(reversed(params))
        return function

    return add


def _kind(model: type[Any], name: str, option: Option) -> click.ParamType[Any] | None:
    bounds = bounded_fields(model).get(name)
    if option.names:
        return {"carrier": CARRIER, "region": REGION}.get(option.names) or Identifier(option.names)
    if words := fields_of(model)[name].words:
        return OneOf(words, case_sensitive=False)
    if bounds is None:
        return None
    return text_of(model, name) if isinstance(bounds, Length) else integer_of(model, name)


def given_fields(values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the options of this command set or clear; `values` are its parameters.

    Raises:
        click.UsageError: A field is set and cleared.
    """
    ctx = click.get_current_context()
    words = {one.name: one.opts[0] for one in ctx.command.params}
    cleared = [one for one in ctx.command.params if isinstance(one, ClearOption) and values.pop(one.name)]
    found = {name: value for name, value in values.items() if value is not None and value != ()}
    for one in cleared:
        if one.field in found and ctx.get_parameter_source(one.field) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{words[one.field]} and {words[one.name]} exclude each other.")
        found[one.field] = one.value
    return found


def given_changes(values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields to change, as `given_fields` does.

    Raises:
        click.UsageError: There are none, or a field is set and cleared.
    """
    changes = given_fields(values)
    if not changes:
        raise click.UsageError(NO_CHANGE)
    return changes
