"""Dispatches with an unknown outcome, and the operator's decisions about them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from outreach.dispatch.looking_up import LookUps
from outreach.dispatch.reconciler import reconcile_deadlines
from outreach.dispatch.worker import backoff_of
from outreach.errors import Conflict, InvalidRequest
from outreach.ledger.common import campaign_of, existing, record_audit, workspace_of
from outreach.ledger.settling import deciding, reconciling
from outreach.ledger.settling.callback_events import merge_early_events
from outreach.ledger.settling.reconciling import Deadlines
from outreach.models.base import Page
from outreach.models.dispatch import DecisionResult, Dispatch, DispatchFilter, DispatchLookUp, OperatorDecision
from outreach.models.states import DispatchState
from outreach.models.workspace import Workspace
from outreach.protocols.voice import Analyser
from outreach.providers.pool import ProviderPool
from outreach.services.context import ServiceContext
from outreach.services.lists import PageRequest, iterate, moment_cursor
from outreach.storage.unit_of_work import Transaction

_SLICE: Final = 100
"""Requests that one transaction decides about."""


class _Tried(Exception):
    """Rolls a transaction back whose result was wanted alone."""

    def __init__(self, result: DecisionResult, found: Sequence[Dispatch]) -> None:
        self.result = result
        self.found = found


class Dispatches:
    """The dispatch ledger, for operators."""

    def __init__(
        self, context: ServiceContext, provider_pool: Callable[[Workspace], ProviderPool], analyser: Analyser
    ) -> None:
        self._context = context
        self._provider_pool = provider_pool
        self._analyser = analyser
        self._backoff = backoff_of(context.config)

    @property
    def deadlines(self) -> Deadlines:
        """The time limits of unknown dispatches: until when none is tried again, and when one ends as unconfirmed."""
        return reconcile_deadlines(self._context.config)

    async def list_unknown(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Dispatch]:
        """Return a page of a workspace's unknown dispatches, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("unknown dispatches", workspace_id, after=after, limit=limit)
        begin = page_request.moment()
        found = await self._context.storage.read(
            lambda tx: tx.dispatches.unknown(workspace_of(tx, workspace_id).id, after=begin, limit=limit + 1)
        )
        return page_request.page(found, lambda one: moment_cursor(one.created_at, one.id))

    def iter_unknown(self, workspace_id: str) -> AsyncIterator[Dispatch]:
        """Iterate over a workspace's unknown dispatches, oldest first; see `list_unknown`."""
        return iterate(partial(self.list_unknown, workspace_id))

    async def get(self, workspace_id: str, dispatch_id: str) -> Dispatch:
        """Return a dispatch.

        Raises:
            NotFound: The workspace has no such dispatch.
        """
        return await self._context.storage.read(lambda tx: tx.dispatches.existing(workspace_id, dispatch_id))

    async def get_anywhere(self, dispatch_id: str) -> Dispatch:
        """Return a dispatch of any workspace, for operator commands that name a dispatch alone.

        Raises:
            NotFound: No dispatch has this id.
        """
        return await self._context.storage.read(
            lambda tx: existing(tx.dispatches.find(dispatch_id), "dispatch", dispatch_id)
        )

    async def look_up(self, workspace_id: str, dispatch_id: str, *, actor: str = "library") -> DispatchLookUp:
        """Ask the provider now what became of an unknown dispatch, and settle it by the evidence.

        A process that dispatches does so by itself until the deadline; nothing is sent, and asking again changes
        nothing more.

        Args:
            workspace_id: The workspace.
            dispatch_id: The dispatch.
            actor: Recorded in the audit trail, with what was found.

        Raises:
            NotFound: The workspace has no such dispatch.
            Conflict: It is not unknown; the provider could not be asked, or did not answer; or the workspace is a
                sandbox, whose requests only the process that dispatches knows of.
        """
        context = self._context
        dispatch = await self.get(workspace_id, dispatch_id)
        if dispatch.state is not DispatchState.UNKNOWN:
            raise Conflict(f"The dispatch is {dispatch.state}, not unknown: there is nothing to look up.")
        workspace = await context.storage.read(lambda tx: workspace_of(tx, workspace_id))
        look_ups = LookUps(config=context.config, provider_pool=self._provider_pool(workspace))
        asked_at = context.now()
        try:
            evidence = await look_ups.ask(workspace, dispatch)
        except Exception as error:
            context.log_throttle.failure(
                "look_up_failed", error, "A look-up at %s failed.", dispatch.provider, dispatch_id=dispatch.id
            )
            raise Conflict(
                f"{dispatch.provider} could not be asked, or gave no usable answer. Nothing was changed; the server's "
                "log says why."
            ) from None
        answer = None if evidence is None else evidence.state

        def operation(tx: Transaction) -> Dispatch:
            now = context.now()
            settled = reconciling.reconcile(
                tx,
                dispatch,
                evidence,
                asked_at=asked_at,
                overdue=False,
                deadlines=self.deadlines,
                backoff=self._backoff,
                now=now,
            )
            merge_early_events(tx, settled, backoff=self._backoff, analyser=self._analyser, now=now)
            record_audit(
                tx, workspace_id, "dispatch.look_up", dispatch_id, actor=actor, now=now, detail=answer or "no evidence"
            )
            return tx.dispatches.get(workspace_id, dispatch_id) or dispatch

        return DispatchLookUp(dispatch=await context.storage.write(operation), answer=answer)

    async def resolve(
        self, workspace_id: str, dispatch_id: str, decision: OperatorDecision, *, actor: str = "library"
    ) -> Dispatch:
        """Resolve an unknown dispatch by `assume_sent` or `retry`.

        Raises:
            NotFound: The workspace has no such dispatch.
            Conflict: It is not unknown, or its request may still be running.
            InvalidRequest: The decision is another one.
        """
        _require_decision(decision)
        return await self._context.storage.write_in(
            workspace_id,
            lambda tx: reconciling.resolve(
                tx,
                workspace_id,
                dispatch_id,
                decision,
                deadlines=self.deadlines,
                backoff=self._backoff,
                now=self._context.now(),
                actor=actor,
            ),
        )

    async def resolve_many(
        self,
        workspace_id: str,
        decision: OperatorDecision,
        which: DispatchFilter | None = None,
        *,
        dry_run: bool = False,
        actor: str = "library",
    ) -> DecisionResult:
        """Resolve the unknown dispatches that a filter names as `resolve` does, a slice in each transaction.

        Before a retry those that may still be on their way are kept as they are.

        Args:
            workspace_id: The workspace.
            decision: `assume_sent` or `retry`.
            which: The dispatches; None for all unknown ones.
            dry_run: Only count: nothing is changed.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace, or the campaign of the filter, does not exist.
            InvalidRequest: The decision is another one.
        """
        _require_decision(decision)
        which = which or DispatchFilter()

        def decide(tx: Transaction, found: Sequence[Dispatch]) -> DecisionResult:
            return deciding.resolve_many(
                tx,
                found,
                decision,
                deadlines=self.deadlines,
                backoff=self._backoff,
                now=self._context.now(),
                actor=actor,
            )

        return await self._in_slices(
            workspace_id,
            which,
            lambda tx, after: tx.dispatches.undecided(workspace_id, which, after=after, limit=_SLICE),
            decide,
            dry_run=dry_run,
        )

    async def undo_many(
        self,
        workspace_id: str,
        which: DispatchFilter | None = None,
        *,
        dry_run: bool = False,
        actor: str = "library",
    ) -> DecisionResult:
        """Take decisions of `resolve` and `resolve_many` back: their dispatches are unknown again.

        Those stay as they are whose contact was tried again, that a provider has reported on, and whose contact was
        left out or erased. A dispatch whose deadline is over ends as unconfirmed soon.

        Args:
            workspace_id: The workspace.
            which: The dispatches; None for all decided ones. Their reason is `assumed_sent` or `operator_retry`.
            dry_run: Only count: nothing is changed.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace, or the campaign of the filter, does not exist.
        """
        which = which or DispatchFilter()
        return await self._in_slices(
            workspace_id,
            which,
            lambda tx, after: tx.dispatches.decided(workspace_id, which, after=after, limit=_SLICE),
            lambda tx, found: deciding.undo_many(tx, found, now=self._context.now(), actor=actor),
            dry_run=dry_run,
        )

    async def _in_slices(
        self,
        workspace_id: str,
        which: DispatchFilter,
        find: Callable[[Transaction, tuple[datetime, str] | None], Sequence[Dispatch]],
        decide: Callable[[Transaction, Sequence[Dispatch]], DecisionResult],
        *,
        dry_run: bool,
    ) -> DecisionResult:
        after: tuple[datetime, str] | None = None
        total = DecisionResult()

        def operation(tx: Transaction) -> tuple[DecisionResult, Sequence[Dispatch]]:
            workspace_of(tx, workspace_id)
            if which.campaign_id is not None:
                campaign_of(tx, workspace_id, which.campaign_id)
            found = find(tx, after)
            result = decide(tx, found)
            if dry_run:
                raise _Tried(result, found)
            return result, found

        while True:
            try:
                result, found = await self._context.storage.write(operation)
            except _Tried as tried:
                result, found = tried.result, tried.found
            total = deciding.add(total, result)
            if len(found) < _SLICE:
                return total
            after = found[-1].created_at, found[-1].id


def _require_decision(decision: str) -> None:
    if decision not in {"assume_sent", "retry"}:
        raise InvalidRequest.at("decision", "must be assume_sent or retry")
