"""Types of command-line values, checked before anything is opened, and names in place of ids."""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import IO, Any, Final, TypeVar

import attrs
import click

from outreach import NewRecipient, NewSmsCampaign, NotFound, Outreach, Workspace
from outreach.errors import InvalidRequest
from outreach.models import RESOURCES, bounds_of
from outreach.server_support import (
    dates_like,
    did_you_mean,
    is_zone,
    moment_like,
    nearest,
    number_like,
    region_of_country,
    regions_like,
    time_like,
    zones_like,
)
from outreach_server.cli.collecting import collect
from outreach_server.hours import read_opening

_MAX_CAMPAIGNS: Final = 2000
_SHOWN: Final = 5


class Named(str):
    """A value for an id that is not one: a name to be looked up."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Candidate:
    """An object with a name."""

    id: str
    name: str
    workspace: Workspace


Find = Callable[[Outreach, Workspace, str], Awaitable[Sequence[Candidate]]]


async def resolve(engine: Outreach, kinds: Mapping[str, Sequence[str]], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a command with ids in place of names.

    Args:
        engine: Looks them up.
        kinds: For each parameter with ids, the kinds of its values; the last one applies to all further values.
        params: The given values.

    Raises:
        NotFound: Nothing has such a name.
        click.ClickException: The name is ambiguous.
    """
    workspaces = await collect(engine.workspaces.iter_all())
    found = dict(params)
    # Workspaces first: other names are searched in the workspace that the command names.
    within: Sequence[Workspace] = workspaces
    for name in sorted(kinds, key=lambda name: "workspace" not in kinds[name]):
        given = found[name]
        several = isinstance(given, tuple)
        values = []
        for index, value in enumerate(given if several else (given,)):
            kind = kinds[name][min(index, len(kinds[name]) - 1)]
            if isinstance(value, Named):
                value = await _find(engine, kind, value, workspaces if kind == "workspace" else within)
            if kind == "workspace" and value is not None:
                within = [one for one in workspaces if one.id == value]
            values.append(value)
        found[name] = tuple(values) if several else values[0]
    return found


async def _find(engine: Outreach, kind: str, name: str, workspaces: Sequence[Workspace]) -> str:
    if kind == "workspace":
        candidates = [Candidate(id=one.id, name=one.name, workspace=one) for one in workspaces]
    else:
        candidates = [one for workspace in workspaces for one in await _FINDERS[kind](engine, workspace, name)]
    exact = [one for one in candidates if one.name == name]
    # Case matters only if it tells two names apart.
    matches = exact or [one for one in candidates if one.name.casefold() == name.casefold()]
    if not matches:
        raise NotFound(kind, str(name))
    if len(matches) > 1:
        listed = "\n".join(f"  {one.id}  in workspace {one.workspace.name!r}" for one in matches[:_SHOWN])
        more = f"\n  … and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
        raise click.ClickException(f"There are {len(matches)} {kind}s {name!r}. Give the id of one:\n{listed}{more}")
    return matches[0].id


def _named_by(service: str, attribute: str = "name") -> Find:
    """Return what finds the objects of one of the engine's services, whose names are an attribute of theirs."""

    async def find(engine: Outreach, workspace: Workspace, _: str) -> Sequence[Candidate]:
        found = getattr(engine, service).iter_all(workspace.id)
        return [Candidate(id=one.id, name=getattr(one, attribute), workspace=workspace) async for one in found]

    return find


async def _numbers(engine: Outreach, workspace: Workspace, written: str) -> Sequence[Candidate]:
    """Return a workspace's number in any notation."""
    from outreach.server_support import prepare_recipient

    phone = prepare_recipient(NewRecipient(phone_number=written), workspace.default_region).phone
    found = engine.numbers.iter_all(workspace.id)
    return [Candidate(id=one.id, name=written, workspace=workspace) async for one in found if one.phone == phone]


async def _campaigns(engine: Outreach, workspace: Workspace, name: str) -> Sequence[Candidate]:
    found: list[Candidate] = []
    # An archived one counts where no other has the name.
    for archived in (False, True):
        listed = engine.campaigns.iter_all(workspace.id, search=name, archived=archived)
        found += [
            Candidate(id=one.id, name=one.name, workspace=workspace) for one in await collect(listed, _MAX_CAMPAIGNS)
        ]
        if any(one.name.casefold() == name.casefold() for one in found):
            break
    return found


