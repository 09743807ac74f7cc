"""The accounts of workspaces at carriers and voice providers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import anyio
import attrs

from outreach.core.config import PUBLIC_URL_VARIABLE
from outreach.core.extras import require
from outreach.core.vault import PreviousCredentials, Vault
from outreach.errors import ConfigError, InvalidRequest, Problem
from outreach.ledger import provider_throttles
from outreach.ledger.common import existing, record_audit, workspace_of
from outreach.models.account import Account, CallbackCheck, Provider, ProviderThrottle, StoredAccount
from outreach.models.base import Page
from outreach.protocols.adapter import AccountCheck, Adapter, CredentialField
from outreach.providers.http.request_gate import call_plugin
from outreach.providers.pool import AccountConnections
from outreach.providers.redaction import Redaction
from outreach.rules import previous_credentials
from outreach.rules.segments import text_problem
from outreach.services.context import ServiceContext
from outreach.services.lists import PageRequest, iterate
from outreach.services.tenants.account_rekeying import AccountRekeying
from outreach.services.tenants.callback_checking import try_callback
from outreach.storage.unit_of_work import Transaction

_log = logging.getLogger(__name__)

_MAX_VALUE_LENGTH: Final = 10_000
_NO_ADDRESS: Final = (
    f"No callback URL: set {PUBLIC_URL_VARIABLE}, such as https://outreach.example.com, for this command and for the "
    "server (serve --public-url sets it for that server only). Without it, the server learns the outcome of messages "
    "and calls only by polling, where the provider supports that, and receives replies only if you enter the URL at "
    "the provider yourself."
)


class Accounts(AccountRekeying):
    """The provider accounts of workspaces."""

    def __init__(self, context: ServiceContext, vault: Vault, connections: AccountConnections) -> None:
        self._context = context
        self._vault = vault
        self._connections = connections

    def providers(self) -> Sequence[Provider]:
        """Return what an account can be at: what the engine brings, then adapters of one's own and of packages."""
        return self._context.adapters.providers()

    def adapter_problems(self) -> Sequence[Problem]:
        """Return which adapters of installed packages cannot be used, and why."""
        return self._context.adapters.problems

    def credential_fields(self, provider: str) -> Sequence[CredentialField]:
        """Return the credentials that an account at a provider needs.

        Raises:
            InvalidRequest: The provider is unknown.
        """
        return self._adapter(provider).fields

    async def connect(
        self,
        workspace_id: str,
        provider: str,
        credentials: Mapping[str, str],
        *,
        replies_to_keywords: bool | None = None,
        refuse_previous: bool = False,
        actor: str = "library",
    ) -> Account:
        """Create a workspace's account at a provider, or replace its credentials.

        An existing account keeps its id and callback URL. Connecting always ends a throttle of the provider. Callbacks
        that are signed with the replaced credentials are accepted for 24 hours, because some are on their way
        (docs/secret-key.md#changing-secrets-at-a-provider).

        Args:
            workspace_id: The workspace.
            provider: One of those that `providers` returns.
            credentials: All values, by the names of `credential_fields`.
            replies_to_keywords: Whether the provider itself replies to STOP, START and HELP, so that the engine does
                not; None for as it is, in a new account for the provider's default.
            refuse_previous: Whether callbacks that are signed with earlier credentials are refused at once, because
                others know these.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The provider is unknown, or credentials are missing, unknown or malformed; the secret that
                verifies callbacks is required. Nothing was written.
            ConfigError: No usable encryption key, or the extra `providers` is not installed.
        """
        known = self._adapter(provider)
        require("providers", f"Connecting a {provider} account")
        given = _stripped(credentials)
        _check_credentials(known, given)
        context = self._context
        identifier = context.ids()
        second_key: str | None = None

        def operation(tx: Transaction) -> StoredAccount:
            nonlocal second_key
            workspace_of(tx, workspace_id)
            missing = self._vault.problem()
            if missing is not None and self._vault.makes_key() and tx.accounts.any_workspace(None, limit=1):
                second_key = missing.path
            # The time of the commit: what was committed before it has the credentials before.
            now = context.now()
            before = tx.accounts.of_provider(workspace_id, provider)
            replies = replies_to_keywords
            if replies is None:
                # New credentials change nothing about who answers people.
                replies = before.replies_to_keywords if before else known.replies_to_keywords
            previous = () if before is None or refuse_previous else self._replaced(before, known, given, now)
            account = StoredAccount(
                id=before.id if before else identifier,
                workspace_id=workspace_id,
                provider=provider,
                sealed=self._vault.encrypt(before.id if before else identifier, given, previous=previous),
                replies_to_keywords=replies,
                revision=before.revision + 1 if before else 0,
                created_at=before.created_at if before else now,
                updated_at=now,
                last_report_at=before.last_report_at if before else None,
            )
            if before is None:
                tx.accounts.insert(account)
            else:
                tx.accounts.update(account)
            provider_throttles.clear_throttle(tx, workspace_id, provider, now)
            record_audit(tx, workspace_id, "account.connect", account.id, actor=actor, now=now, detail=provider)
            return account

        connected = await context.storage.write(operation)
        if second_key is not None:
            _log.warning(
                "Account %s at %s is encrypted with a key that was made now (%s), because there was none here; those "
                "from before are encrypted with another one. If servers have that one, give it to this process in the "
                "same way, and connect the account again: they cannot open it now.",
                connected.id,
                provider,
                second_key,
                extra={"action": "key_made", "account_id": connected.id, "provider": provider},
            )
        return self._shown(connected, None)

    def _replaced(
        self, account: StoredAccount, adapter: Adapter, given: Mapping[str, str], now: datetime
    ) -> Sequence[PreviousCredentials]:
        verifying = {one.name for one in adapter.fields if one.secret or one.verifies}
        try:
            held = self._vault.open(account.id, account.sealed, provider=account.provider)
            known = self._vault.previous(account.id, account.sealed, provider=account.provider)
        except ConfigError:
            # After the key was lost, accounts are connected anew: what it encrypted verifies nothing.
            return ()
        return previous_credentials.replaced(held, known, given, now, verifying=verifying)

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Account]:
        """Return a page of a workspace's accounts without secrets, oldest first.

        Returns:
            The accounts; `problem` says why one cannot be decrypted.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("accounts", workspace_id, after=after, limit=limit)
        now = self._context.now()

        def operation(tx: Transaction) -> Page[Account]:
            page = page_request.page_of_few(tx.accounts.list(workspace_of(tx, workspace_id).id))
            throttles = (provider_throttles.active_throttle(tx, workspace_id, one.provider, now) for one in page)
            shown = [self._shown(account, throttle) for account, throttle in zip(page, throttles, strict=True)]
            return Page(items=shown, next=page.next)

        return await self._context.storage.read(operation)

    def iter_all(self, workspace_id: str) -> AsyncIterator[Account]:
        """Iterate over a workspace's accounts without secrets, oldest first; see `list`."""
        return iterate(partial(self.list, workspace_id))

    def _shown(self, account: StoredAccount, throttle: ProviderThrottle | None) -> Account:
        shown: Mapping[str, str] = {}
        problem = None
        accepted: Sequence[PreviousCredentials] = ()
        try:
            fields = self._context.adapters.adapter(account.provider).fields
            held = self._vault.open(account.id, account.sealed, provider=account.provider)
            known = self._vault.previous(account.id, account.sealed, provider=account.provider)
            accepted = previous_credentials.accepted(known, self._context.now())
            shown = {one.name: "set" if one.secret else held[one.name] for one in fields if one.name in held}
        except ConfigError as error:
            problem = error.message
        return Account(
            id=account.id,
            workspace_id=account.workspace_id,
            provider=account.provider,
            kind=self._context.adapters.kind(account.provider),
            credentials=shown,
            replies_to_keywords=account.replies_to_keywords,
            callback_url=self._connections.callback_url(account.id),
            throttled_by=provider_throttles.THROTTLED if throttle else None,
            throttled_until=throttle.until if throttle else None,
            previous_accepted_until=max((one.until for one in accepted), default=None),
            problem=problem,
            created_at=account.created_at,
            updated_at=account.updated_at,
        )

    async def check(self, workspace_id: str, account_id: str) -> AccountCheck:
        """Test an account's credentials with a harmless request, and return the result in words.

        A throttle (`throttled_until`) neither stops this request nor ends by it; `connect` ends one.

        Raises:
            NotFound: The workspace has no such account.
            ConfigError: The key that encrypted it is missing, or its adapter is not installed here.
        """
        account = await self._context.storage.read(lambda tx: tx.accounts.existing(workspace_id, account_id))
        adapter = self._context.adapters.adapter(account.provider)
        seconds = self._context.config.provider_timeout_seconds
        found = AccountCheck(
            ok=False, message=f"{account.provider} did not answer within {seconds:g} s.", fault="unreachable"
        )
        # The client bounds the wait for each part of an answer only, and one may come byte by byte.
        with anyio.move_on_after(seconds):
            connection = self._connections.connection(account)
            found = await call_plugin(adapter.check(connection))
            redaction = Redaction(connection.credentials, adapter.fields)
            found = attrs.evolve(found, message=redaction.text(found.message))
        if found.ok and self._connections.callback_url(account.id) is None:
            return AccountCheck(ok=True, message=f"{found.message} {_NO_ADDRESS}")
        return found

    async def check_callback(self, workspace_id: str, account_id: str) -> CallbackCheck:
        """Call an account's callback URL as its provider would, and find out whether that reaches this database.

        The test goes through DNS and proxies, and changes nothing. It is signed as the provider signs, where the
        account has the secret for that; elsewhere only the way is tested. Takes at most half a minute.

        Raises:
            NotFound: The workspace has no such account.
            ConfigError: The key that encrypted it is missing, or its adapter or httpx is not installed here.
        """
        account = await self._context.storage.read(lambda tx: tx.accounts.existing(workspace_id, account_id))
        adapter = self._context.adapters.adapter(account.provider)
        return await try_callback(self._context, self._connections, account, adapter)

    async def throttled_until(self, workspace_id: str, provider: str) -> datetime | None:
        """Return until when the provider's throttle stops a workspace's messages and calls; None without one.

        Raises:
            NotFound: The workspace does not exist.
        """
        now = self._context.now()
        throttle = await self._context.storage.read(
            lambda tx: provider_throttles.active_throttle(tx, workspace_of(tx, workspace_id).id, provider, now)
        )
        return throttle.until if throttle is not None else None

    async def get(self, workspace_id: str, account_id: str) -> Account:
        """Return an account.

        Raises:
            NotFound: The workspace has no such account.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> Account:
            account = tx.accounts.existing(workspace_id, account_id)
            return self._shown(account, provider_throttles.active_throttle(tx, workspace_id, account.provider, now))

        return await self._context.storage.read(operation)

    async def get_anywhere(self, account_id: str) -> Account:
        """Return an account of any workspace, for operator commands that name an account alone.

        Raises:
            NotFound: No account has this id.
        """
        account = await self._context.storage.read(
            lambda tx: existing(tx.accounts.find(account_id), "account", account_id)
        )
        return await self.get(account.workspace_id, account_id)

    async def remove(self, workspace_id: str, account_id: str, *, actor: str = "library") -> Account:
        """Delete an account with its credentials, and return it.

        Campaigns that need it pause at their next request. Its callback URL answers 404 from then on; a new account
        gets another.

        Raises:
            NotFound: The workspace has no such account.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> StoredAccount:
            account = tx.accounts.existing(workspace_id, account_id)
            tx.accounts.delete(account.workspace_id, account.id)
            # Queued work keeps waiting: without an account nothing could send it.
            tx.provider_throttles.delete(account.workspace_id, account.provider)
            record_audit(
                tx, account.workspace_id, "account.remove", account.id, actor=actor, now=now, detail=account.provider
            )
            return account

        return self._shown(await self._context.storage.write(operation), None)

    def _adapter(self, provider: str) -> Adapter:
        try:
            return self._context.adapters.adapter(provider)
        except ConfigError as error:
            raise InvalidRequest.at("provider", error.message) from None


