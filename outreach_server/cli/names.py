"""Names in place of identifiers: a command takes the name of what there is one of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import click

from outreach import NewRecipient, NotFound, Outreach, Workspace
from outreach.http import prepare_recipient

_PAGE: Final = 100
_MAX_PAGES: Final = 20
_SHOWN: Final = 5


class Named(str):
    """What was given where an identifier is wanted and is none: a name that has to be looked up."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Candidate:
    """Something that has a name."""

    id: str
    name: str
    workspace: Workspace


Find = Callable[[Outreach, Workspace, str], Awaitable[Sequence[Candidate]]]


async def resolve(engine: Outreach, kinds: Mapping[str, Sequence[str]], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a command with identifiers in place of names.

    Args:
        engine: To look them up.
        kinds: For each parameter that takes identifiers, the kinds of its values; the last goes for all further.
        params: What was given.

    Raises:
        NotFound: Nothing has such a name.
        click.ClickException: More than one has it.
    """
    workspaces = await engine.workspaces.list()
    found = dict(params)
    # Workspaces first: what else is named is looked for in the one that the command names.
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
    # Whoever writes a name by hand may not remember its capitals; where these tell two apart, they count.
    matches = exact or [one for one in candidates if one.name.casefold() == name.casefold()]
    if not matches:
        raise NotFound(kind, str(name))
    if len(matches) > 1:
        listed = "\n".join(f"  {one.id}  in workspace {one.workspace.name!r}" for one in matches[:_SHOWN])
        more = f"\n  … and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
        raise click.ClickException(f"There are {len(matches)} {kind}s {name!r}. Name one by its id:\n{listed}{more}")
    return matches[0].id


async def _agents(engine: Outreach, workspace: Workspace, _: str) -> Sequence[Candidate]:
    return _candidates(workspace, await engine.agents.list(workspace.id))


async def _trunks(engine: Outreach, workspace: Workspace, _: str) -> Sequence[Candidate]:
    return _candidates(workspace, await engine.trunks.list(workspace.id))


async def _flows(engine: Outreach, workspace: Workspace, _: str) -> Sequence[Candidate]:
    return _candidates(workspace, await engine.flows.list(workspace.id))


async def _accounts(engine: Outreach, workspace: Workspace, _: str) -> Sequence[Candidate]:
    """Return a workspace's accounts: each is known by its provider."""
    found = await engine.accounts.list(workspace.id)
    return [Candidate(id=one.id, name=one.provider, workspace=workspace) for one in found]


async def _numbers(engine: Outreach, workspace: Workspace, written: str) -> Sequence[Candidate]:
    """Return a workspace's number that is written so, in whatever notation."""
    phone = prepare_recipient(NewRecipient(phone_number=written), workspace.default_region).phone
    found = await engine.numbers.list(workspace.id)
    return [Candidate(id=one.id, name=written, workspace=workspace) for one in found if one.phone == phone]


async def _campaigns(engine: Outreach, workspace: Workspace, name: str) -> Sequence[Candidate]:
    found: list[Candidate] = []
    for page in range(1, _MAX_PAGES + 1):
        got = await engine.campaigns.list(workspace.id, search=name, page=page, page_size=_PAGE)
        found += _candidates(workspace, got.items)
        if len(got.items) < _PAGE:
            break
    return found


def _candidates(workspace: Workspace, found: Sequence[Any]) -> list[Candidate]:
    return [Candidate(id=one.id, name=one.name, workspace=workspace) for one in found]


_FINDERS: Final[Mapping[str, Find]] = {
    "agent": _agents,
    "trunk": _trunks,
    "flow": _flows,
    "account": _accounts,
    "number": _numbers,
    "campaign": _campaigns,
}

KINDS: Final = frozenset({"workspace", *_FINDERS})
"""What has a name: of calls, dispatches and keys there is none that could be typed."""
