"""A campaign of a restored database goes on without contacting anybody twice, or losing anybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from outreach import (
    CallStatus,
    Conflict,
    EngineConfig,
    FlowStep,
    NewAgent,
    NewCallCampaign,
    NewFlow,
    NewRecipient,
    Outreach,
    SmsSettingsUpdate,
)
from outreach.database import backup_database, restore_database
from outreach.models.campaign import Campaign
from outreach.models.recovery import ContactedMeanwhile
from outreach.models.reports import CallbackRecord
from outreach.models.states import MessageStatus
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.storage import Storage
from outreach.server_support import take_over
from outreach.storage.postgres import postgres_storage_from_url
from outreach.storage.sqlite import SqliteStorage
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, Step, accept, not_sent
from outreach.testing.virtual_time import clock_of_loop
from tests import postgres
from tests.engine.calling import event, hear
from tests.engine.rig import (
    Rig,
    contacts,
    dispatching,
    given_campaign,
    given_workspace,
    people,
    reaches,
    reported,
    sending,
)

pytestmark = pytest.mark.virtual_time

CONFIG = EngineConfig(
    change_poll_seconds=2.0,
    heartbeat_interval_seconds=5.0,
    reconcile_interval_seconds=5.0,
    reconcile_delay_seconds=5.0,
)
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
    async with sending(databases.open("original"), count, carrier=carrier, config=CONFIG) as (rig, campaign):
        for moment in range(moments):
            await carrier.wait_for_requests(1 + moment * lost_at // moments, timeout_seconds=24 * 3600)
            databases.copy("original", f"moment-{moment}")
        await carrier.wait_for_requests(lost_at, timeout_seconds=24 * 3600)
        databases.copy("original", "replaced")
        await rig.engine.campaigns.pause(campaign.workspace_id, campaign.id)
    before = phones_of(carrier.reached)
    assert len(before) == before.total() == lost_at
    # The lease of the lost server ends.
    await anyio.sleep(120)
    async with Outreach(databases.open("replaced"), clock=clock_of_loop(), config=CONFIG) as replaced:
        for moment in range(moments):
            with same_carrier(carrier) as after:
                async with dispatching(databases.open(f"moment-{moment}"), carrier=after, config=CONFIG) as rig:
                    await paused(rig, campaign)
                    named: Any = {"workspace_id": campaign.workspace_id, "campaign_id": campaign.id, "actor": "test"}
                    shown = await take_over(rig.engine, replaced, **named, dry_run=True)
                    new = await requested(replaced, campaign) - await requested(rig.engine, campaign)
                    assert len(new) <= shown.contacts <= len(new) + ON_THEIR_WAY
                    assert shown.contacts == shown.sent >= shown.unknown > 0
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


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("kind", "count", "moments"),
    [
        pytest.param("sqlite", 100, 8, marks=pytest.mark.soak("copies and sends eight times")),
        pytest.param("postgres", 100, 20, marks=pytest.mark.nightly("copies a database of PostgreSQL twenty times")),
        pytest.param("sqlite", 1000, 20, marks=pytest.mark.nightly("sends most of a thousand messages twenty times")),
        pytest.param("postgres", 1000, 20, marks=pytest.mark.nightly("sends most of a thousand messages twenty times")),
    ],
)
async def test_copies_of_many_moments(
    kind: str, count: int, moments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 twice, 0 lost, whenever the backup was made."""
    with databases_of(kind, tmp_path, monkeypatch) as databases:
        await check_moments(databases, count, moments)


@attrs.frozen(kw_only=True)
class Restored:
    """An engine on a restored copy, and one on the database that it replaced."""

    rig: Rig
    replaced: Outreach
    campaign: Campaign

    async def take_over(self) -> ContactedMeanwhile:
        """Take over what the replaced database knows; what was counted before is what is done."""
        named: Any = {"workspace_id": self.campaign.workspace_id, "campaign_id": self.campaign.id, "actor": "test"}
        counted = await take_over(self.rig.engine, self.replaced, **named, dry_run=True)
        assert await take_over(self.rig.engine, self.replaced, **named, dry_run=False) == counted
        return counted


