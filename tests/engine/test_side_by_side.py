from __future__ import annotations

from typing import Never

import anyio
import anyio.lowlevel
import pytest

from outreach.services.context import run_concurrently

pytestmark = pytest.mark.virtual_time


async def _never() -> Never:
    await anyio.sleep_forever()
    raise AssertionError


async def test_both_run_at_the_same_time_and_both_results_come_back() -> None:
    """Each goes on only once the other has begun."""
    aside_begun, here_begun = anyio.Event(), anyio.Event()

    async def aside() -> int:
        aside_begun.set()
        await here_begun.wait()
        return 1

    async def here() -> str:
        here_begun.set()
        await aside_begun.wait()
        return "two"

    with anyio.fail_after(30):
        assert await run_concurrently(aside, here) == (1, "two")


@pytest.mark.parametrize("fails", ["aside", "here"])
async def test_the_error_of_one_is_raised_as_it_is_and_ends_the_other(fails: str) -> None:
    """No group of errors wraps it, because callers catch it by its type."""
    error = LookupError(fails)

    async def failing() -> Never:
        await anyio.lowlevel.checkpoint()
        raise error

    with anyio.fail_after(30), pytest.raises(LookupError) as caught:
        await (run_concurrently(failing, _never) if fails == "aside" else run_concurrently(_never, failing))
    assert caught.value is error


async def test_cancelling_ends_both() -> None:
    """A call that is cancelled leaves nothing running."""
    with anyio.move_on_after(0.01) as scope:
        await run_concurrently(_never, _never)
    assert scope.cancelled_caught


async def test_what_runs_here_stays_in_its_task() -> None:
    """A source may hold what belongs to the task that it began in."""
    task = anyio.get_current_task().id

    async def here() -> int:
        return anyio.get_current_task().id

    async def aside() -> int:
        return anyio.get_current_task().id

    aside_task, here_task = await run_concurrently(aside, here)
    assert here_task == task != aside_task


async def test_a_ctrl_c_in_one_is_no_group_of_errors_and_ends_the_other() -> None:
    """It breaks into a read that stands still, while what was read before is being written."""
    begun = anyio.Event()

    async def aside() -> Never:
        begun.set()
        await _never()

    async def here() -> Never:
        assert begun.is_set()
        raise KeyboardInterrupt

    with anyio.fail_after(30), pytest.raises(KeyboardInterrupt):
        await run_concurrently(aside, here)
