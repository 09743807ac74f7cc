from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
import pytest

from outreach import Dispatch, DispatchState, Outreach
from outreach.dispatch.looking_up import LookUps
from outreach.http import format_timestamp
from outreach.ledger.leases import leases
from outreach.models.dispatch import DispatchOutcome
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_dispatch, make_message, new_id
from tests.cli.conftest import Cli

LONG_AGO = datetime.now(UTC) - timedelta(minutes=5)


def given_unknown(cli: Cli, workspace_id: str, at: datetime = LONG_AGO) -> Dispatch:
    """Write a message whose request has got no answer."""
    message = make_message(id=new_id(), workspace_id=workspace_id, created_at=at)
    dispatch = make_dispatch(
        workspace_id=workspace_id,
        message_id=message.id,
        to=message.to,
        state=DispatchState.UNKNOWN,
        reason="timeout",
        created_at=at,
    )

    async def write() -> None:
        async with Outreach.open(cli.database) as engine:
            await engine._storage.write(lambda tx: (tx.messages.insert(message), tx.dispatches.insert(dispatch)))

    anyio.run(write)
    return dispatch


def given_a_steady_clock(cli: Cli) -> None:
    """Have a server run since long ago and until now."""

    def operation(tx: Transaction) -> None:
        now = datetime.now(UTC)
        leases.take_over(tx, home=None, noted=None, now=LONG_AGO)
        leases.renew(tx, epoch=1, now=now)

    async def write() -> None:
        async with Outreach.open(cli.database) as engine:
            await engine._storage.write(operation)

    anyio.run(write)


def test_the_unknown_ones_are_listed_oldest_first_without_their_text(cli: Cli, workspace_id: str) -> None:
    """What nobody knows the end of is shown; what was written to somebody is not. Whether there are more is said."""
    assert cli.ask("dispatches", "unknown", workspace_id) == []
    assert "No request is unknown." in cli.tell("dispatches", "unknown", workspace_id)
    later = given_unknown(cli, workspace_id)
    first = given_unknown(cli, workspace_id, LONG_AGO - timedelta(minutes=1))
    listed = cli.ask("dispatches", "unknown", workspace_id)
    assert [one["id"] for one in listed] == [first.id, later.id]
    assert (listed[0]["state"], listed[0]["reason"], listed[0]["to"]) == ("unknown", "timeout", first.to)
    assert listed[0]["created_at"] == format_timestamp(first.created_at)
    assert "body" not in listed[0]
    assert first.id in cli.tell("dispatches", "unknown", workspace_id)
    for told in ((), ("--json",)):
        short = cli.run("dispatches", "unknown", workspace_id, "--limit", "1", *told)
        more = "Only the first 1 are shown. See more with --limit."
        assert (short.exit_code, short.stderr.strip()) == (0, more)
        assert cli.run("dispatches", "unknown", workspace_id, "--limit", "2", *told).stderr == ""
    assert len(cli.ask("dispatches", "unknown", workspace_id, "--limit", "1")) == 1


@pytest.mark.parametrize(
    ("option", "state", "action"),
    [("--assume-sent", "accepted", "dispatch.assume_sent"), ("--retry", "given_up", "dispatch.retry")],
)
def test_an_operator_decides_once(cli: Cli, workspace_id: str, option: str, state: str, action: str) -> None:
    """docs/delivery-contract.md#rule-6: the decision is kept in the audit trail; a second one is refused, in words."""
    dispatch = given_unknown(cli, workspace_id)
    given_a_steady_clock(cli)
    resolved = cli.ask("dispatches", "resolve", dispatch.id, option)
    assert (resolved["id"], resolved["state"]) == (dispatch.id, state)
    assert cli.ask("dispatches", "unknown", workspace_id) == []
    assert action in {entry["action"] for entry in cli.ask("audit", workspace_id)}
    assert f"The dispatch is {state}, not unknown" in cli.refuse("dispatches", "resolve", dispatch.id, option)


def test_a_request_is_looked_up(cli: Cli, workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox's requests are known to the process that sends them alone; what a provider says settles the others."""
    dispatch = given_unknown(cli, workspace_id)
    assert "This is a sandbox" in cli.refuse("dispatches", "look-up", dispatch.id)

    async def ask(*_: object) -> DispatchOutcome:
        return DispatchOutcome(state=DispatchState.REFUSED, reason="invalid_number")

    monkeypatch.setattr(LookUps, "ask", ask)
    monkeypatch.setattr(Outreach, "_pool_of", lambda *_: None)
    found = cli.ask("dispatches", "look-up", dispatch.id)
    assert (found["id"], found["state"], found["answer"]) == (dispatch.id, "refused", "refused")
    assert cli.ask("dispatches", "unknown", workspace_id) == []


def test_many_are_decided_at_once_and_taken_back(cli: Cli, workspace_id: str) -> None:
    """It shows first how many contacts it concerns and what becomes of them; without a terminal it needs --yes."""
    made = [given_unknown(cli, workspace_id), given_unknown(cli, workspace_id)]
    given_a_steady_clock(cli)
    which = ("--workspace", workspace_id, "--provider", made[0].provider)
    planned = cli.ask("dispatches", "resolve", "--retry", *which, "--dry-run")
    assert planned == {"dry_run": True, "changed": 2, "kept": 0, "becomes": {"queued": 2}}
    refused = cli.run("dispatches", "resolve", "--retry", *which)
    assert "2 contacts would change: 2 queued." in refused.stderr
    assert "Contacts may be reached twice: add --yes." in refused.stderr
    assert len(cli.ask("dispatches", "unknown", workspace_id)) == 2
    assert cli.ask("dispatches", "resolve", "--retry", *which, "--yes") == {**planned, "dry_run": False}
    assert cli.ask("dispatches", "unknown", workspace_id) == []
    assert "2 contacts changed: 2 unknown." in cli.tell("dispatches", "undo", *which, "--yes")
    assert [one["reason"] for one in cli.ask("dispatches", "unknown", workspace_id)] == ["decision_undone"] * 2


def test_a_decision_about_none_is_a_document_too(cli: Cli, workspace_id: str) -> None:
    """A program reads it as one about many."""
    found = cli.ask("dispatches", "resolve", "--retry", "--workspace", workspace_id)
    assert (found["dry_run"], found["changed"]) == (False, 0)


def test_a_decision_about_many_names_whose(cli: Cli, workspace_id: str) -> None:
    """A filter beside an id is refused, as are filters without a workspace."""
    dispatch = given_unknown(cli, workspace_id)
    assert "--workspace or --campaign" in cli.refuse("dispatches", "resolve", "--retry", "--yes", code=2)
    both = ("dispatches", "resolve", dispatch.id, "--retry", "--reason", "timeout")
    assert "either one request or filters" in cli.refuse(*both, code=2)


@pytest.mark.parametrize("options", [[], ["--assume-sent", "--retry"], ["--retry", "--assume-sent"]])
def test_one_decision_must_be_named(cli: Cli, workspace_id: str, options: list[str]) -> None:
    """Neither is a default, nor wins over the other: one may leave a contact out, the other may reach it twice."""
    dispatch = given_unknown(cli, workspace_id)
    assert "either --assume-sent or --retry" in cli.refuse("dispatches", "resolve", dispatch.id, *options, code=2)
    assert [one["id"] for one in cli.ask("dispatches", "unknown", workspace_id)] == [dispatch.id]
