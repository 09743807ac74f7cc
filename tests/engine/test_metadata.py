"""What applications attach to messages, calls and campaigns: their own ids, and metadata."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from outreach import (
    CampaignUpdate,
    InvalidRequest,
    NewAgent,
    NewCall,
    NewCallCampaign,
    NewMessage,
    NewSmsCampaign,
    Outreach,
    Workspace,
)
from outreach.events import CallEnded, CampaignStatusChanged, MessageStatusChanged
from outreach.http import parse_json, read_new_message
from outreach.protocols import SystemClock
from outreach.services.idempotency import json_of
from tests.engine.conftest import OpenStorage
from tests.engine.rig import given_workspace
from tests.engine.test_simulating import sandbox

pytestmark = pytest.mark.virtual_time

PHONE = "+14155550142"
DATA: Any = {"order": 42, "tags": ["a", None, True, 0.5], "nested": {"ä": "ö"}}


async def test_messages_calls_and_campaigns_keep_it_and_are_found_by_the_id(engine: Outreach) -> None:
    """In each list, in the workspace alone; a change of the caller's object changes nothing that is stored."""
    workspace, other = await given_workspace(engine), await given_workspace(engine)
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"))
    given = dict(DATA, tags=list(DATA["tags"]))
    own: Any = {"external_id": "o-1", "metadata": given}
    message = await engine.messages.send(workspace.id, NewMessage(to=PHONE, body="Hi", **own))
    call = await engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to=PHONE, **own))
    people = [{"phone_number": PHONE}]
    sms = (await engine.campaigns.create_sms(workspace.id, NewSmsCampaign(name="S", body="Hi", **own), people)).campaign
    voice = NewCallCampaign(name="C", agent_id=agent.id, **own)
    calling = (await engine.campaigns.create_call(workspace.id, voice, people)).campaign
    await engine.messages.send(workspace.id, NewMessage(to=PHONE, body="Hi"))
    await engine.campaigns.create_sms(workspace.id, NewSmsCampaign(name="S", body="Hi", external_id="o-2"), people)
    given["tags"].append("later")
    given["order"] = 43
    assert [(one.id, one.metadata) for one in await engine.messages.list(workspace.id, external_id="o-1")] == [
        (message.id, DATA)
    ]
    assert [(one.id, one.metadata) async for one in engine.calls.iter_all(workspace.id, external_id="o-1")] == [
        (call.id, DATA)
    ]
    found = await engine.campaigns.list(workspace.id, external_id="o-1")
    assert {(one.id, one.external_id) for one in found} == {(sms.id, "o-1"), (calling.id, "o-1")}
    assert [one.metadata for one in found] == [DATA, DATA]
    assert found.total == 2
    [only] = await engine.campaigns.list(workspace.id, external_id="o-1", channel="call", search="c")
    assert only.id == calling.id
    for nothing in (
        await engine.messages.list(other.id, external_id="o-1"),
        await engine.calls.list(other.id, external_id="o-1"),
        await engine.campaigns.list(other.id, external_id="o-1"),
        await engine.messages.list(workspace.id, external_id="O-1"),
    ):
        assert list(nothing) == []


