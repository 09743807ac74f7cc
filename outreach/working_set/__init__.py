"""Transactions over tables in the domain's terms, which operations are written against.

Operations read and write single rows; the working set caches them and hands the backend sets of keys, queries and rows.
"""

from __future__ import annotations

from outreach.working_set.journal import AlreadyExists
from outreach.working_set.tables.base import WorkspaceTable
from outreach.working_set.transaction import Transaction

__all__ = ["AlreadyExists", "Transaction", "WorkspaceTable"]
