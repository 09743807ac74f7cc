from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from outreach import WorkspaceMode
from outreach.core.vault import Vault
from tests.fake_provider import CREDENTIALS, FakeAdapter, sign
from tests.server.conftest import Service
from tests.server.test_errors import check_envelope


class Caller:
    """A provider that calls back over HTTP."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.workspace = service.tenant(mode=WorkspaceMode.LIVE).workspace
        self.account = service.run(service.engine.accounts.connect, self.workspace.id, "twilio", CREDENTIALS)
        self.path = f"/webhooks/{self.account.id}"

    def call(self, *events: Any, path: str | None = None, query: str = "", secret: str | None = None) -> Any:
        """Send a signed callback."""
        body = json.dumps(events).encode()
        url = f"http://testserver{path or self.path}{query}"
        signature = sign(url, body, secret or CREDENTIALS["signing_secret"])
        return self.service.client.post(url, content=body, headers={"X-Signature": signature})

    def kept(self) -> list[str]:
        """Return the events that were kept."""
        return [record.event_id for record in self.service.run(self.service.engine.callbacks.list, self.workspace.id)]


@pytest.fixture
def caller(service: Service, fake: FakeAdapter) -> Caller:
    """Return the provider of an account."""
    return Caller(service)


def test_a_signed_callback_is_taken_in_without_a_key(caller: Caller) -> None:
    """204 as soon as it is committed; again for one that has come before."""
    for _ in range(2):
        answer = caller.call({"id": "e1"}, query="?dispatch=1&x=%20")
        assert (answer.status_code, answer.content) == (204, b"")
    assert caller.kept() == ["e1"]


def test_a_callback_that_is_not_the_providers_changes_nothing(caller: Caller) -> None:
    """403 in the envelope, without a word of why it does not fit that would help to forge one."""
    check_envelope(caller.call({"id": "e1"}, secret="other"), 403, "callback_rejected")
    check_envelope(caller.service.client.post(caller.path), 403, "callback_rejected")
    assert caller.kept() == []


@pytest.mark.parametrize(("order", "status"), [(("wrong", "right"), 204), (("right", "wrong"), 403)])
def test_of_a_repeated_header_the_last_counts(caller: Caller, order: tuple[str, str], status: int) -> None:
    """As adapters are told, and as they have it of a repeated parameter."""
    body = b'[{"id": "e1"}]'
    signatures = {"wrong": "0" * 64, "right": sign(f"http://testserver{caller.path}", body)}
    headers = [("X-Signature", signatures[order[0]]), ("x-signature", signatures[order[1]])]
    assert caller.service.client.post(caller.path, content=body, headers=headers).status_code == status
    assert caller.kept() == (["e1"] if status == 204 else [])


def test_an_address_that_names_no_account_is_not_found(caller: Caller) -> None:
    """Whatever stands there, and by whatever method."""
    for path in ("/webhooks/0195554e-0000-7000-8000-00000000cafe", "/webhooks/x", "/webhooks/%00", "/webhooks/"):
        check_envelope(caller.call({"id": "e1"}, path=path), 404, "not_found")
    check_envelope(caller.service.client.get(caller.path), 405, "method_not_allowed")


def test_a_callback_that_is_too_large_is_refused(caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
    """It is refused before it is read. The log has one line for all of them."""
    with caplog.at_level(logging.WARNING, "outreach"):
        for _ in range(3):
            answer = caller.service.client.post(caller.path, content=b" " * (FakeAdapter.max_callback_bytes + 1))
            check_envelope(answer, 400, "invalid_request")
    (line,) = [record for record in caplog.records if getattr(record, "action", "") == "callback_not_received"]
    assert "larger than" in line.getMessage()


def test_what_cannot_be_opened_is_asked_for_again(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A server without the key answers 503, after which providers come again; what to do its log alone tells."""
    other = Vault(keys="A" * 43 + "=")
    monkeypatch.setattr(caller.service.engine._connections, "_vault", other)
    with caplog.at_level(logging.ERROR, "outreach_server"):
        answer = caller.call({"id": "e1"})
    check_envelope(answer, 503, "internal_error")
    assert "key" not in answer.text.lower().replace("keywords", "")
    assert caller.kept() == []
    (record,) = [record for record in caplog.records if getattr(record, "action", None) == "callback_not_taken"]
    told = record.getMessage()
    assert all(part in told for part in (caller.account.id, "twilio", "another key", "OUTREACH_SECRET_KEY"))
    assert not [value for value in CREDENTIALS.values() if value in told]


