from __future__ import annotations

import functools
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.ledger.sending import singles
from outreach.ledger.sending.intents import withdrawal_reason
from outreach.models.message import Message
from outreach.models.settings import ReplySettings
from outreach.models.states import MessageStatus, WorkspaceMode, WorkspaceStatus
from outreach.models.unsubscribe import UnsubscribeScope
from outreach.models.work import WorkUnit
from outreach.protocols.storage import Storage
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.memory import empty_database, open_image, write_now
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_lease,
    make_message,
    make_number,
    make_unsubscribe,
    make_worker,
    make_workspace,
)
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK
from tests.engine.given import EPOCH, intent_terms
from tests.engine.writing import OURS, PERSON, answers, entry, make_text, messages_of, take_in, write

pytestmark = pytest.mark.virtual_time

SECOND = timedelta(seconds=1)
MINUTES = timedelta(minutes=5)


async def commit_at(storage: Storage, message: Message, now: datetime) -> Any:
    """Commit the intent of a message at a moment; return its dispatch, or None."""

    def operation(tx: Transaction) -> Any:
        if tx.leases.current() is None:
            tx.leases.put(make_lease(epoch=EPOCH))
            tx.workers.put(make_worker(epoch=EPOCH))
        terms = intent_terms(now)
        unit = WorkUnit("message", message.workspace_id, message.id)
        return singles.commit_single(tx, unit, terms, clock_now=lambda: now)

    return await storage.write(operation)


async def state_of(storage: Storage, message: Message) -> tuple[MessageStatus, str | None]:
    """Return how a message stands, and why."""
    found = await storage.read(lambda tx: tx.messages.get(message.workspace_id, message.id))
    assert found is not None
    return found.status, found.reason


async def test_a_stop_is_on_the_register_with_its_evidence_and_confirmed_once(storage: Storage) -> None:
    """Providers, F.1: all channels, at once; what was written, the carrier's identifier and clock; one confirmation."""
    written = NOW - SECOND
    message = await write(storage, "  Stop!\n", at=written, provider_id="SM-77")
    assert (message.keyword, message.provider, message.provider_id) == ("stop", "twilio", "SM-77")
    assert (message.written_at, message.received_at) == (written, NOW)
    found = await entry(storage)
    assert found is not None
    assert (found.scope, found.source, found.created_at) == ("all", "keyword", NOW)
    assert found.evidence == r'wrote "  Stop!\n" (exact; twilio SM-77), 2026-03-02T09:30:14.123456Z'
    (reply,) = await answers(storage)
    assert (reply.to, reply.from_number, reply.carrier, reply.purpose) == (
        PERSON,
        OURS,
        "twilio",
        "opt_out_confirmation",
    )
    assert reply.body == "Acme: You are unsubscribed and will get no more messages. Reply START to subscribe again."
    assert (reply.segments, reply.send_until) == (1, written + MINUTES)
    audit = await storage.read(lambda tx: tx.audit.list(THIS_WORKSPACE, limit=9))
    assert [(one.action, one.subject, one.detail) for one in audit] == [("unsubscribes.add", message.id, "keyword")]


async def test_a_message_comes_once_however_often_it_is_handed_over(storage: Storage) -> None:
    """Field, test 10: the confirmation goes out once, though the webhook comes five times."""
    text = make_text("STOP")
    moments = [NOW + n * SECOND for n in range(5)]
    taken = [await storage.write(functools.partial(take_in, text=text, now=now)) for now in moments]
    assert [one is not None for one in taken] == [True, False, False, False, False]
    assert len(await answers(storage)) == 1
    assert len(await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE))) == 1


@pytest.mark.field(10)
@pytest.mark.parametrize("body", ["thanks", "Ok thank you", "yes please", "start please", "who is this?", ""])
async def test_what_is_written_after_a_stop_changes_nothing_unless_it_is_a_start(storage: Storage, body: str) -> None:
    """Field, test 10 (in mailroom any message opts its sender in): "thanks" changes nothing, and is not answered."""
    await write(storage, "STOP")
    before = await entry(storage)
    message = await write(storage, body, now=NOW + SECOND)
    assert message.keyword is None
    assert await entry(storage) == before
    assert len(await answers(storage)) == 1


