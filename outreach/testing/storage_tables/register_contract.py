"""The contract of settings and of the unsubscribe register."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import partial

import attrs
import pytest

from outreach.models.prices import Price, PriceTable
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.unsubscribe import UnsubscribeScope
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW, make_unsubscribe
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    awkward_moments,
    awkward_texts,
    given_rows,
)


class RegisterContract(ContractBase):
    """Settings and the register."""

    async def test_call_settings_are_of_one_workspace_and_written_over(self, storage: Storage) -> None:
        """None before the first change; then as they were written last, beside the SMS settings."""
        assert await storage.read(lambda tx: tx.call_settings.get(THIS_WORKSPACE)) is None
        for settings in (
            CallSettings(),
            CallSettings(retry_max_attempts=MAX_INTEGER, retry_delay_minutes=MAX_INTEGER),
            CallSettings(retry_max_attempts=1, retry_delay_minutes=1),
        ):
            await storage.write(lambda tx, settings=settings: tx.call_settings.put(THIS_WORKSPACE, settings))  # type: ignore[misc]
            assert await storage.read(lambda tx: tx.call_settings.get(THIS_WORKSPACE)) == settings
        assert await storage.read(lambda tx: tx.call_settings.get(OTHER_WORKSPACE)) is None
        assert await storage.read(lambda tx: tx.settings.get(THIS_WORKSPACE)) is None

    async def test_prices_are_of_one_workspace_to_the_last_place_and_can_be_removed(self, storage: Storage) -> None:
        """None before they are set; then as they were written last, until they are removed."""
        assert await storage.read(lambda tx: tx.price_tables.get(THIS_WORKSPACE)) is None
        few = (Price(kind="sms", amount=Decimal("0.000001")), Price(kind="call", amount=Decimal("1E+2"), country="US"))
        for prices in (few, (*few, Price(kind="sms", amount=Decimal("0.10"), provider="twilio", country="DE"))):
            table = PriceTable(currency="EUR", prices=prices)
            await storage.write(lambda tx, table=table: tx.price_tables.put(THIS_WORKSPACE, table))  # type: ignore[misc]
            assert await storage.read(lambda tx: tx.price_tables.get(THIS_WORKSPACE)) == table
        assert await storage.read(lambda tx: tx.price_tables.get(OTHER_WORKSPACE)) is None
        assert await storage.write(lambda tx: tx.price_tables.delete(THIS_WORKSPACE))
        assert not await storage.write(lambda tx: tx.price_tables.delete(THIS_WORKSPACE))
        assert await storage.read(lambda tx: tx.price_tables.get(THIS_WORKSPACE)) is None

    @awkward_texts
    async def test_reply_settings_are_of_one_workspace_and_written_over(self, storage: Storage, text: str) -> None:
        """None before the first change; then as they were written last."""
        assert await storage.read(lambda tx: tx.reply_settings.get(THIS_WORKSPACE)) is None
        for settings in (
            ReplySettings(),
            ReplySettings(enabled=False, stop_text=text, start_text=text, help_text=text, help_when_opted_out=True),
            ReplySettings(stop_text="s", start_text="t", help_text="h"),
        ):
            await storage.write(lambda tx, settings=settings: tx.reply_settings.put(THIS_WORKSPACE, settings))  # type: ignore[misc]
            assert await storage.read(lambda tx: tx.reply_settings.get(THIS_WORKSPACE)) == settings
        assert await storage.read(lambda tx: tx.reply_settings.get(OTHER_WORKSPACE)) is None

    async def test_settings_are_none_before_the_first_change(self, storage: Storage) -> None:
        """The defaults are not the storage's business."""
        assert await storage.read(lambda tx: tx.settings.get(THIS_WORKSPACE)) is None

    @awkward_texts
    async def test_settings_are_read_as_they_were_written(self, storage: Storage, text: str) -> None:
        """Every field comes back, the order of the variables too, and the second put replaces the first."""
        settings = SmsSettings(
            footer_enabled=False,
            footer_text=text,
            max_segments=1,
            retry_enabled=True,
            retry_max_attempts=9,
            retry_delay_minutes=1440,
            custom_variables=("zeta", text, "alpha"),
            revision=MAX_INTEGER,
        )
        await storage.write(lambda tx: tx.settings.put(THIS_WORKSPACE, SmsSettings()))
        assert await storage.read(lambda tx: tx.settings.get(THIS_WORKSPACE)) == SmsSettings()
        await storage.write(lambda tx: tx.settings.put(THIS_WORKSPACE, settings))
        assert await storage.read(lambda tx: tx.settings.get(THIS_WORKSPACE)) == settings
        assert await storage.read(lambda tx: tx.settings.get(OTHER_WORKSPACE)) is None

    @awkward_texts
    async def test_an_entry_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """Every text comes back; the evidence may be empty, which is not None."""
        with_evidence = make_unsubscribe(source=text, evidence=text)
        without = make_unsubscribe(evidence=None)
        await given_rows(storage, with_evidence, without)
        assert await storage.read(lambda tx: tx.register.get(THIS_WORKSPACE, with_evidence.phone)) == with_evidence
        assert await storage.read(lambda tx: tx.register.get(THIS_WORKSPACE, without.phone)) == without
        assert await storage.read(lambda tx: tx.register.get(OTHER_WORKSPACE, without.phone)) is None

    @awkward_moments
    async def test_a_put_takes_the_place_of_the_entry_that_a_number_has(
        self, storage: Storage, moment: datetime
    ) -> None:
        """(workspace, phone) is unique: the last entry stands, and no other workspace's is touched."""
        first = make_unsubscribe(scope="sms")
        theirs = make_unsubscribe(workspace_id=OTHER_WORKSPACE, phone=first.phone, scope="call")
        second = attrs.evolve(first, scope="all", source="api", evidence="asked", created_at=moment)
        await given_rows(storage, first, theirs, second)
        assert list(await storage.read(lambda tx: tx.register.list(THIS_WORKSPACE))) == [second]
        assert list(await storage.read(lambda tx: tx.register.list(OTHER_WORKSPACE))) == [theirs]

    async def test_a_delete_tells_whether_the_number_was_there(self, storage: Storage) -> None:
        """It removes one workspace's entry, once."""
        ours = make_unsubscribe()
        theirs = attrs.evolve(ours, workspace_id=OTHER_WORKSPACE)
        await given_rows(storage, ours, theirs)
        assert await storage.write(lambda tx: tx.register.delete(THIS_WORKSPACE, ours.phone)) is True
        assert await storage.write(lambda tx: tx.register.delete(THIS_WORKSPACE, ours.phone)) is False
        assert await storage.read(lambda tx: tx.register.get(THIS_WORKSPACE, ours.phone)) is None
        assert await storage.read(lambda tx: tx.register.get(OTHER_WORKSPACE, ours.phone)) == theirs

    async def test_the_register_is_listed_by_number_in_pages(self, storage: Storage) -> None:
        """Numbers greater than `after` come in their order, at most `limit`."""
        phones = ["+1999", "+12", "+1", "+49", "+123"]
        await given_rows(
            storage,
            *(make_unsubscribe(phone=phone) for phone in phones),
            make_unsubscribe(workspace_id=OTHER_WORKSPACE, phone="+11"),
        )

        async def listed(after: str, limit: int) -> list[str]:
            return await storage.read(
                lambda tx: [entry.phone for entry in tx.register.list(THIS_WORKSPACE, after=after, limit=limit)]
            )

        assert await listed("", 10) == ["+1", "+12", "+123", "+1999", "+49"]
        assert await listed("", 2) == ["+1", "+12"]
        assert await listed("+12", 2) == ["+123", "+1999"]
        assert await listed("+1200", 2) == ["+123", "+1999"]
        assert await listed("+49", 2) == []

    async def test_held_numbers_are_listed_latest_first(self, storage: Storage) -> None:
        """By (created_at, workspace, number), all descending, at most `limit`, of one workspace or of all."""
        held = partial(make_unsubscribe, scope="held", source="unclear")
        entries = [
            held(phone="+11", created_at=NOW),
            held(phone="+12", created_at=NOW),
            held(phone="+13", created_at=NOW + TICK),
            held(phone="+14", created_at=NOW - TICK, workspace_id=OTHER_WORKSPACE),
            make_unsubscribe(phone="+15"),
        ]
        await given_rows(storage, *entries)

        async def phones(workspace_id: str | None, limit: int = 9) -> list[str]:
            return await storage.read(lambda tx: [entry.phone for entry in tx.register.held(workspace_id, limit=limit)])

        assert await phones(None) == ["+13", "+12", "+11", "+14"]
        assert await phones(None, 2) == ["+13", "+12"]
        assert await phones(THIS_WORKSPACE) == ["+13", "+12", "+11"]
        assert await phones(OTHER_WORKSPACE) == ["+14"]
        for after, rest in (
            ((NOW + TICK, THIS_WORKSPACE, "+13"), ["+12", "+11"]),
            ((NOW, THIS_WORKSPACE, "+12"), ["+11"]),
            ((NOW, THIS_WORKSPACE, "+11"), []),
        ):
            found = await storage.read(lambda tx, after=after: tx.register.held(THIS_WORKSPACE, after=after, limit=9))  # type: ignore[misc]
            assert [entry.phone for entry in found] == rest
        await given_rows(storage, make_unsubscribe(phone="+13"))
        assert await phones(THIS_WORKSPACE) == ["+12", "+11"]

    @pytest.mark.parametrize(("scope", "channels"), [("all", {"sms", "call"}), ("sms", {"sms"}), ("call", {"call"})])
    async def test_stopped_numbers_are_those_whose_scope_covers_the_channel(
        self, storage: Storage, scope: UnsubscribeScope, channels: set[str]
    ) -> None:
        """Only numbers asked about are named, and only by this workspace's register."""
        ours, unasked = make_unsubscribe(scope=scope), make_unsubscribe(scope=scope)
        theirs = make_unsubscribe(workspace_id=OTHER_WORKSPACE)
        await given_rows(storage, ours, unasked, theirs)
        asked = [ours.phone, theirs.phone, "+15550000000", ours.phone]
        sms = await storage.read(lambda tx: tx.register.stopped(THIS_WORKSPACE, "sms", asked))
        call = await storage.read(lambda tx: tx.register.stopped(THIS_WORKSPACE, "call", asked))
        assert sms == (frozenset({ours.phone}) if "sms" in channels else frozenset())
        assert call == (frozenset({ours.phone}) if "call" in channels else frozenset())
        assert await storage.read(lambda tx: tx.register.stopped(THIS_WORKSPACE, "sms", [])) == frozenset()

    async def test_five_thousand_numbers_are_looked_up_at_once(self, storage: Storage) -> None:
        """The largest question is answered whole."""
        phones = [f"+1415{number:07d}" for number in range(5_000)]
        await given_rows(storage, *(make_unsubscribe(phone=phone, created_at=NOW + TICK) for phone in phones[::100]))
        stopped = await storage.read(lambda tx: tx.register.stopped(THIS_WORKSPACE, "call", phones))
        assert stopped == frozenset(phones[::100])

    async def test_what_restricts_numbers_is_read_together(self, storage: Storage) -> None:
        """The entries that stop them on this channel, and the reviews, which hold them back and stop nothing."""
        scopes = {"+14155550101": "all", "+14155550102": "sms", "+14155550103": "call", "+14155550104": "held"}
        await given_rows(storage, *(make_unsubscribe(phone=phone, scope=scope) for phone, scope in scopes.items()))
        asked = [*scopes, "+14155550105"]
        standing = await storage.read(lambda tx: tx.register.restrictions(THIS_WORKSPACE, "sms", asked))
        assert standing == {"+14155550101": "stopped", "+14155550102": "stopped", "+14155550104": "held"}
        assert await storage.read(lambda tx: tx.register.read_restrictions(THIS_WORKSPACE, "sms", asked)) == standing
        assert await storage.read(lambda tx: tx.register.read_restrictions(THIS_WORKSPACE, "sms", [])) == {}
        assert await storage.read(lambda tx: tx.register.stopped(THIS_WORKSPACE, "sms", asked)) == set(asked[:2])
        assert await storage.read(lambda tx: tx.register.restrictions(OTHER_WORKSPACE, "sms", asked)) == {}
        assert await storage.read(lambda tx: tx.register.read_restrictions(OTHER_WORKSPACE, "sms", asked)) == {}
