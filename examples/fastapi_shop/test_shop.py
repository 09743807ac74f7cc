"""The shop as its merchants see it; nobody gets a message, for new workspaces are sandboxes."""

from __future__ import annotations

import time
from pathlib import Path

from fastapi.testclient import TestClient
from shop import make_shop

CAMPAIGN = {
    "name": "Spring",
    "message_body": "Hi {{first_name}}!",
    "sms_carrier": "twilio",
    "sms_from_number": "+14155550199",
    "recipients": [
        {"phone_number": "(415) 555-0102", "first_name": "Ada"},
        {"phone_number": "(415) 555-0103", "first_name": "Grace"},
    ],
}


def signed_up(client: TestClient, name: str) -> dict[str, str]:
    return {"X-Shop-Token": client.post("/merchants", json={"name": name}).json()["token"]}


def test_a_merchants_campaign_ends_in_the_shops_own_table(tmp_path: Path) -> None:
    with TestClient(make_shop(tmp_path)) as client:
        ann, bob = signed_up(client, "Ann"), signed_up(client, "Bob")
        made = client.post("/outreach/sms-campaigns", json=CAMPAIGN, headers=ann)
        assert made.status_code == 201, made.text
        assert client.post(f"/campaigns/{made.json()['id']}/start", headers=ann).json() == {"status": "active"}
        assert client.get("/outreach/sms-campaigns", headers=bob).json()["data"] == []
        deadline = time.monotonic() + 60
        while "CampaignStatusChanged completed" not in (found := client.get("/outcomes", headers=ann).json()):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        assert found.count("RecipientEnded completed") == 2
        assert client.get("/outcomes", headers=bob).json() == []
    with TestClient(make_shop(tmp_path)) as client:
        # After a restart it goes on where it was: nothing is written twice, nothing is missing.
        assert client.get("/outcomes", headers=ann).json() == found


def test_a_caller_who_is_not_signed_in_gets_nothing(tmp_path: Path) -> None:
    with TestClient(make_shop(tmp_path)) as client:
        for path in ("/outcomes", "/outreach/sms-campaigns"):
            assert client.get(path, headers={"X-Shop-Token": "guessed"}).status_code == 401


def test_an_order_is_announced_once(tmp_path: Path) -> None:
    with TestClient(make_shop(tmp_path)) as client:
        ann = signed_up(client, "Ann")
        order = {"number": "42", "phone": "(415) 555-0102"}
        first, second = (client.post("/orders", json=order, headers=ann) for _ in range(2))
        assert first.status_code == 201
        assert first.json() == second.json()
