"""The unsubscribe register of a workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from typing import get_args

import attrs

from outreach.errors import Conflict, InvalidRequest, Problem
from outreach.ledger.common import existing, record_audit, workspace_of
from outreach.ledger.opt_out.entries import (
    put_on_register,
    release_number,
    skip_waiting_recipients,
    take_off_register,
)
from outreach.models.base import Channel, Page
from outreach.models.fields import OneOf, boolean, check_field, check_value, moment
from outreach.models.unsubscribe import (
    HELD,
    KEYWORD,
    NewUnsubscribes,
    Unsubscribe,
    UnsubscribeScope,
)
from outreach.models.work import IdempotencyKey
from outreach.rules.numbering import spellings
from outreach.rules.phones import OWN_NUMBER, parse_inbound_sender
from outreach.services.context import ServiceContext, phone_problem, require_text
from outreach.services.idempotency import Idempotency, IdempotencyGuard, finishing
from outreach.services.lists import PageRequest, iterate, moment_cursor
from outreach.services.registers.unsubscribe_imports import AT_ONCE, UnsubscribeImports
from outreach.storage.unit_of_work import Transaction


class Unsubscribes(UnsubscribeImports):
    """The unsubscribe registers of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)

    async def add(
        self,
        workspace_id: str,
        *phone_numbers: str,
        scope: UnsubscribeScope = "all",
        source: str = "operator",
        evidence: str | None = None,
        idempotency_key: IdempotencyKey[Sequence[Unsubscribe]] = None,
        actor: str = "library",
    ) -> Sequence[Unsubscribe]:
        """Unsubscribe numbers, with immediate effect in every campaign; return the entries.

        Each number is read as the number of a single message is, so that every number that can be reached can opt out,
        or as the address of a message that came in, such as `whatsapp:+14155550102`.
        A number that is registered with another scope is stopped on all channels. Waiting recipients are skipped for
        good, also if the number is removed again. Only an entry with the `source` `keyword` (the person wrote it) is
        lifted by START.

        Args:
            workspace_id: The workspace.
            phone_numbers: The numbers.
            scope: The channels that are stopped.
            source: Who entered it: `operator`, or `keyword` for the person's own message.
            evidence: What shows that the person wants it, at most 1,000 characters.
            idempotency_key: A name for this request: for a day, the same key only returns the entries that are left.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A number, the scope or the evidence is invalid, a number is the workspace's own, or the key
                was used with other content; nothing was written.
            RequestInProgress: The first call with this key is still running.
        """
        check_field(NewUnsubscribes, "scope", scope)
        check_field(NewUnsubscribes, "evidence", evidence)

        def operation(tx: Transaction) -> Sequence[Unsubscribe]:
            # The time of the commit, so that a campaign that is loading meanwhile excludes the numbers.
            now = self._context.now()
            normalised = _normalise_all(phone_numbers, workspace_of(tx, workspace_id).default_region)
            _refuse_own(tx, workspace_id, normalised)
            entries = [
                put_on_register(
                    tx,
                    Unsubscribe(
                        workspace_id=workspace_id,
                        phone=phone,
                        scope=scope,
                        source=source,
                        evidence=evidence,
                        created_at=now,
                    ),
                    actor=actor,
                )
                for phone in normalised
            ]
            detail = f"{len(entries)} numbers, {scope}"
            record_audit(tx, workspace_id, "unsubscribes.add", workspace_id, actor=actor, now=now, detail=detail)
            skip_waiting_recipients(tx, workspace_id, normalised[:AT_ONCE], now=now)
            return entries

        async def make(once: IdempotencyGuard[Sequence[Unsubscribe]]) -> Sequence[Unsubscribe]:
            entries = await self._context.storage.write_in(workspace_id, finishing(operation, once))
            await self._skip_waiting(workspace_id, [entry.phone for entry in entries[AT_ONCE:]])
            return entries

        async def recall(_: bytes) -> Sequence[Unsubscribe]:
            def read(tx: Transaction) -> Sequence[Unsubscribe]:
                numbers = _normalise_all(phone_numbers, workspace_of(tx, workspace_id).default_region)
                found = (tx.register.get(workspace_id, number) for number in numbers)
                return [entry for entry in found if entry is not None]

            return await self._context.storage.read(read)

        return await self._keys.once(
            workspace_id,
            "unsubscribes.add",
            idempotency_key,
            content=[phone_numbers, scope, source, evidence],
            make=make,
            remember=lambda _: b"",
            recall=recall,
        )

    async def remove(
        self, workspace_id: str, *phone_numbers: str, evidence: str | None = None, actor: str = "library"
    ) -> int:
        """Remove numbers from the register; return how many were on it.

        Args:
            workspace_id: The workspace.
            phone_numbers: The numbers.
            evidence: Why, at most 1,000 characters; recorded in the audit trail.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A number or the evidence is invalid; nothing was removed.
        """
        check_field(NewUnsubscribes, "evidence", evidence)
        now = self._context.now()

        def operation(tx: Transaction) -> int:
            normalised = _normalise_all(phone_numbers, workspace_of(tx, workspace_id).default_region)
            removed = sum(take_off_register(tx, workspace_id, phone, now=now, actor=actor) for phone in normalised)
            detail = f"{removed} numbers" + (f": {evidence}" if evidence else "")
            record_audit(tx, workspace_id, "unsubscribes.remove", workspace_id, actor=actor, now=now, detail=detail)
            return removed

        return await self._context.storage.write_in(workspace_id, operation)

    async def list_held(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Unsubscribe]:
        """Return a page of the held numbers, whose message may have been an opt-out, latest first.

        Each needs a decision (`resolve`); its `evidence` has the message.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("held numbers", workspace_id, after=after, limit=limit)
        cursor = page_request.moment()
        begin = None if cursor is None else (cursor[0], workspace_id, cursor[1])
        found = await self._context.storage.read(
            lambda tx: tx.register.held(workspace_of(tx, workspace_id).id, after=begin, limit=limit + 1)
        )
        return page_request.page(found, lambda one: moment_cursor(one.created_at, one.phone))

    def iter_held(self, workspace_id: str) -> AsyncIterator[Unsubscribe]:
        """Iterate over the held numbers, latest first; see `list_held`."""
        return iterate(partial(self.list_held, workspace_id))

    async def resolve(
        self,
        workspace_id: str,
        phone: str,
        *,
        opted_out: bool,
        seen: datetime | None = None,
        idempotency_key: IdempotencyKey[Unsubscribe] = None,
        actor: str = "library",
    ) -> Unsubscribe:
        """Decide whether the unclear message of a held number was an opt-out; return the entry.

        Args:
            workspace_id: The workspace.
            phone: The number.
            opted_out: True unsubscribes the number from everything until the person writes START; False takes it off
                the register, so that campaigns continue with it.
            seen: The `created_at` of the entry that was read; None decides about all messages so far.
            idempotency_key: A name for this decision: for a day, the same key only returns the entry.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist, or the number is not on its register, or not any more.
            InvalidRequest: The number is not a string, `opted_out` is not a bool, `seen` is not an aware datetime, or
                the key was used with other content.
            Conflict: The number is not held, or the entry is not the one that was seen.
            RequestInProgress: The first call with this key is still running.
        """
        check_value("opted_out", opted_out, boolean)
        if seen is not None:
            check_value("seen", seen, moment)

        def operation(tx: Transaction) -> Unsubscribe:
            now = self._context.now()
            entry = _entry_of(tx, workspace_id, require_text("phone", phone))
            if entry.scope != HELD:
                raise Conflict("The number is not held: there is nothing to decide.")
            if seen is not None and entry.created_at != seen:
                raise Conflict("A further message holds the number: read it, and decide again.")
            if opted_out:
                entry = put_on_register(
                    tx, attrs.evolve(entry, scope="all", source=KEYWORD, created_at=now), actor=actor
                )
                skip_waiting_recipients(tx, workspace_id, [entry.phone], now=now)
            else:
                release_number(tx, workspace_id, entry.phone, now=now)
            detail = "opted out" if opted_out else "not opted out"
            record_audit(tx, workspace_id, "unsubscribes.resolve", workspace_id, actor=actor, now=now, detail=detail)
            return entry

        return await self._keys.once(
            workspace_id,
            "unsubscribes.resolve",
            idempotency_key,
            content=[phone, opted_out],
            make=lambda once: self._context.storage.write_in(workspace_id, finishing(operation, once)),
            remember=lambda _: b"",
            recall=lambda _: self.get(workspace_id, phone),
        )

    async def get(self, workspace_id: str, phone: str) -> Unsubscribe:
        """Return the entry of a number, in any notation.

        Raises:
            NotFound: The workspace does not exist, or the number is not on its register.
        """
        require_text("phone", phone)
        return await self._context.storage.read(lambda tx: _entry_of(tx, workspace_id, phone))

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Unsubscribe]:
        """Return a page of the register in the order of the numbers, held ones included.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("unsubscribes", workspace_id, after=after, limit=limit)
        found = await self._context.storage.read(
            lambda tx: tx.register.list(
                workspace_of(tx, workspace_id).id, after=page_request.cursor or "", limit=limit + 1
            )
        )
        return page_request.page(found, lambda one: one.phone)

    def iter_all(self, workspace_id: str) -> AsyncIterator[Unsubscribe]:
        """Iterate over the register in the order of the numbers; see `list`."""
        return iterate(partial(self.list, workspace_id))

    async def filter_unsubscribed(self, workspace_id: str, channel: Channel, phones: Sequence[str]) -> frozenset[str]:
        """Return which of the E.164 numbers must not be contacted by a channel.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The channel is unknown.
        """
        check_value("channel", channel, OneOf(get_args(Channel)))
        return await self._context.storage.read(
            lambda tx: tx.register.stopped(workspace_of(tx, workspace_id).id, channel, tuple(phones))
        )


