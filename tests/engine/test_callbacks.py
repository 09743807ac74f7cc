from __future__ import annotations

import hashlib
import json
import logging
import threading
from datetime import timedelta
from typing import Any

import anyio
import attrs
import pytest

from outreach import EngineConfig, NewMessage, NewWorkspace, NotFound, Outreach
from outreach.errors import CallbackRejected, RecipientUnsubscribed
from outreach.models import Account
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import MessageStatus
from outreach.protocols import Instrumentation
from outreach.protocols.carrier import OutboundMessage
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import DISPATCHES
from outreach.testing.scripted import ScriptedCarrier, accept, hang
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import stored_account, until
from tests.engine.test_accounts import live
from tests.fake_provider import CREDENTIALS, FakeAdapter, sign

pytestmark = pytest.mark.virtual_time

SECOND = timedelta(seconds=1)


class Caller:
    """The provider, calling back."""

    def __init__(self, engine: Outreach, account_id: str) -> None:
        self.engine, self.account_id = engine, account_id

    async def call(
        self,
        *events: dict[str, Any],
        url: str | None = None,
        signature: str | None = None,
        secret: str = CREDENTIALS["signing_secret"],
    ) -> list[str]:
        """Call back; return what became of the events that were new."""
        body = json.dumps(events).encode()
        known = f"https://o.example/webhooks/{self.account_id}"
        records = await self.engine.callbacks.receive(
            self.account_id,
            url=url or f"http://10.0.0.1:8000/webhooks/{self.account_id}",
            headers={"x-signature": sign(known, body, secret) if signature is None else signature},
            body=body,
        )
        return [record.result for record in records]


async def _given(engine: Outreach, workspace_id: str) -> tuple[Caller, str, str]:
    """Connect an account and send a message; return who calls back, and the ids of the message and its dispatch."""
    account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
    message = await engine.messages.send(workspace_id, NewMessage(to="+14155550101", body="x"))

    async def asked() -> str | None:
        fake_id: str | None = await _dispatch_of(engine, workspace_id, message.id)
        return fake_id

    return Caller(engine, account.id), message.id, await until(asked)


async def _dispatch_of(engine: Outreach, workspace_id: str, message_id: str) -> str | None:
    found = await engine._storage.read(lambda tx: tx.dispatches.of_message(workspace_id, message_id))
    return found[-1].id if found else None


async def _status(engine: Outreach, workspace_id: str, message_id: str) -> MessageStatus:
    return (await engine.messages.get(workspace_id, message_id)).status


