"""The diagnosis: every check, side by side and bounded in time, with what each of them finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import anyio

from outreach.core.command_lines import naming_database
from outreach.core.vault import Vault
from outreach.errors import ConfigError, Problem
from outreach.insight.diagnosis import environment, work
from outreach.insight.diagnosis.accounts import AccountExaminer, of_misdirected
from outreach.insight.diagnosis.checks import Check, run_checks
from outreach.insight.diagnosis.clock import DateWatch, of_clock
from outreach.insight.diagnosis.snapshot import MAX_ACCOUNTS, Snapshot, take_snapshot
from outreach.insight.status import StatusQuery
from outreach.models.account import StoredAccount
from outreach.models.diagnosis import Diagnosis
from outreach.models.states import CampaignStatus
from outreach.models.status import EngineStatus
from outreach.protocols.diagnosis import DiagnosableStorage
from outreach.protocols.storage import Storage
from outreach.providers.pool import AccountConnections
from outreach.services.campaigns.moves import find_misread_numbers
from outreach.services.context import ServiceContext

CHECK_SECONDS: Final = 50.0
"""How long one check may take. Those of the database run at the same time, and then those of the environment."""

_OFFLINE: Final = (
    "Without the network, these were not checked: accounts, callback addresses, the clock and the public address."
)

_EXPLAIN: Final = ("database_damaged", "database_log_deleted", "database_not_writable", "database_replaced")
"""Why a database is not usable, in particular."""

_MAY_STILL_SEND: Final = frozenset(
    {CampaignStatus.READY, CampaignStatus.SCHEDULED, CampaignStatus.ACTIVE, CampaignStatus.PAUSED}
)
_MAX_CAMPAIGNS: Final = 100
_MAX_CONTACTS: Final = 1_000
"""How many campaigns are looked at for misread numbers, and how many contacts of each."""


class DiagnosisQuery:
    """Examines the database, the key, accounts, addresses and the work; changes nothing.

    Args:
        context: What services share.
        storage: The database.
        vault: Its key.
        connections: The connections of accounts.
        status: Reads the status.
        database_url: The URL by which the commands of findings name the database, so that they work anywhere.
    """

    def __init__(
        self,
        context: ServiceContext,
        *,
        storage: Storage,
        vault: Vault,
        connections: AccountConnections,
        status: StatusQuery,
        database_url: str | None,
    ) -> None:
        self._context = context
        self._storage = storage
        self._vault = vault
        self._connections = connections
        self._status = status
        self._resolve = environment.resolve
        self._url = database_url

    async def __call__(self, *, network: bool = True) -> Diagnosis:
        """Return what is wrong; takes under two minutes, and may run while others use the database.

        A check that fails is a finding itself (`check_failed`). With the network, some harmless requests are made
        for each account of a live workspace.

        Args:
            network: Whether providers may be asked, and names resolved.

        Raises:
            ConfigError: The engine was opened elsewhere.
        """
        self._context.loop_guard.require()
        now = self._context.now()
        read: list[tuple[EngineStatus, Snapshot]] = []

        async def reading() -> Sequence[Problem]:
            read.append(await self._read())
            return self._of_data(*read[0])

        skipped: list[str] = []
        found = await run_checks(
            {
                "the database": self._of_database,
                "the data": reading,
                "time zones": self._of_time_zones,
                "the numbers of contacts": self._of_contacts,
            },
            CHECK_SECONDS,
        )
        if read and read[0][1].live:
            snapshot = read[0][1]
            url = self._context.config.public_url
            checks: dict[str, Check] = {
                "the public address": lambda: environment.of_public_url(url, resolve=self._resolve if network else None)
            }
            if network:
                checks["accounts"] = lambda: self._of_accounts(snapshot)
            else:
                skipped.append(_OFFLINE)
            if network and snapshot.more_accounts:
                skipped.append(f"Only the first {MAX_ACCOUNTS} accounts were looked at.")
            found = [*found, *await run_checks(checks, CHECK_SECONDS)]
        found = without_repetition(found)
        if self._url is not None:
            found = [naming_database(one, self._url) for one in found]
        return Diagnosis(at=now).plus(found, skipped=skipped)

    async def _of_database(self) -> Sequence[Problem]:
        return await self._storage.diagnose() if isinstance(self._storage, DiagnosableStorage) else ()

    async def _read(self) -> tuple[EngineStatus, Snapshot]:
        status = await self._status()
        mark = self._context.storage.high_water()
        snapshot = await self._context.storage.read(
            lambda tx: take_snapshot(tx, self._context.archives, mark=mark, now=status.at)
        )
        return status, snapshot

    def _of_data(self, status: EngineStatus, snapshot: Snapshot) -> Sequence[Problem]:
        return [
            *work.of_status(status, self._vault),
            *work.of_work(status, snapshot, self._context.config, self._context.storage.home()),
            *environment.of_key_file(self._vault.exposed_file()),
            *self._of_rekeying(snapshot),
            *environment.of_senders(snapshot.named_senders),
            *of_misdirected(snapshot.live),
        ]

    def _of_rekeying(self, snapshot: Snapshot) -> Iterator[Problem]:
        # Of every workspace: without their key those of a suspended one or of a sandbox are lost as well.
        older = sum(self._needs_older_key(account) for account in snapshot.accounts)
        if older:
            yield Problem(
                code="rekey_unfinished",
                severity="info",
                message=f"An older key than the first is needed for {older} accounts: it cannot be taken away yet.",
                path="the secret key",
                commands=["outreach-server accounts rekey"],
            )

    def _needs_older_key(self, account: StoredAccount) -> bool:
        try:
            self._vault.open(account.id, account.sealed, provider=account.provider)
            return not self._vault.is_newest(account.sealed)
        except ConfigError:
            # `account_not_usable` or `key_not_usable` reports that, the former for the listed accounts.
            return False

    async def _of_time_zones(self) -> Sequence[Problem]:
        return await anyio.to_thread.run_sync(lambda: list(environment.of_time_zones()))

    async def _of_contacts(self) -> Sequence[Problem]:
        campaigns = await self._context.storage.read(lambda tx: tx.campaigns.in_status(_MAY_STILL_SEND))
        found: list[Problem] = []
        for one in campaigns[:_MAX_CAMPAIGNS]:
            misread = await find_misread_numbers(self._context, one.workspace_id, one.id, limit=_MAX_CONTACTS)
            found += work.of_misread_numbers(one, misread)
        return found

    async def _of_accounts(self, snapshot: Snapshot) -> Sequence[Problem]:
        watch = DateWatch(self._context.clock)
        examiner = AccountExaminer(self._connections, self._context.adapters, watch)
        found = await examiner.examine(snapshot.live)
        return [*of_clock(watch.samples), *found]


def without_repetition(found: Sequence[Problem]) -> Sequence[Problem]:
    """Leave out what another finding explains: why the database is not usable, why nobody sends, a key not used."""
    codes = {finding.code for finding in found}
    left_out = {"key_not_usable"} if "key_exposed" in codes else set()
    if any(code in codes for code in _EXPLAIN):
        left_out.add("database_not_usable")
    if "database_not_writable" in codes:
        left_out.add("no_dispatcher")
    return [finding for finding in found if finding.code not in left_out]
