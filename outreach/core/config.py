"""Settings of the engine, and how a config class is read from flags, the environment and a TOML file.

Names have their units in them. Flags win over the environment, the environment over the file, the file over the
defaults; errors name the source of the value.

typed-settings 26.0 was tried in its place. It read `change_poll_seconds = true` as 1.0 and `max_requests_in_flight =
1.5` as 1, its errors did not name the source or the bounds, and `--help` read the environment and the file.
"""

from __future__ import annotations

import inspect
import ipaddress
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlsplit

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
    """A base of frozen attrs classes with defaults; every field is read from flags, environment and file.

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
                given[name] = setting.flag, _parse_setting(flags[name], setting.kind)
            elif environment.get(variable):
                given[name] = variable, _parse_setting(environment[variable], setting.kind)
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
            # Some editors of Windows write a byte order mark.
            found: Any = tomllib.loads(file.read_text("utf-8-sig"))
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


def _parse_setting(given: object, kind: str) -> object:
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


PUBLIC_URL_VARIABLE: Final = "OUTREACH_PUBLIC_URL"


IN_PROCESS: Final = "in_process"
"""The engine's own dispatcher; each other one is a plug-in of that name."""

DISPATCHERS: Final = (IN_PROCESS, "procrastinate")

MAX_WORKERS: Final = 16
"""Processes that may dispatch from one database: a SQLite file has one writer, which few of them keep busy."""

_MAX_SECONDS: Final = 3.2e9
"""A hundred years: beyond, dates leave what Python can represent."""


def _public_url(given: object) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise ConfigError(f"The public address is {given!r}; it must be a text like https://outreach.example.com.")
    text = given.strip()
    if "?" in text or "#" in text or "@" in text:
        # Not shown: what stands before an @ may be a password.
        raise ConfigError("The public address has more than a host and a path: leave out what has ?, # or @.")
    # Before it is taken apart: urlsplit drops some of these, and what was looked at would not be what is used.
    if any(not character.isprintable() or character.isspace() for character in text):
        raise ConfigError(f"The public address {text!r} has blanks or control characters in it: take them out.")
    if not text.isascii():
        raise ConfigError(
            f"The public address {text!r} has characters that are not ASCII: write its host as xn--…, as DNS has "
            "it, and its path with percent signs."
        )
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    local = host in {"127.0.0.1", "::1", "localhost"}
    if not host or parts.scheme not in {"https", "http"} or (parts.scheme == "http" and not local):
        raise ConfigError(f"The public address is {text!r}; it must be like https://outreach.example.com.")
    if "_" in host:
        raise ConfigError(
            f"The public address {text!r} has an underscore in its host, which providers do not call back to: give the "
            "server another name, such as one with a hyphen."
        )
    return text.rstrip("/")


def _time(default: float) -> Any:
    """Return a field for seconds, or days, that are more than none."""
    return attrs.field(default=default, validator=Bounds(most=_MAX_SECONDS, above=True))


def _time_or_none(default: float) -> Any:
    """Return a field for seconds that may be absent."""
    return attrs.field(default=default, validator=Bounds(most=_MAX_SECONDS))


def _dispatcher(instance: Any, attribute: Any, value: object) -> None:
    if value not in DISPATCHERS:
        raise ConfigError(
            f"{type(instance).__name__}.{attribute.name} is {value!r}; it must be one of {', '.join(DISPATCHERS)}."
        )


_NAME: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*\.?", re.IGNORECASE)


def _networks_and_names(instance: Any, attribute: Any, value: object) -> None:
    where = f"{type(instance).__name__}.{attribute.name}"
    if not isinstance(value, str):
        raise ConfigError(f"{where} is {value!r}; it must be a text like '10.2.0.0/16,mattermost.internal'.")
    for one in filter(None, (part.strip() for part in value.split(","))):
        try:
            ipaddress.ip_network(one)
        except ValueError as error:
            if "/" in one or ":" in one or one[-1].isdigit() or not _NAME.fullmatch(one):
                raise ConfigError(
                    f"{where} has {one!r}, which is neither a network nor the name of a host: {error}."
                ) from None