@asynccontextmanager
async def reopened(
    databases: Databases, campaign: Campaign, *, replaced: str, **adapters: Any
) -> AsyncIterator[Restored]:
    """Open the copy in the place of a replaced database, once the lease of its lost server has ended."""
    await anyio.sleep(120)
    async with (
        Outreach(databases.open(replaced), clock=clock_of_loop(), config=CONFIG) as other,
        dispatching(databases.open("copy"), config=CONFIG, **adapters) as rig,
    ):
        yield Restored(rig=rig, replaced=other, campaign=await paused(rig, campaign))


@asynccontextmanager
async def restored(
    directory: Path,
    carrier: ScriptedCarrier,
    meanwhile: Callable[[Rig, Campaign], Awaitable[object]],
    *,
    flow: NewFlow | None = None,
) -> AsyncIterator[Restored]:
    """Begin a campaign of three contacts and copy its database; go on, and open the copy in its place."""
    databases = Databases(directory)
    async with dispatching(databases.open("original"), carrier=carrier, config=CONFIG) as rig:
        workspace = await given_workspace(rig.engine)
        source: dict[str, Any] = {"rate_per_minute": 1}
        if flow is not None:
            made = await rig.engine.flows.create(workspace.id, flow)
            source = {"body": None, "message_source": "flow", "flow_id": made.id}
        campaign = await given_campaign(rig.engine, workspace, contacts(3), **source)
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await carrier.wait_for_requests(1)
        await anyio.sleep(5)
        databases.copy("original", "copy")
        await meanwhile(rig, campaign)
    with same_carrier(carrier) as after:
        async with reopened(databases, campaign, replaced="original", carrier=after) as found:
            yield found


async def test_a_flow_goes_on_where_it_was(tmp_path: Path) -> None:
    """Nobody gets its first message again, and everybody its second."""
    flow = NewFlow(
        name="F",
        steps=[
            FlowStep(kind="send", body="One"),
            FlowStep(kind="wait", wait_minutes=60),
            FlowStep(kind="send", body="Two"),
        ],
    )
    carrier = ScriptedCarrier()

    async def meanwhile(_: Rig, __: Campaign) -> None:
        await carrier.wait_for_requests(3, timeout_seconds=600)
        await anyio.sleep(5)

    carrier.script(lambda _: accept())
    async with restored(tmp_path, carrier, meanwhile, flow=flow) as found:
        await found.take_over()
        await goes_on(found.rig, found.campaign)
        both = (*carrier.reached, *found.rig.carrier.reached)
        texts = Counter(request.body.partition("\n")[0] for request in both)
        assert texts == {"One": 3, "Two": 3}


async def test_who_opted_out_or_was_left_out_meanwhile_is_left_out(tmp_path: Path) -> None:
    """Although the restored database does not know it; a repetition changes nothing."""

    async def meanwhile(rig: Rig, campaign: Campaign) -> None:
        await rig.engine.campaigns.pause(campaign.workspace_id, campaign.id)
        await rig.engine.unsubscribes.add(campaign.workspace_id, contacts(3)[1].phone_number)
        await rig.engine.campaigns.skip_recipient(campaign.workspace_id, campaign.id, 2)

    async with restored(tmp_path, ScriptedCarrier(), meanwhile) as found:
        assert await found.take_over() == ContactedMeanwhile(left_out=2)
        assert await found.take_over() == ContactedMeanwhile()
        reasons = [one.reason for one in await people(found.rig.engine, found.campaign)]
        assert reasons == [None, "opted_out", "by_operator"]
        await goes_on(found.rig, found.campaign)
        assert found.rig.carrier.requests == []


