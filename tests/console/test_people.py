"""Replies, opt-outs, numbers, unknown requests and calls: what their pages say, and what their forms do."""

from __future__ import annotations

import csv
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import anyio
import attrs
import pytest

from outreach import (
    CallStatus,
    CampaignStatus,
    MessageStatus,
    NewCallCampaign,
    NewMessage,
    NewRecipient,
    NotFound,
    RecipientStatus,
)
from outreach.dispatch.looking_up import LookUps
from outreach.models import DispatchState, Price, PriceTable
from outreach.models.dispatch import DispatchOutcome
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_call
from outreach_server.console import ConsoleUser
from outreach_server.console.access import Right, Role, may
from outreach_server.console.actions import FORM_ACTIONS
from outreach_server.console.pages.phones import phone_url
from outreach_server.console.pages.unknown_words import cost_of_retry
from tests.console.conftest import SENDER, House
from tests.console.page import Page, parse
from tests.console.story import ANN, BEN, CLEO, LOST, STOPPED, TOLD, UNCLEAR, Story, tell

pytestmark = pytest.mark.anyio


@pytest.fixture
async def story(house: House) -> Story:
    """What has happened in the workspace."""
    return await tell(house.engine, house.workspace)


def path_of(page: str, phone: str) -> str:
    """Return the path of a number's page."""
    return f"{page}/{phone[1:]}"


def fields(page: Page, action: str) -> dict[str, str]:
    """Return the hidden fields of the first form with an action, as a browser sends them."""
    form = next(one for one in page.all("form") if one.all("button", value=action))
    hidden = form.all("input", type="hidden")
    return {one.attributes["name"]: one.attributes["value"] for one in hidden} | {"action": action}


async def scope(house: House, phone: str) -> str | None:
    """Return what a number's entry on the register stops."""
    try:
        return (await house.engine.unsubscribes.get(house.workspace, phone)).scope
    except NotFound:
        return None


async def test_who_waits_comes_first_and_an_answer_opens_the_next(house: House, story: Story) -> None:
    """One row a number, the newest message first, without what the engine has answered; the last one leads back."""
    listed = await house.page("inbox", person="agent")
    assert [one.text for one in listed.all("th", scope="row")] == [ANN, CLEO, BEN]
    assert "and 1 older message" in listed.root.text
    path = path_of("inbox", ANN)
    page = await house.page(path, person="agent")
    assert [one.text for one in page.all("div", **{"class": "bubble theirs"})] == [
        "Can I come at 4 instead?",
        "Or at 5?",
    ]
    form = {**fields(page, "answer"), "body": "Yes,\r\nat 5."}
    answer = await house.post(path, form, person="agent")
    assert answer.headers["location"].endswith(f"{path_of('inbox', CLEO)}?done=answer")
    sent = (await house.engine.messages.list(house.workspace)).items[0]
    assert (sent.to, sent.body, sent.from_number, sent.purpose) == (ANN, "Yes,\nat 5.", SENDER, "message")
    for phone in (CLEO, BEN):
        page = await house.page(path_of("inbox", phone), person="agent")
        answer = await house.post(path_of("inbox", phone), {**fields(page, "answer"), "body": "OK"}, person="agent")
    assert answer.headers["location"].endswith("/inbox?done=answer")
    [entry, *_] = (await house.engine.audit.list(house.workspace)).items
    last = (await house.engine.messages.list(house.workspace)).items[0]
    assert (entry.actor, entry.action, entry.subject) == ("host:agent", "message.send", last.id)
    assert "Nobody is waiting." in (await house.page("inbox")).root.text
    assert "Got a message from agent" in (await house.page(path_of("inbox", BEN))).root.text


async def test_the_first_message_to_a_number_takes_the_right_to_start(house: House) -> None:
    """An agent answers those who have written; for others the page has no form, and one sends nothing."""
    path = path_of("inbox", ANN)
    for role in (Role.MANAGER, Role.OWNER):
        assert "answer" in (await house.page(path, person=role)).buttons
    page = await house.page(path, person="agent")
    assert (page.buttons, "your role cannot write first" in page.root.text) == (set(), True)
    form = {"action": "answer", "key": "none", "body": "Hi"}
    assert (await house.post(path, form, person="agent")).status_code == 403
    assert not (await house.engine.messages.list(house.workspace)).items
    assert (await house.post(path, form, person="manager")).status_code == 303
    assert (await house.post(path, form, person="agent")).status_code == 403
    await house.engine.messages.receive(house.workspace, from_number=ANN, to=SENDER, body="Who is it?")
    form = {**fields(await house.page(path, person="agent"), "answer"), "body": "Acme"}
    assert (await house.post(path, form, person="agent")).status_code == 303