def _stripped(credentials: object) -> dict[str, str]:
    if not isinstance(credentials, Mapping):
        raise InvalidRequest.at("credentials", f"must be texts by name, not {type(credentials).__name__}")
    for name, value in credentials.items():
        if not isinstance(value, str):
            # The value is not shown: it may be a secret.
            raise InvalidRequest.at(f"credentials.{name}", f"must be a text, not {type(value).__name__}")
    return {name: value.strip() for name, value in credentials.items() if value.strip()}


def _check_credentials(known: Adapter, given: Mapping[str, str]) -> None:
    names = {field.name for field in known.fields}
    details = [
        Problem(
            path=f"credentials.{name}", message=f"is unknown to {known.name}, which has: {', '.join(sorted(names))}"
        )
        for name in given
        if name not in names
    ]
    details += [
        Problem(path=f"credentials.{field.name}", message=f"is missing. {field.description}")
        for field in known.fields
        if field.required and field.name not in given
    ]
    for name, value in given.items():
        problem = text_problem(value)
        if problem is None and len(value) > _MAX_VALUE_LENGTH:
            problem = f"must have at most {_MAX_VALUE_LENGTH} characters"
        if problem is not None:
            details.append(Problem(path=f"credentials.{name}", message=problem))
    if not details:
        details = [Problem(path="credentials", message=sentence) for sentence in known.problems(given)]
    if details:
        raise InvalidRequest(details=details)
