"""Adapters that raise or answer what an adapter never should: it concerns their own request alone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from outreach import Campaign, Outreach, WorkspaceMode
from outreach.core.vault import Vault
from outreach.ledger.settling import ledger
from outreach.models.call import CallOutcome
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, DispatchState, RecipientStatus
from outreach.protocols import AccountCheck, Connection
from outreach.protocols.carrier import LookupRequest, OutboundMessage, ReportSink
from outreach.providers.http.request_gate import Aborted, call_plugin
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, accept, drop
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import CALLS, calling, calls_of, start_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import (
    QUICK,
    contacts,
    dispatching,
    given_workspace,
    people,
    reaches,
    reported,
    sending,
    start_campaign,
    until,
)
from tests.fake_provider import CREDENTIALS
from tests.own_adapter import OwnAdapter

pytestmark = pytest.mark.virtual_time

TO = contacts(3)[1].phone_number


class _Abort(BaseException):
    """An error that is no `Exception`, as some libraries use for their timeouts."""


async def a_cancelled_task() -> None:
    """Await what the requests of an adapter share, such as a token, after another one has cancelled it."""
    shared = asyncio.get_running_loop().create_future()
    shared.cancel()
    await shared


async def an_abort() -> None:
    """Raise one."""
    raise _Abort


async def a_closed_generator() -> None:
    """Raise what Python raises where a generator or a coroutine is closed."""
    raise GeneratorExit


async def an_exit() -> None:
    """Leave, as a program does."""
    sys.exit(3)


async def a_group() -> None:
    """Raise one as task groups do."""
    raise BaseExceptionGroup("unhandled errors in a TaskGroup", [_Abort()])


class OddCarrier(ScriptedCarrier):
    """Does something odd as it is asked for one number."""

    def __init__(self, odd: Callable[[], Awaitable[None]], **options: Any) -> None:
        super().__init__(**options)
        self._odd = odd

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Send, and be odd."""
        outcome = await super().send(message)
        if message.to == TO:
            await self._odd()
        return outcome


@pytest.mark.parametrize("odd", [a_cancelled_task, an_abort, a_closed_generator, an_exit, a_group])
async def test_what_is_no_error_of_a_request_ends_that_request_alone(
    open_storage: OpenStorage, odd: Callable[[], Awaitable[None]]
) -> None:
    """A task group takes a cancellation for its own: all other requests would end with it, and none begin any more."""
    carrier = OddCarrier(odd)
    async with sending(open_storage(clock_of_loop()), 3, carrier=carrier) as (rig, campaign):

        async def all_asked() -> bool:
            return {one.status for one in await people(rig.engine, campaign)} == {
                RecipientStatus.COMPLETED,
                RecipientStatus.UNKNOWN,
            }

        await until(all_asked)
        assert [one.status for one in await people(rig.engine, campaign)] == [
            RecipientStatus.COMPLETED,
            RecipientStatus.UNKNOWN,
            RecipientStatus.COMPLETED,
        ]
        (dispatch,) = await rig.engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, 1)
        assert (dispatch.state, dispatch.reason) == (DispatchState.UNKNOWN, "adapter_error")
        assert rig.engine.health().dispatching


class OddLookUps(ScriptedCarrier):
    """Awaits a task that was cancelled as it is asked what became of one number."""

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Be odd, or look it up."""
        if lookup.to == TO:
            await a_cancelled_task()
        return await super().look_up(lookup)


async def test_a_look_up_that_is_cancelled_ends_no_others(open_storage: OpenStorage) -> None:
    """The others of its round are settled by it."""
    carrier = OddLookUps(then=drop(), look_up="evidence")
    config = attrs.evolve(QUICK, reconcile_delay_seconds=1.0, reconcile_interval_seconds=1.0)
    async with sending(open_storage(clock_of_loop()), 3, carrier=carrier, config=config) as (rig, campaign):

        async def others_settled() -> bool:
            return [one.status for one in await people(rig.engine, campaign)] == [
                RecipientStatus.COMPLETED,
                RecipientStatus.UNKNOWN,
                RecipientStatus.COMPLETED,
            ]

        await until(others_settled)


class OddListener(ScriptedCarrier):
    """Awaits a task that was cancelled as it is listened to for the first time."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.listened = 0

    async def listen(self, sink: ReportSink) -> None:
        """Be odd, or tell what comes."""
        self.listened += 1
        if self.listened == 1:
            await a_cancelled_task()
        await super().listen(sink)


