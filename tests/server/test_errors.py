from __future__ import annotations

import logging
from typing import Any

import pytest
from starlette.testclient import TestClient

import outreach.errors
from outreach import OutreachError
from outreach.errors import DatabaseLogDeleted, DatabaseReplaced, StorageBusy, StorageError, StorageUnreachable
from outreach_server import create_app, errors
from outreach_server.errors import STATUS_BY_ERROR, status_of
from outreach_server.listening.refusal_counter import RefusalCounter
from tests.server.conftest import Service, Tenant


def check_envelope(answer: Any, status: int, code: str) -> dict[str, Any]:
    """Check that an answer is the one envelope, and return what it holds."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"code", "message", "request_id", "details"}
    assert (error["code"], error["request_id"]) == (code, answer.headers["X-Request-Id"])
    assert error["message"]
    assert all(set(detail) == {"path", "message"} for detail in error["details"])
    return error


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/nothing"), ("POST", "/sms-campaigns/"), ("GET", "/campaigns/1"), ("GET", "/CALLS")],
)
def test_an_unknown_path_is_a_404_in_the_envelope(memory_tenant: Tenant, method: str, path: str) -> None:
    """docs/interface.md#error-envelope: unknown routes included; a trailing slash is no other name, and no redirect."""
    check_envelope(memory_tenant.request(method, path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/sms-campaigns", {"GET", "HEAD", "POST"}),
        ("PUT", "/campaigns", {"GET", "HEAD", "POST"}),
        ("GET", "/calls", {"POST"}),
        ("POST", "/calls/1", {"GET", "HEAD"}),
        ("GET", "/sms/settings", {"PATCH"}),
        ("OPTIONS", "/sms", {"POST"}),
        ("QUERY", "/docs", {"GET", "HEAD"}),
    ],
)
def test_a_method_that_a_path_does_not_take_is_a_405(
    memory_tenant: Tenant, method: str, path: str, allowed: set[str]
) -> None:
    """docs/interface.md#error-envelope: unknown methods included, and Allow names all that the path takes."""
    answer = memory_tenant.request(method, path)
    check_envelope(answer, 405, "method_not_allowed")
    assert set(answer.headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize(
    ("error", "status", "logged"),
    [
        (StorageBusy("Nothing was written. /var/lib/outreach.db is locked"), 503, "Busy."),
        (StorageUnreachable("Nothing was written. The server /var/lib hangs"), 503, "/var/lib hangs"),
        (StorageError("/var/lib/outreach.db is gone"), 500, "/var/lib/outreach.db is gone"),
    ],
)
def test_a_database_that_cannot_be_used_is_a_5xx_and_one_line_in_the_log(
    memory_service: Service,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: StorageError,
    status: int,
    logged: str,
) -> None:
    """Where it passes, nothing was changed, and the client is told when to come again.

    docs/interface.md#codes: every 5xx is `internal_error`.
    """
    tenant = memory_service.tenant()
    monkeypatch.setattr(errors, "_busy", RefusalCounter(logging.getLogger("outreach_server"), "storage_busy", "Busy."))

    async def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(memory_service.engine.sms_settings, "update", fail)
    with caplog.at_level(logging.WARNING, "outreach_server"):
        for _ in range(3):
            answer = tenant.patch("/sms/settings", {})
            check_envelope(answer, status, "internal_error")
            assert answer.headers.get("Retry-After") == ("1" if status == 503 else None)
            assert "/var/lib" not in answer.text
    [line] = caplog.records
    assert logged in line.getMessage()
    assert line.exc_info is None


def test_a_full_disk_is_a_503_that_says_so(memory_service: Service) -> None:
    """For a message as for every other write: nothing was changed, and somebody has to make room."""
    tenant, text = memory_service.tenant(), {"to": "+14155550101", "body": "Hello " * 50}

    def limit(tx: Any, more: int) -> None:
        connection = tx.audit._rows.backend.connection
        used = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {used + more}")

    def has_room(more: int) -> None:
        memory_service.run(memory_service.engine._storage.write, lambda tx: limit(tx, more))

    has_room(0)
    answers = [tenant.post("/sms", text) for _ in range(200)]
    refused = [answer for answer in answers if answer.status_code != 201]
    assert refused
    for answer in refused:
        error = check_envelope(answer, 503, "internal_error")
        assert error["message"].startswith("The disk of the database is full")
        assert answer.headers["Retry-After"] == "30"
    has_room(1_000_000)
    assert tenant.post("/sms", text).status_code == 201


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DatabaseLogDeleted("/srv/outreach.db-wal was deleted."), "The log of the database was deleted"),
        (DatabaseReplaced("/srv/outreach.db was replaced."), "The database file was replaced"),
    ],
)
def test_a_database_whose_files_are_gone_is_named_as_readyz_does(
    memory_service: Service, monkeypatch: pytest.MonkeyPatch, error: StorageError, words: str
) -> None:
    """Who sends a request reads what to do, and no path."""
    tenant = memory_service.tenant()

    async def gone(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(memory_service.engine.sms_settings, "update", gone)
    answer = tenant.patch("/sms/settings", {})
    assert check_envelope(answer, 500, "internal_error")["message"].startswith(words)
    assert "/srv" not in answer.text


def test_every_error_of_the_engine_has_a_status() -> None:
    """Errors of a request are 4xx; the others are ours, and are meant to be 500, or 503 where they pass."""
    classes = [
        value
        for value in vars(outreach.errors).values()
        if isinstance(value, type) and issubclass(value, OutreachError)
    ]
    assert set(STATUS_BY_ERROR) < set(classes)
    ours = {cls.__name__ for cls in classes if status_of(cls.__new__(cls)) == 500}
    assert ours == {
        "OutreachError",
        "ArchiveUnavailable",
        "ConfigError",
        "LeaseLost",
        "StorageError",
        "DatabaseMissing",
        "DatabaseNewer",
        "DatabaseOlder",
        "DatabaseInUse",
        "DatabaseReplaced",
        "DatabaseLogDeleted",
        "DispatchRefused",
    }


def test_an_app_whose_lifespan_was_not_run_says_so_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A mounted app's lifespan does not run by itself. The log says how to run it."""
    client = TestClient(create_app("memory://"))
    with caplog.at_level(logging.ERROR, "outreach_server"):
        check_envelope(client.get("/readyz"), 500, "internal_error")
    assert "outreach_server.running" in caplog.text


def test_huge_values_are_not_echoed(memory_tenant: Tenant) -> None:
    """An answer stays small, whatever was sent."""
    answers = [
        memory_tenant.get("/calls/" + "x" * 50_000),
        memory_tenant.patch("/sms/settings", {"x" * 50_000: 1}),
        memory_tenant.post("/calls", {"agent_id": "x" * 50_000, "to": "y" * 50_000}),
        memory_tenant.get("/sms-campaigns?status=" + "x" * 50_000),
    ]
    assert [answer.status_code for answer in answers] == [404, 400, 400, 400]
    assert all(len(answer.content) < 5_000 for answer in answers)


def test_the_access_log_holds_ids_and_no_secrets(memory_service: Service, caplog: pytest.LogCaptureFixture) -> None:
    """SECURITY.md: logs hold ids, no message bodies, no full numbers; nothing that is a secret."""
    tenant = memory_service.tenant()
    with caplog.at_level(logging.DEBUG, "outreach_server"):
        tenant.create(message_body="a private matter")
        tenant.get("/calls/+14155550102")
        tenant.get("/sms-campaigns?search=Somebody")
    assert tenant.workspace.id in caplog.text
    for secret in (tenant.key, "4155550102", "a private matter", "Somebody"):
        assert secret not in caplog.text


def test_good_answers_to_probes_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    """A supervisor asks every few seconds: they are logged at debug, any other answer at info."""
    with (
        TestClient(create_app("memory://", dispatch=False)) as client,
        caplog.at_level(logging.DEBUG, "outreach_server"),
    ):
        assert client.get("/healthz").status_code == 200
        assert client.get("/nowhere").status_code == 404
    levels = {record.endpoint: record.levelname for record in caplog.records if hasattr(record, "endpoint")}
    assert levels == {"Health": "DEBUG", "none": "INFO"}