_FINDERS: Final[Mapping[str, Find]] = {
    **{noun: _named_by(f"{noun}s") for noun in RESOURCES},
    "account": _named_by("accounts", "provider"),
    "number": _numbers,
    "webhook": _named_by("webhooks", "url"),
    "campaign": _campaigns,
}

KINDS: Final = frozenset({"workspace", *_FINDERS})
"""Kinds with names; calls, dispatches and keys have none."""


F = TypeVar("F", bound=Callable[..., Any])


def name_of(file: IO[Any]) -> str:
    """Return a file's name for messages."""
    name = getattr(file, "name", None)
    return name if isinstance(name, str) and name != "<stdin>" else "standard input"


def options(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for several of click's, which add options in the order of the help."""

    def add(command: F) -> F:
        for one in reversed(decorators):
            command = one(command)
        return command

    return add


class Identifier(click.ParamType[str]):
    """The id of an object, a UUID; or its name, if it has one."""

    name = "id"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id in lower case, or a name to be looked up."""
        try:
            return str(uuid.UUID(value))
        except ValueError:
            if self.kind in KINDS and value.strip():
                return Named(value.strip())
            self.fail(
                f"There is no {self.kind} {value!r}: an id is a UUID such as 019a9f6e-7c3b-7d1e-8f00-3a5b6c7d8e9f.",
                param,
                ctx,
            )


T = TypeVar("T")


class Reader(click.ParamType[T]):
    """A text that a function reads.

    Args:
        name: What the help calls it.
        read: Returns the value of a text; raises `ValueError` with what is wrong and what would be right.
    """

    def __init__(self, name: str, read: Callable[[str], T]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Return the value."""
        try:
            # click converts a default that is a value already too.
            return self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _moment(text: str) -> datetime:
    """Return a time by RFC 3339; one without an offset is read in a zone later (`campaigns.times.read_schedule`)."""
    wrong = _wrong_part(text)
    try:
        if wrong is not None:
            raise ValueError(wrong)
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        why = f"{f': {wrong}' if wrong else ''}{did_you_mean(_meant(text)) or '.'}"
        raise ValueError(
            f"{text!r} is not a time{why} Write it like 2026-11-20T09:00, or with an offset, like "
            "2026-11-20T09:00+01:00."
        ) from None


def _meant(text: str) -> Sequence[str]:
    """Return the times that may be meant; one of no day is shown with the day of the example."""
    clock = time_like(text)
    return moment_like(text) or ([] if clock is None else [f"{clock} of a day, such as 2026-11-20T{clock}"])


def _wrong_part(text: str) -> str | None:
    """Return which part of a time is wrong; None if none is known to be."""
    if re.match(r"\d{4}-\d{2}-\d{2}", text) is None:
        return "it begins with no date"
    day, rest = text[:10], text[10:].lstrip("Tt ")
    try:
        date.fromisoformat(day)
    except ValueError:
        return f"there is no day {day}"
    clock = re.match(r"(\d{2}):(\d{2})(?![ap]m)", rest)
    if clock is None:
        return f"{rest!r} is not a time of day" if rest else "the time of day is missing"
    if int(clock[1]) > 23 or int(clock[2]) > 59:
        return f"{clock[0]!r} is not a time of day, from 00:00 to 23:59"
    return None


def _zone(text: str) -> str:
    """Return the name of an IANA time zone."""
    name = text.strip()
    if not is_zone(name):
        hint = did_you_mean(zones_like(name)) or "; write one of the IANA database: Europe/Berlin."
        raise ValueError(f"{text!r} is not a time zone{hint}")
    return name


def _date(text: str) -> date:
    """Return a date by ISO 8601."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        hint = did_you_mean(dates_like(text)) or "; write it like 2026-12-24."
        raise ValueError(f"{text!r} is not a date{hint}") from None


class Text(click.ParamType[str]):
    """A text of bounded length, counted in code points."""

    name = "text"

    def __init__(self, minimum: int, maximum: int) -> None:
        self.minimum, self.maximum = minimum, maximum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        text = str(value)
        if not self.minimum <= len(text) <= self.maximum:
            self.fail(f"has {len(text)} characters; it must have {self.minimum} to {self.maximum}.", param, ctx)
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            self.fail("is not valid text in this terminal's encoding.", param, ctx)
        return text


class OneOf(click.Choice[Any]):
    """One of several words; a wrong one is answered with the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return what is wrong, what is allowed, and what was probably meant."""
        # The message of the library ends with a full stop.
        said = super().get_invalid_choice_message(value, ctx).removesuffix(".")
        words = [str(choice) for choice in self.choices]
        return f"{said}{did_you_mean(nearest(value, words)) or '.'}"


class ProviderName(OneOf):
    """A provider that accounts can be at; which there are is looked up when it is needed.

    Args:
        kind: Whether only carriers, or only voice providers; None for either.
        also: Further names that are taken.
    """

    def __init__(self, kind: str | None = None, *, also: Sequence[str] = ()) -> None:
        self._kind, self._also = kind, tuple(also)
        self.case_sensitive = True

    @property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The names."""
        # Imported here, because most commands name no provider. The list of providers needs no database.
        from outreach import EngineConfig, Outreach

        found = Outreach.open("memory://", config=EngineConfig()).accounts.providers()
        return (*self._also, *(one.name for one in found if self._kind in {None, one.kind}))


def _region(text: str) -> str:
    """Return the ISO 3166 code of a region of local numbers: of that, its calling code, or the name of its country."""
    region = region_of_country(text)
    if region is None:
        hint = did_you_mean(regions_like(text)) or "; write it like US or DE."
        raise ValueError(f"{text!r} is not a region of phone numbers{hint}")
    return region


def _metadata(text: str) -> Mapping[str, Any]:
    """Return a JSON object of the application."""
    # Only the few commands that make something take time to import this.
    from outreach.http import parse_json, read_metadata

    try:
        return read_metadata(parse_json(text.encode(errors="surrogateescape")))
    except InvalidRequest as error:
        raise ValueError(error.message.removeprefix("metadata: ").removeprefix("The body ")) from None


WORKSPACE: Final = Identifier("workspace")
ACCOUNT: Final = Identifier("account")
CAMPAIGN: Final = Identifier("campaign")
AGENT: Final = Identifier("agent")
CALL: Final = Identifier("call")
DISPATCH: Final = Identifier("dispatch")
FLOW: Final = Identifier("flow")
KEY: Final = Identifier("key")
TRUNK: Final = Identifier("trunk")
MOMENT: Final = Reader("time", _moment)
ZONE: Final = Reader("zone", _zone)
DATE: Final = Reader("date", _date)
REGION: Final = Reader("region", _region)
METADATA: Final = Reader("json", _metadata)
OPENING_HOURS: Final = Reader("hours", read_opening)


class Whole(click.IntRange):
    """An integer with bounds.

    Args:
        least: The lower bound.
        most: The upper bound.
        unit: What it counts, such as `minutes`; empty for anything else.
    """

    def __init__(self, least: int, most: int, *, unit: str) -> None:
        super().__init__(least, most)
        self._unit = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the integer."""
        meant = number_like(value, self._unit)
        if meant is not None and str(value).strip().lstrip("0") not in {meant, ""}:
            what = f" of {self._unit}" if self._unit else ""
            self.fail(f"{value!r} is not a whole number{what}{did_you_mean(meant)}", param, ctx)
        return super().convert(value, param, ctx)


def integer_of(model: type[Any], field: str) -> Whole:
    """Return the type of an option for an integer with bounds on a model."""
    last = field.rpartition("_")[2]
    bounds = bounds_of(model, field)
    return Whole(*bounds, unit=last if last in {"seconds", "minutes", "days"} else "")


def text_of(model: type[Any], field: str) -> Text:
    """Return the type of an option for a text with bounds on a model."""
    return Text(*bounds_of(model, field))


NAME: Final = Text(1, 255)
CARRIER: Final = ProviderName("carrier")
VOICE: Final = ProviderName("voice", also=("simulator",))
PROVIDER: Final = ProviderName()
SCOPE: Final = OneOf(["all", "sms", "call"])
PORT: Final = click.IntRange(0, 65535)

BY_EXTERNAL_ID: Final = click.option(
    "--external-id",
    type=text_of(NewSmsCampaign, "external_id"),
    metavar="ID",
    help="Only those that your application knows by this id.",
)
BY_METADATA: Final = click.option(
    "--metadata",
    metavar="KEY=VALUE",
    help="Only those with this pair in their metadata, such as team=7.",
)
"""Filters of lists."""

LIMIT: Final = click.option(
    "--limit", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="The most to list."
)
