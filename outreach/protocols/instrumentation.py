"""The reports of the engine while it works, for metrics, traces and logs; errors of a receiver do not reach it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast, runtime_checkable

from outreach.core.async_functions import async_problem
from outreach.errors import ConfigError

if TYPE_CHECKING:
    from outreach.core.log_throttle import LogThrottle
    from outreach.models.dispatch import Dispatch, DispatchOutcome
    from outreach.models.reports import Report
    from outreach.models.work import WorkUnit


class Instrumentation:
    """Observes what the engine does: `Outreach(instrumentation=[...])`. Override what you need; the rest does nothing.

    Methods are called where things happen, up to thousands of times a second: they must be quick and must not wait. An
    error is logged, and changes nothing else. All methods but `transaction_committed` and `transaction_failed` are
    called on the engine's event loop. Those of one dispatch, but for `report_received`, are called in a context of its
    own (`contextvars`), so that what they set in a context variable is seen by everything that belongs to the request.
    The provider of a dispatch is the one that takes it: in a sandbox `simulator`, whichever carrier the message names.
    """

    def unit_changed(self, unit: WorkUnit) -> None:
        """A campaign, message or call has work to do; called in the task of the caller that changed it."""

    def intent_committed(self, dispatch: Dispatch) -> None:
        """A dispatch was committed, and waits for its slot."""

    def request_started(self, dispatch: Dispatch, *, late_seconds: float) -> None:
        """The provider is about to be called.

        Args:
            dispatch: The dispatch.
            late_seconds: How long after its slot in the pace it starts.
        """

    def request_ended(self, dispatch: Dispatch, outcome: DispatchOutcome, *, seconds: float | None) -> None:
        """A dispatch has its outcome, which is about to be recorded; called once for each committed dispatch.

        Args:
            dispatch: The dispatch, as it was committed.
            outcome: Its outcome.
            seconds: How long the provider took; None if it was not called.
        """

    def report_received(self, dispatch: Dispatch | None, report: Report, *, delay_seconds: float | None) -> None:
        """A provider's report on a message or call was merged, and committed.

        Args:
            dispatch: The dispatch of the report; None if it is unknown.
            report: The report.
            delay_seconds: How long after the start of the request it came; None without a dispatch.
        """

    def callback_refused(self, provider: str) -> None:
        """A callback to an account's address was refused: not the provider's, too old, too large or unreadable."""

    def webhook_answered(self, webhook_id: str, *, status: int | None, error: str | None, seconds: float) -> None:
        """A request to a webhook has ended.

        Args:
            webhook_id: The webhook.
            status: The HTTP status of the answer; None where none came. An event is taken with 200 to 299.
            error: Why no answer came: `target_refused`, `not_connected`, `timeout` or `dropped`; else None.
            seconds: How long it took.
        """

    def lease_lost(self) -> None:
        """This process lost the right to dispatch while it held it."""

    def transaction_committed(self, *, operations: int, seconds: float, queued: int) -> None:
        """A transaction was committed; called in a thread of the storage.

        Args:
            operations: How many operations shared it.
            seconds: How long it took, its commit included.
            queued: How many operations wait for the next one.
        """

    def transaction_failed(self, *, operations: int, error: str) -> None:
        """A transaction failed, and nothing of it was written; called in a thread of the storage.

        Args:
            operations: How many operations shared it.
            error: The name of the error, such as `SQLITE_FULL`.
        """


@runtime_checkable
class ObservableStorage(Protocol):
    """A storage that reports its transactions."""

    def observe(self, instrumentation: Instrumentation) -> None:
        """Report each transaction to this instrumentation from now on."""
        ...


F = TypeVar("F", bound=Callable[..., None])


def _forwarded_to_all(method: F) -> F:
    """Return a method that calls its namesake on each of the instrumentations."""
    name = method.__name__

    @wraps(method)
    def forward(self: Instruments, *args: Any, **kwargs: Any) -> None:
        for call in self._targets[name]:
            try:
                call(*args, **kwargs)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # The call does not wait: a cancellation that it raises is not one of the engine's task.
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
        for name, calls in self._targets.items():
            for call in calls:
                problem = async_problem(call, is_async=False)
                if problem is not None:
                    raise ConfigError(f"instrumentation: {name} {problem}, because nothing awaits it: {call!r}.")

    def _failed(self, call: Callable[..., None], error: BaseException) -> None:
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
