"""Workspaces and their API keys."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.convert.rows import to_row
from outreach.models.workspace import ApiKey, Workspace
from outreach.storage.sqlite.sql import load
from outreach.storage.sqlite.tables.base import Table


class Workspaces(Table):
    """Workspaces."""

    queries = load("workspaces")
    what = "workspace"

    def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace."""
        return self._one(Workspace, "get", workspace_id=workspace_id)

    def insert(self, workspace: Workspace) -> None:
        """Write a new workspace."""
        self._change("insert", to_row(workspace))

    def update(self, workspace: Workspace) -> None:
        """Write over a workspace."""
        self._change_one("update", to_row(workspace))

    def list(self) -> Sequence[Workspace]:
        """Return all, oldest first."""
        return self._all(Workspace, "list")


class Keys(Table):
    """API keys."""

    queries = load("keys")
    what = "API key"

    def by_digest(self, digest: str) -> ApiKey | None:
        """Return the key with this digest, of whatever workspace."""
        return self._one(ApiKey, "by_digest", digest=digest)

    def get(self, key_id: str) -> ApiKey | None:
        """Return a key, of whatever workspace."""
        return self._one(ApiKey, "get", key_id=key_id)

    def insert(self, key: ApiKey) -> None:
        """Write a new key."""
        self._change("insert", to_row(key))

    def update(self, key: ApiKey) -> None:
        """Write over a key."""
        self._change_one("update", to_row(key))

    def list(self, workspace_id: str) -> Sequence[ApiKey]:
        """Return a workspace's keys, oldest first."""
        return self._all(ApiKey, "list", workspace_id=workspace_id)
