"""One person under several numbers: spellings of one line, and what earlier versions read a number as."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from outreach import (
    EngineConfig,
    NewAgent,
    NewCall,
    NewMessage,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    NotFound,
    Outreach,
    Workspace,
    WorkspaceUpdate,
)
from outreach.errors import CallInProgress, RecipientUnsubscribed
from outreach.ledger.sending.intents import frequency_capped_until
from outreach.models.campaign import Campaign, PreparedRecipient
from outreach.models.states import RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.postgres import postgres_storage_from_url
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_dispatch, make_unsubscribe, make_workspace, new_id
from outreach.testing.clock import ManualClock
from tests import postgres
from tests.rules.test_spellings import PAIRS
from tests.rules.test_stored_numbers import FORMER_READINGS

pytestmark = pytest.mark.anyio

OURS = "+14155550199"
UNCLEAR = "Can you stop by tomorrow?"
BOTH_WAYS = [*PAIRS, *[(second, first) for first, second in PAIRS]][::3]
CHUNK = 50


@pytest.fixture(params=["sqlite", "postgres"])
def storage(
    request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Storage:
    """Return an empty database of each kind, which the engine opens."""
    if request.param == "postgres":
        postgres.tell_time_by(clock, monkeypatch)
        return postgres_storage_from_url(postgres.empty_database(), clock=clock)
    return SqliteStorage(tmp_path / "people.db", clock=clock)


@pytest.fixture
async def engine(storage: Storage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine that sends nothing, and loads in small chunks."""
    async with Outreach(storage, clock=clock, config=EngineConfig(insert_batch_size=CHUNK)) as engine:
        yield engine


@pytest.fixture
async def workspace(engine: Outreach) -> Workspace:
    """Make a workspace that reads numbers with their country code only."""
    return await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=None))


async def created(engine: Outreach, workspace: Workspace, *phones: str) -> Campaign:
    """Create a campaign with these numbers."""
    new = NewSmsCampaign(name="Spring", body="Hello", carrier="twilio", from_number=OURS, rate_per_minute=600)
    contacts = [NewRecipient(phone_number=phone) for phone in phones]
    return (await engine.campaigns.create_sms(workspace.id, new, contacts)).campaign


async def outcomes(engine: Outreach, campaign: Campaign) -> list[tuple[str | None, str, str | None]]:
    """Return the number, the state and the reason of each contact."""
    found = engine.campaigns.iter_recipients(campaign.workspace_id, campaign.id)
    return [(one.phone, one.status.value, one.reason) async for one in found]


async def writes(engine: Outreach, workspace: Workspace, address: str, body: str) -> Any:
    """Have somebody write to the sending number."""
    return await engine.messages.receive(
        workspace.id, from_number=address, to=OURS, body=body, provider="twilio", provider_id=new_id()
    )


@pytest.mark.parametrize("pair", BOTH_WAYS)
async def test_a_stop_under_one_spelling_stops_the_other(
    engine: Outreach, clock: ManualClock, workspace: Workspace, pair: tuple[str, str]
) -> None:
    """On every way to a person: messages, calls, campaigns; and START under any spelling lifts it."""
    written, other = pair
    await writes(engine, workspace, f"whatsapp:{written}", "STOP")
    assert await engine.unsubscribes.filter_unsubscribed(workspace.id, "sms", [written, other]) == {written, other}
    assert await engine.unsubscribes.filter_unsubscribed(workspace.id, "call", [other]) == {other}
    with pytest.raises(RecipientUnsubscribed):
        await engine.messages.send(workspace.id, NewMessage(to=other, body="x"))
    result = await engine.campaigns.create_sms(
        workspace.id,
        NewSmsCampaign(name="Spring", body="Hello", carrier="twilio", from_number=OURS),
        [NewRecipient(phone_number=phone) for phone in (other, written, "+14155550100")],
    )
    assert (result.opted_out_excluded, result.campaign.counters.total) == (2, 1)
    assert (await engine.unsubscribes.get(workspace.id, other)).phone == other
    clock.advance(60)
    await writes(engine, workspace, other, "START")
    assert await engine.unsubscribes.filter_unsubscribed(workspace.id, "sms", [written, other]) == frozenset()


@pytest.mark.parametrize("pair", BOTH_WAYS)
async def test_an_operator_removes_and_finds_a_person_under_any_spelling(
    engine: Outreach, workspace: Workspace, pair: tuple[str, str]
) -> None:
    """Registered twice, a person has one entry."""
    written, other = pair
    await engine.unsubscribes.add(workspace.id, written, scope="sms")
    await engine.unsubscribes.add(workspace.id, other, scope="call")
    page = await engine.unsubscribes.list(workspace.id)
    assert [(entry.phone, entry.scope) for entry in page.items] == [(other, "all")]
    assert await engine.unsubscribes.remove(workspace.id, written) == 1
    with pytest.raises(NotFound):
        await engine.unsubscribes.get(workspace.id, other)