async def test_a_second_stop_is_not_confirmed_again(storage: Storage) -> None:
    """Once for each STOP that changed something: the first evidence stays."""
    await write(storage, "STOP")
    before = await entry(storage)
    await write(storage, "please stop", now=NOW + SECOND)
    assert await entry(storage) == before
    assert len(await answers(storage)) == 1


@pytest.mark.parametrize("body", ["START", "unstop", "yes"])
async def test_a_start_lifts_what_a_keyword_set_and_is_confirmed(storage: Storage, body: str) -> None:
    """Providers, F.1: one confirmation after START; the register is as if nothing had been."""
    await write(storage, "STOP")
    message = await write(storage, body, now=NOW + SECOND)
    assert message.keyword == "start"
    assert await entry(storage) is None
    assert [reply.purpose for reply in await answers(storage)] == ["opt_out_confirmation", "opt_in_confirmation"]
    audit = await storage.read(lambda tx: tx.audit.list(THIS_WORKSPACE, limit=9))
    assert [one.action for one in audit] == ["unsubscribes.remove", "unsubscribes.add"]


@pytest.mark.field(10)
@pytest.mark.parametrize("source", ["operator", "import", "api", "call"])
async def test_a_start_lifts_nothing_that_something_else_set(storage: Storage, source: str) -> None:
    """Field, test 10 (mailroom lifts whatever there is): only a keyword's, even with a STOP on top of it."""
    put = make_unsubscribe(phone=PERSON, source=source, evidence="by hand", created_at=NOW - SECOND)
    await storage.write(lambda tx: tx.register.put(put))
    for later, body in enumerate(("START", "yes", "STOP", "START")):
        await write(storage, body, now=NOW + later * SECOND)
        shown = f"by hand; also keyword, {NOW:%Y-%m-%d}" if body == "STOP" else "by hand"
        assert await entry(storage) == attrs.evolve(put, evidence=shown)
    assert await answers(storage) == []


async def test_a_start_from_a_number_that_never_opted_out_is_an_ordinary_message(storage: Storage) -> None:
    """Nothing to lift, nothing to confirm; `yes` is then no keyword at all."""
    assert (await write(storage, "START")).keyword == "start"
    assert (await write(storage, "yes")).keyword is None
    assert await entry(storage) is None
    assert await answers(storage) == []


@pytest.mark.parametrize(("scope", "confirmed"), [("call", True), ("sms", False)])
async def test_a_stop_widens_what_an_operator_stopped_and_never_weakens_it(
    storage: Storage, scope: UnsubscribeScope, confirmed: bool
) -> None:
    """All channels from then on; confirmed where messages could reach the number before."""
    put = make_unsubscribe(phone=PERSON, scope=scope, evidence="by hand", created_at=NOW - SECOND)
    await storage.write(lambda tx: tx.register.put(put))
    await write(storage, "STOP")
    shown = f"by hand; also keyword, {NOW:%Y-%m-%d}"
    assert await entry(storage) == attrs.evolve(put, scope="all", evidence=shown, created_at=NOW)
    assert bool(await answers(storage)) is confirmed
    await write(storage, "START", now=NOW + SECOND)
    assert await entry(storage) == attrs.evolve(put, scope="all", created_at=NOW)


async def test_a_carriers_clock_that_goes_before_ours_does_not_outlast_a_stop(storage: Storage) -> None:
    """A START of tomorrow would make every STOP of today the older one."""
    await write(storage, "STOP", now=NOW)
    await write(storage, "START", at=NOW + timedelta(days=1), now=NOW + SECOND)
    assert await entry(storage) is None
    await write(storage, "STOP", now=NOW + 2 * SECOND)
    assert await entry(storage) is not None


DOUBTFUL: Final = "Can you stop by tomorrow?"