async def test_a_receipt_moves_its_message_once(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """Delivered is merged, however often it comes, and whatever comes late changes nothing; all of it is kept."""
    async with live(open_storage) as (engine, workspace_id):
        caller, message_id, dispatch_id = await _given(engine, workspace_id)
        delivered = {"kind": "report", "id": "e1", "dispatch": dispatch_id, "status": "delivered"}
        assert await caller.call(delivered) == ["merged"]
        assert await caller.call(delivered) == []
        assert await caller.call({**delivered, "id": "e2", "status": "sent"}) == ["unchanged"]
        assert await _status(engine, workspace_id, message_id) is MessageStatus.DELIVERED
        assert [(r.event_id, r.result) for r in await engine.callbacks.list(workspace_id)] == [
            ("e2", "unchanged"),
            ("e1", "merged"),
        ]
        first = (await engine.callbacks.list(workspace_id)).items[-1]
        assert await engine.callbacks.get(workspace_id, first.account_id, "e1") == first
        for elsewhere, event_id in ((workspace_id, "e3"), ("elsewhere", "e1")):
            with pytest.raises(NotFound, match="callback"):
                await engine.callbacks.get(elsewhere, first.account_id, event_id)


@pytest.mark.parametrize(
    ("event", "result"),
    [
        ({"kind": "report", "id": "e", "dispatch": "nobody's", "status": "sent"}, "unmatched"),
        ({"kind": "report", "id": "e", "status": "sent"}, "unmatched"),
        ({"kind": "colour", "id": "e"}, "ignored"),
    ],
)
async def test_what_belongs_to_nothing_is_kept_and_changes_nothing(
    open_storage: OpenStorage, fake: FakeAdapter, event: dict[str, Any], result: str
) -> None:
    """Unknown ids and kinds are answered as all others are: the provider shall not come again with them."""
    async with live(open_storage) as (engine, workspace_id):
        caller, _, _ = await _given(engine, workspace_id)
        assert await caller.call(event) == [result]
        assert len(await engine.callbacks.list(workspace_id)) == 1


async def test_an_unsigned_address_does_not_name_another_contacts_dispatch(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """Where the signature leaves out what names the dispatch, the number that it covers must be the dispatch's."""
    async with live(open_storage) as (engine, workspace_id):
        caller, message_id, dispatch_id = await _given(engine, workspace_id)
        event = {"kind": "report", "id": "e1", "dispatch": dispatch_id, "status": "delivered", "to": "+14155550999"}
        assert await caller.call(event) == ["mismatched"]
        assert await _status(engine, workspace_id, message_id) is not MessageStatus.DELIVERED
        assert await caller.call({**event, "id": "e2", "to": "+14155550101"}) == ["merged"]


async def test_what_is_not_signed_changes_nothing(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """A wrong signature, none, or another account's: refused, and not even kept."""
    async with live(open_storage) as (engine, workspace_id):
        caller, _, dispatch_id = await _given(engine, workspace_id)
        event = {"kind": "report", "id": "e1", "dispatch": dispatch_id, "status": "failed"}
        for signature in ("", "0" * 64):
            with pytest.raises(CallbackRejected):
                await caller.call(event, signature=signature)
        with pytest.raises(NotFound):
            await Caller(engine, workspace_id).call(event)
        assert list(await engine.callbacks.list(workspace_id)) == []


async def test_what_was_signed_before_a_change_of_the_secret_is_taken_for_a_day(
    open_storage: OpenStorage, fake: FakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """A STOP may be on its way as the secret is changed; who has the old one cannot use it for longer."""
    config = EngineConfig(public_url="https://o.example")
    async with Outreach(open_storage(clock_of_loop()), clock=clock_of_loop(), config=config) as engine:
        workspace_id = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        caller = Caller(engine, (await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)).id)
        changed = await _connect_with(engine, workspace_id, "second")
        assert changed.previous_accepted_until == changed.updated_at + timedelta(hours=24)
        stop = {"kind": "text", "id": "e1", "from": "+14155550101", "body": "STOP"}
        assert await caller.call(stop) == ["received"]
        with pytest.raises(RecipientUnsubscribed):
            await engine.messages.send(workspace_id, NewMessage(to="+14155550101", body="x"))
        assert await caller.call({"id": "e2"}, secret="second") == ["ignored"]
        assert [getattr(record, "action", None) for record in caplog.records].count("callback_signed_earlier") == 1
        with pytest.raises(CallbackRejected):
            await caller.call({"id": "e3"}, secret="third")
        # In virtual time.
        await anyio.sleep(24 * 3600)
        with pytest.raises(CallbackRejected):
            await caller.call({"id": "e4"})
        assert await caller.call({"id": "e5"}, secret="second") == ["ignored"]
        assert (await engine.accounts.get(workspace_id, changed.id)).previous_accepted_until is None


async def test_the_last_three_secrets_are_accepted_also_after_a_change_of_the_key(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """Each with the rest of its own credentials; a change that changes nothing makes none of them later."""
    async with live(open_storage) as (engine, workspace_id):
        caller, _, _ = await _given(engine, workspace_id)
        for secret in ("2", "3", "4", "4", "5"):
            account = await _connect_with(engine, workspace_id, secret, region=f"of {secret}")
        stored = await engine._storage.read(lambda tx: stored_account(tx, account))
        vault = engine.accounts._vault
        sealed = vault.rekeyed(stored.id, stored.sealed, provider="twilio")
        await engine._storage.write(lambda tx: tx.accounts.reseal(attrs.evolve(stored, sealed=sealed)))
        known = vault.previous(stored.id, sealed, provider="twilio")
        assert [(one.values["signing_secret"], one.values["region"]) for one in known] == [
            (secret, f"of {secret}") for secret in ("4", "3", "2")
        ]
        for secret in ("5", "4", "3", "2"):
            assert await caller.call({"id": secret}, secret=secret) == ["ignored"]
        with pytest.raises(CallbackRejected):
            await caller.call({"id": "1"})


async def test_a_secret_that_others_know_is_refused_at_once(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """They could sign callbacks with it, and with those before it."""
    async with live(open_storage) as (engine, workspace_id):
        caller, _, _ = await _given(engine, workspace_id)
        await _connect_with(engine, workspace_id, "second")
        account = await _connect_with(engine, workspace_id, "third", refuse_previous=True)
        assert account.previous_accepted_until is None
        for secret in (CREDENTIALS["signing_secret"], "second"):
            with pytest.raises(CallbackRejected):
                await caller.call({"id": "e1"}, secret=secret)
        assert await caller.call({"id": "e1"}, secret="third") == ["ignored"]


async def _connect_with(engine: Outreach, workspace_id: str, secret: str, **more: Any) -> Account:
    refuse_previous = more.pop("refuse_previous", False)
    given = {**CREDENTIALS, "signing_secret": secret, **more}
    return await engine.accounts.connect(workspace_id, "twilio", given, refuse_previous=refuse_previous)


async def test_an_event_of_another_workspaces_account_is_not_matched(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """An account's events are read in its own workspace, whatever dispatch they name."""
    async with live(open_storage) as (engine, workspace_id):
        _, message_id, dispatch_id = await _given(engine, workspace_id)
        other = await engine.workspaces.create(NewWorkspace(name="Other"))
        stranger = Caller(engine, (await engine.accounts.connect(other.id, "twilio", CREDENTIALS)).id)
        event = {"kind": "report", "id": "e1", "dispatch": dispatch_id, "status": "delivered"}
        assert await stranger.call(event) == ["unmatched"]
        assert await _status(engine, workspace_id, message_id) is not MessageStatus.DELIVERED


async def test_a_message_that_cannot_be_read_is_logged_once(
    open_storage: OpenStorage, fake: FakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """It may have been a STOP. The line has the provider, the account and the kind of event, and no text."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        caller = Caller(engine, account.id)
        events = {"kind": "unreadable", "id": "e1", "from": "+14155550101", "body": "STOP"}, {"kind": "x", "id": "e2"}
        assert await caller.call(*events) == ["ignored", "ignored"]
        assert await caller.call(*events) == []
        (told,) = [record for record in caplog.records if getattr(record, "action", None) == "message_unread"]
        assert told.levelno == logging.WARNING
        assert told.getMessage() == (
            f"message to account {account.id} (twilio, a.text) is unreadable and not stored: it may be a STOP"
        )


async def test_media_that_are_left_out_are_logged_once(
    open_storage: OpenStorage, fake: FakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """The line says how many and of which account, and has no link. The message and its other media are stored."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        caller = Caller(engine, account.id)
        text = {"kind": "text", "from": "+14155550101", "body": "Look", "media": ["https://media.example.com/1"]}
        events = {**text, "id": "e1", "left_out": 2}, {**text, "id": "e2"}
        assert await caller.call(*events) == ["received", "received"]
        assert await caller.call(*events) == []
        (told,) = [record for record in caplog.records if getattr(record, "action", None) == "media_left_out"]
        assert f"account {account.id} (twilio) is stored without 2 of its media" in told.getMessage()
        assert "media.example.com" not in told.getMessage()
        found = (await engine.messages.list_inbound(workspace_id)).items
        assert [message.media for message in found] == [("https://media.example.com/1",)] * 2


@pytest.mark.parametrize("slashes", ["{}/webhooks/{}/", "{}/webhooks//{}", "{}//webhooks/{}", "{}//webhooks//{}/"])
@pytest.mark.parametrize("public_url", ["https://o.example", "https://o.example/", "https://o.example/webhooks/"])
async def test_an_address_is_verified_with_the_slashes_that_it_was_entered_with(
    open_storage: OpenStorage, fake: FakeAdapter, public_url: str, slashes: str
) -> None:
    """The provider signs the public address as it knows it; our own callback URL has no slash too many."""
    config = EngineConfig(public_url=public_url)
    async with Outreach(open_storage(clock_of_loop()), clock=clock_of_loop(), config=config) as engine:
        workspace_id = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        caller = Caller(engine, (await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)).id)
        address = public_url.rstrip("/")
        for signed in (slashes.format(address, caller.account_id), f"{address}/webhooks/{caller.account_id}"):
            url = signed.replace("https://o.example", "http://10.0.0.1:8000")
            signature = sign(signed, json.dumps([{"id": signed}]).encode())
            assert await caller.call({"id": signed}, url=url, signature=signature) == ["ignored"]
        callback_url = engine._connections.callback_url(caller.account_id)
        assert callback_url == f"{address}/webhooks/{caller.account_id}"


@pytest.mark.parametrize("carrier_answers", [False, True])
async def test_a_stop_by_callback_is_in_force_and_answered_by_one_of_us(
    open_storage: OpenStorage, fake: FakeAdapter, carrier_answers: bool
) -> None:
    """Field, test 10: once, though the callback comes five times; not at all where the account's carrier answers."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(
            workspace_id, "twilio", CREDENTIALS, replies_to_keywords=carrier_answers
        )
        caller = Caller(engine, account.id)
        stop = {"kind": "text", "id": "in1", "from": "+14155550101", "body": "Stop!", "at": engine.now().isoformat()}
        assert [await caller.call(stop) for _ in range(5)] == [["received"], [], [], [], []]
        assert [entry.source async for entry in engine.unsubscribes.iter_all(workspace_id)] == ["keyword"]
        with pytest.raises(RecipientUnsubscribed):
            await engine.messages.send(workspace_id, NewMessage(to="+14155550101", body="x"))
        await engine.messages.send(workspace_id, NewMessage(to="+14155550102", body="x"))
        await fake.carrier.wait_for_requests(1 if carrier_answers else 2)
        asked = sorted((request.to, request.from_number) for request in fake.carrier.requests)
        confirmation = [] if carrier_answers else [("+14155550101", "+14155550100")]
        assert asked == [*confirmation, ("+14155550102", asked[-1][1])]
        # A confirmation is of no use after five minutes, which the carrier is told.
        ends = {request.to: request.not_after is not None for request in fake.carrier.requests}
        assert ends == {**{to: True for to, _ in confirmation}, "+14155550102": False}


@pytest.mark.parametrize("carrier_answers", [False, True])
async def test_a_start_by_callback_lifts_what_the_carrier_lifts(
    open_storage: OpenStorage, fake: FakeAdapter, carrier_answers: bool
) -> None:
    """Where the account's carrier answers by itself, its adapter says which words; else ours count."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(
            workspace_id, "twilio", CREDENTIALS, replies_to_keywords=carrier_answers
        )
        caller = Caller(engine, account.id)
        on_register = []
        for number, body in enumerate(("STOP", "JOIN", "START")):
            at = (engine.now() + (number - 9) * SECOND).isoformat()
            event = {"kind": "text", "id": f"in{number}", "from": "+14155550101", "body": body, "at": at}
            assert await caller.call(event) == ["received"]
            on_register.append(bool([entry async for entry in engine.unsubscribes.iter_all(workspace_id)]))
        assert on_register == [True, carrier_answers, False]


async def test_keywords_to_a_number_that_the_carrier_leaves_to_us_are_answered(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """A short code of an account whose carrier answers at its other numbers: nobody else would answer."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS, replies_to_keywords=True)
        caller = Caller(engine, account.id)
        for number, body in enumerate(("HELP", "STOP", "JOIN")):
            for sender, to in (("+14155550101", "72975"), ("+14155550102", "+14155550100")):
                at = (engine.now() + (number - 9) * SECOND).isoformat()
                event = {"kind": "text", "id": f"{to} {body}", "from": sender, "to": to, "body": body, "at": at}
                assert await caller.call(event) == ["received"]
            await fake.carrier.wait_for_requests(number + 1)
        assert {(request.to, request.from_number) for request in fake.carrier.requests} == {("+14155550101", "72975")}
        assert [entry.phone async for entry in engine.unsubscribes.iter_all(workspace_id)] == ["+14155550102"]


async def test_a_report_settles_no_request_of_another_provider(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """A valid signature of one account settles nothing that another provider was asked for."""
    async with live(open_storage) as (engine, workspace_id):
        caller, message_id, dispatch_id = await _given(engine, workspace_id)

        def elsewhere(tx: Transaction) -> None:
            # Past the table, which lets nobody change what was asked for; drivers differ in their placeholders.
            rows: Any = tx.dispatches._rows
            changed = f"UPDATE dispatches SET provider = 'telnyx' WHERE id = '{dispatch_id}'"  # noqa: S608
            rows.backend.connection.execute(changed)
            rows.evict(DISPATCHES, [(workspace_id, dispatch_id)])

        await engine._storage.write(elsewhere)
        event = {"kind": "report", "id": "e1", "dispatch": dispatch_id, "status": "delivered"}
        assert await caller.call(event) == ["mismatched"]
        assert await _status(engine, workspace_id, message_id) is not MessageStatus.DELIVERED


async def test_an_event_before_the_answer_is_merged_when_the_answer_identifies_it(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """Field, test 11: a receipt may overtake the answer, and name the message by the provider's identifier alone."""
    answered = anyio.Event()

    class Late(ScriptedCarrier):
        async def send(self, message: OutboundMessage) -> DispatchOutcome:
            await answered.wait()
            return await super().send(message)

    fake.carrier = Late(lambda _: accept("SM1"))
    async with live(open_storage) as (engine, workspace_id):
        caller, message_id, _ = await _given(engine, workspace_id)
        delivered = {"kind": "report", "id": "e1", "message": "SM1", "status": "delivered"}
        assert await caller.call(delivered, {**delivered, "id": "e2", "message": "SM2"}) == ["unmatched"] * 2
        assert await caller.call(delivered) == []
        answered.set()
        await until(lambda: _status(engine, workspace_id, message_id), lambda found: found is MessageStatus.DELIVERED)
        records = {record.event_id: record for record in await engine.callbacks.list(workspace_id)}
        assert {name: record.result for name, record in records.items()} == {"e1": "merged", "e2": "unmatched"}
        assert json.loads(records["e1"].body) == [delivered, {**delivered, "id": "e2", "message": "SM2"}]
        assert records["e1"].report is None
        assert await caller.call(delivered) == []


async def test_an_event_of_one_message_settles_no_dispatch_of_another(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """Somebody may have two messages, so that the number fits both: the provider's identifier fits one."""
    fake.carrier = ScriptedCarrier([accept("SM1")])
    async with live(open_storage) as (engine, workspace_id):
        caller, message_id, dispatch_id = await _given(engine, workspace_id)
        await until(lambda: _status(engine, workspace_id, message_id), lambda found: found is MessageStatus.ACCEPTED)
        event = {"kind": "report", "id": "e1", "dispatch": dispatch_id, "status": "failed", "to": "+14155550101"}
        assert await caller.call({**event, "message": "SM2"}) == ["mismatched"]
        assert await _status(engine, workspace_id, message_id) is MessageStatus.ACCEPTED
        assert await caller.call({**event, "message": "SM1"}) == ["merged"]
        assert await caller.call({**event, "id": "e2", "status": "delivered"}) == ["merged"]


@pytest.mark.parametrize("changes", [{"dispatch": "nobody's"}, {"to": "+14155550999"}])
async def test_an_event_that_could_not_be_matched_is_tried_again_when_it_comes_again(
    open_storage: OpenStorage, fake: FakeAdapter, changes: dict[str, Any]
) -> None:
    """What belonged to nothing has not been processed: its identifier is not used up, and it is kept once."""
    async with live(open_storage) as (engine, workspace_id):
        caller, message_id, dispatch_id = await _given(engine, workspace_id)
        event = {"kind": "report", "id": "e1", "dispatch": dispatch_id, "status": "delivered"}
        first = await caller.call({**event, **changes})
        assert first == (["unmatched"] if "dispatch" in changes else ["mismatched"])
        assert await caller.call({**event, **changes}) == []
        assert await caller.call(event) == ["merged"]
        assert await caller.call(event) == []
        assert await _status(engine, workspace_id, message_id) is MessageStatus.DELIVERED
        (record,) = await engine.callbacks.list(workspace_id)
        assert (record.result, json.loads(record.body)) == ("merged", [{**event, **changes}])


async def test_a_report_with_both_identifiers_merges_the_earlier_reports(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """One event may carry our reference, and an earlier one not."""
    fake.carrier = ScriptedCarrier(lambda _: hang())
    async with live(open_storage) as (engine, workspace_id):
        caller, message_id, dispatch_id = await _given(engine, workspace_id)
        early = {"kind": "report", "id": "e1", "message": "SM1", "status": "delivered"}
        assert await caller.call(early) == ["unmatched"]
        assert await caller.call({**early, "id": "e2", "dispatch": dispatch_id, "status": "sent"}) == ["merged"]
        assert await _status(engine, workspace_id, message_id) is MessageStatus.DELIVERED


async def test_identifiers_too_long_for_an_index_are_shortened(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """What compresses badly is the worst; the same one is known again, and another one is not."""
    long = "".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(200))
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        caller = Caller(engine, account.id)
        early = {"kind": "report", "id": long, "message": long, "status": "delivered"}
        assert await caller.call(early) == ["unmatched"]
        assert await caller.call({"id": long + "2"}) == ["ignored"]
        assert await caller.call({"id": long + "2"}) == []


@pytest.mark.parametrize(("filling", "elsewhere"), [(0, False), (100_000, True)])
async def test_a_large_callback_is_read_beside_the_loop(
    open_storage: OpenStorage, fake: FakeAdapter, filling: int, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sending goes on meanwhile, whether the signature is valid or wrong."""
    threads: list[int] = []
    read = FakeAdapter.read

    def noted(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return read(*arguments)

    monkeypatch.setattr(FakeAdapter, "read", noted)
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        caller = Caller(engine, account.id)
        assert await caller.call({"id": "e1", "filling": "x" * filling}) == ["ignored"]
        with pytest.raises(CallbackRejected):
            await caller.call({"id": "e2", "filling": "x" * filling}, signature="wrong")
    assert [thread != threading.get_ident() for thread in threads] == [elsewhere] * 2


async def test_a_refused_callback_is_reported_to_instrumentation(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """The call names the provider, so that an operator sees that receipts do not arrive."""
    told: list[str] = []

    class Told(Instrumentation):
        def callback_refused(self, provider: str) -> None:
            told.append(provider)

    engine = Outreach(
        open_storage(clock_of_loop()),
        clock=clock_of_loop(),
        config=EngineConfig(public_url="https://o.example"),
        instrumentation=[Told()],
    )
    async with engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        caller = Caller(engine, (await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)).id)
        assert await caller.call({"id": "e1"}) == ["ignored"]
        assert told == []
        with pytest.raises(CallbackRejected):
            await caller.call({"id": "e2"}, signature="wrong")
        assert told == ["twilio"]


async def test_a_callback_that_is_too_large_is_not_read(
    open_storage: OpenStorage, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How large it may be is the provider's to say."""
    monkeypatch.setattr(FakeAdapter, "max_callback_bytes", 100)
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        assert await engine.callbacks.max_body_bytes(account.id) == 100
        caller = Caller(engine, account.id)
        with pytest.raises(CallbackRejected, match="larger than 100 bytes"):
            await caller.call({"id": "e1", "filling": "x" * 100})
        with pytest.raises(NotFound):
            await engine.callbacks.max_body_bytes("0195554e-0000-7000-8000-00000000cafe")
