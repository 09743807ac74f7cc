"""`test-send` and `campaigns test-send`: one message or call to oneself, through the running server."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import anyio
import click

from outreach import Call, CallStatus, Campaign, Message, NewCall, NewMessage, NotFound, Outreach
from outreach.http import to_json, write_call
from outreach.models import CarrierName, NewTestMessage, ProviderFailure
from outreach.server_support import SERVE
from outreach_server.cli import documents
from outreach_server.cli.base import Command, actor, with_campaign, with_engine
from outreach_server.cli.campaigns import explained
from outreach_server.cli.campaigns.verdicts import ENDED, pending_text, succeeded
from outreach_server.cli.output import note
from outreach_server.cli.serving.sandboxed import note_sandbox
from outreach_server.cli.upkeep.throttles import QUEUED, throttled_until, why_queued
from outreach_server.cli.values import AGENT, CAMPAIGN, CARRIER, WORKSPACE, integer_of

_LOOK_SECONDS: Final = 0.3
_HINT_SECONDS: Final = 10.0
_REPORT_SECONDS: Final = 10.0
"""How long to wait after a call's end for the provider's analysis, which reports voicemail."""

_WAIT: Final = click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    default=60.0,
    show_default=True,
    help="Seconds to watch it; 0 only queues it.",
)

_NOT_SENT: Final = f"It has not been sent yet. Is a server running on this database ({SERVE})?"


@click.command("test-send", cls=Command)
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--to", required=True, metavar="PHONE", help="The number to reach: your own.")
@click.option("--body", default="A test message from outreach.", show_default=True, help="What the message says.")
@click.option("--from", "sender", metavar="PHONE", help="The sending number; by default the workspace's first.")
@click.option("--carrier", type=CARRIER, help="The carrier; by default that of the sending number.")
@click.option("--agent", "agent_id", type=AGENT, help="Call instead, with this agent.")
@click.option("--variable", "variables", multiple=True, metavar="NAME=VALUE", help="A variable of the call.")
@_WAIT
def test_send(
    workspace_id: str,
    to: str,
    body: str,
    sender: str | None,
    carrier: CarrierName | None,
    agent_id: str | None,
    variables: Sequence[str],
    wait: float,
) -> None:
    """Send one message, or place one call, and report its outcome.

    Exits with 0 for a message that was accepted or delivered or a call that was answered, else with 1: busy, no answer,
    voicemail, or an unknown outcome. It goes through the ledger, and the running server sends it. The unsubscribe
    register applies too.
    """
    given = dict(_variable(text) for text in variables)
    if given and agent_id is None:
        raise click.UsageError("--variable is for calls: give an --agent.")

    async def work(engine: Outreach) -> tuple[Message | Call, datetime | None, ProviderFailure | None]:
        item: Message | Call
        if agent_id is not None:
            item = await engine.calls.create(workspace_id, NewCall(agent_id=agent_id, to=to, variables=given))
        else:
            new = NewMessage(to=to, body=body, from_number=sender, carrier=carrier)
            item = await engine.messages.send(workspace_id, new)
        note_sandbox(await engine.workspaces.get(workspace_id))
        item = await _watch(engine, item, wait)
        failed = await (engine.calls.failure(item) if isinstance(item, Call) else engine.messages.failure(item))
        return item, await throttled_until(engine, item), failed

    done, until, failed = with_engine(work)
    if done.status not in ENDED:
        note(f"Watched for {wait:g} s. It continues without this command.")
        missing = pending_text(done)
        if missing is not None:
            note(missing)
    _report(done, _document(done), until, failed, wait)


@click.command("test-send", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option("--contact", required=True, metavar="PHONE", help="The contact whose text to send.")
@click.option("--to", required=True, metavar="PHONE", help="The number to reach: your own.")
@click.option(
    "--message",
    type=integer_of(NewTestMessage, "message"),
    default=1,
    show_default=True,
    help="Which message of a flow.",
)
@click.option("--at-any-hour", is_flag=True, help="Send it outside the campaign's hours and contact hours too.")
@_WAIT
def campaign_test_send(campaign_id: str, contact: str, to: str, message: int, at_any_hour: bool, wait: float) -> None:
    """Send a contact's text to a number of your own, as a test that counts nowhere.

    The running server sends it, from the campaign's number. Exits with 0 for a message that was accepted or delivered.
    """

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Message, datetime | None, ProviderFailure | None]:
        try:
            item = await engine.messages.send_test(
                campaign.workspace_id,
                campaign_id,
                NewTestMessage(contact=contact, to=to, message=message, at_any_hour=at_any_hour),
                actor=actor(),
            )
        except NotFound as error:
            if error.kind != "recipient":
                raise
            raise click.ClickException(f"{contact!r} is not among the campaign's contacts.") from None
        note_sandbox(await engine.workspaces.get(campaign.workspace_id))
        await _watch(engine, item, wait)
        done = await engine.messages.get(item.workspace_id, item.id)
        return done, await throttled_until(engine, done), await engine.messages.failure(done)

    done, until, failed = with_campaign(campaign_id, work)
    document = {**_message_document(done), "body": done.body, "purpose": done.purpose}
    _report(done, document, until, failed, wait)


def _report(
    done: Message | Call,
    document: documents.Document,
    until: datetime | None,
    failed: ProviderFailure | None,
    wait: float,
) -> None:
    """Print what became of it, and end with 1 if it did not succeed; `until` is when its provider takes it again."""
    held = {"throttled_by": documents.provider_throttle(until), "throttled_until": to_json(until)}
    explained.show_with({**document, **held}, failed)
    # Without waiting, queued is success.
    if not succeeded(done) and not (wait == 0 and done.status in QUEUED):
        sys.exit(1)


async def _watch(engine: Outreach, item: Message | Call, wait: float) -> Message | Call:
    """Print each change of status, and why it waits, until it has ended or the time is over."""
    began = time.monotonic()
    ended_at: float | None = None
    shown: str | None = None
    hinted: str | None = None
    while True:
        passed = time.monotonic() - began
        if item.status != shown:
            shown = item.status
            note(f"{passed:5.1f} s  {shown}")
        if item.status in QUEUED:
            hint = await why_queued(engine, item)
            if hint is None and 0 < min(_HINT_SECONDS, wait) <= passed:
                hint = _NOT_SENT
            if hint is not None and hint != hinted:
                hinted = hint
                note(hint)
        if item.status in ENDED and ended_at is None:
            ended_at = passed
        reported = ended_at is not None and (not _awaits_report(item) or passed - ended_at >= _REPORT_SECONDS)
        if reported or passed >= wait:
            return item
        await anyio.sleep(_LOOK_SECONDS)
        if isinstance(item, Call):
            item = await engine.calls.get(item.workspace_id, item.id)
        else:
            item = await engine.messages.get(item.workspace_id, item.id)


def _awaits_report(item: Message | Call) -> bool:
    return isinstance(item, Call) and item.status is CallStatus.COMPLETED and item.outcome is None


def _document(item: Message | Call) -> documents.Document:
    if isinstance(item, Call):
        return write_call(item)
    return _message_document(item)


def _message_document(item: Message) -> documents.Document:
    """Return the document of a single message, without its text."""
    shown = to_json(item)
    return {name: shown[name] for name in ("id", "to", "from_number", "carrier", "segments", "status", "reason")}


def _variable(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.UsageError(f"--variable {text!r} is not of the form NAME=VALUE.")
    return name, value
