"""The contract of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import attrs
import pytest

from outreach.models.dispatch import Dispatch, UnknownDispatchCount
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from outreach.testing.builders import NOW, make_agent, make_call, make_dispatch, make_message, new_id, new_phone
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
)

UNSETTLED = [DispatchState.DISPATCHING, DispatchState.UNKNOWN]
SETTLED = [state for state in DispatchState if state not in UNSETTLED]
ACCEPTED: dict[str, Any] = {"state": DispatchState.ACCEPTED, "settled_at": NOW}

purposes = pytest.mark.parametrize("purpose", ["recipient", "message", "call", "call of a campaign"])


async def given_call(storage: Storage, **changes: Any) -> str:
    """Write a call with its agent and return its identifier."""
    agent = make_agent(workspace_id=changes.get("workspace_id", THIS_WORKSPACE))
    call = make_call(agent_id=agent.id, **changes)
    await given_rows(storage, agent, call)
    return call.id


async def given_message(storage: Storage, **changes: Any) -> str:
    """Write a message and return its identifier."""
    message = make_message(**changes)
    await given_rows(storage, message)
    return message.id


async def message_dispatch(storage: Storage, workspace_id: str = THIS_WORKSPACE, **changes: Any) -> Dispatch:
    """Write a message, and return a dispatch for it that is not written yet."""
    message_id = await given_message(storage, workspace_id=workspace_id)
    return make_dispatch(message_id=message_id, workspace_id=workspace_id, **changes)


async def given_purpose(storage: Storage, purpose: str) -> dict[str, Any]:
    """Write what a dispatch can be for, and return the fields that name it."""
    if purpose == "message":
        return {"message_id": await given_message(storage)}
    if purpose == "call":
        return {"channel": "call", "call_id": await given_call(storage)}
    campaign = await given_recipients(storage, 2)
    place = {"campaign_id": campaign.id, "position": 1}
    if purpose == "recipient":
        return place
    return place | {"channel": "call", "call_id": await given_call(storage, **place)}


def ids(dispatches: Sequence[Dispatch]) -> list[str]:
    """Return the identifiers of dispatches."""
    return [dispatch.id for dispatch in dispatches]


def unknown_behind(after: Dispatch, tx: Transaction) -> tuple[list[str], list[str]]:
    """Return the first two unknown ones behind one, and all of a workspace's."""
    begin = (after.created_at, after.id)
    return ids(tx.dispatches.unknown(None, limit=2, after=begin)), ids(
        tx.dispatches.unknown(THIS_WORKSPACE, limit=9, after=begin)
    )


