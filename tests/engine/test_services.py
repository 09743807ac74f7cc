from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from outreach import (
    Agent,
    AgentUpdate,
    CampaignUpdate,
    Conflict,
    EngineConfig,
    FlowStep,
    InvalidRequest,
    NewAgent,
    NewCall,
    NewCallCampaign,
    NewFlow,
    NewMessage,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewTrunk,
    NewWorkspace,
    NotFound,
    Outreach,
    SmsSettingsUpdate,
    Workspace,
    WorkspaceMode,
    WorkspaceStatus,
    WorkspaceUpdate,
)
from outreach.errors import (
    SmsCampaignsDisabled,
    StorageBusy,
    StorageError,
    Unauthorized,
    WorkspaceUnavailable,
)
from outreach.models import ApiKey, NewFollowUp
from outreach.models.campaign import PreparedRecipient
from outreach.protocols.storage import Within
from outreach.server_support import prepare_recipient
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.builders import NOW, make_dispatch, new_id
from outreach.testing.clock import ManualClock
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import WatchedStorage, contacts, given_campaign, given_workspace

pytestmark = pytest.mark.virtual_time


async def test_a_key_has_the_scopes_that_it_was_created_with(engine: Outreach, workspace: Workspace) -> None:
    """Without any it sends, as keys did before there were scopes."""
    plain = await engine.api_keys.create(workspace.id)
    wide = await engine.api_keys.create(workspace.id, scopes=["read", "send", "read"])
    assert (await engine.api_keys.authenticate(plain.api_key)).scopes == ("send",)
    assert (await engine.api_keys.authenticate(wide.api_key)).scopes == ("send", "read")
    assert [key.scopes for key in await engine.api_keys.list(workspace.id)] == [("send",), ("send", "read")]
    wrong: Any
    for wrong, path in [((), "scopes"), (("all",), "scopes[0]"), ("send", "scopes"), ((1,), "scopes[0]")]:
        with pytest.raises(InvalidRequest) as refused:
            await engine.api_keys.create(workspace.id, scopes=wrong)
        assert refused.value.details[0].path == path


async def test_a_key_says_who_made_it_and_when_it_was_last_used(engine: Outreach, workspace: Workspace) -> None:
    """The last use to the hour; that of a revoked key stays."""
    made = await engine.api_keys.create(workspace.id, actor="user:ann")

    async def key() -> ApiKey:
        return await engine.api_keys.get(workspace.id, made.id)

    assert ((await key()).made_by, (await key()).last_used_at) == ("user:ann", None)
    await engine.api_keys.authenticate(made.api_key)
    first = (await key()).last_used_at
    assert first is not None
    await anyio.sleep(1800)
    await engine.api_keys.authenticate(made.api_key)
    assert (await key()).last_used_at == first
    await anyio.sleep(1800)
    await engine.api_keys.authenticate(made.api_key)
    used = (await key()).last_used_at
    assert used is not None
    assert used - first >= timedelta(hours=1)
    await engine.api_keys.revoke(workspace.id, made.id)
    await anyio.sleep(7200)
    with pytest.raises(Unauthorized):
        await engine.api_keys.authenticate(made.api_key)
    assert (await key()).last_used_at == used


async def test_a_request_does_not_fail_because_the_use_of_its_key_cannot_be_noted(open_storage: OpenStorage) -> None:
    """Another process may hold the database for a moment."""
    storage = WatchedStorage(open_storage(clock_of_loop()))
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        workspace = await given_workspace(engine)
        made = await engine.api_keys.create(workspace.id)

        def busy() -> None:
            raise StorageBusy("Another process writes.")

        storage.before_write = busy
        assert (await engine.api_keys.authenticate(made.api_key)).workspace == workspace
        storage.before_write = lambda: None


