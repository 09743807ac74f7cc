"""The contract of erasing: the data that goes, the data that stays, and the campaigns that are due."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach.models.campaign import Campaign
from outreach.models.message import Message
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_call,
    make_callback,
    make_campaign,
    make_dispatch,
    make_flow,
    make_inbound,
    make_message,
    make_occurrence,
    make_prepared,
    make_run,
    make_schedule,
    make_stored_request,
    make_trail_entry,
    make_unsubscribe,
    make_webhook,
    make_webhook_attempt,
    make_workspace,
    new_id,
)
from outreach.testing.storage_tables.base_contract import (
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    change_recipient,
    given_campaign,
    given_recipients,
    given_rows,
)

_DAY = timedelta(days=1)


async def given_ended(storage: Storage, *, workspace_id: str = THIS_WORKSPACE, **changes: Any) -> Campaign:
    """Write a campaign that has ended, without contacts, whose workspace keeps nothing longer than 30 days."""
    workspace = make_workspace(id=workspace_id, retention_days=30)
    ended = make_campaign(workspace_id=workspace_id, status=CampaignStatus.COMPLETED, completed_at=NOW)

    def keep(tx: Transaction) -> None:
        tx.workspaces.update(workspace)

    await storage.write(keep)
    return await given_campaign(storage, campaign=attrs.evolve(ended, **changes))


def given_message(**changes: Any) -> Message:
    """Return a single message that was delivered."""
    return make_message(**{"status": MessageStatus.DELIVERED, "ended_at": NOW, **changes})


class ErasuresContract(ContractBase):
    """Erasing people."""

    async def test_a_hidden_campaign_is_one_whose_loading_was_given_up(self, storage: Storage) -> None:
        """Only its own workspace hides it, once; the state of its run goes."""
        campaign = await given_recipients(storage, 2)
        await storage.write(lambda tx: tx.runs.put(make_run(campaign_id=campaign.id)))

        def hide(tx: Transaction, workspace_id: str) -> bool:
            return tx.erasures.hide_campaign(workspace_id, campaign.id, now=NOW)

        assert not await storage.write(lambda tx: hide(tx, OTHER_WORKSPACE))
        assert await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id)) is not None
        assert await storage.write(lambda tx: hide(tx, THIS_WORKSPACE))
        assert await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id)) is None
        assert await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id)) is None
        leftovers = await storage.read(lambda tx: tx.campaigns.leftovers(NOW + TICK))
        assert list(leftovers) == [(THIS_WORKSPACE, campaign.id)]
        assert not await storage.write(lambda tx: hide(tx, THIS_WORKSPACE))

    async def test_the_trail_of_a_hidden_campaign_goes_with_it(self, storage: Storage) -> None:
        """It is no gap in what others read: those of other campaigns stay."""
        campaign, kept = await given_recipients(storage, 1), await given_recipients(storage, 1)
        await given_rows(storage, *(make_trail_entry(campaign_id=where.id) for where in (kept, campaign, kept)))
        await storage.write(lambda tx: tx.erasures.hide_campaign(THIS_WORKSPACE, campaign.id, now=NOW))
        while not await storage.write(lambda tx: tx.campaigns.delete_loading(THIS_WORKSPACE, campaign.id, limit=10)):
            pass
        left = await storage.read(lambda tx: list(tx.trail.between(THIS_WORKSPACE, 0, 3)))
        assert [entry.number for entry in left] == [1, 3]
        assert await storage.read(lambda tx: (tx.trail.last_number(), tx.trail.purged_until())) == (3, 0)

    async def test_a_loading_is_noticed_until_it_is_given_up(self, storage: Storage) -> None:
        """In its workspace, up to the moment itself."""
        until = NOW + timedelta(minutes=5)
        await storage.write(lambda tx: tx.campaigns.insert_loading(make_campaign(), loading_until=until))
        for workspace_id, now, loading in (
            (THIS_WORKSPACE, until, True),
            (THIS_WORKSPACE, until + TICK, False),
            (OTHER_WORKSPACE, until, False),
        ):
            found = await storage.read(
                lambda tx, where=workspace_id, at=now: tx.erasures.is_loading(where, now=at)  # type: ignore[misc]
            )
            assert found is loading

    async def test_an_erasure_goes_on_slice_by_slice(self, storage: Storage) -> None:
        """Names, numbers and texts go, states and figures stay; other campaigns keep everything."""
        campaign, other = await given_recipients(storage, 5), await given_recipients(storage, 1)

        def send(tx: Transaction) -> None:
            for where, count in ((campaign, 5), (other, 1)):
                for position in range(count):
                    place = {"campaign_id": where.id, "position": position}
                    tx.dispatches.insert(make_dispatch(**place, state=DispatchState.ACCEPTED, error_message="+1415"))

        await storage.write(send)
        await storage.write(lambda tx: tx.erasures.begin(THIS_WORKSPACE, campaign.id, figures='{"contacts":5}'))
        assert await storage.read(lambda tx: tx.erasures.unfinished(OTHER_WORKSPACE)) is None
        left = []
        while (found := await storage.read(lambda tx: tx.erasures.unfinished(THIS_WORKSPACE))) is not None:
            assert found == await storage.read(lambda tx: tx.erasures.unfinished(None))
            left.append(found)
            _, _, first = found
            await storage.write(
                lambda tx, first=first: tx.erasures.erase_positions(THIS_WORKSPACE, campaign.id, first, limit=2)  # type: ignore[misc]
            )
        assert left == [(THIS_WORKSPACE, campaign.id, first) for first in (0, 2, 4)]

        def read(tx: Transaction, where: Campaign, position: int) -> tuple[object, ...]:
            recipient = tx.recipients.get(THIS_WORKSPACE, where.id, position)
            [dispatch] = tx.dispatches.of_recipient(THIS_WORKSPACE, where.id, position)
            assert recipient is not None
            assert (recipient.status, dispatch.state) == (RecipientStatus.PENDING, DispatchState.ACCEPTED)
            assert dispatch.segments == 1
            return (
                recipient.phone_number,
                recipient.phone,
                recipient.first_name,
                dispatch.to,
                dispatch.body,
                dispatch.error_message,
            )

        for position in range(5):
            erased = await storage.read(lambda tx, position=position: read(tx, campaign, position))  # type: ignore[misc]
            assert erased == ("", None, None, "", None, None)
        assert all(await storage.read(lambda tx: read(tx, other, 0)))
        assert await storage.read(lambda tx: tx.erasures.figures(THIS_WORKSPACE, campaign.id)) == '{"contacts":5}'
        assert await storage.read(lambda tx: tx.erasures.figures(THIS_WORKSPACE, other.id)) is None
        assert await storage.read(lambda tx: tx.erasures.figures(OTHER_WORKSPACE, campaign.id)) is None

    async def test_the_replies_to_an_erased_campaign_do_not_become_those_of_an_earlier_one(
        self, storage: Storage
    ) -> None:
        """Nor its opt-outs: the campaign that sent the last request before them has them, also when it is erased."""
        contact = make_prepared()
        phone = contact.phone or ""
        earlier, erased = await given_campaign(storage, contact), await given_campaign(storage, contact)

        def write(tx: Transaction) -> None:
            for number, campaign in enumerate((earlier, erased)):
                place = {"campaign_id": campaign.id, "position": 0, "to": phone, "created_at": NOW + number * _DAY}
                tx.dispatches.insert(make_dispatch(**place, state=DispatchState.ACCEPTED))
            for hours in (12, 36):
                tx.inbound.insert(make_inbound(from_number=phone, received_at=NOW + timedelta(hours=hours)))
            tx.register.put(make_unsubscribe(phone=phone, source="keyword", created_at=NOW + timedelta(hours=36)))
            tx.erasures.begin(THIS_WORKSPACE, erased.id, figures="{}")
            tx.erasures.erase_positions(THIS_WORKSPACE, erased.id, 0, limit=10)

        def counted(tx: Transaction) -> tuple[int, int]:
            window = (THIS_WORKSPACE, earlier.id, NOW, NOW + 30 * _DAY)
            return len(tx.reports.replies(*window)), len(tx.reports.opt_outs(*window))

        await storage.write(write)
        assert await storage.read(counted) == (1, 0)

    async def test_only_a_campaign_of_the_workspace_is_erased(self, storage: Storage) -> None:
        """Another workspace's identifier is that of no campaign."""
        campaign = await given_recipients(storage, 1)
        with pytest.raises(LookupError):
            await storage.write(lambda tx: tx.erasures.begin(OTHER_WORKSPACE, campaign.id, figures="{}"))
        assert await storage.read(lambda tx: tx.erasures.unfinished(None)) is None

    async def test_a_campaign_is_due_after_the_retention_of_its_workspace(self, storage: Storage) -> None:
        """The oldest first, of one workspace or all; not one that is open, erased or has open contacts."""
        newer = await given_ended(storage, completed_at=NOW + 2 * TICK)
        older = await given_ended(storage)
        await given_ended(storage, erased_at=NOW)
        await given_ended(storage, status=CampaignStatus.ACTIVE, completed_at=None)
        theirs = await given_ended(storage, workspace_id=OTHER_WORKSPACE, completed_at=NOW - _DAY)
        still_open = attrs.evolve(make_campaign(), status=CampaignStatus.COMPLETED, completed_at=NOW - _DAY)
        await given_campaign(storage, make_prepared(), campaign=still_open)
        due = timedelta(days=30, milliseconds=1)

        async def found(workspace_id: str | None, now: timedelta) -> tuple[str, str] | None:
            return await storage.read(lambda tx: tx.erasures.due_campaign(workspace_id, now=NOW + now))

        assert await found(THIS_WORKSPACE, timedelta(days=30)) is None
        assert await found(THIS_WORKSPACE, due) == (THIS_WORKSPACE, older.id)
        assert await found(None, due) == (OTHER_WORKSPACE, theirs.id)
        erased = attrs.evolve(older, erased_at=NOW, revision=older.revision + 1)
        await storage.write(lambda tx: tx.campaigns.update(erased))
        assert await found(THIS_WORKSPACE, due + _DAY) == (THIS_WORKSPACE, newer.id)
        kept = await storage.read(lambda tx: tx.erasures.with_retention(None))
        assert set(kept) == {(THIS_WORKSPACE, 30), (OTHER_WORKSPACE, 30)}
        assert list(await storage.read(lambda tx: tx.erasures.with_retention(OTHER_WORKSPACE))) == [
            (OTHER_WORKSPACE, 30)
        ]

    async def test_a_campaign_that_a_schedule_repeats_is_not_due(self, storage: Storage) -> None:
        """Nor one whose contacts its runs get; both are due when the schedule has ended or is removed."""
        template, audience = await given_ended(storage), await given_ended(storage, completed_at=NOW + TICK)
        schedule = make_schedule(template_id=template.id, audience_id=audience.id)
        await given_rows(storage, schedule)

        async def found(**changes: Any) -> tuple[str, str] | None:
            def change(tx: Transaction) -> tuple[str, str] | None:
                tx.schedules.update(attrs.evolve(schedule, **changes))
                return tx.erasures.due_campaign(None, now=NOW + 31 * _DAY)

            return await storage.write(change)

        assert await found(state="active") is None
        assert await found(state="paused", reason="operator") is None
        assert await found(template_id=new_id()) == (THIS_WORKSPACE, template.id)
        assert await found(audience_id=None) == (THIS_WORKSPACE, audience.id)
        assert await found(state="ended") == (THIS_WORKSPACE, template.id)
        assert await found(removed_at=NOW) == (THIS_WORKSPACE, template.id)

    async def test_a_run_whose_contacts_a_schedule_leaves_out_is_not_due(self, storage: Storage) -> None:
        """Until these days are over, or the schedule has ended, is removed or leaves nobody out any more."""
        schedule = make_schedule(not_again_within_days=60)
        run = await given_ended(storage)
        await given_rows(storage, schedule, make_occurrence(schedule_id=schedule.id, run_id=run.id))

        async def found(days: int = 31, **changes: Any) -> bool:
            def change(tx: Transaction) -> bool:
                tx.schedules.update(attrs.evolve(schedule, **changes))
                now = NOW + days * _DAY
                due = tx.erasures.due_campaign(None, now=now) == (THIS_WORKSPACE, run.id)
                assert due is (tx.occurrences.left_out_by(THIS_WORKSPACE, run.id, now=now) is None)
                assert tx.occurrences.left_out_by(OTHER_WORKSPACE, run.id, now=now) is None
                return due

            return await storage.write(change)

        assert await found(state="active") is False
        assert await found(state="paused", reason="operator") is False
        assert await found(days=60) is False
        assert await found(days=61) is True
        assert await found(state="ended") is True
        assert await found(removed_at=NOW) is True
        assert await found(not_again_within_days=30) is True
        assert await found(not_again_within_days=None) is True

    async def test_a_workspace_without_retention_keeps_everything(self, storage: Storage) -> None:
        """Nothing of it is ever due."""
        await given_campaign(storage, campaign=make_campaign(status=CampaignStatus.COMPLETED, completed_at=NOW))
        found = await storage.read(lambda tx: tx.erasures.due_campaign(None, now=NOW + 4000 * _DAY))
        assert found is None
        assert list(await storage.read(lambda tx: tx.erasures.with_retention(None))) == []

    async def test_old_single_messages_and_calls_are_erased(self, storage: Storage) -> None:
        """Those that ended before the moment, of this workspace, at most `limit` at a time; once."""
        agent = make_agent()
        old, later = given_message(), given_message(ended_at=NOW + TICK)
        open_one, theirs = make_message(), given_message(workspace_id=OTHER_WORKSPACE)
        call = make_call(agent_id=agent.id, status=CallStatus.COMPLETED, ended_at=NOW, summary="They said yes.")
        request = make_dispatch(message_id=old.id, state=DispatchState.ACCEPTED)
        await given_rows(storage, agent, old, later, open_one, theirs, call, request)

        def erase(tx: Transaction) -> int:
            return tx.erasures.erase_old_singles(THIS_WORKSPACE, NOW + TICK, limit=10)

        assert await storage.write(erase) == 2
        assert await storage.write(erase) == 0
        erased = await storage.read(lambda tx: tx.messages.get(THIS_WORKSPACE, old.id))
        assert erased == attrs.evolve(old, to="", body="")
        ended = await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, call.id))
        assert ended == attrs.evolve(call, to="", variables={}, summary=None)
        [kept] = await storage.read(lambda tx: tx.dispatches.of_message(THIS_WORKSPACE, old.id))
        assert (kept.to, kept.body, kept.segments) == ("", None, request.segments)
        for message in (later, open_one, theirs):
            found = await storage.read(
                lambda tx, message=message: tx.messages.get(message.workspace_id, message.id)  # type: ignore[misc]
            )
            assert found == message

    async def test_old_events_are_deleted(self, storage: Storage) -> None:
        """Messages and events from before the moment go; the trail keeps its entries, without numbers."""
        phone = "+14155550123"
        old, later = make_inbound(), make_inbound(received_at=NOW + _DAY)
        events = [make_callback(), make_callback(received_at=NOW + _DAY)]
        await given_rows(
            storage, old, later, *events, *(make_trail_entry(at=at, phone=phone) for at in (NOW, NOW + _DAY))
        )
        deleted = await storage.write(
            lambda tx: tx.erasures.delete_old_events(OTHER_WORKSPACE, NOW + _DAY, waiting_since=NOW, limit=10)
        )
        assert deleted == 0
        deleted = await storage.write(
            lambda tx: tx.erasures.delete_old_events(THIS_WORKSPACE, NOW + _DAY, waiting_since=NOW, limit=10)
        )
        assert deleted == 3
        assert await storage.read(lambda tx: tx.inbound.get(THIS_WORKSPACE, old.id)) is None
        assert await storage.read(lambda tx: tx.inbound.get(THIS_WORKSPACE, later.id)) == later
        [event] = await storage.read(lambda tx: tx.callbacks.list(THIS_WORKSPACE))
        assert event.event_id == events[1].event_id
        trail = await storage.read(lambda tx: tx.trail.between(THIS_WORKSPACE, 0, 1000))
        assert [(one.at, one.phone) for one in trail] == [(NOW, None), (NOW + _DAY, phone)]

    async def test_a_reply_that_may_still_stop_a_flow_is_kept(self, storage: Storage) -> None:
        """While its sender has not ended in a campaign of this workspace that had started, and has a flow."""
        replier, ended, plain, early = (make_prepared() for _ in range(4))
        flow = make_flow()
        place = {"status": CampaignStatus.ACTIVE, "started_at": NOW}
        driven = make_campaign(**place, message_source="flow", flow_id=flow.id)
        await given_rows(storage, flow)
        await given_campaign(storage, replier, ended, early, campaign=driven)
        await given_campaign(storage, plain, campaign=make_campaign(**place))

        def insert(tx: Transaction) -> None:
            change_recipient(tx, driven.id, 1, status=RecipientStatus.COMPLETED, ended_at=NOW)
            for one in (replier, ended, plain):
                tx.inbound.insert(make_inbound(from_number=one.phone, received_at=NOW))
            tx.inbound.insert(make_inbound(from_number=early.phone, received_at=NOW - TICK))
            tx.inbound.insert(make_inbound(workspace_id=OTHER_WORKSPACE, from_number=replier.phone, received_at=NOW))

        await storage.write(insert)
        for workspace_id, deleted in ((THIS_WORKSPACE, 3), (OTHER_WORKSPACE, 1)):
            assert deleted == await storage.write(
                lambda tx, it=workspace_id: tx.erasures.delete_old_events(it, NOW + _DAY, waiting_since=NOW, limit=10)  # type: ignore[misc]
            )
        left = await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE, limit=10))
        assert [one.from_number for one in left] == [replier.phone]

    async def test_an_answer_of_an_endpoint_with_a_persons_number_is_erased(self, storage: Storage) -> None:
        """Other answers, and those of other workspaces, stay."""
        phone = "+14155550123"
        ours, theirs = (make_webhook(workspace_id=owner) for owner in (THIS_WORKSPACE, OTHER_WORKSPACE))
        told = [
            make_webhook_attempt(workspace_id=webhook.workspace_id, webhook_id=webhook.id, answer=answer)
            for webhook, answer in ((ours, "no customer 14155550123"), (ours, "busy"), (theirs, phone))
        ]

        def erase(tx: Transaction) -> None:
            found = tx.erasures.rows_of_person(THIS_WORKSPACE, phone, limit=10)
            tx.erasures.erase_person(THIS_WORKSPACE, phone, found, name=f"#{new_id()}")

        def answers(tx: Transaction) -> list[str]:
            pages = (tx.webhook_attempts.page(one.workspace_id, one.id, limit=10) for one in (ours, theirs))
            return [attempt.answer for page in pages for attempt in page]

        await given_rows(storage, ours, theirs, *told)
        await storage.write(erase)
        assert sorted(await storage.read(answers)) == ["", phone, "busy"]

    async def test_what_a_campaign_counts_is_kept_until_it_is_erased(self, storage: Storage) -> None:
        """Its replies and opt-outs wait with it, but for what is too old to wait; those of nobody's campaign do not."""
        contact, uncontacted = make_prepared(), make_prepared()
        campaign = await given_campaign(storage, contact, uncontacted)
        answered = NOW + timedelta(hours=1)

        def write(tx: Transaction) -> None:
            place = {"campaign_id": campaign.id, "position": 0, "to": contact.phone, "created_at": NOW}
            tx.dispatches.insert(make_dispatch(**place, state=DispatchState.ACCEPTED))
            for one in (contact, uncontacted):
                tx.inbound.insert(make_inbound(from_number=one.phone, received_at=answered))
                tx.register.put(make_unsubscribe(phone=one.phone, source="keyword", created_at=answered))

        async def due(waiting_since: datetime) -> tuple[int, set[str]]:
            def find(tx: Transaction) -> tuple[int, set[str]]:
                given: dict[str, Any] = {"waiting_since": waiting_since, "limit": 10}
                entries = tx.register.numbers_before(THIS_WORKSPACE, NOW + _DAY, **given)
                return tx.erasures.delete_old_events(THIS_WORKSPACE, NOW + _DAY, **given), {
                    one.phone for one in entries
                }

            return await storage.write(find)

        await storage.write(write)
        assert await due(answered) == (1, {uncontacted.phone})
        assert await due(answered + TICK) == (1, {contact.phone, uncontacted.phone})
        await given_rows(storage, make_inbound(from_number=contact.phone, received_at=answered))

        def erase(tx: Transaction) -> None:
            tx.erasures.begin(THIS_WORKSPACE, campaign.id, figures="{}")
            tx.erasures.erase_positions(THIS_WORKSPACE, campaign.id, 0, limit=10)

        await storage.write(erase)
        assert await due(answered) == (1, {contact.phone, uncontacted.phone})

    async def test_a_person_is_erased_everywhere(self, storage: Storage) -> None:
        """A name takes the place of the number, in this workspace only; the texts go."""
        contact = make_prepared(external_id="crm-1", time_zone="America/Denver", us_place="331")
        phone = contact.phone or ""
        campaign = await given_campaign(storage, contact, make_prepared())
        theirs = await given_campaign(storage, contact, campaign=make_campaign(workspace_id=OTHER_WORKSPACE))
        message, waiting = given_message(to=phone), make_message(to=phone)
        event = make_callback(body=f'{{"from":"{phone}"}}'.encode())
        inbound = make_inbound(from_number=phone, media=("https://media.example.com/1.jpg",))
        answers = [
            make_stored_request(workspace_id=owner, key=key, answer=answer)
            for owner, key, answer in (
                (THIS_WORKSPACE, "person", f'{{"to":"{phone}"}}\xff'.encode("latin-1")),
                (THIS_WORKSPACE, "other", b"+19995550000"),
                (THIS_WORKSPACE, "running", None),
                (OTHER_WORKSPACE, "person", phone.encode()),
            )
        ]

        def insert(tx: Transaction) -> None:
            place = {"campaign_id": campaign.id, "position": 0, "to": phone}
            tx.dispatches.insert(make_dispatch(**place, state=DispatchState.ACCEPTED))
            for one in (message, waiting):
                tx.messages.insert(one)
            tx.callbacks.insert(event)
            tx.inbound.insert(inbound)
            tx.trail.append(make_trail_entry(phone=phone))
            for answer in answers:
                tx.requests.put_stored(answer)

        await storage.write(insert)
        found = await storage.read(lambda tx: tx.erasures.rows_of_person(THIS_WORKSPACE, phone, limit=100))
        assert [(one.campaign_id, one.position) for one in found.recipients] == [(campaign.id, 0)]
        assert set(found.messages) == {message.id, waiting.id}
        assert (found.open_singles, len(found.callbacks), list(found.calls)) == (1, 1, [])
        assert found.answers == [(answers[0].operation, "person")]
        await storage.write(lambda tx: tx.requests.delete_stored(THIS_WORKSPACE, answers[0].operation, "person"))
        name = f"#{new_id()}"
        await storage.write(lambda tx: tx.erasures.erase_person(THIS_WORKSPACE, phone, found, name=name))

        def read(tx: Transaction) -> None:
            recipient = tx.recipients.get(THIS_WORKSPACE, campaign.id, 0)
            assert recipient is not None
            assert (recipient.phone_number, recipient.phone, recipient.first_name) == (name, name, None)
            assert (recipient.external_id, recipient.time_zone, recipient.us_place) == (None, None, None)
            [dispatch] = tx.dispatches.of_recipient(THIS_WORKSPACE, campaign.id, 0)
            assert (dispatch.to, dispatch.body) == (name, None)
            assert tx.messages.get(THIS_WORKSPACE, message.id) == attrs.evolve(message, to=name, body="")
            written = tx.inbound.get(THIS_WORKSPACE, inbound.id)
            assert written == attrs.evolve(inbound, from_number=name, body="", media=())
            [known] = tx.callbacks.list(THIS_WORKSPACE)
            assert known.body == b""
            [entry] = tx.trail.between(THIS_WORKSPACE, 0, 1000)
            assert entry.phone == name
            other = tx.recipients.get(OTHER_WORKSPACE, theirs.id, 0)
            assert other is not None
            assert other.phone == phone

        await storage.read(read)
        assert await storage.read(lambda tx: tx.erasures.rows_of_person(THIS_WORKSPACE, phone, limit=100)) == (
            [],
            [],
            [],
            0,
            [],
            [],
        )
