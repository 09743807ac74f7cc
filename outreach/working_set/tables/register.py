"""The unsubscribe register."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.clock import format_timestamp
from outreach.models.base import Channel
from outreach.models.unsubscribe import HELD, RegisterSalt, Unsubscribe
from outreach.policy.phones import is_pseudonym, register_hash
from outreach.working_set.kinds import REGISTER_SALTS, UNSUBSCRIBES
from outreach.working_set.tables.base import LAST, Table, json_list


class Register(Table):
    """The unsubscribe register; (workspace, phone) is unique.

    A number of an erased person is stored as a hash. It is found by the number all the same, as if it stood there.
    """

    def get(self, workspace_id: str, phone: str) -> Unsubscribe | None:
        """Return the entry of a number."""
        entry = self._rows.get(UNSUBSCRIBES, (workspace_id, phone))
        if entry is None and (hashed := self._hashed(workspace_id, phone)) is not None:
            entry = self._rows.get(UNSUBSCRIBES, (workspace_id, hashed))
            return None if entry is None else attrs.evolve(entry, phone=phone)
        return entry

    def stored_name(self, workspace_id: str, phone: str) -> str | None:
        """Return the hash by which the register has a number; None if it does not have it, or as it is."""
        hashed = self._hashed(workspace_id, phone)
        if hashed is None or self._rows.get(UNSUBSCRIBES, (workspace_id, hashed)) is None:
            return None
        return hashed

    def prefetch(self, workspace_and_phone: Iterable[tuple[str, str]]) -> None:
        """Read the entries of many numbers in one go, for `get`."""
        wanted = list(workspace_and_phone)
        names = ((workspace_id, self._hashed(workspace_id, phone)) for workspace_id, phone in wanted)
        self._rows.prefetch(UNSUBSCRIBES, [*wanted, *(name for name in names if name[1] is not None)])

    def put(self, entry: Unsubscribe) -> None:
        """Insert or replace a number's entry; this counts as a stop."""
        self._rows.count_stop()
        if (hashed := self._hashed(entry.workspace_id, entry.phone)) is not None:
            self._rows.delete(UNSUBSCRIBES, (entry.workspace_id, hashed))
        self._rows.put(UNSUBSCRIBES, UNSUBSCRIBES.key_of(entry), entry)

    def delete(self, workspace_id: str, phone: str) -> bool:
        """Remove a number; return whether it was there."""
        found = self._rows.delete(UNSUBSCRIBES, (workspace_id, phone))
        hashed = self._hashed(workspace_id, phone)
        return (hashed is not None and self._rows.delete(UNSUBSCRIBES, (workspace_id, hashed))) or found

    def hash_number(self, entry: Unsubscribe, *, salt: str) -> str:
        """Store an entry by the hash of its number, without its evidence; return the hash.

        `salt` is used for the workspace's first hash, and ignored later.
        """
        stored = self._rows.get(REGISTER_SALTS, (entry.workspace_id,))
        if stored is None:
            stored = RegisterSalt(salt=salt)
            self._rows.put(REGISTER_SALTS, (entry.workspace_id,), stored)
        name = register_hash(stored.salt, entry.phone)
        self._rows.count_stop()
        self._rows.delete(UNSUBSCRIBES, (entry.workspace_id, entry.phone))
        hashed = attrs.evolve(entry, phone=name, evidence=None)
        self._rows.put(UNSUBSCRIBES, UNSUBSCRIBES.key_of(hashed), hashed)
        return name

    def numbers_before(self, workspace_id: str, before: datetime, *, limit: int) -> Sequence[Unsubscribe]:
        """Return entries with a number created before a moment, oldest first, without those under review."""
        return self._list(
            UNSUBSCRIBES,
            "erasure.old_register",
            workspace_id=workspace_id,
            before=format_timestamp(before),
            limit=limit,
        )

    def _hashed(self, workspace_id: str, phone: str) -> str | None:
        """Return the hash of a number; None if the workspace's register has no hashes."""
        salt = self._rows.get(REGISTER_SALTS, (workspace_id,))
        return None if salt is None or is_pseudonym(phone) else register_hash(salt.salt, phone)

    def list(self, workspace_id: str, *, after: str = "", limit: int = 1000) -> Sequence[Unsubscribe]:
        """Return entries by number from `after` on, at most `limit`."""
        return self._list(UNSUBSCRIBES, "register.list", workspace_id=workspace_id, after=after, limit=limit)

    def held(
        self, workspace_id: str | None, *, after: tuple[datetime, str, str] | None = None, limit: int
    ) -> Sequence[Unsubscribe]:
        """Return numbers under review, of one workspace or all, by (created_at, workspace, number), descending.

        They begin behind `after`, which is such a triple.
        """
        after_at, after_workspace, after_phone = (
            (LAST, "", "") if after is None else (format_timestamp(after[0]), *after[1:])
        )
        return self._list(
            UNSUBSCRIBES,
            "register.held",
            workspace_id=workspace_id,
            after_at=after_at,
            after_workspace=after_workspace,
            after_phone=after_phone,
            limit=limit,
        )

    def stopped(self, workspace_id: str, channel: Channel, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers (at most 5,000) that must not be contacted on this channel."""
        if len(phones) == 1:
            # One number is asked for repeatedly, so that its entry or absence is cached.
            [phone] = phones
            entry = self.get(workspace_id, phone)
            return frozenset(phones) if entry is not None and entry.stops(channel) else frozenset()
        found = self.read_restrictions(workspace_id, channel, phones)
        return frozenset(phone for phone, restriction in found.items() if restriction == "stopped")

    def read_restrictions(
        self, workspace_id: str, channel: Channel, phones: Collection[str]
    ) -> Mapping[str, Literal["stopped", "held"]]:
        """Return what `restrictions` returns by one query, without caching: for numbers that are asked for once."""
        if not phones:
            return {}
        names = {phone: phone for phone in phones}
        for phone in phones:
            if (hashed := self._hashed(workspace_id, phone)) is None:
                break
            names[hashed] = phone
        rows = self._rows.query("register.scopes", UNSUBSCRIBES, workspace_id=workspace_id, phones=json_list(names))
        stops = {"all", channel}
        return {
            names[phone]: "held" if scope == HELD else "stopped"
            for phone, scope in rows
            if scope == HELD or scope in stops
        }

    def restrictions(
        self, workspace_id: str, channel: Channel, phones: Collection[str]
    ) -> Mapping[str, Literal["stopped", "held"]]:
        """Return the restrictions of numbers (at most 5,000): stopped, or held for review; their entries are cached."""
        self.prefetch((workspace_id, phone) for phone in phones)
        entries = (self.get(workspace_id, phone) for phone in phones)
        found = [entry for entry in entries if entry is not None and (entry.stops(channel) or entry.scope == HELD)]
        return {entry.phone: "held" if entry.scope == HELD else "stopped" for entry in found}