async def test_a_held_number_is_resolved_under_any_spelling(engine: Outreach, workspace: Workspace) -> None:
    """The decision is about the person."""
    written, other = PAIRS[0]
    message = await writes(engine, workspace, written, UNCLEAR)
    assert message.unclear
    await engine.unsubscribes.resolve(workspace.id, other, opted_out=True)
    assert await engine.unsubscribes.filter_unsubscribed(workspace.id, "sms", [written]) == {written}
    assert not (await engine.unsubscribes.list_held(workspace.id)).items


@pytest.mark.parametrize("pair", BOTH_WAYS)
async def test_the_second_spelling_in_a_list_is_a_duplicate(
    engine: Outreach, workspace: Workspace, pair: tuple[str, str]
) -> None:
    """Within a chunk, and over many chunks."""
    campaign = await created(engine, workspace, *pair)
    assert await outcomes(engine, campaign) == [(pair[0], "pending", None), (pair[1], "skipped", "duplicate")]
    many = [f"+1415{number:07d}" for number in range(5550000, 5550000 + 2 * CHUNK)]
    large = await created(engine, workspace, pair[0], *many, pair[1])
    assert (await outcomes(engine, large))[-1] == (pair[1], "skipped", "duplicate")
    assert large.counters.pending == len(many) + 1


async def test_a_stop_while_a_list_is_loaded_takes_out_every_spelling(engine: Outreach, workspace: Workspace) -> None:
    """The register is compared again before a campaign is published."""
    written, other = PAIRS[0]

    async def contacts() -> AsyncIterator[NewRecipient]:
        yield NewRecipient(phone_number=other)
        for number in range(2 * CHUNK):
            yield NewRecipient(phone_number=f"+1415{5550000 + number:07d}")
        await writes(engine, workspace, written, "STOP")

    new = NewSmsCampaign(name="Spring", body="Hello", carrier="twilio", from_number=OURS)
    result = await engine.campaigns.create_sms(workspace.id, new, contacts())
    assert (result.opted_out_excluded, result.campaign.counters.total) == (1, 2 * CHUNK)


@pytest.mark.parametrize("pair", BOTH_WAYS)
async def test_the_frequency_cap_counts_every_spelling(
    engine: Outreach, storage: Storage, clock: ManualClock, workspace: Workspace, pair: tuple[str, str]
) -> None:
    """Two spellings are not twice as many messages."""
    await engine.workspaces.update(workspace.id, WorkspaceUpdate(frequency_cap=1))
    message = await engine.messages.send(workspace.id, NewMessage(to=pair[0], body="x"))

    def sent(tx: Transaction) -> None:
        tx.dispatches.insert(
            make_dispatch(workspace_id=workspace.id, to=pair[0], message_id=message.id, created_at=clock.now())
        )

    await storage.write(sent)
    for phone in pair:
        assert await storage.read(lambda tx, to=phone: frequency_capped_until(tx, workspace.id, to, clock.now()))  # type: ignore[misc]


async def test_an_agent_has_one_open_call_to_a_person(engine: Outreach, workspace: Workspace) -> None:
    """Whatever the spelling."""
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada", from_number=OURS))
    await engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to=PAIRS[0][0]))
    with pytest.raises(CallInProgress):
        await engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to=PAIRS[0][1]))


async def test_a_reply_belongs_to_the_number_that_was_dialled(
    engine: Outreach, storage: Storage, clock: ManualClock, workspace: Workspace
) -> None:
    """Reports and flows see who has answered."""
    dialled, written = PAIRS[0]
    before = await writes(engine, workspace, written, "hello")
    message = await engine.messages.send(workspace.id, NewMessage(to=dialled, body="x"))
    await storage.write(
        lambda tx: tx.dispatches.insert(
            make_dispatch(workspace_id=workspace.id, to=dialled, message_id=message.id, created_at=clock.now())
        )
    )
    after = await writes(engine, workspace, written, "hello")
    assert (before.from_number, after.from_number) == (written, dialled)
    assert await storage.read(lambda tx: tx.inbound.senders_among(workspace.id, [written], since=NOW)) == {written}


