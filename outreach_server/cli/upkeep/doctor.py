"""`doctor`: what is wrong with this server and its data, with the command that fixes it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from outreach.errors import ConfigError
from outreach.http import to_json
from outreach.models import Diagnosis
from outreach.protocols import SystemClock
from outreach_server.cli import interruptions
from outreach_server.cli.base import Command, state
from outreach_server.cli.doctor.examination import examine
from outreach_server.cli.doctor.findings import config_invalid
from outreach_server.cli.doctor.invocation import Invocation, options_of, program, service_here
from outreach_server.cli.output import cell, echo_json
from outreach_server.cli.problems import EXIT_STATUS, MARKS
from outreach_server.config import config_file


@click.command(cls=Command)
@click.option("--offline", is_flag=True, help="Make no request to the network: no provider and no name is asked.")
def doctor(offline: bool) -> None:
    """Look for faults of this server and its data, and show the command that fixes each.

    It changes nothing, and a server may run meanwhile. Run it with the server's configuration. Exits with 0 if nothing
    is wrong, 3 if something waits for a person, 4 if nothing is sent or soon will not be, or data are in danger.
    """
    found = _examine(network=not offline)
    if state().as_json:
        echo_json({**to_json(found), "severity": found.severity})
    else:
        for line in lines(found):
            click.echo(line)
    click.get_current_context().exit(EXIT_STATUS[found.severity])


def _examine(*, network: bool) -> Diagnosis:
    file = state().config_file or config_file(os.environ)
    invocation = Invocation(
        program=program(),
        options=[*options_of(database=state().database_flag, config_file=state().config_file)],
        config_file=file,
        environment=os.environ,
        service=service_here(),
    )
    try:
        config, simulator = state().configuration()
    except ConfigError as error:
        found = invocation.fitted(config_invalid(error), url="")
        return Diagnosis(at=SystemClock().now()).plus([found], skipped=["Nothing else was looked at."])
    return interruptions.run(
        lambda: examine(config, simulator, config_file=file, network=network, invocation=invocation)
    )


def lines(found: Diagnosis) -> Iterator[str]:
    """Yield a diagnosis for people, each command in one line."""
    if not found.findings:
        yield "Nothing is wrong."
    for one in found.findings:
        yield f"{MARKS[one.severity]} {one.code}: {cell(one.message)}"
        yield f"    at {cell(one.path)}"
        for command in one.commands:
            yield f"    fix: {command}"
        for command in one.looks:
            yield f"    look: {command}"
    for sentence in found.skipped:
        yield cell(sentence)
