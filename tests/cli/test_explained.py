from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import attrs
import pytest

from outreach import Outreach
from outreach.models.campaign import Counters
from outreach.models.dispatch import FailureClass
from outreach.models.states import CallStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_call, make_dispatch, make_message
from tests.cli.conftest import Cli, Write

REFUSED: dict[str, Any] = {
    "state": DispatchState.REFUSED,
    "reason": "filtered",
    "error_code": "30034",
    "error_message": "US A2P 10DLC - Message from an Unregistered Number",
    "settled_at": NOW,
}


def write(cli: Cli, operation: Callable[[Transaction], object]) -> None:
    """Write into the database of a test what a server would have written."""

    async def run() -> None:
        async with Outreach.open(cli.database) as engine:
            await engine._storage.write(operation)

    anyio.run(run)


@pytest.fixture
def campaign_id(cli: Cli, workspace_id: str, csv_file: Write) -> str:
    """Return a campaign of three, of whom one failed at the carrier."""
    file = csv_file("phone\n+14155550101\n+14155550102\n+14155550103\n")
    made = cli.ask(
        "campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi", "--from", "+14155550100"
    )
    identifier: str = made["id"]

    def fail(tx: Transaction) -> None:
        recipient = tx.recipients.get(workspace_id, identifier, 1)
        assert recipient is not None
        failed = attrs.evolve(
            recipient, status=RecipientStatus.FAILED, reason="filtered", attempts=1, dispatched=True, ended_at=NOW
        )
        tx.recipients.put(workspace_id, failed)
        tx.campaigns.add_counters(workspace_id, identifier, Counters(pending=-1, completed=1, failed=1, open=-1))
        place: dict[str, Any] = {"workspace_id": workspace_id, "campaign_id": identifier, "position": 1}
        tx.dispatches.insert(make_dispatch(**place, to=recipient.phone, **REFUSED))

    write(cli, fail)
    return identifier


def is_explained(document: Any) -> None:
    """Check that a document tells the carrier's code and words, what they mean and what to do."""
    assert document["error_code"] == "30034"
    assert "not registered for A2P 10DLC" in document["meaning"]
    assert "Register the brand" in document["advice"]
    assert document["source"] == "https://www.twilio.com/docs/api/errors/30034"


def test_the_carriers_reason_is_shown_with_each_contact(cli: Cli, campaign_id: str) -> None:
    """Of one that failed; of the others there is nothing to tell."""
    first, failed, last = cli.ask("campaigns", "recipients", campaign_id)
    is_explained(failed)
    assert failed["error_message"] == REFUSED["error_message"]
    assert first["error_code"] is first["meaning"] is last["advice"] is None
    told = cli.tell("campaigns", "recipients", campaign_id, "--status", "failed")
    assert "30034" in told
    assert "not registered for A2P 10DLC" in told
    assert "+14155550101" not in told
    assert REFUSED["error_message"] in told
    assert told.count("Register the brand") == 1


def test_a_campaign_shows_what_went_wrong_and_how_often(cli: Cli, campaign_id: str) -> None:
    """With what it means and what to do."""
    (failure,) = cli.ask("campaigns", "show", campaign_id)["failures"]
    is_explained(failure)
    assert (failure["count"], failure["provider"], failure["reason"]) == (1, "twilio", "filtered")
    assert failure["error_message"] == REFUSED["error_message"]
    told = cli.tell("campaigns", "show", campaign_id)
    assert "What went wrong at the provider" in told
    assert "Register the brand" in told
    assert REFUSED["error_message"] in told


