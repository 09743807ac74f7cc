"""The strict converter of requests: cattrs builds the models after a rule has checked each value.

cattrs alone turns `123` into `"123"` and `"abc"` into a list of letters, so its conversions are never used: a model
needs a rule for each field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
from cattrs import AttributeValidationNote, ClassValidationError, Converter, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from outreach.convert.field_rules import (
    MAX_DETAILS,
    FieldRule,
    Integer,
    OneOf,
    OrNull,
    Refused,
    Text,
    boolean,
    within,
)
from outreach.convert.json_parsing import shown
from outreach.errors import ErrorDetail
from outreach.models.base import Length, Unset, bounded_fields

T = TypeVar("T")


def make_request_converter(
    cls: type[T],
    rules: Mapping[str, FieldRule],
    *,
    bounds: type[Any] | None = None,
    renamed: Mapping[str, str] | None = None,
    closed: str | None = None,
) -> Callable[[Any], T]:
    """Return a function that makes a model of a JSON object, or refuses it with every wrong place.

    Args:
        cls: An attrs class.
        rules: The rules of fields, by their names in the class. A field without one follows its type and bounds on the
            model (`rule_of`).
        bounds: The model on which the bounds of an update's fields stand; None for `cls` itself.
        renamed: JSON names of fields with another name there.
        closed: What to call the object in the error about an unknown field; None to ignore such fields.
    """
    fields = {field.name for field in attrs.fields(cls)}  # type: ignore[arg-type]
    if not rules.keys() <= fields:
        raise TypeError(f"{cls.__name__} has the fields {sorted(fields)}, but rules for {sorted(rules)}.")
    rules = {name: rules.get(name) or rule_of(bounds or cls, name) for name in fields}
    names = {field: (renamed or {}).get(field, field) for field in fields}
    # cattrs takes options and overrides by field in one namespace, which its types cannot express.
    overrides: dict[str, Any] = {
        field: override(rename=names[field], struct_hook=_hook(rule)) for field, rule in rules.items()
    }
    structure = make_dict_structure_fn(
        cls,
        Converter(detailed_validation=True),
        _cattrs_forbid_extra_keys=closed is not None,
        _cattrs_detailed_validation=True,
        **overrides,
    )

    def read(value: Any) -> T:
        if type(value) is not dict:
            raise Refused("must be an object")
        try:
            return structure(value, cls)
        except ClassValidationError as error:
            raise Refused.at(_details(error, names, closed)) from None

    return read


def rule_of(model: type[Any], name: str) -> FieldRule:
    """Return the rule of a field by its type and its bounds on the model; a field that may be unset follows the rest.

    Raises:
        TypeError: Its type tells no rule.
    """
    bounds = bounded_fields(model).get(name)
    if isinstance(bounds, Length):
        return Text(minimum=bounds.minimum, maximum=bounds.maximum)
    if bounds is not None:
        return Integer(*bounds)
    kind = get_type_hints(model)[name]
    # A literal's union with None is of the older kind.
    united = get_origin(kind) in {Union, UnionType}
    kinds = [one for one in get_args(kind) if one not in {Unset, NoneType}] if united else [kind]
    if kinds == [bool]:
        return boolean
    if len(kinds) == 1 and get_origin(kinds[0]) is Literal:
        return OneOf(get_args(kinds[0]))
    raise TypeError(f"{model.__name__}.{name} needs a rule: {kind} tells none.")


def rules_or_null(model: type[Any], *names: str) -> dict[str, FieldRule]:
    """Return the rules of fields (`rule_of`) that null clears."""
    return {name: OrNull(rule_of(model, name)) for name in names}


def _hook(rule: FieldRule) -> Callable[[Any, Any], Any]:
    return lambda value, _: rule(value)


def _details(error: ClassValidationError, names: Mapping[str, str], closed: str | None) -> list[ErrorDetail]:
    details: list[ErrorDetail] = []
    noted, others = error.group_exceptions()
    for problem, note in noted:
        details += _at_field(problem, note, names)
    for problem in others:
        if not isinstance(problem, ForbiddenExtraKeysError):
            raise problem
        details += [ErrorDetail(shown(name), f"is not a field of {closed}") for name in sorted(problem.extra_fields)]
    return details[:MAX_DETAILS]


def _at_field(problem: Exception, note: AttributeValidationNote, names: Mapping[str, str]) -> list[ErrorDetail]:
    name = names[note.name]
    if isinstance(problem, Refused):
        return within(name, problem.details)
    if isinstance(problem, KeyError):
        return [ErrorDetail(name, "is required")]
    # Any other exception is a bug of the rule, not of the request.
    raise problem
