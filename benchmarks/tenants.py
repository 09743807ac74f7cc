"""Databases to serve: with a workspace, a key, an agent, a register, campaigns."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import anyio
import attrs

from benchmarks.people import MESSAGE, SENDER, campaign_name, contact, is_draft, registered
from benchmarks.processes import run_side
from benchmarks.settings import Base, Settings
from outreach import NewAgent, NewRecipient, NewSmsCampaign, NewWorkspace, Outreach

_AT_ONCE: Final = 100
_REQUEST_LIMIT: Final = 1_000_000
"""Requests are counted, as by default; so many a minute are the most that can be asked for."""


@attrs.frozen(kw_only=True)
class Tenant:
    """A database of one side, with who may ask.

    Attributes:
        database: The file.
        api_key: A key of the workspace.
    """

    database: Path
    workspace_id: str
    agent_id: str
    api_key: str = attrs.field(repr=False)

    @property
    def url(self) -> str:
        """The database's URL."""
        return f"sqlite:///{self.database}"

    def copied(self, directory: Path) -> Tenant:
        """Return the same in a copy of the file."""
        target = directory / self.database.name
        shutil.copy(self.database, target)
        return attrs.evolve(self, database=target)


def tenant(
    directory: Path, *, campaigns: int = 0, register: bool = False, contacts: int = 0, base: Base | None = None
) -> Tenant:
    """Make a database of the engine.

    Args:
        directory: Where.
        campaigns: How many campaigns of one contact each are in it.
        register: Whether there is a register.
        contacts: How many contacts one more campaign has; none for 0.
        base: The earlier version that makes it; None for this one.
    """
    if base is not None:
        arguments = {"directory": str(directory), "campaigns": campaigns, "register": register, "contacts": contacts}
        return _read(run_side("tenant", arguments, base=base))
    database = directory / "outreach.db"
    return anyio.run(_fill, database, campaigns, register, contacts)


async def _fill(database: Path, campaigns: int, register: bool, contacts: int) -> Tenant:
    async with Outreach.open(f"sqlite:///{database}") as engine:
        workspace = await engine.workspaces.create(
            NewWorkspace(name="Acme", request_limit=_REQUEST_LIMIT, default_region="US")
        )
        key = await engine.api_keys.create(workspace.id, name="benchmark")
        agent = await engine.agents.create(workspace.id, NewAgent(name="Ada", from_number=SENDER))
        if register:
            numbers = registered()
            for first in range(0, len(numbers), 1000):
                await engine.unsubscribes.add(workspace.id, *numbers[first : first + 1000])

        async def create(number: int) -> None:
            new = _campaign(campaign_name(number), None if is_draft(number) else "twilio")
            await engine.campaigns.create_sms(workspace.id, new, [NewRecipient(**contact(number))])

        for first in range(0, campaigns, _AT_ONCE):
            await asyncio.gather(*(create(number) for number in range(first, min(first + _AT_ONCE, campaigns))))
        if contacts:
            people = (NewRecipient(**contact(number)) for number in range(contacts))
            await engine.campaigns.create_sms(workspace.id, _campaign("Everybody", "twilio"), people)
    return Tenant(database=database, workspace_id=workspace.id, agent_id=agent.id, api_key=key.api_key)


def _campaign(name: str, carrier: Any) -> NewSmsCampaign:
    return NewSmsCampaign(name=name, body=MESSAGE, carrier=carrier, from_number=SENDER)


def kept_tenant(settings: Settings, *, campaigns: int = 0, contacts: int = 0, base: Base | None = None) -> Tenant:
    """Return a copy of a large database, which is made once for each schema, or base, and kept for other runs."""
    name = f"{campaigns}-campaigns-{contacts}-contacts-{base.root.name if base else _schema(settings)}"
    kept = settings.kept / name
    facts = kept / "tenant.json"
    if not facts.exists():
        settings.say(f"making a database of {campaigns} campaigns and {contacts} contacts, once")
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        made = tenant(kept, campaigns=campaigns, contacts=contacts, base=base)
        # Written last: what was interrupted is made anew.
        facts.write_text(json.dumps(attrs.asdict(made), default=str))
    return _read(json.loads(facts.read_text())).copied(settings.place(f"kept-{name}"))


def _read(told: Mapping[str, Any]) -> Tenant:
    return Tenant(**{**told, "database": Path(told["database"])})


def ordinary_tenant(directory: Path, api_key: str, *, campaigns: int = 0, register: bool = False) -> Tenant:
    """Make a database of the ordinary app, with the same key."""
    database = directory / "ordinary.db"
    arguments = {"database": str(database), "api_key": api_key, "campaigns": campaigns, "registered": register}
    return Tenant(database=database, api_key=api_key, **run_side("ordinary_rows", arguments))


def _schema(settings: Settings) -> str:
    """Return what tells one schema from another."""
    database = settings.place("schema") / "outreach.db"

    async def make() -> None:
        async with Outreach.open(f"sqlite:///{database}"):
            pass

    anyio.run(make)
    with closing(sqlite3.connect(database)) as connection:
        texts: Iterator[tuple[str]] = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY name"
        )
        return hashlib.sha256("\n".join(text for (text,) in texts).encode()).hexdigest()[:12]
