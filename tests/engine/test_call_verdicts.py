from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any, Final

import attrs
import pytest

from outreach.models import Counters
from outreach.models.call import CallOutcome
from outreach.models.dispatch import FailureClass
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, RecipientStatus
from outreach.models.work import WorkUnit
from outreach.protocols.voice import CallRequest
from outreach.testing.scripted import ScriptedVoice
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import (
    CALLS,
    calling,
    calls_of,
    dispatches_of,
    ends,
    event,
    given_calls,
    hear,
    start_calls,
)
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_workspace, people, reaches, until

pytestmark = pytest.mark.virtual_time

ENDED: Final[dict[str, Any]] = {"status": CallStatus.COMPLETED, "answered_by": "human"}
JUDGED: Final[dict[str, Any]] = {**ENDED, "outcome": "positive", "summary": "Will come."}
UNHAPPY: Final[dict[str, Any]] = {**ENDED, "outcome": "negative"}


@pytest.mark.parametrize("order", list(itertools.permutations([ENDED, JUDGED, JUDGED])))
async def test_a_verdict_counts_whether_it_comes_with_the_end_or_after_it(
    open_storage: OpenStorage, order: tuple[dict[str, Any], ...]
) -> None:
    """An analysis that takes its time is filled in, and the counters follow.

    docs/delivery-contract.md#rule-8 and #rule-9.
    """
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice) as (rig, campaign):
        await voice.wait_for_requests(1)
        for ending in order:
            hear(voice, voice.requests[0], **ending)
        await until(lambda: calls_of(rig, campaign), lambda found: found[0].summary is not None)
        done = await reaches(rig.engine, campaign, "completed")
        call = (await calls_of(rig, campaign))[0]
        assert (call.outcome, call.answered_by, call.summary) == ("positive", "human", "Will come.")
        assert done.counters == Counters(total=1, completed=1, successful=1)
        person = (await people(rig.engine, campaign))[0]
        assert (person.status, person.reason) == (RecipientStatus.COMPLETED, None)


async def test_a_verdict_that_is_known_is_not_changed_by_a_later_one(open_storage: OpenStorage) -> None:
    """The first verdict stands; a second one, and one of another kind of end, change nothing."""
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice) as (rig, campaign):
        await voice.wait_for_requests(1)
        request = voice.requests[0]
        hear(voice, request, **ENDED)
        hear(voice, request, **UNHAPPY)
        hear(voice, request, **JUDGED)
        hear(voice, request, status=CallStatus.BUSY, answered_by="machine", summary="Late.")
        await until(lambda: calls_of(rig, campaign), lambda found: found[0].summary is not None)
        call = (await calls_of(rig, campaign))[0]
        assert (call.status, call.outcome, call.summary) == (CallStatus.COMPLETED, "negative", "Will come.")
        person = (await people(rig.engine, campaign))[0]
        assert (person.status, person.reason, person.successful) == (RecipientStatus.COMPLETED, "negative", False)


@pytest.mark.parametrize(
    ("reason", "answers", "calls", "left"),
    [
        ("temporary", False, 2, "temporary"),
        ("rate_limited", True, 1, "failed"),
        ("temporary", True, 1, "failed"),
        ("invalid_number", False, 1, "invalid_number"),
        ("provider_error", True, 1, "provider_error"),
        (None, False, 1, "failed"),
    ],
)
async def test_a_call_that_failed_is_made_again_only_when_it_reached_nobody_and_that_may_pass(
    open_storage: OpenStorage, reason: FailureClass | None, answers: bool, calls: int, left: str
) -> None:
    """Another call only after one that provably reached nobody, out of the one budget.

    docs/delivery-contract.md#rule-2.
    """
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice, attempts=2) as (rig, campaign):
        for number in range(calls):
            await voice.wait_for_requests(number + 1)
            if answers:
                hear(voice, voice.requests[number], status=CallStatus.IN_PROGRESS)
            hear(voice, voice.requests[number], status=CallStatus.FAILED, error="It broke.", reason=reason)
        await reaches(rig.engine, campaign, "completed")
        assert len(voice.requests) == calls
        person = (await people(rig.engine, campaign))[0]
        assert (person.status, person.reason) == (RecipientStatus.FAILED, left)
        assert [one.reason for one in await dispatches_of(rig, campaign)] == [reason] * calls


