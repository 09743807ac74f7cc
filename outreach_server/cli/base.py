"""Shared parts of all commands: common options, opening the engine, and how errors end a command.

Commands are imported when they are used, so that `--help` is fast.
"""

from __future__ import annotations

import gc
import getpass
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import attrs
import click

from outreach_server.cli.sigint import EXIT_INTERRUPTED, block_sigint, single_interrupt
from outreach_server.words import server_extra

if TYPE_CHECKING:
    from outreach import Campaign, Outreach, OutreachError, SimulatorConfig
    from outreach_server.config import ServerConfig


HELPER: Final = "read-body"
"""The hidden command, which reads a large body for a server."""

OF_RESOURCE: Final = "resources"
"""The module of the commands that follow from the definition of a resource."""


@attrs.frozen
class CommandModule:
    """The place of a command.

    Attributes:
        module: Its module in this package.
        purpose: The first sentence of its help, which lists show without the import. Groups of resources have no more.
        attribute: Its name in the module, where that is not the command's own.
    """

    module: str
    purpose: str = ""
    attribute: str = ""


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by name, in the order of the help.

    Args:
        places: The place of each.
    """

    def __init__(self, places: Mapping[str, CommandModule]) -> None:
        self._places = dict(places)
        self._loaded: dict[str, click.Command] = {}

    def purpose(self, name: str, limit: int) -> str:
        """Return a command's purpose, cut like click's own help."""
        return click.Command(name, help=self._places[name].purpose).get_short_help_str(limit)

    def __getitem__(self, name: str) -> click.Command:
        """Import and return a command."""
        if name not in self._loaded:
            place = self._places[name]
            module = _import(name, f"outreach_server.cli.{place.module}")
            if place.module == OF_RESOURCE:
                command = module.resource_group(name)
            else:
                command = getattr(module, place.attribute or name.replace("-", "_"))
            command.help = command.help or place.purpose
            self._loaded[name] = command
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        """Refuse an imported command.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"Name the place of {name} instead.")

    def __delitem__(self, name: str) -> None:
        """Remove a command."""
        del self._places[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(self._places)


def _import(name: str, module: str) -> ModuleType:
    try:
        with server_extra(f"outreach-server {name}"), _without_collections():
            return import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            raise
        raise click.ClickException(str(error)) from error


@contextmanager
def _without_collections() -> Iterator[None]:
    """Keep the garbage collector from looking at modules within the block, and later: they stay, and it takes time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def parser_command() -> Sequence[str] | None:
    """Return the command that starts this executable as a helper; None for a normal Python."""
    return (sys.executable, HELPER) if getattr(sys, "frozen", False) else None


@click.command(HELPER, hidden=True)
@click.argument("body")
@click.argument("reading")
def read_body(body: str, reading: str) -> None:
    """Read a large body for a server (internal)."""
    from outreach_server.bodies.parser_process import main

    main(body, reading)


T = TypeVar("T")

DEFAULT_DATABASE: Final = "sqlite:///outreach.db"
DATABASE_VARIABLE: Final = "OUTREACH_DATABASE_URL"
CONFIG_VARIABLE: Final = "OUTREACH_CONFIG"

EXIT_FAILED: Final = 1

_LISTING: Final = {
    "workspace": "outreach-server workspaces list",
    "campaign": "outreach-server campaigns list WORKSPACE_ID",
    "account": "outreach-server accounts list WORKSPACE_ID",
    "key": "outreach-server keys list WORKSPACE_ID",
    "user": "outreach-server users list",
    "dispatch": "outreach-server dispatches unknown WORKSPACE_ID",
}


@attrs.define
class State:
    """The common options of one invocation.

    Attributes:
        database_flag: URL of the database, if given on the command line.
        config_file: The configuration file, if given on the command line.
        as_json: Whether to print one JSON document.
    """

    database_flag: str | None = None
    config_file: Path | None = None
    as_json: bool = False

    @property
    def database(self) -> str:
        """URL of the database.

        Raises:
            ConfigError: The configuration is invalid.
        """
        return self.configuration()[0].database_url

    def configuration(self, flags: Mapping[str, Any] | None = None) -> tuple[ServerConfig, SimulatorConfig]:
        """Return the configuration, with the flags of a command.

        Raises:
            ConfigError: It is invalid.
        """
        from outreach_server import config

        return config.load(file=self.config_file, flags={**self._database(), **(flags or {})})

    def sources(self) -> Mapping[str, str]:
        """Return the source of each setting, by its key; those with their default are absent.

        Raises:
            ConfigError: The configuration file is invalid.
        """
        from outreach_server import config

        return config.sources(file=self.config_file, flags=self._database())

    def _database(self) -> dict[str, str]:
        return {"database_url": self.database_flag} if self.database_flag is not None else {}


def state() -> State:
    """Return the common options of this invocation."""
    return click.get_current_context().ensure_object(State)


def actor() -> str:
    """Return the current user, for the audit trail."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())  # a container's user may have no name
    return f"cli:{user}"


def with_engine(work: Callable[[Outreach], Awaitable[T]], *, create: bool = False) -> T:
    """Open the engine without dispatch, do the work, and return its result.

    Args:
        work: What to do.
        create: Whether to create a missing database. Only commands that start with an empty one do, so that a typo in
            the name is noticed.
    """
    from outreach import Outreach
    from outreach_server.cli import interruptions

    config, simulator = state().configuration()

    async def run() -> T:
        async with Outreach.open(config.database_url, create=create, config=config, simulator=simulator) as engine:
            return await work(engine)

    return interruptions.run(run)


def with_campaign(campaign_id: str, work: Callable[[Outreach, Campaign], Awaitable[T]]) -> T:
    """Open the engine without dispatch, do the work with a campaign of any workspace, and return its result."""

    async def find_and_work(engine: Outreach) -> T:
        return await work(engine, await engine.campaigns.get_anywhere(campaign_id))

    return with_engine(find_and_work)


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise the first error of a task group unwrapped."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


_COMMON: Final = {"database": "database_flag", "config": "config_file", "json": "as_json"}
"""The field of `State` that each common option sets."""


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None and value is not False:
        setattr(ctx.ensure_object(State), _COMMON[param.name or ""], value)


def _database_option() -> click.Option:
    return click.Option(
        ["--database"],
        metavar="URL",
        help="The database: sqlite:///relative.db, sqlite:////absolute.db or postgresql://host/database. "
        f"[env: {DATABASE_VARIABLE}; default: {DEFAULT_DATABASE}]",
        expose_value=False,
        callback=_remember,
    )


def _other_options() -> Sequence[click.Option]:
    """Return `--config` and `--json`."""
    return (
        click.Option(
            ["--config"],
            metavar="FILE",
            type=click.Path(path_type=Path),
            help=f"A TOML file with settings. [env: {CONFIG_VARIABLE}]",
            expose_value=False,
            callback=_remember,
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            help="Print exactly one JSON document on stdout.",
            expose_value=False,
            callback=_remember,
        ),
    )


class Command(click.Command):
    """A command that takes `--database`, `--config` and `--json`, and accepts names for ids."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend([_database_option(), *_other_options()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run it with ids in place of names."""
        from outreach_server.cli.values import Named, resolve

        if any(isinstance(value, Named) for given in ctx.params.values() for value in _each(given)):
            kinds = {
                param.name: _kinds(param, ctx.params[param.name])
                for param in self.params
                if param.name in ctx.params and hasattr(param.type, "kind")
            }
            ctx.params = with_engine(lambda engine: resolve(engine, kinds, ctx.params))
        return super().invoke(ctx)


def _each(given: object) -> tuple[object, ...]:
    return given if isinstance(given, tuple) else (given,)


def _kinds(param: click.Parameter, given: object) -> tuple[str, ...]:
    """Return the kinds of a parameter's values; `[WORKSPACE_ID] AGENT_ID` is one parameter of up to two values."""
    kind: str = param.type.kind  # type: ignore[attr-defined]
    return ("workspace", kind) if param.name == "ids" and len(_each(given)) > 1 else (kind,)


class OwnDatabaseCommand(click.Command):
    """A command with its own temporary database, which takes `--config` and `--json` alone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_other_options())

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, unless a database was given."""
        if ctx.ensure_object(State).database_flag is not None:
            raise click.UsageError(f"{self.name} creates a temporary database; leave --database out.", ctx)
        return super().invoke(ctx)


class Group(click.Group):
    """A group of commands; the common options may precede the command's name too."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend([_database_option(), *_other_options()])


class Root(Group):
    """The whole command line; turns every error into a message and an exit status.

    Args:
        commands: All commands, in the order in which people need them.
    """

    def __init__(self, *args: Any, commands: LazyCommands, **kwargs: Any) -> None:
        super().__init__(*args, commands=commands, **kwargs)
        self._later = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in their order."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, also the hidden helper."""
        if cmd_name == HELPER:
            return read_body
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the purpose of each command, without importing one."""
        limit = formatter.width - 6 - max(len(name) for name in self._later)
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._later.purpose(name, limit)) for name in self._later])

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; 0 is success, 1 a failure, 2 wrong usage, 130 an interruption."""
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:
                # A shell has closed it (`>&-`): output is dropped.
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the end
        try:
            with single_interrupt():
                result = super().main(*args, **{**extra, "standalone_mode": False})
        except click.UsageError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            _tell(error.format_message())
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            _say("Interrupted.")
            block_sigint()
            sys.exit(EXIT_INTERRUPTED)
        except OSError as error:
            _fail(_explain_os_error(error))
        except Exception as error:
            from outreach import OutreachError

            if not isinstance(error, OutreachError):
                raise
            _fail(explain(error))
        # `Context.exit` returns the status.
        sys.exit(result if isinstance(result, int) else 0)


def explain(error: OutreachError) -> str:
    """Return the message of an error for the command line."""
    from outreach import InvalidRequest, NotFound
    from outreach.errors import AccountMissing, DatabaseMissing, DatabaseOlder
    from outreach.models import RESOURCES

    match error:
        case NotFound():
            listing = f"outreach-server {error.kind}s list WORKSPACE_ID" if error.kind in RESOURCES else ""
            hint = listing or _LISTING.get(error.kind)
            return f"There is no {error.kind} {error.identifier!r}." + (f" List them with: {hint}" if hint else "")
        case InvalidRequest() if len(error.details) > 1:
            lines = [f"  {one.path}: {one.message}" if one.path else f"  {one.message}" for one in error.details]
            return "\n".join([f"{len(lines)} problems:", *lines])
        case AccountMissing() if error.connectable:
            command = f"outreach-server accounts connect {error.workspace_id} {error.provider}"
            return f"{error.message} Connect one: {command}"
        case DatabaseOlder():
            return (
                f"{error.message} To migrate now, stop every server that uses it, back it up with "
                "`outreach-server db backup FILE`, and run: outreach-server db migrate"
            )
        case DatabaseMissing():
            return (
                f"{error.message} Name another one with --database or {DATABASE_VARIABLE}, "
                "or create it with: outreach-server workspaces create NAME"
            )
        case _:
            return error.message


def _explain_os_error(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}." if error.filename else f"{reason}."


def _tell(message: str) -> None:
    """Write why a command failed to stderr: as a line of the log where programs read that."""
    # Loaded by the commands that write a log.
    log_lines = sys.modules.get("outreach_server.monitoring.log_lines")
    if log_lines is None or not log_lines.log_failure(message):
        _say(f"Error: {message}")


def _say(line: str) -> None:
    """Write a line to stderr: after those of the log, where this command writes one."""
    log_lines = sys.modules.get("outreach_server.monitoring.log_lines")
    if log_lines is None or not log_lines.write_line(line):
        click.echo(line, err=True)


def _fail(message: str) -> NoReturn:
    _tell(message)
    sys.exit(EXIT_FAILED)
