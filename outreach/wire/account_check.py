"""What `check` and `problems` of every adapter share: something harmless is asked once, and the answer put in words."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from outreach.protocols.adapter import AccountCheck, Connection, CredentialField
from outreach.wire.json_fields import text_at, value_at

if TYPE_CHECKING:
    import httpx

API_BASE: Final = CredentialField(
    name="api_base",
    description="Where the provider's API is, when not at its usual address: another region, or a stand-in for tests.",
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


def has_value_of(kind: type, *path: str) -> Callable[[object], bool]:
    """Return what tells whether JSON has a value of a kind at a path of keys; without a path, whether it is one."""
    return lambda value: isinstance(value_at(value, *path), kind)


async def probe_account(
    connection: Connection,
    request: httpx.Request,
    *,
    provider: str,
    fields: Sequence[CredentialField],
    expected: Callable[[object], bool],
) -> httpx.Response | str:
    """Make one request that changes nothing.

    Args:
        connection: The account; redirects are not followed.
        request: Built by its client.
        provider: Its name as people write it, for the words.
        fields: What the account is made of: they say what is a secret.
        expected: Tells the JSON of the provider's answer from that of whoever else may answer.

    Returns:
        The answer where it is the provider's and one of success; else what is wrong and what to do, in words without a
        secret.
    """
    import httpx

    try:
        response = await connection.http.send(request, follow_redirects=False)
    except httpx.TimeoutException:
        return f"{provider} did not answer in time: check the network from here, and try again."
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{provider} cannot be reached ({type(error).__name__}): check the network, proxies and api_base."
    status = response.status_code
    if response.is_success:
        return response if expected(_json(response)) else _NOT_ITS_OWN.format(provider=provider, status=status)
    if status in _WORDS:
        return _WORDS[status].format(provider=provider, status=status)
    if response.is_client_error:
        secrets = [connection.credentials.get(field.name) for field in fields if field.secret]
        said = _said(_json(response), [*filter(None, secrets), request.headers.get("authorization", "").split(" ")[-1]])
        words = _UNKNOWN if status == httpx.codes.NOT_FOUND else _REFUSED
        return words.format(provider=provider, status=status) + (f" {provider} says: {said}" if said else "")
    words = _REDIRECT if response.is_redirect else _OTHER
    return words.format(provider=provider, status=status)


def not_ok(message: str) -> AccountCheck:
    """Return a check that found something wrong."""
    return AccountCheck(ok=False, message=message)


_WORDS: Final[Mapping[int, str]] = {
    401: "{provider} does not accept the credentials (401): copy them anew from its console, and connect again.",
    402: "{provider} says that the account has no credit (402): add funds there.",
    403: "{provider} knows the credentials but does not permit this (403): check what the key may do, and the account.",
    429: "{provider} is asked too often just now (429): try again in a minute.",
}
_UNKNOWN: Final = "{provider} does not know the account or resource ({status}): check the identifiers, and api_base."
_REFUSED: Final = "{provider} does not take the question ({status}): check the identifiers, and api_base."
_REDIRECT: Final = (
    "{provider} points elsewhere ({status}), where no credentials are sent: check api_base, and what stands between, "
    "such as a proxy or a page to sign in."
)
_NOT_ITS_OWN: Final = (
    "What answered ({status}) is not the API of {provider}: check api_base, and what stands between, such as a proxy "
    "or a page to sign in."
)
_OTHER: Final = "{provider} answered with status {status}: try again later, and look at its status page."

_MAX_SAID_LENGTH: Final = 200
_SAID_AT: Final = (
    ("detail",),
    ("detail", "message"),
    ("message",),
    ("error_message",),
    ("error", "message"),
    ("error",),
    ("title",),
)
"""Where a refusal has words for people, the best ones first."""


def _json(response: httpx.Response) -> object:
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def _said(refusal: object, secrets: Sequence[str]) -> str | None:
    """Return a provider's own words about a refusal, cut; None where it has none, or where they hold a secret."""
    errors = value_at(refusal, "errors")
    first = errors[0] if isinstance(errors, list) and errors else refusal
    said = next(filter(None, (text_at(first, *path) for path in _SAID_AT)), None)
    if said is None or any(secret and secret in said for secret in secrets):
        return None
    line = " ".join(said.split())
    return line[:_MAX_SAID_LENGTH] if line.isprintable() else None


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip() != ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
