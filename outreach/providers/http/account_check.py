"""Shared parts of the adapters' `check` and `problems`: one harmless request, and its result in words."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from outreach.protocols.adapter import AccountCheck, CheckFault, Connection, CredentialField
from outreach.providers.http.json_fields import text_at, value_at

if TYPE_CHECKING:
    import httpx

API_BASE: Final = CredentialField(
    name="api_base",
    description="URL of the provider's API, if not the default: another region, or a test server.",
    secret=False,
    required=False,
)
"""A field of every adapter."""


def api_base(credentials: Mapping[str, str], usual: str) -> str:
    """Return the base URL of the provider's API, without a final slash."""
    return credentials.get(API_BASE.name, usual).rstrip("/")


def api_base_problems(credentials: Mapping[str, str]) -> Sequence[str]:
    """Return what is wrong with the base URL: without https, only loopback is allowed."""
    address = credentials.get(API_BASE.name)
    if address is None:
        return []
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return ["api_base is not a URL."]
    if parts.scheme not in {"http", "https"} or not host or not address.isascii():
        return ["api_base must be a URL such as https://api.example.com."]
    if parts.username or parts.password or parts.query or parts.fragment:
        return ["api_base must be a plain URL: no user, no query, no fragment."]
    if parts.scheme == "http" and not _is_loopback(host):
        return ["api_base must begin with https: credentials and messages would go unencrypted."]
    return []


def plain_text_problems(credentials: Mapping[str, str], names: Sequence[str]) -> Sequence[str]:
    """Return one sentence for each of these values that cannot be a header: blank, or with special characters."""
    return [
        f"{name} must be one line of printable ASCII, without spaces at its ends."
        for name in names
        if name in credentials and not _is_plain(credentials[name])
    ]


def has_value_of(kind: type, *path: str) -> Callable[[object], bool]:
    """Return a check whether JSON has a value of a kind at a path of keys, or is one without a path."""
    return lambda value: isinstance(value_at(value, *path), kind)


async def probe_account(
    connection: Connection,
    request: httpx.Request,
    *,
    provider: str,
    fields: Sequence[CredentialField],
    expected: Callable[[object], bool],
) -> httpx.Response | AccountCheck:
    """Make one request that changes nothing.

    Args:
        connection: The account; redirects are not followed.
        request: Built by its client.
        provider: Its display name.
        fields: The account's fields, which mark the secret ones.
        expected: Whether JSON looks like the provider's response, not somebody else's.

    Returns:
        The response if it is the provider's and successful; else a failed check that says what to do, without secrets.
        It quotes the provider only where the account has the usual base URL.
    """
    import httpx

    try:
        response = await connection.http.send(request, follow_redirects=False)
    except httpx.TimeoutException:
        return not_ok(f"{provider} did not answer in time: check the network from here, and try again.", _UNREACHABLE)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        words = f"{provider} cannot be reached ({type(error).__name__}): check the network, proxies and api_base."
        return not_ok(words, _UNREACHABLE)
    status = response.status_code
    if response.is_success:
        if expected(_json(response)):
            return response
        return not_ok(_NOT_ITS_OWN.format(provider=provider, status=status), _UNREACHABLE)
    if status in _WORDS:
        return not_ok(_WORDS[status].format(provider=provider, status=status), _FAULTS.get(status, "refused"))
    if response.is_client_error:
        secrets = [connection.credentials.get(field.name, "") for field in fields if field.secret]
        secrets.append(request.headers.get("authorization", "").split(" ")[-1])
        # Another base may be the address of an internal service, whose words an owner must not read.
        is_usual = API_BASE.name not in connection.credentials
        message = _provider_message(_json(response), secrets) if is_usual else None
        words = _UNKNOWN if status == httpx.codes.NOT_FOUND else _REFUSED
        quoted = f" {provider} says: {message}" if message else ""
        return not_ok(words.format(provider=provider, status=status) + quoted, "refused")
    words = _REDIRECT if response.is_redirect else _OTHER
    return not_ok(words.format(provider=provider, status=status), _UNREACHABLE)


def not_ok(message: str, fault: CheckFault) -> AccountCheck:
    """Return a check that found something wrong."""
    return AccountCheck(ok=False, message=message, fault=fault)


_UNREACHABLE: Final = "unreachable"
_FAULTS: Final[Mapping[int, CheckFault]] = {402: "funds", 429: "unreachable"}

_WORDS: Final[Mapping[int, str]] = {
    401: "{provider} does not accept the credentials (401): copy them again from its console, and reconnect.",
    402: "{provider} says that the account has no credit (402): add funds there.",
    403: "{provider} knows the credentials but does not permit this (403): check the permissions of the key.",
    429: "{provider} rate-limits requests (429): try again in a minute.",
}
_UNKNOWN: Final = "{provider} does not know the account or resource ({status}): check the ids and api_base."
_REFUSED: Final = "{provider} rejects the request ({status}): check the ids and api_base."
_REDIRECT: Final = (
    "{provider} redirects ({status}), and credentials are not sent elsewhere: check api_base, and proxies or sign-in "
    "pages in between."
)
_NOT_ITS_OWN: Final = (
    "The response ({status}) is not from {provider}'s API: check api_base, and proxies or sign-in pages in between."
)
_OTHER: Final = "{provider} answered with status {status}: try again later, and check its status page."

_MAX_MESSAGE_LENGTH: Final = 200
_MESSAGE_PATHS: Final = (
    ("detail",),
    ("detail", "message"),
    ("message",),
    ("error_message",),
    ("error", "message"),
    ("error",),
    ("title",),
)
"""Where a refusal may have a message, the best one first."""


def _json(response: httpx.Response) -> object:
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def _provider_message(refusal: object, secrets: Sequence[str]) -> str | None:
    """Return a provider's message about a refusal, cut; None if absent, or if it contains a secret."""
    errors = value_at(refusal, "errors")
    first = errors[0] if isinstance(errors, list) and errors else refusal
    message = next(filter(None, (text_at(first, *path) for path in _MESSAGE_PATHS)), None)
    if message is None or any(secret and secret in message for secret in secrets):
        return None
    line = " ".join(message.split())
    return line[:_MAX_MESSAGE_LENGTH] if line.isprintable() else None


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip() != ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
