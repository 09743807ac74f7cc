"""The names of the actors of the audit trail, for people."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from outreach import NotFound, Outreach
from outreach_server.console import words

_KINDS: Final = {
    "api": "a program with an API key",
    "library": "an application",
    "engine": "the engine",
}


async def names_of(engine: Outreach, actors: Iterable[str]) -> Mapping[str, str]:
    """Return the words for some actors: a person's name for `user:ID`, the host's own id for `host:ID`.

    Args:
        engine: The engine.
        actors: The actors of a page, which are few.
    """
    each = list(dict.fromkeys(actors))
    # At once, so that they are read in one snapshot where others are read too.
    names = await asyncio.gather(*(_name(engine, actor) for actor in each))
    return {actor: words.visible(name) for actor, name in zip(each, names, strict=True)}


async def _name(engine: Outreach, actor: str) -> str:
    kind, _, identifier = actor.partition(":")
    match kind:
        case "user":
            try:
                return (await engine.users.get(identifier)).name
            except NotFound:
                return f"a person who was removed ({identifier})"
        case "host":
            return identifier
        case "cli":
            return f"{identifier}, by a command"
        case _:
            return _KINDS.get(actor, actor)