async def test_calls_that_break_at_the_provider_spend_the_error_budget(open_storage: OpenStorage) -> None:
    """docs/rules.md#error-budget: provider-class failures count, also those that are told after the acceptance."""
    voice = ScriptedVoice(look_up="none")

    def breaks(request: CallRequest, count: int) -> dict[str, Any]:
        return {"status": CallStatus.FAILED, "error": "It broke.", "reason": "provider_error"}

    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        ends(voice, breaks)
        workspace = await given_workspace(rig.engine)
        campaign = await start_calls(rig.engine, workspace, 12, batch_concurrency=1)
        paused = await reaches(rig.engine, campaign, "paused")
        assert paused.pause_reason == "error_budget"
        assert len(voice.requests) < 12


async def test_a_call_that_ended_for_lack_of_credit_pauses_every_campaign_of_the_account(
    open_storage: OpenStorage,
) -> None:
    """docs/rules.md#error-budget: funds pause every campaign of the account, whenever the provider says it."""
    voice = ScriptedVoice(look_up="none")
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_calls(rig.engine, workspace, 2, batch_concurrency=1)
        other = await given_calls(rig.engine, workspace, 2, batch_concurrency=1)
        for one in (campaign, other):
            await rig.engine.campaigns.start(workspace.id, one.id)
        await voice.wait_for_requests(2)
        voice.report(event(voice.requests[0], CallStatus.FAILED, error="No credit.", reason="provider_funds"))
        for one in (campaign, other):
            assert (await reaches(rig.engine, one, "paused")).pause_reason == "provider_funds"
        # Rule 2 of the contract: it was placed, and nobody can prove that it reached no one.
        everybody = [*await people(rig.engine, campaign), *await people(rig.engine, other)]
        ended = [(one.status, one.reason) for one in everybody if not one.is_open]
        assert ended == [(RecipientStatus.FAILED, "provider_funds")]


class _FailsAtFirst:
    """An analyser that raises for so many calls, with the number in its words, and then finds them positive."""

    def __init__(self, failures: int) -> None:
        self._failures = failures

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Fail, or tell."""
        self._failures -= 1
        if self._failures >= 0:
            raise LookupError("Nothing is known of +14155550000.")
        return "positive"


async def test_a_call_ends_also_where_its_summary_cannot_be_stored(open_storage: OpenStorage) -> None:
    """A provider that cuts texts cuts emoji too; refused, its report would come again for ever."""
    voice = ScriptedVoice(look_up="none")
    async with calling(open_storage(clock_of_loop()), 1, voice=voice) as (rig, campaign):
        await voice.wait_for_requests(1)
        hear(voice, voice.requests[0], **{**JUDGED, "summary": "Bye \ud83d\x00"})
        assert (await reaches(rig.engine, campaign, "completed")).counters.successful == 1
        assert [one.summary for one in await calls_of(rig, campaign)] == ["Bye \ufffd\ufffd"]


class _Says:
    """An analyser that returns whatever it is made with."""

    def __init__(self, verdict: Any) -> None:
        self._verdict = verdict

    def outcome(self, _: CallReport) -> Any:
        """Return it."""
        return self._verdict


async def test_a_call_ends_also_where_the_analyser_fails(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can tell what came of it then; what later events tell is taken, and has the analyser asked again."""
    voice = ScriptedVoice(look_up="none")
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        rig.worker.analyser = _FailsAtFirst(2)
        workspace = await given_workspace(rig.engine)
        campaign = await start_calls(rig.engine, workspace, 1)
        await voice.wait_for_requests(1)
        hear(voice, voice.requests[0], **ENDED)
        done = await reaches(rig.engine, campaign, "completed")
        assert done.counters == Counters(total=1, completed=1)
        assert [(one.status, one.outcome) for one in await calls_of(rig, campaign)] == [(CallStatus.COMPLETED, None)]
        hear(voice, voice.requests[0], **JUDGED)
        await until(lambda: calls_of(rig, campaign), lambda found: found[0].summary == "Will come.")
        assert [one.outcome for one in await calls_of(rig, campaign)] == [None]
        hear(voice, voice.requests[0], **ENDED)
        await until(lambda: calls_of(rig, campaign), lambda found: found[0].outcome is not None)
        assert (await reaches(rig.engine, campaign, "completed")).counters.successful == 1
        failures = [one for one in caplog.records if getattr(one, "action", None) == "analyser_failed"]
        assert {one.getMessage() for one in failures} == {
            "The call analyser failed with LookupError: the outcome of a call stays open."
        }
        told = {name: getattr(failures[0], name, None) for name in ("dispatch_id", "workspace_id", "provider")}
        request = voice.requests[0]
        assert told == {"dispatch_id": request.dispatch_id, "workspace_id": workspace.id, "provider": "simulator"}
        assert "+14155550000" not in caplog.text


