"""Re-encrypting all secrets with the newest key: those of accounts and webhooks, and second factors of users."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

import attrs

from outreach.core.vault import WEBHOOKS, Vault
from outreach.errors import ConfigError
from outreach.ledger.common import record_audit
from outreach.models.account import RekeyResult, StoredAccount
from outreach.models.fields import Integer, check_value
from outreach.models.user import StoredUser
from outreach.models.webhook import Webhook, WebhookCursor
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

_SLICE: Final = 100
_SHOWN: Final = 5


@attrs.frozen(kw_only=True)
class _Secret:
    """An encrypted secret, and the row that has it.

    Attributes:
        workspace_id: That of an account or webhook; None for a user.
        place: The account's provider, for messages.
    """

    id: str
    workspace_id: str | None
    sealed: str = attrs.field(repr=False)
    place: str
    row: StoredAccount | StoredUser | WebhookCursor = attrs.field(repr=False)

    @property
    def kind(self) -> str:
        """The kind of its row: `account`, `webhook` or `user`."""
        if isinstance(self.row, StoredAccount):
            return "account"
        return "webhook" if isinstance(self.row, WebhookCursor) else "user"


class AccountRekeying:
    """Rotation of the key that credentials are encrypted with."""

    _context: ServiceContext
    _vault: Vault

    async def rekey(self, *, max_slices: int = 100_000, actor: str = "library") -> RekeyResult:
        """Encrypt the secrets of accounts, webhooks and users with the newest key, also while servers run that know it.

        At every moment each secret is encrypted with one key or the other, so an interrupted rotation goes on when it
        is called again. Accounts keep their ids, callback URLs and revisions. The result counts accounts, webhooks, and
        users with a second factor.

        Args:
            max_slices: The most slices of 100 secrets to encrypt now, at least 1.
            actor: Recorded in the audit trail, of each workspace.

        Raises:
            ConfigError: No usable key, or none of the keys opens some secret: nothing was changed.
            InvalidRequest: `max_slices` is out of its bounds.
        """
        check_value("max_slices", max_slices, Integer(1, 1_000_000))
        older, current, unreadable = await self._sort_secrets()
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
        left, _, _ = await self._sort_secrets()
        return RekeyResult(rekeyed=rekeyed, already_current=len(current), left=len(left))

    async def _sort_secrets(self) -> tuple[Sequence[_Secret], Sequence[_Secret], Sequence[_Secret]]:
        """Return the secrets encrypted with an older key, with the newest one, and with an unknown one."""
        older: list[_Secret] = []
        current: list[_Secret] = []
        unreadable: list[_Secret] = []
        async for one in self._secrets():
            if self._vault.is_newest(one.sealed):
                current.append(one)
                continue
            try:
                self._vault.open(one.id, one.sealed, provider=one.place)
            except ConfigError:
                unreadable.append(one)
            else:
                older.append(one)
        return older, current, unreadable

    async def _secrets(self) -> AsyncIterator[_Secret]:
        for read in (_accounts_after, _webhooks_after, _users_after):
            after = ""
            while True:
                last, found = await self._context.storage.read(
                    lambda tx, read=read, after=after: read(tx, after)  # type: ignore[misc]
                )
                for one in found:
                    yield one
                if last is None:
                    break
                after = last

    def _rekey_slice(self, tx: Transaction, secrets: Sequence[_Secret], actor: str) -> int:
        """Encrypt those that are still there and still need it; return how many."""
        now, done = self._context.now(), 0
        for seen in secrets:
            known = _present(tx, seen)
            if known is None or self._vault.is_newest(known.sealed):
                continue
            sealed = self._vault.rekeyed(known.id, known.sealed, provider=known.place)
            if isinstance(known.row, StoredAccount):
                tx.accounts.reseal(attrs.evolve(known.row, sealed=sealed))
            elif isinstance(known.row, WebhookCursor):
                tx.webhook_cursors.put(attrs.evolve(known.row, sealed=sealed))
            else:
                tx.users.update(attrs.evolve(known.row, totp=sealed))
            record_audit(
                tx, known.workspace_id, f"{known.kind}.rekey", known.id, actor=actor, now=now, detail=known.place
            )
            done += 1
        return done


def _accounts_after(tx: Transaction, after: str) -> tuple[str | None, Sequence[_Secret]]:
    """Return a slice of the accounts' secrets, and the identifier after which the next one begins."""
    rows = tx.accounts.page(after=after, limit=_SLICE)
    return _last(rows), [_of_account(row) for row in rows]


def _users_after(tx: Transaction, after: str) -> tuple[str | None, Sequence[_Secret]]:
    """Return those of a slice of the users, and the identifier after which the next one begins."""
    rows = tx.users.page(after=after, limit=_SLICE)
    return _last(rows), [one for row in rows if (one := _of_user(row)) is not None]


def _webhooks_after(tx: Transaction, after: str) -> tuple[str | None, Sequence[_Secret]]:
    """Return those of a slice of the webhooks, and the identifier after which the next one begins."""
    rows = tx.webhooks.every(after=after, limit=_SLICE)
    cursors = [tx.webhook_cursors.get(row.workspace_id, row.id) for row in rows]
    return _last(rows), [one for cursor in cursors if (one := _of_webhook(cursor)) is not None]


def _last(rows: Sequence[StoredAccount] | Sequence[StoredUser] | Sequence[Webhook]) -> str | None:
    return rows[-1].id if len(rows) == _SLICE else None


def _present(tx: Transaction, seen: _Secret) -> _Secret | None:
    """Return a secret as it is now; None if it is there no more."""
    if isinstance(seen.row, WebhookCursor):
        return _of_webhook(tx.webhook_cursors.get(seen.row.workspace_id, seen.id))
    if seen.workspace_id is not None:
        account = tx.accounts.get(seen.workspace_id, seen.id)
        return _of_account(account) if account is not None else None
    user = tx.users.get(seen.id)
    return _of_user(user) if user is not None else None


def _of_account(account: StoredAccount) -> _Secret:
    return _Secret(
        id=account.id,
        workspace_id=account.workspace_id,
        sealed=account.sealed,
        place=account.provider,
        row=account,
    )


def _of_webhook(cursor: WebhookCursor | None) -> _Secret | None:
    if cursor is None or not cursor.sealed:
        return None
    return _Secret(
        id=cursor.webhook_id, workspace_id=cursor.workspace_id, sealed=cursor.sealed, place=WEBHOOKS, row=cursor
    )


def _of_user(user: StoredUser) -> _Secret | None:
    if user.totp is None:
        return None
    return _Secret(id=user.id, workspace_id=None, sealed=user.totp, place="second_factor", row=user)


def _refusal(unreadable: Sequence[_Secret]) -> str:
    shown = ", ".join(
        f"{one.kind} {one.id}" + (f" at {one.place}" if one.kind == "account" else "") for one in unreadable[:_SHOWN]
    )
    more = f" and {len(unreadable) - _SHOWN} more" if len(unreadable) > _SHOWN else ""
    return (
        f"None of the keys here opens the secrets of {shown}{more}. Nothing was changed. Give the key that they were "
        "encrypted with too, after the new one; or connect these accounts and add these webhooks anew, or remove them."
    )
