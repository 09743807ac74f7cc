"""The console can do nothing that the commands and the HTTP interface cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from outreach_server.cli.root import main
from outreach_server.console.actions import ACTIONS, DRAFTING, FORM_ACTIONS

CONTRACT = yaml.safe_load((Path(__file__).parents[2] / "openapi.yaml").read_text("utf-8"))


def _operations() -> Iterator[str]:
    for item in CONTRACT["paths"].values():
        yield from (one["operationId"] for one in item.values() if isinstance(one, dict) and "operationId" in one)


def test_each_action_has_its_command_and_its_operation() -> None:
    """Each by its name."""
    operations, context = set(_operations()), click.Context(main)
    assert {"pause", "resume", "start", "cancel", "archive", "unarchive", "unschedule"} == set(ACTIONS)
    named = [(one.command, one.operation) for one in ACTIONS.values()]
    named += [(one.command, one.operation) for one in (*DRAFTING.values(), *FORM_ACTIONS.values())]
    for words, operation in named:
        group, _, name = words.partition(" ")
        command = main.get_command(context, group)
        assert command is not None, words
        if name:
            assert isinstance(command, click.Group)
            assert name in command.list_commands(context), words
        assert operation in operations, operation
