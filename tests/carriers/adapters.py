"""What holds for the adapter of every carrier: its contract, and its credentials."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Mapping

import httpx
import pytest

from outreach.core.clock import SystemClock
from outreach.protocols.adapter import CarrierAdapter
from outreach.testing.carrier_contract import CarrierContract
from outreach.testing.fault_server import FaultServer
from outreach.testing.http_harness import FakeProvider, HttpHarness
from tests.carriers.kit import connection


class StandInContract(CarrierContract):
    """The contract of carriers; a subclass names the adapter, its credentials, and who plays the carrier."""

    adapter: CarrierAdapter
    credentials: Mapping[str, str]
    stand_in: Callable[[], FakeProvider]

    @pytest.fixture
    async def harness(self, anyio_backend: str) -> AsyncIterator[HttpHarness]:
        """Return the adapter with its stand-in."""
        stand_in = type(self).stand_in()
        async with FaultServer(stand_in.accept) as server, httpx.AsyncClient() as http:
            yield HttpHarness(
                server,
                stand_in,
                lambda url: self.adapter.connect(
                    connection({**self.credentials, "api_base": url}, http=http, clock=SystemClock())
                ),
                http=http,
            )


class AdapterRules:
    """The tests; a subclass names the adapter, and credentials with all that is required."""

    adapter: CarrierAdapter
    credentials: Mapping[str, str]

    def test_the_package_has_its_adapter(self) -> None:
        """`outreach/providers/carriers/NAME/__init__.py` has the object `ADAPTER`, of the package's name."""
        module = importlib.import_module(f"outreach.providers.carriers.{self.adapter.name}")
        assert module.ADAPTER is self.adapter

    def test_fields_are_described(self) -> None:
        """Each field has a name of its own and a sentence."""
        names = [field.name for field in self.adapter.fields]
        assert len(names) == len(set(names))
        assert all(field.description.endswith(".") for field in self.adapter.fields)
        assert {field.name for field in self.adapter.fields if field.required} <= set(self.credentials)

    def test_good_credentials_have_no_problem(self) -> None:
        """The control for what follows."""
        assert list(self.adapter.problems(self.credentials)) == []

    @pytest.mark.parametrize("value", ["", " ", "a\nb", "a\r\nX-Injected: yes", "ключ", " padded "])
    def test_a_value_that_cannot_stand_in_a_header_is_a_problem(self, value: str) -> None:
        """What goes into a request's head is one line of ordinary characters."""
        for field in self.adapter.fields:
            if field.required:
                problems = self.adapter.problems({**self.credentials, field.name: value})
                assert any(field.name in problem for problem in problems), field.name

    @pytest.mark.parametrize(
        ("address", "fits"),
        [
            ("https://api.example.com", True),
            ("https://api.example.com:8443/prefix/", True),
            ("http://127.0.0.1:8080", True),
            ("http://[::1]:8080", True),
            ("http://localhost:8080", True),
            ("http://api.example.com", False),
            ("http://localhost.example.com", False),
            ("ftp://api.example.com", False),
            ("api.example.com", False),
            ("https://user:secret@api.example.com", False),
            ("https://api.example.com?x=1", False),
            ("https://api.example.com#x", False),
            ("https://", False),
            ("https://[", False),
            ("https://api.example.com:port", False),
            ("", False),
        ],
    )
    def test_only_the_loopback_is_talked_to_without_encryption(self, address: str, fits: bool) -> None:
        """`api_base` is another region, or a stand-in on this machine."""
        assert (list(self.adapter.problems({**self.credentials, "api_base": address})) == []) is fits

    def test_secrets_are_marked(self) -> None:
        """What is shown again is no secret: identifiers and addresses."""
        shown = {field.name for field in self.adapter.fields if not field.secret}
        assert not [name for name in shown if "secret" in name or "token" in name or "private" in name]
