"""The contract of the reads of everything with one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any, Final

from outreach.models.states import TrailStepKind
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_call,
    make_campaign,
    make_dispatch,
    make_inbound,
    make_message,
    make_prepared,
    make_trail_entry,
    new_id,
)
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    given_campaign,
    pending,
    publish,
    write_rows,
)

NEW, OLD = "+5511987654321", "+551187654321"
"""Two spellings of one Brazilian mobile."""

_OTHER: Final = "+5511987654322"
_PLACES: Final = tuple(product((NOW, NOW + TICK, NOW - TICK), (NEW, OLD, NEW)))
"""Moments and numbers of what is written, some of it at one moment."""

_Place = tuple[datetime, str, int]
_Read = Callable[[Transaction, str, _Place | None, int], Sequence[_Place]]


async def _check_pages(storage: Storage, read: _Read, written: Sequence[_Place]) -> None:
    """Check that a read has these places by either spelling, newest first, and each place behind another once."""
    wanted = sorted(written, reverse=True)
    moments = {at for at, _, _ in wanted}

    def check(tx: Transaction) -> None:
        for phone in (NEW, OLD):
            assert read(tx, phone, None, 100) == wanted
            for count, place in enumerate(wanted, start=1):
                assert read(tx, phone, None, count) == wanted[:count]
                assert read(tx, phone, place, 100) == wanted[count:]
                assert read(tx, phone, place, 2) == wanted[count : count + 2]
            for at in moments:
                assert read(tx, phone, (at, "~", MAX_INTEGER), 100) == [one for one in wanted if one[0] <= at]
                assert read(tx, phone, (at, "", -1), 100) == [one for one in wanted if one[0] < at]
        assert read(tx, "+14155550100", None, 100) == []

    await storage.read(check)


class HistoryContract(ContractBase):
    """The reads of everything with one number."""

    async def test_messages_of_campaigns_are_read_by_person(self, storage: Storage) -> None:
        """No single message and no call, and nothing of another person or workspace."""
        campaign = await given_campaign(storage, *(make_prepared() for _ in range(len(_PLACES) + 2)))
        theirs = make_campaign(workspace_id=OTHER_WORKSPACE)
        single, agent = make_message(to=NEW), make_agent()
        call = make_call(agent_id=agent.id, to=NEW)

        def write(tx: Transaction) -> list[_Place]:
            def insert(position: int, **changes: Any) -> _Place:
                dispatch = make_dispatch(campaign_id=campaign.id, position=position, **changes)
                tx.dispatches.insert(dispatch)
                return dispatch.created_at, dispatch.id, 0

            found = [insert(index, to=to, created_at=at) for index, (at, to) in enumerate(_PLACES)]
            insert(len(_PLACES), to=_OTHER)
            publish(tx, theirs, pending(make_prepared(phone=NEW)))
            tx.dispatches.insert(make_dispatch(to=NEW, workspace_id=OTHER_WORKSPACE, campaign_id=theirs.id, position=0))
            tx.messages.insert(single)
            tx.dispatches.insert(make_dispatch(to=NEW, message_id=single.id))
            tx.agents.insert(agent)
            tx.calls.insert(call)
            tx.dispatches.insert(make_dispatch(to=NEW, channel="call", call_id=call.id, provider="simulator"))
            return found

        def read(tx: Transaction, phone: str, after: _Place | None, limit: int) -> Sequence[_Place]:
            found = tx.dispatches.to_person(THIS_WORKSPACE, phone, after=after, limit=limit)
            return [(one.created_at, one.id, 0) for one in found]

        await _check_pages(storage, read, await storage.write(write))

    async def test_single_messages_are_read_by_person(self, storage: Storage) -> None:
        """Answers to keywords too."""

        def write(tx: Transaction) -> list[_Place]:
            sent = [make_message(to=to, created_at=at) for at, to in _PLACES]
            sent.append(make_message(to=NEW, purpose="help"))
            write_rows(tx, *sent, make_message(to=_OTHER), make_message(to=NEW, workspace_id=OTHER_WORKSPACE))
            return [(one.created_at, one.id, 0) for one in sent]

        def read(tx: Transaction, phone: str, after: _Place | None, limit: int) -> Sequence[_Place]:
            found = tx.messages.to_person(THIS_WORKSPACE, phone, after=after, limit=limit)
            return [(one.created_at, one.id, 0) for one in found]

        await _check_pages(storage, read, await storage.write(write))

    async def test_calls_are_read_by_person(self, storage: Storage) -> None:
        """Of any agent of the workspace."""

        def write(tx: Transaction) -> list[_Place]:
            agents = [make_agent(), make_agent(), make_agent(workspace_id=OTHER_WORKSPACE)]
            write_rows(tx, *agents)
            placed = [
                make_call(agent_id=agents[index % 2].id, to=to, created_at=at) for index, (at, to) in enumerate(_PLACES)
            ]
            theirs = make_call(agent_id=agents[2].id, to=NEW, workspace_id=OTHER_WORKSPACE)
            write_rows(tx, *placed, make_call(agent_id=agents[0].id, to=_OTHER), theirs)
            return [(one.created_at, one.id, 0) for one in placed]

        def read(tx: Transaction, phone: str, after: _Place | None, limit: int) -> Sequence[_Place]:
            found = tx.calls.to_person(THIS_WORKSPACE, phone, after=after, limit=limit)
            return [(one.created_at, one.id, 0) for one in found]

        await _check_pages(storage, read, await storage.write(write))

    async def test_inbound_messages_are_read_by_person(self, storage: Storage) -> None:
        """By when they arrived, not by when they were written."""

        def write(tx: Transaction) -> list[_Place]:
            received = [
                make_inbound(from_number=number, received_at=at, written_at=NOW - timedelta(hours=index))
                for index, (at, number) in enumerate(_PLACES)
            ]
            theirs = make_inbound(from_number=NEW, workspace_id=OTHER_WORKSPACE)
            write_rows(tx, *received, make_inbound(from_number=_OTHER), theirs)
            return [(one.received_at, one.id, 0) for one in received]

        def read(tx: Transaction, phone: str, after: _Place | None, limit: int) -> Sequence[_Place]:
            found = tx.inbound.from_person(THIS_WORKSPACE, phone, after=after, limit=limit)
            return [(one.received_at, one.id, 0) for one in found]

        await _check_pages(storage, read, await storage.write(write))

    async def test_opt_outs_are_read_by_person(self, storage: Storage) -> None:
        """And opt-ins; no other step of the trail."""
        kinds = (TrailStepKind.OPTED_OUT, TrailStepKind.OPTED_IN)
        entries = [
            make_trail_entry(at=at, phone=phone, what=kinds[index % 2]) for index, (at, phone) in enumerate(_PLACES)
        ]

        def write(tx: Transaction) -> list[_Place]:
            others = [
                make_trail_entry(phone=NEW, what=TrailStepKind.REPLIED),
                make_trail_entry(phone=_OTHER),
                make_trail_entry(phone=NEW, workspace_id=OTHER_WORKSPACE),
            ]
            write_rows(tx, *others, *entries)
            return []

        await storage.write(write)
        found = await storage.read(lambda tx: tx.trail.between(THIS_WORKSPACE, 0, MAX_INTEGER))
        written = [(one.at, "", one.number) for one in found[-len(entries) :]]

        def read(tx: Transaction, phone: str, after: _Place | None, limit: int) -> Sequence[_Place]:
            found = tx.trail.opt_outs_of_person(THIS_WORKSPACE, phone, after=after, limit=limit)
            return [(one.at, "", one.number) for one in found]

        await _check_pages(storage, read, written)

    async def test_places_in_campaigns_are_read_by_person(self, storage: Storage) -> None:
        """By when the campaign was created; all of its places, and none of a campaign that is loading."""

        def write(tx: Transaction) -> dict[str, datetime]:
            ours = [make_campaign(id=new_id(), created_at=at) for at in (NOW, NOW, NOW + TICK, NOW - TICK)]
            theirs = make_campaign(workspace_id=OTHER_WORKSPACE)
            for campaign in (*ours, theirs):
                publish(tx, campaign, pending(*(make_prepared(phone=phone) for phone in (NEW, _OTHER, OLD, NEW))))
            loading = make_campaign()
            tx.campaigns.insert_loading(loading, loading_until=NOW + timedelta(minutes=5))
            tx.recipients.insert(THIS_WORKSPACE, loading.id, pending(make_prepared(phone=NEW)), now=NOW)
            return {campaign.id: campaign.created_at for campaign in ours}

        created = await storage.write(write)

        def read(tx: Transaction, phone: str, after: _Place | None, limit: int) -> Sequence[_Place]:
            found = tx.recipients.of_person(THIS_WORKSPACE, phone, after=after, limit=limit)
            # One form of the number after the other, each in order.
            return sorted(((created[one.campaign_id], one.campaign_id, one.position) for one in found), reverse=True)[
                :limit
            ]

        written = [(at, campaign_id, position) for campaign_id, at in created.items() for position in (0, 2, 3)]
        await _check_pages(storage, read, written)