@pytest.mark.parametrize("pair", BOTH_WAYS)
async def test_a_purge_erases_every_spelling_and_the_opt_out_stays(
    engine: Outreach, storage: Storage, workspace: Workspace, pair: tuple[str, str]
) -> None:
    """Both contacts are erased, and the hash that is left stops both numbers."""
    campaign = await created(engine, workspace, pair[0])
    second = await created(engine, workspace, pair[1])
    await engine.unsubscribes.add(workspace.id, pair[0])
    result = await engine.erasure.purge(workspace.id, pair[1])
    assert (result.contacts, result.still_opted_out) == (2, True)
    for one in (campaign, second):
        [(phone, _, _)] = await outcomes(engine, one)
        assert phone is not None
        assert phone.startswith("#")
    entries = await storage.read(lambda tx: tx.register.list(workspace.id))
    assert [entry.phone[:1] for entry in entries] == ["#"]
    assert await engine.unsubscribes.filter_unsubscribed(workspace.id, "sms", pair) == set(pair)


@pytest.mark.usefixtures("engine")
async def test_every_entry_that_earlier_versions_made_still_stops_its_person(storage: Storage) -> None:
    """Over all regions, as a number and as a hash, and for lines with two spellings."""
    people: dict[str, list[tuple[str, str]]] = defaultdict(list)
    with FORMER_READINGS.open(encoding="ascii", newline="") as file:
        for row in csv.DictReader(file):
            people[row["region"]].append((row["read_as"], row["person"]))
    for region in sorted(people):
        people[region] += [(PAIRS[len(people) % 7][0], PAIRS[len(people) % 7][1])]
    workspaces = {region: make_workspace(id=new_id(), default_region=region) for region in people}

    def written_by_529b10ce(tx: Transaction) -> None:
        for region, workspace in workspaces.items():
            tx.workspaces.insert(workspace)
            for number, (read_as, _) in enumerate(people[region]):
                entry = make_unsubscribe(workspace_id=workspace.id, phone=read_as, scope="all")
                tx.register.put(entry)
                if number % 2:
                    tx.register.hash_number(entry, salt="salt")

    await storage.write(written_by_529b10ce)

    def missed(tx: Transaction) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for region, workspace in workspaces.items():
            persons = [person for _, person in people[region]]
            stopped = tx.register.stopped(workspace.id, "sms", persons)
            held = tx.register.restrictions(workspace.id, "call", persons)
            found += [
                (region, person)
                for person in persons
                if person not in stopped
                or held.get(person) != "stopped"
                or not tx.register.stopped(workspace.id, "call", [person])
            ]
        return found

    assert await storage.read(missed) == []


async def test_a_wrong_entry_of_an_earlier_version_is_lifted_with_its_person(
    engine: Outreach, storage: Storage
) -> None:
    """An operator who takes a number off the register may contact it."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Clinic", default_region="DE", request_limit=None))
    await storage.write(
        lambda tx: tx.register.put(make_unsubscribe(workspace_id=workspace.id, phone="+494915123456701"))
    )
    with pytest.raises(RecipientUnsubscribed):
        await engine.messages.send(workspace.id, NewMessage(to="4915123456701", body="x"))
    assert await engine.unsubscribes.remove(workspace.id, "0151 23456701") == 1
    assert (await engine.messages.send(workspace.id, NewMessage(to="4915123456701", body="x"))).to == "+4915123456701"


async def test_the_cap_and_look_ups_know_what_earlier_versions_dialled(
    engine: Outreach, storage: Storage, clock: ManualClock
) -> None:
    """A request to a wrong number was meant for the person."""
    workspace = await engine.workspaces.create(
        NewWorkspace(name="Clinic", default_region="DE", request_limit=None, frequency_cap=1)
    )
    campaign = await created(engine, workspace, "+14155550100")
    row = PreparedRecipient("4915123456701", "+494915123456701", None, None, None, None, None, None)

    def sent(tx: Transaction) -> None:
        tx.recipients.insert(workspace.id, campaign.id, [(1, row, RecipientStatus.PENDING, None)], now=clock.now())
        tx.dispatches.insert(
            make_dispatch(
                workspace_id=workspace.id,
                to="+494915123456701",
                campaign_id=campaign.id,
                position=1,
                created_at=clock.now(),
            )
        )

    await storage.write(sent)
    phone = "+4915123456701"
    assert await storage.read(lambda tx: frequency_capped_until(tx, workspace.id, phone, clock.now())) is not None
    [found] = await storage.read(lambda tx: tx.recipients.by_phone(workspace.id, campaign.id, phone))
    assert found.phone_number == "4915123456701"


async def test_digits_without_a_country_code_are_loaded_and_skipped(engine: Outreach, workspace: Workspace) -> None:
    """docs/interface.md#same-number: no country is guessed where the workspace has no region."""
    digits = ["6465550102", "6505550102", "5125550102", "14155550102"]
    campaign = await created(engine, workspace, "+14155550100", *digits)
    assert (await outcomes(engine, campaign))[1:] == [(None, "skipped", "invalid_number")] * len(digits)
