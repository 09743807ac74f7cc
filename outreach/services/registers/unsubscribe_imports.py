"""Imports into the unsubscribe register, and taking them back."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from functools import partial
from typing import Final

import attrs

from outreach.errors import NotFound
from outreach.ledger.common import record_audit, workspace_of
from outreach.ledger.opt_out.entries import put_on_register, skip_waiting_recipients, take_off_register
from outreach.models.fields import Text, check_field, check_value
from outreach.models.unsubscribe import (
    IMPORT,
    NewUnsubscribes,
    Unsubscribe,
    UnsubscribeImport,
    UnsubscribeScope,
    UnsubscribeUndo,
    import_evidence,
    is_of_import,
    without_import,
)
from outreach.rules.numbering import spellings
from outreach.rules.phones import normalise, number_of_channel, parse_inbound_sender
from outreach.services.context import ServiceContext, require_text
from outreach.storage.unit_of_work import Transaction

_BATCH: Final = 500
"""Numbers of an import that are checked together."""

_MAX_FILE_NAME: Final = 200

AT_ONCE: Final = 50
"""Numbers whose waiting recipients are skipped in one transaction: each may wait in many campaigns."""


class UnsubscribeImports:
    """Importing numbers into the register."""

    _context: ServiceContext

    async def import_numbers(
        self,
        workspace_id: str,
        rows: AsyncIterable[str | tuple[int, str]],
        *,
        scope: UnsubscribeScope = "all",
        file_name: str | None = None,
        actor: str = "library",
    ) -> UnsubscribeImport:
        """Unsubscribe many numbers; invalid rows and the workspace's own numbers are reported, the others are written.

        The evidence of each entry has the import's id, the file's name and the row.

        Args:
            workspace_id: The workspace.
            rows: Numbers in any notation, each alone or as (row, number); without it, rows count from 1.
            scope: The channels that are stopped.
            file_name: Where the numbers are from, for the evidence.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The scope or the file's name is invalid.
        """
        check_field(NewUnsubscribes, "scope", scope)
        if file_name is not None:
            check_value("file_name", file_name, Text())
            file_name = file_name[:_MAX_FILE_NAME]
        region = (await self._context.storage.read(lambda tx: workspace_of(tx, workspace_id))).default_region
        import_id = self._context.ids()
        put = partial(self._put, workspace_id, import_id, scope=scope, file_name=file_name, actor=actor)
        done = UnsubscribeImport(id=import_id, added=0, known=0, rejected=())
        rejected: list[tuple[int, str]] = []
        batch: list[tuple[int, str]] = []
        count = 0
        async for item in rows:
            count += 1
            row, raw = item if isinstance(item, tuple) else (count, item)
            phone = _of_list(require_text(f"rows[{count - 1}]", raw), region)
            if phone is None:
                rejected.append((row, raw[:80]))
                continue
            batch.append((row, phone))
            if len(batch) == _BATCH:
                done = await put(done, batch)
                batch = []
        if batch:
            done = await put(done, batch)
        return attrs.evolve(done, rejected=tuple(sorted([*rejected, *done.rejected])))

    async def undo_import(self, workspace_id: str, import_id: str, *, actor: str = "library") -> UnsubscribeUndo:
        """Take the numbers of an import off the register again.

        A number stays if something else says too that its person opted out: an entry from before the import, a message,
        a call, a provider's refusal, an operator or another import. Contacts that were skipped meanwhile stay skipped.

        Raises:
            NotFound: The workspace does not exist, or its register has no number of this import.
        """
        require_text("import_id", import_id)
        storage, removed, kept = self._context.storage, 0, 0
        after: str | None = ""
        while after is not None:
            page = await storage.read(
                lambda tx, after=after: tx.register.list(workspace_of(tx, workspace_id).id, after=after, limit=_BATCH)  # type: ignore[misc]
            )
            phones = [entry.phone for entry in page if is_of_import(entry, import_id)]
            if phones:
                taken = await storage.write_in(
                    workspace_id,
                    partial(
                        self._take_back,
                        workspace_id=workspace_id,
                        import_id=import_id,
                        phones=phones,
                        actor=actor,
                    ),
                    bulk=True,
                )
                removed, kept = removed + taken, kept + len(phones) - taken
            after = page[-1].phone if len(page) == _BATCH else None
        if not removed and not kept:
            raise NotFound("number on the register of import", import_id)
        return UnsubscribeUndo(removed=removed, kept=kept)

    def _take_back(self, tx: Transaction, workspace_id: str, import_id: str, phones: Sequence[str], actor: str) -> int:
        """Take numbers of an import off the register, unless something else keeps them; return how many."""
        now, removed = self._context.now(), 0
        # Read again: a person may have written since.
        for phone in phones:
            entry = tx.register.get(workspace_id, phone)
            if entry is None or not is_of_import(entry, import_id):
                continue
            left = without_import(entry, import_id)
            if left is None:
                removed += take_off_register(tx, workspace_id, phone, now=now, actor=actor)
            elif left != entry:
                tx.register.put(left)
        detail = f"{removed} numbers"
        record_audit(tx, workspace_id, "unsubscribes.undo_import", import_id, actor=actor, now=now, detail=detail)
        return removed

    async def _put(
        self,
        workspace_id: str,
        import_id: str,
        done: UnsubscribeImport,
        rows: Sequence[tuple[int, str]],
        *,
        scope: UnsubscribeScope,
        file_name: str | None,
        actor: str,
    ) -> UnsubscribeImport:
        """Write the numbers of an import; return what it has done so far."""

        def operation(tx: Transaction) -> tuple[list[str], list[tuple[int, str]], int]:
            now = self._context.now()
            tx.numbers.prefetch_by_phone((workspace_id, each) for _, phone in rows for each in spellings(phone))
            tx.register.prefetch((workspace_id, phone) for _, phone in rows)
            written: list[str] = []
            own: list[tuple[int, str]] = []
            known = 0
            for row, phone in rows:
                if tx.numbers.of_line(workspace_id, phone) is not None:
                    own.append((row, phone))
                    continue
                known += tx.register.get(workspace_id, phone) is not None
                entry = Unsubscribe(
                    workspace_id=workspace_id,
                    phone=phone,
                    scope=scope,
                    source=IMPORT,
                    evidence=import_evidence(import_id, row, file_name),
                    created_at=now,
                )
                written.append(put_on_register(tx, entry, actor=actor).phone)
            detail = f"{len(written)} numbers, {scope}"
            record_audit(tx, workspace_id, "unsubscribes.import", import_id, actor=actor, now=now, detail=detail)
            return written, own, known

        written, own, known = await self._context.storage.write_in(workspace_id, operation, bulk=True)
        await self._skip_waiting(workspace_id, written)
        return attrs.evolve(
            done,
            added=done.added + len(written),
            known=done.known + known,
            rejected=(*done.rejected, *own),
        )

    async def _skip_waiting(self, workspace_id: str, phones: Sequence[str]) -> None:
        """Mark the recipients of numbers that the register stops already, in slices."""
        for start in range(0, len(phones), AT_ONCE):
            some = phones[start : start + AT_ONCE]
            await self._context.storage.write_in(
                workspace_id,
                lambda tx, some=some: skip_waiting_recipients(tx, workspace_id, some, now=self._context.now()),  # type: ignore[misc]
                bulk=True,
            )


def _of_list(raw: str, region: str | None) -> str | None:
    """Return the register's form of a number in a list; None for an invalid one.

    A number with a plus sign, or behind a channel, is taken even if the numbering plans do not know it: its owner may
    have opted out. Without either, a digit or the country code is more likely to be missing.
    """
    is_international = raw.lstrip().startswith("+") or number_of_channel(raw) is not None
    return parse_inbound_sender(raw, region).phone if is_international else normalise(raw, region)