class DispatchesContract(ContractBase):
    """The ledger."""

    @awkward_texts
    async def test_a_dispatch_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """Every text comes back to the code point; empty is not None."""
        at = await given_purpose(storage, "recipient")
        texts = dict.fromkeys(("from_number", "body", "provider_id", "reason", "error_code", "error_message"), text)
        full = make_dispatch(**at, **texts, provider=as_key(text), to=as_key(text), state=DispatchState.REFUSED)
        bare = make_dispatch(**at, **dict.fromkeys(texts), segments=None)
        await given_rows(storage, full, bare)
        assert await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, full.id)) == full
        assert await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, bare.id)) == bare
        assert await storage.read(lambda tx: tx.dispatches.get(OTHER_WORKSPACE, bare.id)) is None
        assert await storage.read(lambda tx: tx.dispatches.find(bare.id)) == bare
        assert await storage.read(lambda tx: tx.dispatches.find(new_id())) is None
        assert await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, new_id())) is None

    @purposes
    async def test_an_intent_raises_the_change_number(self, storage: Storage, purpose: str) -> None:
        """A copy of the database without it is known to be older by that (`HighWaterMark`)."""
        intent = make_dispatch(**await given_purpose(storage, purpose))
        before = await storage.read(lambda tx: tx.work.last_change())
        await given_rows(storage, intent)
        assert await storage.read(lambda tx: tx.work.last_change()) > before

    @awkward_moments
    @purposes
    async def test_an_update_writes_what_became_of_a_dispatch_and_not_what_was_asked_for(
        self, storage: Storage, purpose: str, moment: datetime
    ) -> None:
        """The facts about a request grow; the request to the provider stays. Moments keep their microseconds."""
        asked: dict[str, Any] = dict.fromkeys(("step", "attempt", "try_number", "segments", "epoch"), MAX_INTEGER)
        dispatch = make_dispatch(
            **await given_purpose(storage, purpose), **asked, leg=2, slot_at=moment, valid_until=moment + TICK
        )
        became: dict[str, Any] = {
            "state": DispatchState.ACCEPTED,
            "provider_id": "SM1",
            "report": MessageStatus.DELIVERED,
            "settled_at": moment,
        }
        await given_rows(storage, dispatch)
        await storage.write(
            lambda tx: tx.dispatches.update(attrs.evolve(dispatch, **became, step=0, to="+1", body="Other", epoch=1))
        )
        assert await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, dispatch.id)) == attrs.evolve(
            dispatch, **became
        )

    async def test_a_dispatch_is_updated_within_its_workspace_only(self, storage: Storage) -> None:
        """An absent dispatch, and one of another workspace, raise LookupError."""
        at = await given_purpose(storage, "message")
        dispatch = make_dispatch(**at)
        await given_rows(storage, dispatch)
        for absent in (
            make_dispatch(**at, **ACCEPTED),
            attrs.evolve(dispatch, workspace_id=OTHER_WORKSPACE, **ACCEPTED),
        ):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, absent=absent: tx.dispatches.update(absent))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, dispatch.id)) == dispatch

    @purposes
    @pytest.mark.parametrize("first", UNSETTLED)
    @pytest.mark.parametrize("second", UNSETTLED)
    async def test_there_is_one_unsettled_dispatch_at_the_most(
        self, storage: Storage, purpose: str, first: DispatchState, second: DispatchState
    ) -> None:
        """A second one is refused and changes nothing; a settled one beside it is not refused."""
        at = await given_purpose(storage, purpose)
        opened, settled = make_dispatch(**at, state=first), make_dispatch(**at, **ACCEPTED)

        def insert(tx: Transaction) -> None:
            tx.dispatches.insert(opened)
            with pytest.raises(AlreadyExists):
                tx.dispatches.insert(make_dispatch(**at, state=second))
            tx.dispatches.insert(settled)
            with pytest.raises(AlreadyExists):
                tx.dispatches.update(attrs.evolve(settled, state=second, settled_at=None))
            tx.dispatches.update(attrs.evolve(opened, reason="known"))

        await storage.write(insert)
        if "campaign_id" in at:
            listed = await storage.read(lambda tx: tx.dispatches.of_recipient(THIS_WORKSPACE, at["campaign_id"], 1))
        elif "call_id" in at:
            listed = await storage.read(lambda tx: tx.dispatches.of_call(THIS_WORKSPACE, at["call_id"]))
        else:
            listed = await storage.read(lambda tx: tx.dispatches.of_message(THIS_WORKSPACE, at["message_id"]))
        assert list(listed) == [attrs.evolve(opened, reason="known"), settled]

    @purposes
    @pytest.mark.parametrize("state", SETTLED)
    async def test_another_dispatch_may_open_once_the_first_is_settled(
        self, storage: Storage, purpose: str, state: DispatchState
    ) -> None:
        """Every outcome that is known makes room, and the new one takes it."""
        at = await given_purpose(storage, purpose)
        first, second = make_dispatch(**at), make_dispatch(**at)
        await given_rows(storage, first)
        await storage.write(lambda tx: tx.dispatches.update(attrs.evolve(first, state=state, settled_at=NOW)))
        await given_rows(storage, second)
        with pytest.raises(AlreadyExists):
            await given_rows(storage, make_dispatch(**at))
        assert await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, second.id)) == second

    async def test_unsettled_dispatches_for_different_things_do_not_meet(self, storage: Storage) -> None:
        """Another step, another recipient and another campaign each have their own."""
        campaign, other = await given_recipients(storage, 2), await given_recipients(storage, 1)
        places = [(campaign.id, 0, 0), (campaign.id, 0, 1), (campaign.id, 1, 0), (other.id, 0, 0)]
        dispatches = [make_dispatch(campaign_id=key, position=at, step=step) for key, at, step in places]
        messages = [await message_dispatch(storage) for _ in range(2)]
        calls = [make_dispatch(call_id=await given_call(storage)) for _ in range(2)]
        await given_rows(storage, *dispatches, *messages, *calls)
        listed = await storage.read(lambda tx: list(tx.dispatches.of_recipient(THIS_WORKSPACE, campaign.id, 0)))
        assert listed == dispatches[:2]

    async def test_a_dispatch_is_inserted_once(self, storage: Storage) -> None:
        """An identifier that is there is refused, for whatever it is."""
        first = await message_dispatch(storage, **ACCEPTED)
        await given_rows(storage, first)
        with pytest.raises(AlreadyExists):
            await given_rows(storage, await message_dispatch(storage, id=first.id))
        assert await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, first.id)) == first

    @purposes
    async def test_dispatches_are_listed_oldest_first(self, storage: Storage, purpose: str) -> None:
        """The order is (created_at, id), for what was asked about and in its workspace."""
        at, other = await given_purpose(storage, purpose), await given_purpose(storage, purpose)
        made = [make_dispatch(**at, **ACCEPTED, created_at=moment) for moment in (NOW, NOW + TICK, NOW - TICK, NOW)]
        await given_rows(storage, made[3], make_dispatch(**other), *made[:3])

        def listed(tx: Transaction, owner: str) -> list[list[str]]:
            found = []
            if "campaign_id" in at:
                found.append(ids(tx.dispatches.of_recipient(owner, at["campaign_id"], 1)))
            if "call_id" in at:
                found.append(ids(tx.dispatches.of_call(owner, at["call_id"])))
            if "message_id" in at:
                found.append(ids(tx.dispatches.of_message(owner, at["message_id"])))
            return found

        expected = [made[2].id, made[0].id, made[3].id, made[1].id]
        ours, theirs = await storage.read(lambda tx: (listed(tx, THIS_WORKSPACE), listed(tx, OTHER_WORKSPACE)))
        assert ours == [expected] * len(ours)
        assert theirs == [[]] * len(ours)

    async def test_a_provider_id_finds_the_newest_dispatch_of_that_provider(self, storage: Storage) -> None:
        """By (created_at, id), within the workspace."""
        at = await given_purpose(storage, "message")
        older, newer, twin = (
            make_dispatch(**at, **ACCEPTED, provider_id="X", created_at=moment) for moment in (NOW - TICK, NOW, NOW)
        )
        elsewhere = make_dispatch(**at, **ACCEPTED, provider="vonage", provider_id="X", created_at=NOW + TICK)
        await given_rows(storage, twin, older, elsewhere, newer)

        async def found(owner: str, provider: str, provider_id: str) -> str | None:
            dispatch = await storage.read(lambda tx: tx.dispatches.by_provider_id(owner, provider, provider_id))
            return None if dispatch is None else dispatch.id

        assert await found(THIS_WORKSPACE, "twilio", "X") == twin.id
        assert await found(THIS_WORKSPACE, "vonage", "X") == elsewhere.id
        assert await found(THIS_WORKSPACE, "telnyx", "X") is None
        assert await found(THIS_WORKSPACE, "twilio", "x") is None
        assert await found(OTHER_WORKSPACE, "twilio", "X") is None

    async def test_a_provider_id_finds_the_dispatches_of_all_workspaces(self, storage: Storage) -> None:
        """Newest first by (created_at, id); changes within the transaction count."""
        at = await given_purpose(storage, "message")
        older = make_dispatch(**at, **ACCEPTED, provider_id="X", created_at=NOW)
        foreign = await message_dispatch(storage, OTHER_WORKSPACE, **ACCEPTED, provider_id="X", created_at=NOW + TICK)
        elsewhere = make_dispatch(**at, **ACCEPTED, provider="vonage", provider_id="X", created_at=NOW + TICK)
        await given_rows(storage, older, foreign, elsewhere)

        def operation(tx: Transaction) -> None:
            tx.dispatches.prefetch_with_provider_id([("twilio", "X"), ("twilio", "Y"), ("vonage", "X")])
            assert list(tx.dispatches.with_provider_id("twilio", "X")) == [foreign, older]
            assert list(tx.dispatches.with_provider_id("vonage", "X")) == [elsewhere]
            assert list(tx.dispatches.with_provider_id("twilio", "x")) == []
            changed = attrs.evolve(older, provider_id="Y")
            tx.dispatches.update(changed)
            assert list(tx.dispatches.with_provider_id("twilio", "X")) == [foreign]
            assert list(tx.dispatches.with_provider_id("twilio", "Y")) == [changed]

        await storage.write(operation)

    async def test_what_was_read_of_many_at_once_is_asked_anew_once_it_has_changed(self, storage: Storage) -> None:
        """Also within the transaction, and each workspace sees its own alone."""
        campaign_id = (await given_recipients(storage, 2)).id
        first = make_dispatch(campaign_id=campaign_id, position=0, **ACCEPTED)
        second = make_dispatch(campaign_id=campaign_id, position=0, attempt=2)

        def operation(tx: Transaction) -> None:
            tx.dispatches.insert(first)
            tx.dispatches.prefetch_of_recipients(
                [(THIS_WORKSPACE, campaign_id, 0), (THIS_WORKSPACE, campaign_id, 1), (OTHER_WORKSPACE, campaign_id, 0)]
            )
            assert list(tx.dispatches.of_recipient(THIS_WORKSPACE, campaign_id, 0)) == [first]
            assert list(tx.dispatches.of_recipient(THIS_WORKSPACE, campaign_id, 1)) == []
            assert list(tx.dispatches.of_recipient(OTHER_WORKSPACE, campaign_id, 0)) == []
            tx.dispatches.prefetch_by_provider_id(
                [(THIS_WORKSPACE, first.provider, "SM-1"), (OTHER_WORKSPACE, first.provider, "SM-1")]
            )
            assert tx.dispatches.by_provider_id(THIS_WORKSPACE, first.provider, "SM-1") is None
            tx.dispatches.insert(second)
            named = attrs.evolve(first, provider_id="SM-1")
            tx.dispatches.update(named)
            assert list(tx.dispatches.of_recipient(THIS_WORKSPACE, campaign_id, 0)) == [named, second]
            assert tx.dispatches.by_provider_id(THIS_WORKSPACE, first.provider, "SM-1") == named
            assert tx.dispatches.by_provider_id(OTHER_WORKSPACE, first.provider, "SM-1") is None

        await storage.write(operation)

    async def test_those_that_are_alike_are_found_in_every_workspace(self, storage: Storage) -> None:
        """With its provider, sender and contact, between two moments, in these states; never the dispatch itself."""
        made, phone = [], new_phone()
        changes: dict[str, Any]
        for owner, moment, changes in (
            (OTHER_WORKSPACE, NOW + TICK, {}),
            (THIS_WORKSPACE, NOW - TICK, {"state": DispatchState.UNKNOWN}),
            (THIS_WORKSPACE, NOW, {"state": DispatchState.REFUSED}),
            (THIS_WORKSPACE, NOW, {"from_number": None, "state": DispatchState.UNKNOWN}),
            (THIS_WORKSPACE, NOW, {"to": "+14155550199", "state": DispatchState.UNKNOWN}),
            (THIS_WORKSPACE, NOW, {"provider": "vonage", "state": DispatchState.UNKNOWN}),
            (OTHER_WORKSPACE, NOW + 2 * TICK, {}),
            (THIS_WORKSPACE, NOW - 2 * TICK, {}),
        ):
            made.append(await message_dispatch(storage, owner, **{"to": phone, "created_at": moment, **changes}))
        asked = await message_dispatch(storage, to=phone)
        await given_rows(storage, asked, *made)
        states = {DispatchState.DISPATCHING, DispatchState.UNKNOWN}
        found = await storage.read(
            lambda tx: ids(tx.dispatches.similar(asked, since=NOW - TICK, until=NOW + TICK, states=states))
        )
        assert found == ids([made[1], made[0]])

    async def test_abandoned_ones_are_dispatching_in_an_epoch_that_is_not_living(self, storage: Storage) -> None:
        """In all workspaces, oldest first by (created_at, id), at most `limit`."""
        shapes = [
            (1, NOW, THIS_WORKSPACE),
            (2, NOW - TICK, OTHER_WORKSPACE),
            (2, NOW, THIS_WORKSPACE),
            (3, NOW - TICK, THIS_WORKSPACE),
        ]
        made = []
        for epoch, moment, owner in shapes:
            made.append(await message_dispatch(storage, owner, epoch=epoch, created_at=moment))
        for state in set(DispatchState) - {DispatchState.DISPATCHING}:
            made += [await message_dispatch(storage, epoch=1, state=state)]
        await given_rows(storage, *reversed(made))
        assert await storage.read(lambda tx: ids(tx.dispatches.abandoned({3}, limit=9))) == ids(
            [made[1], made[0], made[2]]
        )
        assert await storage.read(lambda tx: ids(tx.dispatches.abandoned({3}, limit=2))) == ids([made[1], made[0]])
        assert await storage.read(lambda tx: ids(tx.dispatches.abandoned({2, 3}, limit=9))) == ids([made[0]])
        assert await storage.read(lambda tx: ids(tx.dispatches.abandoned({1, 2, 3, 4}, limit=9))) == []

    async def test_unknown_ones_are_of_one_workspace_or_of_all(self, storage: Storage) -> None:
        """Oldest first by (created_at, id), at most `limit`, no other state."""
        made = []
        for owner, moment in (
            (THIS_WORKSPACE, NOW),
            (OTHER_WORKSPACE, NOW - TICK),
            (THIS_WORKSPACE, NOW),
            (THIS_WORKSPACE, NOW - TICK),
        ):
            made.append(await message_dispatch(storage, owner, created_at=moment, state=DispatchState.UNKNOWN))
        for state in set(DispatchState) - {DispatchState.UNKNOWN}:
            made += [await message_dispatch(storage, state=state)]
        await given_rows(storage, *reversed(made))
        everywhere = ids([made[1], made[3], made[0], made[2]])
        assert await storage.read(lambda tx: ids(tx.dispatches.unknown(None, limit=9))) == everywhere
        assert await storage.read(lambda tx: ids(tx.dispatches.unknown(None, limit=2))) == everywhere[:2]
        assert await storage.read(lambda tx: ids(tx.dispatches.unknown(THIS_WORKSPACE, limit=9))) == everywhere[1:]
        assert await storage.read(lambda tx: ids(tx.dispatches.unknown(OTHER_WORKSPACE, limit=9))) == everywhere[:1]
        ordered = [made[1], made[3], made[0], made[2]]
        for index, after in enumerate(ordered):
            page, here = await storage.read(partial(unknown_behind, after))
            assert page == everywhere[index + 1 : index + 3]
            assert here == everywhere[max(index + 1, 1) :]
        await storage.write(lambda tx: tx.dispatches.update(attrs.evolve(made[3], state=DispatchState.ACCEPTED)))
        # It is a place in the order, not one of them any more.
        assert (
            await storage.read(
                lambda tx: ids(tx.dispatches.unknown(None, limit=9, after=(made[3].created_at, made[3].id)))
            )
            == everywhere[2:]
        )

    async def test_unknown_ones_are_counted_by_workspace(self, storage: Storage) -> None:
        """The workspace with the oldest comes first; only the oldest `limit` of all are counted."""
        for owner, moment in ((THIS_WORKSPACE, NOW), (OTHER_WORKSPACE, NOW - TICK), (THIS_WORKSPACE, NOW + TICK)):
            unknown = await message_dispatch(storage, owner, created_at=moment, state=DispatchState.UNKNOWN)
            await given_rows(storage, unknown)
        await given_rows(storage, await message_dispatch(storage, state=DispatchState.ACCEPTED))
        here = UnknownDispatchCount(workspace_id=THIS_WORKSPACE, count=2, since=NOW)
        there = UnknownDispatchCount(workspace_id=OTHER_WORKSPACE, count=1, since=NOW - TICK)

        async def counted(workspace_id: str | None, limit: int = 9) -> object:
            return await storage.read(lambda tx: list(tx.dispatches.count_unknown(workspace_id, limit=limit)))

        assert await counted(None) == [there, here]
        assert await counted(None, 2) == [there, attrs.evolve(here, count=1)]
        assert await counted(None, 1) == [there]
        assert await counted(THIS_WORKSPACE) == [here]
        assert await counted(THIS_WORKSPACE, 1) == [attrs.evolve(here, count=1)]
        assert await counted(OTHER_WORKSPACE) == [there]

    async def test_a_dispatch_is_found_whatever_workspace_it_is_of(self, storage: Storage) -> None:
        """`find` is for operators, whose commands name dispatches alone."""
        theirs = await message_dispatch(storage, OTHER_WORKSPACE)
        ours = make_dispatch(**await given_purpose(storage, "call of a campaign"))
        await given_rows(storage, theirs, ours)
        for dispatch in (theirs, ours):
            assert await storage.read(lambda tx, id_=dispatch.id: tx.dispatches.find(id_)) == dispatch  # type: ignore[misc]

    async def test_the_times_of_sending_to_a_number_are_read(self, storage: Storage) -> None:
        """Of campaigns, messages and calls of one workspace, at or after the moment, oldest first; known or not yet."""
        phone = "+14155550123"
        campaign = await given_recipients(storage, 1)
        call = {"channel": "call", "call_id": await given_call(storage), "created_at": NOW}
        await given_rows(
            storage,
            await message_dispatch(storage, to=phone, created_at=NOW + 2 * TICK),
            make_dispatch(to=phone, campaign_id=campaign.id, position=0, created_at=NOW + TICK, **ACCEPTED),
            make_dispatch(to=phone, **call),
            await message_dispatch(storage, to="+14155550124"),
            await message_dispatch(storage, OTHER_WORKSPACE, to=phone),
        )

        def sent_to(workspace_id: str, since: datetime) -> Any:
            return lambda tx: list(tx.dispatches.sent_to(workspace_id, phone, since=since))

        first, second, third = (NOW, True), (NOW + TICK, False), (NOW + 2 * TICK, True)
        assert await storage.read(sent_to(THIS_WORKSPACE, NOW)) == [first, second, third]
        assert await storage.read(sent_to(THIS_WORKSPACE, NOW + TICK)) == [second, third]
        assert await storage.read(sent_to(THIS_WORKSPACE, NOW + 3 * TICK)) == []
        assert await storage.read(sent_to(OTHER_WORKSPACE, NOW)) == [first]

    @pytest.mark.parametrize("purpose", ["opt_out_confirmation", "opt_in_confirmation", "help"])
    async def test_an_answer_to_a_keyword_does_not_count_as_sent_to_a_number(
        self, storage: Storage, purpose: str
    ) -> None:
        """A person who writes STOP is not contacted by the answer."""
        answer, message = await given_message(storage, purpose=purpose), await given_message(storage)
        await given_rows(
            storage,
            make_dispatch(to="+14155550123", message_id=answer),
            make_dispatch(to="+14155550123", message_id=message, created_at=NOW + TICK),
        )
        sent = await storage.read(lambda tx: tx.dispatches.sent_to(THIS_WORKSPACE, "+14155550123", since=NOW))
        assert [one.at for one in sent] == [NOW + TICK]

    async def test_what_reached_nobody_for_sure_was_not_sent_to_a_number(self, storage: Storage) -> None:
        """Not sent, withdrawn and deferred ones do not count; every other state does, in doubt or not."""
        reached_nobody = {DispatchState.NOT_SENT, DispatchState.WITHDRAWN, DispatchState.DEFERRED}
        campaign = await given_recipients(storage, len(DispatchState))
        wanted: list[datetime] = []
        for position, state in enumerate(DispatchState):
            at = NOW + TICK * position
            place: dict[str, Any] = {"campaign_id": campaign.id, "position": position}
            await given_rows(storage, make_dispatch(**place, to="+1", state=state, created_at=at))
            if state not in reached_nobody:
                wanted.append(at)
        sent = await storage.read(lambda tx: tx.dispatches.sent_to(THIS_WORKSPACE, "+1", since=NOW))
        assert [one.at for one in sent] == wanted

    async def test_who_was_contacted_is_read_for_many_numbers(self, storage: Storage) -> None:
        """After the moment and in the workspace, by the requests that `sent_to` returns; any spelling of a number."""
        campaign = await given_recipients(storage, len(DispatchState) + 1)
        phones = {f"+141555501{position:02}": state for position, state in enumerate(DispatchState)}
        for position, (phone, state) in enumerate(phones.items()):
            place: dict[str, Any] = {"campaign_id": campaign.id, "position": position}
            await given_rows(storage, make_dispatch(**place, to=phone, state=state, created_at=NOW + TICK))
        limited = {"state": DispatchState.REFUSED, "reason": "rate_limited", "created_at": NOW + TICK}
        answer = await given_message(storage, purpose="help")
        await given_rows(
            storage,
            make_dispatch(campaign_id=campaign.id, position=len(DispatchState), to="+14155550190", **limited),
            make_dispatch(to="+14155550191", message_id=answer, created_at=NOW + TICK),
            await message_dispatch(storage, OTHER_WORKSPACE, to="+14155550192", created_at=NOW + TICK),
            await message_dispatch(storage, to="+14155550193", created_at=NOW),
            await message_dispatch(storage, to="+5215512345678", created_at=NOW + TICK),
        )
        asked = [*phones, *(f"+1415555019{last}" for last in range(4)), "+525512345678"]
        found = await storage.read(lambda tx: tx.dispatches.contacted(THIS_WORKSPACE, asked, since=NOW))

        def sent_to(tx: Transaction) -> set[str]:
            return {
                phone
                for phone in asked
                if any(one.at > NOW for one in tx.dispatches.sent_to(THIS_WORKSPACE, phone, since=NOW))
            }

        assert found == await storage.read(sent_to)
        assert {"+525512345678"} == found - phones.keys()

    async def test_recent_ones_are_those_of_a_campaign_that_have_an_outcome(self, storage: Storage) -> None:
        """Newest first, of one moment the last written; created since then, at most `limit`, none `dispatching`."""
        ours, other = await given_recipients(storage, 9), await given_recipients(storage, 1)
        made = []
        for position, state in enumerate(DispatchState):
            created_at = NOW + TICK * (position // 2)
            at: dict[str, Any] = {"campaign_id": ours.id, "position": position}
            made.append(make_dispatch(**at, state=state, created_at=created_at))
        await given_rows(storage, *made, make_dispatch(campaign_id=other.id, position=0, **ACCEPTED))
        wanted = ids([one for one in reversed(made) if one.state is not DispatchState.DISPATCHING])

        def recent(since: datetime, limit: int = 99) -> Any:
            return lambda tx: ids(tx.dispatches.recent(THIS_WORKSPACE, ours.id, since=since, limit=limit))

        assert await storage.read(recent(NOW)) == wanted
        assert await storage.read(recent(NOW, 3)) == wanted[:3]
        assert await storage.read(recent(NOW + TICK)) == wanted[:-1]
        assert (
            await storage.read(lambda tx: ids(tx.dispatches.recent(OTHER_WORKSPACE, ours.id, since=NOW, limit=9))) == []
        )

    async def test_judged_ones_are_the_latest_that_tell_something_of_the_provider(self, storage: Storage) -> None:
        """Later requests that were not sent, or that we interrupted, do not count to the limit."""
        ours = await given_recipients(storage, 90)
        answered = {DispatchState.ACCEPTED, DispatchState.REFUSED, DispatchState.UNKNOWN, DispatchState.UNCONFIRMED}
        answered.add(DispatchState.GIVEN_UP)
        states = [*DispatchState, *([DispatchState.NOT_SENT] * 70)]
        made = [
            make_dispatch(campaign_id=ours.id, position=position, state=state, created_at=NOW + TICK * (position // 2))
            for position, state in enumerate(states)
        ]
        lost = [
            make_dispatch(campaign_id=ours.id, position=89 - number, state=DispatchState.UNKNOWN, reason=reason)
            for number, reason in enumerate(("worker_lost", "interrupted"))
        ]
        await given_rows(storage, *made, *lost)
        wanted = ids([one for one in reversed(made) if one.state in answered])

        def judged(since: datetime, until: datetime, limit: int = 20) -> Any:
            return lambda tx: ids(tx.dispatches.judged(THIS_WORKSPACE, ours.id, since=since, until=until, limit=limit))

        end = NOW + TICK * len(states)
        assert await storage.read(judged(NOW, end)) == wanted
        assert await storage.read(judged(NOW, end, 3)) == wanted[:3]
        first = ids([one for one in reversed(made) if one.state in answered and one.created_at == NOW])
        assert await storage.read(judged(NOW, NOW)) == first
        assert await storage.read(judged(NOW + TICK, end)) == wanted[: len(wanted) - len(first)]

    async def test_what_a_campaign_came_to_is_counted(self, storage: Storage) -> None:
        """The most frequent first, then by outcome; a failed call has its own error."""
        ours, other = await given_recipients(storage, 10), await given_recipients(storage, 1)
        refused: dict[str, Any] = {"state": DispatchState.REFUSED, "reason": "invalid_number", "error_code": "21211"}
        outcomes: list[dict[str, Any]] = [
            ACCEPTED,
            ACCEPTED,
            ACCEPTED | {"report": MessageStatus.DELIVERED},
            ACCEPTED | {"report": MessageStatus.FAILED, "reason": "filtered", "error_code": "30007"},
            refused,
            refused | {"error_message": "No such number"},
            refused,
        ]
        made = [
            make_dispatch(campaign_id=ours.id, position=position, **outcome)
            for position, outcome in enumerate(outcomes)
        ]
        ends = (
            (7, CallStatus.FAILED, "dial_failed"),
            (8, CallStatus.CANCELED, "stopped"),
            (9, CallStatus.BUSY, "busy"),
        )
        for position, status, error in ends:
            place: dict[str, Any] = {"campaign_id": ours.id, "position": position}
            call = await given_call(storage, **place, status=status, error=error)
            made.append(make_dispatch(**place, **ACCEPTED, channel="call", provider="retell", call_id=call))
        await given_rows(storage, *made, make_dispatch(campaign_id=other.id, position=0, **ACCEPTED))

        groups = await storage.read(lambda tx: tx.dispatches.groups(THIS_WORKSPACE, ours.id))
        assert [(one.count, one.provider, one.state, one.report, one.reason, one.error_code) for one in groups] == [
            (3, "twilio", "refused", None, "invalid_number", "21211"),
            (2, "twilio", "accepted", None, None, None),
            (1, "retell", "accepted", None, None, None),
            (1, "retell", "accepted", None, None, "dial_failed"),
            (1, "retell", "accepted", None, None, "stopped"),
            (1, "twilio", "accepted", "delivered", None, None),
            (1, "twilio", "accepted", "failed", "filtered", "30007"),
        ]
        assert [one.error_message for one in groups] == ["No such number", *[None] * 6]
        assert list(await storage.read(lambda tx: tx.dispatches.groups(OTHER_WORKSPACE, ours.id))) == []

    async def test_a_settled_dispatch_is_neither_abandoned_nor_unknown(self, storage: Storage) -> None:
        """The lists follow the updates of a transaction."""
        dispatch = await message_dispatch(storage)
        await given_rows(storage, dispatch)

        def move(tx: Transaction) -> list[tuple[int, int]]:
            seen = []
            for state in (DispatchState.UNKNOWN, DispatchState.ACCEPTED):
                tx.dispatches.update(attrs.evolve(dispatch, state=state))
                seen.append((len(tx.dispatches.abandoned({9}, limit=9)), len(tx.dispatches.unknown(None, limit=9))))
            return seen

        assert await storage.write(move) == [(0, 1), (0, 0)]

    async def test_another_workspace_may_have_the_same_provider_id(self, storage: Storage) -> None:
        """Each workspace finds its own dispatch."""
        ours = await message_dispatch(storage, provider_id="X")
        theirs = await message_dispatch(storage, OTHER_WORKSPACE, provider_id="X")
        await given_rows(storage, ours, theirs)
        assert await storage.read(lambda tx: tx.dispatches.by_provider_id(THIS_WORKSPACE, "twilio", "X")) == ours
        assert await storage.read(lambda tx: tx.dispatches.by_provider_id(OTHER_WORKSPACE, "twilio", "X")) == theirs