def _truth(instance: Any, attribute: Any, value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"{type(instance).__name__}.{attribute.name} is {value!r}; it must be true or false.")


def _count(default: int, most: int) -> Any:
    return attrs.field(default=default, validator=Bounds(least=1, most=most, integer=True))


@attrs.frozen(kw_only=True)
class EngineConfig(Configurable):
    """How the engine behaves. A value that makes no sense is a `ConfigError`.

    `EngineConfig.load(os.environ, file=Path("outreach.toml"))` reads every field: `docs/configuration.md`.

    Attributes:
        max_queued_intents: Intents that wait for their slot at a time, of all workers of the database together.
        max_requests_in_flight: Requests to providers that have no outcome yet, of all workers together. The sum of both
            bounds what a crash can leave unknown.
        max_intent_age_seconds: No request starts later than this after the commit of its intent.
        look_ahead_seconds: How long before its slot an intent may be committed, where several slots lie so close.
        sparse_look_ahead_seconds: The same where slots lie farther apart: an intent that waits takes a place.
        provider_timeout_seconds: After this a request without an answer is unknown.
        time_slice_seconds: How long a runner works on one unit before others get their turn.
        change_poll_seconds: How often changes of other processes are looked for.
        max_workers: How many processes may dispatch from one database at a time; the others stand by.
        dispatcher: What drives the work: `in_process`, or `procrastinate` by jobs in the same PostgreSQL; then up to 16
            processes dispatch, whatever `max_workers` says.
        worker_concurrency: How many campaigns, calls and messages a worker of Procrastinate works on at a time.
        lease_seconds: How long a lease lasts without a heartbeat.
        heartbeat_interval_seconds: How often the lease is renewed.
        lock_retry_seconds: How often a process that may not dispatch yet asks again.
        stop_grace_seconds: How long a stop waits for requests in flight.
        acceptance_wait_seconds: How long POST /calls waits for the provider's acceptance.
        single_expiry_seconds: A single call or message not dispatched for this long is canceled as stale.
        missed_start_grace_seconds: A scheduled start missed by more than this pauses the campaign.
        idempotency_key_ttl_seconds: How long an idempotency key is remembered.
        idempotency_wait_seconds: How long a request waits for the first one with its key.
        insert_batch_size: Recipients of a campaign that is created which are written in one transaction.
        backoff_initial_seconds: The first wait after a deferral; each further wait is twice as long.
        backoff_max_seconds: The longest wait after a deferral.
        call_poll_seconds: How often a call in progress is asked for when no event comes.
        call_status_seconds: How long a provider has to answer with the status of a call.
        call_analysis_wait_seconds: For how long after a call's end its provider is asked for what the analysis says of
            it, where no event has said so: first after a tenth of it, then after twice as long each time.
        call_timeout_seconds: A placed call that has not ended this long after it was dialed ends as unconfirmed; one
            that its agent allows to last longer, five minutes after that; one that its provider says is going on, after
            12 hours and five minutes.
        reconcile_delay_seconds: How long after its commit an unknown dispatch is first looked up at the provider.
        reconcile_retry_seconds: How long after a look-up without a result the next one is made.
        reconcile_deadline_seconds: How long after its commit an unknown dispatch ends as unconfirmed.
        reconcile_interval_seconds: The pause between two rounds over the unknown dispatches.
        receipt_timeout_seconds: How long an accepted message of a campaign waits for its final receipt while SMS retry
            is on; then it counts as done. For so long after its completion a campaign is reopened where a message
            failed at a limit.
        cleanup_interval_seconds: How often what nobody needs any more is cleared away.
        callback_retention_days: How long the events that providers call back are kept as they came.
        public_url: Where this server is reached from outside, such as `https://outreach.example.com`: there providers
            call back. None: no callback URL is sent.
        webhook_allow: Networks and names, with commas between, to which webhooks are sent though they are not public,
            such as `10.2.0.0/16,mattermost.internal`. Metadata services of clouds are never among them.
        webhook_allow_http: Whether webhooks are also sent unencrypted.
    """

    tables: ClassVar[frozenset[str]] = frozenset({"simulator"})

    max_queued_intents: int = _count(900, 100_000)
    max_requests_in_flight: int = _count(600, 100_000)
    max_intent_age_seconds: float = _time(5.0)
    look_ahead_seconds: float = _time_or_none(0.5)
    sparse_look_ahead_seconds: float = _time_or_none(0.1)
    provider_timeout_seconds: float = _time(30.0)
    time_slice_seconds: float = _time(30.0)
    change_poll_seconds: float = _time(0.25)
    max_workers: int = _count(1, MAX_WORKERS)
    dispatcher: str = attrs.field(default="in_process", validator=_dispatcher)
    worker_concurrency: int = attrs.field(
        default=100, validator=Bounds(least=1, most=10_000, integer=True), metadata={"flag": "--concurrency"}
    )
    lease_seconds: float = _time(15.0)
    heartbeat_interval_seconds: float = _time(2.0)
    lock_retry_seconds: float = _time(0.5)
    stop_grace_seconds: float = _time_or_none(7.0)
    acceptance_wait_seconds: float = _time_or_none(1.5)
    single_expiry_seconds: float = _time(600.0)
    missed_start_grace_seconds: float = _time_or_none(3600.0)
    idempotency_key_ttl_seconds: float = _time(86_400.0)
    idempotency_wait_seconds: float = _time_or_none(30.0)
    insert_batch_size: int = _count(2_500, 100_000)
    backoff_initial_seconds: float = _time(1.0)
    backoff_max_seconds: float = _time(300.0)
    call_poll_seconds: float = _time(10.0)
    call_status_seconds: float = _time(5.0)
    call_analysis_wait_seconds: float = _time(600.0)
    call_timeout_seconds: float = _time(14_400.0)
    reconcile_delay_seconds: float = _time(60.0)
    reconcile_retry_seconds: float = _time(120.0)
    reconcile_deadline_seconds: float = _time(3600.0)
    reconcile_interval_seconds: float = _time(5.0)
    receipt_timeout_seconds: float = _time(14_400.0)
    cleanup_interval_seconds: float = _time(30.0)
    callback_retention_days: float = _time(30.0)
    public_url: str | None = attrs.field(default=None, converter=_public_url)
    webhook_allow: str = attrs.field(default="", validator=_networks_and_names)
    webhook_allow_http: bool = attrs.field(default=False, validator=_truth)

    def __attrs_post_init__(self) -> None:
        """Check what only makes sense together."""
        for shorter, longer in (
            ("heartbeat_interval_seconds", "lease_seconds"),
            ("backoff_initial_seconds", "backoff_max_seconds"),
        ):
            if getattr(self, shorter) > getattr(self, longer):
                raise ConfigError(
                    f"EngineConfig.{shorter} is {getattr(self, shorter):g}, and {longer} {getattr(self, longer):g}: "
                    "the first must not be longer than the second."
                )