def _entry_of(tx: Transaction, workspace_id: str, phone: str) -> Unsubscribe:
    """Return the entry of a number in any notation, or raise `NotFound`."""
    normalised = _normalise(phone, workspace_of(tx, workspace_id).default_region)
    entry = None if normalised is None else tx.register.get(workspace_id, normalised)
    return existing(entry, "number on the register", phone)


def _normalise(phone: str, region: str | None) -> str | None:
    return parse_inbound_sender(phone, region).phone


def _refuse_own(tx: Transaction, workspace_id: str, phones: Sequence[str]) -> None:
    tx.numbers.prefetch_by_phone((workspace_id, each) for phone in phones for each in spellings(phone))
    details = [
        Problem(path=f"phone_numbers[{index}]", message=f"{phone} {OWN_NUMBER}")
        for index, phone in enumerate(phones)
        if tx.numbers.of_line(workspace_id, phone) is not None
    ]
    if details:
        raise InvalidRequest(details=details)


def _normalise_all(phone_numbers: Sequence[str], region: str | None) -> Sequence[str]:
    normalised, details = [], []
    for index, raw in enumerate(phone_numbers):
        path = f"phone_numbers[{index}]"
        phone = _normalise(require_text(path, raw), region)
        if phone is None:
            details.append(Problem(path=path, message=phone_problem(raw, region)))
        else:
            normalised.append(phone)
    if details:
        raise InvalidRequest(details=details)
    return normalised
