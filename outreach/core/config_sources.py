"""Reading a config class from flags, the environment and a TOML file; errors name the source of the value.

Flags win over the environment, the environment over the file, the file over the defaults.

typed-settings 26.0 was tried in its place. It read `change_poll_seconds = true` as 1.0 and `max_requests_in_flight =
1.5` as 1, its errors did not name the source or the bounds, and `--help` read the environment and the file.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import attrs

from outreach.errors import ConfigError

_NO_VALUES: Final[Mapping[str, Any]] = {}
_TRUTH: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


@attrs.frozen(kw_only=True)
class Bounds:
    """The validator of a number: which it may be, also in words.

    Attributes:
        least: The lower bound.
        most: The upper bound, which the number may be.
        above: Whether the lower bound itself is too small.
        integer: Whether it must be an integer.
        optional: Whether None is fine too.
    """

    least: float = 0.0
    most: float
    above: bool = False
    integer: bool = False
    optional: bool = False

    def __str__(self) -> str:
        kind = "an integer" if self.integer else "a number"
        return f"{kind} {'above' if self.above else 'from'} {self.least:.16g} and up to {self.most:.16g}"

    def __call__(self, instance: Any, attribute: Any, value: Any) -> None:
        """Check a value.

        Raises:
            ConfigError: It is none of these numbers.
        """
        if value is None and self.optional:
            return
        # A boolean is an integer to Python, and to nobody else; NaN is within no bounds.
        known = type(value) is int or (type(value) is float and not self.integer)
        if not known or not (self.least < value if self.above else self.least <= value) or not value <= self.most:
            raise ConfigError(f"{type(instance).__name__}.{attribute.name} is {value!r}; it must be {self}.")


@attrs.frozen(kw_only=True)
class Setting:
    """One field of a config class, as each source has it.

    Attributes:
        name: The field.
        key: The key in a TOML file, with the table that it is in.
        variable: The environment variable.
        flag: The option of the command line.
        kind: `number`, `integer`, `boolean`, `text` or `path`.
        default: What it is where no source has it.
        values: Which values it may have, in words; empty where the kind says it.
        meaning: What it is for.
    """

    name: str
    key: str
    variable: str
    flag: str
    kind: str
    default: object
    values: str
    meaning: str


class Configurable:
    """A base of frozen attrs classes with defaults, every field of which is read from flags, environment and file.

    A field that the sources call otherwise says so in its metadata: `name` in all of them, `flag` on the command line.
    """

    __slots__ = ()

    table: ClassVar[str | None] = None
    """The table of a file that has the fields; None for the file itself."""

    tables: ClassVar[frozenset[str]] = frozenset()
    """The tables of a file that are other classes'."""

    @classmethod
    def settings(cls) -> Sequence[Setting]:
        """Return what can be set, in the order of the fields."""
        meanings = _meanings(cls)
        table = cls.table
        named = [(field, field.metadata.get("name", field.name)) for field in attrs.fields(cls)]  # type: ignore[arg-type]
        return [
            Setting(
                name=field.name,
                key=f"{table}.{name}" if table else name,
                variable=f"OUTREACH_{table}_{name}".upper() if table else f"OUTREACH_{name}".upper(),
                flag=field.metadata.get("flag") or f"--{f'{table}_' if table else ''}{name}".replace("_", "-"),
                kind=_KINDS[str(field.type).removesuffix(" | None")],
                default=field.default,
                values=str(field.validator) if isinstance(field.validator, Bounds) else "",
                meaning=meanings.get(field.name, ""),  # `python -OO` has no docstrings
            )
            for field, name in named
        ]

    @classmethod
    def load(
        cls,
        environment: Mapping[str, str] = _NO_VALUES,
        *,
        file: Path | None = None,
        flags: Mapping[str, Any] = _NO_VALUES,
    ) -> Self:
        """Read the fields from flags, the environment and a file; the first that has a field counts.

        Args:
            environment: Such as `os.environ`; a variable that is empty counts as not set.
            file: A TOML file.
            flags: Values by field name, as texts or of the field's type.

        Raises:
            ConfigError: A value is wrong, a key of the file is unknown, or the file cannot be read. The message says
                which flag, variable or key it is, and what would be right.
        """
        given = cls._given(environment, file, flags)
        values: dict[str, Any] = {}
        problems: list[str] = []
        for name, (source, value) in given.items():
            try:
                values[name] = cls._checked(name, value)
            except ConfigError as error:
                problems.append(_from(source, error.message, f"{cls.__name__}.{name}"))
        if problems:
            raise ConfigError("\n".join(problems))
        try:
            return cls(**values)
        except ConfigError as error:
            named = "; ".join(f"{name} is set by {given[name][0]}" for name in given if name in error.message)
            raise ConfigError(f"{error.message} Here {named}.") from None

    @classmethod
    def sources(
        cls,
        environment: Mapping[str, str] = _NO_VALUES,
        *,
        file: Path | None = None,
        flags: Mapping[str, Any] = _NO_VALUES,
    ) -> Mapping[str, str]:
        """Return the flag, variable or key that each field comes from, by its key; those with their default are absent.

        Args are those of `load`, and so are the errors of the file.
        """
        given = cls._given(environment, file, flags)
        return {setting.key: given[setting.name][0] for setting in cls.settings() if setting.name in given}

    @classmethod
    def _given(
        cls, environment: Mapping[str, str], file: Path | None, flags: Mapping[str, Any]
    ) -> Mapping[str, tuple[str, object]]:
        """Return the source and the value of each field that has one, by field."""
        written = cls._written(file) if file is not None else {}
        given: dict[str, tuple[str, object]] = {}
        for setting in cls.settings():
            name, variable = setting.name, setting.variable
            if name in flags:
                given[name] = setting.flag, _read(flags[name], setting.kind)
            elif environment.get(variable):
                given[name] = variable, _read(environment[variable], setting.kind)
            elif (key := setting.key.rpartition(".")[2]) in written:
                given[name] = f"{setting.key} in {file}", written[key]
        return given

    @classmethod
    def _checked(cls, name: str, value: object) -> Any:
        field = getattr(attrs.fields(cls), name)  # type: ignore[arg-type]
        if field.converter is not None:
            value = field.converter(value)
        if field.validator is not None:
            field.validator(object.__new__(cls), field, value)
        return value

    @classmethod
    def _written(cls, file: Path) -> Mapping[str, object]:
        """Return what a file has for this class.

        Raises:
            ConfigError: It cannot be read, or has what is no setting.
        """
        import tomllib  # here, because few processes have a file

        try:
            found: Any = tomllib.loads(file.read_text("utf-8"))
        except OSError as error:
            raise ConfigError(f"The configuration file {file} cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise ConfigError(f"The configuration file {file} is not TOML: {error}.") from None
        if cls.table is not None:
            found = found.get(cls.table, {})
        if not isinstance(found, dict):
            raise ConfigError(f"{cls.table} in {file} must be a table: [{cls.table}].")
        names = [setting.key.rpartition(".")[2] for setting in cls.settings()]
        unknown = [key for key in found if key not in names and (cls.table is not None or key not in cls.tables)]
        if unknown:
            raise ConfigError("\n".join(cls._unknown(key, file) for key in unknown))
        return found

    @classmethod
    def _unknown(cls, key: str, file: Path) -> str:
        """Return what is wrong with a key, and the one that was probably meant."""
        import difflib

        written = _as_key(key)
        for table in cls.tables:
            if written.startswith(f"{table}_"):
                return f"{key} in {file} is no setting; did you mean {written.removeprefix(f'{table}_')} in [{table}]?"
        names = {setting.key.rpartition(".")[2]: setting for setting in cls.settings()}
        meant = {_as_key(setting.flag.removeprefix("--")): name for name, setting in names.items()}
        meant |= {name: name for name in names}
        near = difflib.get_close_matches(written, meant, n=1)
        shown = f"{cls.table}.{key}" if cls.table else key
        return f"{shown} in {file} is no setting{f'; did you mean {meant[near[0]]}?' if near else '.'}"


_KINDS: Final = {"float": "number", "int": "integer", "bool": "boolean", "str": "text", "Path": "path"}


def _as_key(written: str) -> str:
    """Return the name of a flag or a variable, spelt as keys are."""
    return written.lower().replace("-", "_").removeprefix("outreach_")


def _read(given: object, kind: str) -> object:
    """Return the value that a text means; a text that means none stays one, for the validator to refuse."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    try:
        match kind:
            case "number":
                return float(text)
            case "integer":
                return int(text)
            case "boolean":
                return _TRUTH.get(text.lower(), given)
            case _:
                return given
    except ValueError:
        return given


def _from(source: str, message: str, subject: str) -> str:
    return source + message.removeprefix(subject) if message.startswith(f"{subject} ") else f"{source}: {message}"


def _meanings(cls: type) -> Mapping[str, str]:
    """Return what the docstrings of a class and its bases say of their attributes."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        _, _, text = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")
        for match in re.finditer(r"^    (\w+): (.+(?:\n     .+)*)", text, re.MULTILINE):
            found[match[1]] = " ".join(match[2].split())
    return found