async def test_who_opted_out_with_a_message_on_its_way_gets_no_other_one(tmp_path: Path) -> None:
    """The register has the opt-out as it was entered there, so that a failed receipt opens no attempt."""
    carrier, opted_out = ScriptedCarrier(), contacts(3)[1].phone_number
    retrying = SmsSettingsUpdate(retry_enabled=True)

    async def meanwhile(rig: Rig, campaign: Campaign) -> None:
        await rig.engine.sms_settings.update(campaign.workspace_id, retrying)
        await carrier.wait_for_requests(2, timeout_seconds=600)
        await anyio.sleep(5)
        await rig.engine.unsubscribes.add(campaign.workspace_id, opted_out, scope="sms", evidence="By phone.")

    async with restored(tmp_path, carrier, meanwhile) as found:
        engine, workspace_id = found.rig.engine, found.campaign.workspace_id
        await engine.sms_settings.update(workspace_id, retrying)
        await found.take_over()
        assert await engine.unsubscribes.get(workspace_id, opted_out) == await found.replaced.unsubscribes.get(
            workspace_id, opted_out
        )
        await engine.campaigns.resume(workspace_id, found.campaign.id)
        found.rig.carrier.report(reported(carrier.requests[1], MessageStatus.FAILED, reason="temporary"))
        await anyio.sleep(3600)
        assert opted_out not in phones_of(found.rig.carrier.requests)
        assert (await people(engine, found.campaign))[1].reason == "opted_out"


@pytest.mark.parametrize("how", ["start", "start before", "removed"])
async def test_an_opt_in_since_the_restore_is_not_undone(tmp_path: Path, how: str) -> None:
    """Whether the opt-out had been taken over before it or not."""
    phone = contacts(3)[1].phone_number

    async def meanwhile(rig: Rig, campaign: Campaign) -> None:
        await rig.engine.campaigns.pause(campaign.workspace_id, campaign.id)
        await rig.engine.unsubscribes.add(campaign.workspace_id, phone, source="keyword")

    async with restored(tmp_path, ScriptedCarrier(), meanwhile) as found:
        engine, workspace_id = found.rig.engine, found.campaign.workspace_id
        if how != "start before":
            assert (await found.take_over()).left_out == 1
        if how == "removed":
            await engine.unsubscribes.remove(workspace_id, phone)
        else:
            await engine.messages.receive(workspace_id, from_number=phone, to="+14155550199", body="START")
        assert await found.take_over() == ContactedMeanwhile()
        assert not await engine.unsubscribes.filter_unsubscribed(workspace_id, "sms", [phone])


async def test_who_got_something_from_both_databases_stays_as_here(tmp_path: Path) -> None:
    """A campaign that was resumed too early can be compared later; one that runs cannot."""
    carrier = ScriptedCarrier()

    async def meanwhile(_: Rig, __: Campaign) -> None:
        await carrier.wait_for_requests(2, timeout_seconds=600)
        await anyio.sleep(5)

    async with restored(tmp_path, carrier, meanwhile) as found:
        engine, campaign = found.rig.engine, found.campaign
        await engine.campaigns.resume(campaign.workspace_id, campaign.id)
        with pytest.raises(Conflict, match="Pause it first"):
            await found.take_over()
        await found.rig.carrier.wait_for_requests(1, timeout_seconds=600)
        await anyio.sleep(5)
        await engine.campaigns.pause(campaign.workspace_id, campaign.id)
        before = await people(engine, campaign)
        assert await found.take_over() == ContactedMeanwhile(kept=1)
        assert await people(engine, campaign) == before


async def test_nothing_is_compared_while_the_replaced_database_sends(tmp_path: Path) -> None:
    """It could send what has been compared before."""
    databases = Databases(tmp_path)
    async with dispatching(databases.open("original"), carrier=ScriptedCarrier(), config=CONFIG) as other:
        workspace = await given_workspace(other.engine)
        campaign = await given_campaign(other.engine, workspace)
        databases.copy("original", "copy")
        async with Outreach(databases.open("copy"), clock=clock_of_loop(), config=CONFIG) as engine:
            with pytest.raises(Conflict, match="sends from the replaced database"):
                await take_over(engine, other.engine, workspace.id, campaign.id, dry_run=True, actor="test")


