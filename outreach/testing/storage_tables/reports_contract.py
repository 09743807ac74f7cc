"""The contract of reports: what the sets of a campaign's ledger add up to."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs

from outreach.models.campaign import Campaign
from outreach.models.campaign_report import SenderFigures
from outreach.models.dispatch import Dispatch
from outreach.models.states import CallStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_call,
    make_call_campaign,
    make_campaign,
    make_dispatch,
    make_inbound,
    make_prepared,
    make_unsubscribe,
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
    pending,
    publish,
    write_rows,
)

_HOUR = timedelta(hours=1)
_LONDON, _TORONTO, _NEW_YORK = "+442079460018", "+14165550123", "+12125550123"


def _is_plain(dispatch: Dispatch) -> bool:
    return dispatch.state is DispatchState.ACCEPTED and dispatch.reason is None and dispatch.error_code is None


async def given_requests(storage: Storage) -> tuple[Campaign, Sequence[Dispatch]]:
    """Write a campaign with a request in every state, with every report, reason and code; return both."""
    known = itertools.product(
        DispatchState,
        (None, MessageStatus.SENT, MessageStatus.DELIVERED, MessageStatus.FAILED, MessageStatus.CANCELED),
        (None, "unreachable"),
        (None, "30003"),
        ((_LONDON, "twilio"), (_TORONTO, "telnyx"), (_NEW_YORK, "telnyx")),
    )
    made = [
        make_dispatch(
            position=position,
            state=state,
            report=report,
            reason=reason,
            error_code=code,
            error_message="The last one." if code is not None else None,
            to=to,
            provider=provider,
            segments=position % 4 + 1,
        )
        for position, (state, report, reason, code, (to, provider)) in enumerate(known)
    ]
    campaign = await given_recipients(storage, len(made))
    requests = [attrs.evolve(one, campaign_id=campaign.id) for one in made]
    other = await given_recipients(storage, 1)
    theirs = make_dispatch(campaign_id=other.id, position=0, state=DispatchState.ACCEPTED)
    await given_rows(storage, *requests, theirs)
    return campaign, requests


class ReportsContract(ContractBase):
    """The figures of reports."""

    async def test_contacts_are_counted_by_result(self, storage: Storage) -> None:
        """By state and reason, without pending ones and the contacted ones that are completed without a reason."""
        ends = list(itertools.product(RecipientStatus, (None, "unreachable", "no_receipt"), (False, True)))
        campaign = await given_recipients(storage, len(ends))

        def end(tx: Transaction) -> None:
            for position, (status, reason, dispatched) in enumerate(ends):
                change_recipient(tx, campaign.id, position, status=status, reason=reason, dispatched=dispatched)

        await storage.write(end)
        wanted: Counter[tuple[str, str | None]] = Counter()
        contacted: Counter[tuple[str, str | None]] = Counter()
        for status, reason, dispatched in ends:
            is_plain = (status, reason, dispatched) == (RecipientStatus.COMPLETED, None, True)
            if not is_plain and status is not RecipientStatus.PENDING:
                wanted[status, reason] += 1
                contacted[status, reason] += dispatched
        rows = await storage.read(lambda tx: tx.reports.results(THIS_WORKSPACE, campaign.id))
        assert {(row.status, row.reason): row.contacts for row in rows} == wanted
        assert {(row.status, row.reason): row.contacted for row in rows} == contacted
        assert len(rows) == len(wanted)
        assert await storage.read(lambda tx: tx.reports.results(OTHER_WORKSPACE, campaign.id)) == []
        assert await storage.read(lambda tx: tx.reports.results(THIS_WORKSPACE, new_id())) == []

    async def test_accepted_messages_are_counted_by_provider_and_country(self, storage: Storage) -> None:
        """Only messages without a reason or a code are counted; by country, all numbers of a group are of one."""
        campaign, requests = await given_requests(storage)
        plain = [one for one in requests if _is_plain(one)]
        for by_country in (False, True):
            rows = await storage.read(
                lambda tx, by=by_country: tx.reports.accepted_messages(THIS_WORKSPACE, campaign.id, by_country=by)  # type: ignore[misc]
            )
            for provider in ("twilio", "telnyx"):
                theirs = [one for one in plain if one.provider == provider]
                found = [row for row in rows if row.provider == provider]
                assert sum(row.requests for row in found) == len(theirs)
                assert sum(row.segments for row in found) == sum(one.segments or 0 for one in theirs)
                delivered = sum(one.report is MessageStatus.DELIVERED for one in theirs)
                failed = sum(one.report in {MessageStatus.FAILED, MessageStatus.CANCELED} for one in theirs)
                assert sum(row.delivered for row in found) == delivered
                assert sum(row.undelivered for row in found) == failed
            if by_country:
                segments = {row.place: row.segments for row in rows}
                for phone in (_LONDON, _TORONTO, _NEW_YORK):
                    assert segments[phone] == sum(one.segments or 0 for one in plain if one.to == phone)

    async def test_messages_are_counted_by_what_they_came_from(self, storage: Storage) -> None:
        """In order; of the campaign alone."""
        campaign = await given_recipients(storage, 5)
        sent: list[dict[str, Any]] = [
            {"from_number": "+14155550101", "state": DispatchState.ACCEPTED, "report": MessageStatus.DELIVERED},
            {"from_number": "+14155550101", "state": DispatchState.ACCEPTED, "report": MessageStatus.FAILED},
            {"from_number": "+14155550101", "state": DispatchState.ACCEPTED},
            {"from_number": "+14155550102", "state": DispatchState.REFUSED},
            {"from_number": None, "state": DispatchState.ACCEPTED},
        ]
        for position, fields in enumerate(sent):
            await given_rows(storage, make_dispatch(campaign_id=campaign.id, position=position, **fields))
        assert await storage.read(lambda tx: tx.reports.by_sender(THIS_WORKSPACE, campaign.id)) == [
            SenderFigures(from_number="+14155550101", requests=3, accepted=3, delivered=1, undelivered=1, refused=0),
            SenderFigures(from_number="+14155550102", requests=1, accepted=0, delivered=0, undelivered=0, refused=1),
        ]
        assert await storage.read(lambda tx: tx.reports.by_sender(OTHER_WORKSPACE, campaign.id)) == []

    async def test_the_accepted_messages_of_one_provider_are_one_row(self, storage: Storage) -> None:
        """Nearly every campaign has one; without any there is no row."""
        campaign = await given_recipients(storage, 3)
        nothing = await storage.read(
            lambda tx: tx.reports.accepted_messages(THIS_WORKSPACE, campaign.id, by_country=False)
        )
        assert nothing == []

        def insert(tx: Transaction) -> None:
            for position in range(3):
                place = {"campaign_id": campaign.id, "position": position, "segments": 2}
                tx.dispatches.insert(make_dispatch(**place, state=DispatchState.ACCEPTED))

        await storage.write(insert)
        [row] = await storage.read(
            lambda tx: tx.reports.accepted_messages(THIS_WORKSPACE, campaign.id, by_country=False)
        )
        assert (row.provider, row.requests, row.delivered, row.undelivered, row.segments) == ("twilio", 3, 0, 0, 6)

    async def test_all_other_messages_are_counted_by_outcome(self, storage: Storage) -> None:
        """Each request is either among these or among the accepted ones, by country or not."""
        campaign, requests = await given_requests(storage)
        others = [one for one in requests if not _is_plain(one)]
        wanted = Counter((one.provider, one.state, one.report, one.reason, one.error_code) for one in others)
        for by_country in (False, True):
            rows = await storage.read(
                lambda tx, by=by_country: tx.reports.other_messages(THIS_WORKSPACE, campaign.id, by_country=by)  # type: ignore[misc]
            )
            found: Counter[tuple[object, ...]] = Counter()
            for row in rows:
                found[row.provider, row.state, row.report, row.reason, row.error_code] += row.requests
                assert row.error_message == ("The last one." if row.error_code is not None else None)
            assert found == wanted
            assert sum(row.segments for row in rows) == sum(one.segments or 0 for one in others)
            if by_country:
                of_toronto = sum(one.segments or 0 for one in others if one.to == _TORONTO)
                assert sum(row.segments for row in rows if row.place == _TORONTO) == of_toronto

    async def test_calls_are_counted_by_status_outcome_provider_and_country(self, storage: Storage) -> None:
        """With the whole milliseconds between answer and end of each call, and the minutes that each has begun."""
        agent = make_agent()
        campaign = make_call_campaign(agent_id=agent.id)
        # Microseconds of answer and end; None for a call that nobody answered.
        lasted = (None, (0, 0), (7, 1006), (7, 1007), (999_999, 60_999_999), (999_999, 61_000_999), (0, 61_400_000))
        before_it = (5_000_000, 4_000_000)
        costs = (None, Decimal("0.14"), Decimal("0.000001"), Decimal(999_999))
        calls = [
            make_call(
                agent_id=agent.id,
                campaign_id=campaign.id,
                position=position,
                provider="retell" if position % 3 else "vapi",
                to=_LONDON if position % 2 else _TORONTO,
                status=CallStatus.COMPLETED,
                outcome="positive" if times else None,
                answered_at=None if times is None else NOW + timedelta(microseconds=times[0]),
                ended_at=NOW + timedelta(microseconds=1 if times is None else times[1]),
                cost=costs[position % 4],
                cost_currency=None if costs[position % 4] is None else "EUR" if position == 1 else "USD",
            )
            for position, times in enumerate((*lasted, before_it))
        ]

        def insert(tx: Transaction) -> None:
            tx.agents.insert(agent)
            publish(tx, campaign, pending(*(make_prepared() for _ in calls)))
            write_rows(tx, *calls)

        await storage.write(insert)
        for by_country in (False, True):
            wanted: dict[tuple[object, ...], Any] = {}
            for call in calls:
                place = (call.outcome, call.provider, call.to if by_country else None, call.cost_currency)
                milliseconds = call.duration_ms or 0
                figures = {"calls": 1, "answered": int(call.answered_at is not None), "milliseconds": milliseconds}
                figures |= {"minutes": math.ceil(milliseconds / 60_000), "priced": int(call.cost is not None)}
                wanted.setdefault(place, Counter()).update(figures, cost=call.cost or Decimal())
            rows = await storage.read(
                lambda tx, by=by_country: tx.reports.calls(THIS_WORKSPACE, campaign.id, by_country=by)  # type: ignore[misc]
            )
            found: dict[tuple[object, ...], Any] = {}
            for row in rows:
                assert row.status is CallStatus.COMPLETED
                place = (row.outcome, row.provider, row.place if by_country else None, row.currency)
                names = ("calls", "answered", "milliseconds", "minutes", "priced")
                figures = {name: getattr(row, name) for name in names}
                found.setdefault(place, Counter()).update(figures, cost=row.cost or Decimal())
            assert found == wanted
        assert [call.duration_ms for call in calls] == [None, 0, 0, 1, 60_000, 60_001, 61_400, 0]

    async def test_requests_are_counted_by_time(self, storage: Storage) -> None:
        """From each bound until before the next one, to the shortest time."""
        campaign = await given_recipients(storage, 5)
        assert await storage.read(lambda tx: tx.reports.first_and_last_request(THIS_WORKSPACE, campaign.id)) is None
        moments = (NOW, NOW + _HOUR - TICK, NOW + _HOUR, NOW + _HOUR, NOW + 2 * _HOUR)
        for position, at in enumerate(moments):
            await given_rows(storage, make_dispatch(campaign_id=campaign.id, position=position, created_at=at))
        ends = await storage.read(lambda tx: tx.reports.first_and_last_request(THIS_WORKSPACE, campaign.id))
        assert ends == (moments[0], moments[-1])
        bounds = [NOW, NOW + _HOUR, NOW + 2 * _HOUR, NOW + 3 * _HOUR]
        counted = await storage.read(lambda tx: tx.reports.requests_between(THIS_WORKSPACE, campaign.id, bounds))
        assert list(counted) == [2, 2, 1]

    async def test_requests_are_counted_by_step_state_and_report(self, storage: Storage) -> None:
        """Since a moment, by minutes, ten minutes, hours or days."""
        campaign = await given_recipients(storage, 1)
        begin = NOW.replace(hour=9, minute=50, second=0, microsecond=0)
        sent = (
            (begin - TICK, DispatchState.ACCEPTED, None),
            (begin, DispatchState.ACCEPTED, MessageStatus.SENT),
            (begin + timedelta(minutes=1) - TICK, DispatchState.ACCEPTED, None),
            (begin + timedelta(minutes=9), DispatchState.ACCEPTED, None),
            (begin + timedelta(minutes=10), DispatchState.REFUSED, None),
        )

        def insert(tx: Transaction) -> None:
            for at, state, report in sent:
                place = {"campaign_id": campaign.id, "position": 0, "created_at": at}
                tx.dispatches.insert(make_dispatch(**place, state=state, report=report))

        await storage.write(insert)

        async def counted(step: timedelta, since: datetime = begin, owner: str = THIS_WORKSPACE) -> list[object]:
            return list(
                await storage.read(lambda tx: tx.reports.requests_by_step(owner, campaign.id, since=since, step=step))
            )

        ten = timedelta(minutes=10)
        accepted, refused = DispatchState.ACCEPTED, DispatchState.REFUSED
        assert await counted(timedelta(minutes=1)) == [
            (begin, accepted, None, 1),
            (begin, accepted, MessageStatus.SENT, 1),
            (begin + timedelta(minutes=9), accepted, None, 1),
            (begin + ten, refused, None, 1),
        ]
        assert await counted(ten) == [
            (begin, accepted, None, 2),
            (begin, accepted, MessageStatus.SENT, 1),
            (begin + ten, refused, None, 1),
        ]
        hour = begin.replace(minute=0)
        assert await counted(_HOUR, begin - TICK) == [
            (hour, accepted, None, 3),
            (hour, accepted, MessageStatus.SENT, 1),
            (hour + _HOUR, refused, None, 1),
        ]
        assert [one[0] for one in await counted(timedelta(days=1))] == [begin.replace(hour=0, minute=0)] * 3  # type: ignore[index]
        assert await counted(ten, owner=OTHER_WORKSPACE) == []

    async def test_replies_of_one_moment_are_in_the_order_of_their_ids(self, storage: Storage) -> None:
        """Whatever the order in which they were stored; also once they are assigned to the campaign."""
        contact = make_prepared()
        campaign = await given_campaign(storage, contact, campaign=make_campaign())
        place, phones = (THIS_WORKSPACE, campaign.id), [contact.phone or ""]
        sent = make_dispatch(campaign_id=campaign.id, position=0, message_id=None, to=contact.phone, created_at=NOW)
        await given_rows(
            storage,
            attrs.evolve(sent, state=DispatchState.ACCEPTED),
            *(
                make_inbound(id=name, from_number=contact.phone, body=name, received_at=at)
                for name, at in (("c", NOW), ("b", NOW + TICK), ("a", NOW + TICK))
            ),
        )
        window = (NOW, NOW + _HOUR)
        found = await storage.read(lambda tx: tx.reports.replies_of(*place, phones, *window))
        assert [body for _, body in found[phones[0]]] == ["c", "a", "b"]
        await storage.write(lambda tx: tx.erasures.erase_positions(*place, 0, limit=1))
        found = await storage.read(lambda tx: tx.reports.archived_replies_of(*place, phones))
        assert [body for _, body in found[phones[0]]] == ["c", "a", "b"]

    async def test_replies_and_opt_outs_belong_to_the_campaign_that_wrote_last(self, storage: Storage) -> None:
        """A request that went to nobody does not count, nor one that came later; the window is half-open."""
        contact = make_prepared()
        first = await given_campaign(storage, contact, campaign=make_campaign())
        second = await given_campaign(storage, contact, campaign=make_campaign())
        third = await given_campaign(storage, contact, campaign=make_campaign())
        sent = (
            (first, NOW, DispatchState.ACCEPTED),
            (second, NOW + 2 * _HOUR, DispatchState.ACCEPTED),
            (third, NOW + 3 * _HOUR, DispatchState.NOT_SENT),
        )

        def insert(tx: Transaction) -> None:
            for campaign, at, state in sent:
                place = {"campaign_id": campaign.id, "position": 0, "to": contact.phone, "created_at": at}
                tx.dispatches.insert(make_dispatch(**place, state=state))
            for hours in (1, 4, 9):
                at = NOW + hours * _HOUR
                tx.inbound.insert(make_inbound(from_number=contact.phone, body=f"after {hours}", received_at=at))
            tx.inbound.insert(make_inbound(received_at=NOW + _HOUR))
            left = make_unsubscribe(phone=contact.phone, source="keyword", created_at=NOW + 5 * _HOUR)
            tx.register.put(left)

        await storage.write(insert)
        window = (NOW, NOW + 9 * _HOUR)
        phones = [contact.phone or ""]

        def read(tx: Transaction, campaign: Campaign) -> tuple[object, ...]:
            place = (THIS_WORKSPACE, campaign.id)
            replied = tx.reports.replies_of(*place, phones, *window)
            left = tx.reports.opt_outs_of(*place, phones, *window)
            assert tx.reports.replies(*place, *window) == [
                (at, phone) for phone, found in replied.items() for at, _ in found
            ]
            assert list(tx.reports.opt_outs(*place, *window)) == list(left.values())
            return {phone: list(found) for phone, found in replied.items()}, left

        found = [await storage.read(lambda tx, one=one: read(tx, one)) for one in (first, second, third)]  # type: ignore[misc]
        assert found == [
            ({phones[0]: [(NOW + _HOUR, "after 1")]}, {}),
            ({phones[0]: [(NOW + 4 * _HOUR, "after 4")]}, {phones[0]: NOW + 5 * _HOUR}),
            ({}, {}),
        ]
        nobody: datetime = NOW + 20 * _HOUR
        later = await storage.read(lambda tx: tx.reports.replies(THIS_WORKSPACE, second.id, nobody, nobody + _HOUR))
        assert later == []