async def test_the_audit_trail_is_filtered(engine: Outreach) -> None:
    """By actor, action and subject, in one workspace; a cursor is of its filter."""
    mine, other = await given_workspace(engine), await given_workspace(engine)
    await engine.api_keys.create(mine.id, actor="user:ann")
    await engine.api_keys.create(mine.id, actor="user:ben")
    await engine.api_keys.create(other.id, actor="user:ann")
    made = await engine.api_keys.create(mine.id, actor="user:ben")
    await engine.api_keys.revoke(mine.id, made.id, actor="user:ann")

    async def found(**filters: str) -> list[tuple[str, str]]:
        return [(one.actor, one.action) async for one in engine.audit.iter_all(mine.id, **filters)]

    ann, ben = "user:ann", "user:ben"
    assert await found(actor=ann) == [(ann, "key.revoke"), (ann, "key.create")]
    assert await found(action="key.create") == [(ben, "key.create"), (ben, "key.create"), (ann, "key.create")]
    assert await found(subject=made.id) == [(ann, "key.revoke"), (ben, "key.create")]
    assert await found(actor=ann, action="key.revoke", subject=made.id) == [(ann, "key.revoke")]
    assert await found(actor="user:eve") == []
    page = await engine.audit.list(mine.id, action="key.create", limit=2)
    rest = await engine.audit.list(mine.id, action="key.create", after=page.next)
    assert [one.actor for one in rest] == [ann]
    with pytest.raises(InvalidRequest, match="after"):
        await engine.audit.list(mine.id, actor=ben, after=page.next)
    with pytest.raises(InvalidRequest, match="workspace_id"):
        await engine.audit.list(actor=ann)
    with pytest.raises(InvalidRequest, match="action"):
        await engine.audit.list(mine.id, action="")


async def test_a_key_authenticates_its_workspace_until_it_is_revoked(engine: Outreach) -> None:
    """docs/interface.md#5: a key belongs to one workspace; an invalid, malformed or revoked one is refused."""
    mine, other = await given_workspace(engine), await given_workspace(engine)
    key = await engine.api_keys.create(mine.id, name="ci")
    assert (await engine.api_keys.authenticate(key.api_key)).workspace == mine
    assert key.api_key.startswith("outreach_")
    assert key.api_key not in repr(key)
    number: Any = 5
    for wrong in ("", "x", "outreach_", key.api_key[:-1], key.api_key + "x", key.api_key.upper(), "outreach_é", number):
        with pytest.raises(Unauthorized):
            await engine.api_keys.authenticate(wrong)
    revoked = await engine.api_keys.revoke(mine.id, key.id)
    assert revoked == await engine.api_keys.revoke(mine.id, key.id)
    with pytest.raises(Unauthorized):
        await engine.api_keys.authenticate(key.api_key)
    assert [one.id for one in await engine.api_keys.list(mine.id)] == [key.id]
    assert list(await engine.api_keys.list(other.id)) == []
    with pytest.raises(NotFound):
        await engine.api_keys.revoke(mine.id, new_id())


async def test_the_secret_of_a_key_is_nowhere_in_the_database(tmp_path: Path) -> None:
    """SECURITY.md: stored as a SHA-256, shown once: no file of the database holds the secret."""
    path = tmp_path / "keys.db"
    async with Outreach.open(f"sqlite:///{path}", clock=clock_of_loop()) as engine:
        workspace = await given_workspace(engine)
        key = await engine.api_keys.create(workspace.id)
        await engine.api_keys.authenticate(key.api_key)
        during = _bytes_of(tmp_path)
    after = _bytes_of(tmp_path)
    secret = key.api_key.removeprefix("outreach_").encode()
    hint = (await _hint(path, workspace.id)).encode()
    for stored in (during, after):
        assert secret not in stored
        assert secret[10:] not in stored
        assert hint in stored


async def test_a_suspended_workspace_is_authenticated_so_that_it_gets_a_reason(engine: Outreach) -> None:
    """docs/interface.md#5: 401 is for keys, 403 for the workspace: the key still tells which one it is."""
    workspace = await given_workspace(engine)
    key = await engine.api_keys.create(workspace.id)
    changed = await engine.workspaces.update(workspace.id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
    assert (await engine.api_keys.authenticate(key.api_key)).workspace == changed


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"name": "\x00"}, "name"),
        ({"name": "\udcff"}, "name"),
        ({"request_limit": 0}, "request_limit"),
        ({"request_limit": 1_000_001}, "request_limit"),
        ({"default_region": "usa"}, "default_region"),
        ({"mode": "playground"}, "mode"),
    ],
)
async def test_a_workspace_out_of_its_bounds_is_refused(engine: Outreach, fields: dict[str, Any], path: str) -> None:
    """Bounds are checked where the value comes in, and the place is named."""
    with pytest.raises(InvalidRequest) as caught:
        await engine.workspaces.create(NewWorkspace(**{"name": "Acme", **fields}))
    assert [detail.path for detail in caught.value.details] == [path]