async def test_an_answer_is_sent_once(house: House, story: Story) -> None:
    """A form that is sent twice sends one message."""
    path = path_of("inbox", BEN)
    form = {**fields(await house.page(path), "answer"), "body": "You are welcome."}
    assert [(await house.post(path, form)).status_code for _ in range(2)] == [303, 303]
    found = (await house.engine.messages.list(house.workspace)).items
    assert [one.body for one in found].count("You are welcome.") == 1


async def test_an_answer_after_somebody_elses_is_shown_first(house: House, story: Story) -> None:
    """Nothing is sent, what was typed stays, and the thread shows what was written meanwhile."""
    path = path_of("inbox", BEN)
    form = {**fields(await house.page(path), "answer"), "body": "My <answer>"}
    await house.engine.messages.send(house.workspace, NewMessage(to=BEN, body="Another answer"))
    answer = await house.post(path, form)
    assert answer.status_code == 409
    page = parse(answer.text)
    assert "Another answer" in page.root.text
    assert page.by_id("body").text == "My <answer>"
    again = await house.post(path, {**fields(page, "answer"), "body": "My answer"})
    assert again.status_code == 303


async def test_the_same_answer_to_an_older_message_is_not_sent(house: House, story: Story) -> None:
    """A colleague has given it to a message that the form does not show."""
    path = path_of("inbox", BEN)
    old = {**fields(await house.page(path), "answer"), "body": "Yes"}
    await house.engine.messages.receive(house.workspace, from_number=BEN, to=SENDER, body="Are you open?")
    new = {**fields(await house.page(path, person="agent"), "answer"), "body": "Yes"}
    assert (await house.post(path, new, person="agent")).status_code == 303
    assert (await house.post(path, old)).status_code == 409
    assert [one.body for one in (await house.engine.messages.list(house.workspace)).items].count("Yes") == 1


async def test_two_who_answer_at_once_send_one_answer(house: House, story: Story) -> None:
    """The other one is told so, and keeps what was typed."""
    path = path_of("inbox", BEN)
    bodies = {"owner": "At five.", "agent": "Tomorrow."}
    forms = {person: fields(await house.page(path, person=person), "answer") for person in bodies}
    answers = {}

    async def post(person: str, body: str) -> None:
        answers[person] = await house.post(path, {**forms[person], "body": body}, person=person)

    async with anyio.create_task_group() as tasks:
        for person, body in bodies.items():
            tasks.start_soon(post, person, body)
    late = next(person for person, answer in answers.items() if answer.status_code == 409)
    sent = [one.body for one in (await house.engine.messages.list(house.workspace)).items if one.to == BEN]
    assert (bodies[late] in sent, len(set(sent) & set(bodies.values()))) == (False, 1)
    page = parse(answers[late].text)
    assert "was written meanwhile" in page.root.text
    assert page.by_id("body").text == bodies[late]


@pytest.mark.parametrize("body", ["", "  ", "x" * 1700])
async def test_an_answer_that_cannot_be_sent_keeps_what_was_typed(house: House, story: Story, body: str) -> None:
    """The field says what is wrong."""
    path = path_of("inbox", BEN)
    answer = await house.post(path, {**fields(await house.page(path), "answer"), "body": body})
    assert answer.status_code == 422
    assert parse(answer.text).by_id("body-problem").text
    assert (await house.engine.messages.list(house.workspace)).items[0].body != body


async def test_nobody_answers_who_has_opted_out(house: House, story: Story) -> None:
    """The page says why instead of a field, and a form that is older than the opt-out sends nothing."""
    old = fields(await house.page(path_of("inbox", BEN)), "answer")
    await house.engine.unsubscribes.add(house.workspace, BEN)
    for phone in (STOPPED, BEN):
        page = await house.page(path_of("inbox", phone))
        assert page.all("textarea") == []
        assert "it cannot be answered" in page.root.text
    assert (await house.post(path_of("inbox", BEN), {**old, "body": "Hi"})).status_code == 409


