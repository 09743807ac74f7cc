from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from outreach import NewMessage, NewWorkspace, Outreach
from outreach.core.clock import SystemClock
from outreach.errors import InvalidRequest
from outreach.models.reports import MessageReport, Report
from outreach.models.states import DispatchState, MessageStatus
from outreach.protocols.carrier import OutboundMessage
from outreach.providers.http.sending import send_once
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.builders import NOW, WORKSPACE_ID, new_id
from outreach.testing.scripted import (
    ScriptedCarrier,
    Step,
    accept,
    drop,
    fail,
    not_sent,
    refuse,
)
from outreach.testing.waiting import until

pytestmark = pytest.mark.anyio


def _message(to: str = "+14155550100") -> OutboundMessage:
    return OutboundMessage(
        dispatch_id=new_id(), workspace_id=WORKSPACE_ID, from_number=None, to=to, body="x", not_after=None
    )


async def test_steps_are_taken_in_their_order_and_then_it_accepts() -> None:
    """A plan that has run out accepts."""
    carrier = ScriptedCarrier([refuse("temporary"), accept("mine")])
    outcomes = [await carrier.send(_message()) for _ in range(3)]
    assert [(one.state, one.provider_id) for one in outcomes[:2]] == [
        (DispatchState.REFUSED, None),
        (DispatchState.ACCEPTED, "mine"),
    ]
    assert outcomes[2].state is DispatchState.ACCEPTED
    assert (outcomes[2].provider_id or "").startswith("scripted-3-")


async def test_it_names_the_contact_asked_for_and_the_person_reached() -> None:
    """A request that was refused reached nobody; one whose answer was lost may have, and counts."""
    carrier = ScriptedCarrier([refuse(), drop(), fail()])
    messages = [_message() for _ in range(3)]
    for message in messages[:2]:
        await carrier.send(message)
    with pytest.raises(RuntimeError):
        await carrier.send(messages[2])
    assert (carrier.requests, carrier.reached) == (messages, messages[1:])


@pytest.mark.parametrize(
    ("step", "error"), [(not_sent(), httpx.ConnectError("Refused.")), (drop(), httpx.ReadError("Reset."))]
)
async def test_a_failed_request_has_the_reason_of_the_adapters(step: Step, error: httpx.HTTPError) -> None:
    """A test sees the reason that a real provider's adapter gives."""

    def broken(_: httpx.Request) -> httpx.Response:
        raise error

    def read(_: httpx.Response) -> Any:
        raise AssertionError

    async with httpx.AsyncClient(transport=httpx.MockTransport(broken)) as http:
        outcome = await send_once(http, http.build_request("POST", "https://example.com"), read, clock=SystemClock())
    assert step.outcome is not None
    assert (step.outcome.state, step.outcome.reason) == (outcome.state, outcome.reason)


async def test_a_reason_that_is_no_failure_class_is_refused() -> None:
    """A mistyped one would not be retried, or not end the contact, as the test expects."""
    wrong: Any = "invalid_nubmer"
    with pytest.raises(InvalidRequest, match="did you mean invalid_number"):
        refuse(wrong)
    with pytest.raises(InvalidRequest, match="reason"):
        accept().undelivered(wrong)


async def test_what_goes_wrong_in_a_script_is_logged_in_full(caplog: pytest.LogCaptureFixture) -> None:
    """With the hint of what to set, outside the plugin too; numbers and quotes of a test are no secret."""

    def choose(message: OutboundMessage) -> Step:
        if message.body.startswith("Odd"):
            raise LookupError(f"no step for 'odd' {message.to}")
        return accept().replied("STOP", after_seconds=0)

    async def logged() -> bool:
        return "no step" in caplog.text and "on_reply" in caplog.text

    carrier = ScriptedCarrier(choose)
    async with Outreach(MemoryStorage(clock=SystemClock()), dispatch=True, sandbox_carrier=carrier) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        for body in ("Hello", "Odd"):
            await engine.messages.send(workspace.id, NewMessage(to="+14155550102", body=body))
        await until(logged)
    assert "set ScriptedCarrier.on_reply" in caplog.text
    assert "no step for 'odd' +14155550102" in caplog.text


async def test_a_function_chooses_by_the_request() -> None:
    """A plan may be a function of the message."""
    carrier = ScriptedCarrier(lambda message: refuse() if message.to.endswith("1") else accept())
    states = [(await carrier.send(_message(to))).state for to in ("+14155550101", "+14155550102")]
    assert states == [DispatchState.REFUSED, DispatchState.ACCEPTED]


async def test_waiting_for_requests_ends_when_they_have_come_or_with_the_timeout() -> None:
    """A test waits for a condition, never for a while."""
    carrier = ScriptedCarrier()
    with pytest.raises(TimeoutError):
        await carrier.wait_for_requests(1, timeout_seconds=0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(carrier.wait_for_requests, 2)
        for _ in range(2):
            await carrier.send(_message())


async def test_reports_are_handed_in_whether_they_came_before_or_after_the_listener() -> None:
    """What is reported before anybody listens is not lost."""
    carrier = ScriptedCarrier()
    heard: list[Report] = []
    done = anyio.Event()

    async def sink(report: Report) -> None:
        heard.append(report)
        if len(heard) == 2:
            done.set()

    event = MessageReport(
        workspace_id=WORKSPACE_ID,
        provider="scripted",
        dispatch_id=new_id(),
        provider_id=None,
        status=MessageStatus.SENT,
        at=NOW,
    )
    carrier.report(event)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(carrier.listen, sink)
        await anyio.lowlevel.checkpoint()
        carrier.report(event)
        with anyio.fail_after(30):
            await done.wait()
        tasks.cancel_scope.cancel()
    assert heard == [event, event]
