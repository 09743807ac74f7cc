"""Transactions over tables in the domain's terms, which operations are written against.

Operations read and write single rows; the unit of work caches them and hands the backend sets of keys, queries and
rows.
"""

from __future__ import annotations

from outreach.storage.unit_of_work.tables.base import WorkspaceTable
from outreach.storage.unit_of_work.transaction import Transaction
from outreach.storage.unit_of_work.unit_of_work import AlreadyExists

__all__ = ["AlreadyExists", "Transaction", "WorkspaceTable"]
