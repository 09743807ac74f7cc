"""The names of workspaces: several may share one, but those who make them by hand mean another."""

from __future__ import annotations

from outreach import Outreach, Workspace


async def workspace_called(engine: Outreach, name: str, *, other_than: str | None = None) -> Workspace | None:
    """Return a workspace that has a name, in any case; None if there is none."""
    async for workspace in engine.workspaces.iter_all():
        if workspace.name.casefold() == name.casefold() and workspace.id != other_than:
            return workspace
    return None
