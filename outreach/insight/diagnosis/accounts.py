"""Accounts as their providers see them: whether they are accepted, and where their callbacks go."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

import anyio
import attrs

from outreach.core.clock import format_timestamp
from outreach.core.logged_errors import log_error
from outreach.errors import ConfigError, Problem
from outreach.insight.diagnosis.clock import DateWatch
from outreach.insight.diagnosis.snapshot import LiveAccount
from outreach.ledger.settling.callback_checks import misdirection_of
from outreach.models.account import ProviderKind, StoredAccount
from outreach.models.diagnosis import EngineCode
from outreach.protocols.adapter import AccountCheck, CheckFault
from outreach.protocols.diagnosis import CallbackSetting, CallbackSettings
from outreach.providers.http.request_gate import call_plugin
from outreach.providers.pool import AccountConnections
from outreach.providers.redaction import Redaction
from outreach.providers.registry import Adapters

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 8.0
ACCOUNT_SECONDS: Final = 12.0
"""For all requests about one account."""

_AT_A_TIME: Final = 25
"""So that as many accounts as are looked at take 48 s where every provider hangs."""

_CODES: Final[Mapping[CheckFault, EngineCode]] = {
    "refused": "account_refused",
    "funds": "account_without_funds",
    "disabled": "account_disabled",
    "unreachable": "provider_unreachable",
}

_MISSED: Final[Mapping[ProviderKind, str]] = {
    "carrier": "what people write back, STOP too, does not come here",
    "voice": "how calls end, and who asks for no more calls, is not reported here",
}

_GUIDES: Final[Mapping[str, str]] = {
    "twilio": "docs/carriers/twilio.md",
    "telnyx": "docs/carriers/telnyx.md",
    "vonage": "docs/carriers/vonage.md",
    "vapi": "docs/voice/vapi.md",
    "elevenlabs": "docs/voice/elevenlabs.md",
}


class AccountExaminer:
    """Asks the providers of accounts, several at a time.

    Args:
        connections: Opens accounts.
        adapters: The providers' adapters.
        watch: Sees the date of each answer.
    """

    def __init__(self, connections: AccountConnections, adapters: Adapters, watch: DateWatch) -> None:
        self._connections = connections
        self._adapters = adapters
        self._watch = watch

    async def examine(self, accounts: Sequence[LiveAccount]) -> Sequence[Problem]:
        """Return what is wrong with accounts; those that cannot be opened here are left out.

        Raises:
            ConfigError: httpx is not installed.
        """
        found: dict[str, Sequence[Problem]] = {}
        limiter = anyio.CapacityLimiter(_AT_A_TIME)

        async def one(live: LiveAccount) -> None:
            async with limiter:
                try:
                    found[live.account.id] = await self._examine(live, http)
                except Exception as error:  # the code of others: whatever it raises, the other accounts are looked at
                    found[live.account.id] = [_of_failure(live.account, error)]

        async with (
            self._connections.probing(REQUEST_SECONDS, watch=self._watch) as http,
            anyio.create_task_group() as tasks,
        ):
            for live in accounts:
                tasks.start_soon(one, live)
        return [finding for live in accounts for finding in found[live.account.id]]

    async def _examine(self, live: LiveAccount, http: httpx.AsyncClient) -> Sequence[Problem]:
        account = live.account
        try:
            adapter = self._adapters.adapter(account.provider)
            connection = attrs.evolve(self._connections.connection(account), http=http)
        except ConfigError:
            # `account_not_usable` reports that.
            return []
        settings: Sequence[CallbackSetting] = ()
        check = AccountCheck(
            ok=False, message=f"{account.provider} did not answer within {ACCOUNT_SECONDS:g} s.", fault="unreachable"
        )
        with anyio.move_on_after(ACCOUNT_SECONDS):
            check = await call_plugin(adapter.check(connection))
            redaction = Redaction(connection.credentials, adapter.fields)
            check = attrs.evolve(check, message=redaction.text(check.message))
            if check.ok and connection.callback_url is not None and isinstance(adapter, CallbackSettings):
                settings = await call_plugin(
                    adapter.callback_settings(connection, senders=live.senders, agents=live.agents)
                )
        if not check.ok:
            return [_of_check(account, check)]
        return [
            finding
            for setting in settings
            for finding in of_setting(account, adapter.kind, setting, connection.callback_url)
        ]


def _finding(
    account: StoredAccount, code: EngineCode, message: str, *, looks: str, commands: Sequence[str] = ()
) -> Problem:
    return Problem(
        code=code,
        severity="warning",
        message=message,
        path=f"account {account.id}",
        workspace_id=account.workspace_id,
        commands=commands,
        looks=[f"outreach-server accounts {looks}"],
    )


def _of_failure(account: StoredAccount, error: Exception) -> Problem:
    log_error(_log, logging.ERROR, "check of an account failed", error=error, extra={"action": "check_failed"})
    message = f"The adapter for {account.provider} failed: {type(error).__name__}. The log has the traceback."
    return _finding(account, "check_failed", message, looks=f"check {account.id}")


def _of_check(account: StoredAccount, check: AccountCheck) -> Problem:
    code = _CODES[check.fault or "refused"]
    connecting = f"outreach-server accounts connect {account.workspace_id} {account.provider}"
    commands = [connecting] if code == "account_refused" else []
    return _finding(account, code, check.message, looks=f"check {account.id}", commands=commands)


def of_misdirected(accounts: Sequence[LiveAccount]) -> Iterator[Problem]:
    """Yield which accounts lately got callbacks that could not be read because of their address."""
    for live in accounts:
        account = live.account
        for record in live.misdirected:
            message = (
                f"A callback of {account.provider} at {format_timestamp(record.received_at)} was not read, because "
                f"{misdirection_of(record)}. A STOP may have been in it. Enter the account's callback URL there, as it "
                "is, with POST."
            )
            yield _finding(account, "callback_misdirected", message, looks=f"list {account.workspace_id}")


def of_setting(
    account: StoredAccount, kind: ProviderKind, setting: CallbackSetting, ours: str | None
) -> Iterator[Problem]:
    """Yield what is wrong with a provider's setting; `ours` is our callback URL."""
    code: EngineCode
    if setting.url is None:
        code, why = "callback_not_set", f"At {account.provider}, {setting.name} is empty"
    elif ours is None or not _same(setting.url, ours):
        theirs = _split(setting.url)
        where = f" (to {theirs.hostname})" if theirs is not None and theirs.hostname else ""
        code, why = "callback_elsewhere", f"At {account.provider}, {setting.name} leads elsewhere{where}"
    elif setting.wrong is not None:
        code, why = "callback_setting_wrong", f"At {account.provider}, {setting.name} is ours. {setting.wrong}"
    else:
        return
    if code != "callback_setting_wrong":
        why += f": {_MISSED[kind]}. Enter {ours} there."
    guide = _GUIDES.get(account.provider)
    yield _finding(account, code, why + (f" See {guide}." if guide else ""), looks=f"list {account.workspace_id}")


def _same(url: str, ours: str) -> bool:
    theirs, mine = _split(url), urlsplit(ours)
    return theirs is not None and (theirs.scheme.lower(), theirs.netloc.lower(), theirs.path.rstrip("/")) == (
        mine.scheme.lower(),
        mine.netloc.lower(),
        mine.path.rstrip("/"),
    )


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address; None for what is none, since a provider may store any text."""
    try:
        return urlsplit(url)
    except ValueError:
        return None
