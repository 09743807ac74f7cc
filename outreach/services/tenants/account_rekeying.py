"""Re-encrypting the credentials of all accounts with the newest key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

import attrs

from outreach.core.vault import Vault
from outreach.errors import ConfigError
from outreach.ledger.common import record_audit
from outreach.models.account import RekeyResult, StoredAccount
from outreach.models.fields import Integer, check_value
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

_SLICE: Final = 100
_SHOWN: Final = 5


class AccountRekeying:
    """Rotation of the key that credentials are encrypted with."""

    _context: ServiceContext
    _vault: Vault

    async def rekey(self, *, max_slices: int = 100_000, actor: str = "library") -> RekeyResult:
        """Encrypt the credentials of all accounts with the newest key, also while servers run that know it.

        At every moment each account's credentials are encrypted with one key or the other, so that what is interrupted
        goes on when it is called again. Accounts keep their ids, callback URLs and revisions.

        Args:
            max_slices: The most slices of 100 accounts to encrypt now, at least 1.
            actor: Recorded in the audit trail of each account's workspace.

        Raises:
            ConfigError: No usable key, or none of the keys opens the credentials of some account: nothing was changed.
            InvalidRequest: `max_slices` is out of its bounds.
        """
        check_value("max_slices", max_slices, Integer(1, 1_000_000))
        older, current, unreadable = await self._sort_accounts()
        if unreadable:
            raise ConfigError(_refusal(unreadable))
        rekeyed = 0
        for start in range(0, min(len(older), max_slices * _SLICE), _SLICE):
            part = older[start : min(start + _SLICE, max_slices * _SLICE)]
            rekeyed += await self._context.storage.write(
                lambda tx, part=part: self._rekey_slice(tx, part, actor),  # type: ignore[misc]
                bulk=True,
            )
        # Counted again: a server with the older key first may have connected an account meanwhile.
        left, _, _ = await self._sort_accounts()
        return RekeyResult(rekeyed=rekeyed, already_current=len(current), left=len(left))

    async def _sort_accounts(self) -> tuple[Sequence[StoredAccount], Sequence[StoredAccount], Sequence[StoredAccount]]:
        """Return the accounts encrypted with an older key, with the newest one, and with none that is known."""
        older: list[StoredAccount] = []
        current: list[StoredAccount] = []
        unreadable: list[StoredAccount] = []
        async for account in self._accounts():
            if self._vault.is_newest(account.sealed):
                current.append(account)
                continue
            try:
                self._vault.open(account.id, account.sealed, provider=account.provider)
            except ConfigError:
                unreadable.append(account)
            else:
                older.append(account)
        return older, current, unreadable

    async def _accounts(self) -> AsyncIterator[StoredAccount]:
        after = ""
        while True:
            rows = await self._context.storage.read(
                lambda tx, after=after: tx.accounts.page(after=after, limit=_SLICE)  # type: ignore[misc]
            )
            for account in rows:
                yield account
            if len(rows) < _SLICE:
                return
            after = rows[-1].id

    def _rekey_slice(self, tx: Transaction, accounts: Sequence[StoredAccount], actor: str) -> int:
        """Encrypt the credentials of those that are still there and still need it; return how many."""
        now, done = self._context.now(), 0
        for seen in accounts:
            account = tx.accounts.get(seen.workspace_id, seen.id)
            if account is None or self._vault.is_newest(account.sealed):
                continue
            sealed = self._vault.rekeyed(account.id, account.sealed, provider=account.provider)
            tx.accounts.reseal(attrs.evolve(account, sealed=sealed))
            record_audit(
                tx,
                now=now,
                workspace_id=account.workspace_id,
                actor=actor,
                action="account.rekey",
                subject=account.id,
                detail=account.provider,
            )
            done += 1
        return done


def _refusal(unreadable: Sequence[StoredAccount]) -> str:
    shown = ", ".join(f"{one.id} at {one.provider}" for one in unreadable[:_SHOWN])
    more = f" and {len(unreadable) - _SHOWN} more" if len(unreadable) > _SHOWN else ""
    return (
        f"None of the keys here opens the credentials of {len(unreadable)} accounts: {shown}{more}. Nothing was "
        "changed. Give the key that they were encrypted with too, after the new one; or connect these accounts anew, "
        "or remove them."
    )
