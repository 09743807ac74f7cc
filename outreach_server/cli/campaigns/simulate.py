"""`simulate`: what contacts and providers do, in a sandbox workspace."""

from __future__ import annotations

from typing import Literal, get_args

import click

from outreach.http import to_json
from outreach.models import FailureClass, NewSimulation, SimulatedKind
from outreach_server.cli.base import Group, with_engine
from outreach_server.cli.output import note, show
from outreach_server.cli.values import WORKSPACE


@click.group(cls=Group)
def simulate() -> None:
    """Simulate replies, receipts and the ends of calls in a sandbox workspace.

    What follows is what follows from a provider's callback: opt-outs, answers, retries, outcomes. A receipt or the end
    of a call goes to the open request to the number, else to the next one within a day.
    """


@simulate.command("reply")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phone")
@click.argument("text")
@click.option("--to", help="The number it is sent to; by default the sender of the newest message to PHONE.")
def reply(workspace_id: str, phone: str, text: str, to: str | None) -> None:
    """Have PHONE write TEXT back."""
    _simulate(workspace_id, NewSimulation(event="reply", phone_number=phone, body=text, to=to))


@simulate.command("stop")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phone")
@click.option("--to", help="The number it is sent to; by default the sender of the newest message to PHONE.")
def stop(workspace_id: str, phone: str, to: str | None) -> None:
    """Have PHONE write STOP."""
    _simulate(workspace_id, NewSimulation(event="stop", phone_number=phone, to=to))


@simulate.command("receipt")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phone")
@click.argument("status", type=click.Choice(("delivered", "failed")))
@click.option("--reason", type=click.Choice(get_args(FailureClass)), help="Why it failed; by default unreachable.")
def receipt(workspace_id: str, phone: str, status: Literal["delivered", "failed"], reason: FailureClass | None) -> None:
    """Report a message to PHONE as delivered or failed; with --reason temporary it may be retried."""
    _simulate(workspace_id, NewSimulation(event="receipt", phone_number=phone, status=status, reason=reason))


def _end_call(name: str, event: SimulatedKind, meaning: str) -> None:
    @simulate.command(name, help=meaning)
    @click.argument("workspace_id", type=WORKSPACE)
    @click.argument("phone")
    def run(workspace_id: str, phone: str) -> None:
        _simulate(workspace_id, NewSimulation(event=event, phone_number=phone))


_end_call("busy", "busy", "Have PHONE be busy when it is called.")
_end_call("voicemail", "voicemail", "Have a machine answer when PHONE is called.")
_end_call("no-answer", "no_answer", "Have nobody answer when PHONE is called.")


def _simulate(workspace_id: str, event: NewSimulation) -> None:
    done = with_engine(lambda engine: engine.simulate(workspace_id, event))
    show(to_json(done))
    if done.kept:
        note("No request to the number is open: it comes with the next one within a day.")
