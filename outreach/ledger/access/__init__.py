"""Workspaces, keys, accounts, request limits and idempotency."""