def _log_file(given: object) -> Path | None:
    if given is not None and not isinstance(given, str | Path):
        raise ConfigError(f"SimulatorConfig.log_file is {given!r}; it must be the path of a file, or None for no log.")
    if given is None:
        return None
    path = Path(given)
    # Checked now: where the first message could not be logged, its outcome would be unknown.
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"SimulatorConfig.log_file is {str(path)!r}; it must be a file in a directory that is there.")
    return path


@attrs.frozen(kw_only=True)
class SimulatorConfig(Configurable):
    """How the simulators behave (docs/rules.md#sandbox).

    Attributes:
        log_file: A file that gets one JSON line for each message or call accepted; None for no log.
        latency_ms: How long an answer takes.
        failure_rate: Share of requests refused for now, 0 to 1.
        seed: Seed of the simulators' randomness; None for a different run each time.
        call_seconds: How long an answered call lasts.
    """

    table: ClassVar[str | None] = "simulator"

    log_file: Path | None = attrs.field(default=None, converter=_log_file, metadata={"name": "log"})
    latency_ms: float = attrs.field(default=20.0, validator=Bounds(most=600_000.0))
    failure_rate: float = attrs.field(default=0.0, validator=Bounds(most=1.0))
    seed: int | None = attrs.field(default=None, validator=Bounds(most=2.0**53, integer=True, optional=True))
    call_seconds: float = attrs.field(default=2.0, validator=Bounds(most=86_400.0))