async def test_contacts_that_were_added_after_the_backup_are_counted(tmp_path: Path) -> None:
    """They are in the replaced database alone."""

    async def meanwhile(rig: Rig, campaign: Campaign) -> None:
        await rig.engine.campaigns.pause(campaign.workspace_id, campaign.id)
        new = [NewRecipient(phone_number="+14155557777")]
        await rig.engine.campaigns.add_recipients(campaign.workspace_id, campaign.id, new)

    async with restored(tmp_path, ScriptedCarrier(), meanwhile) as found:
        assert await found.take_over() == ContactedMeanwhile(missing=1)


async def test_who_is_added_again_is_found_by_number(tmp_path: Path) -> None:
    """At another place, and beside a contact who is new: nobody is contacted twice, and nobody is lost."""
    carrier = ScriptedCarrier()
    reached, failed, new = "+14155557771", "+14155557772", "+14155557773"

    async def add(rig: Rig, campaign: Campaign, *phones: str) -> None:
        rows = [NewRecipient(phone_number=phone) for phone in phones]
        await rig.engine.campaigns.add_recipients(campaign.workspace_id, campaign.id, rows)

    async def meanwhile(rig: Rig, campaign: Campaign) -> None:
        carrier.script(lambda message: not_sent() if message.to == failed else accept())
        await add(rig, campaign, reached, failed, reached)
        await carrier.wait_for_requests(5, timeout_seconds=900)
        await anyio.sleep(5)

    async with restored(tmp_path, carrier, meanwhile) as found:
        await add(found.rig, found.campaign, new, reached, failed)
        counted = await found.take_over()
        assert (counted.contacts, counted.missing) == (4, 0)
        assert await found.take_over() == ContactedMeanwhile()
        await goes_on(found.rig, found.campaign)
        both = phones_of([*carrier.reached, *found.rig.carrier.reached])
        assert both == dict.fromkeys([*(one.phone_number for one in contacts(3)), reached, failed, new], 1)


async def test_who_was_erased_meanwhile_is_found_by_place_alone_where_the_place_is_older(tmp_path: Path) -> None:
    """An erased contact has no number: one that was added after the backup is not taken for another."""
    carrier = ScriptedCarrier()
    added, new = "+14155557771", "+14155557772"

    async def meanwhile(rig: Rig, campaign: Campaign) -> None:
        workspace_id = campaign.workspace_id
        await rig.engine.campaigns.add_recipients(workspace_id, campaign.id, [NewRecipient(phone_number=added)])
        await carrier.wait_for_requests(4, timeout_seconds=900)
        await anyio.sleep(5)
        for phone in (added, contacts(3)[2].phone_number):
            await rig.engine.erasure.purge(workspace_id, phone)

    async with restored(tmp_path, carrier, meanwhile) as found:
        rows = [NewRecipient(phone_number=new)]
        await found.rig.engine.campaigns.add_recipients(found.campaign.workspace_id, found.campaign.id, rows)
        assert (await found.take_over()).missing == 1
        await goes_on(found.rig, found.campaign)
        assert phones_of(found.rig.carrier.reached) == {new: 1}


async def test_who_was_erased_before_a_turn_is_not_contacted_after_the_restore(tmp_path: Path) -> None:
    """The copy has the number still; a repetition changes nothing."""

    async def meanwhile(rig: Rig, campaign: Campaign) -> None:
        await rig.engine.campaigns.pause(campaign.workspace_id, campaign.id)
        await rig.engine.erasure.purge(campaign.workspace_id, contacts(3)[1].phone_number)

    async with restored(tmp_path, ScriptedCarrier(), meanwhile) as found:
        assert await found.take_over() == ContactedMeanwhile(left_out=1)
        assert await found.take_over() == ContactedMeanwhile()
        assert [one.reason for one in await people(found.rig.engine, found.campaign)] == [None, "erased", None]


