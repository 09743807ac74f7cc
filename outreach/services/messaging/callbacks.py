"""Callbacks of carriers and voice providers."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final
from urllib.parse import parse_qsl

from anyio import to_thread

from outreach.core.logged_errors import masked
from outreach.dispatch.adapter_answers import SafeAnalyser, recordable_event
from outreach.dispatch.batcher import Batcher
from outreach.dispatch.worker import backoff_of, notify_report
from outreach.errors import CallbackRejected, NotFound
from outreach.ledger.common import existing, workspace_of
from outreach.ledger.settling import callback_checks, callback_events, ledger
from outreach.ledger.settling.callback_checks import MISDIRECTIONS
from outreach.ledger.settling.callback_events import CallbackContext
from outreach.models.account import CallbackResult, Misdirection, StoredAccount
from outreach.models.base import Page
from outreach.models.dispatch import Dispatch
from outreach.models.reports import CallbackRecord, CallReport, MessageReport, Report
from outreach.protocols.adapter import (
    Adapter,
    Callback,
    CallbackEvent,
    CallbackRefused,
    Connection,
    InboundMessageEvent,
)
from outreach.protocols.storage import Within
from outreach.protocols.voice import Analyser
from outreach.providers.http.request_gate import call_plugin_function
from outreach.providers.pool import AccountConnections
from outreach.providers.redaction import Redaction
from outreach.services.context import ServiceContext
from outreach.services.lists import PageRequest, iterate, moment_cursor
from outreach.storage.unit_of_work import Transaction

_MAX_INLINE: Final = 4 * 1024
"""Bodies up to this size are verified on the event loop, in a millisecond or two; larger ones in a thread."""

_MAX_TOGETHER: Final = 100
"""Callbacks that one transaction takes; each has one event, or a few."""

_ENTERED: Final = re.compile(r"(/?)/webhooks/(/?)[^/]+/?\Z")
"""A requested URL without its query, with the slashes that may have been entered at a provider once too often."""

_Received = tuple[Sequence[CallbackRecord], Sequence[tuple[Dispatch | None, Report]]]

_Taken = tuple[StoredAccount, Sequence[CallbackEvent], bytes]

_log = logging.getLogger(__name__)


class Callbacks:
    """Receives and lists the callbacks of providers."""

    def __init__(self, context: ServiceContext, connections: AccountConnections, analyser: Analyser) -> None:
        self._context = context
        self._connections = connections
        self._callback_context = CallbackContext(
            ids=context.ids,
            backoff=backoff_of(context.config),
            analyser=SafeAnalyser(analyser, context.log_throttle),
            adapters=context.adapters,
        )
        self._taking = Batcher(self._take_in, max_size=lambda: _MAX_TOGETHER)

    async def max_body_bytes(self, account_id: str) -> int:
        """Return how many bytes the account's provider may send in a callback.

        Raises:
            NotFound: The account does not exist.
            ConfigError: Its provider's adapter is not installed here.
        """
        return self._context.adapters.adapter((await self._account(account_id)).provider).max_callback_bytes

    async def receive(
        self, account_id: str, *, url: str, headers: Mapping[str, str], body: bytes
    ) -> Sequence[CallbackRecord]:
        """Store the events of a callback, committed when this returns; concurrent callbacks share a transaction.

        Args:
            account_id: The account that the URL names.
            url: The URL as requested; if a public URL is configured, that one is verified instead, because the provider
                signs what it knows, and a proxy may stand between.
            headers: By name, in any case.
            body: The raw bytes.

        Returns:
            The new events; none for a repeated callback.

        Raises:
            NotFound: The account does not exist.
            CallbackRejected: It is not from the provider, too old, too large or unreadable, or its adapter read it into
                what is no event: nothing was changed.
            ConfigError: The account's credentials cannot be decrypted, or its adapter is not installed here.
        """
        context = self._context
        account = await self._account(account_id)
        known = context.adapters.adapter(account.provider)
        if len(body) > known.max_callback_bytes:
            raise self._refused(account, f"The body is larger than {known.max_callback_bytes} bytes.")
        path, mark, query = url.partition("?")
        known_url = self._connections.callback_url(account.id)
        if known_url:
            known_url = _as_entered(known_url, path, account.id)
        callback = Callback(
            url=f"{known_url}{mark}{query}" if known_url else url,
            headers={name.lower(): value for name, value in headers.items()},
            query=dict(parse_qsl(query, keep_blank_values=True)),
            body=body,
        )
        check = await self._awaited_check(account, callback)
        if check is not None:
            return await self._take_check(account, known, callback, check)
        try:
            connection, found = await self._read(account, known, callback)
        except CallbackRefused as refused:
            raise self._refused(account, refused.reason) from None
        events = self._recordable(account, found, Redaction(connection.credentials, known.fields))
        new, reports = await self._taking.submit((account, events, body))
        for dispatch, report in reports:
            notify_report(context.instrumentation, context.log_throttle, dispatch, report, context.now())
        _log_losses(account, events, {record.event_id for record in new})
        return new

    async def _awaited_check(self, account: StoredAccount, callback: Callback) -> CallbackRecord | None:
        """Return the test that awaits this callback; None for what the provider sends."""
        token = callback_checks.token_of(callback.query)
        if token is None:
            return None
        now = self._context.now()
        return await self._context.storage.read(lambda tx: callback_checks.awaited_check(tx, account, token, now=now))

    async def _take_check(
        self, account: StoredAccount, adapter: Adapter, callback: Callback, check: CallbackRecord
    ) -> Sequence[CallbackRecord]:
        """Verify a test callback where it is signed, record that it came, and leave its content out.

        Raises:
            CallbackRejected: Its signature is refused here, as the provider's would be.
        """
        result: CallbackResult = "refused"
        try:
            if callback_checks.is_signed(check):
                await self._read(account, adapter, callback)
            result = "arrived"
        except CallbackRefused as refused:
            # Neither logged nor counted: the person who runs the test sees it.
            raise CallbackRejected(refused.reason) from None
        finally:
            await self._context.storage.write_in(
                account.workspace_id, lambda tx: callback_checks.note_check(tx, check, result)
            )
        return []

    async def misdirected(self, account_id: str, how: Misdirection) -> None:
        """Log and record that something came to an account's address by a wrong method or with a wrong path.

        It was not read, because nothing shows who sent it; if it was the provider, a STOP may have been in it.

        Raises:
            NotFound: The account does not exist.
        """
        account = await self._account(account_id)
        self._context.log_throttle.problem(
            ("callbacks", account.id),
            f"misdirected: {how}",
            "a callback for account %s was not read, because %s: it may be a STOP. At %s, enter the account's callback "
            "URL as it is, with POST.",
            account.id,
            MISDIRECTIONS[how],
            account.provider,
            action="callback_misdirected",
            account_id=account.id,
        )
        await self._context.storage.write_in(
            account.workspace_id,
            lambda tx: callback_checks.record_misdirection(tx, account, how, now=self._context.now()),
        )

    async def _read(
        self, account: StoredAccount, adapter: Adapter, callback: Callback
    ) -> tuple[Connection, Sequence[object]]:
        """Verify a callback, and return what its adapter reads in it, with the connection that it is signed for.

        Raises:
            CallbackRefused: It is not from the provider, too old or unreadable.
            ConfigError: The account's credentials cannot be decrypted.
        """
        now_used = self._connections.connection(account)
        try:
            return now_used, await _verified(adapter, now_used, callback)
        except CallbackRefused:
            # A STOP that was on its way as the credentials were changed.
            for connection, until in self._connections.earlier(account):
                with suppress(CallbackRefused):
                    events = await _verified(adapter, connection, callback)
                    self._warn_of_earlier(account, until)
                    return connection, events
            raise

    def _warn_of_earlier(self, account: StoredAccount, until: datetime) -> None:
        self._context.log_throttle.problem(
            ("callbacks", account.id),
            "signed with earlier credentials",
            "a callback for account %s is signed with earlier credentials, which are accepted until %s. If %s goes on "
            "with these, connect the account with them.",
            account.id,
            f"{until:%Y-%m-%d %H:%M} UTC",
            account.provider,
            action="callback_signed_earlier",
            account_id=account.id,
        )

    def _recordable(
        self, account: StoredAccount, found: Sequence[object], redaction: Redaction
    ) -> Sequence[CallbackEvent]:
        """Return the events that can be stored, without secrets of the account in the provider's words.

        The others are logged and left out, so that a STOP beside them counts; with none left the callback is refused,
        because a provider that is to come again would send it for days.
        """
        events: list[CallbackEvent] = []
        refused = None
        for event in found:
            try:
                events.append(redaction.event(recordable_event(event, account.workspace_id)))
            except TypeError as error:
                what = f"The adapter of {account.provider} returned what cannot be stored: {error}."
                refused = self._refused(account, what, level=logging.ERROR)
        if refused is not None and not events:
            raise refused
        return events

    def _refused(self, account: StoredAccount, reason: str, *, level: int = logging.WARNING) -> CallbackRejected:
        """Count a refused callback, and log it once for each reason; return the error."""
        self._context.instrumentation.callback_refused(account.provider)
        self._context.log_throttle.problem(
            ("callbacks", account.id),
            reason,
            "callback refused for account %s: %s",
            account.id,
            # The words of an adapter.
            masked(reason),
            level=level,
            action="callback_refused",
            account_id=account.id,
        )
        return CallbackRejected(reason)

    async def _take_in(self, taken: Sequence[_Taken]) -> Sequence[_Received]:
        def operation(tx: Transaction) -> Sequence[_Received]:
            now = self._context.now()
            callback_events.prefetch_for_events(tx, [(account, events) for account, events, _ in taken])
            received = []
            for account, events, body in taken:
                new = callback_events.process_events(tx, account, events, body, context=self._callback_context, now=now)
                received.append((new, _reports(tx, events, new)))
            return received

        return await self._context.storage.write(Within({account.workspace_id for account, _, _ in taken}, operation))

    async def get(self, workspace_id: str, account_id: str, event_id: str) -> CallbackRecord:
        """Return an event by its account and the id that the provider gave it.

        Raises:
            NotFound: The workspace has no such event, or it was deleted since (docs/operations.md).
        """
        return await self._context.storage.read(
            lambda tx: existing(tx.callbacks.get(workspace_id, account_id, event_id), "callback", event_id)
        )

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[CallbackRecord]:
        """Return a page of a workspace's events, newest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("callbacks", workspace_id, after=after, limit=limit)
        begin = page_request.moment()

        def operation(tx: Transaction) -> Sequence[CallbackRecord]:
            workspace_of(tx, workspace_id)
            if begin is None:
                return tx.callbacks.list(workspace_id, limit=limit + 1)
            received_at, names = begin
            account_id, _, event_id = names.partition("~")
            return tx.callbacks.list(workspace_id, after=(received_at, account_id, event_id), limit=limit + 1)

        found = await self._context.storage.read(operation)
        return page_request.page(found, lambda one: moment_cursor(one.received_at, one.account_id, one.event_id))

    def iter_all(self, workspace_id: str) -> AsyncIterator[CallbackRecord]:
        """Iterate over a workspace's events, newest first; see `list`."""
        return iterate(partial(self.list, workspace_id))

    async def _account(self, account_id: str) -> StoredAccount:
        if not account_id.isprintable():
            # No id has such characters, and some databases refuse them.
            raise NotFound("account", account_id)
        return await self._context.storage.read(
            lambda tx: existing(tx.accounts.find(account_id), "account", account_id)
        )