async def test_a_source_that_is_cancelled_is_listened_to_again(open_storage: OpenStorage) -> None:
    """The dispatcher would otherwise end with it, and nothing would report that."""
    carrier = OddListener(then=accept().delivered())
    async with sending(open_storage(clock_of_loop()), 2, carrier=carrier) as (rig, campaign):
        await reaches(rig.engine, campaign, "completed")

        async def delivered() -> bool:
            (found,) = await rig.engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, 0)
            return found.report == "delivered"

        await until(delivered)


class OddVoice(ScriptedVoice):
    """Answers no report as it is asked for a call's status."""

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return the JSON of its provider."""
        answer: Any = {"status": "completed"}
        return answer


async def test_a_status_that_is_no_report_lets_no_call_stay_open(open_storage: OpenStorage) -> None:
    """It ends by its silence, as where the provider cannot be asked."""
    config = attrs.evolve(CALLS, call_timeout_seconds=5.0)
    async with calling(open_storage(clock_of_loop()), 1, voice=OddVoice(), config=config) as (rig, campaign):

        async def over() -> bool:
            calls = await calls_of(rig, campaign)
            return bool(calls) and not calls[0].is_open

        await until(over)
        (call,) = await calls_of(rig, campaign)
        assert call.status is CallStatus.UNCONFIRMED


class Words(ScriptedCarrier):
    """Answers with words in the place of states, as somebody without a type checker may."""

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Accept it."""
        outcome = await super().send(message)
        state: Any = "accepted"
        return attrs.evolve(outcome, state=state)


async def test_words_count_as_the_states_that_they_are(open_storage: OpenStorage) -> None:
    """The carrier's word that somebody has opted out would be passed over."""
    carrier = Words()
    async with sending(open_storage(clock_of_loop()), 1, carrier=carrier) as (rig, campaign):
        await reaches(rig.engine, campaign, "completed")
        (message,) = carrier.requests
        status: Any = "failed"
        carrier.report(reported(message, status, reason="opted_out"))

        async def opted_out() -> bool:
            return [one.phone async for one in rig.engine.unsubscribes.iter_all(campaign.workspace_id)] == [message.to]

        await until(opted_out)
        (dispatch,) = await rig.engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, 0)
        assert dispatch.reason == "opted_out"


class OneIdentifier(ScriptedCarrier):
    """Answers each request with the identifier of the first, as where something in between mixes answers up."""

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Accept it, as it seems."""
        return attrs.evolve(await super().send(message), provider_id="SM-of-the-first")


async def test_an_acceptance_with_the_identifier_of_another_request_is_unknown(open_storage: OpenStorage) -> None:
    """It is the answer to that one: nobody can tell what became of this one; and so much trouble pauses a campaign."""
    async with sending(open_storage(clock_of_loop()), 20, carrier=OneIdentifier()) as (rig, campaign):
        paused = await reaches(rig.engine, campaign, "paused")
        assert paused.pause_reason == "error_budget"
        found = [
            one
            for position in range(20)
            for one in await rig.engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, position)
        ]
        accepted = [one for one in found if one.state is DispatchState.ACCEPTED]
        assert [one.provider_id for one in accepted] == ["SM-of-the-first"]
        doubtful = [one for one in found if one.state is DispatchState.UNKNOWN]
        assert {(one.reason, one.provider_id) for one in doubtful} == {("repeated_id", None)}
        assert len(doubtful) >= 5
        assert accepted[0].id in (doubtful[0].error_message or "")


async def test_an_acceptance_with_the_identifier_of_another_workspace_s_request_is_unknown(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of that one is shown; an adapter of one's own may number by account, and is believed."""
    async with dispatching(open_storage(clock_of_loop()), carrier=OneIdentifier()) as rig:
        made: list[Dispatch] = []
        for _ in range(2):
            workspace = await given_workspace(rig.engine)
            campaign = await start_campaign(rig.engine, workspace, 1)

            async def settled(campaign: Campaign = campaign) -> bool:
                found = await rig.engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, 0)
                return any(one.state is not DispatchState.DISPATCHING for one in found)

            await until(settled)
            made += await rig.engine.campaigns.list_dispatches(workspace.id, campaign.id, 0)
        first, second = made
        assert (first.state, first.provider_id) == (DispatchState.ACCEPTED, "SM-of-the-first")
        assert (second.state, second.reason, second.provider_id) == (DispatchState.UNKNOWN, "repeated_id", None)
        assert second.error_message == "The answer named SM-of-the-first, the identifier of another request."
        answer = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id="SM-of-the-first")

        same = attrs.evolve(second, workspace_id=first.workspace_id)
        monkeypatch.setattr(ledger, "PROVIDERS", {})
        believed, repeated = await rig.storage.read(
            lambda tx: [ledger.believable(tx, one, answer) for one in (second, same)]
        )
        assert believed == answer
        assert (repeated.state, repeated.reason) == (DispatchState.UNKNOWN, "repeated_id")