async def test_who_did_what_is_kept(engine: Outreach, workspace: Workspace) -> None:
    """docs/rules.md#audit-trail: an audit trail, newest first, of one workspace or of all."""
    await engine.workspaces.update(workspace.id, WorkspaceUpdate(name="New"), actor="cli:ann")
    other = await given_workspace(engine)
    entries = await engine.audit.list(workspace.id)
    assert [(entry.actor, entry.action) for entry in entries] == [
        ("cli:ann", "workspace.update"),
        ("library", "workspace.create"),
    ]
    assert entries.items[0].detail == "name=New"
    assert {entry.workspace_id for entry in await engine.audit.list()} == {workspace.id, other.id}


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        ({"max_segments": 0}, ["max_segments"]),
        ({"max_segments": 6}, ["max_segments"]),
        ({"retry_max_attempts": 0}, ["retry_max_attempts"]),
        ({"retry_max_attempts": 4}, ["retry_max_attempts"]),
        ({"retry_delay_minutes": 4}, ["retry_delay_minutes"]),
        ({"retry_delay_minutes": 121}, ["retry_delay_minutes"]),
        ({"footer_text": "x" * 121}, ["footer_text"]),
        (
            {"custom_variables": ["ok", "no-dash", "", "x" * 41, "é"]},
            [f"custom_variables[{n}]" for n in (1, 2, 3, 4)],
        ),
        ({"max_segments": 9, "footer_text": "\x00"}, ["footer_text", "max_segments"]),
    ],
)
async def test_settings_out_of_their_bounds_change_nothing(
    engine: Outreach, workspace: Workspace, change: dict[str, Any], paths: list[str]
) -> None:
    """docs/interface.md#2.4 and #4.4: out-of-range values are rejected, every place is named, nothing is changed."""
    before = await engine.sms_settings.get(workspace.id)
    with pytest.raises(InvalidRequest) as caught:
        await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(**change))
    assert [detail.path for detail in caught.value.details] == paths
    assert await engine.sms_settings.get(workspace.id) == before


async def test_the_settings_before_any_change_and_at_their_bounds(engine: Outreach, workspace: Workspace) -> None:
    """docs/interface.md#2.4, #settings: the bounds themselves are allowed."""
    fresh = await engine.sms_settings.get(workspace.id)
    assert (fresh.footer_enabled, fresh.footer_text, fresh.max_segments) == (True, "Reply STOP to opt out", 5)
    assert (fresh.retry_enabled, fresh.retry_max_attempts, fresh.retry_delay_minutes) == (False, 3, 15)
    change = SmsSettingsUpdate(
        footer_text="é" * 120,
        max_segments=1,
        retry_max_attempts=1,
        retry_delay_minutes=120,
        custom_variables=["x" * 40, "_9"],
    )
    changed = await engine.sms_settings.update(workspace.id, change)
    assert (changed.footer_text, changed.custom_variables) == ("é" * 120, ("x" * 40, "_9"))


async def test_changes_of_different_settings_at_once_are_all_kept(engine: Outreach, workspace: Workspace) -> None:
    """PATCHes that come together each change their own fields."""
    changes = [
        SmsSettingsUpdate(footer_enabled=False),
        SmsSettingsUpdate(footer_text="Bye"),
        SmsSettingsUpdate(max_segments=2),
        SmsSettingsUpdate(retry_enabled=True),
        SmsSettingsUpdate(retry_max_attempts=2),
        SmsSettingsUpdate(retry_delay_minutes=30),
        SmsSettingsUpdate(custom_variables=["a"]),
    ]
    async with anyio.create_task_group() as tasks:
        for change in changes:
            tasks.start_soon(engine.sms_settings.update, workspace.id, change)
    after = await engine.sms_settings.get(workspace.id)
    assert (after.footer_enabled, after.footer_text, after.max_segments, after.retry_enabled) == (False, "Bye", 2, True)
    assert (after.retry_max_attempts, after.retry_delay_minutes, after.custom_variables) == (2, 30, ("a",))
    assert after.revision == len(changes)


