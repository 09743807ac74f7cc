from __future__ import annotations

from decimal import Decimal
from typing import Any

import attrs
import pytest

from outreach import Conflict, InvalidRequest, NotFound, Outreach
from outreach.models import CallVerdict, Counters, NewFollowUp
from outreach.models.call import MAX_TRANSCRIPT, Call
from outreach.models.campaign import Campaign
from outreach.models.states import IN_FLIGHT_RECIPIENT_STATUSES, CallStatus, RecipientStatus
from outreach.testing.builders import new_id
from outreach.testing.scripted import ScriptedVoice
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import BUSY, DECLINED, NEGATIVE, POSITIVE, VOICEMAIL, calling, calls_of, hear
from tests.engine.conftest import OpenStorage
from tests.engine.rig import Rig, people, reaches, until

pytestmark = pytest.mark.virtual_time

ANSWERED: dict[str, Any] = {"status": CallStatus.COMPLETED, "answered_by": "human", "summary": "They talked."}
CALLBACK: dict[str, Any] = {**ANSWERED, "outcome": "callback"}


async def judged(
    rig: Rig, campaign: Campaign, verdict: CallVerdict, **more: Any
) -> tuple[Call, Counters, tuple[RecipientStatus, str | None]]:
    """Return the call, the counters and the contact's result after a verdict on the first contact's last call."""
    call = (await calls_of(rig, campaign))[-1]
    after = await rig.engine.calls.set_outcome(campaign.workspace_id, call.id, verdict, **more)
    assert after == await rig.engine.calls.get(campaign.workspace_id, call.id)
    found = await rig.engine.campaigns.get(campaign.workspace_id, campaign.id)
    recount = await rig.storage.read(lambda tx: tx.recipients.recount(campaign.workspace_id, campaign.id))
    assert found.counters == recount
    person = (await people(rig.engine, campaign))[0]
    return after, found.counters, (person.status, person.reason)


@pytest.mark.parametrize("known", [ANSWERED, NEGATIVE, POSITIVE, CALLBACK])
@pytest.mark.parametrize("verdict", ["positive", "negative", "callback", "voicemail"])
async def test_a_verdict_that_comes_later_counts_in_a_campaign_that_has_ended(
    open_storage: OpenStorage, known: dict[str, Any], verdict: CallVerdict
) -> None:
    """It takes the place of none, and of the provider's; the counters equal a recount.

    docs/delivery-contract.md#rule-9.
    """
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice) as (rig, campaign):
        await voice.wait_for_requests(1)
        hear(voice, voice.requests[0], **known)
        done = await reaches(rig.engine, campaign, "completed")
        call, counters, result = await judged(rig, campaign, verdict, summary="Heard again.")
        assert (call.outcome, call.summary, call.judged_at is not None) == (verdict, "Heard again.", True)
        assert counters == Counters(total=1, completed=1, successful=int(verdict == "positive"))
        assert result == (RecipientStatus.COMPLETED, None if verdict == "positive" else verdict)
        report = await rig.engine.campaigns.report(campaign.workspace_id, campaign.id)
        assert report.calls is not None
        assert report.calls.outcomes == {verdict: 1}
        assert (await rig.engine.campaigns.get(campaign.workspace_id, campaign.id)).completed_at == done.completed_at
        assert len(voice.requests) == 1


async def test_a_verdict_is_final(open_storage: OpenStorage) -> None:
    """Said again it changes the summary alone; another one, and a later report of the provider, do not count."""
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice) as (rig, campaign):
        await voice.wait_for_requests(1)
        hear(voice, voice.requests[0], **{**ANSWERED, "summary": None})
        await reaches(rig.engine, campaign, "completed")
        first, *_ = await judged(rig, campaign, "negative")
        again, *_ = await judged(rig, campaign, "negative")
        assert again == first
        with pytest.raises(Conflict, match="final"):
            await judged(rig, campaign, "positive")
        hear(voice, voice.requests[0], **POSITIVE)
        await until(lambda: calls_of(rig, campaign), lambda found: found[0].summary is not None)
        [call] = await calls_of(rig, campaign)
        assert (call.outcome, call.judged_at) == ("negative", first.judged_at)
        for summary in ("Other words.", None):
            told, *_ = await judged(rig, campaign, "negative", summary=summary)
            assert told == attrs.evolve(call, summary="Other words.")
        entries = await rig.engine.audit.list(campaign.workspace_id)
        assert [one.subject for one in entries if one.action == "call.set_outcome"] == [call.id]


