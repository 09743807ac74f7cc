"""The contract of recipients: writing, reading, counting and dropping them."""

from __future__ import annotations

import itertools
import json
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import attrs
import pytest

from outreach.models.campaign import Counters, PreparedRecipient, Recipient, contribution
from outreach.models.states import IN_FLIGHT_RECIPIENT_STATUSES, OPEN_RECIPIENT_STATUSES, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from outreach.testing.builders import NOW, make_campaign, make_prepared, make_recipient, make_unsubscribe, new_id
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    awkward_moments,
    awkward_texts,
    change_recipient,
    given_campaign,
    given_recipients,
    pending,
    publish,
)

NESTED: dict[str, Any] = {
    "": None,
    "clé 🎉": {"deep": [[[{"er": [True, False, None, "", 0, -1, 1.5]}]]]},
    "big": MAX_INTEGER,
    "small": -MAX_INTEGER - 1,
    "text": "007",
    "list": [],
    "object": {},
}


async def recipient_at(storage: Storage, campaign_id: str, position: int) -> Recipient:
    """Return a recipient that is there."""
    recipient = await storage.read(lambda tx: tx.recipients.get(THIS_WORKSPACE, campaign_id, position))
    assert recipient is not None
    return recipient


class RecipientsContract(ContractBase):
    """Recipients, but for what is due."""

    @awkward_texts
    async def test_a_contact_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """Every text comes back to the code point; empty is not None, and JSON values keep their types."""
        full = make_prepared(
            phone_number=text,
            first_name=text,
            last_name=text,
            email=text,
            company=text,
            external_id=text,
            time_zone=text,
            us_place=text,
            custom_variables=json.dumps(NESTED | {"x": text, text: 1}, ensure_ascii=False, separators=(",", ":")),
        )
        bare = make_prepared(phone=None, first_name=None)
        campaign = await given_campaign(storage, full, bare)
        first = await recipient_at(storage, campaign.id, 0)
        expected = make_recipient(
            **(full._asdict() | {"custom_variables": NESTED | {"x": text, text: 1}}), campaign_id=campaign.id
        )
        assert first == expected
        assert list(first.custom_variables) == list(expected.custom_variables)
        second = await recipient_at(storage, campaign.id, 1)
        assert second == make_recipient(
            **(bare._asdict() | {"custom_variables": {}}), campaign_id=campaign.id, position=1
        )

    @pytest.mark.parametrize("name", PreparedRecipient._field_defaults)
    async def test_an_optional_field_is_kept_beside_contacts_without_any(self, storage: Storage, name: str) -> None:
        """Contacts are written in one set, whichever fields each of them has."""
        full = make_prepared(**{name: "+14155550199"})
        campaign = await given_campaign(storage, make_prepared(), full, make_prepared())
        kept = [getattr(await recipient_at(storage, campaign.id, position), name) for position in range(3)]
        assert kept == [None, "+14155550199", None]

    async def test_what_a_reader_changes_changes_nothing(self, storage: Storage) -> None:
        """Custom variables are the reader's own copy."""
        campaign = await given_campaign(storage, make_prepared(custom_variables='{"tags":["a"]}'), make_prepared())
        for position in (0, 1):
            variables: Any = (await recipient_at(storage, campaign.id, position)).custom_variables
            variables["tags"] = variables.get("tags", [])
            variables["tags"].append("b")
        assert (await recipient_at(storage, campaign.id, 0)).custom_variables == {"tags": ["a"]}
        assert (await recipient_at(storage, campaign.id, 1)).custom_variables == {}

    @pytest.mark.parametrize("status", RecipientStatus)
    async def test_those_that_have_ended_ended_now(self, storage: Storage, status: RecipientStatus) -> None:
        """A recipient that is written in a final state has the moment of its end, an open one has none."""
        campaign = make_campaign()
        await storage.write(lambda tx: publish(tx, campaign, [(7, make_prepared(), status, "because")]))
        recipient = await recipient_at(storage, campaign.id, 7)
        assert (recipient.status, recipient.reason) == (status, "because")
        assert recipient.ended_at == (None if status in OPEN_RECIPIENT_STATUSES else NOW)

    async def test_a_position_is_taken_once(self, storage: Storage) -> None:
        """An insert with a position that is there, or twice in it, writes none of its rows."""
        campaign = await given_recipients(storage, 2)
        row = (make_prepared(), RecipientStatus.PENDING, None)
        full = (make_prepared(external_id="a"), RecipientStatus.PENDING, None)

        def insert(tx: Transaction) -> None:
            with pytest.raises(AlreadyExists):
                tx.recipients.insert(THIS_WORKSPACE, campaign.id, [(5, *row), (5, *full)], now=NOW)
            for positions in ((2, 1, 3), (5, 6, 5)):
                with pytest.raises(AlreadyExists):
                    tx.recipients.insert(
                        THIS_WORKSPACE, campaign.id, [(position, *row) for position in positions], now=NOW
                    )
            tx.recipients.insert(THIS_WORKSPACE, campaign.id, iter([(9, *row)]), now=NOW)

        await storage.write(insert)
        page = await storage.read(lambda tx: tx.recipients.page(THIS_WORKSPACE, campaign.id))
        assert [recipient.position for recipient in page] == [0, 1, 9]

    async def test_recipients_are_written_to_a_campaign_of_the_workspace(self, storage: Storage) -> None:
        """An absent campaign, and one of another workspace, raise LookupError."""
        campaign = await given_recipients(storage, 1)
        rows = [(5, make_prepared(), RecipientStatus.PENDING, None)]
        for owner, key in ((OTHER_WORKSPACE, campaign.id), (THIS_WORKSPACE, new_id())):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, at=(owner, key): tx.recipients.insert(*at, rows, now=NOW))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.recipients.get(OTHER_WORKSPACE, campaign.id, 5)) is None
        assert await storage.read(lambda tx: tx.recipients.get(THIS_WORKSPACE, campaign.id, 5)) is None

    async def test_another_workspace_sees_no_recipients(self, storage: Storage) -> None:
        """Every reading method answers as if the campaign were not there."""
        contact = make_prepared(external_id="a")
        campaign = await given_campaign(storage, contact, make_prepared(phone=None, phone_number="none"))
        phone = contact.phone
        assert phone is not None

        def look(tx: Transaction, owner: str) -> list[Any]:
            at = (owner, campaign.id)
            return [
                tx.recipients.get(*at, 0),
                list(tx.recipients.page(*at)),
                list(tx.recipients.by_phone(*at, phone)),
                list(tx.recipients.without_phone(*at, "none")),
                list(tx.recipients.due(*at, NOW, limit=9)),
                list(tx.recipients.closable(*at, limit=9)),
                list(tx.recipients.with_external_id_anywhere(owner, "a", limit=9)),
                list(tx.recipients.with_external_id(owner, "a", campaign_id=campaign.id, limit=9)),
                tx.recipients.external_ids([(owner, campaign.id, 0)]),
                tx.recipients.known_phones(*at, [phone]),
                tx.recipients.recount(*at),
            ]

        assert await storage.read(lambda tx: look(tx, OTHER_WORKSPACE)) == [
            None,
            [],
            [],
            [],
            [],
            [],
            [],
            [],
            {},
            frozenset(),
            Counters(),
        ]
        assert all(await storage.read(lambda tx: look(tx, THIS_WORKSPACE)))

    async def test_known_phones_are_those_that_the_campaign_has(self, storage: Storage) -> None:
        """Whatever their state; another campaign's numbers do not count, and 5,000 can be asked about."""
        one, two = make_prepared(phone="+15550000001"), make_prepared(phone="+15550000002")
        campaign = make_campaign()
        rows = [(0, one, RecipientStatus.PENDING, None), (1, two, RecipientStatus.SKIPPED, "duplicate")]
        await storage.write(lambda tx: publish(tx, campaign, rows))
        await given_campaign(storage, make_prepared(phone="+15550000003"))
        asked = [f"+1555{number:07d}" for number in range(5_000)]
        known = await storage.read(lambda tx: tx.recipients.known_phones(THIS_WORKSPACE, campaign.id, asked))
        assert known == frozenset({"+15550000001", "+15550000002"})
        assert await storage.read(lambda tx: tx.recipients.known_phones(THIS_WORKSPACE, campaign.id, [])) == frozenset()

    @awkward_moments
    async def test_a_put_writes_the_state_and_not_the_contact(self, storage: Storage, moment: datetime) -> None:
        """Every field of the state changes; the contact's own fields stay as they were loaded."""
        contact = make_prepared(custom_variables='{"a":[1]}')
        campaign = await given_campaign(storage, contact, make_prepared())
        bystander = await recipient_at(storage, campaign.id, 1)
        before = await recipient_at(storage, campaign.id, 0)
        state: dict[str, Any] = {
            "status": RecipientStatus.FAILED,
            "reason": "🎉 \\ '",
            "due_at": moment,
            "step": MAX_INTEGER,
            "attempts": MAX_INTEGER,
            "tries": MAX_INTEGER,
            "leg": 2,
            "caller_id": "+14155550123",
            "dispatched": True,
            "successful": True,
            "ended_at": moment,
        }
        other = make_recipient(
            campaign_id=campaign.id,
            phone="+1",
            company="Other",
            email="",
            custom_variables={"b": 2},
            external_id="other",
            time_zone="UTC",
            us_place="FL",
            **state,
        )
        await storage.write(lambda tx: tx.recipients.put(THIS_WORKSPACE, other))
        assert await recipient_at(storage, campaign.id, 0) == attrs.evolve(before, **state)
        assert await recipient_at(storage, campaign.id, 1) == bystander
        by_phone = await storage.read(
            lambda tx: tx.recipients.by_phone(THIS_WORKSPACE, campaign.id, str(contact.phone))
        )
        assert [recipient.position for recipient in by_phone] == [0]

    async def test_only_a_recipient_of_the_workspace_can_be_put(self, storage: Storage) -> None:
        """An absent position, campaign or workspace raises LookupError."""
        campaign = await given_recipients(storage, 1)
        before = await recipient_at(storage, campaign.id, 0)
        changed = attrs.evolve(before, status=RecipientStatus.CANCELED)
        for owner, recipient in (
            (OTHER_WORKSPACE, changed),
            (THIS_WORKSPACE, attrs.evolve(changed, position=1)),
            (THIS_WORKSPACE, attrs.evolve(changed, campaign_id=new_id())),
        ):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, at=(owner, recipient): tx.recipients.put(*at))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.recipients.page(THIS_WORKSPACE, campaign.id)) == [before]

    async def test_recipients_are_paged_by_position(self, storage: Storage) -> None:
        """Positions greater than `after` come in order, at most `limit`, whatever the order of writing."""
        campaign = make_campaign()
        rows = [(position, make_prepared(), RecipientStatus.PENDING, None) for position in (30, 2, 100, 0, 11)]
        await storage.write(lambda tx: publish(tx, campaign, rows))

        async def positions(**wanted: Any) -> list[int]:
            page = await storage.read(lambda tx: tx.recipients.page(THIS_WORKSPACE, campaign.id, **wanted))
            return [recipient.position for recipient in page]

        assert await positions() == [0, 2, 11, 30, 100]
        assert await positions(limit=2) == [0, 2]
        assert await positions(after=2, limit=2) == [11, 30]
        assert await positions(after=3, limit=2) == [11, 30]
        assert await positions(after=100) == []

    async def test_a_page_is_of_one_state_or_reason(self, storage: Storage) -> None:
        """By position, at most `limit`, whatever stands between."""
        kinds = [("failed", "a"), ("pending", None), ("failed", "b"), ("waiting", "a"), ("failed", "a")]
        campaign = make_campaign()
        rows = [(at, make_prepared(), RecipientStatus(one), reason) for at, (one, reason) in enumerate(kinds)]
        await storage.write(lambda tx: publish(tx, campaign, rows))

        async def positions(**wanted: Any) -> list[int]:
            page = await storage.read(lambda tx: tx.recipients.page(THIS_WORKSPACE, campaign.id, **wanted))
            return [recipient.position for recipient in page]

        failed = RecipientStatus.FAILED
        assert await positions(status=failed) == [0, 2, 4]
        assert await positions(reason="a") == [0, 3, 4]
        assert await positions(status=failed, reason="a") == [0, 4]
        assert await positions(status=failed, after=0, limit=1) == [2]
        assert await positions(status=failed, reason="c") == []

    async def test_recipients_with_a_number_come_by_position(self, storage: Storage) -> None:
        """The normalised number counts, in one campaign; a contact without one is never found."""
        twins = [make_prepared(phone="+15550000001", phone_number=text) for text in ("555-0001", "+1 555 0001")]
        campaign = await given_campaign(storage, twins[0], make_prepared(phone=None, phone_number="x"), twins[1])
        await given_campaign(storage, twins[0])

        async def positions(phone: str) -> list[int]:
            found = await storage.read(lambda tx: tx.recipients.by_phone(THIS_WORKSPACE, campaign.id, phone))
            return [recipient.position for recipient in found]

        assert await positions("+15550000001") == [0, 2]
        assert await positions("555-0001") == []
        assert await positions("") == []

    async def test_what_is_no_number_is_found_as_it_was_supplied(self, storage: Storage) -> None:
        """To the letter, in one campaign, by position; a contact with a number is never found."""
        texts = ["x", "+15550000001", "x ", "x"]
        rows = [make_prepared(phone=None, phone_number=text) for text in texts]
        campaign = await given_campaign(storage, *rows, make_prepared(phone="+15550000001", phone_number="x"))
        await given_campaign(storage, rows[0])

        async def positions(text: str) -> list[int]:
            found = await storage.read(lambda tx: tx.recipients.without_phone(THIS_WORKSPACE, campaign.id, text))
            return [recipient.position for recipient in found]

        assert await positions("x") == [0, 3]
        assert await positions("+15550000001") == [1]
        assert await positions("") == []

    async def test_recipients_are_found_by_the_id_of_the_application(self, storage: Storage) -> None:
        """To the letter, in one campaign by position or in all, the newest campaign first; not while it loads."""
        contacts = [make_prepared(external_id=text) for text in ("a", "A", "a")]
        older = make_campaign(created_at=NOW - timedelta(days=1))
        newer = make_campaign(created_at=NOW)
        for campaign in (older, newer):
            rows = pending(*contacts, make_prepared())
            await storage.write(partial(publish, campaign=campaign, rows=rows))
        hidden = make_campaign()

        def load(tx: Transaction) -> None:
            tx.campaigns.insert_loading(hidden, loading_until=NOW + timedelta(minutes=2))
            tx.recipients.insert(THIS_WORKSPACE, hidden.id, pending(contacts[0]), now=NOW)

        await storage.write(load)

        async def found(external_id: str, limit: int = 9, **asked: Any) -> list[tuple[str, int]]:
            def read(tx: Transaction) -> list[tuple[str, int]]:
                one = "campaign_id" in asked
                look = tx.recipients.with_external_id if one else tx.recipients.with_external_id_anywhere
                rows = look(THIS_WORKSPACE, external_id, limit=limit, **asked)
                return [(row.campaign_id, row.position) for row in rows]

            return await storage.read(read)

        every = [(newer.id, 0), (newer.id, 2), (older.id, 0), (older.id, 2)]
        assert await found("a") == every
        assert await found("a", limit=3) == every[:3]
        for index, (campaign_id, position) in enumerate(every):
            created_at = (newer if campaign_id == newer.id else older).created_at
            assert await found("a", after=(created_at, campaign_id, position)) == every[index + 1 :]
        assert await found("a", after=(NOW, "", 0), limit=1) == every[:1]
        assert await found("a", campaign_id=older.id) == [(older.id, 0), (older.id, 2)]
        assert await found("a", campaign_id=older.id, limit=1) == [(older.id, 0)]
        assert await found("A") == [(newer.id, 1), (older.id, 1)]
        assert await found("b") == []

    async def test_the_ids_of_many_recipients_are_read_at_once(self, storage: Storage) -> None:
        """Those that have one, by campaign and position; what is not there is left out."""
        one = await given_campaign(storage, make_prepared(external_id="a"), make_prepared())
        other = await given_campaign(storage, make_prepared(external_id="b"))
        places = [
            *((THIS_WORKSPACE, one.id, position) for position in range(3)),
            (THIS_WORKSPACE, other.id, 0),
            (OTHER_WORKSPACE, other.id, 0),
            (THIS_WORKSPACE, new_id(), 0),
        ]
        found = await storage.read(lambda tx: tx.recipients.external_ids(places))
        assert found == {(one.id, 0): "a", (other.id, 0): "b"}
        assert await storage.read(lambda tx: tx.recipients.external_ids([])) == {}

    async def test_those_of_a_state_of_few_are_read_by_position(self, storage: Storage) -> None:
        """As a page of the state has them, for each reason, but for those that are completed."""
        kinds = list(itertools.product(RecipientStatus, (None, "unreachable", "no_receipt")))
        rows = [(position, make_prepared(), *kind) for position, kind in enumerate([*kinds, *reversed(kinds)])]
        campaign = make_campaign()
        await storage.write(lambda tx: publish(tx, campaign, rows))
        at = (THIS_WORKSPACE, campaign.id)
        for status in set(RecipientStatus) - {*OPEN_RECIPIENT_STATUSES, RecipientStatus.COMPLETED}:
            for reason, after, limit in itertools.product((None, "unreachable", "none"), (-1, len(kinds)), (2, 9)):
                few, page = await storage.read(
                    lambda tx, status=status, reason=reason, after=after, limit=limit: (  # type: ignore[misc]
                        tx.recipients.page_of_few(*at, status, reason=reason, after=after, limit=limit),
                        tx.recipients.page(*at, status=status, reason=reason, after=after, limit=limit),
                    )
                )
                assert list(few) == list(page)
        other = await storage.read(
            lambda tx: tx.recipients.page_of_few(OTHER_WORKSPACE, campaign.id, RecipientStatus.FAILED)
        )
        assert list(other) == []

    async def test_a_recount_is_the_sum_of_all_contributions(self, storage: Storage) -> None:
        """Over every state, with and without attempts, dispatches and success."""
        shapes = list(itertools.product(RecipientStatus, (0, 2), (False, True), (False, True)))
        campaign = await given_recipients(storage, len(shapes))

        def put(tx: Transaction) -> None:
            for recipient, shape in zip(tx.recipients.page(THIS_WORKSPACE, campaign.id), shapes, strict=True):
                status, attempts, out, good = shape
                changed = attrs.evolve(recipient, status=status, attempts=attempts, dispatched=out, successful=good)
                tx.recipients.put(THIS_WORKSPACE, changed)

        await storage.write(put)
        expected = sum(
            (
                contribution(status, attempts=tried, dispatched=out, successful=good)
                for status, tried, out, good in shapes
            ),
            start=Counters(),
        )
        assert await storage.read(lambda tx: tx.recipients.recount(THIS_WORKSPACE, campaign.id)) == expected
        assert await storage.read(lambda tx: tx.recipients.recount(THIS_WORKSPACE, new_id())) == Counters()

    async def test_in_flight_are_those_that_are_at_the_provider_or_may_be(self, storage: Storage) -> None:
        """Dispatching, in progress and unknown take a place, within one campaign of one workspace."""
        ours = await given_recipients(storage, len(RecipientStatus))
        other = await given_recipients(storage, 1)
        assert await storage.read(lambda tx: tx.recipients.in_flight(THIS_WORKSPACE, ours.id)) == 0

        def spread(tx: Transaction) -> list[int]:
            counts = []
            for position, status in enumerate(RecipientStatus):
                change_recipient(tx, ours.id, position, status=status)
                counts.append(tx.recipients.in_flight(THIS_WORKSPACE, ours.id))
            return counts

        counts = await storage.write(spread)
        wanted = list(itertools.accumulate(int(status in IN_FLIGHT_RECIPIENT_STATUSES) for status in RecipientStatus))
        assert counts == wanted
        assert {
            RecipientStatus.DISPATCHING,
            RecipientStatus.IN_PROGRESS,
            RecipientStatus.UNKNOWN,
        } == IN_FLIGHT_RECIPIENT_STATUSES
        for workspace_id, campaign_id in (
            (OTHER_WORKSPACE, ours.id),
            (THIS_WORKSPACE, other.id),
            (THIS_WORKSPACE, new_id()),
        ):
            assert await storage.read(lambda tx, w=workspace_id, c=campaign_id: tx.recipients.in_flight(w, c)) == 0  # type: ignore[misc]

    async def test_those_who_opted_out_since_are_deleted(self, storage: Storage) -> None:
        """At or after `since` counts, by this channel, on this workspace's register; what they counted is returned."""
        before, at, after = (make_prepared() for _ in range(3))
        twin, other_channel, foreign, unreachable = at._replace(phone_number="twin"), *(make_prepared() for _ in "abc")
        contacts = [before, at, after, twin, other_channel, foreign, unreachable._replace(phone=None)]
        campaign = await given_campaign(storage, *contacts)
        neighbour = await given_campaign(storage, at)

        def opt_out(tx: Transaction) -> None:
            change_recipient(tx, campaign.id, 3, status=RecipientStatus.FAILED, dispatched=True)
            tx.register.put(make_unsubscribe(phone=before.phone, created_at=NOW - TICK))
            tx.register.put(make_unsubscribe(phone=at.phone, created_at=NOW, scope="sms"))
            tx.register.put(make_unsubscribe(phone=after.phone, created_at=NOW + TICK))
            tx.register.put(make_unsubscribe(phone=other_channel.phone, created_at=NOW, scope="call"))
            tx.register.put(make_unsubscribe(phone=foreign.phone, created_at=NOW, workspace_id=OTHER_WORKSPACE))

        await storage.write(opt_out)
        total = await storage.read(lambda tx: tx.recipients.recount(THIS_WORKSPACE, campaign.id))
        nobody = await storage.write(
            lambda tx: tx.recipients.delete_stopped_since(OTHER_WORKSPACE, campaign.id, "sms", NOW)
        )
        assert nobody == Counters()
        gone = await storage.write(
            lambda tx: tx.recipients.delete_stopped_since(THIS_WORKSPACE, campaign.id, "sms", NOW)
        )
        assert gone == Counters(total=3, pending=2, completed=1, failed=1, open=2)
        left = await storage.read(lambda tx: tx.recipients.page(THIS_WORKSPACE, campaign.id))
        assert [recipient.position for recipient in left] == [0, 4, 5, 6]
        assert await storage.read(lambda tx: tx.recipients.recount(THIS_WORKSPACE, campaign.id)) == total - gone
        assert await storage.read(lambda tx: len(tx.recipients.page(THIS_WORKSPACE, neighbour.id))) == 1
        again = await storage.write(
            lambda tx: tx.recipients.delete_stopped_since(THIS_WORKSPACE, campaign.id, "sms", NOW)
        )
        assert again == Counters()