def test_a_campaign_in_which_nothing_went_wrong_shows_nothing(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """There is no empty table."""
    made = cli.ask(
        "campaigns", "import", workspace_id, csv_file("phone\n+14155550101\n"), "--name", "C", "--message", "H"
    )
    assert cli.ask("campaigns", "show", made["id"])["failures"] == []
    assert "went wrong" not in cli.tell("campaigns", "show", made["id"])


def test_why_shows_the_carriers_reason_at_the_step_that_it_came_with(cli: Cli, campaign_id: str) -> None:
    """No other step shows it."""
    (history,) = cli.ask("campaigns", "why", campaign_id, "+14155550102")
    told = {step["what"]: step for step in history["steps"]}
    is_explained(told["outcome"])
    assert {step["error_code"] for what, step in told.items() if what != "outcome"} == {None}
    shown = cli.tell("campaigns", "why", campaign_id, "+14155550102")
    assert REFUSED["error_message"] in shown
    assert "Register the brand" in shown


@pytest.mark.parametrize(
    ("provider", "status", "said", "reason", "meaning", "advice"),
    [
        ("retell", CallStatus.FAILED, "marked_as_spam", "filtered", "spam", "numbers"),
        ("retell", CallStatus.CANCELED, "manual_stopped", None, "Retell", "not made again by itself"),
        ("vapi", CallStatus.CANCELED, "manually-canceled", None, "Vapi", "not made again by itself"),
        ("elevenlabs", CallStatus.CANCELED, "canceled", None, "before", "not made again by itself"),
    ],
)
def test_a_call_that_ended_badly_shows_what_the_provider_says_of_it(
    cli: Cli,
    workspace_id: str,
    provider: str,
    status: CallStatus,
    said: str,
    reason: FailureClass | None,
    meaning: str,
    advice: str,
) -> None:
    """The reason of a call that was placed stands in its record; one that was canceled has no failure class."""
    agent_id = cli.ask("agents", "create", workspace_id, "Ada", "--provider", provider)["id"]
    call = make_call(
        workspace_id=workspace_id, agent_id=agent_id, provider=provider, status=status, error=said, ended_at=NOW
    )
    asked: dict[str, Any] = {"channel": "call", "provider": provider, "call_id": call.id, "reason": reason}
    dispatch = make_dispatch(workspace_id=workspace_id, state=DispatchState.ACCEPTED, **asked)
    write(cli, lambda tx: (tx.calls.insert(call), tx.dispatches.insert(dispatch)))
    shown = cli.ask("calls", "show", call.id)
    assert (shown["error_code"], shown["error_message"]) == (said, None)
    assert meaning in shown["meaning"]
    assert advice in shown["advice"]
    assert shown["advice"] in cli.tell("calls", "show", call.id)


def test_a_test_message_that_fails_says_what_the_carrier_says(
    cli: Cli, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first thing that somebody looks at who goes live."""
    monkeypatch.setattr("outreach.services.messaging.messages.Messages.send", _fail_at_once)
    result = cli.run("test-send", workspace_id, "--to", "+14155550101")
    assert result.exit_code == 1
    assert "not registered for A2P 10DLC" in result.stdout
    assert "Register the brand" in result.stdout
    assert REFUSED["error_message"] in result.stdout


def test_what_was_taken_back_is_no_failure(cli: Cli, workspace_id: str, campaign_id: str) -> None:
    """Nobody was asked; what was said before of the same contact still stands."""

    def withdraw(tx: Transaction) -> None:
        place: dict[str, Any] = {"workspace_id": workspace_id, "campaign_id": campaign_id}
        back: dict[str, Any] = {
            "state": DispatchState.WITHDRAWN,
            "reason": "stopped",
            "created_at": NOW.replace(year=2099),
        }
        tx.dispatches.insert(make_dispatch(**place, **back, position=1))
        tx.dispatches.insert(make_dispatch(**place, **back, position=0))

    write(cli, withdraw)
    (failure,) = cli.ask("campaigns", "show", campaign_id)["failures"]
    is_explained(failure)
    first, failed, _ = cli.ask("campaigns", "recipients", campaign_id)
    is_explained(failed)
    assert first["error_code"] is None


def test_the_text_for_people_omits_a_missing_meaning(cli: Cli, workspace_id: str) -> None:
    """A JSON document has the field all the same."""
    result = cli.run("test-send", workspace_id, "--to", "+14155550101", "--wait", "0")
    assert "meaning" not in result.stdout
    assert cli.ask("test-send", workspace_id, "--to", "+14155550101", "--wait", "0")["meaning"] is None


def test_a_call_that_was_given_up_says_why(cli: Cli, workspace_id: str) -> None:
    """Nothing was asked of a provider, and still there is a reason."""
    agent_id = cli.ask("agents", "create", workspace_id, "Ada")["id"]
    call = make_call(workspace_id=workspace_id, agent_id=agent_id, status=CallStatus.CANCELED, error="stale")
    write(cli, lambda tx: tx.calls.insert(call))
    shown = cli.ask("calls", "show", call.id)
    assert (shown["error"], shown["error_code"]) == ("stale", None)
    assert "within 10 minutes" in shown["meaning"]
    assert "Send it again" in shown["advice"]


async def _fail_at_once(self: Any, workspace_id: str, new: Any) -> Any:
    message = make_message(workspace_id=workspace_id, status=MessageStatus.FAILED, reason="filtered", ended_at=NOW)

    def fail(tx: Transaction) -> None:
        tx.messages.insert(message)
        tx.dispatches.insert(make_dispatch(workspace_id=workspace_id, message_id=message.id, **REFUSED))

    await self._context.storage.write(fail)
    return message


def test_a_fault_in_answer_to_a_request_leaves_it_open_whether_it_was_taken(
    cli: Cli, workspace_id: str, campaign_id: str
) -> None:
    """It is looked up, so the advice is to wait and not to send again."""
    place: dict[str, Any] = {"workspace_id": workspace_id, "campaign_id": campaign_id, "position": 2}
    unknown: dict[str, Any] = {"state": DispatchState.UNKNOWN, "reason": "provider_error", "error_code": "500"}

    def fail(tx: Transaction) -> None:
        recipient = tx.recipients.get(workspace_id, campaign_id, 2)
        assert recipient is not None
        asked = attrs.evolve(recipient, status=RecipientStatus.UNKNOWN, reason="provider_error", dispatched=True)
        tx.recipients.put(workspace_id, asked)
        tx.dispatches.insert(make_dispatch(**place, to=recipient.phone, **unknown))

    write(cli, fail)
    found = {one["reason"]: one for one in cli.ask("campaigns", "show", campaign_id)["failures"]}
    recipient = cli.ask("campaigns", "recipients", campaign_id)[2]
    for told in (found["provider_error"], recipient):
        assert "not yet known whether it accepted the request" in told["meaning"]
        assert told["advice"].startswith("Wait while it is looked up")
