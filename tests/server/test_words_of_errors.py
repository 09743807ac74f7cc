"""Errors in words that no log may hold, where a request is answered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from outreach import ConfigError, NewWorkspace, Outreach
from outreach.core.vault import Vault
from outreach.protocols import Callback, CallbackEvent, Connection
from outreach.protocols.adapter import CallbackRefused
from outreach_server import create_app
from tests.fake_provider import CREDENTIALS
from tests.logged import NUMBER, SECRETS, TOKEN, break_down, listening
from tests.own_adapter import OwnAdapter
from tests.server.conftest import Service
from tests.server.test_errors import check_envelope


def test_a_request_that_fails(memory_service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/interface.md#error-envelope: a 5xx contains no internals. The log has its id, and where it failed."""
    tenant = memory_service.tenant()

    async def broken(*_: Any, **__: Any) -> None:
        break_down()

    monkeypatch.setattr(memory_service.engine.http, "list_campaigns", broken)
    with listening() as log:
        answer = tenant.get("/sms-campaigns", headers={"X-Request-Id": "trace-7"})
    assert check_envelope(answer, 500, "internal_error")["details"] == []
    assert not [word for word in ("OwnError", "Traceback", *SECRETS) if word in answer.text]
    log.holds_no_words()
    log.tells_where("request_failed")
    (record,) = log.of("request_failed")
    assert vars(record)["request_id"] == "trace-7"


class Reading(OwnAdapter):
    """Fails as it reads a callback."""

    error: Exception | None = None

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        """Fail."""
        if self.error is not None:
            raise self.error
        break_down()


def test_a_callback_that_an_adapter_of_ones_own_cannot_read() -> None:
    """Whether it fails, refuses it, or says that its settings are wrong: what it quotes is not in the log."""
    adapter = Reading()
    engine = Outreach.open("memory://", adapters=[adapter], vault=Vault(keys="A" * 43 + "="))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with engine:
            yield

    host = Starlette(routes=[Mount("/", create_app(engine=engine))], lifespan=lifespan)
    with TestClient(host) as client, listening() as log:
        assert client.portal is not None
        workspace = client.portal.call(engine.workspaces.create, NewWorkspace(name="Acme"))
        account = client.portal.call(engine.accounts.connect, workspace.id, "mycarrier", CREDENTIALS)
        statuses = []
        for error in (None, CallbackRefused(f"{NUMBER} is unknown, {TOKEN!r}"), ConfigError(f"No {TOKEN!r}: {NUMBER}")):
            adapter.error = error
            statuses.append(client.post(f"/webhooks/{account.id}", content=b"{}").status_code)
    assert statuses == [500, 403, 503]
    log.holds_no_words()
    log.tells_where("request_failed")
    lines = [*log.of("callback_refused"), *log.of("callback_not_taken")]
    assert [record.getMessage() for record in lines] == [
        f"callback refused for account {account.id}: +***********89 is unknown, '…'",
        "could not store a callback: No '…': +***********89",
    ]
