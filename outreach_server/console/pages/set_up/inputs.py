"""Fields of forms that follow from the fields of models, and what people write into them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

import attrs

from outreach import InvalidRequest
from outreach.models import Bounds, Length
from outreach.server_support import ListOf, Model, bounded_fields, fields_of
from outreach_server.console import words
from outreach_server.console.pages.set_up.field_words import FIELDS

InputKind: TypeAlias = Literal[
    "text", "area", "lines", "number", "tick", "ticks", "choice", "secret", "email", "moment", "date", "time"
]

Choices: TypeAlias = Sequence[tuple[str, str]]
"""The values of a choice, each with its words."""

_SHORT: Final = 255
_LONGEST: Final = 60_000
_NONE: Final = "None"
_NOT_WHOLE: Final = "must be a whole number"
_MOST_DIGITS: Final = 12


@attrs.frozen(kw_only=True)
class Input:
    """A field of a form.

    Attributes:
        name: The field of the model that it sets.
        kind: How it is shown: `area` is a long text, `lines` are texts, one a line, `ticks` some of several words.
        optional: Whether nothing written means None.
        longest: The most characters.
        choices: What a choice, or ticks, can be.
        group: The fields of the same group stand beside each other under these words.
        value: What it holds: of `tick` `yes` or nothing, of `lines` and `ticks` one a line.
    """

    name: str
    label: str
    kind: InputKind = "text"
    hint: str = ""
    optional: bool = False
    required: bool = False
    longest: int = _SHORT
    choices: Choices = ()
    group: str = ""
    value: str = ""

    @property
    def chosen(self) -> Sequence[str]:
        """The words of `ticks` that are chosen."""
        return self.value.splitlines()

    def written(self, form: Mapping[str, str]) -> str:
        """Return what a form has for it, in the form of `value`."""
        if self.kind == "ticks":
            return "\n".join(word for word, _ in self.choices if form.get(f"{self.name}_{word}"))
        text = form.get(self.name, "")
        return "yes" if self.kind == "tick" and text else text.replace("\r\n", "\n")

    def read(self, written: str) -> Any:
        """Return the value of the model's field.

        Raises:
            ValueError: A number is none; the message says so.
        """
        text = written if self.kind == "area" else written.strip()
        match self.kind:
            case "tick":
                return bool(text)
            case "lines" | "ticks":
                found = tuple(line.strip() for line in text.splitlines() if line.strip())
                return None if self.optional and not found else found
            case "number" if text:
                if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
                    raise ValueError(_NOT_WHOLE)
                return int(text)
            case "number":
                if not self.optional:
                    raise ValueError(_NOT_WHOLE)
        return None if self.optional and not text.strip() else text


def inputs_of(
    model: type[Any],
    held: object = None,
    *,
    names: Collection[str] | None = None,
    choices: Mapping[str, Choices] | None = None,
) -> Sequence[Input]:
    """Return the fields of a form for a model of a request, in the order of the model.

    Args:
        model: The model.
        held: What is changed, with a value for each field; None for something new.
        names: The fields that the form has; None for all. Those of other models are in no form that follows from this.
        choices: The choices of fields that name other things.
    """
    found = [
        _input(model, name, held, (choices or {}).get(name))
        for name in fields_of(model)
        if names is None or name in names
    ]
    return [one for one in found if one is not None]


def read_inputs(inputs: Sequence[Input], form: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values that a form has for its fields, and what is wrong with others."""
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for one in inputs:
        try:
            values[one.name] = one.read(one.written(form))
        except ValueError as error:
            problems[one.name] = f"{one.label} {error}."
    return values, problems


def changed(values: Mapping[str, Any], held: object) -> dict[str, Any]:
    """Return the values that differ from what is held; nothing written and nothing held are the same."""
    nothing: tuple[object, ...] = (None, "", ())
    return {
        name: value
        for name, value in values.items()
        if value != getattr(held, name) and not (value in nothing and getattr(held, name) in nothing)
    }


def problems_in(error: InvalidRequest, inputs: Sequence[Input]) -> dict[str, str]:
    """Return what an error says of each field, in a sentence; under no name what is of none."""
    labels = {one.name: one.label for one in inputs}
    found: dict[str, str] = {}
    for one in error.details:
        path = one.path.partition("[")[0]
        name = path if path in labels else ""
        found.setdefault(name, f"{labels.get(name, words.sentence_of(one.path))} {one.message}.".replace("..", "."))
    return found or {"": error.message}


def _input(model: type[Any], name: str, held: object, choices: Choices | None) -> Input | None:
    field, bounds = fields_of(model)[name], bounded_fields(model).get(name)
    default = attrs.fields_dict(model)[name].default
    label, hint = FIELDS.get(name, (words.sentence_of(name), field.option.meaning if field.option is not None else ""))
    given = default if held is None else getattr(held, name, None)
    # A field that cannot be None may be left out of a new model, where it has a default.
    optional = field.optional or (held is None and default is None)
    kind: InputKind = "text"
    longest = _SHORT
    if choices is not None or field.words:
        kind = "choice"
        choices = [(str(one), words.sentence_of(str(one))) for one in field.words] if choices is None else choices
        if optional:
            choices = (("", _NONE), *choices)
    elif field.is_flag:
        kind = "tick"
    elif isinstance(bounds, Bounds):
        kind, longest = "number", _MOST_DIGITS
        hint = f"{hint} {bounds.minimum:,} to {bounds.maximum:,}.".lstrip()
    elif isinstance(bounds, Length):
        kind, longest = ("area" if bounds.maximum > _SHORT else "text"), bounds.maximum
    elif isinstance(field.rule, ListOf):
        if isinstance(field.rule.rule, Model):
            return None
        kind, longest = "lines", _LONGEST
    required = default is attrs.NOTHING and not optional and kind != "tick"
    return Input(
        name=name,
        label=label,
        kind=kind,
        hint=hint,
        optional=optional,
        required=required,
        longest=longest,
        choices=choices or (),
        value=_text(given),
    )


def _text(value: object) -> str:
    """Return a value of a model as a form shows it."""
    match value:
        case None | attrs.NOTHING | False:
            return ""
        case True:
            return "yes"
        case Enum():
            return str(value.value)
        case str() | int():
            return str(value)
        case tuple() | list():
            return "\n".join(str(one) for one in value)
    return ""
