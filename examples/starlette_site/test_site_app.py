"""The site as its visitors see it; nobody gets a message, for new workspaces are sandboxes."""

from __future__ import annotations

from pathlib import Path

from site_app import make_site
from starlette.testclient import TestClient


def test_a_sign_up_is_confirmed_once(tmp_path: Path) -> None:
    ada = {"name": "Ada", "phone": "+14155550102"}
    with TestClient(make_site(tmp_path)) as site:
        first, second = (site.post("/sign-ups", json=ada) for _ in range(2))
        assert first.status_code == 201
        assert first.json() == second.json()
        refused = site.post("/sign-ups", json=ada | {"phone": "12"})
        assert refused.status_code == 422
        assert "phone number" in refused.json()["problems"][0]
    with TestClient(make_site(tmp_path)) as site:
        assert site.post("/sign-ups", json=ada).json() == first.json()


def test_the_interface_wants_a_key(tmp_path: Path) -> None:
    with TestClient(make_site(tmp_path)) as site:
        assert site.get("/outreach/healthz").status_code == 200
        assert site.get("/outreach/sms-campaigns").status_code == 401