@given(st.lists(st.tuples(st.sampled_from([DOUBTFUL, "STOP", "START"]), st.integers(0, 5)), max_size=6), st.data())
def test_who_is_contacted_in_the_end_does_not_depend_on_the_order_of_arrival(
    written: list[tuple[str, int]], data: st.DataObject
) -> None:
    """A number leaves the register only by a START that is later than every STOP and every doubtful message."""
    arrivals = data.draw(st.permutations([make_text(body, at=NOW + second * SECOND) for body, second in written]))

    def arrive(tx: Transaction) -> None:
        tx.workspaces.insert(make_workspace(id=THIS_WORKSPACE))
        for later, text in enumerate(arrivals):
            take_in(tx, text, now=NOW + (10 + later) * SECOND)
        last_no = max((second for body, second in written if body != "START"), default=-1)
        last_start = max((second for body, second in written if body == "START"), default=-1)
        last_stop = max((second for body, second in written if body == "STOP"), default=-1)
        found = tx.register.get(THIS_WORKSPACE, PERSON)
        assert (found is not None) is (last_no >= 0 and last_no >= last_start)
        # A STOP that nothing has taken back is never a matter of review.
        if last_stop >= 0 and last_stop >= last_start:
            assert found is not None
            assert found.scope == "all"

    with closing(open_image(empty_database())) as database:
        write_now(Session(database), arrive)


@given(st.lists(st.tuples(st.sampled_from(["STOP", "START"]), st.integers(0, 5)), max_size=7), st.data())
def test_what_stands_in_the_end_does_not_depend_on_the_order_of_arrival(
    written: list[tuple[str, int]], data: st.DataObject
) -> None:
    """A number whose last keyword is STOP is on the register, in every order, with repeats of every message."""
    texts = [make_text(body, at=NOW + second * SECOND) for body, second in written]
    arrivals = data.draw(st.permutations(texts + texts))

    def arrive(tx: Transaction) -> None:
        tx.workspaces.insert(make_workspace(id=THIS_WORKSPACE))
        for later, text in enumerate(arrivals):
            take_in(tx, text, now=NOW + (10 + later) * SECOND)
        last_stop = max((second for body, second in written if body == "STOP"), default=-1)
        last_start = max((second for body, second in written if body == "START"), default=-1)
        opted_out = last_stop >= 0 and last_stop >= last_start
        assert bool(tx.register.stopped(THIS_WORKSPACE, "sms", {PERSON})) is opted_out
        purposes = [message.purpose for message in messages_of(tx)]
        # They take turns: nothing is confirmed that did not change anything.
        assert purposes == ["opt_out_confirmation", "opt_in_confirmation"] * (len(purposes) // 2) + (
            ["opt_out_confirmation"] if opted_out else []
        )

    with closing(open_image(empty_database())) as database:
        write_now(Session(database), arrive)


async def test_a_keyword_counts_in_its_workspace_alone(storage: Storage) -> None:
    """Everything is per workspace: the register, the order of keywords, the answers, the identifiers."""
    text = make_text("STOP")
    await storage.write(lambda tx: take_in(tx, text))
    assert await entry(storage, workspace_id=OTHER_WORKSPACE) is None
    start = make_text("START", at=NOW + SECOND)
    await storage.write(lambda tx: take_in(tx, start, now=NOW + SECOND, workspace_id=OTHER_WORKSPACE))
    assert await entry(storage) is not None
    late = NOW + SECOND
    assert await storage.write(lambda tx: take_in(tx, text, now=late, workspace_id=OTHER_WORKSPACE)) is not None
    assert await entry(storage, workspace_id=OTHER_WORKSPACE) is None
    assert {reply.workspace_id for reply in await answers(storage)} == {THIS_WORKSPACE}


@pytest.mark.parametrize(
    ("how", "changes"),
    [
        ({"carrier_start_words": {"start"}}, {}),
        ({}, {"replied_by_carrier": True}),
        ({}, {"replied_by_carrier": True, "keyword": "stop"}),
    ],
)
async def test_nothing_is_answered_where_the_carrier_answers(storage: Storage, how: Any, changes: Any) -> None:
    """Providers, F.1: by the account's flag, or because the carrier says that it has; the STOP counts all the same."""
    bodies = ["HELP", "Stop.", "START"]
    keywords = [None, "stop", None] if "keyword" in changes else [None] * 3
    stopped = []
    for later, (body, keyword) in enumerate(zip(bodies, keywords, strict=True)):
        await write(storage, body, now=NOW + later * SECOND, how=how, **{**changes, "keyword": keyword})
        stopped.append(await entry(storage) is not None)
    assert stopped == [False, True, False]
    assert await answers(storage) == []


