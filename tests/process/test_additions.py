from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time

import httpx
import pytest

from tests.process.killing import Kills
from tests.process.place import Place
from tests.process.server import ServerProcess
from tests.process.waiting import PATIENCE, wait_for

_FEW, _SECONDS = 10, 300.0


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("parts", "contacts", "kills"),
    [(4, 4_000, 2), pytest.param(50, 100_000, 10, marks=pytest.mark.nightly("each kill waits for a key's lease"))],
)
def test_contacts_added_over_kills_are_there_once(place: Place, parts: int, contacts: int, kills: int) -> None:
    """Each part is sent again under its key until it is answered: counters equal a recount, nobody is there twice."""
    course = Kills(place=place)
    rng = random.Random(course.seed)
    [campaign] = place.create(campaigns=1, recipients=_FEW, start=False)
    size = contacts // parts

    def start() -> ServerProcess:
        # Each part takes several slices.
        return course.started(lambda: place.serve("--insert-batch-size", str(size // 4)))

    def add(server: ServerProcess, part: int, phones: list[str]) -> bool:
        body = {"recipients": [{"phone_number": phone} for phone in phones]}
        key = {"Idempotency-Key": f"part-{part}"}
        with contextlib.suppress(httpx.HTTPError), place.client(server) as client:
            answer = client.post(f"/manage/campaigns/{campaign}/recipients", json=body, headers=key)
            assert answer.status_code in {201, 429}, answer.text
            return answer.status_code == 201
        return False

    server = start()
    with place.client(server) as client:
        assert client.patch(f"/manage/campaigns/{campaign}", json={"stay_open": True}).status_code == 200
        assert client.post(f"/manage/campaigns/{campaign}/start").json()["status"] == "active"
    killed_in = set(rng.sample(range(parts), kills))
    for part in range(parts):
        phones = place.phones(size)
        if part in killed_in:
            sender = threading.Thread(target=add, args=(server, part, phones))
            sender.start()
            time.sleep(rng.uniform(0, 0.5))  # the moment of the kill, not a wait for anything
            course.kill(server)
            sender.join(PATIENCE)
            server = start()
        end = time.monotonic() + _SECONDS
        while not add(server, part, phones):
            assert time.monotonic() < end, course.told(f"part {part}")
    with place.client(server) as client:
        assert client.post(f"/manage/campaigns/{campaign}/pause").json()["status"] == "paused"
    wait_for(course.told("the requests"), lambda: not place.books.recipients()["dispatching"])
    server.kill()
    with contextlib.closing(sqlite3.connect(place.database, timeout=PATIENCE)) as connection, connection:
        connection.execute("UPDATE campaigns SET loading_until = '2026-01-01' WHERE loading_until IS NOT NULL")
    start()
    wait_for(course.told("what the kills left to be cleared"), lambda: not place.books.loading())
    rows = place.books.rows("SELECT phone, status, reason FROM recipients")
    assert len({row["phone"] for row in rows}) == _FEW + contacts, course.told("lost")
    assert len(rows) == _FEW + contacts, course.told("twice")
    assert not [row for row in rows if row["reason"] == "duplicate"]
    place.books.check()