async def test_the_register_normalises_merges_and_lists(engine: Outreach, workspace: Workspace) -> None:
    """docs/interface.md#same-number and #register."""
    added = await engine.unsubscribes.add(workspace.id, "(415) 555-0102", "14155550103", scope="sms", evidence="STOP")
    assert [entry.phone for entry in added] == ["+14155550102", "+14155550103"]
    (grown,) = await engine.unsubscribes.add(workspace.id, "+1 415 555 0102", scope="call")
    assert (grown.scope, grown.evidence) == ("all", "STOP")
    listed = [entry.phone async for entry in engine.unsubscribes.iter_all(workspace.id)]
    assert listed == ["+14155550102", "+14155550103"]
    with pytest.raises(InvalidRequest) as caught:
        await engine.unsubscribes.add(workspace.id, "+14155550104", "nobody")
    assert [detail.path for detail in caught.value.details] == ["phone_numbers[1]"]
    assert await engine.unsubscribes.remove(workspace.id, "415-555-0102", "+14155550104", evidence="Letter") == 1
    with pytest.raises(InvalidRequest, match="evidence"):
        await engine.unsubscribes.remove(workspace.id, "+14155550103", evidence="x" * 1001)
    [removed] = (await engine.audit.list(workspace.id, action="unsubscribes.remove")).items
    assert removed.detail == "1 numbers: Letter"
    assert await engine.unsubscribes.filter_unsubscribed(workspace.id, "sms", listed) == {"+14155550103"}


@pytest.mark.parametrize("region", [None, "US", "DE"])
@pytest.mark.parametrize("written", ["14155550102", "+1 415 555 0102", "4915123456701", "999123456789", "5550102"])
async def test_the_register_reads_one_number_as_a_single_message_does(
    engine: Outreach, written: str, region: str | None
) -> None:
    """Every number that can be reached can opt out, be looked up, be decided on and be taken off, as it was written."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme", default_region=region, contact_hours=False))
    message = await engine.messages.send(workspace.id, NewMessage(to=written, body="Hi"))
    (added,) = await engine.unsubscribes.add(workspace.id, written)
    assert added.phone == message.to
    assert (await engine.unsubscribes.get(workspace.id, written)).phone == message.to
    with pytest.raises(Conflict, match="not held"):
        await engine.unsubscribes.resolve(workspace.id, written, opted_out=True)
    assert await engine.unsubscribes.remove(workspace.id, written) == 1


async def test_a_list_of_opt_outs_has_country_codes_where_there_is_no_region(engine: Outreach) -> None:
    """In a list a country code is more likely to be missing than the plus sign."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))

    async def rows() -> AsyncIterator[str]:
        yield "14155550102"
        yield "+14155550103"

    done = await engine.unsubscribes.import_numbers(workspace.id, rows())
    assert (done.added, done.rejected) == (1, ((1, "14155550102"),))


async def test_an_entry_of_the_register_carries_the_time_of_its_commit() -> None:
    """A campaign that begins to load while an entry waits for its commit drops the number all the same."""
    clock = ManualClock(NOW)

    class Slow(MemoryStorage):
        """A database whose writer is busy for a while."""

        async def write(self, operation: Any, *, bulk: bool = False) -> Any:
            clock.advance(60)
            return await super().write(operation, bulk=bulk)

    async with Outreach(Slow(), clock=clock) as engine:
        workspace = await given_workspace(engine)
        asked_at = clock.now()
        (entry,) = await engine.unsubscribes.add(workspace.id, "+14155550102")
        assert entry.created_at == asked_at + timedelta(seconds=60)


async def test_an_operation_names_its_workspace_to_the_storage() -> None:
    """Whether or not it also compares the clocks, as one in ten seconds does."""
    clock = ManualClock(NOW)
    named: list[frozenset[str]] = []

    class Noting(MemoryStorage):
        """A database that notes the workspaces of the operations that name them."""

        async def write(self, operation: Any, *, bulk: bool = False) -> Any:
            if isinstance(operation, Within):
                named.append(operation.workspace_ids)
            return await super().write(operation, bulk=bulk)

    async with Outreach(Noting(), clock=clock) as engine:
        workspace = await given_workspace(engine)
        clock.advance(60)
        await engine.unsubscribes.add(workspace.id, "+14155550102")
        await engine.unsubscribes.add(workspace.id, "+14155550103")
    assert named == [{workspace.id}] * 2


