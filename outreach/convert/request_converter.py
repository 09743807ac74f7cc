"""The strict converter of requests: cattrs builds the models after a rule has checked each value.

cattrs alone turns `123` into `"123"` and `"abc"` into a list of letters, so its conversions are never used: a model
needs a rule for each field.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import attrs
from cattrs import AttributeValidationNote, ClassValidationError, Converter, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from outreach.convert.field_rules import (
    MAX_DETAILS,
    FieldRule,
    Refused,
    within,
)
from outreach.convert.json_parsing import shown
from outreach.errors import ErrorDetail

T = TypeVar("T")


def make_request_converter(
    cls: type[T],
    rules: Mapping[str, FieldRule],
    *,
    renamed: Mapping[str, str] | None = None,
    closed: str | None = None,
    without: Collection[str] = (),
) -> Callable[[Any], T]:
    """Return a function that makes a model of a JSON object, or refuses it with every wrong place.

    Args:
        cls: An attrs class.
        rules: The rule of each field, by its name in the class.
        renamed: JSON names of fields with another name there.
        closed: What to call the object in the error about an unknown field; None to ignore such fields.
        without: Fields of the class that the object does not have; they keep their defaults.
    """
    names = {field: (renamed or {}).get(field, field) for field in rules}
    fields = {field.name for field in attrs.fields(cls)}  # type: ignore[arg-type]
    if fields != {*rules, *without}:
        raise TypeError(f"{cls.__name__} has the fields {sorted(fields)}, but rules for {sorted(rules)}.")
    # cattrs takes options and overrides by field in one namespace, which its types cannot express.
    overrides: dict[str, Any] = {
        field: override(rename=names[field], struct_hook=_hook(rule)) for field, rule in rules.items()
    }
    overrides |= {field: override(omit=True) for field in without}
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
