"""The API of an account at a provider: its address and headers in every request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from outreach.models.dispatch import DispatchOutcome
from outreach.protocols.adapter import Connection
from outreach.providers.http.account_check import api_base
from outreach.providers.http.sending import fetch_json, send_once

if TYPE_CHECKING:
    import httpx


class AccountApi:
    """Makes the requests of an account.

    Args:
        connection: The account.
        usual_base: The URL before the paths, unless the account has another one.
        headers: Those of every request, which authenticate it.
    """

    def __init__(self, connection: Connection, usual_base: str, headers: Mapping[str, str]) -> None:
        self._connection = connection
        self._headers = dict(headers)
        self._base = api_base(connection.credentials, usual_base)

    def request(self, method: str, path: str, **content: Any) -> httpx.Request:
        """Build a request, whose content is given as to httpx."""
        return self._connection.http.build_request(method, self._base + path, headers=self._headers, **content)

    async def fetch(self, method: str, path: str, **content: Any) -> Any:
        """Make a request that changes nothing; return the JSON of a successful response, else None."""
        return await fetch_json(self._connection.http, self.request(method, path, **content))

    async def post(
        self, path: str, read: Callable[[httpx.Response], DispatchOutcome], **content: Any
    ) -> DispatchOutcome:
        """Make a request that reaches a contact, once; see `sending.send_once`."""
        request = self.request("POST", path, **content)
        return await send_once(self._connection.http, request, read, clock=self._connection.clock)
