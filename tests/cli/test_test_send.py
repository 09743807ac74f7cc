from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio.lowlevel
import attrs
import pytest
from click.testing import Result

from outreach import Call, CallStatus, Message, MessageStatus
from outreach.services.messaging.calls import Calls
from outreach.services.messaging.messages import Messages
from outreach.testing.builders import make_call, make_message
from outreach_server.cli.campaigns.verdicts import ENDED, pending_text, succeeded
from tests.cli.conftest import Cli

TO = ("--to", "+14155550101")


@pytest.mark.parametrize("status", list(MessageStatus))
def test_a_message_has_succeeded_once_the_carrier_has_taken_it(status: MessageStatus) -> None:
    """What nobody knows is no success."""
    taken = {MessageStatus.ACCEPTED, MessageStatus.SENT, MessageStatus.DELIVERED}
    assert succeeded(make_message(status=status)) is (status in taken)


@pytest.mark.parametrize(
    ("changes", "answered"),
    [
        ({"status": CallStatus.COMPLETED, "outcome": "positive", "answered_by": "human"}, True),
        ({"status": CallStatus.COMPLETED, "outcome": "negative", "answered_by": "human"}, True),
        ({"status": CallStatus.COMPLETED}, True),
        ({"status": CallStatus.IN_PROGRESS}, True),
        ({"status": CallStatus.COMPLETED, "outcome": "voicemail", "answered_by": "machine"}, False),
        ({"status": CallStatus.COMPLETED, "answered_by": "machine"}, False),
        *(
            ({"status": status}, False)
            for status in CallStatus
            if status not in {CallStatus.COMPLETED, CallStatus.IN_PROGRESS}
        ),
    ],
)
def test_a_call_has_succeeded_when_somebody_answered(changes: Any, answered: bool) -> None:
    """Busy, no answer, a mailbox and an unknown end are none."""
    assert succeeded(make_call(**changes)) is answered


def test_what_is_not_known_is_said_in_words() -> None:
    """Of what has not ended and has been taken by somebody."""
    said = {status: pending_text(make_call(status=status)) for status in CallStatus}
    assert {status for status, text in said.items() if text} == set(CallStatus) - ENDED - {"queued", "dispatching"}
    said_of_messages = {status: pending_text(make_message(status=status)) for status in MessageStatus}
    assert {status for status, text in said_of_messages.items() if text} == {"accepted", "sent", "unknown"}


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that says how a message or call is found, look after look; the last one stays."""

    def become(*changes: dict[str, Any]) -> None:
        looks = list(changes)

        async def get(self: object, workspace_id: str, identifier: str) -> Message | Call:
            found = looks.pop(0) if len(looks) > 1 else looks[0]
            make = make_call if isinstance(self, Calls) else make_message
            return attrs.evolve(make(), id=identifier, workspace_id=workspace_id, **found)

        async def soon(_: float) -> None:
            await anyio.lowlevel.checkpoint()

        monkeypatch.setattr(Calls, "get", get)
        monkeypatch.setattr(Messages, "get", get)
        monkeypatch.setattr("outreach_server.cli.campaigns.test_send.anyio.sleep", soon)

    return become


def call_myself(cli: Cli, workspace_id: str, wait: str = "5") -> Result:
    """Place a test call."""
    agent_id = cli.ask("agents", "create", workspace_id, "Ada")["id"]
    return cli.run("test-send", workspace_id, *TO, "--agent", agent_id, "--wait", wait, "--json")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (MessageStatus.DELIVERED, 0),
        (MessageStatus.ACCEPTED, 0),
        (MessageStatus.UNKNOWN, 1),
        (MessageStatus.DISPATCHING, 1),
        (MessageStatus.FAILED, 1),
    ],
)
def test_a_message_that_nobody_knows_of_is_no_success(
    cli: Cli, workspace_id: str, watched: Callable[..., None], status: MessageStatus, code: int
) -> None:
    """The exit status says so; a script that goes live by it is not let through by silence."""
    watched({"status": status})
    result = cli.run("test-send", workspace_id, *TO, "--wait", "0.5", "--json")
    assert (result.exit_code, json.loads(result.stdout)["status"]) == (code, status)


@pytest.mark.parametrize("status", [CallStatus.BUSY, CallStatus.NO_ANSWER, CallStatus.UNKNOWN, CallStatus.RINGING])
def test_a_call_that_nobody_answered_is_no_success(
    cli: Cli, workspace_id: str, watched: Callable[..., None], status: CallStatus
) -> None:
    """Whatever the reason."""
    watched({"status": status})
    assert call_myself(cli, workspace_id, "0.5").exit_code == 1


def test_what_the_provider_makes_of_a_call_is_waited_for(
    cli: Cli, workspace_id: str, watched: Callable[..., None]
) -> None:
    """That a mailbox answered is told after the end of the call."""
    over: dict[str, Any] = {"status": CallStatus.COMPLETED}
    watched({"status": CallStatus.RINGING}, over, over, {**over, "outcome": "voicemail", "answered_by": "machine"})
    result = call_myself(cli, workspace_id)
    assert (result.exit_code, json.loads(result.stdout)["outcome"]) == (1, "voicemail")