@pytest.mark.parametrize(
    ("body", "confirmed"),
    [
        *((word, False) for word in ("STOP", " stop!\n", "StopAll", "Unsubscribe", "cancel", "END", "quit", "REVOKE")),
        *((word, True) for word in ("please stop", "stop texting me, thank you so much", "remove me", "Arrêt")),
    ],
)
async def test_a_stop_that_the_carrier_does_not_know_is_confirmed_by_us_once(
    storage: Storage, body: str, confirmed: bool
) -> None:
    """A carrier that answers by itself confirms its own words alone. The engine confirms the others."""
    how = {"carrier_start_words": {"start"}}
    for later, again in enumerate((body, "please stop", body)):
        await write(storage, again, now=NOW + later * SECOND, how=how)
    assert await entry(storage) is not None
    assert [reply.purpose for reply in await answers(storage)] == ["opt_out_confirmation"] * confirmed


@pytest.mark.parametrize("keyword", ["stop", None])
async def test_what_the_carrier_says_it_has_answered_is_not_confirmed_again(storage: Storage, keyword: Any) -> None:
    """Whatever was written: it may have words of its own."""
    await write(
        storage, "please stop", replied_by_carrier=True, keyword=keyword, how={"carrier_start_words": {"start"}}
    )
    assert await entry(storage) is not None
    assert await answers(storage) == []


@pytest.mark.parametrize(
    ("body", "keyword", "taken_for"),
    [
        ("weg damit", "stop", "stop"),
        ("weg damit", None, None),
        ("STOP", "start", "stop"),
        ("please stop", "help", "stop"),
        ("JOIN ME", "start", "start"),
        ("help", "stop", "stop"),
        ("halp", "help", "help"),
    ],
)
async def test_a_carriers_own_reading_counts_and_a_stop_counts_in_either(
    storage: Storage, body: str, keyword: Any, taken_for: str | None
) -> None:
    """A carrier may have words of its own; that it takes a STOP for something else opts nobody in."""
    assert (await write(storage, body, keyword=keyword)).keyword == taken_for
    assert (await entry(storage) is not None) == (taken_for == "stop")


@pytest.mark.parametrize(
    ("body", "changes", "lifted"),
    [
        ("START", {}, True),
        (" start!", {}, True),
        ("un-stop", {}, False),
        ("JOIN", {}, False),
        ("Yes", {}, False),
        ("JOIN", {"keyword": "start", "replied_by_carrier": True}, True),
    ],
)
async def test_only_the_carriers_own_start_lifts_where_it_answers_by_itself(
    storage: Storage, body: str, changes: Any, lifted: bool
) -> None:
    """It goes on blocking after any other; a person reads that one, and the carrier's own START lifts it later."""
    how = {"carrier_start_words": {"start"}}
    await write(storage, "STOP", how=how)
    message = await write(storage, body, now=NOW + SECOND, how=how, **changes)
    assert (await entry(storage) is None) is lifted
    assert (message.keyword, message.unclear) == (("start", False) if lifted else (None, True))
    await write(storage, "START", now=NOW + 2 * SECOND, how=how)
    assert await entry(storage) is None


async def test_a_start_that_the_carrier_does_not_know_does_not_hold_back_an_earlier_stop(storage: Storage) -> None:
    """It lifted nothing at the carrier, so the STOP that arrives after it counts; alone it says nothing unclear."""
    how = {"carrier_start_words": {"start"}}
    message = await write(storage, "JOIN", now=NOW + SECOND, how=how)
    assert (message.keyword, message.unclear) == (None, False)
    await write(storage, "STOP", now=NOW + 2 * SECOND, at=NOW, how=how)
    assert await entry(storage) is not None


async def test_help_is_answered_once_an_hour(storage: Storage) -> None:
    """Two machines that answer each other come to an end."""
    hour = timedelta(hours=1)
    for at in (NOW, NOW + SECOND, NOW + hour - TICK, NOW + hour):
        await write(storage, "HELP", now=at)
    replies = await answers(storage)
    assert [reply.created_at for reply in replies] == [NOW, NOW + hour]
    assert replies[0].body == "Acme: Msg frequency varies. Msg & data rates may apply. Reply STOP to opt out."
    assert await entry(storage) is None


