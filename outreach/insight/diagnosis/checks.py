"""Runs checks side by side and bounded in time: those of an engine, and those of a server around it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio

from outreach.core.logged_errors import log_error
from outreach.errors import OutreachError, Problem, StorageError

_log = logging.getLogger(__name__)

Check = Callable[[], Awaitable[Sequence[Problem]]]
"""Examines one thing, and returns what is wrong with it."""


async def run_checks(checks: Mapping[str, Check], seconds: float) -> Sequence[Problem]:
    """Run checks side by side; one that fails or takes too long is a problem itself.

    Args:
        checks: The checks, by what each examines.
        seconds: How long one check may take.
    """
    found: dict[str, Sequence[Problem]] = {}

    async def one(name: str, check: Check) -> None:
        why = f"The check of {name} was not done within {seconds:g} s."
        try:
            with anyio.move_on_after(seconds):
                found[name] = await check()
                return
        except StorageError as error:
            found[name] = [_unusable(error)]
            return
        except OutreachError as error:
            why = error.message
        except Exception as error:  # whatever is broken, the other checks go on
            log_error(_log, logging.ERROR, "check failed: %s", name, error=error, extra={"action": "check_failed"})
            why = f"The check of {name} failed: {type(error).__name__}. The log has the traceback."
        found[name] = [
            Problem(code="check_failed", severity="warning", message=why, path=name, looks=["outreach-server doctor"])
        ]

    async with anyio.create_task_group() as tasks:
        for name, check in checks.items():
            tasks.start_soon(one, name, check)
    return [finding for name in checks for finding in found[name]]


def _unusable(error: StorageError) -> Problem:
    return Problem(
        code="database_not_usable",
        severity="critical",
        message=error.message,
        path="the database",
        looks=["outreach-server db check"],
    )
