"""A test client that holds every answer to the contract: whatever a test of the server asks, this is checked too."""

from __future__ import annotations

import json
from typing import Any, Final

import httpx2
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from tests.contract.document import DOCUMENT, resolve, template_of, validator_at

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/openapi.yaml", "/docs"})
"""Paths that need no key and are no part of the contract, which says so."""

_JSON: Final = "application/json"


CALLBACKS = ("/webhooks/", "//webhooks/")
"""Where providers call back: it has statuses of its own, and answers what is well with nothing."""


class CheckedClient(TestClient):
    """Checks status, headers and body of each answer; `mount` is where the app is mounted."""

    def __init__(self, app: Any, *, mount: str = "", **options: Any) -> None:
        super().__init__(app, **options)
        self._mount = mount

    def request(self, method: str, url: Any, **options: Any) -> httpx2.Response:
        """Send a request and check what comes back."""
        answer = super().request(method, url, **options)
        path = answer.request.url.path
        if path.startswith(self._mount):
            check_answer(method.lower(), path.removeprefix(self._mount), answer)
        return answer


def check_answer(method: str, path: str, answer: httpx2.Response) -> None:
    """Check an answer against what the contract declares for its operation and status.

    An unknown path or method has no operation: its answer is the error envelope, with the id of the request. The
    paths that are no part of the contract may answer anything when they answer well.
    """
    template = template_of(path)
    method = "get" if method == "head" else method
    status = answer.status_code
    if template is None or method not in DOCUMENT["paths"][template]:
        if path.startswith(CALLBACKS):
            assert answer.is_error or (status, answer.content) == (204, b"")
            if answer.is_error:
                _check_envelope(answer)
        elif path not in OPEN_PATHS or answer.is_error:
            assert status in {404, 405, 500}, f"{method} {path} is undeclared and was answered with {status}"
            _check_envelope(answer)
        return
    responses = DOCUMENT["paths"][template][method]["responses"]
    declared = str(status) if str(status) in responses else f"{status // 100}XX"
    assert declared in responses, f"{method} {template} answered {status}, which is not declared"
    _check_headers(resolve(responses[declared])["headers"], answer)
    given = answer.headers["Content-Type"].partition(";")[0]
    assert given in resolve(responses[declared])["content"]
    if answer.request.method == "HEAD" or given != _JSON:
        return
    assert answer.headers["Content-Type"] == _JSON
    place = ("paths", template, method, "responses", declared, "content", _JSON, "schema")
    errors = [f"{error.json_path}: {error.message}" for error in validator_at(*place).iter_errors(_json(answer))]
    assert not errors, f"{method} {template} {status}: {errors}"


def _json(answer: httpx2.Response) -> Any:
    """Return the body; Python reads no integer of more than 4300 digits, and a page may have any number of them."""
    return json.loads(answer.text, parse_int=lambda text: int(text[:4000]))


def _check_headers(declared: dict[str, Any], answer: httpx2.Response) -> None:
    for name, header in declared.items():
        schema = resolve(header)["schema"]
        assert name in answer.headers or not resolve(header).get("required"), f"{name} is missing"
        if name in answer.headers:
            text = answer.headers[name]
            value = int(text) if schema["type"] == "integer" else text
            assert Draft202012Validator(schema).is_valid(value), f"{name}: {text}"


def _check_envelope(answer: httpx2.Response) -> None:
    assert answer.headers["Content-Type"] == _JSON
    assert answer.headers["X-Request-Id"]
    if answer.request.method != "HEAD":
        errors = list(validator_at("components", "schemas", "Error").iter_errors(answer.json()))
        assert not errors, errors
