"""Workspaces: the tenants of the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import attrs

from outreach.core.meant import did_you_mean, regions_like
from outreach.errors import InvalidRequest
from outreach.ledger import common as operations
from outreach.ledger.common import workspace_of
from outreach.models.base import Page, Unset
from outreach.models.settings import PlaceHours
from outreach.models.states import WorkspaceMode, WorkspaceStatus
from outreach.models.workspace import NewWorkspace, Workspace, WorkspaceUpdate
from outreach.rules.numbering import is_region
from outreach.rules.us_places import is_state
from outreach.services.context import ServiceContext, check_kind
from outreach.services.lists import PageRequest, iterate
from outreach.services.tenants.api_keys import ApiKeyCache


class Workspaces:
    """The tenants of the engine."""

    def __init__(self, context: ServiceContext, known_keys: ApiKeyCache) -> None:
        self._context = context
        self._known = known_keys

    async def create(self, new: NewWorkspace, *, actor: str = "library") -> Workspace:
        """Create a workspace.

        Args:
            new: The workspace.
            actor: Recorded in the audit trail.

        Raises:
            InvalidRequest: The region, or a place of narrower hours, is unknown.
        """
        workspace = new_workspace(self._context, new)
        return await self._context.storage.write(lambda tx: operations.create_workspace(tx, workspace, actor=actor))

    async def update(self, workspace_id: str, change: WorkspaceUpdate, *, actor: str = "library") -> Workspace:
        """Change a workspace; a running server applies it within a second.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The region, or a place of narrower hours, is unknown.
        """
        check_kind("change", change, WorkspaceUpdate)
        _check_region(change.default_region)
        _check_places(() if isinstance(change.narrower_hours, Unset) else change.narrower_hours)
        clock = self._context.clock
        try:
            return await self._context.storage.write_in(
                workspace_id,
                lambda tx: operations.update_workspace(tx, workspace_id, change, now=clock.now(), actor=actor),
            )
        finally:
            self._known.forget()

    async def get(self, workspace_id: str) -> Workspace:
        """Return a workspace.

        Raises:
            NotFound: The workspace does not exist.
        """
        return await self._context.storage.read(lambda tx: workspace_of(tx, workspace_id))

    async def list(self, *, after: str | None = None, limit: int = 100) -> Page[Workspace]:
        """Return a page of the workspaces, oldest first.

        Raises:
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("workspaces", after=after, limit=limit)
        return page_request.page_of_few(await self._context.storage.read(lambda tx: tx.workspaces.list()))

    def iter_all(self) -> AsyncIterator[Workspace]:
        """Iterate over all workspaces, oldest first; see `list`."""
        return iterate(self.list)


def new_workspace(context: ServiceContext, new: NewWorkspace) -> Workspace:
    """Return a workspace that is to be written.

    Raises:
        InvalidRequest: The region, or a place of narrower hours, is unknown.
    """
    check_kind("new", new, NewWorkspace)
    _check_region(new.default_region)
    _check_places(new.narrower_hours)
    now = context.now()
    if new.contact_hours is None:
        new = attrs.evolve(new, contact_hours=new.mode is WorkspaceMode.LIVE)
    return Workspace(
        id=context.ids(),
        status=WorkspaceStatus.ACTIVE,
        revision=0,
        created_at=now,
        updated_at=now,
        **attrs.asdict(new, recurse=False),
    )


def _check_region(region: str | Unset | None) -> None:
    if isinstance(region, str) and not is_region(region):
        meant = did_you_mean(regions_like(region)) or "; use two capital letters such as US"
        raise InvalidRequest.at("default_region", f"{region!r} is not a region{meant}")


def _check_places(hours: Iterable[PlaceHours]) -> None:
    for index, one in enumerate(hours):
        country, _, state = one.place.partition("-")
        if not (is_state(state) if state else is_region(country)):
            kind = "state of the United States" if state else "country"
            raise InvalidRequest.at(f"narrower_hours[{index}].place", f"{one.place!r} is no known {kind}")