class OddAnalyser:
    """Raises what is no error as a call has ended."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Be odd."""
        raise self._error


@pytest.mark.parametrize("error", [GeneratorExit, SystemExit])
async def test_an_analyser_that_raises_what_is_no_error_leaves_the_outcome_open(
    open_storage: OpenStorage, error: type[BaseException]
) -> None:
    """The call has ended all the same, and dispatching goes on."""
    clock = clock_of_loop()
    async with Outreach(
        open_storage(clock), clock=clock, config=CALLS, analyser=OddAnalyser(error), dispatch=True
    ) as engine:
        workspace = await given_workspace(engine)
        await start_calls(engine, workspace, 3)

        async def over() -> bool:
            calls = (await engine.calls.list(workspace.id)).items
            return len(calls) == 3 and not any(call.is_open for call in calls)

        await until(over)
        assert {call.outcome for call in (await engine.calls.list(workspace.id)).items} == {None}
        assert engine.health().dispatching


class OddConnect(OwnAdapter):
    """Raises what is no error as an account is opened."""

    def connect(self, connection: Connection) -> ScriptedCarrier:
        """Be odd."""
        raise GeneratorExit


async def test_an_adapter_that_cannot_open_its_account_stops_its_own_requests_alone(open_storage: OpenStorage) -> None:
    """Other workspaces are served by the same dispatcher."""
    clock = clock_of_loop()
    async with Outreach(
        open_storage(clock),
        clock=clock,
        config=QUICK,
        adapters=[OddConnect()],
        vault=Vault(keys="A" * 43 + "="),
        dispatch=True,
    ) as engine:
        odd = await given_workspace(engine, mode=WorkspaceMode.LIVE, contact_hours=False)
        await engine.accounts.connect(odd.id, "mycarrier", CREDENTIALS)
        asking = await start_campaign(engine, odd, 1, carrier="mycarrier")

        async def not_asked() -> bool:
            found = await engine.campaigns.list_dispatches(odd.id, asking.id, 0)
            return "not_asked" in {one.reason for one in found}

        await until(not_asked)
        workspace = await given_workspace(engine)
        campaign = await start_campaign(engine, workspace, 3)
        await reaches(engine, campaign, "completed")
        assert engine.health().dispatching


async def test_a_coroutine_that_is_closed_ends_as_python_closes_it() -> None:
    """The `GeneratorExit` of its own end is no error of the code that it awaits."""
    ended = []

    async def waiting() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(True)

    coroutine = call_plugin(waiting())
    coroutine.send(None)
    # As the garbage collector does, outside of the task that awaited it.
    await asyncio.to_thread(coroutine.close)
    assert ended == [True]


class OddCheck(OwnAdapter):
    """Awaits a task that was cancelled as one account is to be checked."""

    async def check(self, connection: Connection) -> AccountCheck:
        """Be odd, or check it."""
        if connection.credentials["token"] != CREDENTIALS["token"]:
            await a_cancelled_task()
        return await super().check(connection)


async def test_a_check_that_is_cancelled_is_an_error_of_the_adapter(open_storage: OpenStorage) -> None:
    """The caller itself was not cancelled. The doctor still looks at the other accounts."""
    async with Outreach(
        open_storage(clock_of_loop()), clock=clock_of_loop(), adapters=[OddCheck()], vault=Vault(keys="A" * 43 + "=")
    ) as engine:
        first, second = [await given_workspace(engine, mode=WorkspaceMode.LIVE) for _ in range(2)]
        odd = await engine.accounts.connect(first.id, "mycarrier", {**CREDENTIALS, "token": "another"})
        await engine.accounts.connect(second.id, "mycarrier", CREDENTIALS)
        with pytest.raises(Aborted, match="CancelledError"):
            await engine.accounts.check(first.id, odd.id)
        found = [one for one in (await engine.diagnose()).findings if one.code == "check_failed"]
        assert [one.path for one in found] == [f"account {odd.id}"]
