"""Engines in which one workspace feels what another does; each broken on purpose in one place."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from outreach.ledger.opt_out import entries, inbound
from outreach.models.unsubscribe import Unsubscribe
from outreach.services.registers import unsubscribes
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork


def opt_out_everywhere(patch: pytest.MonkeyPatch) -> None:
    """Put a number that opts out of one workspace's messages on the register of every workspace, unnoticed."""
    put_on_register = entries.put_on_register

    def everywhere(tx: Transaction, entry: Unsubscribe, **given: Any) -> Unsubscribe:
        for workspace in tx.workspaces.list():
            if workspace.id != entry.workspace_id:
                put_on_register(tx, attrs.evolve(entry, workspace_id=workspace.id), **given)
        return put_on_register(tx, entry, **given)

    patch.setattr(UnitOfWork, "require_written_within", lambda *_: None)
    patch.setattr(unsubscribes, "put_on_register", everywhere)
    patch.setattr(inbound, "put_on_register", everywhere)