async def _verified(adapter: Adapter, connection: Connection, callback: Callback) -> Sequence[object]:
    def read() -> Sequence[object]:
        found: object = adapter.read(connection, callback)
        # A generator verifies nothing before it is read.
        return list(found) if isinstance(found, Iterable) else [found]

    if len(callback.body) <= _MAX_INLINE:
        return call_plugin_function(read)
    # Any client may send a large body, which takes long to verify.
    return await to_thread.run_sync(call_plugin_function, read)


def _reports(
    tx: Transaction, events: Sequence[CallbackEvent], new: Sequence[CallbackRecord]
) -> Sequence[tuple[Dispatch | None, Report]]:
    """Return the reports that were new, each with its dispatch, if that is known."""
    reported = {record.event_id for record in new if record.result in {"merged", "unmatched"}}
    reports = (event.content for event in events if event.event_id in reported)
    return [(ledger.dispatch_of(tx, one), one) for one in reports if isinstance(one, MessageReport | CallReport)]


def _as_entered(url: str, requested: str, account_id: str) -> str:
    """Return an account's callback URL with the further slashes of the requested one, which the provider signs."""
    found = _ENTERED.search(requested)
    if found is not None:
        url = f"{url.removesuffix(f'/webhooks/{account_id}')}{found[1]}/webhooks/{found[2]}{account_id}"
    return f"{url}/" if requested.endswith("/") else url


def _log_losses(account: StoredAccount, events: Sequence[CallbackEvent], new: Collection[str]) -> None:
    """Log once each unreadable inbound message, which may have been a STOP, and each one without some of its media."""
    for event in events:
        content = event.content
        if isinstance(content, InboundMessageEvent) and content.media_left_out > 0 and event.event_id in new:
            _log.warning(
                "message to account %s (%s) is stored without %d of its media, which have no usable link: look at it "
                "there",
                account.id,
                account.provider,
                content.media_left_out,
                extra={"action": "media_left_out", "account_id": account.id, "provider": account.provider},
            )
        if event.unreadable_kind is not None and event.event_id in new:
            _log.warning(
                "message to account %s (%s, %s) is unreadable and not stored: it may be a STOP",
                account.id,
                account.provider,
                event.unreadable_kind,
                extra={"action": "message_unread", "account_id": account.id, "provider": account.provider},
            )
