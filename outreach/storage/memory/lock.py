"""The dispatch lock of a memory storage."""

from __future__ import annotations

from outreach.models.work import HighWater, Home


class MemoryLock:
    """One for each storage: the first that acquires it has it, until it gives it back."""

    def __init__(self) -> None:
        self._held = False
        self._noted: HighWater | None = None

    def acquire(self) -> bool:
        """Take the lock; return False when it is held already, by whomever."""
        if self._held:
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        self._held = False

    def home(self) -> Home | None:
        """Return None: memory lives nowhere that a copy could be taken to."""
        return None

    def high_water(self) -> HighWater | None:
        """Return what was last noted."""
        return self._noted

    def note(self, mark: HighWater, *, ended: bool = False) -> None:
        """Note how far the database has come."""
        self._noted = mark

    def crashed(self) -> bool:
        """Return False: memory goes with its process."""
        return False

    async def find_damage(self) -> str | None:
        """Return None: there is no disk that could damage anything."""
        return None