@pytest.mark.parametrize(
    ("pair", "found"),
    [
        ("team=red", [0, 3]),
        ("team=7", [1, 2]),
        ("urgent=true", [0]),
        ("urgent=false", [1]),
        ("urgent=1", []),
        ("Ärger=a=b", [2]),
        ("Ärger=a", []),
        ("empty=", [2]),
        ("none=null", []),
        ("none=", []),
        ('say "hi"\\=x\ny', [3]),
        ("team=Red", []),
        ("inner=1", []),
        ('nested={"inner":1}', []),
        ("list=[7]", []),
        ("part=0.5", []),
        ("part=1.0", []),
        ("part=1", []),
        ("part=1e+16", []),
    ],
)
async def test_lists_find_by_a_pair_of_the_metadata(engine: Outreach, pair: str, found: list[int]) -> None:
    """A text, a whole number, true or false at the top level, written out; in the workspace alone."""
    workspace, other = await given_workspace(engine), await given_workspace(engine)
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"))
    made: dict[str, list[str]] = {"messages": [], "calls": [], "campaigns": []}
    rows: list[Any] = [
        {"team": "red", "urgent": True, "nested": {"inner": 1}, "part": 1.0},
        {"team": 7, "urgent": False, "none": None, "part": 1e16},
        {"team": "7", "Ärger": "a=b", "empty": "", "list": [7], "part": 0.5},
        {'say "hi"\\': "x\ny", "team": "red"},
        None,
    ]
    for position, data in enumerate(rows):
        message = await engine.messages.send(workspace.id, NewMessage(to=PHONE, body="Hi", metadata=data))
        person = f"{PHONE[:-1]}{position}"
        call = await engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to=person, metadata=data))
        new = NewSmsCampaign(name="S", body="Hi", metadata=data)
        campaign = (await engine.campaigns.create_sms(workspace.id, new, [{"phone_number": PHONE}])).campaign
        for kind, one in (("messages", message), ("calls", call), ("campaigns", campaign)):
            made[kind].append(one.id)
        # Of virtual time: lists are ordered by it.
        await anyio.sleep(1)
    lists: Any = {"messages": engine.messages, "calls": engine.calls, "campaigns": engine.campaigns}
    for kind, ids in made.items():
        wanted = [ids[position] for position in reversed(found)]
        assert [one.id async for one in lists[kind].iter_all(workspace.id, metadata=pair)] == wanted, kind
        assert list(await lists[kind].list(other.id, metadata=pair)) == []
    assert (await engine.campaigns.list(workspace.id, metadata=pair)).total == len(found)


async def test_filters_of_metadata_hold_with_the_others_and_page_by_page(engine: Outreach) -> None:
    """Each list goes on behind its last one; archived campaigns are found where they are asked for."""
    workspace = await given_workspace(engine)
    made = []
    for number in range(5):
        new = NewSmsCampaign(name=f"S{number % 2}", body="Hi", external_id=f"o-{number % 2}", metadata={"team": 7})
        made.append((await engine.campaigns.create_sms(workspace.id, new, [{"phone_number": PHONE}])).campaign.id)
        # Of virtual time: lists are ordered by it.
        await anyio.sleep(1)
    first = await engine.campaigns.list(workspace.id, metadata="team=7", limit=2)
    second = await engine.campaigns.list(workspace.id, metadata="team=7", limit=2, after=first.next)
    assert [one.id for one in (*first, *second)] == made[:0:-1]
    assert (first.total, second.total) == (5, 5)
    filters: list[Any] = [{"external_id": "o-1"}, {"search": "s1"}, {"channel": "sms", "search": "S1"}]
    for others in filters:
        found = await engine.campaigns.list(workspace.id, metadata="team=7", **others)
        assert [one.id for one in found] == [made[3], made[1]]
        assert list(await engine.campaigns.list(workspace.id, metadata="team=8", **others)) == []
    await engine.campaigns.archive(workspace.id, made[0])
    for archived, ids in ((False, made[:0:-1]), (True, made[:1])):
        found = await engine.campaigns.list(workspace.id, metadata="team=7", archived=archived)
        assert [one.id for one in found] == ids
    for name in ("a", "b"):
        own: Any = {"external_id": name, "metadata": {"team": 7}}
        await engine.messages.send(workspace.id, NewMessage(to=PHONE, body="Hi", **own))
    [only] = await engine.messages.list(workspace.id, metadata="team=7", external_id="b")
    assert only.external_id == "b"
    assert [one.external_id async for one in engine.messages.iter_all(workspace.id, metadata="team=7")] == ["b", "a"]


