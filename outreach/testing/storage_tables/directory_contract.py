"""The contract of workspaces, keys, agents, trunks, numbers and flows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import attrs
import pytest

from outreach.models.resources import FlowStep
from outreach.models.states import WorkspaceMode, WorkspaceStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_flow,
    make_key,
    make_number,
    make_schedule,
    make_trunk,
    make_webhook,
    make_workspace,
    new_id,
)
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    awkward_moments,
    awkward_texts,
    given_rows,
    write_rows,
)

OWNED: dict[str, Callable[..., Any]] = {
    "keys": make_key,
    "agents": make_agent,
    "trunks": make_trunk,
    "numbers": make_number,
    "flows": make_flow,
    "schedules": make_schedule,
    "webhooks": make_webhook,
}
SCOPED = [name for name in OWNED if name != "keys"]


def table(tx: Transaction, name: str) -> Any:
    """Return a table by its name, untyped: the tests below run on several alike."""
    return getattr(tx, name)


class DirectoryContract(ContractBase):
    """Workspaces and what an application sets up in them."""

    async def test_a_new_database_has_no_workspaces(self, database: Storage) -> None:
        """Nothing is there that nobody wrote."""
        assert list(await database.read(lambda tx: tx.workspaces.list())) == []
        assert await database.read(lambda tx: tx.workspaces.get(THIS_WORKSPACE)) is None

    @awkward_texts
    async def test_a_workspace_is_read_as_it_was_written(self, database: Storage, text: str) -> None:
        """Each field comes back, whatever the text."""
        one = make_workspace(name=text, default_region=None, request_limit=None, sms_campaigns_enabled=False)
        await given_rows(database, one)
        assert await database.read(lambda tx: tx.workspaces.get(one.id)) == one

    @pytest.mark.parametrize("status", WorkspaceStatus)
    @pytest.mark.parametrize("mode", WorkspaceMode)
    async def test_a_workspace_update_replaces_every_field(
        self, storage: Storage, status: WorkspaceStatus, mode: WorkspaceMode
    ) -> None:
        """An update writes what it was given, and only to that workspace."""
        before = await storage.read(lambda tx: tx.workspaces.get(OTHER_WORKSPACE))
        changed = make_workspace(
            id=THIS_WORKSPACE,
            name="New",
            mode=mode,
            status=status,
            request_limit=MAX_INTEGER,
            contact_hours=True,
            frequency_cap=MAX_INTEGER,
            revision=MAX_INTEGER,
            updated_at=NOW + TICK,
        )
        await storage.write(lambda tx: tx.workspaces.update(changed))
        assert await storage.read(lambda tx: tx.workspaces.get(THIS_WORKSPACE)) == changed
        assert await storage.read(lambda tx: tx.workspaces.get(OTHER_WORKSPACE)) == before

    async def test_an_absent_workspace_cannot_be_updated(self, database: Storage) -> None:
        """An update of an absent row raises LookupError."""
        with pytest.raises(LookupError):
            await database.write(lambda tx: tx.workspaces.update(make_workspace()))

    async def test_a_workspace_is_inserted_once(self, storage: Storage) -> None:
        """A second insert raises and leaves the first as it was."""
        before = await storage.read(lambda tx: tx.workspaces.get(THIS_WORKSPACE))
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.workspaces.insert(make_workspace(id=THIS_WORKSPACE, name="Second")))
        assert await storage.read(lambda tx: tx.workspaces.get(THIS_WORKSPACE)) == before

    async def test_workspaces_are_listed_oldest_first(self, database: Storage) -> None:
        """The order is (created_at, id), whatever the order of the inserts."""
        ids = sorted(new_id() for _ in range(4))
        moments = [NOW + TICK, NOW, NOW, NOW - TICK]
        for workspace_id, moment in zip(reversed(ids), moments, strict=True):
            one = make_workspace(id=workspace_id, created_at=moment)
            await given_rows(database, one)
        listed = await database.read(lambda tx: [one.id for one in tx.workspaces.list()])
        assert listed == [ids[0], ids[1], ids[2], ids[3]]

    @pytest.mark.parametrize("name", OWNED)
    async def test_lists_are_oldest_first_and_of_one_workspace(self, storage: Storage, name: str) -> None:
        """The order is (created_at, id), and another workspace's rows are not in it."""
        make = OWNED[name]
        rows = [make(created_at=moment) for moment in (NOW, NOW + TICK, NOW - TICK, NOW)]
        foreign = make(workspace_id=OTHER_WORKSPACE)
        await given_rows(storage, rows[3], foreign, *rows[:3])
        assert list(await storage.read(lambda tx: table(tx, name).list(THIS_WORKSPACE))) == [
            rows[2],
            rows[0],
            rows[3],
            rows[1],
        ]
        assert list(await storage.read(lambda tx: table(tx, name).list(OTHER_WORKSPACE))) == [foreign]
        assert list(await storage.read(lambda tx: table(tx, name).list(new_id()))) == []

    @pytest.mark.parametrize("name", SCOPED)
    async def test_a_row_is_got_within_its_workspace_only(self, storage: Storage, name: str) -> None:
        """Another workspace's identifier counts as absent."""
        row = OWNED[name]()
        await given_rows(storage, row)
        assert await storage.read(lambda tx: table(tx, name).get(THIS_WORKSPACE, row.id)) == row
        assert await storage.read(lambda tx: table(tx, name).get(OTHER_WORKSPACE, row.id)) is None
        assert await storage.read(lambda tx: table(tx, name).get(THIS_WORKSPACE, new_id())) is None

    @pytest.mark.parametrize("name", OWNED)
    async def test_a_row_is_inserted_once(self, storage: Storage, name: str) -> None:
        """A second insert raises within the transaction and changes nothing, so that the rest can go on."""
        first, other = OWNED[name](), OWNED[name]()

        def insert(tx: Transaction) -> None:
            table(tx, name).insert(first)
            with pytest.raises(AlreadyExists):
                table(tx, name).insert(attrs.evolve(first, created_at=NOW + TICK))
            table(tx, name).insert(other)

        await storage.write(insert)
        assert set(await storage.read(lambda tx: table(tx, name).list(THIS_WORKSPACE))) == {first, other}

    @pytest.mark.parametrize("name", OWNED)
    async def test_a_row_is_updated_within_its_workspace_only(self, storage: Storage, name: str) -> None:
        """Neither an absent row nor one of another workspace is updated."""
        row = OWNED[name]()
        await given_rows(storage, row)
        for absent in (OWNED[name](), attrs.evolve(row, workspace_id=OTHER_WORKSPACE, created_at=NOW + TICK)):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, absent=absent: table(tx, name).update(absent))  # type: ignore[misc]
        assert list(await storage.read(lambda tx: table(tx, name).list(THIS_WORKSPACE))) == [row]
        assert list(await storage.read(lambda tx: table(tx, name).list(OTHER_WORKSPACE))) == []

    @awkward_texts
    async def test_names_are_read_as_they_were_written(self, storage: Storage, text: str) -> None:
        """Every text comes back to the code point; empty is not None."""
        agent = make_agent(name=text, provider_agent_id=text, placeholders=(text, "b", text), revision=MAX_INTEGER)
        trunk = make_trunk(name=text, address=text, provider_trunk_id=text)
        flow = make_flow(
            name=text, steps=(FlowStep(kind="send", body=text), FlowStep(kind="wait", wait_minutes=MAX_INTEGER))
        )
        key = make_key(name=text, hint=text)
        await given_rows(storage, agent, trunk, flow, key)
        assert await storage.read(lambda tx: tx.agents.get(THIS_WORKSPACE, agent.id)) == agent
        assert await storage.read(lambda tx: tx.trunks.get(THIS_WORKSPACE, trunk.id)) == trunk
        assert await storage.read(lambda tx: tx.flows.get(THIS_WORKSPACE, flow.id)) == flow
        assert await storage.read(lambda tx: tx.keys.get(key.id)) == key

    async def test_no_placeholders_differ_from_none_declared(self, storage: Storage) -> None:
        """An empty tuple and None are two things, and so is a flow without steps."""
        none, empty = make_agent(placeholders=None), make_agent(placeholders=())
        flow = make_flow(steps=())
        await given_rows(storage, none, empty, flow)
        assert await storage.read(lambda tx: tx.agents.list(THIS_WORKSPACE)) == [none, empty]
        assert await storage.read(lambda tx: tx.flows.get(THIS_WORKSPACE, flow.id)) == flow

    async def test_updates_of_trunks_numbers_and_flows_replace_every_field(self, storage: Storage) -> None:
        """An update writes what it was given, nothing in place of something too."""
        trunk, number, flow = make_trunk(), make_number(), make_flow()
        await given_rows(storage, trunk, number, flow)
        trunk = attrs.evolve(trunk, name="New", address="b.example", provider_trunk_id="T", removed_at=NOW + TICK)
        steps = (FlowStep(kind="wait", wait_minutes=5), FlowStep(kind="send", body="New"))
        flow = attrs.evolve(flow, name="New", steps=steps, removed_at=NOW + TICK)
        for changes in ({"carrier": "vonage", "trunk_id": trunk.id, "rate_per_minute": 7}, {"carrier": None}):
            changed = attrs.evolve(make_number(), id=number.id, phone=number.phone, **changes)

            def update(tx: Transaction, changed: Any = changed) -> None:
                tx.trunks.update(trunk)
                tx.numbers.update(changed)
                tx.flows.update(flow)

            await storage.write(update)
            assert await storage.read(lambda tx: tx.numbers.get(THIS_WORKSPACE, number.id)) == changed
            assert await storage.read(lambda tx: tx.trunks.get(THIS_WORKSPACE, trunk.id)) == trunk
            assert await storage.read(lambda tx: tx.flows.get(THIS_WORKSPACE, flow.id)) == flow

    async def test_a_number_is_deleted_within_its_workspace_only(self, storage: Storage) -> None:
        """It may be added anew then."""
        number = make_number()
        await given_rows(storage, number)
        with pytest.raises(LookupError):
            await storage.write(lambda tx: tx.numbers.delete(OTHER_WORKSPACE, number.id))
        await storage.write(lambda tx: tx.numbers.delete(THIS_WORKSPACE, number.id))
        assert await storage.read(lambda tx: tx.numbers.get(THIS_WORKSPACE, number.id)) is None
        assert await storage.read(lambda tx: tx.numbers.by_phone(THIS_WORKSPACE, number.phone)) is None
        assert list(await storage.read(lambda tx: tx.numbers.list(THIS_WORKSPACE))) == []
        with pytest.raises(LookupError):
            await storage.write(lambda tx: tx.numbers.delete(THIS_WORKSPACE, number.id))
        again = make_number(phone=number.phone)
        await given_rows(storage, again)
        assert await storage.read(lambda tx: tx.numbers.by_phone(THIS_WORKSPACE, number.phone)) == again

    async def test_an_agent_update_replaces_every_field(self, storage: Storage) -> None:
        """An update writes what it was given."""
        agent = make_agent()
        changed = attrs.evolve(
            agent,
            name="New",
            provider="vapi",
            provider_agent_id="va_1",
            direction="inbound",
            allow_outbound=True,
            is_active=False,
            placeholders=("name",),
            from_number="+14155550199",
            voicemail="leave_message",
            voicemail_message="Hello",
            max_call_seconds=MAX_INTEGER,
            revision=7,
            updated_at=NOW + TICK,
            removed_at=NOW + TICK,
        )
        await given_rows(storage, agent)
        await storage.write(lambda tx: tx.agents.update(changed))
        assert await storage.read(lambda tx: tx.agents.get(THIS_WORKSPACE, agent.id)) == changed

    @awkward_moments
    async def test_a_key_is_found_by_its_digest_revoked_or_not(self, storage: Storage, moment: datetime) -> None:
        """The digest and the id find a key of whatever workspace, with its moment of revocation."""
        key = make_key(workspace_id=OTHER_WORKSPACE, created_at=moment)
        await given_rows(storage, key)
        assert await storage.read(lambda tx: tx.keys.by_digest(key.digest)) == key
        revoked = attrs.evolve(key, revoked_at=moment + TICK)
        await storage.write(lambda tx: tx.keys.update(revoked))
        assert await storage.read(lambda tx: tx.keys.by_digest(key.digest)) == revoked
        assert await storage.read(lambda tx: tx.keys.get(key.id)) == revoked
        assert await storage.read(lambda tx: tx.keys.by_digest("another")) is None
        assert await storage.read(lambda tx: tx.keys.get(new_id())) is None

    async def test_a_digest_belongs_to_one_key(self, storage: Storage) -> None:
        """A second key with the same digest is refused, in another workspace too."""
        key = make_key()
        await given_rows(storage, key)
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.keys.insert(make_key(workspace_id=OTHER_WORKSPACE, digest=key.digest)))
        assert await storage.read(lambda tx: tx.keys.by_digest(key.digest)) == key

    async def test_a_number_is_found_by_phone_and_unique_in_its_workspace(self, storage: Storage) -> None:
        """(workspace, phone) is unique; two workspaces may have the same phone."""
        trunk = make_trunk()
        ours = make_number(carrier=None, trunk_id=trunk.id)
        theirs = make_number(
            workspace_id=OTHER_WORKSPACE, phone=ours.phone, carrier="vonage", rate_per_minute=MAX_INTEGER
        )

        def insert(tx: Transaction) -> None:
            write_rows(tx, trunk, ours, theirs)
            with pytest.raises(AlreadyExists):
                tx.numbers.insert(make_number(phone=ours.phone))

        await storage.write(insert)
        assert await storage.read(lambda tx: tx.numbers.by_phone(THIS_WORKSPACE, ours.phone)) == ours
        assert await storage.read(lambda tx: tx.numbers.by_phone(OTHER_WORKSPACE, ours.phone)) == theirs
        assert await storage.read(lambda tx: tx.numbers.by_phone(THIS_WORKSPACE, "+1")) is None
        assert list(await storage.read(lambda tx: tx.numbers.list(THIS_WORKSPACE))) == [ours]