async def test_help_is_answered_an_hour_after_the_clock_was_set_back(storage: Storage) -> None:
    """Not only when the time of the last answer has come again; and still once an hour."""
    hour = timedelta(hours=1)
    await write(storage, "HELP", now=NOW + 240 * hour)
    await storage.write(lambda tx: tx.leases.put(make_lease(steady_since=NOW, steady_until=NOW)))
    times = [NOW, NOW + hour - TICK, NOW + hour, NOW + hour + SECOND, NOW + 2 * hour]
    for at in times:
        await write(storage, "HELP", now=at)
    replies = await answers(storage)
    assert [reply.created_at for reply in replies] == [NOW + 240 * hour, NOW + hour, NOW + 2 * hour]


@pytest.mark.parametrize("allowed", [False, True])
async def test_help_from_an_opted_out_number_is_answered_where_the_workspace_allows_it(
    storage: Storage, allowed: bool
) -> None:
    """Not all carriers permit it; the rule is asked at the commit and before the request again."""
    await storage.write(lambda tx: tx.reply_settings.put(THIS_WORKSPACE, ReplySettings(help_when_opted_out=allowed)))
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=PERSON)))
    await write(storage, "HELP")
    replies = await answers(storage)
    assert [reply.purpose for reply in replies] == ["help"] * allowed
    if allowed:
        dispatch = await commit_at(storage, replies[0], NOW + SECOND)
        assert await storage.read(lambda tx: withdrawal_reason(tx, dispatch)) is None
        await storage.write(lambda tx: tx.reply_settings.put(THIS_WORKSPACE, ReplySettings()))
        assert await storage.read(lambda tx: withdrawal_reason(tx, dispatch)) == "opted_out"


async def test_a_workspace_answers_with_its_own_texts_or_not_at_all(storage: Storage) -> None:
    """An empty text takes the default, whatever the workspace's name holds."""
    own = ReplySettings(stop_text="Bye", help_text="Call 1")
    await storage.write(lambda tx: tx.reply_settings.put(THIS_WORKSPACE, own))
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(name="{x} é")))
    for later, body in enumerate(("HELP", "STOP", "START")):
        await write(storage, body, now=NOW + later * SECOND)
    bodies = [reply.body for reply in await answers(storage)]
    assert bodies[:2] == ["Call 1", "Bye"]
    assert bodies[2].startswith("{x} é: You are subscribed again.")
    await storage.write(lambda tx: tx.reply_settings.put(THIS_WORKSPACE, attrs.evolve(own, enabled=False)))
    await write(storage, "STOP", now=NOW + 9 * SECOND)
    assert await entry(storage) is not None
    assert len(await answers(storage)) == 3


async def test_a_confirmation_passes_the_register_and_nothing_else_does(storage: Storage) -> None:
    """Sent despite the opt-out; a message that somebody asks for, before or after, is not."""
    ordinary = make_message(to=PERSON)
    await storage.write(lambda tx: singles.create_message(tx, ordinary, now=NOW))
    await write(storage, "STOP")
    (reply,) = await answers(storage)
    assert await commit_at(storage, ordinary, NOW + SECOND) is None
    assert await state_of(storage, ordinary) == (MessageStatus.CANCELED, "opted_out")
    dispatch = await commit_at(storage, reply, NOW + SECOND)
    assert dispatch is not None
    assert await storage.read(lambda tx: withdrawal_reason(tx, dispatch)) is None


@pytest.mark.parametrize(("body", "ahead"), [("START", "opted_in"), ("STOP", "opted_out")])
async def test_a_confirmation_that_is_no_longer_true_is_not_sent(storage: Storage, body: str, ahead: str) -> None:
    """A later keyword of the contact withdraws the confirmation, at the commit as at the last check."""
    bodies = ["STOP", "START", "STOP"][: 1 if body == "START" else 2]
    for later, earlier in enumerate(bodies):
        await write(storage, earlier, now=NOW + later * SECOND)
    reply = (await answers(storage))[-1]
    dispatch = await commit_at(storage, reply, NOW + 5 * SECOND)
    await write(storage, body, now=NOW + 6 * SECOND)
    assert await storage.read(lambda tx: withdrawal_reason(tx, dispatch)) == ahead
    await storage.write(
        lambda tx: (
            tx.dispatches.update(attrs.evolve(dispatch, state="withdrawn")),
            tx.messages.update(attrs.evolve(reply, status=MessageStatus.QUEUED)),
        )
    )
    assert await commit_at(storage, reply, NOW + 7 * SECOND) is None
    assert await state_of(storage, reply) == (MessageStatus.CANCELED, ahead)


