"""The tables of a transaction, one module an aggregate; the SQL is in `outreach.storage.sqlite.sql`."""