def test_an_address_with_a_slash_at_its_end_is_the_accounts(caller: Caller) -> None:
    """The provider signs the address as it was entered there."""
    assert caller.call({"id": "e1"}, path=f"{caller.path}/").status_code == 204
    check_envelope(caller.call({"id": "e2"}, path=f"{caller.path}/", secret="other"), 403, "callback_rejected")
    assert caller.kept() == ["e1"]


@pytest.mark.parametrize("address", ["/webhooks//{id}", "//webhooks/{id}", "//webhooks//{id}/"])
def test_an_address_with_a_slash_too_many_is_the_accounts(caller: Caller, address: str) -> None:
    """A public address with a slash at its end gives such a one; the provider signs it as it was entered."""
    path = address.format(id=caller.account.id)
    assert caller.call({"id": "e1"}, path=path).status_code == 204
    check_envelope(caller.call({"id": "e2"}, path=path, secret="other"), 403, "callback_rejected")
    assert caller.kept() == ["e1"]


@pytest.mark.parametrize(
    ("method", "address", "status", "code", "how"),
    [
        ("GET", "/webhooks/{id}?Body=STOP", 405, "method_not_allowed", "POST"),
        ("PUT", "/webhooks/{id}", 405, "method_not_allowed", "POST"),
        ("GET", "/webhooks/{id}/", 405, "method_not_allowed", "POST"),
        ("GET", "/webhooks//{id}", 405, "method_not_allowed", "POST"),
        ("POST", "/webhooks/{id}/sms", 404, "not_found", "path"),
        ("GET", "/webhooks/{id}/sms/status?Body=STOP", 404, "not_found", "path"),
        ("POST", "/webhook/{id}", 404, "not_found", "path"),
        ("POST", "/api/webhooks/{id}", 404, "not_found", "path"),
        ("POST", "/{id}", 404, "not_found", "path"),
        ("POST", "/WebHooks/{id}", 404, "not_found", "path"),
        ("POST", "/webhooks/{ID}", 404, "not_found", "path"),
        ("POST", "/webhooks/{id}.", 404, "not_found", "path"),
        ("GET", "/hooks/{ID}/sms?Body=STOP", 404, "not_found", "path"),
    ],
)
def test_a_misdirected_callback_is_warned_of(
    caller: Caller, caplog: pytest.LogCaptureFixture, method: str, address: str, status: int, code: str, how: str
) -> None:
    """In the log and for `doctor`, once: a STOP may have been in it. Its content is not told."""
    with caplog.at_level(logging.WARNING, "outreach"):
        for _ in range(3):
            path = address.format(id=caller.account.id, ID=caller.account.id.upper())
            check_envelope(caller.service.client.request(method, path), status, code)
    (line,) = [record for record in caplog.records if getattr(record, "action", "") == "callback_misdirected"]
    told = line.getMessage()
    assert caller.account.id in told
    assert how in told
    assert "Body" not in told
    (kept,) = caller.kept()
    assert kept.startswith("misdirected:")
    found = caller.service.run(caller.service.engine.diagnose, network=False)
    assert [one.path for one in found.findings if one.code == "callback_misdirected"] == [
        f"account {caller.account.id}"
    ]


def test_what_no_provider_sends_is_not_warned_of(caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
    """Probes, and addresses of no account."""
    with caplog.at_level(logging.WARNING, "outreach"):
        for method in ("HEAD", "OPTIONS"):
            caller.service.client.request(method, caller.path)
            caller.service.client.request(method, f"{caller.path}/sms")
            caller.service.client.request(method, f"/api{caller.path}")
        check_envelope(caller.service.client.get("/webhooks/x/sms"), 404, "not_found")
        for path in ("/0195554e-0000-7000-8000-00000000cafe", "/webhooks/0195554E-0000-7000-8000-00000000CAFE"):
            check_envelope(caller.service.client.post(path), 404, "not_found")
    assert caplog.records == []
    assert caller.kept() == []


def test_only_a_few_ids_of_one_path_are_looked_up(caller: Caller) -> None:
    """A long path does not cause many reads of the database."""
    others = "/".join(f"0195554e-0000-7000-8000-{n:012d}" for n in range(4))
    check_envelope(caller.service.client.post(f"/{others}/{caller.account.id}"), 404, "not_found")
    assert caller.kept() == []