@pytest.mark.parametrize(("action", "left"), [("opted-out", "all"), ("not-opted-out", None)])
async def test_held_numbers_are_decided(house: House, story: Story, action: str, left: str | None) -> None:
    """By the buttons of the keys 1 and 2; a decision that comes too late changes nothing, and its page says so."""
    page = await house.page("inbox?folder=held", person="agent")
    assert UNCLEAR in page.root.text
    keys = {one.attributes["value"]: one.attributes.get("data-key") for one in page.all("button", name="action")}
    assert keys == {"opted-out": "1", "not-opted-out": "2"}
    form = fields(page, action)
    answer = await house.post("inbox?folder=held", form, person="agent")
    assert answer.headers["location"].endswith(f"/inbox?folder=held&done={action}")
    assert await scope(house, CLEO) == left
    assert (await house.post("inbox?folder=held", {**form, "key": "other"}, person="agent")).status_code == 409
    assert await scope(house, CLEO) == left


async def test_a_decision_is_about_the_messages_that_were_shown(house: House, story: Story) -> None:
    """A form that is older than a further message changes nothing; its page shows both messages."""
    old = fields(await house.page("inbox?folder=held"), "not-opted-out")
    await house.engine.messages.receive(house.workspace, from_number=CLEO, to=SENDER, body="Lass mich in Ruhe")
    answer = await house.post("inbox?folder=held", {**old, "seen": ""})
    assert (answer.status_code, await scope(house, CLEO)) == (409, "held")
    answer = await house.post("inbox?folder=held", old)
    assert (answer.status_code, await scope(house, CLEO)) == (409, "held")
    text = parse(answer.text).root.text
    assert "a further message came" in text
    assert UNCLEAR in text
    assert "Lass mich in Ruhe" in text
    answer = await house.post("inbox?folder=held", fields(parse(answer.text), "not-opted-out"))
    assert (answer.status_code, await scope(house, CLEO)) == (303, None)


async def test_everything_with_a_number_is_shown(house: House, story: Story) -> None:
    """Messages both ways, calls and the register; a number without anything says so."""
    page = await house.page(path_of("contacts", ANN), person="viewer")
    assert "Or at 5?" in page.root.text
    assert "Was called" in page.root.text
    assert page.buttons == set()
    page = await house.page(path_of("contacts", STOPPED))
    assert "the person wrote STOP" in page.root.text
    assert "Nothing was ever sent" in (await house.page("contacts/14155559999")).root.text
    for wrong in ("contacts/x", "contacts/12", "inbox/+14155550102", "contacts/1415555010212345678"):
        assert (await house.get(wrong)).status_code == 404


async def test_somebody_is_opted_out_with_one_click_and_taken_off_with_a_typed_number(house: House) -> None:
    """Another number that is typed changes nothing."""
    path = path_of("contacts", ANN)
    await house.post(path, fields(await house.page(path), "opt-out"))
    assert await scope(house, ANN) == "all"
    form = fields(await house.page(path), "take-off") | {"reason": "Letter of 3 May"}
    wrong = await house.post(path, {**form, "number": "+1 415 555 0199"})
    assert wrong.status_code == 422
    assert parse(wrong.text).by_id("take-off-number").attributes["value"] == "+1 415 555 0199"
    assert await scope(house, ANN) == "all"
    form["number"] = "+1 (415) 555-0102"
    silent = await house.post(path, {**form, "reason": " "})
    assert (silent.status_code, "why" in parse(silent.text).by_id("reason-problem").text) == (422, True)
    assert await scope(house, ANN) == "all"
    assert (await house.post(path, form)).status_code == 303
    assert await scope(house, ANN) is None
    [entry] = (await house.engine.audit.list(house.workspace, action="unsubscribes.remove")).items
    assert entry.detail == "1 numbers: Letter of 3 May"


async def test_a_person_is_erased_by_an_owner_with_the_number(house: House, story: Story) -> None:
    """Nothing is left but the hash of an opt-out."""
    path = path_of("contacts", TOLD)
    form = fields(await house.page(path), "erase")
    assert (await house.post(path, {**form, "number": ANN})).status_code == 422
    assert (await house.post(path, {**form, "number": TOLD}, person="manager")).status_code == 403
    assert await scope(house, TOLD) == "all"
    assert (await house.post(path, {**form, "number": TOLD})).headers["location"].endswith("/?done=erase")
    page = await house.page("register")
    assert TOLD not in page.root.text
    assert "An erased person" in page.root.text


