from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from outreach import InvalidRequest, MessageStatus, NotFound, Outreach, Workspace
from outreach.models.campaign import Campaign
from outreach.models.plans import WaveResult
from outreach.models.resources import FlowStep
from outreach.models.settings import ReplySettingsUpdate
from outreach.models.states import RecipientStatus
from outreach.protocols.storage import Storage
from outreach.testing.clock import ManualClock
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import CALLS, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.flow_course import Course
from tests.engine.given import ACCEPTED, given_settings, recipient, refused, reread, settle
from tests.engine.rig import Rig, dispatching, given_campaign, given_workspace, people, reaches, until
from tests.engine.writing import answers, write

pytestmark = pytest.mark.virtual_time

OURS = "+14155550199"
HELLO = FlowStep(kind="send", body="Hello")
STOP_IF_REPLIED = FlowStep(kind="stop_if_replied")
CONFIRMED = "Acme: You are unsubscribed and will get no more messages. Reply START to subscribe again."


def number(position: int) -> str:
    """Return the number of a campaign's contact."""
    return f"+1415555{position:04d}"


async def say(engine: Outreach, workspace_id: str, position: int, body: str, **changes: Any) -> Any:
    """Have a contact write to the sending number."""
    fields = {"from_number": number(position), "to": OURS, "body": body, "provider": "twilio", **changes}
    return await engine.messages.receive(workspace_id, **fields)


async def states(engine: Outreach, campaign: Campaign) -> list[tuple[RecipientStatus, str | None]]:
    """Return how each recipient stands, and why."""
    return [(one.status, one.reason) for one in await people(engine, campaign)]


async def all_answered(rig: Rig, count: int) -> None:
    """Wait until so many answers are with the carrier."""

    async def there() -> bool:
        sent = await answers(rig.storage)
        return len(sent) == count and all(one.status is MessageStatus.ACCEPTED for one in sent)

    await until(there)


def committed_in(result: object) -> list[WaveResult]:
    """Return what waves did, where a write has committed some."""
    return [one for one in result if isinstance(one, WaveResult)] if isinstance(result, list) else []


@pytest.mark.field(10)
async def test_a_stop_between_the_commit_and_the_request_is_honoured(open_storage: OpenStorage) -> None:
    """Field, test 10 (Rock #7049 blocks the confirmation by the opt-out itself): not contacted, and confirmed."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_campaign(rig.engine, workspace, 1)
        committed: list[WaveResult] = []

        async def stop_after_the_commit(result: object) -> None:
            found = committed_in(result)
            if found and found[0].dispatches and not committed:
                committed.extend(found)
                await say(rig.engine, workspace.id, 0, "Stop.")

        rig.storage.after_write = stop_after_the_commit
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await reaches(rig.engine, campaign, "completed")
        assert await states(rig.engine, campaign) == [(RecipientStatus.SKIPPED, "opted_out")]
        await all_answered(rig, 1)
        assert [(message.to, message.body) for message in rig.carrier.requests] == [(number(0), CONFIRMED)]
        (dispatch,) = committed[0].dispatches
        settled = await rig.engine.dispatches.get_anywhere(dispatch.id)
        assert (settled.state, settled.reason) == ("withdrawn", "opted_out")


async def test_a_stop_between_the_commit_and_the_request_of_a_call_is_honoured(open_storage: OpenStorage) -> None:
    """Field, test 10: by message, for a call: the register stops every channel."""
    async with dispatching(open_storage(clock_of_loop()), config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_calls(rig.engine, workspace, 1)

        async def stop_after_the_commit(result: object) -> None:
            if any(one.dispatches for one in committed_in(result)):
                await say(rig.engine, workspace.id, 0, "stop calling me")

        rig.storage.after_write = stop_after_the_commit
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await reaches(rig.engine, campaign, "completed")
        assert await states(rig.engine, campaign) == [(RecipientStatus.SKIPPED, "opted_out")]
        assert rig.voice.requests == []


@pytest.mark.parametrize("while_it_is_asked", [True, False])
async def test_a_stop_is_reported_as_an_opt_out_where_a_flow_stops_at_replies(
    storage: Storage, clock: ManualClock, while_it_is_asked: bool
) -> None:
    """It is a reply too; who has opted out is skipped, not completed."""
    course = await Course.begin(storage, clock, HELLO, STOP_IF_REPLIED, HELLO)
    (first,) = await course.wave()
    if while_it_is_asked:
        await write(storage, "STOP", now=clock.now(), from_number=first.to)
    await settle(storage, first, ACCEPTED, now=clock.now())
    if not while_it_is_asked:
        await write(storage, "STOP", now=clock.now(), from_number=first.to)
        assert await course.wave() == ()
    after = await recipient(storage, course.campaign)
    assert (after.status, after.reason, after.dispatched) == (RecipientStatus.SKIPPED, "opted_out", True)
    assert (await reread(storage, course.campaign)).status == "completed"


async def test_who_waits_for_a_step_or_a_retry_is_skipped_at_once(storage: Storage, clock: ManualClock) -> None:
    """Whatever it waits for; a START that comes later does not open what has ended."""
    await given_settings(storage, retry_enabled=True)
    course = await Course.begin(storage, clock, HELLO, FlowStep(kind="wait", wait_minutes=60), HELLO, count=4)
    gone, waiting, back, retried = await course.wave()
    for dispatch in (gone, waiting, back):
        await settle(storage, dispatch, ACCEPTED, now=clock.now())
    await settle(storage, retried, refused("temporary"), now=clock.now())
    for dispatch in (gone, back, retried):
        await write(storage, "STOP", now=clock.now(), from_number=dispatch.to)
    clock.advance(1)
    await write(storage, "START", now=clock.now(), from_number=back.to)
    sent = []
    while await course.rest():
        for dispatch in await course.wave():
            sent.append(dispatch.to)
            await settle(storage, dispatch, ACCEPTED, now=clock.now())
    assert sent == [waiting.to]
    for dispatch in (gone, back, retried):
        after = await recipient(storage, course.campaign, dispatch.position or 0)
        assert (after.status, after.reason) == (RecipientStatus.SKIPPED, "opted_out")
    assert (await reread(storage, course.campaign)).status == "completed"


async def test_what_a_program_hands_in_is_checked(engine: Outreach, workspace: Workspace) -> None:
    """Nothing is stored of what cannot be read, or says nothing of whom it is from."""
    fields: dict[str, Any] = {"from_number": number(0), "to": OURS, "body": "STOP"}
    for wrong, path in (
        ({"from_number": "nobody"}, "from_number"),
        ({"body": "\x00"}, "body"),
        ({"provider": "pigeon"}, "provider"),
        ({"provider_id": "SM1"}, "provider_id"),
        ({"written_at": datetime(2026, 3, 2)}, "written_at"),  # noqa: DTZ001 - that is what is refused
    ):
        with pytest.raises(InvalidRequest) as refusal:
            await engine.messages.receive(workspace.id, **{**fields, **wrong})
        assert [detail.path for detail in refusal.value.details] == [path]
    with pytest.raises(NotFound):
        await engine.messages.receive(workspace.id.replace("0", "1"), **fields)
    assert list(await engine.messages.list_inbound(workspace.id)) == []
    assert [entry async for entry in engine.unsubscribes.iter_all(workspace.id)] == []


async def test_a_program_says_that_the_carrier_answers_its_words(engine: Outreach, workspace: Workspace) -> None:
    """Then the carrier's own START lifts the entry, and no other does."""
    on_register = []
    for how in ({"replies_to_keywords": True}, {"replies_to_keywords": True, "provider": None}, {}):
        await say(engine, workspace.id, 0, "STOP")
        await say(engine, workspace.id, 0, "JOIN", **how)
        on_register.append(bool([entry async for entry in engine.unsubscribes.iter_all(workspace.id)]))
    assert on_register == [True, True, False]
    unclear = await engine.messages.list_inbound(workspace.id, unclear=True)
    assert [message.body for message in unclear] == ["JOIN", "JOIN"]


