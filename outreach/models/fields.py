"""The kinds of fields: the rule of each field of a request stands once, on its model.

A model that derives from `Checked` reports everything that is wrong with it as it is constructed. JSON readers, options
of the command line and the test of openapi.yaml follow the same kinds. A field follows its annotation; where that does
not say enough, `bounded`, `sized` or `ruled` give it a rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from types import MappingProxyType, NoneType, UnionType
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

import attrs

from outreach.core.clock import in_utc, is_zone
from outreach.errors import InvalidRequest, Problem
from outreach.models.base import UNSET, Unset

FieldRule: TypeAlias = Callable[[Any], Any]
"""Returns the value in the form that the models hold; raises `Refused`."""

MAX_DETAILS: Final = 50
"""Problems listed in one error, so that a hostile body cannot make a huge one."""

_RULE: Final = "outreach.rule"
_OPTION: Final = "outreach.option"
UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
"""NUL, and halves of surrogate pairs: characters that not every database can store."""

UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Refused(ValueError):
    """A value breaks its rule.

    Args:
        message: What would be right.
        path: The place inside the value, appended to the value's own.
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.details: Sequence[Problem] = (Problem(path=path, message=message),)

    @classmethod
    def at(cls, details: Sequence[Problem]) -> Refused:
        """Return the refusal of several places."""
        refused = cls(details[0].message)
        refused.details = tuple(details)
        return refused


def within(prefix: str, details: Iterable[Problem]) -> list[Problem]:
    """Return details with `prefix` before their paths."""
    return [attrs.evolve(detail, path=prefix + detail.path) for detail in details]


def refusals(path: str, value: object, rule: FieldRule) -> list[Problem]:
    """Return why a rule refuses a value, with the places; nothing where it accepts the value."""
    try:
        rule(value)
    except Refused as refused:
        return within(path, refused.details)
    return []


class Bounds(NamedTuple):
    """The least and the greatest value of an integer."""

    minimum: int
    maximum: int


class Length(NamedTuple):
    """The fewest and the most characters (code points) of a text."""

    minimum: int
    maximum: int


@attrs.frozen
class Text:
    """A string that every database can store; its length is in code points.

    Attributes:
        pattern: The whole string must match it; `meaning` is its error message.
    """

    minimum: int = 0
    maximum: int | None = None
    pattern: re.Pattern[str] | None = attrs.field(default=None, kw_only=True)
    meaning: str = attrs.field(default="", kw_only=True)

    def __call__(self, value: Any) -> str:
        """Return the string."""
        if not isinstance(value, str):
            raise Refused("must be a string")
        if self.pattern is not None:
            if not self.pattern.fullmatch(value):
                raise Refused(self.meaning)
            return value
        if len(value) < self.minimum or (self.maximum is not None and len(value) > self.maximum):
            raise Refused(f"{self._bounds()}, has {len(value)}")
        require_storable(value)
        return value

    def _bounds(self) -> str:
        if self.maximum is None:
            return f"must have at least {self.minimum} character{'s' if self.minimum != 1 else ''}"
        if self.minimum == 0:
            return f"must have at most {self.maximum} characters"
        return f"must have {self.minimum} to {self.maximum} characters"


def require_storable(text: str, path: str = "") -> None:
    """Refuse a text that not every database can store."""
    # ASCII strings, the usual ones, need no regular expression.
    if ("\x00" in text) if text.isascii() else UNSTORABLE.search(text):
        raise Refused("must not contain NUL or half of a surrogate pair", path)


@attrs.frozen
class Integer:
    """An integer within bounds; `True` is none."""

    minimum: int
    maximum: int

    def __call__(self, value: Any) -> int:
        """Return the integer."""
        if type(value) is not int:
            raise Refused(f"must be an integer from {self.minimum} to {self.maximum}")
        if not self.minimum <= value <= self.maximum:
            raise Refused(f"must be between {self.minimum} and {self.maximum}")
        return value


def boolean(value: Any) -> bool:
    """Return true or false."""
    if type(value) is not bool:
        raise Refused("must be true or false")
    return value


@attrs.frozen
class OneOf:
    """One of several words.

    Attributes:
        make: Makes a member of an enumeration of the word.
    """

    words: Sequence[str]
    make: Callable[[Any], Any] = str

    def __call__(self, value: Any) -> Any:
        """Return the word."""
        if not isinstance(value, str) or value not in self.words:
            from outreach.core.meant import did_you_mean, nearest

            raise Refused(f"must be one of {', '.join(self.words)}{did_you_mean(nearest(value, self.words))}")
        return self.make(value)


