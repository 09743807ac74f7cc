"""Running operations over one connection, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from outreach.storage.unit_of_work.backend import Backend
from outreach.storage.unit_of_work.journal import RollbackRequired
from outreach.storage.unit_of_work.transaction import Transaction
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork

T = TypeVar("T")


class TransactionControl(Protocol):
    """How the transactions of a connection begin and end."""

    def begin(self) -> None:
        """Begin a transaction: for a writer with the lock for writing, for a reader with a snapshot."""
        ...

    def commit(self) -> None:
        """Commit it durably."""
        ...

    def roll_back(self) -> None:
        """Roll it back, if one is open; raise nothing."""
        ...


class OperationRunner:
    """Runs operations over one connection, each in a transaction of its own. It blocks, and is used by one at a time.

    Args:
        backend: The connection.
        control: How its transactions begin and end.
    """

    def __init__(self, backend: Backend, control: TransactionControl) -> None:
        self._rows = UnitOfWork(backend, read_only=True)
        self._transaction = Transaction(self._rows)
        self._control = control

    def write(self, operation: Callable[[Transaction], T]) -> T:
        """Run an operation and commit it; return its result. Whatever it or the database raises, nothing is written."""
        return run_writing(self._rows, self._transaction, self._control, operation)

    def read(self, operation: Callable[[Transaction], T]) -> T:
        """Run a reading operation on a snapshot; return its result."""
        # Rows cached before may be outdated.
        self._rows.forget()
        self._control.begin()
        try:
            return operation(self._transaction)
        finally:
            self._control.roll_back()


def run_writing(
    rows: UnitOfWork, transaction: Transaction, control: TransactionControl, operation: Callable[[Transaction], T]
) -> T:
    """Run an operation over the tables of a unit of work in a transaction of its own; return its result."""
    try:
        control.begin()
        rows.read_only = False
        rows.begin()
        rows.savepoint()
        result = operation(transaction)
        rows.flush()
        control.commit()
    except BaseException as error:
        rows.forget()
        control.roll_back()
        cause = error.__cause__ if isinstance(error, RollbackRequired) else None
        raise (cause or error) from None
    finally:
        # A leaked transaction must not write.
        rows.read_only = True
    rows.commit()
    return result
