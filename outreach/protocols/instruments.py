"""All instrumentations of an engine as one, whose errors do not reach the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, TypeVar, cast

from outreach.core.log_throttle import LogThrottle
from outreach.errors import ConfigError
from outreach.protocols.instrumentation import Instrumentation

F = TypeVar("F", bound=Callable[..., None])


def _forwarded_to_all(method: F) -> F:
    """Return a method that calls its namesake on each of the instrumentations."""
    name = method.__name__

    @wraps(method)
    def forward(self: Instruments, *args: Any, **kwargs: Any) -> None:
        for call in self._targets[name]:
            try:
                call(*args, **kwargs)
            except Exception as error:
                self._failed(call, error)

    return cast("F", forward)


_METHODS: Final = tuple(name for name in vars(Instrumentation) if not name.startswith("_"))


class Instruments(Instrumentation):
    """Forwards each call to several instrumentations, one after the other.

    Args:
        instrumentation: The receivers; each gets only the calls that it has a method of its own for.
        log_throttle: Gets their errors.
    """

    def __init__(self, instrumentation: Sequence[Instrumentation], log_throttle: LogThrottle) -> None:
        if isinstance(instrumentation, Instrumentation) or not all(
            isinstance(one, Instrumentation) for one in instrumentation
        ):
            raise ConfigError(
                f"instrumentation is {instrumentation!r}; it must be a list of outreach.protocols.Instrumentation."
            )
        self._log_throttle = log_throttle
        self._targets = {
            name: [
                getattr(one, name)
                for one in instrumentation
                if getattr(type(one), name) is not getattr(Instrumentation, name)
            ]
            for name in _METHODS
        }

    def _failed(self, call: Callable[..., None], error: Exception) -> None:
        kind = type(getattr(call, "__self__", call)).__name__
        self._log_throttle.problem(
            ("instrumentation", kind),
            type(error).__name__,
            "The instrumentation %s failed; what it should have noted is missing.",
            kind,
            error=error,
            action="instrumentation_failed",
            error_type=type(error).__name__,
        )


for _name in _METHODS:
    setattr(Instruments, _name, _forwarded_to_all(getattr(Instrumentation, _name)))
