"""The unsubscribe register."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.core.clock import format_timestamp
from outreach.models.base import Channel
from outreach.models.unsubscribe import HELD, KEYWORD, RegisterSalt, Unsubscribe, imports_alone
from outreach.rules.phones import is_pseudonym, register_hash
from outreach.rules.spellings import spellings
from outreach.rules.stored_numbers import stored_forms
from outreach.storage.unit_of_work.kinds import REGISTER_SALTS, UNSUBSCRIBES
from outreach.storage.unit_of_work.tables.base import LAST, Table, json_list


class Register(Table):
    """The unsubscribe register; (workspace, phone) is unique.

    A number of an erased person is stored as a hash. It is found by the number all the same, as if it stood there. So
    is an entry under another form of the same person's number (`policy.stored_numbers`); several are one.
    """

    def get(self, workspace_id: str, phone: str) -> Unsubscribe | None:
        """Return the entry of the person at a number, under this number."""
        found: Unsubscribe | None = None
        for name in self._names(workspace_id, phone):
            entry = self._rows.get(UNSUBSCRIBES, (workspace_id, name))
            if entry is not None:
                entry = entry if name == phone else attrs.evolve(entry, phone=phone)
                found = entry if found is None else found.merged(entry)
        return found

    def stored_name(self, workspace_id: str, phone: str) -> str | None:
        """Return the hash by which the register has a number; None if it does not have it, or as it is."""
        hashes = (self._hashed(workspace_id, form) for form in self._forms(workspace_id, phone))
        known = (name for name in hashes if name is not None)
        return next((name for name in known if self._rows.get(UNSUBSCRIBES, (workspace_id, name)) is not None), None)

    def prefetch(self, workspace_and_phone: Iterable[tuple[str, str]]) -> None:
        """Read the entries of many numbers in one go, for `get`."""
        self._rows.prefetch(
            UNSUBSCRIBES,
            [
                (workspace_id, name)
                for workspace_id, phone in workspace_and_phone
                for name in self._names(workspace_id, phone)
            ],
        )

    def put(self, entry: Unsubscribe) -> None:
        """Insert or replace the entry of a number and of its other spellings; this counts as a stop."""
        self._rows.count_stop(entry.workspace_id)
        # An entry under a former reading stays: its number may be somebody else's.
        for name in self._with_hashes(entry.workspace_id, spellings(entry.phone)):
            if name != entry.phone:
                self._rows.delete(UNSUBSCRIBES, (entry.workspace_id, name))
        self._rows.put(UNSUBSCRIBES, UNSUBSCRIBES.key_of(entry), entry)

    def delete(self, workspace_id: str, phone: str) -> bool:
        """Remove all entries of the person at a number; return whether there were any."""
        found = [self._rows.delete(UNSUBSCRIBES, (workspace_id, name)) for name in self._names(workspace_id, phone)]
        return any(found)

    def hash_number(self, entry: Unsubscribe, *, salt: str) -> str:
        """Store an entry by the hash of its number, without its evidence; return the hash.

        `salt` is used for the workspace's first hash, and ignored later.
        """
        stored = self._rows.get(REGISTER_SALTS, (entry.workspace_id,))
        if stored is None:
            stored = RegisterSalt(salt=salt)
            self._rows.put(REGISTER_SALTS, (entry.workspace_id,), stored)
        name = register_hash(stored.salt, entry.phone)
        self._rows.count_stop(entry.workspace_id)
        self._rows.delete(UNSUBSCRIBES, (entry.workspace_id, entry.phone))
        # Without the evidence, only the source shows that START does not lift what an import says.
        kept = (imports_alone(entry) if entry.source == KEYWORD else None) or entry
        hashed = attrs.evolve(kept, phone=name, evidence=None)
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

    def _names(self, workspace_id: str, phone: str) -> Sequence[str]:
        """Return the names under which the register may have the person at a number, this number first."""
        return self._with_hashes(workspace_id, self._forms(workspace_id, phone))

    def _with_hashes(self, workspace_id: str, forms: Sequence[str]) -> Sequence[str]:
        if self._rows.get(REGISTER_SALTS, (workspace_id,)) is None:
            return forms
        hashes = (self._hashed(workspace_id, form) for form in forms)
        return [*forms, *(name for name in hashes if name is not None)]

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
            # One number is looked up repeatedly, so its entry or absence is cached.
            [phone] = phones
            entry = self.get(workspace_id, phone)
            return frozenset(phones) if entry is not None and entry.stops(channel) else frozenset()
        found = self.read_restrictions(workspace_id, channel, phones)
        return frozenset(phone for phone, restriction in found.items() if restriction == "stopped")

    def read_restrictions(
        self, workspace_id: str, channel: Channel, phones: Collection[str]
    ) -> Mapping[str, Literal["stopped", "held"]]:
        """Return what `restrictions` returns by one query, without caching: for numbers that are looked up once."""
        if not phones:
            return {}
        region, salt = self._region(workspace_id), self._rows.get(REGISTER_SALTS, (workspace_id,))
        numbers: dict[str, list[str]] = {}
        for phone in phones:
            for form in stored_forms(phone, region):
                numbers.setdefault(form, []).append(phone)
        if salt is not None:
            numbers |= {register_hash(salt.salt, form): known for form, known in numbers.items()}
        rows = self._rows.query("register.scopes", UNSUBSCRIBES, workspace_id=workspace_id, phones=json_list(numbers))
        found: dict[str, Literal["stopped", "held"]] = {}
        for name, scope in rows:
            if scope == HELD:
                # An opt-out under another form of the number outranks it.
                found.update({phone: "held" for phone in numbers[name] if phone not in found})
            elif scope in {"all", channel}:
                found.update(dict.fromkeys(numbers[name], "stopped"))
        return found

    def restrictions(
        self, workspace_id: str, channel: Channel, phones: Collection[str]
    ) -> Mapping[str, Literal["stopped", "held"]]:
        """Return the restrictions of numbers (at most 5,000): stopped, or held for review; their entries are cached."""
        self.prefetch((workspace_id, phone) for phone in phones)
        entries = (self.get(workspace_id, phone) for phone in phones)
        found = [entry for entry in entries if entry is not None and (entry.stops(channel) or entry.scope == HELD)]
        return {entry.phone: "held" if entry.scope == HELD else "stopped" for entry in found}