def moment(value: Any) -> datetime:
    """Return an aware time in UTC."""
    if not isinstance(value, datetime):
        raise Refused(f"must be a datetime, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise Refused("must have a UTC offset: use datetime(..., tzinfo=UTC)")
    try:
        return in_utc(value)
    except OverflowError:
        raise Refused("must be a time that exists in UTC too, in the years 1 to 9999") from None


def zone(value: Any) -> str:
    """Return the name of a time zone."""
    if not isinstance(value, str) or not is_zone(value):
        from outreach.core.meant import did_you_mean, zones_like

        meant = did_you_mean(zones_like(value))
        raise Refused(f"is no IANA time zone: use a name such as America/New_York, spelled exactly so{meant}")
    return value


@attrs.frozen
class Instance:
    """An object of a class, and of no other form."""

    kind: type[Any]

    def __call__(self, value: Any) -> Any:
        """Return the object."""
        if not isinstance(value, self.kind):
            raise Refused(f"must be {_named(self.kind)}, not {type(value).__name__}")
        return value


@attrs.frozen
class Model(Instance):
    """A model of this package whose fields are as they say."""

    def __call__(self, value: Any) -> Any:
        """Return the model."""
        details = problems_of(Instance.__call__(self, value))
        if details:
            raise Refused.at(within(".", details))
        return value


@attrs.frozen
class ListOf:
    """A list whose elements follow one rule."""

    rule: FieldRule
    minimum: int = 0
    maximum: int | None = None

    def __call__(self, value: Any) -> tuple[Any, ...]:
        """Return the elements; the refusal names each wrong one, up to a limit."""
        # A string is iterable too.
        if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
            elements = _named(self.rule.kind) if isinstance(self.rule, Instance) else "strings"
            raise Refused(f"must be a list of {elements.removeprefix('an ')}, not {type(value).__name__}")
        given = tuple(value)
        if self.maximum is not None and len(given) > self.maximum:
            raise Refused(f"must have at most {self.maximum} elements, has {len(given)}")
        if len(given) < self.minimum:
            raise Refused(f"must have at least {self.minimum} element{'s' if self.minimum != 1 else ''}")
        found: list[Any] = []
        details: list[Problem] = []
        for index, item in enumerate(given):
            try:
                found.append(self.rule(item))
            except Refused as refused:
                details += within(f"[{index}]", refused.details)
                if len(details) >= MAX_DETAILS:
                    break
        if details:
            raise Refused.at(details[:MAX_DETAILS])
        return tuple(found)


def _named(kind: type[Any]) -> str:
    """Return what an error calls an object of a class, such as `an outreach.NewFlow`."""
    return f"an outreach.{kind.__name__}" if attrs.has(kind) else f"a {kind.__name__.lower()}"


class Option(NamedTuple):
    """How the command line sets a field.

    Attributes:
        meaning: Its help.
        cleared: The help of the option that clears the field, such as `--no-trunk`; empty if none does.
        word: The name of the option, without dashes; empty for the field's.
        metavar: The word for the value in the help; None for its type.
        names: The kind of the named thing: `carrier`, `region` or the noun of a resource; empty for any text.
    """

    meaning: str
    cleared: str = ""
    word: str = ""
    metavar: str | None = None
    names: str = ""


def ruled(rule: FieldRule | None, *, option: Option | None = None, **options: Any) -> Any:
    """Return an attrs field with a rule.

    Args:
        rule: The rule; None for that of the annotation.
        option: How the command line sets it.
        **options: Those of `attrs.field`.
    """
    return attrs.field(metadata={_RULE: rule, _OPTION: option}, **options)


def bounded(minimum: int, maximum: int, **options: Any) -> Any:
    """Return an attrs field of a bounded integer; `options` are those of `ruled`."""
    return ruled(Integer(minimum, maximum), **options)


def sized(minimum: int, maximum: int, **options: Any) -> Any:
    """Return an attrs field of a text of bounded length; `options` are those of `ruled`."""
    return ruled(Text(minimum, maximum), **options)


class Field(NamedTuple):
    """The values that a field may hold.

    Attributes:
        rule: The rule of its values.
        optional: Whether it may be None.
        unsettable: Whether it may be `UNSET`.
        option: How the command line sets it, if that follows from the model.
    """

    rule: FieldRule
    optional: bool
    unsettable: bool
    option: Option | None = None

    @property
    def is_flag(self) -> bool:
        """Whether it is true or false."""
        return self.rule is boolean

    @property
    def words(self) -> Sequence[str]:
        """The words that it may hold; none if it may hold others."""
        return self.rule.words if isinstance(self.rule, OneOf) else ()

    def check(self, value: Any) -> Any:
        """Return the value in the form that the models hold; raise `Refused`."""
        if (value is None and self.optional) or (value is UNSET and self.unsettable):
            return value
        if value is None and self.unsettable:
            raise Refused("cannot be cleared: give a value, or leave it out (UNSET)")
        return self.rule(value)


_KNOWN: Final[dict[type[Any], Mapping[str, Field]]] = {}


def fields_of(model: type[Any]) -> Mapping[str, Field]:
    """Return what the fields of a model may hold, by name, in their order.

    Raises:
        TypeError: A field has no rule, and its type does not say enough.
    """
    if model not in _KNOWN:
        _KNOWN[model] = MappingProxyType(_read_fields(model))
    return _KNOWN[model]


def _read_fields(model: type[Any]) -> dict[str, Field]:
    hints = get_type_hints(model)
    # A `TypedDict` has types alone.
    declared = attrs.fields_dict(model) if attrs.has(model) else dict.fromkeys(hints)
    found: dict[str, Field] = {}
    for name, field in declared.items():
        kind, metadata = hints[name], {} if field is None else field.metadata
        # A literal's union with None is of the older kind.
        united = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
        inherited = _inherited(model, name)
        rule = metadata.get(_RULE) or (inherited and inherited.rule)
        if rule is None:
            kinds = [one for one in united if one not in {Unset, NoneType}]
            rule = _derived(kinds[0]) if len(kinds) == 1 else None
        if rule is None:
            raise TypeError(f"{model.__name__}.{name} needs a rule: {kind} tells none.")
        option = metadata.get(_OPTION) or (inherited and inherited.option)
        found[name] = Field(rule, NoneType in united, Unset in united, option)
    return found


def _inherited(model: type[Any], name: str) -> Field | None:
    for other in getattr(model, "_rules_from", ()):
        if name in fields_of(other):
            return fields_of(other)[name]
    return None


def _derived(kind: Any) -> FieldRule | None:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return OneOf(inner)
    if origin in {Sequence, Collection, tuple}:
        element = _derived(inner[0])
        return None if element is None else ListOf(element)
    if origin is Mapping or kind is date:
        return Instance(origin or kind)
    if kind is bool:
        return boolean
    if kind is str:
        return Text()
    if kind is datetime:
        return moment
    if attrs.has(kind):
        return Model(kind)
    return OneOf(tuple(kind), kind) if isinstance(kind, type) and issubclass(kind, Enum) else None


def bounded_fields(model: type[Any]) -> Mapping[str, Bounds | Length]:
    """Return the bounds of a model's fields that have some, by name."""
    found: dict[str, Bounds | Length] = {}
    for name, (rule, *_) in fields_of(model).items():
        if isinstance(rule, Integer):
            found[name] = Bounds(rule.minimum, rule.maximum)
        elif isinstance(rule, Text) and rule.maximum is not None:
            found[name] = Length(rule.minimum, rule.maximum)
    return found


def bounds_of(model: type[Any], field: str) -> Bounds | Length:
    """Return the bounds of a model's field; raise `LookupError` if it has none."""
    return bounded_fields(model)[field]


def problems_of(model: Any) -> list[Problem]:
    """Return what is wrong with the fields of a model, each by itself."""
    details: list[Problem] = []
    for name, field in fields_of(type(model)).items():
        value = getattr(model, name)
        try:
            held = field.check(value)
        except Refused as refused:
            details += within(name, refused.details)
        else:
            if held is not value and isinstance(model, Checked):
                object.__setattr__(model, name, held)
    return details


class Checked:
    """The base of the models of requests: one that is wrong cannot be constructed.

    Attributes:
        _rules_from: The models on which the rules of an update's fields stand.
    """

    __slots__ = ()

    _rules_from: ClassVar[tuple[type[Any], ...]] = ()

    def __attrs_post_init__(self) -> None:
        """Check all fields, and then what they say together.

        Raises:
            InvalidRequest: A field is wrong; the details name each.
        """
        details = problems_of(self) or self._problems()
        if details:
            raise InvalidRequest(details=details[:MAX_DETAILS])

    def _problems(self) -> Sequence[Problem]:
        """Return what is wrong with fields that depend on each other, where each is right by itself."""
        return ()


def check_field(model: type[Any], name: str, value: Any) -> Any:
    """Return an argument that follows a field of a model, in the form that the model holds.

    Raises:
        InvalidRequest: It does not; the details name the argument as the field.
    """
    return check_value(name, value, fields_of(model)[name].check)


def check_value(path: str, value: Any, rule: FieldRule) -> Any:
    """Return an argument that follows a rule, in the form that the models hold.

    Raises:
        InvalidRequest: It does not; the details name the path.
    """
    try:
        return rule(value)
    except Refused as refused:
        raise InvalidRequest(details=within(path, refused.details)) from None
