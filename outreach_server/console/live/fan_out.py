"""One renderer for all who watch the same thing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import attrs

from outreach import OutreachError
from outreach.server_support import log_error

RENDER_SECONDS: Final = 1.0
"""The shortest time between two renderings, and so between two messages."""

SHARE: Final = 10.0
"""A rendering that takes long is repeated after this many times its duration."""

Regions: TypeAlias = Mapping[str, str]
"""The HTML of the parts of a page that change, by the id of their element."""

Render: TypeAlias = Callable[[], Awaitable[Regions]]

_log = logging.getLogger("outreach_server.console")


@attrs.define(eq=False)
class View:
    """A part of a page that is rendered again and again while somebody watches.

    Attributes:
        regions: The newest rendering; None before the first, and after one has failed.
        changed: Set and replaced at each rendering.
        failed: Whether it cannot be rendered any more.
        watchers: How many watch.
    """

    regions: Regions | None = None
    changed: asyncio.Event = attrs.field(factory=asyncio.Event)
    failed: bool = False
    watchers: int = 0
    task: asyncio.Task[None] | None = None

    def publish(self, regions: Regions | None) -> None:
        """Replace the rendering, and wake up those who wait for it."""
        self.regions = regions
        self.failed = regions is None
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


class FanOut:
    """The views that are watched now."""

    def __init__(self) -> None:
        self._views: dict[object, View] = {}
        # Kept until they have ended: the loop itself holds no task.
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def watched(self) -> int:
        """How many views are rendered."""
        return len(self._views)

    @asynccontextmanager
    async def watching(self, key: object, render: Render) -> AsyncIterator[View]:
        """Watch something; the first who does has it rendered, and the last one ends that.

        Args:
            key: Identifies it: all watchers with the same key see the same.
            render: Renders it.
        """
        view = self._views.get(key)
        if view is None or view.failed:
            view = self._views[key] = View()
            view.task = asyncio.create_task(_run(view, render), name="console view")
            self._tasks.add(view.task)
            view.task.add_done_callback(self._tasks.discard)
        view.watchers += 1
        try:
            yield view
        finally:
            view.watchers -= 1
            if not view.watchers:
                if self._views.get(key) is view:
                    del self._views[key]
                if view.task is not None:
                    view.task.cancel()


async def _run(view: View, render: Render) -> None:
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        try:
            view.publish(await render())
        except OutreachError as error:
            # The page, loaded again, says what is wrong.
            log_error(_log, logging.INFO, "live view ended", error=error, extra={"action": "live_view_ended"})
            view.publish(None)
            return
        except Exception as error:
            log_error(_log, logging.ERROR, "live view failed", error=error, extra={"action": "live_view_failed"})
            view.publish(None)
            return
        took = loop.time() - began
        await asyncio.sleep(max(RENDER_SECONDS - took, took * SHARE))
