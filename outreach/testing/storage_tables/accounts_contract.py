"""The contract of accounts at providers, and of what these called back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach.models.account import StoredAccount
from outreach.models.reports import CallbackRecord
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus, WorkspaceMode
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from outreach.testing.builders import (
    NOW,
    make_account,
    make_call_report,
    make_callback,
    make_campaign,
    make_dispatch,
    make_message,
    make_message_report,
    make_prepared,
    make_provider_throttle,
    new_id,
)
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    awkward_moments,
    given_rows,
    pending,
    publish,
    write_rows,
)


class AccountsContract(ContractBase):
    """Accounts and callbacks."""

    async def test_an_account_is_found_by_each_of_its_names(self, storage: Storage) -> None:
        """By its workspace and id, by its id alone, and by its workspace and provider; never from elsewhere."""
        account = make_account()
        await given_rows(storage, account)

        def found(tx: Transaction) -> list[object]:
            return [
                tx.accounts.get(THIS_WORKSPACE, account.id),
                tx.accounts.find(account.id),
                tx.accounts.of_provider(THIS_WORKSPACE, account.provider),
                tx.accounts.get(OTHER_WORKSPACE, account.id),
                tx.accounts.of_provider(OTHER_WORKSPACE, account.provider),
                tx.accounts.of_provider(THIS_WORKSPACE, "vonage"),
                tx.accounts.find(new_id()),
            ]

        assert await storage.read(found) == [account, account, account, None, None, None, None]

    async def test_accounts_are_listed_of_one_workspace_or_of_all(self, storage: Storage) -> None:
        """Oldest first, at most as many as requested."""
        late = make_account(created_at=NOW + TICK)
        early = make_account(workspace_id=OTHER_WORKSPACE, created_at=NOW)
        await given_rows(storage, late, early)

        async def found(workspace_id: str | None, limit: int = 9) -> list[StoredAccount]:
            return list(await storage.read(lambda tx: tx.accounts.any_workspace(workspace_id, limit=limit)))

        assert await found(None) == [early, late]
        assert await found(None, 1) == [early]
        assert await found(THIS_WORKSPACE) == [late]

    async def test_all_accounts_are_paged_by_id(self, storage: Storage) -> None:
        """Of all workspaces, after an id, at most as many as requested."""
        first, second = sorted((make_account(), make_account(workspace_id=OTHER_WORKSPACE)), key=lambda one: one.id)
        await given_rows(storage, second, first)

        async def page(after: str, limit: int = 9) -> list[StoredAccount]:
            return list(await storage.read(lambda tx: tx.accounts.page(after=after, limit=limit)))

        assert await page("") == [first, second]
        assert await page("", 1) == [first]
        assert await page(first.id) == [second]
        assert await page(second.id) == []

    async def test_the_same_credentials_under_another_key_stop_no_request(self, storage: Storage) -> None:
        """`reseal` writes the row, and counts as no stop; an update does."""
        account = make_account()
        await given_rows(storage, account)
        before = await storage.read(lambda tx: tx.stops.count(THIS_WORKSPACE))
        await storage.write(lambda tx: tx.accounts.reseal(attrs.evolve(account, sealed="other")))
        assert await storage.read(lambda tx: tx.accounts.find(account.id)) == attrs.evolve(account, sealed="other")
        assert await storage.read(lambda tx: tx.stops.count(THIS_WORKSPACE)) == before
        await storage.write(lambda tx: tx.accounts.update(account))
        assert await storage.read(lambda tx: tx.stops.count(THIS_WORKSPACE)) != before

    async def test_the_time_of_the_last_report_is_kept_and_stops_no_request(self, storage: Storage) -> None:
        """It is written with many callbacks."""
        account = make_account()
        await given_rows(storage, account)
        reported = attrs.evolve(account, last_report_at=NOW + TICK)
        before = await storage.read(lambda tx: tx.stops.count(THIS_WORKSPACE))
        await storage.write(lambda tx: tx.accounts.note_report(reported))
        assert await storage.read(lambda tx: tx.stops.count(THIS_WORKSPACE)) == before
        assert await storage.read(lambda tx: tx.accounts.get(THIS_WORKSPACE, account.id)) == reported

    async def test_messages_without_a_receipt_are_counted_by_workspace_and_provider(self, storage: Storage) -> None:
        """Of live workspaces, accepted after one moment and up to another one, in campaigns and alone."""
        period = (NOW, NOW + timedelta(hours=1))
        inside = {"state": DispatchState.ACCEPTED, "created_at": NOW + timedelta(hours=1)}
        single = {"status": MessageStatus.ACCEPTED, "provider_id": "SM1", "ended_at": NOW + TICK}

        def insert(tx: Transaction) -> None:
            workspace = tx.workspaces.get(THIS_WORKSPACE)
            assert workspace is not None
            tx.workspaces.update(attrs.evolve(workspace, mode=WorkspaceMode.LIVE))
            for status, ended in ((CampaignStatus.ACTIVE, None), (CampaignStatus.COMPLETED, NOW + TICK)):
                campaign = publish(
                    tx, make_campaign(status=status, completed_at=ended), pending(*(make_prepared() for _ in range(6)))
                )
                changes: Sequence[dict[str, Any]] = (
                    {},
                    {"created_at": NOW},
                    {"created_at": NOW + timedelta(hours=1) + TICK},
                    {"report": MessageStatus.SENT},
                    {"state": DispatchState.REFUSED},
                    {"provider": "telnyx"},
                )
                for position, change in enumerate(changes):
                    place = {"campaign_id": campaign.id, "position": position}
                    tx.dispatches.insert(make_dispatch(**place, **{**inside, **change}))
            for change in ({}, {"ended_at": NOW}, {"status": MessageStatus.SENT}, {"carrier": "telnyx"}):
                tx.messages.insert(make_message(**{**single, **change}))
            tx.messages.insert(make_message(**single, workspace_id=OTHER_WORKSPACE))

        await storage.write(insert)

        async def counted(*wanted: tuple[str, str], limit: int = 9) -> Mapping[tuple[str, str], int]:
            return await storage.read(
                lambda tx: tx.accounts.count_without_receipt(
                    [(*one, *period) for one in wanted], campaigns=9, limit=limit
                )
            )

        ours = (THIS_WORKSPACE, "twilio")
        assert await counted() == {}
        assert await counted(ours, (THIS_WORKSPACE, "vonage"), (OTHER_WORKSPACE, "twilio")) == {
            ours: 3,
            (THIS_WORKSPACE, "vonage"): 0,
        }
        assert await counted((THIS_WORKSPACE, "telnyx"), limit=1) == {(THIS_WORKSPACE, "telnyx"): 1}

    async def test_a_workspace_has_one_account_at_a_provider(self, storage: Storage) -> None:
        """A second one is refused, also by another id; another workspace has its own."""
        await given_rows(storage, make_account())
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.accounts.insert(make_account()))
        await given_rows(storage, make_account(workspace_id=OTHER_WORKSPACE))

    async def test_an_update_writes_what_can_change(self, storage: Storage) -> None:
        """The credentials, the flag and the revision; a foreign or absent account is a LookupError."""
        account = make_account()
        await given_rows(storage, account)
        changed = attrs.evolve(account, sealed="other", replies_to_keywords=False, revision=1, updated_at=NOW + TICK)
        await storage.write(lambda tx: tx.accounts.update(changed))
        assert await storage.read(lambda tx: tx.accounts.find(account.id)) == changed
        for strange in (attrs.evolve(changed, workspace_id=OTHER_WORKSPACE), make_account()):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, strange=strange: tx.accounts.update(strange))  # type: ignore[misc]

    async def test_an_account_is_deleted_by_its_own_workspace(self, storage: Storage) -> None:
        """And then another one may be made at the same provider."""
        account = make_account()
        await given_rows(storage, account)
        assert not await storage.write(lambda tx: tx.accounts.delete(OTHER_WORKSPACE, account.id))
        assert await storage.write(lambda tx: tx.accounts.delete(THIS_WORKSPACE, account.id))
        assert not await storage.write(lambda tx: tx.accounts.delete(THIS_WORKSPACE, account.id))
        await given_rows(storage, make_account())

    async def test_accounts_are_listed_oldest_first(self, storage: Storage) -> None:
        """By (created_at, id), of one workspace."""
        later, first = make_account(created_at=NOW + TICK), make_account(provider="vapi")
        await given_rows(storage, later, first, make_account(workspace_id=OTHER_WORKSPACE))
        assert list(await storage.read(lambda tx: tx.accounts.list(THIS_WORKSPACE))) == [first, later]

    async def test_an_event_is_found_once_it_is_written(self, storage: Storage) -> None:
        """By its account and its own identifier; a second insert is refused."""
        record = make_callback(body=b"\x00\xff{")
        await given_rows(storage, record)

        def found(tx: Transaction) -> list[CallbackRecord | None]:
            return [
                tx.callbacks.get(THIS_WORKSPACE, record.account_id, record.event_id),
                tx.callbacks.get(OTHER_WORKSPACE, record.account_id, record.event_id),
                tx.callbacks.get(THIS_WORKSPACE, new_id(), record.event_id),
                tx.callbacks.get(THIS_WORKSPACE, record.account_id, "other"),
            ]

        assert await storage.read(found) == [record, None, None, None]
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.callbacks.insert(record))
        assert list(await storage.read(lambda tx: tx.callbacks.list(THIS_WORKSPACE))) == [record]

    async def test_what_waits_for_an_identifier_is_found_by_it(self, storage: Storage) -> None:
        """The oldest first, at most `limit`; of one provider, in one workspace, and no more once it is matched."""
        calls = {"status": CallStatus.COMPLETED, "outcome": "positive", "summary": "Will come.", "reason": None}
        reports = [
            make_message_report(provider_id="SM-1", error_code="30003", reason="unreachable", at=NOW + TICK),
            make_message_report(provider_id="SM-1", dispatch_id="nobody's"),
            make_message_report(provider_id="SM-2"),
            make_message_report(provider_id="SM-1", provider="telnyx"),
            make_call_report(provider_id="SM-1", provider="vapi", do_not_call=True, answered_by="human", **calls),
        ]
        made = [
            make_callback(result="unmatched", report=report, received_at=NOW - TICK * later, account_id=new_id())
            for later, report in enumerate(reports)
        ]
        elsewhere = make_callback(workspace_id=OTHER_WORKSPACE, report=reports[0])
        await given_rows(storage, *made, elsewhere, make_callback())

        async def waiting(
            provider: str = "twilio", limit: int = 9, where: str = THIS_WORKSPACE
        ) -> list[CallbackRecord]:
            return list(await storage.read(lambda tx: tx.callbacks.waiting(where, provider, "SM-1", limit=limit)))

        assert await waiting() == [made[1], made[0]]
        assert await waiting(limit=1) == [made[1]]
        assert await waiting("telnyx") == [made[3]]
        assert await waiting("vapi") == [made[4]]
        assert await waiting(where=OTHER_WORKSPACE) == [elsewhere]
        matched = attrs.evolve(made[1], result="merged", report=None)
        await storage.write(lambda tx: tx.callbacks.update(attrs.evolve(matched, body=b"other", received_at=NOW)))
        assert await waiting() == [made[0]]
        assert (
            await storage.read(lambda tx: tx.callbacks.get(THIS_WORKSPACE, matched.account_id, matched.event_id))
            == matched
        )

    async def test_what_many_identifiers_are_waited_for_by_is_looked_at_at_once(self, storage: Storage) -> None:
        """By either name, each in its workspace and of its provider; a later one is found all the same."""
        own = make_callback(report=make_message_report(provider_id="SM-1"))
        telephony = make_callback(report=make_call_report(provider_id="conv-1", telephony_id="CA-1"))
        late = make_callback(report=make_message_report(provider_id="SM-2"))
        names = [
            (THIS_WORKSPACE, "twilio", "SM-1"),
            (THIS_WORKSPACE, "vapi", "CA-1"),
            (THIS_WORKSPACE, "twilio", "SM-2"),
            (OTHER_WORKSPACE, "twilio", "SM-1"),
        ]

        def operation(tx: Transaction) -> list[list[CallbackRecord]]:
            write_rows(tx, own, telephony)
            tx.callbacks.prefetch_waiting(names)
            before = [list(tx.callbacks.waiting(*name, limit=9)) for name in names]
            tx.callbacks.insert(late)
            return [*before, list(tx.callbacks.waiting(*names[2], limit=9))]

        assert await storage.write(operation) == [[own], [telephony], [], [], [late]]

    async def test_what_waits_for_the_telephonys_identifier_is_found_by_it_too(self, storage: Storage) -> None:
        """By either name, the oldest first, at most `limit`, and once where both are the same."""
        names = [("conv-1", "CA-1"), ("CA-1", None), (None, "CA-1"), ("CA-1", "CA-1"), ("conv-2", "CA-2")]
        made = [
            make_callback(
                result="unmatched",
                report=make_call_report(provider_id=own, telephony_id=telephony),
                received_at=NOW - TICK * later,
            )
            for later, (own, telephony) in enumerate(names)
        ]
        elsewhere = make_callback(
            workspace_id=OTHER_WORKSPACE, report=make_call_report(provider_id="conv-1", telephony_id="CA-1")
        )
        await given_rows(storage, *made, elsewhere)

        async def waiting(name: str, limit: int = 9) -> list[CallbackRecord]:
            return list(await storage.read(lambda tx: tx.callbacks.waiting(THIS_WORKSPACE, "vapi", name, limit=limit)))

        assert await waiting("CA-1") == [made[3], made[2], made[1], made[0]]
        assert await waiting("CA-1", limit=2) == [made[3], made[2]]
        assert await waiting("conv-1") == [made[0]]
        assert await waiting("CA-2") == [made[4]]
        matched = attrs.evolve(made[0], result="merged", report=None)
        await storage.write(lambda tx: tx.callbacks.update(matched))
        assert await waiting("CA-1", limit=3) == [made[3], made[2], made[1]]

    async def test_the_providers_own_event_is_kept_in_the_body_alone(self, storage: Storage) -> None:
        """The engine's reading of it is kept beside it."""
        record = make_callback(report=make_message_report(provider_id="SM-1", raw={"MessageSid": "SM-1"}))
        await given_rows(storage, record)
        found = await storage.read(lambda tx: tx.callbacks.get(THIS_WORKSPACE, record.account_id, record.event_id))
        assert found == attrs.evolve(record, report=make_message_report(provider_id="SM-1"))

    @pytest.mark.parametrize(
        "changes", [{"workspace_id": OTHER_WORKSPACE}, {"account_id": OTHER_WORKSPACE}, {"event_id": "other"}]
    )
    async def test_an_event_that_is_not_there_is_not_written_over(self, storage: Storage, changes: Any) -> None:
        """Its workspace, its account and its identifier say which it is."""
        record = make_callback()
        await given_rows(storage, record)
        with pytest.raises(LookupError):
            await storage.write(lambda tx: tx.callbacks.update(attrs.evolve(record, result="merged", **changes)))
        assert list(await storage.read(lambda tx: tx.callbacks.list(THIS_WORKSPACE))) == [record]

    async def test_events_are_listed_newest_first(self, storage: Storage) -> None:
        """At most `limit`, of one workspace, from any place on."""
        made = [_at(NOW + TICK * later) for later in (1, 0, 2)]
        await given_rows(storage, *made, make_callback(workspace_id=OTHER_WORKSPACE))
        assert list(await storage.read(lambda tx: tx.callbacks.list(THIS_WORKSPACE))) == [made[2], made[0], made[1]]
        assert list(await storage.read(lambda tx: tx.callbacks.list(THIS_WORKSPACE, limit=1))) == [made[2]]
        behind = [(one.received_at, one.account_id, one.event_id) for one in made]
        listed = [await storage.read(lambda tx, it=it: tx.callbacks.list(THIS_WORKSPACE, after=it)) for it in behind]  # type: ignore[misc]
        assert [list(found) for found in listed] == [[made[1]], [], [made[0], made[1]]]

    async def test_events_of_one_moment_are_listed_by_account_and_event(self, storage: Storage) -> None:
        """Both descending; a page begins behind any of them."""
        keys = [("a", "2"), ("a", "3"), ("b", "1")]
        made = [make_callback(account_id=account, event_id=event, received_at=NOW) for account, event in keys]
        await given_rows(storage, *made)
        for place, rest in (((NOW, "b", "1"), made[1::-1]), ((NOW, "a", "3"), made[:1]), ((NOW, "c", ""), made[::-1])):
            found = await storage.read(lambda tx, place=place: tx.callbacks.list(THIS_WORKSPACE, after=place))  # type: ignore[misc]
            assert list(found) == rest

    async def test_old_events_are_swept_in_slices(self, storage: Storage) -> None:
        """Those received before a moment, of a workspace the oldest first, at most `limit` at a time in all."""
        made = [_at(NOW + TICK * later) for later in range(4)]
        await given_rows(storage, *made)
        assert await storage.write(lambda tx: tx.callbacks.sweep(NOW + TICK * 3, limit=2)) == 2
        assert list(await storage.read(lambda tx: tx.callbacks.list(THIS_WORKSPACE))) == [made[3], made[2]]
        elsewhere = make_callback(workspace_id=OTHER_WORKSPACE, received_at=NOW)
        await given_rows(storage, elsewhere)
        assert await storage.write(lambda tx: tx.callbacks.sweep(NOW + TICK * 3, limit=2)) == 2
        assert list(await storage.read(lambda tx: tx.callbacks.list(THIS_WORKSPACE))) == [made[3]]
        assert list(await storage.read(lambda tx: tx.callbacks.list(OTHER_WORKSPACE))) == []

    @awkward_moments
    async def test_a_hold_is_put_over_the_last_one_and_forgotten(self, storage: Storage, moment: datetime) -> None:
        """One for each provider of each workspace, which needs no account there; to delete none does nothing."""
        first = make_provider_throttle()
        second = make_provider_throttle(since=moment, until=moment, refusals=MAX_INTEGER)
        other, there = make_provider_throttle(provider="vapi"), make_provider_throttle(workspace_id=OTHER_WORKSPACE)

        def look(tx: Transaction) -> list[object]:
            asked = [
                (THIS_WORKSPACE, "twilio"),
                (THIS_WORKSPACE, "vapi"),
                (OTHER_WORKSPACE, "twilio"),
                (OTHER_WORKSPACE, "vapi"),
            ]
            return [tx.provider_throttles.get(*question) for question in asked]

        def forget(tx: Transaction) -> None:
            tx.provider_throttles.delete(THIS_WORKSPACE, "twilio")
            tx.provider_throttles.delete(OTHER_WORKSPACE, "vapi")

        await given_rows(storage, first, other, there, second)
        assert await storage.read(look) == [second, other, there, None]
        assert await storage.read(lambda tx: list(tx.provider_throttles.list())) == sorted(
            (second, other, there), key=lambda hold: (hold.workspace_id, hold.provider)
        )
        await storage.write(forget)
        assert await storage.read(look) == [None, other, there, None]

    async def test_what_is_asked_for_beyond_a_moment_is_listed(self, storage: Storage) -> None:
        """The throttle that ends first comes first, by (until, workspace, provider), of one workspace or of all."""
        over = make_provider_throttle(provider="vonage", until=NOW)
        long = make_provider_throttle(until=NOW + TICK * 3)
        soon = make_provider_throttle(provider="vapi", until=NOW + TICK)
        twin = make_provider_throttle(provider="telnyx", until=NOW + TICK)
        there = make_provider_throttle(workspace_id=OTHER_WORKSPACE, until=NOW + TICK * 2)
        await given_rows(storage, over, long, soon, there, twin)

        async def unexpired(workspace_id: str | None, limit: int = 9) -> object:
            return await storage.read(lambda tx: list(tx.provider_throttles.unexpired(workspace_id, NOW, limit=limit)))

        assert await unexpired(None) == [twin, soon, there, long]
        assert await unexpired(None, 1) == [twin]
        assert await unexpired(THIS_WORKSPACE) == [twin, soon, long]
        assert await unexpired(OTHER_WORKSPACE) == [there]


def _at(moment: datetime) -> CallbackRecord:
    return make_callback(received_at=moment)
