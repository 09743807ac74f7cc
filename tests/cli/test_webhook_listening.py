from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence

import anyio
import pytest

from outreach import Outreach
from outreach.core.config import EngineConfig
from outreach.models import NewWebhook
from outreach.testing.fault_server import Answer, FaultServer
from tests.cli.conftest import Cli, Process, until

URL = "https://app.example/hook"


@pytest.fixture
def opted_out(cli: Cli, workspace_id: str) -> str:
    """Two people are on the register, and one has left it."""
    for number in ("+14155550101", "+14155550102"):
        cli.ask("unsubscribes", "add", workspace_id, number)
    cli.ask("unsubscribes", "remove", workspace_id, "+14155550101")
    return workspace_id


def _printed(text: str) -> Sequence[tuple[str, str]]:
    return [(one["body"]["type"], one["webhook-id"].split("_")[1]) for one in map(json.loads, text.splitlines())]


def test_deliveries_are_printed_from_a_number_on_a_line_each(cli: Cli, opted_out: str) -> None:
    """In order, with their ids, of the types that were given, thin by default."""
    result = cli.run("webhooks", "listen", opted_out, "--from", "1", "--count", "3", "--type", "contact.*")
    assert result.exit_code == 0, result.output
    types = ["contact.opted_out", "contact.opted_out", "contact.opted_in"]
    assert _printed(result.stdout) == [(one, opted_out) for one in types]
    assert "+1415" not in result.stdout
    full = cli.run("webhooks", "listen", opted_out, "--from", "1", "--count", "1", "--type", "*.opted_in", "--full")
    assert json.loads(full.stdout)["body"]["data"]["phone"] == "+14155550101"


def test_with_json_it_is_one_array(cli: Cli, opted_out: str) -> None:
    """Which has the same objects."""
    arguments = ("webhooks", "listen", opted_out, "--from", "1", "--count", "2")
    lines = cli.run(*arguments).stdout.splitlines()
    assert cli.ask(*arguments) == [json.loads(line) for line in lines]


def test_an_endpoint_says_what_is_printed(cli: Cli, opted_out: str) -> None:
    """Its types and payload; options go before them."""
    hook = cli.ask("webhooks", "add", opted_out, URL, "--type", "contact.opted_in", "--payload", "full")["id"]
    result = cli.run("webhooks", "listen", opted_out, URL, "--from", "1", "--count", "1")
    assert json.loads(result.stdout)["body"]["type"] == "contact.opted_in"
    assert "+14155550101" in result.stdout
    given = cli.run("webhooks", "listen", opted_out, hook, "--from", "1", "--count", "1", "--type", "*.opted_out")
    assert json.loads(given.stdout)["body"]["type"] == "contact.opted_out"
    assert cli.ask("webhooks", "attempts", opted_out, hook) == []


def test_what_is_printed_is_what_an_endpoint_gets(cli: Cli, opted_out: str) -> None:
    """Byte by byte, under the same id."""
    received: dict[str, bytes] = {}

    async def deliver() -> None:
        config = EngineConfig(webhook_allow="127.0.0.0/8", webhook_allow_http=True, change_poll_seconds=0.05)
        async with FaultServer(lambda _: Answer()) as server, Outreach.open(cli.database, config=config) as engine:
            made = await engine.webhooks.create(opted_out, NewWebhook(url=server.url, payload="full"))
            async with Outreach.open(cli.database, dispatch=True, config=config):
                await engine.unsubscribes.add(opted_out, "+14155550103")
                with anyio.fail_after(20):
                    while not server.requests:  # noqa: ASYNC110 - the receiver notifies nobody
                        await anyio.sleep(0.05)
            await engine.webhooks.remove(opted_out, made.webhook.id)
            received.update({one.headers["webhook-id"]: one.body for one in server.requests})

    anyio.run(deliver)
    ((name, body),) = received.items()
    result = cli.run("webhooks", "listen", opted_out, "--from", name.split("_")[-2], "--count", "1", "--full")
    assert result.stdout_bytes == b'{"webhook-id":"%s","body":%s}\n' % (name.encode(), body)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_it_waits_for_more_until_ctrl_c(
    cli: Cli, opted_out: str, start: Callable[..., Process], more: Sequence[str]
) -> None:
    """Events that happen meanwhile are printed at once; the end is that of every command."""
    process = start("webhooks", "listen", opted_out, "--from", "1", "--type", "contact.*", *more)
    process.says("contact.opted_in")
    cli.ask("unsubscribes", "add", opted_out, "+14155550104")
    until(lambda: process.stdout.count("contact.opted_out") == 3, "the event that happened meanwhile")
    process.signal(signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.strip().splitlines()[-1] == "Interrupted."
    printed = json.loads(process.stdout) if more else [json.loads(line) for line in process.stdout.splitlines()]
    assert len(printed) == 4


def test_a_closed_stdout_ends_it(opted_out: str, start: Callable[..., Process]) -> None:
    """`… | head` has what it wants."""
    read, write = os.pipe()
    os.close(read)
    try:
        process = start("webhooks", "listen", opted_out, "--from", "1", stdout=write)
        assert process.wait() == 1
    finally:
        os.close(write)
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--type", "contact.gone"), "must be a type of events"),
        (("--from", "999"), "must be at most"),
        (("https://other.example/hook",), "https://other.example/hook"),
    ],
)
def test_what_is_not_there_is_refused(cli: Cli, opted_out: str, arguments: Sequence[str], says: str) -> None:
    """With nothing printed."""
    assert says in cli.refuse("webhooks", "listen", opted_out, *arguments, "--count", "1")
