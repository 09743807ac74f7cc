"""Dispatches with an unknown outcome, and the operator's decisions about them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from outreach.dispatch.reconciler import reconcile_deadlines
from outreach.dispatch.worker import backoff_of
from outreach.errors import InvalidRequest, NotFound
from outreach.ledger.common import workspace_of
from outreach.ledger.settling import reconciling
from outreach.models.base import Page
from outreach.models.dispatch import Dispatch, OperatorDecision
from outreach.services.context import ServiceContext
from outreach.services.lists import PageRequest, iterate, moment_cursor


class Dispatches:
    """The dispatch ledger, for operators."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._backoff = backoff_of(context.config)

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
        dispatch = await self._context.storage.read(lambda tx: tx.dispatches.get(workspace_id, dispatch_id))
        if dispatch is None:
            raise NotFound("dispatch", dispatch_id)
        return dispatch

    async def get_anywhere(self, dispatch_id: str) -> Dispatch:
        """Return a dispatch of any workspace, for operator commands that name a dispatch alone.

        Raises:
            NotFound: No dispatch has this id.
        """
        dispatch = await self._context.storage.read(lambda tx: tx.dispatches.find(dispatch_id))
        if dispatch is None:
            raise NotFound("dispatch", dispatch_id)
        return dispatch

    async def resolve(
        self, workspace_id: str, dispatch_id: str, decision: OperatorDecision, *, actor: str = "library"
    ) -> Dispatch:
        """Resolve an unknown dispatch by `assume_sent` or `retry`.

        Raises:
            NotFound: The workspace has no such dispatch.
            Conflict: It is not unknown, or its request may still be running.
            InvalidRequest: The decision is another one.
        """
        if decision not in {"assume_sent", "retry"}:
            raise InvalidRequest.at("decision", "must be assume_sent or retry")
        return await self._context.storage.write(
            lambda tx: reconciling.resolve(
                tx,
                workspace_id,
                dispatch_id,
                decision,
                deadlines=reconcile_deadlines(self._context.config),
                backoff=self._backoff,
                now=self._context.now(),
                actor=actor,
            )
        )