async def test_agents_trunks_numbers_and_flows_are_kept_as_they_were_given(engine: Outreach) -> None:
    """The directory: what an application sets up is there afterwards, oldest first."""
    workspace = await given_workspace(engine)
    agent = await engine.agents.create(
        workspace.id, NewAgent(name="Ada", placeholders=["name"], from_number="(415) 555-0100")
    )
    assert agent.from_number == "+14155550100"
    changed = await engine.agents.update(workspace.id, agent.id, AgentUpdate(is_active=False, name="Eve"))
    assert (changed.name, changed.is_active, changed.revision, changed.placeholders) == ("Eve", False, 1, ("name",))
    trunk = await engine.trunks.create(workspace.id, NewTrunk(name="Main", address="sip.example.com"))
    number = await engine.numbers.create(
        workspace.id, NewNumber(phone="415 555 0101", carrier="telnyx", trunk_id=trunk.id)
    )
    assert number.phone == "+14155550101"
    with pytest.raises(Conflict, match="already"):
        await engine.numbers.create(workspace.id, NewNumber(phone="+14155550101"))
    with pytest.raises(InvalidRequest):
        await engine.numbers.create(workspace.id, NewNumber(phone="nobody"))
    with pytest.raises(InvalidRequest):
        await engine.flows.create(workspace.id, NewFlow(name="Empty", steps=[]))
    flow = await engine.flows.create(workspace.id, NewFlow(name="Hello", steps=[FlowStep(kind="send", body="Hi")]))
    assert [list(await service.list(workspace.id)) for service in (engine.agents, engine.trunks)] == [
        [changed],
        [trunk],
    ]
    assert [list(await service.list(workspace.id)) for service in (engine.numbers, engine.flows)] == [[number], [flow]]
    assert await engine.agents.get(workspace.id, agent.id) == changed
    assert await engine.trunks.get(workspace.id, trunk.id) == trunk
    assert await engine.numbers.get(workspace.id, number.id) == number
    assert await engine.flows.get(workspace.id, flow.id) == flow
    await engine.numbers.remove(workspace.id, number.id)
    await engine.trunks.remove(workspace.id, trunk.id)
    with pytest.raises(NotFound):
        await engine.trunks.get(workspace.id, trunk.id)


async def test_what_an_agents_calls_do_is_checked_as_a_whole(engine: Outreach, workspace: Workspace) -> None:
    """A message needs the policy that leaves it, and a call has a length that every provider takes."""

    async def make(**fields: Any) -> Agent:
        return await engine.agents.create(workspace.id, NewAgent(name="Ada", **fields))

    agent = await make(voicemail="leave_message", voicemail_message="Hello", max_call_seconds=10)
    assert (agent.voicemail, agent.voicemail_message, agent.max_call_seconds) == ("leave_message", "Hello", 10)
    quiet = await engine.agents.update(workspace.id, agent.id, AgentUpdate(voicemail="hang_up"))
    assert (quiet.voicemail, quiet.voicemail_message, quiet.max_call_seconds) == ("hang_up", None, 10)
    for wrong in (
        {"voicemail": "leave_message"},
        {"voicemail_message": "Hello"},
        {"voicemail": "hang_up", "voicemail_message": "Hello"},
        {"voicemail": "shout"},
        {"voicemail": "leave_message", "voicemail_message": " "},
        {"voicemail": "leave_message", "voicemail_message": "x" * 1001},
        {"max_call_seconds": 9},
        {"max_call_seconds": 43_201},
    ):
        with pytest.raises(InvalidRequest):
            await make(**wrong)
    assert len(await engine.agents.list(workspace.id)) == 1


async def test_a_word_that_could_not_be_read_again_is_not_stored(engine: Outreach, workspace: Workspace) -> None:
    """docs/interface.md#register: a scope that stops no channel would let a stopped number be contacted."""
    unknown: Any = "unknown"

    async def rows() -> AsyncIterator[str]:
        yield "+14155550102"

    for path, asked in (
        ("scope", engine.unsubscribes.add(workspace.id, "+14155550102", scope=unknown)),
        ("scope", engine.unsubscribes.import_numbers(workspace.id, rows(), scope=unknown)),
        ("provider", engine.agents.create(workspace.id, NewAgent(name="Ada", provider=unknown))),
    ):
        with pytest.raises(InvalidRequest) as caught:
            await asked
        assert [detail.path for detail in caught.value.details] == [path]
    assert [entry async for entry in engine.unsubscribes.iter_all(workspace.id)] == []
    assert list(await engine.agents.list(workspace.id)) == []
    assert await engine.workspaces.get(workspace.id) == workspace


