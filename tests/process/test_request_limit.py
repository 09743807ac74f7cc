"""One limit for a workspace, whichever of several processes is asked."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.process.place import open_place
from tests.process.server import ServerProcess

LIMIT = 120
CLIENTS = 4
ROUNDS = 60


def test_two_servers_together_keep_the_limit(tmp_path: Path) -> None:
    """All who ask at once get what there is, and no more; who is refused is told when to come again."""
    with open_place(tmp_path, request_limit=LIMIT) as place:
        servers = [place.serve("--no-dispatch") for _ in range(2)]

        def ask(server: ServerProcess) -> list[httpx.Response]:
            with place.client(server) as client:
                return [client.get("/sms-campaigns") for _ in range(ROUNDS)]

        begun = time.monotonic()
        with ThreadPoolExecutor(2 * CLIENTS) as threads:
            answers = [answer for share in threads.map(ask, servers * CLIENTS) for answer in share]
        taken = [answer for answer in answers if answer.status_code == 200]
        refused = [answer for answer in answers if answer.status_code != 200]
        assert time.monotonic() - begun < 50, "they did not come within a minute"
        assert LIMIT * 0.75 <= len(taken) <= LIMIT
        assert {answer.status_code for answer in refused} == {429}
        assert all(1 <= int(answer.headers["Retry-After"]) <= 60 for answer in refused)
