"""API keys, by which programs act for a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from outreach.models import API_SCOPES, DEFAULT_SCOPES
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.set_up.inputs import Input
from outreach_server.console.pages.set_up.nouns import PAGE_SIZE, Cell, Listed, Noun, On, Result, Sent, SetUpAction, at
from outreach_server.console.people import names_of

_SCOPES: Final = {
    "send": "Send messages, place calls and make campaigns",
    "manage": "Change everything else, and start campaigns",
    "read": "Read",
}
_ONCE: Final = "Copy the key now: it is shown only this once."


class KeysNoun(Noun):
    """The API keys."""

    name, title, one, right = "keys", "API keys", "API key", Right.OWN
    columns = ("Name", "Begins with", "May", "Made by", "Last used", "State")
    empty = "A program that sends through this workspace needs a key. There is none yet."

    def __init__(self) -> None:
        self.on_list = (
            SetUpAction(
                name="create",
                label="Make a key",
                command="keys create",
                fields=_new_fields,
                do=_create,
                proof=True,
                primary=True,
            ),
        )
        self.on_one = (
            SetUpAction(
                name="revoke",
                label="Revoke this key",
                command="keys revoke",
                do=_revoke,
                done="It is revoked: programs that use it are refused within a second.",
                proof=True,
                typed=True,
                effect="Programs that use it are refused within a second.",
                possible=lambda on: on.one.revoked_at is None,
            ),
        )

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the keys."""
        page = await visit.engine.api_keys.list(visit.place.id, after=after, limit=PAGE_SIZE)
        return Listed(items=page.items, next=page.next)

    async def get(self, visit: Visit, identifier: str) -> Any:
        """Return a key."""
        return await visit.engine.api_keys.get(visit.place.id, identifier)

    def called(self, one: Any) -> str:
        """Return its name, or how it begins."""
        return one.name or f"{one.hint}…"

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return what is known of each."""
        names = await names_of(visit.engine, [one.made_by for one in items if one.made_by])
        return [_cells(visit, one, names) for one in items]

    async def facts(self, visit: Visit, one: Any) -> Sequence[tuple[str, Cell]]:
        """Return the same of one."""
        [cells] = await self.cells(visit, [one])
        found = zip(self.columns[1:], cells, strict=True)
        return [*found, ("Made", at(visit, one.created_at)), ("Revoked", at(visit, one.revoked_at))]


def _cells(visit: Visit, one: Any, names: Mapping[str, str]) -> Sequence[Cell]:
    scopes = ", ".join(one.scopes)
    state = "In use" if one.revoked_at is None else "Revoked"
    made_by = names.get(one.made_by or "", "")
    return (f"{one.hint}…", scopes, made_by, at(visit, one.last_used_at) or "Never", state)


async def _new_fields(_: On) -> Sequence[Input]:
    scopes = [(scope, _SCOPES[scope]) for scope in API_SCOPES]
    return [
        Input(name="name", label="Name", hint="What it is for."),
        Input(name="scopes", label="What it may do", kind="ticks", choices=scopes, value="\n".join(DEFAULT_SCOPES)),
    ]


async def _create(sent: Sent) -> Result:
    made = await sent.engine.api_keys.create(
        sent.place,
        name=sent.values["name"],
        scopes=sent.values["scopes"],
        idempotency_key=sent.key,
        actor=sent.actor,
    )
    return Result(text=_ONCE, secret=made.api_key)


async def _revoke(sent: Sent) -> Result:
    await sent.engine.api_keys.revoke(sent.place, sent.one.id, actor=sent.actor)
    return Result()
