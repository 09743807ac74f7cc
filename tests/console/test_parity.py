"""The console can do nothing that the commands and the HTTP interface cannot."""

from __future__ import annotations

from collections.abc import Iterator

import click

from outreach_server.cli.root import main
from outreach_server.console.actions import ACTIONS, DRAFTING, FORM_ACTIONS
from outreach_server.console.pages.set_up.every import NOUNS
from tests.contract.document import DOCUMENT


def _operations() -> Iterator[str]:
    for item in DOCUMENT["paths"].values():
        yield from (one["operationId"] for one in item.values() if isinstance(one, dict) and "operationId" in one)


def test_each_action_has_its_command_and_its_operation() -> None:
    """Each by its name."""
    operations, context = set(_operations()), click.Context(main)
    assert {"pause", "resume", "start", "cancel", "archive", "unarchive", "unschedule", "close"} == set(ACTIONS)
    named = [(one.command, one.operation) for one in ACTIONS.values()]
    named += [(one.command, one.operation) for one in (*DRAFTING.values(), *FORM_ACTIONS.values())]
    for words, operation in named:
        _require_command(context, words)
        # An approval is between people: keys have none. The audit trail stays off the HTTP API.
        assert operation in operations or words in {"campaigns approve", "audit"}, operation


OFF_THE_API = {
    "accounts connect",
    "accounts remove",
    "agents remove",
    "doctor",
    "keys create",
    "keys revoke",
    # An approval is between people.
    "schedules approve",
    *(f"trunks {name}" for name in ("create", "update", "remove")),
    *(f"users {name}" for name in ("create", "disable", "invite", "reset", "role", "sessions")),
    "workspaces create",
    "workspaces update",
}
"""Commands of the set-up that have no operation on purpose: programs do not change who may do what."""


def test_each_action_of_the_set_up_has_its_command_and_its_operation() -> None:
    """But for those that stay off the HTTP API."""
    operations, context = {*_operations(), "updateSmsSettings"}, click.Context(main)
    without = set()
    for noun in NOUNS:
        for action in (*noun.on_list, *noun.on_one):
            _require_command(context, action.command)
            assert action.operation in {"", *operations}, action.operation
            without |= {action.command} if not action.operation else set()
    assert without - {"accounts check"} == OFF_THE_API
    assert not [one for one in operations if one.lower().endswith(("key", "keys", "user", "users", "audit"))]


def _require_command(context: click.Context, words: str) -> None:
    command: click.Command | None = main
    for word in words.split():
        assert isinstance(command, click.Group)
        command = command.get_command(context, word)
    assert command is not None, words