async def test_the_opt_out_of_who_was_erased_meanwhile_counts_for_the_number(tmp_path: Path) -> None:
    """There the register has a hash of it, with a salt that the restored database may not know."""
    phone = contacts(3)[1].phone_number

    async def meanwhile(rig: Rig, campaign: Campaign) -> None:
        await rig.engine.campaigns.pause(campaign.workspace_id, campaign.id)
        await rig.engine.unsubscribes.add(campaign.workspace_id, phone)
        await rig.engine.erasure.purge(campaign.workspace_id, phone)

    async with restored(tmp_path, ScriptedCarrier(), meanwhile) as found:
        await found.take_over()
        register, workspace_id = found.rig.engine.unsubscribes, found.campaign.workspace_id
        assert await register.filter_unsubscribed(workspace_id, "sms", [phone]) == {phone}
        assert [one.phone async for one in register.iter_all(workspace_id)] == [phone]


async def test_whose_call_was_made_at_another_place_is_not_called_again(tmp_path: Path) -> None:
    """The call is taken over with the contact's place here."""
    databases = Databases(tmp_path)
    voice = ScriptedVoice(then=accept().answered(talk_seconds=30.0), look_up="none")
    added, new = "+14155557771", "+14155557772"
    async with dispatching(databases.open("original"), voice=voice, config=CONFIG) as rig:
        workspace = await given_workspace(rig.engine)
        agent = await rig.engine.agents.create(workspace.id, NewAgent(name="Ada"))
        created = NewCallCampaign(name="C", agent_id=agent.id, stay_open=True)
        campaign = (await rig.engine.campaigns.create_call(workspace.id, created, contacts(1))).campaign
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await voice.wait_for_requests(1)
        await anyio.sleep(60)
        databases.copy("original", "copy")
        await rig.engine.campaigns.add_recipients(workspace.id, campaign.id, [NewRecipient(phone_number=added)])
        await voice.wait_for_requests(2, timeout_seconds=600)
        hear(voice, voice.requests[1], status=CallStatus.COMPLETED, outcome="positive")
        await anyio.sleep(60)
    after = ScriptedVoice(then=accept().answered(), look_up="none")
    async with reopened(databases, campaign, replaced="original", voice=after) as found:
        engine, again = found.rig.engine, [NewRecipient(phone_number=phone) for phone in (new, added)]
        await engine.campaigns.add_recipients(workspace.id, campaign.id, again)
        assert (await found.take_over()).contacts == 1
        await engine.campaigns.resume(workspace.id, campaign.id)
        await after.wait_for_requests(1, timeout_seconds=600)
        await anyio.sleep(600)
        places = {one.to: one.position async for one in engine.calls.iter_all(workspace.id, campaign_id=campaign.id)}
    assert [request.to for request in after.requests] == [new]
    assert places == {contacts(1)[0].phone_number: 0, new: 1, added: 2}


async def test_nobody_is_called_again(tmp_path: Path) -> None:
    """Neither whose call has ended, nor whose call is on its way."""
    databases = Databases(tmp_path)
    voice = ScriptedVoice(then=accept().answered(talk_seconds=30.0), look_up="none")
    async with dispatching(databases.open("original"), voice=voice, config=CONFIG) as rig:
        workspace = await given_workspace(rig.engine)
        agent = await rig.engine.agents.create(workspace.id, NewAgent(name="Ada"))
        new = NewCallCampaign(name="C", agent_id=agent.id, batch_concurrency=1)
        campaign = (await rig.engine.campaigns.create_call(workspace.id, new, contacts(4))).campaign
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await voice.wait_for_requests(1)
        await anyio.sleep(10)
        databases.copy("original", "copy")
        await voice.wait_for_requests(3, timeout_seconds=600)
        await anyio.sleep(10)
        databases.copy("original", "replaced")
        await rig.engine.campaigns.pause(workspace.id, campaign.id)
    after = ScriptedVoice(then=accept().answered(), look_up="none")
    async with reopened(databases, campaign, replaced="replaced", voice=after) as found:
        assert await found.take_over() == ContactedMeanwhile(contacts=2, sent=2, reported=1)
        # Its end is reported to the new server.
        hear(after, voice.requests[2], status=CallStatus.COMPLETED, outcome="positive")
        await goes_on(found.rig, campaign)
        calls = found.rig.engine.calls
        outcomes = [one.outcome async for one in calls.iter_all(workspace.id, campaign_id=campaign.id)]
    assert Counter(request.to for request in (*voice.reached, *after.reached)) == Counter(
        one.phone_number for one in contacts(4)
    )
    assert outcomes == ["positive"] * 4


