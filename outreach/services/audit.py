"""The audit trail: who changed what."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.models.work import AuditEntry
from outreach.operations.common import record_audit, workspace_of
from outreach.services.context import ServiceContext
from outreach.services.validation import check_limit
from outreach.working_set import Transaction


class Audit:
    """The audit trail of workspaces, and of operations without one."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def list(self, workspace_id: str | None = None, *, limit: int = 1000) -> Sequence[AuditEntry]:
        """Return the newest audit entries of a workspace or of all, newest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The limit is invalid.
        """
        check_limit(limit)

        def operation(tx: Transaction) -> Sequence[AuditEntry]:
            _require(tx, workspace_id)
            return tx.audit.list(workspace_id, limit=limit)

        return await self._context.storage.read(operation)

    async def record(self, workspace_id: str | None, *, actor: str, action: str, subject: str) -> None:
        """Append an embedding application's action to the audit trail.

        Raises:
            NotFound: The workspace does not exist.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> None:
            _require(tx, workspace_id)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action=action, subject=subject)

        await self._context.storage.write(operation)


def _require(tx: Transaction, workspace_id: str | None) -> None:
    if workspace_id is not None:
        workspace_of(tx, workspace_id)
