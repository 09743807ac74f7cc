"""What `check` and `problems` of every adapter share: something harmless is asked once, and the answer put in words."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import httpx

from outreach.protocols.adapter import AccountCheck, CredentialField

API_BASE: Final = CredentialField(
    name="api_base",
    meaning="Where the provider's API is, when not at its usual address: another region, or a stand-in for tests.",
    secret=False,
    required=False,
)
"""A field that every adapter has."""


def api_base(credentials: Mapping[str, str], usual: str) -> str:
    """Return where the provider's API is, without a slash at the end."""
    return credentials.get(API_BASE.name, usual).rstrip("/")


def api_base_problems(credentials: Mapping[str, str]) -> Sequence[str]:
    """Return what is wrong with the address: only the loopback is talked to without encryption."""
    address = credentials.get(API_BASE.name)
    if address is None:
        return []
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return ["api_base is no URL."]
    if parts.scheme not in {"http", "https"} or not host or not address.isascii():
        return ["api_base must be a URL such as https://api.example.com."]
    if parts.username or parts.password or parts.query or parts.fragment:
        return ["api_base must be a plain address: no user, no query, no fragment."]
    if parts.scheme == "http" and not _is_loopback(host):
        return ["api_base must begin with https: credentials and messages would go unencrypted."]
    return []


def plain_text_problems(credentials: Mapping[str, str], names: Sequence[str]) -> Sequence[str]:
    """Return one sentence for each of these values that could not stand in a header: blank, or with odd characters."""
    return [
        f"{name} must be one line of ordinary characters, without spaces at its ends."
        for name in names
        if name in credentials and not _is_plain(credentials[name])
    ]


async def ask_harmless(http: httpx.AsyncClient, request: httpx.Request, *, provider: str) -> httpx.Response | str:
    """Make one request that changes nothing.

    Args:
        http: The client; redirects are not followed.
        request: Built by the same client.
        provider: Its name as people write it, for the words.

    Returns:
        The answer where it is one of success; else what is wrong and what to do, in words without a secret.
    """
    try:
        response = await http.send(request, follow_redirects=False)
    except httpx.TimeoutException:
        return f"{provider} did not answer in time: check the network from here, and try again."
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{provider} cannot be reached ({type(error).__name__}): check the network, proxies and api_base."
    if response.is_success:
        return response
    return _WORDS.get(response.status_code, _OTHER).format(provider=provider, status=response.status_code)


def not_ok(message: str) -> AccountCheck:
    """Return a check that found something wrong."""
    return AccountCheck(ok=False, message=message)


_WORDS: Final[Mapping[int, str]] = {
    401: "{provider} does not accept the credentials (401): copy them anew from its console, and connect again.",
    402: "{provider} says that the account has no credit (402): add funds there.",
    403: "{provider} knows the credentials but does not permit this (403): check what the key may do, and the account.",
    404: "{provider} does not know the account or resource (404): check the identifiers, and api_base.",
    429: "{provider} is asked too often just now (429): try again in a minute.",
}
_OTHER: Final = "{provider} answered with status {status}: try again later, and look at its status page."


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip() != ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