async def test_a_confirmation_goes_out_within_five_minutes_or_never(storage: Storage) -> None:
    """47 CFR 64.1200(a)(12), from when the STOP was written; a request that begins just before ends there too."""
    await write(storage, "STOP", at=NOW - 60 * SECOND)
    (reply,) = await answers(storage)
    assert reply.send_until == NOW + 240 * SECOND
    last = await commit_at(storage, reply, NOW + 240 * SECOND - TICK)
    assert last.valid_until == NOW + 240 * SECOND
    await write(storage, "STOP", now=NOW, from_number="+14155550124", at=NOW - MINUTES)
    assert await entry(storage, "+14155550124") is not None
    assert len(await answers(storage)) == 1


async def test_a_confirmation_that_waited_too_long_is_stale(storage: Storage) -> None:
    """A server that was down does not confirm an hour later; HELP waits as any single message does."""
    await write(storage, "HELP", from_number="+14155550124")
    await write(storage, "STOP")
    help_, confirmation = await answers(storage)
    assert await commit_at(storage, confirmation, NOW + MINUTES) is None
    assert await state_of(storage, confirmation) == (MessageStatus.CANCELED, "stale")
    assert await commit_at(storage, help_, NOW + MINUTES) is not None


async def test_a_suspended_workspace_obeys_and_does_not_answer(storage: Storage) -> None:
    """The register knows of no suspension; what is queued then goes out within its time, or never."""
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(status=WorkspaceStatus.SUSPENDED)))
    await write(storage, "STOP")
    assert await entry(storage) is not None
    (reply,) = await answers(storage)
    assert await commit_at(storage, reply, NOW + SECOND) is None
    assert await state_of(storage, reply) == (MessageStatus.QUEUED, None)
    assert await commit_at(storage, reply, NOW + MINUTES) is None
    assert await state_of(storage, reply) == (MessageStatus.CANCELED, "stale")


async def test_the_answer_goes_by_the_way_that_the_message_came(storage: Storage) -> None:
    """By its carrier; else by the number's; else, in a sandbox, by the simulator; else nobody is answered."""
    number = make_number(phone="+14155550198", carrier="vonage")
    await storage.write(lambda tx: tx.numbers.insert(number))
    ways = [("telnyx", "+14155550197"), (None, "(415) 555-0198"), (None, "+14155550197"), ("other", "12345")]
    for n, (provider, to) in enumerate(ways):
        await write(storage, "STOP", from_number=f"+1415555020{n}", to=to, how={"provider": provider})
    assert [(reply.carrier, reply.from_number) for reply in await answers(storage)] == [
        ("telnyx", "+14155550197"),
        ("vonage", "+14155550198"),
        ("twilio", "+14155550197"),
        ("twilio", "12345"),
    ]
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(mode=WorkspaceMode.LIVE)))
    await write(storage, "STOP", from_number="+14155550209", to="+14155550197", how={"provider": None})
    assert await entry(storage, "+14155550209") is not None
    assert len(await answers(storage)) == 4


async def test_a_message_of_no_phone_number_is_kept_and_not_obeyed(storage: Storage) -> None:
    """A name or a short code cannot be contacted either; nothing that comes from outside breaks the storage."""
    message = await write(storage, "STOP\x00\ud800", from_number="DHL\x00" + "x" * 99, provider_id="\x00" * 300)
    assert (message.from_number, message.body) == ("DHL\ufffd" + "x" * 60, "STOP\ufffd\ufffd")
    assert message.provider_id == "\ufffd" * 255
    assert list(await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE))) == [message]
    assert list(await storage.read(lambda tx: tx.register.list(THIS_WORKSPACE))) == []
    assert await answers(storage) == []


