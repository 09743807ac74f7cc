"""A harness for adapters that use HTTP: a fake provider behind a server that can fail."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl, unquote

from outreach.testing.fault_server import Answer, Fault, FaultServer, Received
from outreach.testing.provider_contract import OUTCOMES, Scenario

if TYPE_CHECKING:
    import httpx

__all__ = ["FakeProvider", "HttpHarness"]

RETRY_AFTER_SECONDS: Final = 7

SHORT_TIMEOUT: Final = (30.0, 0.01, 30.0, 30.0)
"""To connect, to read, to write, and for a connection, in seconds: only reading ends soon."""

FAULTS: Final[Mapping[Scenario, Fault]] = {
    "drops_the_connection": "drop_after",
    "does_not_answer": "silence",
    "times_out": "silence",
    "cuts_the_answer": "cut_answer",
}

STATUSES: Final[Mapping[Scenario, int]] = {
    "has_an_error": 503,
    "answers_307": 307,
    "answers_408": 408,
    "answers_500": 500,
    "answers_502": 502,
    "answers_504": 504,
}


class FakeProvider(Protocol):
    """The answers of a provider: it accepts, refuses, and is asked what it has accepted."""

    def accept(self, request: Received) -> Answer:
        """Accept a message or a call as the provider does, and remember it; or answer a look-up from what it has."""
        ...

    def refuse(self, scenario: Scenario) -> Answer:
        """Return how the provider refuses for good, such as an impossible number, or for now."""
        ...


class HttpHarness:
    """Arranges every scenario of the contracts; see `provider_contract.ProviderHarness`.

    Args:
        server: The server that the adapter asks, entered.
        provider: Makes the answers where the server does not fail.
        connect: Makes the adapter for a provider at a URL.
        asks: Whether a request asks for a message or a call; by default every POST does. Where a provider is looked
            something up by a POST, this distinguishes them.
        http: The client of the adapters, so that it waits briefly in the scenario `times_out`; without it, tests of
            that scenario take as long as the adapter's own time-out.
    """

    scenarios = frozenset[Scenario]({*OUTCOMES, "does_not_answer"})

    def __init__(
        self,
        server: FaultServer,
        provider: FakeProvider,
        connect: Callable[[str], Any],
        asks: Callable[[Received], bool] = lambda request: request.method == "POST",
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._server = server
        self._provider = provider
        self._asks = asks
        self._http = http
        self._timeout = http.timeout if http is not None else None
        self._connect = connect
        self._nowhere = f"http://127.0.0.1:{_closed_port()}"
        self.arrange("accepts")

    def arrange(self, scenario: Scenario) -> None:
        """Have the provider do this with the requests that come from now on."""
        self.adapter = self._connect(self._nowhere if scenario == "cannot_be_reached" else self._server.url)
        if self._http is not None:
            self._http.timeout = SHORT_TIMEOUT if scenario == "times_out" else self._timeout
        self._server.fault = FAULTS.get(scenario)
        self._server.answer = lambda request: self._answer(scenario, request)

    @property
    def requests_made(self) -> int:
        """How many requests have arrived that ask for something."""
        return sum(map(self._asks, self._server.requests))

    @property
    def last_values(self) -> Collection[str]:
        """The values in the path, the query, the headers and the body of the last request that asked for something."""
        last = [request for request in self._server.requests if self._asks(request)][-1]
        return [unquote(last.path), *last.query.values(), *last.headers.values(), *_values(last.body)]

    def _answer(self, scenario: Scenario, request: Received) -> Answer:
        if scenario == "too_busy":
            return Answer(status=429, headers={"retry-after": str(RETRY_AFTER_SECONDS)}, body=b"{}")
        if (status := STATUSES.get(scenario)) is not None:
            # A redirect leads to the same address, so that a request that follows it is counted.
            return Answer(status=status, headers={"location": request.path}, body=b"<h1>Something went wrong</h1>")
        if scenario == "answers_nonsense":
            return Answer(status=201, body=b"<html>")
        if scenario in {"refuses_for_good", "refuses_for_now"} and self._asks(request):
            return self._provider.refuse(scenario)
        return self._provider.accept(request)


def _values(body: bytes) -> Iterator[str]:
    """Return the values in a body of JSON or of a form."""
    text = body.decode("utf-8", "replace")
    try:
        yield from _leaves(json.loads(text))
    except ValueError:
        yield from (text, *dict(parse_qsl(text)).values())


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    else:
        yield str(value)


def _closed_port() -> int:
    """Return a port of the loopback without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