@pytest.mark.parametrize("blank", ["", " \n"])
async def test_an_update_finishes_or_reopens_the_setup(engine: Outreach, workspace: Workspace, blank: str) -> None:
    """docs/states.md#campaigns: draft <-> ready by update; docs/interface.md#3: what makes it ready."""
    campaign = await given_campaign(engine, workspace, 1, from_number=blank, body="")
    assert (campaign.status, campaign.from_number) == ("draft", None)

    async def update(**fields: Any) -> Any:
        return await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(**fields))

    assert (await update(body="Hi")).status == "draft"
    ready = await update(from_number="+14155550199", rate_per_minute=600)
    assert (ready.status, ready.body, ready.rate_per_minute) == ("ready", "Hi", 600)
    reopened = await update(from_number=blank)
    assert (reopened.status, reopened.from_number) == ("draft", None)
    assert (await update(from_number="+14155550199")).status == "ready"
    for wrong in ({"name": ""}, {"body": "x" * 1601}, {"rate_per_minute": 601}, {"carrier": "pigeon"}):
        with pytest.raises(InvalidRequest):
            await update(**wrong)
    with pytest.raises(NotFound):
        await update(flow_id=new_id())
    await engine.campaigns.start(workspace.id, campaign.id)
    with pytest.raises(Conflict):
        await update(from_number="+14155550198")


async def test_a_campaign_that_cannot_be_created_leaves_nothing(engine: Outreach, workspace: Workspace) -> None:
    """docs/rules.md#loading: all of a campaign and its contacts, or nothing."""
    await engine.unsubscribes.add(workspace.id, *(f"+1415555000{n}" for n in range(3)))
    bad_row = [*contacts(2500, first=10), NewRecipient(phone_number="")]

    async def breaks() -> AsyncIterator[NewRecipient]:
        for contact in contacts(2500):
            yield contact
        raise ZeroDivisionError

    for source, error in (
        (bad_row, InvalidRequest),
        (contacts(3), InvalidRequest),
        ([], InvalidRequest),
        (breaks(), ZeroDivisionError),
    ):
        with pytest.raises(error) as caught:
            await engine.campaigns.create_sms(workspace.id, _new(), source)
        if source is bad_row:
            assert isinstance(caught.value, InvalidRequest)
            assert caught.value.details[0].path == "recipients[2500].phone_number"
    await _nothing(engine, workspace.id)


async def test_a_creation_that_is_cancelled_leaves_nothing(engine: Outreach, workspace: Workspace) -> None:
    """A client that goes away in the middle of a load leaves no campaign and no recipient."""
    half_way = anyio.Event()

    async def endless() -> AsyncIterator[NewRecipient]:
        for contact in contacts(2500):
            yield contact
        half_way.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.campaigns.create_sms, workspace.id, _new(), endless())
        with anyio.fail_after(30):
            await half_way.wait()
        await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()
    await _nothing(engine, workspace.id)


@pytest.mark.parametrize("before", [0, 25])
async def test_a_source_that_lets_wait_does_not_hold_the_closing_up(before: int) -> None:
    """Whether contacts of it were written or not: the creation ends at once, and leaves nothing."""
    config = EngineConfig(stop_grace_seconds=3600.0, insert_batch_size=10)
    engine = Outreach(MemoryStorage(clock=clock_of_loop()), clock=clock_of_loop(), config=config)
    waits = anyio.Event()

    async def stuck() -> AsyncIterator[NewRecipient]:
        for contact in contacts(before):
            yield contact
        waits.set()
        await anyio.sleep_forever()

    async def create() -> None:
        with pytest.raises(StorageError, match="being closed; the campaign was not created"):
            await engine.campaigns.create_sms(workspace.id, _new(), stuck())

    async with engine:
        workspace = await given_workspace(engine)
    async with anyio.create_task_group() as tasks:
        async with engine:
            tasks.start_soon(create)
            await waits.wait()
            began = anyio.current_time()
        assert anyio.current_time() - began < 60
    async with engine:
        await _nothing(engine, workspace.id)


