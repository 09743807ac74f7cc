"""A campaign of a restored database goes on without contacting anybody twice, or losing anybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from outreach import Conflict, EngineConfig, FlowStep, NewFlow, NewRecipient, Outreach
from outreach.database import backup_database, restore_database
from outreach.models.campaign import Campaign
from outreach.models.recovery import ContactedMeanwhile
from outreach.models.states import RecipientStatus
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.storage import Storage
from outreach.server_support import take_over
from outreach.storage.postgres import postgres_storage_from_url
from outreach.storage.sqlite import SqliteStorage
from outreach.testing.scripted import ScriptedCarrier, Step, accept, not_sent
from outreach.testing.virtual_time import clock_of_loop
from tests import postgres
from tests.engine.rig import Rig, contacts, dispatching, given_campaign, given_workspace, people, reaches

pytestmark = pytest.mark.virtual_time

CONFIG = EngineConfig(reconcile_interval_seconds=5.0, reconcile_delay_seconds=5.0)
SLOW = 2.0
"""Seconds until the carrier answers: so many messages are on their way whenever the database is copied."""


ON_THEIR_WAY = 60
"""At most so many of ten a second have no outcome, here or there."""


class Databases:
    """Databases of one kind, which are copied while they are in use."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def open(self, name: str) -> Storage:
        """Return the storage of a database, not yet entered."""
        return SqliteStorage(self.directory / f"{name}.db", clock=clock_of_loop())

    def copy(self, name: str, to: str) -> None:
        """Copy one as it is at this moment."""
        backup_database(f"sqlite:///{self.directory / name}.db", self.directory / f"{to}.backup")
        restore_database(f"sqlite:///{self.directory / to}.db", self.directory / f"{to}.backup")


class PostgresDatabases(Databases):
    """The same for PostgreSQL."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        super().__init__(directory)
        self._stack = stack
        self._names: dict[str, str] = {}

    def _name(self, name: str, template: str) -> str:
        if name not in self._names:
            self._names[name] = self._stack.enter_context(postgres.server().database(template=template))
        return self._names[name]

    def open(self, name: str) -> Storage:
        """Return the storage of a database, not yet entered."""
        url = postgres.server().url(self._name(name, postgres.template()))
        return postgres_storage_from_url(url, clock=clock_of_loop())

    def copy(self, name: str, to: str) -> None:
        """Copy one as it is at this moment."""
        file = str(postgres.server().directory / "copied")
        postgres.server().run("pg_dump", "--format=custom", f"--file={file}", self._names[name])
        postgres.server().run("pg_restore", f"--dbname={self._name(to, 'template0')}", file)


@contextmanager
def databases_of(kind: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Databases]:
    """Return databases that are gone after the block."""
    if kind == "sqlite":
        yield Databases(directory)
        return
    postgres.tell_time_by(clock_of_loop(), monkeypatch)
    with ExitStack() as stack:
        yield PostgresDatabases(directory, stack)


def phones_of(requests: list[OutboundMessage]) -> Counter[str]:
    """Return how often each number was reached."""
    return Counter(request.to for request in requests)


@contextmanager
def same_carrier(before: ScriptedCarrier) -> Iterator[ScriptedCarrier]:
    """Return the carrier as a new server finds it: it knows what it has taken."""
    carrier = ScriptedCarrier(lambda _: accept(), look_up="authoritative")
    carrier._known = dict(before._known)
    yield carrier


async def requested(engine: Outreach, campaign: Campaign) -> set[int]:
    """Return the positions of contacts with a request."""
    return {one.position for one in await people(engine, campaign) if one.attempts or one.dispatched}


async def paused(rig: Rig, campaign: Campaign) -> Campaign:
    """Wait until the engine has noticed that its database is a copy."""
    found = await reaches(rig.engine, campaign, "paused")
    assert found.pause_reason in {"restored", "moved"}
    return found


async def goes_on(rig: Rig, campaign: Campaign) -> Campaign:
    """Resume a campaign, and wait for its end."""
    resumed = await rig.engine.campaigns.resume(campaign.workspace_id, campaign.id)

    with anyio.fail_after(24 * 3600):
        while not resumed.is_terminal:
            await anyio.sleep(5)
            resumed = await rig.engine.campaigns.get(resumed.workspace_id, resumed.id)
    return await reaches(rig.engine, campaign, "completed")


async def check_moments(databases: Databases, count: int, moments: int) -> None:
    """Send a campaign until its server is lost, and restore copies of so many moments before that.

    Each goes on by itself after the comparison: all contacts are reached once.
    """
    lost_at = count * 17 // 20
    carrier = ScriptedCarrier(lambda _: accept(seconds=SLOW), look_up="authoritative")

    def script(_: OutboundMessage) -> Step:
        return accept(seconds=SLOW) if len(carrier.requests) < lost_at else not_sent()

    carrier.script(script)
    async with dispatching(databases.open("original"), carrier=carrier, config=CONFIG) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_campaign(rig.engine, workspace, count)
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        for moment in range(moments):
            await carrier.wait_for_requests(1 + moment * lost_at // moments, timeout_seconds=24 * 3600)
            databases.copy("original", f"moment-{moment}")
        await carrier.wait_for_requests(lost_at, timeout_seconds=24 * 3600)
        databases.copy("original", "replaced")
        await rig.engine.campaigns.pause(workspace.id, campaign.id)
    before = phones_of(carrier.reached)
    assert len(before) == before.total() == lost_at
    async with Outreach(databases.open("replaced"), clock=clock_of_loop(), config=CONFIG) as replaced:
        for moment in range(moments):
            with same_carrier(carrier) as after:
                async with dispatching(databases.open(f"moment-{moment}"), carrier=after, config=CONFIG) as rig:
                    await paused(rig, campaign)
                    named: Any = {"workspace_id": workspace.id, "campaign_id": campaign.id, "actor": "test"}
                    shown = await take_over(rig.engine, replaced, **named, dry_run=True)
                    new = await requested(replaced, campaign) - await requested(rig.engine, campaign)
                    assert len(new) <= shown.contacts <= len(new) + ON_THEIR_WAY
                    assert shown.contacts == shown.sent > shown.unknown > 0
                    done = await take_over(rig.engine, replaced, **named, dry_run=False)
                    # The engine looks up meanwhile what was on its way when the backup was made.
                    assert shown.contacts - ON_THEIR_WAY <= done.contacts <= shown.contacts
                    again = await take_over(rig.engine, replaced, **named, dry_run=True)
                    assert again == ContactedMeanwhile()
                    await goes_on(rig, campaign)
            reached = before + phones_of(after.reached)
            assert (len(reached), reached.total()) == (count, count), f"moment {moment}"


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak("copies databases"))])
async def test_nobody_is_contacted_twice_and_nobody_lost(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those on their way when the backup was made, or when the server was lost."""
    with databases_of(kind, tmp_path, monkeypatch) as databases:
        await check_moments(databases, 60, 2)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("sqlite", marks=pytest.mark.soak("sends most of a thousand messages twenty times")),
        pytest.param("postgres", marks=pytest.mark.nightly("sends most of a thousand messages twenty times")),
    ],
)
async def test_a_thousand_contacts_and_copies_of_twenty_moments(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 twice, 0 lost, whenever the backup was made."""
    with databases_of(kind, tmp_path, monkeypatch) as databases:
        await check_moments(databases, 1000, 20)
