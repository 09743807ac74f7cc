"""Names in place of ids."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import attrs
import click

from outreach import NewRecipient, NotFound, Outreach, Workspace
from outreach.models import RESOURCES
from outreach_server.cli.collecting import collect

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


def _by_name(service: Callable[[Outreach], Any]) -> Find:
    """Return how a resource is found that has a name."""

    async def find(engine: Outreach, workspace: Workspace, _: str) -> Sequence[Candidate]:
        return _candidates(workspace, await collect(service(engine).iter_all(workspace.id)))

    return find


async def _accounts(engine: Outreach, workspace: Workspace, _: str) -> Sequence[Candidate]:
    """Return a workspace's accounts, named by their providers."""
    found = engine.accounts.iter_all(workspace.id)
    return [Candidate(id=one.id, name=one.provider, workspace=workspace) async for one in found]


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
        found += _candidates(workspace, await collect(listed, _MAX_CAMPAIGNS))
        if any(one.name.casefold() == name.casefold() for one in found):
            break
    return found


def _candidates(workspace: Workspace, found: Sequence[Any]) -> list[Candidate]:
    return [Candidate(id=one.id, name=one.name, workspace=workspace) for one in found]


_FINDERS: Final[Mapping[str, Find]] = {
    **{noun: _by_name(attrgetter(f"{noun}s")) for noun in RESOURCES},
    "account": _accounts,
    "number": _numbers,
    "campaign": _campaigns,
}

KINDS: Final = frozenset({"workspace", *_FINDERS})
"""Kinds with names; calls, dispatches and keys have none."""
