"""The unsubscribe register of a workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import get_args

import attrs

from outreach.errors import Conflict, ErrorDetail, InvalidRequest, NotFound
from outreach.models.base import Channel, Page
from outreach.models.unsubscribe import (
    HELD,
    KEYWORD,
    NewUnsubscribes,
    Unsubscribe,
    UnsubscribeScope,
)
from outreach.models.work import IdempotentRequest, StoredAnswer
from outreach.operations.common import record_audit, workspace_of
from outreach.operations.register.entries import (
    put_on_register,
    release_number,
    skip_waiting_recipients,
    take_off_register,
)
from outreach.policy.phones import canonical_phone
from outreach.services.context import ServiceContext
from outreach.services.idempotency import Idempotency, IdempotencyGuard, finished
from outreach.services.lists import PageRequest, iterate, moment_place
from outreach.services.unsubscribe_imports import AT_ONCE, UnsubscribeImports
from outreach.services.validation import (
    check_bounds,
    check_choice,
    check_flags,
    check_kind,
    check_text,
    phone_problem,
    require_text,
)
from outreach.working_set import Transaction


class Unsubscribes(UnsubscribeImports):
    """The unsubscribe registers of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)

    async def add(
        self,
        workspace_id: str,
        *phones: str,
        scope: UnsubscribeScope = "all",
        source: str = "operator",
        evidence: str | None = None,
        actor: str = "library",
    ) -> Sequence[Unsubscribe]:
        """Unsubscribe numbers, with immediate effect in every campaign; return the entries.

        Each number is read as the number of a single message is, so that every number that can be reached can opt out.
        A number that is registered with another scope is stopped on all channels. Waiting recipients are skipped for
        good, also if the number is removed again. Only an entry with the `source` `keyword` (the person wrote it) is
        lifted by START.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A number, the scope or the evidence is invalid; nothing was written.
        """
        return await self._add(workspace_id, phones, scope, source, evidence, actor, IdempotencyGuard())

    async def _add_response(
        self,
        workspace_id: str,
        new: NewUnsubscribes,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Sequence[Unsubscribe]], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        check_kind("new", new, NewUnsubscribes)
        phones, evidence = tuple(new.phone_numbers), new.evidence
        check_bounds(NewUnsubscribes, {"evidence": evidence})
        return await self._keys.answer(
            workspace_id,
            request,
            render=render,
            make=lambda once: self._add(
                workspace_id, phones, new.scope, "operator", evidence, actor, once, field="phone_numbers"
            ),
        )

    async def _add(
        self,
        workspace_id: str,
        phones: Sequence[str],
        scope: UnsubscribeScope,
        source: str,
        evidence: str | None,
        actor: str,
        once: IdempotencyGuard[Sequence[Unsubscribe]],
        *,
        field: str = "phones",
    ) -> Sequence[Unsubscribe]:
        check_choice("scope", scope, get_args(UnsubscribeScope))
        if evidence is not None:
            check_text("evidence", evidence)

        def operation(tx: Transaction) -> Sequence[Unsubscribe]:
            # The time of the commit, so that a campaign that is loading meanwhile excludes the numbers.
            now = self._context.now()
            normalised = _normalise_all(phones, workspace_of(tx, workspace_id).default_region, field)
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
            record_audit(
                tx,
                now=now,
                workspace_id=workspace_id,
                actor=actor,
                action="unsubscribes.add",
                subject=workspace_id,
                detail=f"{len(entries)} numbers, {scope}",
            )
            skip_waiting_recipients(tx, workspace_id, normalised[:AT_ONCE], now=now)
            return finished(tx, entries, once)

        entries = await self._context.storage.write(operation)
        await self._skip_waiting(workspace_id, [entry.phone for entry in entries[AT_ONCE:]])
        return entries

    async def remove(self, workspace_id: str, *phones: str, actor: str = "library") -> int:
        """Remove numbers from the register; return how many were on it.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A number is invalid; nothing was removed.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> int:
            normalised = _normalise_all(phones, workspace_of(tx, workspace_id).default_region)
            removed = sum(take_off_register(tx, workspace_id, phone, now=now, actor=actor) for phone in normalised)
            record_audit(
                tx,
                now=now,
                workspace_id=workspace_id,
                actor=actor,
                action="unsubscribes.remove",
                subject=workspace_id,
                detail=f"{removed} numbers",
            )
            return removed

        return await self._context.storage.write(operation)

    async def list_held(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Unsubscribe]:
        """Return a page of the held numbers, whose message may have been an opt-out, latest first.

        Each needs a decision (`resolve`); its `evidence` has the message.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        asked = PageRequest("held numbers", workspace_id, after=after, limit=limit)
        place = asked.moment()
        begin = None if place is None else (place[0], workspace_id, place[1])
        found = await self._context.storage.read(
            lambda tx: tx.register.held(workspace_of(tx, workspace_id).id, after=begin, limit=limit + 1)
        )
        return asked.page(found, lambda one: moment_place(one.created_at, one.phone))

    def iter_held(self, workspace_id: str) -> AsyncIterator[Unsubscribe]:
        """Iterate over the held numbers, latest first; see `list_held`."""
        return iterate(partial(self.list_held, workspace_id))

    async def resolve(self, workspace_id: str, phone: str, *, opted_out: bool, actor: str = "library") -> None:
        """Decide whether the unclear message of a held number was an opt-out.

        Args:
            workspace_id: The workspace.
            phone: The number.
            opted_out: True unsubscribes the number from everything until the person writes START; False lets campaigns
                continue with it.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist, or the number is not on its register.
            InvalidRequest: The number is not a string, or `opted_out` is not a bool.
            Conflict: The number is not held.
        """
        await self._resolve(workspace_id, phone, opted_out, actor, IdempotencyGuard())

    async def _resolve_response(
        self,
        workspace_id: str,
        phone: str,
        *,
        opted_out: bool,
        request: IdempotentRequest | None,
        render: Callable[[Unsubscribe], StoredAnswer],
        actor: str = "library",
    ) -> StoredAnswer:
        return await self._keys.answer(
            workspace_id,
            request,
            render=render,
            make=lambda once: self._resolve(workspace_id, phone, opted_out, actor, once),
        )

    async def _resolve(
        self, workspace_id: str, phone: str, opted_out: bool, actor: str, once: IdempotencyGuard[Unsubscribe]
    ) -> Unsubscribe:
        check_flags({"opted_out": opted_out}, "opted_out")

        def operation(tx: Transaction) -> Unsubscribe:
            now = self._context.now()
            normalised = canonical_phone(require_text("phone", phone), workspace_of(tx, workspace_id).default_region)
            entry = None if normalised is None else tx.register.get(workspace_id, normalised)
            if normalised is None or entry is None:
                raise NotFound("number on the register", phone)
            if entry.scope != HELD:
                raise Conflict("The number is not held: there is nothing to decide.")
            if opted_out:
                entry = put_on_register(
                    tx, attrs.evolve(entry, scope="all", source=KEYWORD, created_at=now), actor=actor
                )
                skip_waiting_recipients(tx, workspace_id, [normalised], now=now)
            else:
                release_number(tx, workspace_id, normalised, now=now)
            record_audit(
                tx,
                now=now,
                workspace_id=workspace_id,
                actor=actor,
                action="unsubscribes.resolve",
                subject=workspace_id,
                detail="opted out" if opted_out else "not opted out",
            )
            return finished(tx, entry, once)

        return await self._context.storage.write(operation)

    async def get(self, workspace_id: str, phone: str) -> Unsubscribe:
        """Return the entry of a number, in any notation.

        Raises:
            NotFound: The workspace does not exist, or the number is not on its register.
        """

        def operation(tx: Transaction) -> Unsubscribe | None:
            normalised = canonical_phone(phone, workspace_of(tx, workspace_id).default_region)
            return None if normalised is None else tx.register.get(workspace_id, normalised)

        require_text("phone", phone)
        entry = await self._context.storage.read(operation)
        if entry is None:
            raise NotFound("number on the register", phone)
        return entry

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Unsubscribe]:
        """Return a page of the register in the order of the numbers, held ones included.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        asked = PageRequest("unsubscribes", workspace_id, after=after, limit=limit)
        found = await self._context.storage.read(
            lambda tx: tx.register.list(workspace_of(tx, workspace_id).id, after=asked.place or "", limit=limit + 1)
        )
        return asked.page(found, lambda one: one.phone)

    def iter_all(self, workspace_id: str) -> AsyncIterator[Unsubscribe]:
        """Iterate over the register in the order of the numbers; see `list`."""
        return iterate(partial(self.list, workspace_id))

    async def filter_unsubscribed(self, workspace_id: str, channel: Channel, phones: Sequence[str]) -> frozenset[str]:
        """Return which of the E.164 numbers must not be contacted by a channel.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The channel is unknown.
        """
        check_choice("channel", channel, get_args(Channel))
        return await self._context.storage.read(
            lambda tx: tx.register.stopped(workspace_of(tx, workspace_id).id, channel, tuple(phones))
        )


def _normalise_all(phones: Sequence[str], region: str | None, field: str = "phones") -> Sequence[str]:
    normalised, details = [], []
    for index, raw in enumerate(phones):
        phone = canonical_phone(require_text(f"{field}[{index}]", raw), region)
        if phone is None:
            details.append(ErrorDetail(f"{field}[{index}]", phone_problem(raw, region)))
        else:
            normalised.append(phone)
    if details:
        raise InvalidRequest(details=details)
    return normalised
