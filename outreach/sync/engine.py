"""The base of the engine for synchronous code: opening and closing."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from outreach.engine import Outreach as AsyncOutreach
from outreach.sync.lifetime import Lifetime
from outreach.sync.service import Service


class Engine(Service[AsyncOutreach]):
    """The base of `outreach.sync.Outreach`.

    Args:
        engine: The asynchronous engine, not open yet.
    """

    def __init__(self, engine: AsyncOutreach) -> None:
        super().__init__(Lifetime(engine), lambda engine: engine)
        self._serve()

    @classmethod
    def _over(cls, engine: AsyncOutreach) -> Self:
        found = cls.__new__(cls)
        Engine.__init__(found, engine)
        return found

    def _serve(self) -> None:
        """Set the services."""

    def start(self) -> Self:
        """Open the engine in this process now, instead of with the first call; return it.

        Raises:
            ConfigError: It is open already, or was open as this process was forked.
            DatabaseOlder: An older version has written it, and this engine was not to bring it up to date.
            StorageError: The database cannot be used.
        """
        self._lifetime.start()
        return self

    def close(self) -> None:
        """Stop dispatching, letting what is in flight end within the grace, and close the database.

        Calls and streams of other threads end. Any later call is a `ConfigError`, until `start`.
        """
        self._lifetime.close()

    def __enter__(self) -> Self:
        """Open the engine; see `start`."""
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close the engine; see `close`."""
        self.close()
