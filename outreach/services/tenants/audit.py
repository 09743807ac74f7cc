"""The audit trail: who changed what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from outreach.errors import InvalidRequest
from outreach.ledger.common import record_audit, workspace_of
from outreach.models.base import Page
from outreach.models.fields import Text, check_value
from outreach.models.work import AuditEntry
from outreach.services.context import ServiceContext
from outreach.services.lists import PageRequest, iterate
from outreach.storage.unit_of_work import Transaction


class Audit:
    """The audit trail of workspaces, and of operations without one."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def list(
        self,
        workspace_id: str | None = None,
        *,
        actor: str | None = None,
        action: str | None = None,
        subject: str | Sequence[str] | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[AuditEntry]:
        """Return a page of the audit entries, newest first: of a workspace, or with None of all and of none.

        Args:
            workspace_id: The workspace; needed for the filters.
            actor: Only what this actor did, such as `user:ID`.
            action: Only this action, such as `key.revoke`.
            subject: Only what was done to the object with this id, or to one of several.
            after: The `next` of the page before.
            limit: The most entries.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A filter, `after` or `limit` is invalid.
        """
        subjects = [subject] if isinstance(subject, str) else subject
        given = [(name, value) for name, value in (("actor", actor), ("action", action)) if value is not None]
        given += [("subject", one) for one in subjects or ()]
        for name, value in given:
            check_value(name, value, Text(1, 255))
            if workspace_id is None:
                raise InvalidRequest.at(name, "needs a workspace_id")
        place = [workspace_id, *(f"{name}={value}" for name, value in given)]
        page_request = PageRequest("audit", *place, after=after, limit=limit)

        def operation(tx: Transaction) -> Sequence[tuple[int, AuditEntry]]:
            _require(tx, workspace_id)
            number = page_request.number()
            return tx.audit.numbered(
                workspace_id, actor=actor, action=action, subjects=subjects, after=number, limit=limit + 1
            )

        page = page_request.page(await self._context.storage.read(operation), lambda one: str(one[0]))
        return Page(items=[entry for _, entry in page], next=page.next)

    def iter_all(
        self,
        workspace_id: str | None = None,
        *,
        actor: str | None = None,
        action: str | None = None,
        subject: str | Sequence[str] | None = None,
    ) -> AsyncIterator[AuditEntry]:
        """Iterate over the audit entries of a workspace or of all, newest first; see `list`."""
        return iterate(partial(self.list, workspace_id, actor=actor, action=action, subject=subject))

    async def record(
        self, workspace_id: str | None, *, actor: str, action: str, subject: str, detail: str | None = None
    ) -> None:
        """Append an embedding application's action to the audit trail.

        Args:
            workspace_id: The workspace; None for none.
            actor: Who did it.
            action: What was done, such as `key.revoke`.
            subject: The id of what it was done to.
            detail: More about it, up to 255 characters, without personal data.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A text cannot be stored.
        """
        now = self._context.now()
        if detail is not None:
            check_value("detail", detail, Text(0, 255))

        def operation(tx: Transaction) -> None:
            _require(tx, workspace_id)
            record_audit(tx, workspace_id, action, subject, actor=actor, now=now, detail=detail)

        await self._context.storage.write(operation)


def _require(tx: Transaction, workspace_id: str | None) -> None:
    if workspace_id is not None:
        workspace_of(tx, workspace_id)
