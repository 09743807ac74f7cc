"""The contract of call records and single messages."""

from __future__ import annotations

import itertools
from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest

from outreach.models.message import InboundMessage
from outreach.models.states import ENDED_CALL_STATUSES, CallStatus, MessageStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from outreach.testing.builders import NOW, make_agent, make_call, make_inbound, make_message, new_id
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    as_key,
    awkward_moments,
    awkward_texts,
    given_recipients,
    given_rows,
    write_rows,
)


async def given_agent(storage: Storage, workspace_id: str = THIS_WORKSPACE) -> str:
    """Write an agent and return its identifier."""
    agent = make_agent(workspace_id=workspace_id)
    await given_rows(storage, agent)
    return agent.id


class CallsContract(ContractBase):
    """Call records and single messages."""

    @awkward_texts
    async def test_a_call_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """Every text comes back to the code point; empty is not None."""
        agent_id = await given_agent(storage)
        texts = dict.fromkeys(("provider_call_id", "from_number", "answered_by", "error", "summary"), text)
        variables = {"z": text, text: "1", "a": ""}
        full = make_call(agent_id=agent_id, to=as_key(text), variables=variables, outcome="voicemail", **texts)
        bare = make_call(agent_id=agent_id)
        await given_rows(storage, full, bare)
        read = await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, full.id))
        assert read == full
        assert list(read.variables) == list(variables)
        assert await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, bare.id)) == bare

    @awkward_moments
    @pytest.mark.parametrize("status", CallStatus)
    async def test_a_call_update_replaces_every_field(
        self, storage: Storage, status: CallStatus, moment: datetime
    ) -> None:
        """Moments come back to the microsecond."""
        campaign = await given_recipients(storage, 1)
        call = make_call(agent_id=await given_agent(storage), campaign_id=campaign.id, position=0)
        changed = attrs.evolve(
            call,
            provider_call_id="P1",
            status=status,
            outcome="positive",
            variables={"name": "Ann"},
            attempt=MAX_INTEGER,
            tries=MAX_INTEGER,
            dialed_at=moment,
            answered_at=moment + TICK,
            ended_at=moment + 2 * TICK,
            cost=Decimal("0.1400"),
            cost_currency="USD",
            judged_at=moment + 3 * TICK,
        )
        await given_rows(storage, call)
        await storage.write(lambda tx: tx.calls.update(changed))
        assert await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, call.id)) == changed

    @awkward_texts
    async def test_a_transcript_is_the_longest_that_was_stored(self, storage: Storage, text: str) -> None:
        """Of this workspace's call alone, in a campaign or not."""
        campaign = await given_recipients(storage, 1)
        agent_id = await given_agent(storage)
        calls = [make_call(agent_id=agent_id), make_call(agent_id=agent_id, campaign_id=campaign.id, position=0)]
        for call in calls:
            await given_rows(storage, call)
            for content in (text, text + text, text):
                await storage.write(
                    lambda tx, call=call, content=content: tx.calls.put_transcript(call, content)  # type: ignore[misc]
                )
        ids = [call.id for call in calls]
        known = dict.fromkeys(ids, text + text)
        assert await storage.read(lambda tx: tx.calls.transcripts(THIS_WORKSPACE, [*ids, new_id()])) == known
        assert await storage.read(lambda tx: tx.calls.transcripts(THIS_WORKSPACE, [])) == {}
        assert await storage.read(lambda tx: tx.calls.transcripts(OTHER_WORKSPACE, ids)) == {}

    async def test_lists_are_filtered_by_all_that_is_given(self, storage: Storage) -> None:
        """Newest first, below the cursor; a call without an outcome has the outcome `unknown`."""
        campaign = await given_recipients(storage, 1)
        agents = [await given_agent(storage) for _ in range(2)]
        choices: list[Any] = [
            [None, campaign.id],
            agents,
            [CallStatus.COMPLETED, CallStatus.BUSY],
            ["callback", None],
        ]
        calls = [
            make_call(
                id=f"{number:02d}", agent_id=agent, campaign_id=of, position=None if of is None else 0, status=status,
                outcome=outcome,
            )
            for number, (of, agent, status, outcome) in enumerate(itertools.product(*choices))
        ]  # fmt: skip
        await given_rows(storage, *calls)
        wanted = itertools.product(
            [None, campaign.id], [None, agents[0]], [None, "busy"], [None, "callback", "unknown"]
        )
        for of, agent, status, outcome in wanted:
            given: dict[str, Any] = {
                "campaign_id": of,
                "agent_id": agent,
                "status": None if status is None else CallStatus(status),
                "outcome": outcome,
            }
            found = await storage.read(
                lambda tx, given=given: tx.calls.list(THIS_WORKSPACE, **given, after="14", limit=100)  # type: ignore[misc]
            )
            assert [call.id for call in found] == [
                call.id
                for call in reversed(calls)
                if call.id < "14"
                and of in {None, call.campaign_id}
                and agent in {None, call.agent_id}
                and status in {None, call.status}
                and outcome in {None, call.outcome or "unknown"}
            ]
        assert await storage.read(lambda tx: tx.calls.list(OTHER_WORKSPACE, limit=9)) == []

    async def test_variables_are_nobody_elses_to_change(self, storage: Storage) -> None:
        """They are copied when they are written and when they are read."""
        variables: dict[str, str] = {"name": "Ann"}
        call = make_call(agent_id=await given_agent(storage), variables=variables)
        await given_rows(storage, call)
        variables["name"] = "Bob"
        for _ in range(2):
            read: Any = await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, call.id))
            assert read.variables == {"name": "Ann"}
            read.variables["name"] = "Eve"

    async def test_a_call_is_got_within_its_workspace_and_found_without(self, storage: Storage) -> None:
        """`get` names the workspace; `find` answers for whatever workspace."""
        call = make_call(agent_id=await given_agent(storage))
        await given_rows(storage, call)
        assert await storage.read(lambda tx: tx.calls.get(OTHER_WORKSPACE, call.id)) is None
        assert await storage.read(lambda tx: tx.calls.find(call.id)) == call
        assert await storage.read(lambda tx: tx.calls.find(new_id())) is None
        assert await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, new_id())) is None

    async def test_a_call_is_inserted_once_and_updated_in_its_workspace(self, storage: Storage) -> None:
        """A second insert raises AlreadyExists, an absent or foreign update LookupError."""
        call = make_call(agent_id=await given_agent(storage))
        await given_rows(storage, call)
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.calls.insert(attrs.evolve(call, attempt=2)))
        for absent in (attrs.evolve(call, id=new_id()), attrs.evolve(call, workspace_id=OTHER_WORKSPACE, attempt=2)):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, absent=absent: tx.calls.update(absent))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.calls.find(call.id)) == call

    async def test_calls_are_listed_newest_first(self, storage: Storage) -> None:
        """By id, descending, of one workspace or one campaign, at most `limit`."""
        agent_id = await given_agent(storage)
        there = await given_agent(storage, OTHER_WORKSPACE)
        campaign = await given_recipients(storage, 1)
        single = {"agent_id": agent_id}
        of_campaign = {**single, "campaign_id": campaign.id, "position": 0}
        made = [make_call(**fields) for fields in (single, of_campaign, single, of_campaign)]
        made.sort(key=lambda call: call.id)

        async def listed(**wanted: Any) -> list[Any]:
            return list(await storage.read(lambda tx: tx.calls.list(THIS_WORKSPACE, **{"limit": 9, **wanted})))

        await given_rows(
            storage, made[2], made[0], made[3], made[1], make_call(workspace_id=OTHER_WORKSPACE, agent_id=there)
        )
        assert await listed() == made[::-1]
        assert await listed(limit=2) == [made[3], made[2]]
        assert await listed(after=made[2].id) == [made[1], made[0]]
        theirs = [call for call in made[::-1] if call.campaign_id is not None]
        assert await listed(campaign_id=campaign.id) == theirs
        assert await listed(campaign_id=campaign.id, after=theirs[0].id) == theirs[1:]

    async def test_messages_are_listed_newest_first(self, storage: Storage) -> None:
        """By id, descending, of one workspace, at most `limit`."""
        made = sorted((make_message() for _ in range(4)), key=lambda message: message.id)

        async def listed(**wanted: Any) -> list[Any]:
            return list(await storage.read(lambda tx: tx.messages.list(THIS_WORKSPACE, **{"limit": 9, **wanted})))

        await given_rows(storage, made[2], made[0], made[3], made[1], make_message(workspace_id=OTHER_WORKSPACE))
        assert await listed() == made[::-1]
        assert await listed(limit=2) == [made[3], made[2]]
        assert await listed(after=made[2].id) == [made[1], made[0]]

    async def test_a_provider_id_finds_the_newest_call(self, storage: Storage) -> None:
        """By (created_at, id), within the workspace."""
        agent_id = await given_agent(storage)
        shared: dict[str, Any] = {"agent_id": agent_id, "provider_call_id": "P1"}
        older, newer, twin = (make_call(**shared, created_at=moment) for moment in (NOW - TICK, NOW, NOW))
        await given_rows(storage, twin, older, newer)
        assert await storage.read(lambda tx: tx.calls.by_provider_id(THIS_WORKSPACE, "P1")) == twin
        assert await storage.read(lambda tx: tx.calls.by_provider_id(OTHER_WORKSPACE, "P1")) is None
        assert await storage.read(lambda tx: tx.calls.by_provider_id(THIS_WORKSPACE, "P2")) is None
        assert await storage.read(lambda tx: tx.calls.by_provider_id(THIS_WORKSPACE, "")) is None

    @pytest.mark.parametrize("status", CallStatus)
    async def test_a_call_is_open_between_two_until_it_has_ended(self, storage: Storage, status: CallStatus) -> None:
        """The agent, the number and the workspace must all be the same."""
        agent_id = await given_agent(storage)
        call = make_call(agent_id=agent_id, to="+15550000001", status=status)
        await given_rows(storage, call)
        expected = None if status in ENDED_CALL_STATUSES else call
        assert (
            await storage.read(lambda tx: tx.calls.open_call_between(THIS_WORKSPACE, agent_id, "+15550000001"))
            == expected
        )
        assert await storage.read(lambda tx: tx.calls.open_of_agent(THIS_WORKSPACE, agent_id)) == expected
        assert await storage.read(lambda tx: tx.calls.open_of_agent(OTHER_WORKSPACE, agent_id)) is None
        assert await storage.read(lambda tx: tx.calls.open_of_agent(THIS_WORKSPACE, new_id())) is None
        for other in (
            (OTHER_WORKSPACE, agent_id, call.to),
            (THIS_WORKSPACE, new_id(), call.to),
            (THIS_WORKSPACE, agent_id, "+15550000002"),
        ):
            assert await storage.read(lambda tx, other=other: tx.calls.open_call_between(*other)) is None  # type: ignore[misc]

    async def test_the_oldest_open_call_is_returned(self, storage: Storage) -> None:
        """By (created_at, id); an ended one makes way for the next."""
        agent_id = await given_agent(storage)
        moments = (NOW + TICK, NOW, NOW - TICK)
        late, middle, ended = (make_call(agent_id=agent_id, to="+1555", created_at=moment) for moment in moments)

        def insert(tx: Transaction) -> None:
            write_rows(tx, late, ended, middle)
            tx.calls.update(attrs.evolve(ended, status=CallStatus.BUSY, ended_at=NOW))

        await storage.write(insert)
        assert await storage.read(lambda tx: tx.calls.open_call_between(THIS_WORKSPACE, agent_id, "+1555")) == middle

    @awkward_texts
    async def test_a_message_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """Every text comes back to the code point; empty is not None; other workspaces do not see it."""
        full = make_message(to=as_key(text), from_number=text, body=text, reason=text, provider_id=text)
        bare = make_message(from_number=None, purpose="help", send_until=NOW + TICK)
        await given_rows(storage, full, bare)
        assert await storage.read(lambda tx: tx.messages.get(THIS_WORKSPACE, full.id)) == full
        assert await storage.read(lambda tx: tx.messages.get(THIS_WORKSPACE, bare.id)) == bare
        assert await storage.read(lambda tx: tx.messages.get(OTHER_WORKSPACE, full.id)) is None
        assert await storage.read(lambda tx: tx.messages.get(THIS_WORKSPACE, new_id())) is None

    @awkward_moments
    @pytest.mark.parametrize("status", MessageStatus)
    async def test_a_message_update_replaces_every_field(
        self, storage: Storage, status: MessageStatus, moment: datetime
    ) -> None:
        """Moments come back to the microsecond."""
        message = make_message()
        changed = attrs.evolve(
            message,
            carrier="vonage",
            status=status,
            attempts=MAX_INTEGER,
            tries=MAX_INTEGER,
            segments=MAX_INTEGER,
            provider_id="SM1",
            reason="filtered",
            ended_at=moment,
            purpose="opt_out_confirmation",
            send_until=moment,
        )
        await given_rows(storage, message)
        await storage.write(lambda tx: tx.messages.update(changed))
        assert await storage.read(lambda tx: tx.messages.get(THIS_WORKSPACE, message.id)) == changed

    async def test_a_message_is_inserted_once_and_updated_in_its_workspace(self, storage: Storage) -> None:
        """A second insert raises AlreadyExists, an absent or foreign update LookupError."""
        message = make_message()
        await given_rows(storage, message)
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.messages.insert(attrs.evolve(message, body="Other")))
        for absent in (make_message(), attrs.evolve(message, workspace_id=OTHER_WORKSPACE, body="Stolen")):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, absent=absent: tx.messages.update(absent))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.messages.get(THIS_WORKSPACE, message.id)) == message

    @awkward_texts
    async def test_what_people_wrote_back_is_listed_newest_first(self, storage: Storage, text: str) -> None:
        """By (received_at, id), both descending, of one workspace, at most `limit`."""
        made = [make_inbound(body=text, received_at=NOW + TICK * later) for later in (0, 1, 1, -1)]
        made[1:] = [attrs.evolve(message, unclear=True) for message in made[1:]]

        def place_of(message: InboundMessage) -> tuple[datetime, str]:
            return message.received_at, message.id

        await given_rows(storage, *made, make_inbound(workspace_id=OTHER_WORKSPACE, unclear=True))
        wanted = [made[2], made[1], made[0], made[3]]
        assert list(await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE))) == wanted
        assert list(await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE, limit=2))) == wanted[:2]
        after = await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE, after=place_of(made[1]), limit=9))
        assert list(after) == wanted[2:]
        assert list(await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE, after=place_of(made[3])))) == []
        assert await storage.read(lambda tx: tx.inbound.get(THIS_WORKSPACE, made[1].id)) == made[1]
        assert await storage.read(lambda tx: tx.inbound.get(OTHER_WORKSPACE, made[1].id)) is None
        unclear = [made[2], made[1], made[3]]
        after = await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE, unclear=True, after=place_of(made[2])))
        assert list(after) == unclear[1:]
        assert list(await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE, unclear=True))) == unclear
        assert (
            list(await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE, unclear=True, limit=1))) == unclear[:1]
        )

    @awkward_texts
    async def test_a_message_of_a_carrier_is_taken_in_once(self, storage: Storage, text: str) -> None:
        """(workspace, provider, its identifier) is unique; what has no identifier comes as often as it comes."""
        first = make_inbound(provider=as_key(text), provider_id=text, keyword="stop")
        others = [
            make_inbound(provider="telnyx", provider_id=first.provider_id),
            make_inbound(workspace_id=OTHER_WORKSPACE, provider=as_key(text), provider_id=text),
            *(
                make_inbound(provider=provider, provider_id=None)
                for provider in (as_key(text), as_key(text), None, None)
            ),
            *(make_inbound(provider=None, provider_id=text) for _ in range(2)),
        ]

        def insert(tx: Transaction) -> None:
            write_rows(tx, first, *others)
            with pytest.raises(AlreadyExists):
                tx.inbound.insert(attrs.evolve(first, id=new_id(), body="Again"))
            with pytest.raises(AlreadyExists):
                tx.inbound.insert(attrs.evolve(first, provider_id="another"))

        await storage.write(insert)
        ours = [first, *(message for message in others if message.workspace_id == THIS_WORKSPACE)]
        assert list(await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE))) == ours[::-1]

    @awkward_moments
    async def test_the_last_of_each_keyword_is_known_by_when_it_was_written(
        self, storage: Storage, moment: datetime
    ) -> None:
        """By `written_at` and not by arrival, of one number in one workspace; None when it never was."""
        phone = "+14155550123"
        written: list[dict[str, Any]] = [
            {"keyword": "stop", "written_at": moment},
            {"keyword": "stop", "written_at": moment - TICK},
            {"keyword": "start", "written_at": moment - 2 * TICK},
            {"keyword": None, "written_at": moment + TICK},
            {"keyword": "stop", "written_at": moment + TICK, "from_number": "+14155550124"},
            {"keyword": "stop", "written_at": moment + TICK, "workspace_id": OTHER_WORKSPACE},
        ]
        for later, fields in enumerate(written):
            await given_rows(
                storage, make_inbound(**{"from_number": phone, "received_at": NOW + later * TICK, **fields})
            )
        assert await storage.read(lambda tx: tx.inbound.last_keyword(THIS_WORKSPACE, phone, "stop")) == moment
        assert (
            await storage.read(lambda tx: tx.inbound.last_keyword(THIS_WORKSPACE, phone, "start")) == moment - 2 * TICK
        )
        assert await storage.read(lambda tx: tx.inbound.last_keyword(THIS_WORKSPACE, phone, "help")) is None
        assert await storage.read(lambda tx: tx.inbound.last_keyword(OTHER_WORKSPACE, phone, "start")) is None

    @awkward_moments
    async def test_the_last_unclear_message_is_known_by_when_it_was_written(
        self, storage: Storage, moment: datetime
    ) -> None:
        """By `written_at` and not by arrival, of one number in one workspace; None when there never was one."""
        phone = "+14155550123"
        written: list[dict[str, Any]] = [
            {"unclear": True, "written_at": moment},
            {"unclear": True, "written_at": moment - TICK},
            {"unclear": False, "written_at": moment + TICK},
            {"unclear": True, "written_at": moment + TICK, "from_number": "+14155550124"},
            {"unclear": True, "written_at": moment + TICK, "workspace_id": OTHER_WORKSPACE},
        ]
        for later, fields in enumerate(written):
            await given_rows(
                storage, make_inbound(**{"from_number": phone, "received_at": NOW + later * TICK, **fields})
            )
        assert await storage.read(lambda tx: tx.inbound.last_unclear(THIS_WORKSPACE, phone)) == moment
        assert await storage.read(lambda tx: tx.inbound.last_unclear(OTHER_WORKSPACE, "+14155550124")) is None

    @awkward_moments
    async def test_the_last_reply_of_a_purpose_to_a_number_is_known(self, storage: Storage, moment: datetime) -> None:
        """The newest by when it was made; no other number's, purpose's or workspace's, nor an ordinary message."""
        phone = "+14155550123"
        made: list[dict[str, Any]] = [
            {"purpose": "help", "created_at": moment},
            {"purpose": "help", "created_at": moment - TICK},
            {"purpose": "opt_out_confirmation", "created_at": moment + TICK},
            {"purpose": "message", "created_at": moment + TICK},
            {"purpose": "help", "created_at": moment + TICK, "to": "+14155550124"},
            {"purpose": "help", "created_at": moment + TICK, "workspace_id": OTHER_WORKSPACE},
        ]
        await given_rows(storage, *(make_message(**{"to": phone, **fields}) for fields in made))
        assert await storage.read(lambda tx: tx.messages.last_reply(THIS_WORKSPACE, phone, "help")) == moment
        for until, last in ((moment, moment), (moment - TICK, moment - TICK), (moment - 2 * TICK, None)):
            found = await storage.read(
                lambda tx, until=until: tx.messages.last_reply(THIS_WORKSPACE, phone, "help", until=until)  # type: ignore[misc]
            )
            assert found == last
        assert (
            await storage.read(lambda tx: tx.messages.last_reply(THIS_WORKSPACE, phone, "opt_in_confirmation")) is None
        )
        assert await storage.read(lambda tx: tx.messages.last_reply(OTHER_WORKSPACE, "+14155550124", "help")) is None

    async def test_a_reply_is_known_by_its_number_and_its_moment(self, storage: Storage) -> None:
        """At or after the moment, from that number, in that workspace."""
        reply = make_inbound()
        await given_rows(storage, reply)
        asked = {
            (THIS_WORKSPACE, reply.from_number, NOW): True,
            (THIS_WORKSPACE, reply.from_number, NOW - TICK): True,
            (THIS_WORKSPACE, reply.from_number, NOW + TICK): False,
            (THIS_WORKSPACE, "+14155550101", NOW): False,
            (OTHER_WORKSPACE, reply.from_number, NOW): False,
        }
        heard = await storage.read(lambda tx: [tx.inbound.replied_since(*question) for question in asked])
        assert heard == list(asked.values())
