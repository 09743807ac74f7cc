"""The pages of webhooks: states, lags and answers in words, secrets that are shown once, and deliveries again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

import attrs
import pytest

from outreach.models import NewWebhook, Webhook, WebhookProgress
from outreach.services.tenants.webhooks import Webhooks
from outreach.storage.unit_of_work import Transaction
from outreach_server.console.access import Role
from outreach_server.console.pages.set_up import webhooks
from outreach_server.console.words import visible
from tests.console import furniture
from tests.console.conftest import House
from tests.console.test_hostile import NAMES

pytestmark = pytest.mark.anyio

URL = "https://app.example/hook"


@pytest.fixture
async def hook(house: House) -> Webhook:
    """An endpoint with deliveries of each kind."""
    return await furniture.webhook(house.engine, house.workspace)


async def change(house: House, hook: Webhook, *, cursor: dict[str, object] | None = None, **webhook: object) -> None:
    """Change what the engine has stored of an endpoint."""

    def operation(tx: Transaction) -> None:
        known = tx.webhook_cursors.get(house.workspace, hook.id)
        assert known is not None
        tx.webhook_cursors.put(attrs.evolve(known, **(cursor or {})))  # type: ignore[arg-type]
        tx.webhooks.update(attrs.evolve(hook, **webhook))  # type: ignore[arg-type]

    await house.engine.webhooks._context.storage.write(operation)


async def test_each_answer_is_in_words(house: House, hook: Webhook) -> None:
    """No address is named that was refused."""
    text = (await house.page(f"webhooks/{hook.id}")).root.text
    for said in (
        *("204 No Content", "404 Not Found", "410 Gone", "302 Found", "299, after", "Its address is not a public one"),
        *(
            "Its certificate was not accepted (",
            "No connection to it",
            "It did not answer in time",
            "It broke the connection off",
        ),
    ):
        assert said in text


async def test_states_and_lags_are_in_words(house: House, hook: Webhook) -> None:
    """With what to do, on the list and on the page of one."""
    assert "Paused by a person" in (await house.page("webhooks")).root.text
    assert "Not delivered yet Nothing" in (await house.page(f"webhooks/{hook.id}")).root.text
    await house.engine.unsubscribes.add(house.workspace, "+13035550100", "+13035550101")
    for path in ("webhooks", f"webhooks/{hook.id}"):
        assert re.search(r"2 events, the oldest of \d+ s ago", (await house.page(path)).root.text)
    await change(house, hook, state="disabled", reason="gone")
    assert "Disabled: its endpoint has answered 410" in (await house.page("webhooks")).root.text
    since = house.engine.now() - timedelta(hours=2)
    down = {"failures": 7, "failing_since": since, "probe_at": since + timedelta(hours=3)}
    await change(house, hook, cursor=down, state="active", reason=None)
    text = (await house.page(f"webhooks/{hook.id}")).root.text
    for said in ("Failing for 2 h 0 min: one event is tried", "Failures in a row 7", "Next request", "What to do"):
        assert said in text


async def test_the_list_shows_the_rest_where_one_is_removed_between_two_reads(
    house: House, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is read again."""
    other = await furniture.webhook(house.engine, house.workspace)
    progress = Webhooks.progress

    async def late(self: Webhooks, workspace_id: str, *ids: str) -> Sequence[WebhookProgress]:
        if other.id in ids:
            await house.engine.webhooks.remove(house.workspace, other.id)
        return await progress(self, workspace_id, *ids)

    monkeypatch.setattr(Webhooks, "progress", late)
    page = await house.page("webhooks")
    [row] = page.all("th", scope="row")
    assert row.all("a")[0].attributes["href"] == house.url(f"webhooks/{hook.id}")


@pytest.mark.parametrize("role", Role)
async def test_the_overview_names_those_that_fail_or_are_disabled(house: House, hook: Webhook, role: Role) -> None:
    """Owners open them."""
    await change(house, hook, cursor={"failing_since": house.engine.now() - timedelta(hours=1)}, state="active")
    page = await house.page("", person=role)
    assert f"Webhook {hook.id} to app.example has taken nothing since" in page.root.text
    links = [one for one in page.all("a") if one.attributes.get("href") == house.url(f"webhooks/{hook.id}")]
    assert bool(links) is (role is Role.OWNER)
    await change(house, hook, state="disabled", reason="failing")
    house.app.state.console._kept.pop("status")
    assert "no delivery has succeeded for three days" in (await house.page("", person=role)).root.text


async def test_an_event_is_sent_again_from_its_row(house: House, hook: Webhook) -> None:
    """By a replay from its number, which the page says; a test has no such button."""
    page = await house.page(f"webhooks/{hook.id}")
    assert "delivers an event alone" in page.root.text
    form = page.by_id("of-row")
    assert form.all("input", name="action", value="replay")
    assert form.all("input", name="only", value="yes")
    numbers = [one.attributes["value"] for one in page.all("button", name="number", form="of-row")]
    assert numbers == [str(number) for number in range(9, 0, -1)]
    await house.engine.unsubscribes.add(house.workspace, *(f"+1303555010{n}" for n in range(9)))
    answer = await house.post(f"webhooks/{hook.id}", {"action": "replay", "number": "3", "only": "yes"})
    assert "is still to be delivered" in answer.text
    answer = await house.post(f"webhooks/{hook.id}", {"action": "replay", "number": "3"})
    assert answer.status_code == 303