@pytest.mark.parametrize("verdict", ["marvellous +14155550000", "Positive", True, {"outcome": "positive"}])
async def test_a_verdict_that_is_no_outcome_is_not_stored(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture, verdict: Any
) -> None:
    """Those who read calls know the listed words alone; the log says of which type it was, not what."""
    voice = ScriptedVoice(look_up="none")
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        rig.worker.analyser = _Says(verdict)
        workspace = await given_workspace(rig.engine)
        campaign = await start_calls(rig.engine, workspace, 1)
        await voice.wait_for_requests(1)
        hear(voice, voice.requests[0], **ENDED)
        await reaches(rig.engine, campaign, "completed")
        assert [(one.status, one.outcome) for one in await calls_of(rig, campaign)] == [(CallStatus.COMPLETED, None)]
    (told,) = (one for one in caplog.records if getattr(one, "action", None) == "analyser_failed")
    assert told.getMessage() == (
        f"The call analyser returned a {type(verdict).__name__} that is no outcome: the outcome of a call stays open."
    )


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(seconds=0.5), timedelta(hours=1), timedelta(hours=-1)])
@pytest.mark.parametrize("word", ["verdict", "no_more", "nothing"])
async def test_a_verdict_of_which_no_event_comes_is_asked_for(
    open_storage: OpenStorage, word: str, ahead: timedelta
) -> None:
    """The event may be lost, or too large to be taken in; that somebody wants no more calls is in it alone.

    However far the provider's clock is ahead of ours.
    """
    voice = ScriptedVoice(look_up="none")
    asked = 0

    async def status(*, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        nonlocal asked
        asked += 1
        late: dict[str, Any] = {"verdict": JUDGED, "no_more": {**UNHAPPY, "do_not_call": True}}.get(word, ENDED)
        return event(voice.requests[0], at=clock_of_loop().now() + ahead, **(late if asked > 2 else ENDED))

    voice.status = status  # type: ignore[method-assign]
    config = attrs.evolve(CALLS, call_analysis_wait_seconds=1.0)
    async with calling(open_storage(clock_of_loop()), 1, voice=voice, config=config) as (rig, campaign):
        await reaches(rig.engine, campaign, "completed")

        async def over() -> bool:
            unit = WorkUnit("call", campaign.workspace_id, (await calls_of(rig, campaign))[0].id)
            work = await rig.storage.read(lambda tx: tx.work.get(unit))
            return work is None or work.due_at is None

        await until(over)
        call = (await calls_of(rig, campaign))[0]
        outcomes = {"verdict": "positive", "no_more": "negative", "nothing": None}
        assert call.outcome == outcomes[word]
        entries = [entry async for entry in rig.engine.unsubscribes.iter_all(campaign.workspace_id)]
        assert [entry.phone for entry in entries] == ([call.to] if word == "no_more" else [])
        # The end itself, and a few times more at the most.
        assert asked <= 6