@pytest.mark.parametrize(("ending", "why"), [(BUSY, "busy"), (DECLINED, "final"), (None, "not ended")])
async def test_a_call_that_has_its_result_or_is_under_way_takes_no_verdict(
    open_storage: OpenStorage, ending: dict[str, Any] | None, why: str
) -> None:
    """A retry may follow from it: nothing is changed."""
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice, attempts=1) as (rig, campaign):
        await voice.wait_for_requests(1)
        if ending is not None:
            hear(voice, voice.requests[0], **ending)
            await reaches(rig.engine, campaign, "completed")
        before = await calls_of(rig, campaign)
        with pytest.raises(Conflict, match=why):
            await judged(rig, campaign, "positive")
        if ending is not None:
            assert await calls_of(rig, campaign) == before


@pytest.mark.parametrize("verdict", ["positive", "negative", "callback", "voicemail"])
@pytest.mark.parametrize("situation", ["waits", "failed", "has_message", "canceled"])
async def test_a_person_behind_a_machines_answer_is_not_called_again(
    open_storage: OpenStorage, situation: str, verdict: CallVerdict
) -> None:
    """Wherever its contact stands: one that waits for its retry ends. A verdict that agrees changes nothing else.

    docs/delivery-contract.md#rule-9.
    """
    voice = ScriptedVoice(look_up="none")
    ending = {**VOICEMAIL, "message_left": situation == "has_message"}
    attempts = 2 if situation in {"waits", "canceled"} else 1
    async with calling(open_storage(clock_of_loop()), 1, voice=voice, attempts=attempts, minutes=1) as (rig, campaign):
        await voice.wait_for_requests(1)
        hear(voice, voice.requests[0], **ending)

        async def heard() -> bool:
            under_way = {RecipientStatus.PENDING, *IN_FLIGHT_RECIPIENT_STATUSES}
            return (await people(rig.engine, campaign))[0].status not in under_way

        await until(heard)
        if situation == "canceled":
            await rig.engine.campaigns.cancel(campaign.workspace_id, campaign.id)
        if situation != "waits":
            await reaches(rig.engine, campaign, "cancelled" if situation == "canceled" else "completed")
        [before] = await people(rig.engine, campaign)
        if situation == "canceled":
            await until(lambda: people(rig.engine, campaign), lambda found: found[0].status is RecipientStatus.CANCELED)
            [before] = await people(rig.engine, campaign)
        call, counters, result = await judged(rig, campaign, verdict)
        assert (call.outcome, call.judged_at is not None) == (verdict, True)
        [after] = await people(rig.engine, campaign)
        if verdict == "voicemail":
            assert after == before
            return
        assert counters == Counters(total=1, completed=1, successful=int(verdict == "positive"))
        assert result == (RecipientStatus.COMPLETED, None if verdict == "positive" else verdict)
        assert (after.due_at, after.ended_at is not None) == (None, True)
        if situation == "waits":
            assert before.status is RecipientStatus.WAITING
            await reaches(rig.engine, campaign, "completed")
        story = await rig.engine.campaigns.recipient_history(campaign.workspace_id, campaign.id, 0)
        told = [(one.what, one.rule, one.state, one.reason) for one in story.steps]
        assert told[-2:] == [
            ("call_ended", "operator", "completed", verdict),
            ("ended", "operator", "completed", result[1]),
        ]
        assert len(voice.requests) == 1


async def test_a_person_who_has_opted_out_since_stays_so(open_storage: OpenStorage) -> None:
    """The call has its verdict; the contact's end says why it is not called again."""
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice, attempts=2, minutes=1) as (rig, campaign):
        await voice.wait_for_requests(1)
        hear(voice, voice.requests[0], **VOICEMAIL)
        await until(lambda: people(rig.engine, campaign), lambda found: found[0].status is RecipientStatus.WAITING)
        await rig.engine.unsubscribes.add(campaign.workspace_id, voice.requests[0].to)
        await reaches(rig.engine, campaign, "completed")
        call, _, result = await judged(rig, campaign, "positive")
        assert (call.outcome, result) == ("positive", (RecipientStatus.SKIPPED, "opted_out"))