async def test_the_register_is_searched_and_filled(house: House, story: Story) -> None:
    """A number that is not there can be added; wrong lines are named and nothing is added."""
    listed = await house.page("register")
    assert [one.text for one in listed.all("th", scope="row")] == [CLEO, STOPPED, TOLD]
    assert "Told us by phone on 3 May" in (await house.page(f"register?q={TOLD}".replace("+", "%2B"))).root.text
    missing = await house.page("register?q=14155550177")
    assert "not on the register" in missing.root.text
    form = {"action": "opt-out", "numbers": "+14155550177\r\nnobody", "scope": "sms", "evidence": "Letter"}
    answer = await house.post("register", form)
    assert answer.status_code == 422
    assert "Line 2" in parse(answer.text).by_id("numbers-problem").text
    assert parse(answer.text).by_id("evidence").attributes["value"] == "Letter"
    assert await scope(house, "+14155550177") is None
    assert (await house.post("register", {**form, "numbers": "+14155550177"})).status_code == 303
    assert await scope(house, "+14155550177") == "sms"
    assert (await house.post("register", {**form, "numbers": "\n"})).status_code == 422
    assert (await house.post("register", {**form, "scope": "held"})).status_code == 400
    off = {"action": "take-off", "phone": TOLD, "number": ANN, "reason": "By phone"}
    answer = await house.post("register", off)
    assert answer.status_code == 422
    page = parse(answer.text)
    [opened] = [one for one in page.all("details") if "open" in one.attributes and one.all("form")]
    values = {one.attributes.get("name"): one.attributes.get("value") for one in opened.all("input")}
    assert (values["phone"], values["number"], values["reason"]) == (TOLD, ANN, "By phone")
    assert (await house.post("register", {**off, "number": TOLD, "reason": ""})).status_code == 422
    assert await scope(house, TOLD) == "all"
    assert (await house.post("register", {**off, "number": TOLD})).status_code == 303
    assert await scope(house, TOLD) is None


async def test_the_register_is_a_file_for_those_who_may_export(house: House, story: Story) -> None:
    """With what a spreadsheet would run made harmless; the audit trail says how many rows went out, and no number."""
    await house.engine.unsubscribes.add(house.workspace, "+12025550177", evidence="=1+1, they said")
    path = "register/file"
    for role in Role:
        allowed = may(role, Right.EXPORT)
        assert (await house.get(path, person=role)).status_code == (200 if allowed else 403)
    answer = await house.get(path, person="manager")
    assert answer.headers["content-disposition"] == 'attachment; filename="opt-outs.csv"'
    rows = list(csv.DictReader(answer.text.removeprefix("\ufeff").splitlines()))
    entries = (await house.engine.unsubscribes.list(house.workspace)).items
    assert [row["phone"] for row in rows] == [one.phone for one in entries]
    assert {row["evidence"] for row in rows} >= {"'=1+1, they said", "Told us by phone on 3 May"}
    [*_, entry] = (await house.engine.audit.list(house.workspace, action="unsubscribes.export")).items
    assert (entry.actor, entry.detail) == ("host:manager", f"csv, rows: {len(entries)}")
    assert path in {
        one.attributes["href"].partition(f"{house.workspace}/")[2] for one in (await house.page("register")).all("a")
    }


async def test_an_unknown_request_is_decided(house: House, story: Story) -> None:
    """With its evidence; one that may still be on its way is not tried again."""
    page = await house.page("unknown")
    text = page.root.text
    assert text.count("Read timed out.") == 2
    assert "It can be tried again from" in text
    young, old = story.unknown
    refused = await house.post("unknown", {"action": "retry", "dispatch": young.id})
    assert refused.status_code == 409
    assert "may still be on its way" in refused.text
    assert (await house.post("unknown", {"action": "assume_sent", "dispatch": old.id})).status_code == 303
    found = await house.engine.dispatches.get(house.workspace, old.id)
    assert (found.state, found.reason) == (DispatchState.ACCEPTED, "assumed_sent")
    assert (await house.engine.audit.list(house.workspace)).items[0].actor == "host:owner"
    assert (await house.post("unknown", {"action": "retry", "dispatch": "none"})).status_code == 404