async def test_what_may_be_an_opt_out_and_is_none_is_marked_for_a_person(storage: Storage) -> None:
    """Providers, F.1: what is ambiguous is logged for a human, who decides; only campaigns wait for that."""
    bodies = [
        "Can you stop by tomorrow?",
        "cancel my appointment",
        "Thanks",
        "STOP",
        "don't stop",
        "START",
        "halp stop",
    ]
    keywords = ["help" if body.startswith("halp") else None for body in bodies]
    for later, (body, keyword) in enumerate(zip(bodies, keywords, strict=True)):
        await write(storage, body, now=NOW + later * SECOND, keyword=keyword)
        held = later < 3
        found = await entry(storage)
        assert (found.scope if found else None) == ("held" if held else "all" if body != "START" else None), body
    listed = await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE, unclear=True))
    assert [message.body for message in listed] == ["don't stop", "cancel my appointment", "Can you stop by tomorrow?"]
    assert {message.keyword for message in listed} == {None}
    told = await storage.read(lambda tx: tx.trail.between(THIS_WORKSPACE, 0, 99))
    assert {message.id for message in listed} == {
        one.message_id for one in told if one.what == "replied" and one.reason
    }


async def test_every_number_that_can_be_reached_can_opt_out(storage: Storage) -> None:
    """47 CFR 64.1200(a)(10): also a number outside every numbering plan, which messages reach as it stands."""
    unknown = "+999123456789"
    message = await write(storage, "STOP", from_number=unknown)
    assert (message.from_number, message.keyword) == (unknown, "stop")
    assert await entry(storage, unknown) is not None
    assert [reply.to for reply in await answers(storage)] == [unknown]
    await write(storage, "START", from_number=unknown, now=NOW + SECOND)
    assert await entry(storage, unknown) is None


@pytest.mark.parametrize("channel", ["whatsapp", "rcs"])
async def test_a_stop_on_another_channel_counts_and_is_not_answered(storage: Storage, channel: str) -> None:
    """The person wants no more from us; an SMS would come from where they have not written to."""
    message = await write(storage, "Stop", from_number=f"{channel}:{PERSON}", to=f"{channel}:{OURS}")
    assert (message.from_number, message.to, message.keyword) == (PERSON, f"{channel}:{OURS}", "stop")
    found = await entry(storage)
    assert found is not None
    assert (found.scope, found.source) == ("all", "keyword")
    assert await answers(storage) == []


@pytest.mark.parametrize("body", ["START", "yes", "HELP"])
async def test_another_channel_opts_nobody_in(storage: Storage, body: str) -> None:
    """What is agreed to there is not SMS and calls; nor does it make a STOP that is under way the older word."""
    await write(storage, "STOP")
    message = await write(storage, body, from_number=f"whatsapp:{PERSON}", now=NOW + 2 * SECOND)
    assert message.keyword is None
    assert await entry(storage) is not None
    assert len(await answers(storage)) == 1
    assert await storage.read(lambda tx: tx.inbound.last_keyword(THIS_WORKSPACE, PERSON, "start")) is None


async def test_the_evidence_is_bounded(storage: Storage) -> None:
    """The message itself is stored whole; the register keeps its beginning."""
    message = await write(storage, "stop" + "!" * 1000)
    assert len(message.body) == 1004
    found = await entry(storage)
    assert found is not None
    assert found.evidence is not None
    assert len(found.evidence) < 300
    assert "stop!!!" in found.evidence


async def test_answers_do_not_count_against_the_frequency_cap(storage: Storage) -> None:
    """Who writes STOP and START again is as near to the cap as before."""
    await write(storage, "STOP")
    (reply,) = await answers(storage)
    assert await commit_at(storage, reply, NOW + SECOND) is not None
    assert list(await storage.read(lambda tx: tx.dispatches.sent_to(THIS_WORKSPACE, PERSON, since=NOW))) == []


async def test_the_links_to_media_are_kept_with_the_message(storage: Storage) -> None:
    """An MMS may have nothing else."""
    link = "https://media.example.com/1.jpg"
    message = await write(storage, "", media=(link,))
    stored = await storage.read(lambda tx: tx.inbound.get(message.workspace_id, message.id))
    assert stored is not None
    assert (stored.media, stored.body) == ((link,), "")
    assert (await write(storage, "Hello", provider_id="p2")).media == ()
