from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx

from tests.process.place import Place, body
from tests.process.server import ServerProcess

T = TypeVar("T")

CLIENTS = 8
CAMPAIGNS = 400


def at_once(place: Place, server: ServerProcess, requests: Sequence[Callable[[httpx.Client], T]]) -> list[T]:
    """Carry requests out by eight clients at a time, each with connections of its own."""

    def work(share: Sequence[Callable[[httpx.Client], T]]) -> list[T]:
        with place.client(server) as client:
            return [request(client) for request in share]

    with ThreadPoolExecutor(CLIENTS) as threads:
        shares = [requests[number::CLIENTS] for number in range(CLIENTS)]
        return [answer for answers in threads.map(work, shares) for answer in answers]


def listed(client: httpx.Client) -> list[dict[str, Any]]:
    """Return all campaigns, page by page."""
    found: list[dict[str, Any]] = []
    page = 1
    while data := client.get("/sms-campaigns", params={"page": page, "page_size": 100}).json()["data"]:
        found += data
        page += 1
    return found


def test_campaigns_created_at_once_are_all_there(place: Place) -> None:
    """400 campaigns that eight clients create at once are all there, once each, in an order that holds."""
    server = place.serve()

    def create(number: int) -> Callable[[httpx.Client], tuple[int, str]]:
        raw = body(place.phones(2), name=f"Campaign {number}")

        def request(client: httpx.Client) -> tuple[int, str]:
            answer = client.post("/sms-campaigns", json=raw)
            return answer.status_code, answer.json().get("id", answer.text)

        return request

    answers = at_once(place, server, [create(number) for number in range(CAMPAIGNS)])
    assert {status for status, _ in answers} == {201}
    with place.client(server) as client:
        found = listed(client)
    assert len(found) == CAMPAIGNS
    assert {campaign["id"] for campaign in found} == {identifier for _, identifier in answers}
    assert {campaign["name"] for campaign in found} == {f"Campaign {number}" for number in range(CAMPAIGNS)}
    order = [(campaign["created_at"], campaign["id"]) for campaign in found]
    assert order == sorted(order, reverse=True)
    place.books.check_counters()


def test_one_key_used_at_once_makes_one_campaign(place: Place) -> None:
    """One Idempotency-Key with one body, sent by eight clients at once, makes one campaign and one answer."""
    server = place.serve()
    raw = body(place.phones(2000))

    def create(client: httpx.Client) -> tuple[int, bytes]:
        answer = client.post("/sms-campaigns", json=raw, headers={"Idempotency-Key": "spring-1"})
        return answer.status_code, answer.content

    answers = at_once(place, server, [create] * CLIENTS)
    assert {status for status, _ in answers} == {201}
    assert len({content for _, content in answers}) == 1
    assert len(place.books.campaigns()) == 1
    assert place.books.recipients() == {"pending": 2000}
    with place.client(server) as client:
        other = client.post("/sms-campaigns", json={**raw, "name": "Other"}, headers={"Idempotency-Key": "spring-1"})
    assert other.status_code == 400


def test_changes_of_different_fields_at_once_are_all_kept(place: Place) -> None:
    """PATCHes of different settings at once do not undo each other."""
    server = place.serve()
    changes: list[dict[str, Any]] = [
        {"footer_enabled": False},
        {"footer_text": "Text STOP"},
        {"max_segments": 3},
        {"retry_enabled": True},
        {"retry_max_attempts": 2},
        {"retry_delay_minutes": 45},
        {"custom_variables": ["city"]},
    ]

    def change(fields: dict[str, Any]) -> Callable[[httpx.Client], int]:
        return lambda client: client.patch("/sms/settings", json=fields).status_code

    assert set(at_once(place, server, [change(fields) for fields in changes * 3])) == {200}
    with place.client(server) as client:
        settings = client.patch("/sms/settings", json={}).json()
    assert settings == {name: value for fields in changes for name, value in fields.items()}