async def test_an_unknown_request_shows_what_a_second_try_costs(house: House, story: Story) -> None:
    """By the prices of the workspace, and what the provider has reported beside it."""
    assert (await house.page("unknown")).root.text.count("Not known: the workspace has no price for it.") == 2
    prices = (Price(kind="sms", amount=Decimal("0.0079"), country="US"), Price(kind="call", amount=Decimal("0.09")))
    await house.engine.prices.update(house.workspace, PriceTable(currency="USD", prices=prices))

    reported = attrs.evolve(story.unknown[0], provider_id="SM7", report=MessageStatus.SENT, error_code="30")
    await house.engine._storage.write(lambda tx: tx.dispatches.update(reported))
    text = (await house.page("unknown")).root.text
    assert text.count("A second try costs 0.01 USD, for 1 segment at 0.0079 USD") == 2
    assert "its identifier SM7; the state sent; the code 30; Read timed out." in text
    table = await house.engine.prices.get(house.workspace)
    three = attrs.evolve(reported, segments=3)
    assert cost_of_retry(table, three) == "0.02 USD, for 3 segments at 0.0079 USD"
    assert cost_of_retry(table, attrs.evolve(three, to="+442071838750")).startswith("Not known")
    call = attrs.evolve(three, channel="call", segments=None)
    assert cost_of_retry(table, call) == "0.09 USD for each minute, if somebody answers"


async def test_a_decision_that_collides_says_who_decided_and_when(house: House, story: Story) -> None:
    """A person, an earlier click of the same one, or evidence."""
    first, second = story.unknown
    house.people["ben"] = ConsoleUser(id="ben", name="Ben", workspaces={house.workspace: Role.OWNER})
    await house.engine.dispatches.resolve(house.workspace, second.id, "assume_sent", actor="host:ben")
    late = await house.post("unknown", {"action": "retry", "dispatch": second.id})
    assert late.status_code == 409
    said = parse(late.text).all("div", role="alert")[0].text
    assert re.match(r"Decided meanwhile by ben, \d\d:\d\d:\d\d \(UTC\): it counts as sent\. Your", said)
    assert (
        "by yourself, " in (await house.post("unknown", {"action": "retry", "dispatch": second.id}, person="ben")).text
    )
    form = {"action": "assume_sent", "number": "5"}
    assert "The latest decision: ben, " in (await house.post("unknown", form)).text

    def settle(tx: Transaction) -> None:
        now = house.engine.now()
        tx.dispatches.update(attrs.evolve(first, state=DispatchState.REFUSED, settled_at=now))

    await house.engine._storage.write(settle)
    settled = (await house.post("unknown", {"action": "assume_sent", "dispatch": first.id})).text
    assert "without a decision: the provider has refused it." in settled