async def test_deliveries_have_pages(house: House, hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest first."""
    monkeypatch.setattr(webhooks, "ATTEMPTS_SHOWN", 4)
    page = await house.page(f"webhooks/{hook.id}")
    [link] = page.all("a", rel="next")
    query = link.attributes["href"].partition("?")[2]
    second = await house.page(f"webhooks/{hook.id}?{query}")
    assert [one.text.split()[0] for one in second.all("th", scope="row")] == ["5", "4", "3", "2"]
    assert "First page" in second.root.text
    assert [one.text.split()[0] for one in page.all("th", scope="row")] == ["9", "8", "7", "6"]


@pytest.mark.parametrize(
    ("form", "status", "said"),
    [
        ({"number": "", "at": ""}, 422, "Give the number of the first event, or its time."),
        ({"number": "1", "at": "2026-11-28T09:30"}, 422, "Give the number of the first event, or its time."),
        ({"number": "", "at": "soon"}, 422, "must be a day and a time"),
        ({"number": "999999", "at": ""}, 422, "Number of the first event must be at most"),
        ({"number": "", "at": "2026-01-28T09:30"}, 303, ""),
    ],
)
async def test_a_replay_begins_at_a_number_or_a_time(
    house: House, hook: Webhook, form: dict[str, str], status: int, said: str
) -> None:
    """What is wrong is said at its field, and what was written stays."""
    answer = await house.post(f"webhooks/{hook.id}", {"action": "replay", **form})
    assert (answer.status_code, said in answer.text) == (status, True)


@pytest.mark.parametrize("url", ["http://app.example/hook", "https://10.0.0.7/hook", "https://a:b@app.example/hook"])
async def test_a_url_that_is_refused_is_said_at_its_field(house: House, url: str) -> None:
    """Nothing is made, and it stays in its field."""
    answer = await house.post("webhooks", {"action": "create", "url": url, "payload": "thin", "concurrency": "4"})
    assert answer.status_code == 422
    assert "URL is refused." in answer.text
    assert f'value="{url}"' in answer.text
    assert (await house.engine.webhooks.list(house.workspace)).items == []


async def test_secrets_are_shown_once(house: House) -> None:
    """As it is made, and as it is replaced; never again."""
    form = {"action": "create", "url": URL, "payload": "full", "concurrency": "2", "types_call.ended": "yes"}
    answer = await house.post("webhooks", form)
    [first] = re.findall(r"<code>(whsec_[^<]+)</code>", answer.text)
    [made] = (await house.engine.webhooks.list(house.workspace)).items
    assert (made.types, made.payload, made.concurrency) == (("call.ended",), "full", 2)
    answer = await house.post(f"webhooks/{made.id}", {"action": "rotate", "overlap_hours": "2", "key": "k2"})
    [second] = re.findall(r"<code>(whsec_[^<]+)</code>", answer.text)
    assert "with the one before too for 2 hours" in answer.text
    assert first != second
    for path in ("webhooks", f"webhooks/{made.id}"):
        assert "whsec_" not in (await house.get(path)).text


async def test_patterns_of_types_stay_where_the_form_means_the_same(house: House) -> None:
    """A form knows no patterns: those that were set elsewhere are kept."""
    new = NewWebhook(url=URL, types=["contact.*"])
    made = (await house.engine.webhooks.create(house.workspace, new)).webhook
    page = await house.page(f"webhooks/{made.id}")
    ticks = {one.attributes["name"] for one in page.all("input", type="checkbox") if "checked" in one.attributes}
    assert ticks == {f"types_contact.{name}" for name in ("opted_out", "opted_in", "held")}
    [form] = [one for one in page.all("form") if one.all("button", value="update")]
    seen = form.all("input", name="seen")[0].attributes["value"]
    sent = {"action": "update", "url": URL, "payload": "thin", "concurrency": "4", "seen": seen, "description": "Ours"}
    ticked = dict.fromkeys(ticks, "yes")
    assert (await house.post(f"webhooks/{made.id}", {**sent, **ticked})).status_code == 303
    changed = await house.engine.webhooks.get(house.workspace, made.id)
    assert (changed.description, changed.types) == ("Ours", ("contact.*",))


@pytest.mark.parametrize("name", NAMES)
async def test_hostile_answers_are_text(house: House, name: str) -> None:
    """Also long ones, and those with directions in them."""
    hook = await furniture.webhook(house.engine, house.workspace, answer=name * 10)
    answer = await house.get(f"webhooks/{hook.id}")
    page = await house.page(f"webhooks/{hook.id}")
    assert page.problems == []
    assert not page.all("img")
    assert " ".join(visible(name).split()[:1]) in page.root.text
    assert "\u202e" not in answer.text
    assert {one.attributes["src"].rpartition("/")[2] for one in page.all("script")} == {"htmx.js", "console.js"}
