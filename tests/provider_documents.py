"""The providers' published OpenAPI documents: other people's, read and tested against where they are, never kept here.

`OUTREACH_PROVIDER_DOCUMENTS` names their directory, and then all of them must be there. Without it they are looked for
in `shared/providers` beside the checkout; where they are not, the tests that need them are skipped and say so.
"""

from __future__ import annotations

import copy
import functools
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from openapi_core import Config, OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest

VARIABLE: Final = "OUTREACH_PROVIDER_DOCUMENTS"

DOCUMENTS: Final = (
    "elevenlabs_call",
    "retell_call",
    "telnyx_messages",
    "twilio_messages",
    "vapi_call",
    "vapi_endedReason",
    "vonage_messages",
)
"""All that tests ask for, by the names of their files without `.json`."""


def directory() -> Path:
    """Return where the documents are looked for."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "providers"
    return Path(os.environ.get(VARIABLE) or beside)


def missing() -> Sequence[str]:
    """Return the names of the documents that are not there."""
    return [name for name in DOCUMENTS if not (directory() / f"{name}.json").is_file()]


def load(name: str) -> dict[str, Any]:
    """Return a document, such as `twilio_messages`; one's own copy, to be changed at will.

    The test that asks for one that is not there is skipped, or fails where the variable says that it must be there.
    """
    assert name in DOCUMENTS
    path = directory() / f"{name}.json"
    if not path.is_file():
        absent = pytest.fail if os.environ.get(VARIABLE) else pytest.skip
        absent(f"{path} is not there: {VARIABLE} names the directory of the providers' documents")
    document: dict[str, Any] = copy.deepcopy(_read(path))
    return document


def spec(name: str) -> OpenAPI:
    """Return what openapi-core checks requests and answers against."""
    path = directory() / f"{name}.json"
    load(name)
    return _spec(path)


def as_mock(request: httpx.Request) -> MockRequest:
    """Return a request that an adapter made in the form that openapi-core reads."""
    url = request.url
    return MockRequest(
        f"{url.scheme}://{url.netloc.decode('ascii')}",
        request.method.lower(),
        url.path,
        args=dict(url.params.multi_items()),
        headers=dict(request.headers),
        data=request.content or None,
        content_type=request.headers.get("content-type", "").partition(";")[0],
    )


def check(name: str, request: httpx.Request) -> None:
    """Hold a request against the document.

    Raises:
        OpenAPIError: It is not what the document asks for.
    """
    spec(name).validate_request(as_mock(request))


def is_refused(name: str, request: httpx.Request) -> bool:
    """Return whether the document refuses a request: what shows that a check of its kind can fail at all."""
    try:
        check(name, request)
    except OpenAPIError:
        return True
    return False


def changed(request: httpx.Request, *, body: Callable[[bytes], bytes] | None = None, **parts: Any) -> httpx.Request:
    """Return a request with another body, or with other parts of its URL (`params`, `path`)."""
    headers = {name: value for name, value in request.headers.items() if name != "content-length"}
    content = request.content if body is None else body(request.content)
    return httpx.Request(request.method, request.url.copy_with(**parts), headers=headers, content=content)


def without(field: str) -> Callable[[bytes], bytes]:
    """Return what takes a field out of a JSON body."""

    def drop(body: bytes) -> bytes:
        value = json.loads(body)
        del value[field]
        return json.dumps(value).encode()

    return drop


@functools.cache
def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


@functools.cache
def _spec(path: Path) -> OpenAPI:
    # Not all of the documents are valid OpenAPI themselves; what they say of requests can be checked nevertheless.
    return OpenAPI.from_dict(copy.deepcopy(_read(path)), config=Config(spec_validator_cls=None))  # type: ignore[arg-type]