async def test_a_flow_or_a_trunk_of_nobody_is_refused_before_anything_is_written(engine: Outreach) -> None:
    """docs/interface.md#flow-id: unknown or foreign is a 400; agents and trunks are 404."""
    mine, other = await given_workspace(engine), await given_workspace(engine)
    foreign = await engine.flows.create(other.id, NewFlow(name="Theirs", steps=[FlowStep(kind="send", body="Hi")]))
    trunk = await engine.trunks.create(other.id, NewTrunk(name="Theirs", address="sip.example.com"))
    theirs = await engine.agents.create(other.id, NewAgent(name="Theirs"))
    ours = await engine.agents.create(mine.id, NewAgent(name="Ours"))
    for flow_id in (foreign.id, new_id()):
        with pytest.raises(InvalidRequest, match="flow_id"):
            await engine.campaigns.create_sms(mine.id, _new(flow_id=flow_id), contacts(1))
    with pytest.raises(NotFound):
        await engine.campaigns.create_call(mine.id, NewCallCampaign(name="x", agent_id=theirs.id), contacts(1))
    with pytest.raises(NotFound, match="trunk"):
        await engine.campaigns.create_call(
            mine.id, NewCallCampaign(name="x", agent_id=ours.id, trunk_id=trunk.id), contacts(1)
        )
    await _nothing(engine, mine.id)


async def test_sms_campaigns_must_be_turned_on(engine: Outreach) -> None:
    """docs/interface.md#4.3, rule 1: 403 where the workspace has SMS campaigns off."""
    workspace = await given_workspace(engine, sms_campaigns_enabled=False)
    with pytest.raises(SmsCampaignsDisabled):
        await engine.campaigns.create_sms(workspace.id, _new(), contacts(1))


async def test_prepared_chunks_and_contacts_one_by_one_make_the_same_campaign(engine: Outreach) -> None:
    """Contacts come one by one or in chunks of any size that were prepared elsewhere."""
    workspace = await given_workspace(engine)
    people = contacts(2300)

    async def prepared() -> AsyncIterator[list[PreparedRecipient]]:
        for start in (0, 7, 2000):
            end = {0: 7, 7: 2000, 2000: 2300}[start]
            yield [prepare_recipient(contact, "US") for contact in people[start:end]]

    made = [
        (await engine.campaigns.create_sms(workspace.id, _new(), source)).campaign for source in (people, prepared())
    ]
    first, second = [
        [
            (one.position, one.phone, one.first_name)
            async for one in engine.campaigns.iter_recipients(workspace.id, each.id)
        ]
        for each in made
    ]
    assert first == second
    assert made[0].counters == made[1].counters == await engine.campaigns.recount(workspace.id, made[0].id)


