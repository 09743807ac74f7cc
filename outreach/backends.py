"""The parts that a storage of your own is built from: docs/own-storage.md. A public module."""

from __future__ import annotations

from outreach.serialization.documents import Value
from outreach.storage.sqlite.backend import load_many as sqlite_load
from outreach.storage.sqlite.backend import statement as sqlite_statement
from outreach.storage.sqlite.backend import write as sqlite_write
from outreach.storage.sqlite.schema import pending_migrations as pending_sqlite_migrations
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from outreach.storage.unit_of_work.kinds import (
    ALL_KINDS,
    Backend,
    Change,
    Kind,
    Row,
    Write,
    everything_changed,
    write_one_by_one,
)
from outreach.storage.unit_of_work.transaction import OperationRunner
from outreach.storage.unit_of_work.unit_of_work import TransactionControl

__all__ = [
    "ALL_KINDS",
    "AlreadyExists",
    "Backend",
    "Change",
    "Kind",
    "OperationRunner",
    "Row",
    "Transaction",
    "TransactionControl",
    "Value",
    "Write",
    "everything_changed",
    "pending_sqlite_migrations",
    "sqlite_load",
    "sqlite_statement",
    "sqlite_write",
    "write_one_by_one",
]