async def test_a_request_is_looked_up_at_once(house: House, story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence settles it; without evidence it stays unknown, and the page says so, as it does after an error."""
    form = {"action": "look-up", "dispatch": story.unknown[1].id}
    refused = await house.post("unknown", form)
    assert refused.status_code == 409
    assert "This is a sandbox" in refused.text
    answers: list[DispatchOutcome | None] = [None, DispatchOutcome(state=DispatchState.ACCEPTED, provider_id="SM1")]

    async def ask(*_: object) -> DispatchOutcome | None:
        return answers.pop(0)

    monkeypatch.setattr(LookUps, "ask", ask)
    monkeypatch.setattr(house.engine.dispatches, "_provider_pool", lambda _: None)
    nothing = await house.post("unknown", form)
    assert nothing.status_code == 200
    assert "The request stays unknown." in nothing.text
    assert (await house.post("unknown", form)).headers["location"].endswith("/unknown?done=look-up")
    found = await house.engine.dispatches.get(house.workspace, story.unknown[1].id)
    assert (found.state, found.provider_id) == (DispatchState.ACCEPTED, "SM1")
    entries = (await house.engine.audit.list(house.workspace)).items[:2]
    assert [(one.action, one.detail) for one in entries] == [
        ("dispatch.look_up", "accepted"),
        ("dispatch.look_up", "no evidence"),
    ]


async def test_many_unknown_requests_are_decided_as_they_were_counted(house: House, story: Story) -> None:
    """The page counts first; another number than the one that was shown asks again, and a filter holds."""
    page = await house.page("unknown?decide=assume_sent&provider=twilio")
    form = fields(page, "assume_sent")
    assert (form["number"], form["provider"]) == ("2", "twilio")
    for decision in ("assume_sent", "retry"):
        choice = (await house.page(f"unknown?decide={decision}")).by_id("decide")
        assert [one.attributes["value"] for one in choice.all("option") if "selected" in one.attributes] == [decision]
    assert "No request is of this kind" in (await house.page("unknown?decide=retry&provider=telnyx")).root.text
    for number, status in (("1", 409), ("x", 400), ("2", 303)):
        assert (await house.post("unknown", {**form, "number": number})).status_code == status
        left = (await house.engine.dispatches.list_unknown(house.workspace)).items
        assert len(left) == (0 if status == 303 else 2)
    assert "Every request has a clear answer." in (await house.page("unknown")).root.text
    assert (await house.get("unknown?decide=explode")).status_code == 404


async def test_calls_are_listed_and_judged(house: House, story: Story) -> None:
    """By the filters in the address; an outcome is set once."""
    assert ANN in (await house.page("calls?outcome=negative&status=completed", person="viewer")).root.text
    assert "No call is of this kind." in (await house.page("calls?outcome=positive")).root.text
    for wrong in ("calls?outcome=x", "calls?status=x", "calls?agent=none", "calls?campaign=none", "calls/none"):
        assert (await house.get(wrong)).status_code == 404
    path = f"calls/{story.call.id}"
    page = await house.page(path)
    assert "user: Call me again on Monday." in page.root.text
    form = {**fields(page, "outcome"), "verdict": "callback", "summary": "On <Monday>."}
    assert (await house.post(path, {**form, "verdict": "busy"})).status_code == 400
    assert (await house.post(path, form)).status_code == 303
    found = await house.engine.calls.get(house.workspace, story.call.id)
    assert (found.outcome, found.summary) == ("callback", "On <Monday>.")
    assert "outcome" not in (await house.page(path)).buttons
    assert (await house.post(path, {**form, "verdict": "positive"})).status_code == 409


async def test_a_call_that_has_ended_is_placed_again(house: House, story: Story) -> None:
    """By the same agent to the same number; the register is asked as always."""
    path = f"calls/{story.call.id}"
    for person in ("viewer", "agent"):
        assert "call-again" not in (await house.page(path, person=person)).buttons
    form = fields(await house.page(path, person="manager"), "call-again")
    await house.engine.unsubscribes.add(house.workspace, story.call.to)
    answer = await house.post(path, form, person="manager")
    assert (answer.status_code, "unsubscribe" in answer.text) == (409, True)
    await house.engine.unsubscribes.remove(house.workspace, story.call.to)
    answer = await house.post(path, form, person="manager")
    assert answer.status_code == 303
    made, before = (await house.engine.calls.list(house.workspace)).items[:2]
    assert answer.headers["location"].endswith(f"/calls/{made.id}?done=call-again")
    assert (made.to, made.agent_id, made.variables) == (before.to, before.agent_id, before.variables)
    [entry, *_] = (await house.engine.audit.list(house.workspace)).items
    assert (entry.actor, entry.action, entry.subject) == ("host:manager", "call.create", made.id)


async def test_a_number_is_called_again_once_for_all_who_press(house: House, story: Story) -> None:
    """Also at once; after that the page shows the later call, and the button of an older page calls nobody."""
    path = f"calls/{story.call.id}"
    people = ("owner", "manager")
    forms = {person: fields(await house.page(path, person=person), "call-again") for person in people}
    places = set()

    async def post(person: str) -> None:
        places.add((await house.post(path, forms[person], person=person)).headers.get("location"))

    async with anyio.create_task_group() as tasks:
        for person in people:
            tasks.start_soon(post, person)
    made, before = (await house.engine.calls.list(house.workspace)).items
    assert before.id == story.call.id
    later = house.url(f"calls/{made.id}")
    assert f"{later}?done=call-again" in places
    ended = attrs.evolve(made, status=CallStatus.COMPLETED, ended_at=house.engine.now())
    await house.engine._storage.write(lambda tx: tx.calls.update(ended))
    answer = await house.post(path, {**forms["manager"], "key": "another"}, person="manager")
    page = parse(answer.text)
    assert (answer.status_code, len(page.all("a", href=later))) == (409, 1)
    assert "call-again" not in page.buttons
    assert "call-again" in (await house.page(f"calls/{made.id}")).buttons
    assert len((await house.engine.calls.list(house.workspace)).items) == 2


async def test_the_page_of_a_call_says_when_its_campaign_calls_again(house: House, story: Story) -> None:
    """While the campaign is active and its contact waits."""
    new = NewCallCampaign(name="Calls", agent_id=story.call.agent_id)
    campaign = (
        await house.engine.campaigns.create_call(house.workspace, new, [NewRecipient(phone_number=ANN)])
    ).campaign
    contact = await house.engine.campaigns.get_recipient(house.workspace, campaign.id, 0)
    due_at = house.engine.now() + timedelta(minutes=20)
    waits = attrs.evolve(contact, status=RecipientStatus.WAITING, reason="busy", due_at=due_at)
    call = make_call(
        workspace_id=house.workspace,
        agent_id=story.call.agent_id,
        campaign_id=campaign.id,
        position=0,
        to=ANN,
        status=CallStatus.BUSY,
        created_at=house.engine.now(),
    )

    def write(tx: Transaction) -> None:
        tx.campaigns.update(attrs.evolve(campaign, status=CampaignStatus.ACTIVE))
        tx.recipients.put(house.workspace, waits)
        tx.calls.insert(call)

    await house.engine._storage.write(write)
    page = await house.page(f"calls/{call.id}", person="agent")
    assert "The campaign calls this number again by itself" in page.root.text
    assert page.all("time", datetime=due_at.isoformat())


async def test_the_list_says_of_a_contact_that_it_was_sent(house: House) -> None:
    """Not whether that is confirmed: the pages of the campaign and of the contact say so."""
    campaign = await house.campaign(contacts=1)
    contact = await house.engine.campaigns.get_recipient(house.workspace, campaign.id, 0)
    done = attrs.evolve(contact, status=RecipientStatus.COMPLETED, dispatched=True, ended_at=house.engine.now())
    await house.engine._storage.write(lambda tx: tx.recipients.put(house.workspace, done))
    [row] = (await house.page(f"campaigns/{campaign.id}/contacts")).all("tbody")[0].all("tr")
    assert ("sent" in row.text, "accepted" in row.text) == (True, False)


async def test_a_contact_is_left_out_of_its_campaign(house: House) -> None:
    """With the reason in the audit trail; what has ended, or was erased, has no such button."""
    campaign = await house.campaign()
    path = f"campaigns/{campaign.id}/contacts/1"
    assert "skip" not in (await house.page(path, person="agent")).buttons
    form = {**fields(await house.page(path, person="manager"), "skip"), "reason": "asked us to"}
    assert (await house.post(path, {**form, "reason": "x" * 201}, person="manager")).status_code == 422
    answer = await house.post(path, form, person="manager")
    assert (answer.status_code, answer.headers["location"].endswith("contacts/1?done=skip")) == (303, True)
    assert (await house.post(path, form, person="manager")).status_code == 303
    found = await house.engine.campaigns.get_recipient(house.workspace, campaign.id, 1)
    assert (found.status, found.reason) == ("skipped", "by_operator")
    [entry] = (await house.engine.audit.list(house.workspace, actor="host:manager")).items
    assert (entry.action, "asked us to" in (entry.detail or "")) == ("recipient.skip", True)
    assert "skip" not in (await house.page(path, person="manager")).buttons
    await house.engine.campaigns.cancel(house.workspace, campaign.id)
    answer = await house.post(f"campaigns/{campaign.id}/contacts/0", form, person="manager")
    assert (answer.status_code, "sends nothing more to this contact" in answer.text) == (409, True)


TRIES: dict[str, tuple[str, dict[str, Any], Right]] = {
    "opt-out": ("contacts/14155550102", {}, Right.DECIDE),
    "take-off": ("contacts/14155550106", {"number": TOLD, "reason": "By phone"}, Right.DECIDE),
    "erase": ("contacts/14155550102", {"number": ANN}, Right.ERASE),
    "opted-out": ("inbox", {"phone": CLEO}, Right.REPLY),
    "not-opted-out": ("inbox", {"phone": CLEO}, Right.REPLY),
    "answer": ("inbox/14155550103", {"body": "Hi", "key": "none"}, Right.REPLY),
    "look-up": ("unknown", {}, Right.DECIDE),
    "assume_sent": ("unknown", {}, Right.DECIDE),
    "retry": ("unknown", {}, Right.DECIDE),
    "outcome": ("calls/{call}", {"verdict": "positive"}, Right.DECIDE),
    "call-again": ("calls/{call}", {}, Right.START),
    "import-opt-outs": ("register/import", {"upload": "u"}, Right.DECIDE),
    "undo-import": ("register/import", {"import": "i"}, Right.DECIDE),
    "skip": ("campaigns/{campaign}/contacts/0", {"reason": "asked us to"}, Right.DECIDE),
}
"""Of each form: its page, its fields, and the right that it takes, written out and not read from the code."""


@pytest.mark.parametrize("name", TRIES)
async def test_each_form_takes_its_right_a_token_and_a_key(house: House, story: Story, name: str) -> None:
    """Another role gets 403, and so does a form without a token; without a key it is 400. Nothing changes."""
    path, more, right = TRIES[name]
    campaign = await house.campaign()
    path, form = (
        path.format(call=story.call.id, campaign=campaign.id),
        {**more, "action": name, "dispatch": story.unknown[1].id},
    )
    before = (await house.engine.audit.list(house.workspace)).items
    for role in Role:
        if not may(role, right):
            assert (await house.post(path, form, person=role)).status_code == 403, role
    assert (await house.post(path, {**form, "token": "x"})).status_code == 403
    assert (await house.post(path, {**form, "key": ""})).status_code == 400
    assert (await house.post(path, {**form, "action": "explode"})).status_code == 400
    assert (await house.post(path, form, person="stranger")).status_code == 404
    assert (await house.engine.audit.list(house.workspace)).items == before
    assert len((await house.engine.dispatches.list_unknown(house.workspace)).items) == 2


def test_each_form_is_tried() -> None:
    """A new one is added here, or to the tests of what follows a campaign."""
    assert set(TRIES) | {
        "clone",
        "follow-up",
        "edit",
        "export",
        "export-register",
        "export-audit",
        "export-system-audit",
    } == set(FORM_ACTIONS)


async def test_calls_and_requests_of_other_workspaces_are_not_there(house: House) -> None:
    """Neither to see nor to decide."""
    theirs = await tell(house.engine, house.foreign)
    assert (await house.get(f"calls/{theirs.call.id}", person="operator")).status_code == 404
    assert (
        await house.post(f"calls/{theirs.call.id}", {"action": "outcome", "verdict": "positive"})
    ).status_code == 404
    for request in theirs.unknown:
        assert (await house.post("unknown", {"action": "retry", "dispatch": request.id})).status_code == 404
    assert (await house.post("inbox", {"action": "opted-out", "phone": CLEO})).status_code == 409
    assert (await house.engine.unsubscribes.get(house.foreign, CLEO)).scope == "held"
    assert ANN not in (await house.page("inbox?folder=all", person="operator")).root.text
    assert LOST not in (await house.page("unknown", person="operator")).root.text


async def test_hostile_texts_are_shown_as_text(house: House) -> None:
    """In every page with what people write."""
    evil = '</textarea><script>alert(1)</script>\u202e{{ 7 * 7 }} "><img src=x>'
    await house.engine.messages.receive(house.workspace, from_number=ANN, to=SENDER, body=evil)
    await house.engine.messages.receive(house.workspace, from_number=BEN, to=SENDER, body=f"stop it {evil}")
    await house.engine.unsubscribes.add(house.workspace, TOLD, evidence=evil)
    for path in ("inbox", "inbox?folder=held", "register", path_of("inbox", ANN), path_of("contacts", TOLD)):
        answer = await house.get(path)
        page = parse(answer.text)
        assert page.problems == [], path
        assert not page.all("img")
        assert len(page.all("script")) == 2
        assert "\u202e" not in answer.text
        assert "alert(1)" in page.root.text


def test_a_number_in_an_address_has_no_plus() -> None:
    """What is no number has no page."""
    for phone in ("#0a1b", "Acme", "+1/2", "", None, "+12345678901234567"):
        assert phone_url(None, "person", phone) == ""  # type: ignore[arg-type]
