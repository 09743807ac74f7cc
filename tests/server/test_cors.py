"""Calls from pages of other origins in a browser."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from outreach import ConfigError
from outreach_server import create_app
from outreach_server.config import ServerConfig
from tests.server.conftest import Service, serve
from tests.server.test_errors import check_envelope

serving = contextmanager(serve)

PAGE = "https://app.example.com"
OTHER = "https://other.example.com"
WANTED = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, content-type, idempotency-key",
}


def asking(service: Service) -> TestClient:
    """Return a client for preflight requests, which no contract lists."""
    return TestClient(service.client.app)


def test_pages_of_a_configured_origin_may_call() -> None:
    """Preflight requests are answered, every other response has the headers, errors and lists included."""
    with serving("memory://", cors_origins=f"{PAGE}, http://localhost:3000") as service:
        tenant = service.tenant()
        for origin in (PAGE, "http://localhost:3000"):
            asked = asking(service).options("/sms", headers={"Origin": origin, **WANTED})
            assert (asked.status_code, asked.headers["Access-Control-Allow-Origin"]) == (200, origin)
            assert "idempotency-key" in asked.headers["Access-Control-Allow-Headers"].lower()
            assert "POST" in asked.headers["Access-Control-Allow-Methods"]
            assert "Access-Control-Allow-Credentials" not in asked.headers
            assert asked.headers["X-Request-Id"]
        for path, status in (("/sms-campaigns", 200), ("/manage/numbers", 200), ("/nowhere", 404)):
            answer = tenant.get(path, headers={"Origin": PAGE})
            assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (status, PAGE)
            assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]
            assert "Origin" in answer.headers["Vary"]


def test_pages_of_other_origins_may_not_call() -> None:
    """A refused preflight request gets the envelope; a response has no header that lets a page read it."""
    with serving("memory://", cors_origins=PAGE) as service:
        tenant = service.tenant()
        refused = asking(service).options("/sms", headers={"Origin": OTHER, **WANTED})
        assert "origin" in check_envelope(refused, 400, "invalid_request")["message"]
        assert "Access-Control-Allow-Origin" not in refused.headers
        odd = {"Origin": PAGE, **WANTED, "Access-Control-Request-Method": "TRACE"}
        check_envelope(asking(service).options("/sms", headers=odd), 400, "invalid_request")
        assert "Access-Control-Allow-Origin" not in tenant.get("/sms-campaigns", headers={"Origin": OTHER}).headers


def test_without_the_setting_no_other_origin_may_call() -> None:
    """OPTIONS is a method that nothing has."""
    with serving("memory://") as service:
        asked = asking(service).options("/sms", headers={"Origin": PAGE, **WANTED})
        check_envelope(asked, 405, "method_not_allowed")
        answer = service.tenant().get("/sms-campaigns", headers={"Origin": PAGE})
        assert not any(name.lower().startswith("access-control") for name in answer.headers)


def test_all_origins_may_be_let_in() -> None:
    """By a star."""
    with serving("memory://", cors_origins="*") as service:
        asked = asking(service).options("/sms", headers={"Origin": OTHER, **WANTED})
        assert (asked.status_code, asked.headers["Access-Control-Allow-Origin"]) == (200, "*")


@pytest.mark.parametrize("origins", ["", "app.example.com", f"{PAGE}/", f"{PAGE},", "https://*.example.com"])
def test_what_is_no_origin_is_refused(origins: str) -> None:
    """In the configuration, and where an app is made."""
    with pytest.raises(ConfigError, match="cors_origins"):
        ServerConfig(cors_origins=origins)
    with pytest.raises(ConfigError, match="is no origin"):
        create_app("memory://", cors_origins=origins)