async def test_campaigns_are_found_by_the_id_page_by_page(engine: Outreach, workspace: Workspace) -> None:
    """Newest first; archived ones only where they are asked for."""
    made = []
    for _ in range(5):
        new = NewSmsCampaign(name="S", body="Hi", external_id="o-1")
        made.append((await engine.campaigns.create_sms(workspace.id, new, [{"phone_number": PHONE}])).campaign.id)
        await anyio.sleep(1)
    first = await engine.campaigns.list(workspace.id, external_id="o-1", limit=2)
    second = await engine.campaigns.list(workspace.id, external_id="o-1", limit=2, after=first.next)
    assert [one.id for one in (*first, *second)] == made[:0:-1]
    assert (first.total, second.total) == (5, 5)
    await engine.campaigns.archive(workspace.id, made[0])
    found = {
        archived: [
            one.id async for one in engine.campaigns.iter_all(workspace.id, external_id="o-1", archived=archived)
        ]
        for archived in (False, True)
    }
    assert found == {False: made[:0:-1], True: made[:1]}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([], "object"),
        ({"a": "x" * 4089}, "has 4097"),
        ({"a": float("nan")}, "64 bits"),
        ({"a": 2**63}, "64 bits"),
        ({1: "a"}, "strings"),
        ({"a": "\x00"}, "NUL"),
        ({"\ud800": 1}, "surrogate"),
        ({"a": {1, 2}}, "JSON values"),
    ],
)
def test_what_cannot_be_kept_is_refused(wrong: Any, words: str) -> None:
    """It is a JSON object of at most 4,096 bytes, with numbers of 64 bits; as nested as a body may be."""
    with pytest.raises(InvalidRequest, match=words) as raised:
        NewMessage(to=PHONE, body="Hi", metadata=wrong)
    assert [one.path for one in raised.value.details] == ["metadata"]
    assert NewMessage(to=PHONE, body="Hi", metadata={"a": "x" * 4088}).metadata == {"a": "x" * 4088}
    deep: Any = {}
    for _ in range(63):
        deep = {"a": deep}
    assert NewMessage(to=PHONE, body="Hi", metadata=deep).metadata == deep
    with pytest.raises(InvalidRequest, match="64 levels"):
        NewMessage(to=PHONE, body="Hi", metadata={"a": deep})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("external_id", wrong) for wrong in ("", "x" * 256, "a\x00", 7)),
        *(("metadata", wrong) for wrong in ("", "team", "=" * 256, "a=\x00", 7)),
    ],
)
async def test_no_list_is_filtered_by_what_nothing_can_have(engine: Outreach, name: str, wrong: Any) -> None:
    """An id that has no place on a model either, or what is no pair."""
    workspace = await given_workspace(engine)
    lists: list[Any] = [engine.messages.list, engine.calls.list, engine.campaigns.list]
    for listed in lists:
        with pytest.raises(InvalidRequest) as raised:
            await listed(workspace.id, **{name: wrong})
        assert [one.path for one in raised.value.details] == [name]


@pytest.mark.parametrize("wrong", ["", "x" * 256, "a\x00", 7])
def test_an_id_that_nothing_can_have_is_refused(wrong: Any) -> None:
    """Where something is made."""
    with pytest.raises(InvalidRequest, match="external_id"):
        NewSmsCampaign(name="S", body="Hi", external_id=wrong)


def test_numbers_of_a_body_stay_numbers() -> None:
    """Those that 64 bits hold; others are refused, because they would come back rounded."""

    def read(number: str) -> Any:
        body = f'{{"to":"{PHONE}","body":"Hi","metadata":{{"n":[{{"m":{number}}}]}}}}'
        found = read_new_message(parse_json(body.encode())).metadata
        assert found is not None
        return found["n"][0]["m"]

    assert [read(one) for one in ("7", "-0", "1.10", "1e3", "0.1")] == [7, 0, 1.1, 1000, 0.1]
    for wrong in ("1e999", "1e-999", "0.12345678901234567890", "9223372036854775809", "1e99999999999999999999"):
        with pytest.raises(InvalidRequest, match="64 bits"):
            read(wrong)
    nested = '{"a":' * 70 + "1" + "}" * 70
    with pytest.raises(InvalidRequest, match="64 levels"):
        read(nested)


