"""A database in PostgreSQL, in a schema of its own; needs the extra `postgres`."""

from __future__ import annotations

from outreach.core.extras import needed_for

with needed_for("A PostgreSQL database"):
    import psycopg  # noqa: F401 - only whether it is there
    import psycopg_pool  # noqa: F401

from outreach.storage.postgres.storage import PostgresStorage, postgres_storage_from_url

__all__ = ["PostgresStorage", "postgres_storage_from_url"]
