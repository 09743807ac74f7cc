"""Tests of callback URLs: a callback of ours goes the way of the provider's, and the database is asked for it."""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

import anyio

from outreach.core.config import PUBLIC_URL_VARIABLE
from outreach.core.extras import needed_for
from outreach.ledger.settling import callback_checks
from outreach.models.account import CallbackCheck, CallbackFault, CallbackResult, StoredAccount
from outreach.protocols.adapter import Adapter
from outreach.protocols.diagnosis import SignsCallbacks
from outreach.providers.carriers.base import DISPATCH_PARAMETER
from outreach.providers.http.request_gate import call_plugin_function
from outreach.providers.pool import AccountConnections
from outreach.services.context import ServiceContext

if TYPE_CHECKING:
    import httpx

REQUEST_SECONDS: Final = 15.0
"""How long the answer may take: providers wait for 5 to 15 s."""

ARRIVAL_SECONDS: Final = 10.0
"""How long an accepted callback may be on its way to the database, where a queue stands between."""

_LOOK_SECONDS: Final = 0.5
_MAX_BODY: Final = 4096

_SERVED: Final = (
    f"Is the name that of this deployment, and {PUBLIC_URL_VARIABLE} what providers reach, with the path that the "
    "proxy strips?"
)

_MEANINGS: Final[Mapping[CallbackFault, str]] = MappingProxyType(
    {
        "no_public_url": f"There is no callback URL: set {PUBLIC_URL_VARIABLE}, such as https://outreach.example.com, "
        "for this process and for the server.",
        "unresolvable": "The name {host} has no address. Look at the DNS, and at the spelling of the public URL.",
        "tls": "The TLS connection to {host} is not accepted: {detail}. Providers refuse such a certificate as well.",
        "connection_refused": "Nothing accepts connections at {host}. Look at the proxy, its port and the firewall.",
        "timeout": "No answer came from {host} within {seconds:g} s. Look at the firewall and the proxy; from inside "
        "some networks the public address cannot be reached, so ask from outside as well.",
        "unreachable": "The connection to {host} failed: {detail}.",
        "redirected": "{host} answers with a redirect ({status}), which providers do not follow. Set the public URL to "
        "where it leads.",
        "account_unknown": "A server of this package answers at {host}, and has no such account: it uses another "
        "database than this process.",
        "not_found": "{host} answers with {status}, and not by a server of this package: the proxy does not pass this "
        f"path on. {_SERVED}",
        "method_refused": "{host} answers with 405: POST does not get through to the server. Look at the proxy.",
        "signature_refused": "The callback reached the server, which refused its signature. Does the server have the "
        "same public URL and the same encryption key as this process, and is its clock right?",
        "other_server": f"{{host}} answers with {{status}}, and the callback did not reach this database. {_SERVED}",
        "other_database": "{host} accepts the callback ({status}), and it did not reach this database: the server uses "
        "another one, or something between takes the query from the URL.",
    }
)


async def try_callback(
    context: ServiceContext, connections: AccountConnections, account: StoredAccount, adapter: Adapter
) -> CallbackCheck:
    """Send a test callback to an account's callback URL, and return whether it reached this database."""
    url = connections.callback_url(account.id)
    if url is None:
        return CallbackCheck(ok=False, fault="no_public_url", message=_MEANINGS["no_public_url"], url=None)
    # Not of the engine's randomness: nobody may guess it.
    token = callback_checks.TEST_PREFIX + secrets.token_urlsafe(32)
    full_url = f"{url}?{urlencode({DISPATCH_PARAMETER: token})}"
    headers: Mapping[str, str] = {"content-type": "application/json"}
    body, signed = b"{}", None
    if isinstance(adapter, SignsCallbacks):
        connection, test_id = connections.connection(account), secrets.token_hex(16)
        signed = call_plugin_function(partial(adapter.sign_callback, connection, url=full_url, test_id=test_id))
    if signed is not None:
        headers, body = signed.headers, signed.body
    now = context.now()
    is_signed = signed is not None
    await context.storage.write_in(
        account.workspace_id, lambda tx: callback_checks.await_check(tx, account, token, signed=is_signed, now=now)
    )
    try:
        fault, detail, status = await _post(connections, account.id, full_url, headers, body)
        arrived = await _arrival(context, account, token, wait=fault is None)
    finally:
        with anyio.CancelScope(shield=True):
            await context.storage.write_in(
                account.workspace_id, lambda tx: callback_checks.end_check(tx, account, token)
            )
    if arrived == "arrived":
        how = (
            "its signature was accepted"
            if is_signed
            else f"it had no signature, because only {account.provider} can make one"
        )
        return CallbackCheck(
            ok=True, message=f"A test callback reached this database; {how}.", url=url, signed=is_signed
        )
    if arrived == "refused":
        fault = "signature_refused"
    fault = fault or "other_database"
    host = urlsplit(url).netloc
    message = _MEANINGS[fault].format(host=host, detail=detail, status=status, seconds=REQUEST_SECONDS)
    return CallbackCheck(ok=False, fault=fault, message=message, url=url, signed=is_signed)


async def _arrival(context: ServiceContext, account: StoredAccount, token: str, *, wait: bool) -> CallbackResult | None:
    """Return what became of a test callback; one that was accepted is waited for, since a queue may stand between."""
    result: CallbackResult | None = None
    with anyio.move_on_after(ARRIVAL_SECONDS):
        while True:
            result = await context.storage.read(lambda tx: callback_checks.result_of_check(tx, account, token))
            if result != "awaited" or not wait:
                break
            await anyio.sleep(_LOOK_SECONDS)
    return result


async def _post(
    connections: AccountConnections, account_id: str, url: str, headers: Mapping[str, str], body: bytes
) -> tuple[CallbackFault | None, str, int]:
    """Send a callback once; return which step failed, with words about it, and the status of the answer."""
    with needed_for("Testing a callback URL"):
        import httpx

    answer: httpx.Response | None = None
    try:
        with anyio.move_on_after(REQUEST_SECONDS):
            async with connections.probing(REQUEST_SECONDS, watch=lambda *_: None) as http:
                answer = await http.post(url, headers=dict(headers), content=body)
    except httpx.TimeoutException:
        return "timeout", "", 0
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        return *_fault_of(error), 0
    if answer is None:
        return "timeout", "", 0
    return _fault_of_answer(answer, account_id), "", answer.status_code


def _fault_of(error: BaseException) -> tuple[CallbackFault, str]:
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "unresolvable", ""
        if isinstance(cause, ssl.SSLError):
            # An error has some of these attributes, by its origin.
            return "tls", getattr(cause, "verify_message", None) or getattr(cause, "reason", None) or str(cause)
        if isinstance(cause, ConnectionRefusedError):
            return "connection_refused", ""
    return "unreachable", type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came of, those of a group too."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()


def _fault_of_answer(answer: httpx.Response, account_id: str) -> CallbackFault | None:
    status = answer.status_code
    if answer.is_success:
        return None
    if answer.is_redirect:
        return "redirected"
    if status in {404, 410}:
        return "account_unknown" if f"no account '{account_id}'".encode() in answer.content[:_MAX_BODY] else "not_found"
    if status == 405:
        return "method_refused"
    return "other_server"