async def test_events_have_it(open_storage: OpenStorage) -> None:
    """Those of single messages, single calls and campaigns."""
    async with sandbox(open_storage) as box:
        engine, workspace_id = box.engine, box.workspace_id
        async with engine.events.subscribe(CallEnded, CampaignStatusChanged, MessageStatusChanged) as stream:
            await engine.campaigns.create_sms(
                workspace_id,
                NewSmsCampaign(name="S", body="Hi", external_id="c", metadata=DATA),
                [{"phone_number": PHONE}],
            )
            message = NewMessage(to=PHONE, body="Hi", external_id="m", metadata=DATA)
            await engine.messages.send(workspace_id, message)
            call = NewCall(agent_id=box.agent_id, to=PHONE, external_id="k", metadata=DATA)
            await engine.calls.create(workspace_id, call)
            with anyio.fail_after(3600):
                told: dict[type, Any] = {}
                while len(told) < 3:
                    event = await anext(stream)
                    told[type(event)] = (event.external_id, event.metadata)
    assert told == {
        CampaignStatusChanged: ("c", DATA),
        MessageStatusChanged: ("m", DATA),
        CallEnded: ("k", DATA),
    }


async def test_a_change_of_what_was_read_changes_nothing_that_is_stored(open_storage: OpenStorage) -> None:
    """Also not in a campaign that is remembered between two reads."""
    async with Outreach(open_storage(SystemClock())) as engine:
        workspace = await given_workspace(engine)
        new = NewSmsCampaign(name="S", body="Hi", metadata={"a": 1})
        campaign = (await engine.campaigns.create_sms(workspace.id, new, [{"phone_number": PHONE}])).campaign
        for _ in range(2):
            read: Any = await engine.campaigns.get(workspace.id, campaign.id)
            read.metadata["b"] = 2
        await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(description="Spring"))
        assert (await engine.campaigns.get(workspace.id, campaign.id)).metadata == {"a": 1}


async def test_copies_have_the_metadata_and_no_id(engine: Outreach, workspace: Workspace) -> None:
    """The id is that of the earlier campaign."""
    new = NewSmsCampaign(name="S", body="Hi", external_id="o-1", metadata=DATA)
    campaign = (await engine.campaigns.create_sms(workspace.id, new, [{"phone_number": PHONE}])).campaign
    clone = (await engine.campaigns.clone(workspace.id, campaign.id)).campaign
    assert (clone.external_id, clone.metadata) == (None, DATA)


async def test_the_same_key_needs_the_same_metadata(engine: Outreach, workspace: Workspace) -> None:
    """Without any, a request is compared as before these fields existed."""

    async def send(**own: Any) -> str:
        new = NewMessage(to=PHONE, body="Hi", **own)
        return (await engine.messages.send(workspace.id, new, idempotency_key="order-42")).id

    assert await send(metadata={"a": 1}) == await send(metadata={"a": 1})
    with pytest.raises(InvalidRequest, match="idempotency_key"):
        await send(metadata={"a": 2})
    assert json_of(NewMessage(to=PHONE, body="Hi")) == (
        b'{"body":"Hi","carrier":null,"from_number":null,"to":"+14155550142"}'
    )


async def test_a_purge_erases_it_with_the_person(open_storage: OpenStorage) -> None:
    """It may name them."""
    async with sandbox(open_storage) as box:
        engine, workspace_id = box.engine, box.workspace_id
        own: Any = {"external_id": "o-1", "metadata": DATA}
        message = await engine.messages.send(workspace_id, NewMessage(to=PHONE, body="Hi", **own))
        call = await engine.calls.create(workspace_id, NewCall(agent_id=box.agent_id, to=PHONE, **own))
        await anyio.sleep(3600)
        await engine.erasure.purge(workspace_id, PHONE)
        for one in (await engine.messages.get(workspace_id, message.id), await engine.calls.get(workspace_id, call.id)):
            assert (one.external_id, one.metadata) == (None, None)
