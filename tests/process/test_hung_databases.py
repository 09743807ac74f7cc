"""A PostgreSQL server that stands still, its connections alive: nobody waits for ever, and nobody is reached twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs
import pytest
from cryptography.fernet import Fernet

from outreach.core.secret_keys import SECRET_KEY_VARIABLE
from tests import postgres
from tests.process.place import Place, open_place
from tests.process.server import EngineProcess, ServerProcess
from tests.process.waiting import PATIENCE, wait_for

LEASE_SECONDS: Final = 4.0

ON_ITS_WAY: Final = timedelta(seconds=1)
"""How long a request may take, on a busy machine, from the worker's last look at its lease to the carrier's log."""

MAX_STOP_SECONDS: Final = 15.0
"""The service manager kills a server that has not ended by then (`TimeoutStopSec` in examples/hosting)."""

SETTINGS: Final = {
    "OUTREACH_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
    "OUTREACH_HEARTBEAT_INTERVAL_SECONDS": "0.5",
    "OUTREACH_RECONCILE_DELAY_SECONDS": "0.001",
    "OUTREACH_RECONCILE_RETRY_SECONDS": "1",
    "OUTREACH_RECONCILE_INTERVAL_SECONDS": "0.5",
}


@attrs.frozen
class Sending:
    """A server that sends, or one that answers and a worker that sends.

    Attributes:
        place: Its database and books.
        node: It answers requests.
        worker: It sends.
    """

    place: Place
    node: ServerProcess
    worker: EngineProcess


@pytest.fixture(params=["in_process", "procrastinate"])
def sending(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sending]:
    """A campaign under way, with each dispatcher."""
    monkeypatch.setenv(SECRET_KEY_VARIABLE, Fernet.generate_key().decode())
    monkeypatch.setenv("OUTREACH_DISPATCHER", request.param)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    with (
        postgres.server().database(template=postgres.template()) as name,
        open_place(tmp_path, server_url=postgres.server().url(name)) as place,
    ):
        if request.param == "procrastinate":
            place.command("db", "migrate")
            node, worker = place.serve("--no-dispatch"), place.work()
            made = Sending(place, node, worker)
        else:
            server = place.serve()
            made = Sending(place, server, server)
        place.create(campaigns=6, recipients=200)
        wait_for("the first messages", lambda: place.books.sent() >= 20)
        yield made
        place.end()


@pytest.mark.turn(3, "a minute in which nothing answers")
def test_who_cannot_renew_its_lease_sends_nothing_and_goes_on_afterwards(sending: Sending) -> None:
    """Requests are answered meanwhile; everybody is reached once."""
    place = sending.place
    with postgres.server().standing_still(), place.client(sending.node) as client:
        begun = datetime.now(UTC)
        for _ in range(2):
            answer = client.get("/sms-campaigns")
            assert answer.status_code == 503, answer.text
        wait_for("the lease to end", lambda: datetime.now(UTC) > begun + timedelta(seconds=4 * LEASE_SECONDS))
        goes_on = datetime.now(UTC)
    wait_for("everybody", lambda: not place.books.unfinished(), seconds=4 * PATIENCE)
    place.books.check()
    accepted = place.books.accepted()
    assert sorted(entry.to for entry in accepted) == sorted({entry.to for entry in accepted})
    ends = begun + timedelta(seconds=LEASE_SECONDS) + ON_ITS_WAY
    assert [entry for entry in accepted if ends < entry.at < goes_on] == []
    for process in {sending.node.process.pid: sending.node, sending.worker.process.pid: sending.worker}.values():
        assert process.stop() == 0, process.errors()
        assert "Traceback" not in process.errors(), process.errors()


@pytest.mark.turn(3, "half a minute in which nothing answers")
def test_a_signal_ends_everybody_in_time(sending: Sending) -> None:
    """A hung server keeps neither a server nor a worker from ending; what is unknown then is not sent again."""
    place = sending.place
    with postgres.server().standing_still():
        for process in {sending.node.process.pid: sending.node, sending.worker.process.pid: sending.worker}.values():
            begun = time.monotonic()
            # What it cannot end in order by then it leaves as after a power cut, with a status of its own.
            assert process.stop() in {0, 1}, process.errors()
            assert time.monotonic() - begun < MAX_STOP_SECONDS
    place.serve() if sending.node is sending.worker else place.work()
    wait_for("everybody", lambda: not place.books.unfinished(), seconds=4 * PATIENCE)
    place.books.check()
    accepted = place.books.accepted()
    assert sorted(entry.to for entry in accepted) == sorted({entry.to for entry in accepted})
