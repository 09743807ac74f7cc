"""Prism checks bodies against the document, and every example passes."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.contract.document import DOCUMENT, operations, resolve
from tests.contract_tools.conftest import Sandbox
from tests.contract_tools.tools import CONTRACT, Tools, prism

pytestmark = pytest.mark.nightly("examples of openapi.yaml against its mock")

JSON = "application/json"
BYTES = "application/octet-stream"
VIOLATIONS = "sl-violations"
"""The header in which prism tells what it found wrong, in a request and in an answer."""

REQUESTS = [
    (method, path, name, example["value"])
    for path, method, operation in operations()
    for name, example in operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("examples", {}).items()
]
ANSWERS = [
    (method, path, status, name, resolve(example)["value"])
    for path, method, operation in operations()
    for status, response in operation["responses"].items()
    # A report as a page and an export have no JSON.
    for name, example in resolve(response)["content"].get(JSON, {"examples": {}})["examples"].items()
]


PARAMETERS = [
    (method, path, parameter, name, example["value"])
    for path, method, operation in operations()
    for parameter in map(resolve, operation.get("parameters", []))
    for name, example in (parameter.get("examples") or {"example": {"value": parameter["example"]}}).items()
]


@pytest.fixture(scope="module")
def mock(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Run a mock of the document."""
    log = tmp_path_factory.mktemp("prism") / "log.txt"
    with prism(tools, "mock", CONTRACT, "--errors", log=log) as url, client_of(url) as client:
        yield client


def client_of(url: str) -> httpx.Client:
    """Return a client with some key: prism looks only whether there is one."""
    return httpx.Client(base_url=url, headers={"Authorization": "Bearer key"}, timeout=30, trust_env=False)


def smallest(method: str, path: str) -> Any:
    """Return a body that an operation takes; None where it takes none."""
    if BYTES in DOCUMENT["paths"][path][method].get("requestBody", {}).get("content", {}):
        return b"phone_number\n"
    return next((body for other, place, _, body in REQUESTS if (other, place) == (method, path)), None)


def ask(client: httpx.Client, method: str, path: str, body: Any, query: Any = None, **headers: str) -> httpx.Response:
    """Send a request: bytes as they are, another body as JSON."""
    arguments: dict[str, Any] = {} if body is None else {"json": body}
    if isinstance(body, bytes):
        arguments = {"content": body}
        headers["Content-Type"] = BYTES
    place = re.sub(r"\{\w+\}", "7f0c2a52", path)
    return client.request(method, place, params=query, headers=headers, **arguments)


@pytest.mark.parametrize(
    ("method", "path", "name", "body"), REQUESTS, ids=[f"{method} {path} {name}" for method, path, name, _ in REQUESTS]
)
def test_every_example_of_a_request_passes(mock: httpx.Client, method: str, path: str, name: str, body: Any) -> None:
    """The body is taken; the same one with a field of the wrong type is not, so that bodies are looked at."""
    answer = ask(mock, method, path, body)
    assert answer.is_success, answer.text
    assert VIOLATIONS not in answer.headers
    broken = copy.deepcopy(body)
    broken[next(iter(broken))] = {"no": {"such": "value"}}
    if "channel" in body:
        del broken["recipients"]
    refused = ask(mock, method, path, broken)
    assert refused.status_code == 400
    assert '"body"' in refused.headers[VIOLATIONS]


@pytest.mark.parametrize(
    ("method", "path", "parameter", "name", "value"),
    PARAMETERS,
    ids=[f"{method} {path} {parameter['name']} {name}" for method, path, parameter, name, _ in PARAMETERS],
)
def test_every_example_of_a_parameter_passes(
    mock: httpx.Client, method: str, path: str, parameter: Any, name: str, value: Any
) -> None:
    """In the path, a header and the query; what is none of its values does not, unless any text is one."""
    body = smallest(method, path)
    if parameter["in"] == "header":
        answer = ask(mock, method, path, body, **{parameter["name"]: str(value)})
        refused = ask(mock, method, path, body, **{parameter["name"]: "no such value"})
        assert '"header"' in refused.headers[VIOLATIONS]
    elif parameter["in"] == "path":
        answer = ask(mock, method, path.replace(f"{{{parameter['name']}}}", value), body)
    else:
        answer = ask(mock, method, path, body, query={parameter["name"]: value})
        if "pattern" not in resolve(parameter["schema"]):
            refused = ask(mock, method, path, body, query={parameter["name"]: "no such value"})
            assert '"query"' in refused.headers[VIOLATIONS]
    assert answer.is_success, answer.text
    assert VIOLATIONS not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "status", "name", "body"),
    ANSWERS,
    ids=[f"{method} {path} {status} {name}" for method, path, status, name, _ in ANSWERS],
)
def test_every_example_of_an_answer_passes(
    mock: httpx.Client, method: str, path: str, status: str, name: str, body: Any
) -> None:
    """Prism answers with the example, and finds nothing wrong with it."""
    code = status.replace("XX", "00")
    answer = ask(mock, method, path, smallest(method, path), Prefer=f"code={code}, example={name}")
    assert (answer.status_code, answer.json()) == (int(code), body)
    assert VIOLATIONS not in answer.headers


def test_a_wrong_example_of_an_answer_is_found(tools: Tools, tmp_path: Path) -> None:
    """The control: an example that its schema does not take is reported."""
    document = copy.deepcopy(DOCUMENT)
    call = document["paths"]["/calls/{id}"]["get"]["responses"]["200"]["content"][JSON]["examples"]
    call["completed"]["value"]["attempt"] = 0
    (tmp_path / "broken.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    log = tmp_path / "log.txt"
    with prism(tools, "mock", tmp_path / "broken.yaml", log=log) as url, client_of(url) as client:
        answer = ask(client, "get", "/calls/{id}", None, Prefer="code=200, example=completed")
        assert "attempt" in answer.headers[VIOLATIONS]


def test_a_running_server_answers_as_the_document_says(tools: Tools, sandbox: Sandbox, tmp_path: Path) -> None:
    """Between a client and the server, prism finds nothing wrong in what either of them says."""
    log = tmp_path / "log.txt"
    with prism(tools, "proxy", CONTRACT, sandbox.url, log=log) as url, client_of(url) as client:
        client.headers["Authorization"] = f"Bearer {sandbox.key}"
        known = {"agent_id": sandbox.agent_id}
        for path, method, _ in operations():
            bodies = [body for other, place, _, body in REQUESTS if (other, place) == (method, path)]
            for body in bodies or [smallest(method, path)]:
                if isinstance(body, dict):
                    body = body | {name: value for name, value in known.items() if name in body}
                answer = ask(client, method, path, body)
                # The made-up call is none, and two calls to one number are one too many.
                assert answer.is_success or answer.status_code in {404, 409}, answer.text
                assert VIOLATIONS not in answer.headers, f"{method} {path}: {answer.headers[VIOLATIONS]}"
                if (method, path) == ("post", "/campaigns"):
                    known["template_id"] = answer.json()["id"]
