from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from outreach_server.context import MAX_LARGE_EACH
from tests.process.place import Place, body
from tests.process.uploading import Upload, largest_resident, padded
from tests.process.waiting import PATIENCE, wait_for

AT_A_TIME = 8
MAX_RESIDENT = 1_500_000_000


def test_large_bodies_at_once_do_not_exhaust_memory(place: Place) -> None:
    """Eight bodies of 60 MB at a time are taken one after the other: disk is used for them, not memory."""
    server = place.serve()
    raw = padded(body(place.phones(200)), 60_000_000)

    def post() -> int:
        with place.client(server) as client:
            headers = {"Content-Type": "application/json"}
            return client.post("/sms-campaigns", content=raw, headers=headers, timeout=4 * PATIENCE).status_code

    with ThreadPoolExecutor(AT_A_TIME) as threads:
        answers = [threads.submit(post) for _ in range(AT_A_TIME)]
        most = largest_resident(server, lambda: all(answer.done() for answer in answers))
    assert [answer.result() for answer in answers] == [201] * AT_A_TIME
    assert most < MAX_RESIDENT, f"{most / 1e6:.0f} MB"
    assert list(place.spool.iterdir()) == []


def test_a_body_of_many_small_values_does_not_exhaust_memory(place: Place) -> None:
    """A body that would take far more memory than its own length is refused before it is parsed."""
    server = place.serve()
    raw = b'{"recipients":[' + b",".join([b"{}"] * 20_000_000) + b"]}"
    answers: list[httpx.Response] = []

    def post() -> None:
        with place.client(server) as client:
            answers.append(client.post("/sms-campaigns", content=raw, headers={"Content-Type": "application/json"}))

    sender = threading.Thread(target=post)
    sender.start()
    most = largest_resident(server, lambda: bool(answers))
    sender.join(PATIENCE)
    assert answers[0].status_code == 400
    assert answers[0].json()["error"]["code"] == "invalid_request"
    assert most < MAX_RESIDENT, f"{most / 1e6:.0f} MB"


@pytest.mark.turn(2, "sends large bodies to a server")
@pytest.mark.parametrize("headers", [{"Content-Length": "6000000"}, {"Transfer-Encoding": "chunked"}])
def test_half_a_body_and_a_disconnect_leave_nothing(place: Place, headers: dict[str, str]) -> None:
    """A client that goes away in the midst of its body leaves no file, no campaign, and takes nobody's turn."""
    server = place.serve()
    half = padded(body(place.phones(1000)), 6_000_000)[:3_000_000]
    uploads = [Upload(server, place, headers) for _ in range(2 * AT_A_TIME)]
    for upload in uploads:
        if "Content-Length" in headers:
            upload.send(half)
        else:
            upload.send_chunks([half])
    wait_for("the halves to be taken", lambda: len(list(place.spool.iterdir())) == MAX_LARGE_EACH)
    for upload in uploads:
        upload.close()
    wait_for("the temporary files to go", lambda: not list(place.spool.iterdir()))
    assert place.books.loading() == 0
    assert place.books.campaigns() == {}
    with place.client(server) as client:
        answer = client.post("/sms-campaigns", json=body(place.phones(5000)))
        assert answer.status_code == 201, answer.text
        assert answer.json()["total_recipients"] == 5000
    assert "Traceback" not in server.errors()


def test_a_client_that_disconnects_while_its_campaign_is_made_leaves_it_whole_or_not_at_all(place: Place) -> None:
    """A campaign whose client has disconnected has all of its contacts, or does not exist."""
    server = place.serve()
    raw = padded(body(place.phones(30_000)), 2_000_000)
    upload = Upload(server, place, {"Content-Length": str(len(raw))})
    upload.send(raw)
    wait_for("the loading to begin", lambda: place.books.loading() or place.books.campaigns())
    upload.close()
    wait_for("the loading to end", lambda: not place.books.loading())
    wait_for("the temporary files to go", lambda: not list(place.spool.iterdir()))
    totals = [campaign["recipients_total"] for campaign in place.books.campaigns().values()]
    assert totals in ([], [30_000])
    assert sum(place.books.recipients().values()) == sum(totals)
    assert "Traceback" not in server.errors()