async def test_everything_of_another_workspace_counts_as_absent(engine: Outreach) -> None:
    """Every query carries its workspace; another one's ids are not found, in any service.

    SECURITY.md.
    """
    mine, other = await given_workspace(engine), await given_workspace(engine)
    campaign = await given_campaign(engine, other, 2)
    agent = await engine.agents.create(other.id, NewAgent(name="Theirs"))
    trunk = await engine.trunks.create(other.id, NewTrunk(name="Theirs", address="sip.example.com"))
    await engine.unsubscribes.add(other.id, "+14155550777")
    message = await engine.messages.send(other.id, NewMessage(to="+14155550001", body="x"))
    call = await engine.calls.create(other.id, NewCall(agent_id=agent.id, to="+14155550001"))
    key = await engine.api_keys.create(other.id)
    dispatch = make_dispatch(workspace_id=other.id, message_id=message.id)
    await engine._storage.write(lambda tx: tx.dispatches.insert(dispatch))
    assert (await engine.api_keys.get(other.id, key.id)).id == key.id
    assert await engine.dispatches.get(other.id, dispatch.id) == dispatch
    campaigns = engine.campaigns
    attempts = [
        campaigns.get(mine.id, campaign.id),
        campaigns.get_anywhere(new_id()),
        campaigns.start(mine.id, campaign.id),
        campaigns.pause(mine.id, campaign.id),
        campaigns.resume(mine.id, campaign.id),
        campaigns.cancel(mine.id, campaign.id),
        campaigns.unschedule(mine.id, campaign.id),
        campaigns.update(mine.id, campaign.id, CampaignUpdate(name="Mine")),
        campaigns.count_recipients(mine.id, campaign.id),
        campaigns.recount(mine.id, campaign.id),
        campaigns.archive(mine.id, campaign.id),
        campaigns.unarchive(mine.id, campaign.id),
        campaigns.clone(mine.id, campaign.id),
        campaigns.follow_up(mine.id, campaign.id, NewFollowUp(results=["failed"])),
        campaigns.report(mine.id, campaign.id),
        anext(campaigns.iter_export(mine.id, campaign.id)),
        anext(campaigns.export(mine.id, campaign.id, "csv")),
        campaigns.list_dispatches(mine.id, campaign.id, 0),
        anext(campaigns.iter_recipients(mine.id, campaign.id)),
        engine.agents.get(mine.id, agent.id),
        engine.agents.update(mine.id, agent.id, AgentUpdate(name="Mine")),
        engine.numbers.create(mine.id, NewNumber(phone="+14155550100", trunk_id=trunk.id)),
        engine.trunks.get(mine.id, trunk.id),
        engine.api_keys.get(mine.id, key.id),
        engine.dispatches.get(mine.id, dispatch.id),
        engine.messages.get(mine.id, message.id),
        engine.calls.get(mine.id, call.id),
        engine.calls.create(mine.id, NewCall(agent_id=agent.id, to="+14155550001")),
        engine.sms_settings.get(new_id()),
        engine.sms_settings.update(new_id(), SmsSettingsUpdate(max_segments=1)),
        engine.workspaces.get(new_id()),
        engine.api_keys.create(new_id()),
        engine.api_keys.list(new_id()),
        engine.agents.list(new_id()),
        engine.unsubscribes.add(new_id(), "+14155550100"),
        engine.unsubscribes.remove(new_id(), "+14155550100"),
        engine.campaigns.create_sms(new_id(), _new(), contacts(1)),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound):
            await attempt
    assert (await campaigns.list(mine.id)).total == 0
    assert await engine.unsubscribes.filter_unsubscribed(mine.id, "sms", ["+14155550777"]) == frozenset()
    assert await engine.unsubscribes.remove(mine.id, "+14155550777") == 0
    assert [list(await service.list(mine.id)) for service in (engine.agents, engine.trunks, engine.flows)] == [
        [],
        [],
        [],
    ]
    assert await campaigns.get(other.id, campaign.id) == await campaigns.get_anywhere(campaign.id) == campaign
    assert list(await campaigns.pause_all(mine.id)) == []


def _new(**fields: Any) -> NewSmsCampaign:
    return NewSmsCampaign(**{"name": "Spring", "body": "Hi", **fields})


async def _nothing(engine: Outreach, workspace_id: str) -> None:
    assert (await engine.campaigns.list(workspace_id)).total == 0
    far = clock_of_loop().now() + timedelta(days=1)
    assert not await engine.campaigns._moves._context.storage.read(lambda tx: tx.campaigns.leftovers(far))


def _bytes_of(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in directory.iterdir())


async def _hint(path: Path, workspace_id: str) -> str:
    async with Outreach.open(f"sqlite:///{path}", clock=clock_of_loop()) as engine:
        (key,) = await engine.api_keys.list(workspace_id)
        return key.hint


async def test_words_are_taken_where_an_enumeration_has_them(engine: Outreach) -> None:
    """`"suspended"` is what the enumeration's member is equal to, and is as good."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode="live"))  # type: ignore[arg-type]
    assert (workspace.mode, workspace.contact_hours) == (WorkspaceMode.LIVE, True)
    suspended = await engine.workspaces.update(workspace.id, WorkspaceUpdate(status="suspended"))  # type: ignore[arg-type]
    assert suspended.status is WorkspaceStatus.SUSPENDED
    assert await engine.workspaces.get(workspace.id) == suspended
    with pytest.raises(WorkspaceUnavailable):
        await engine.messages.send(workspace.id, NewMessage(to="+14155550101", body="x"))
    given_campaigns = await engine.campaigns.list(workspace.id, status="draft")  # type: ignore[arg-type]
    assert given_campaigns.total == 0
    with pytest.raises(InvalidRequest, match="must be one of active, suspended"):
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(status="asleep"))  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="status"):
        await engine.campaigns.list(workspace.id, status="asleep")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="channel"):
        await engine.campaigns.list(workspace.id, channel="fax")  # type: ignore[arg-type]