@asynccontextmanager
async def calls_restored(
    directory: Path, voice: ScriptedVoice, after: ScriptedVoice, *, ending: Any = None
) -> AsyncIterator[Restored]:
    """Copy the database of a campaign during its first call; lose its server in the second, or as that has ended."""
    databases = Databases(directory)
    async with dispatching(databases.open("original"), voice=voice, config=CONFIG) as rig:
        workspace = await given_workspace(rig.engine)
        agent = await rig.engine.agents.create(workspace.id, NewAgent(name="Ada"))
        new = NewCallCampaign(name="C", agent_id=agent.id, batch_concurrency=1)
        campaign = (await rig.engine.campaigns.create_call(workspace.id, new, contacts(3))).campaign
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await voice.wait_for_requests(1)
        await anyio.sleep(10)
        databases.copy("original", "copy")
        await voice.wait_for_requests(2, timeout_seconds=600)
        if ending is not None:
            hear(voice, voice.requests[1], **ending)
        await anyio.sleep(5)
        databases.copy("original", "replaced")
        await rig.engine.campaigns.pause(workspace.id, campaign.id)
    async with reopened(databases, campaign, replaced="replaced", voice=after) as found:
        yield found


@pytest.mark.parametrize("ending", [None, {"status": CallStatus.COMPLETED}])
async def test_a_call_without_its_end_or_analysis_is_polled(tmp_path: Path, ending: Any) -> None:
    """Its event went to the server that was lost; meanwhile the call keeps no place of the campaign."""
    voice = ScriptedVoice(then=accept().answered(talk_seconds=30.0), look_up="none")
    after = ScriptedVoice(then=accept().answered(outcome="positive"), look_up="none")
    async with calls_restored(tmp_path, voice, after, ending=ending) as found:
        await found.take_over()
        after.progress = {
            one.dispatch_id: event(one, CallStatus.COMPLETED, outcome="positive") for one in voice.requests[1:]
        }
        with anyio.fail_after(1200):
            await goes_on(found.rig, found.campaign)
        await anyio.sleep(600)
        calls = [one async for one in found.rig.engine.calls.iter_all(found.campaign.workspace_id)]
    assert sorted(one.to for one in calls) == [one.phone_number for one in contacts(3)]
    assert [one.outcome for one in calls if one.to != voice.requests[0].to] == ["positive", "positive"]


async def test_a_report_that_came_before_its_request_was_taken_over_counts(tmp_path: Path) -> None:
    """The provider reports the end to the restored server, which does not know the call yet."""
    voice = ScriptedVoice(then=accept().answered(talk_seconds=30.0), look_up="none")
    async with calls_restored(tmp_path, voice, ScriptedVoice(look_up="none")) as found:
        workspace_id, request = found.campaign.workspace_id, voice.requests[1]
        [made] = [one async for one in found.replaced.calls.iter_all(workspace_id) if one.to == request.to]
        early = CallbackRecord(
            workspace_id=workspace_id,
            account_id="a",
            event_id="e",
            result="unmatched",
            body=b"",
            received_at=clock_of_loop().now(),
            report=event(
                request,
                CallStatus.COMPLETED,
                provider=made.provider,
                dispatch_id=None,
                provider_id=made.provider_call_id,
                outcome="positive",
            ),
        )
        await found.rig.storage.write(lambda tx: tx.callbacks.insert(early))
        await found.take_over()
        assert (await found.rig.engine.calls.get(workspace_id, made.id)).outcome == "positive"
        assert [str(one.status) for one in await people(found.rig.engine, found.campaign)][1] == "completed"
