"""What operations are written against: a transaction over tables that speak the domain's language.

Rules get, put and list single rows. Between them and the database stands a working set, which knows every row that
was read or written, keeps what is written until a query could see it, and hands a backend sets: load these keys, run
this query, write these rows.
"""

from __future__ import annotations

from outreach.working_set.journal import AlreadyExists
from outreach.working_set.transaction import Transaction

__all__ = ["AlreadyExists", "Transaction"]
