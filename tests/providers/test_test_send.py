from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from anyio.to_thread import run_sync

from outreach import NewAgent
from tests.process.place import Place
from tests.process.waiting import PATIENCE
from tests.providers.carriers import CARRIERS, SENDER, CarrierPart
from tests.providers.parts import Part, Taken
from tests.providers.stage import Stage, staged
from tests.providers.voices import VOICES, VoicePart

pytestmark = pytest.mark.anyio

PERSON = "+14155550100"


def _send(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `test-send` as somebody at a terminal does."""
    return subprocess.run(
        [sys.executable, "-m", "outreach_server", "--database", place.url, "test-send", *arguments],
        capture_output=True,
        timeout=PATIENCE * 2,
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **place.environment},
    )


def _tell(stage: Stage[Any], taken: Taken) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    if isinstance(stage.part, CarrierPart):
        stage.tell([stage.part.receipt(taken, "sent", now), stage.part.receipt(taken, "delivered", now)])
    elif isinstance(stage.part, VoicePart):
        stage.tell(stage.part.talk(taken, now))


@pytest.mark.turn(3, "waits for the receipts of each provider")
@pytest.mark.parametrize("part_of", [*CARRIERS, *VOICES])
async def test_one_message_or_call_to_oneself_tells_its_steps(place: Place, part_of: type[Part]) -> None:
    """The last step of every go-live guide: through the running server, to its end; a refusal is a failure."""
    async with staged(place, part_of(), _tell) as stage:
        options = ["--from", SENDER, "--carrier", part_of.name]
        if part_of.channel == "call":
            agent = await stage.engine.agents.create(
                stage.workspace_id,
                NewAgent(name="Ada", provider=part_of.name, provider_agent_id="agent-1", from_number=SENDER),
            )
            options = ["--agent", agent.id]
        send = partial(_send, place, stage.workspace_id, "--to", PERSON, *options)

        done = await run_sync(send)
        assert done.returncode == 0, done.stderr
        steps = [line.split()[-1] for line in done.stderr.splitlines()]
        if part_of.channel == "call":
            # It is waited for until the provider has taken it: by then it may have been called back, too.
            assert steps[-1] == "completed"
        else:
            assert (steps[0], steps[-1]) == ("queued", "delivered")
        assert steps[-1] in done.stdout
        assert [taken.to for taken in stage.taken] == [PERSON]
        await stage.told()

        stage.provider.refuses = True
        refused = await run_sync(send)
        assert refused.returncode == 1
        assert refused.stderr.splitlines()[-1].split()[-1] == "failed"
        assert len(stage.taken) == 1