async def test_the_answers_of_a_workspace_are_set_one_by_one(engine: Outreach) -> None:
    """What is not named stays; an empty text takes the default again; the audit trail knows of each change."""
    workspace, other = await given_workspace(engine), await given_workspace(engine)
    before = {text.purpose: text for text in await engine.reply_settings.effective_texts(workspace.id)}
    assert before["opt_out_confirmation"].text == CONFIRMED
    assert {text.segments for text in before.values()} == {1}
    long = ReplySettingsUpdate(help_text="é" * 160 + "x", enabled=False)
    changed = await engine.reply_settings.update(workspace.id, long)
    assert (changed.enabled, changed.stop_text, changed.help_text) == (False, "", long.help_text)
    assert await engine.reply_settings.get(workspace.id) == changed
    texts = {text.purpose: text for text in await engine.reply_settings.effective_texts(workspace.id)}
    assert (texts["help"].text, texts["help"].segments) == (long.help_text, 2)
    assert texts["opt_out_confirmation"] == before["opt_out_confirmation"]
    await engine.reply_settings.update(workspace.id, ReplySettingsUpdate(help_text="", help_when_opted_out=True))
    assert {text.purpose: text for text in await engine.reply_settings.effective_texts(workspace.id)} == before
    assert (await engine.reply_settings.get(workspace.id)).help_when_opted_out
    assert {text.purpose: text for text in await engine.reply_settings.effective_texts(other.id)} == before
    actions = [entry.action for entry in await engine.audit.list(workspace.id)]
    assert actions.count("reply_settings.update") == 2


@pytest.mark.parametrize("text", ["x" * 321, " \n", "\x00", "\ud800"])
async def test_an_answer_that_could_not_be_sent_is_refused(engine: Outreach, workspace: Workspace, text: str) -> None:
    """Too long, blank, or not storable everywhere; nothing was changed."""
    for name in ("stop_text", "start_text", "help_text"):
        fields: dict[str, Any] = {"enabled": False, name: text}
        with pytest.raises(InvalidRequest) as refusal:
            await engine.reply_settings.update(workspace.id, ReplySettingsUpdate(**fields))
        assert [detail.path for detail in refusal.value.details] == [name]
    assert (await engine.reply_settings.get(workspace.id)).enabled
    with pytest.raises(NotFound):
        await engine.reply_settings.update(workspace.id.replace("0", "1"), ReplySettingsUpdate(enabled=False))
