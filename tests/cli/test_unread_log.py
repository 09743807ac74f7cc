"""A server or worker whose stderr nobody reads: it sends and answers all the same, and ends when it is told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import anyio
import httpx
import pytest

from outreach import NewRecipient, NewSmsCampaign, NewWorkspace, Outreach
from outreach.models import Campaign
from tests.cli.conftest import DEADLINE, ROOT
from tests.monitoring.test_log_queue import fill

RECIPIENTS = 30
REQUESTS = 1500
"""Each of which is a line of over 100 bytes, but for those that are too many in a second."""


async def given_started_campaign(database: str) -> Campaign:
    """Create a campaign that a process sends as soon as it dispatches."""
    async with Outreach.open(database) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=None))
        new = NewSmsCampaign(
            name="Spring",
            body="Hello {{first_name}}",
            carrier="twilio",
            from_number="+14155550199",
            rate_per_minute=600,
        )
        people = [NewRecipient(phone_number=f"+1415555{n:04d}", first_name=f"N{n}") for n in range(RECIPIENTS)]
        campaign = (await engine.campaigns.create_sms(workspace.id, new, people)).campaign
        return await engine.campaigns.start(workspace.id, campaign.id)


async def until_sent(database: str, campaign: Campaign, url: str) -> None:
    """Ask for something until a campaign is complete, and often."""
    asked = 0
    async with Outreach.open(database) as engine, httpx.AsyncClient(trust_env=False, timeout=DEADLINE) as client:
        with anyio.fail_after(2 * DEADLINE):
            while True:
                found = await engine.campaigns.get(campaign.workspace_id, campaign.id)
                if found.status == "completed" and asked >= REQUESTS:
                    assert found.counters.completed == RECIPIENTS
                    return
                for _ in range(20):
                    answer = await client.get(f"{url}/nothing", headers={"X-Request-Id": f"{asked:0100d}"})
                    assert answer.status_code == 404
                    asked += 1


@pytest.mark.turn(2, "fills the pipe of a log, which takes seconds")
@pytest.mark.parametrize(("command", "form"), [("serve", "text"), ("worker", "json")])
def test_it_sends_and_answers_and_ends(database: str, command: str, form: str) -> None:
    """With a pipe that is full from the beginning, of which no byte is ever read."""
    campaign = anyio.run(given_started_campaign, database)
    reader, writer = os.pipe()
    fill(writer)
    address = ["--port", "0"] if command == "serve" else ["--metrics", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-m", "outreach_server", command, "--json", *address, "--log-format", form],
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OUTREACH_DATABASE_URL": database, "OUTREACH_SIMULATOR_LATENCY_MS": "0"},
    ) as process:
        # One that waits for its log says nothing at all.
        given_up = threading.Timer(DEADLINE, process.kill)
        given_up.start()
        try:
            assert process.stdout is not None
            told = ""
            while not told.endswith("}\n"):
                line = process.stdout.readline()
                assert line, told
                told += line
            given_up.cancel()
            anyio.run(until_sent, database, campaign, json.loads(told)["url"])
            process.send_signal(signal.SIGTERM)
            # In order: one that has to be cut short ends with 1.
            assert process.wait(DEADLINE) == 0
        finally:
            given_up.cancel()
            process.kill()
            os.close(reader)
            os.close(writer)