async def test_a_contact_that_another_call_has_reached_keeps_the_result_of_that(open_storage: OpenStorage) -> None:
    """Only the latest call of a contact decides about it, as with reports."""
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice, attempts=2) as (rig, campaign):
        await voice.wait_for_requests(1)
        hear(voice, voice.requests[0], **VOICEMAIL)
        await voice.wait_for_requests(2)
        hear(voice, voice.requests[1], **POSITIVE)
        await reaches(rig.engine, campaign, "completed")
        first, _ = await calls_of(rig, campaign)
        open_again = attrs.evolve(first, outcome=None)
        await rig.storage.write(lambda tx: tx.calls.update(open_again))
        after = await rig.engine.calls.set_outcome(campaign.workspace_id, first.id, "negative")
        assert after.outcome == "negative"
        [person] = await people(rig.engine, campaign)
        assert (person.status, person.reason, person.successful) == (RecipientStatus.COMPLETED, None, True)
        found = await rig.engine.campaigns.get(campaign.workspace_id, campaign.id)
        assert found.counters == Counters(total=1, completed=1, successful=1)


async def test_somebody_who_asks_for_a_call_is_followed_up(open_storage: OpenStorage) -> None:
    """The outcome `callback` is a result to choose, and such a contact does not count as reached."""
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 2, voice=voice) as (rig, campaign):
        await voice.wait_for_requests(2)
        hear(voice, voice.requests[0], **CALLBACK)
        hear(voice, voice.requests[1], **NEGATIVE)
        await reaches(rig.engine, campaign, "completed")
        made = await rig.engine.campaigns.follow_up(
            campaign.workspace_id, campaign.id, NewFollowUp(results=["callback"])
        )
        assert (made.selected, made.created.campaign.counters.total) == (1, 1)


async def test_what_is_no_verdict_is_refused(open_storage: OpenStorage) -> None:
    """An outcome of a call that nobody answered, too long a summary, and a call that is not there."""
    async with Outreach.open("memory://", dispatch=False) as engine:
        for given in ({"outcome": "busy"}, {"outcome": "positive", "summary": "x" * 4001}):
            with pytest.raises(InvalidRequest):
                await engine.calls.set_outcome(new_id(), new_id(), **given)  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await engine.calls.set_outcome(new_id(), new_id(), "positive")
        with pytest.raises(NotFound):
            await engine.calls.transcript(new_id(), new_id())


@pytest.mark.parametrize("backwards", [False, True])
async def test_the_longest_transcript_and_the_highest_cost_are_kept(open_storage: OpenStorage, backwards: bool) -> None:
    """Whichever event comes first; a part may have come with an early one. What is too long is cut."""
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice) as (rig, campaign):
        await voice.wait_for_requests(1)
        told: list[dict[str, Any]] = [
            {"transcript": "agent: Hello", "cost": Decimal("0.05"), "cost_currency": "USD"},
            {"transcript": "y" * (MAX_TRANSCRIPT + 1), "cost": Decimal("0.14"), "cost_currency": "USD"},
            {"cost": Decimal("NaN"), "cost_currency": "USD"},
            {"cost": Decimal("9.9")},
            {"cost": Decimal(7), "cost_currency": "EUR"},
        ]
        if backwards:
            told[:2] = told[1::-1]
        for one in told:
            hear(voice, voice.requests[0], **ANSWERED, **one)
        hear(voice, voice.requests[0], **POSITIVE)
        await reaches(rig.engine, campaign, "completed")
        await until(lambda: calls_of(rig, campaign), lambda found: found[0].outcome is not None)
        [call] = await calls_of(rig, campaign)
        assert (call.cost, call.cost_currency) == (Decimal("0.14"), "USD")
        assert await rig.engine.calls.transcript(campaign.workspace_id, call.id) == "y" * MAX_TRANSCRIPT
