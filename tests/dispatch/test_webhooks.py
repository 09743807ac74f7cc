"""Deliveries of webhooks, in virtual time: nothing is missed, and order holds within each key."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta

import anyio
import pytest

from outreach.core.log_throttle import LogThrottle
from outreach.dispatch.webhook_endpoint import SEEN_SECONDS, DeliveryAnswer
from outreach.dispatch.webhooks import WebhookPump
from outreach.rules.webhooks import DELIVERED_PER_SECOND, DOWN_AFTER, DRAIN_PER_SECOND
from outreach.testing.virtual_time import clock_of_loop
from tests.dispatch.webhook_feed import TAKEN, Feed, Network, Process, Receiver, Stored

pytestmark = pytest.mark.virtual_time(max_run=timedelta(days=30))

FAILED = DeliveryAnswer(status=500)
_TROUBLED_SECONDS = 2 * 3600
HUNG = DeliveryAnswer(status=None, error="timeout")
REDIRECTED = DeliveryAnswer(status=302)


class Stage:
    """One feed, its receivers, and the processes that deliver."""

    def __init__(self, *names: str, seed: int = 1, poll_seconds: float = 0.25) -> None:
        self.poll_seconds = poll_seconds
        self.clock = clock_of_loop()
        self.feed = Feed(self.clock)
        self.receivers = {name: Receiver(self.clock) for name in names}
        for name in names:
            self.feed.endpoints[name] = Stored(url=name)
        self.rng = random.Random(seed)

    def pump(self, process: Process) -> WebhookPump:
        """Return the pump of a process."""
        return WebhookPump(
            records=process,
            make_sender=lambda: Network(self.receivers),
            clock=self.clock,
            rng=self.rng,
            poll_seconds=self.poll_seconds,
            log_throttle=LogThrottle(self.clock),
        )

    async def until(self, reached: Callable[[], bool], *, within: timedelta = timedelta(hours=1)) -> None:
        """Deliver until something is reached."""
        pump = self.pump(Process(self.feed))
        with anyio.fail_after(within.total_seconds()):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pump.run)
                while not reached():  # noqa: ASYNC110 - the database notifies nobody here
                    await anyio.sleep(self.poll_seconds)
                pump.stop()

    def require_order(self, name: str) -> None:
        """Check that each event came, with one id, and in order within its key."""
        receiver, by_key = self.receivers[name], defaultdict(list)
        for number in dict.fromkeys(receiver.taken):
            by_key[self.feed.keys[number]].append(number)
        assert sorted(set(receiver.taken)) == sorted(self.feed.keys)
        assert all(numbers == sorted(numbers) for numbers in by_key.values())
        assert all(len(ids) == 1 for ids in receiver.ids.values())


def done(stage: Stage, name: str) -> Callable[[], bool]:
    """Return what tells whether an endpoint has everything."""
    one = stage.feed.endpoints[name]
    return lambda: one.position >= stage.feed.last and not one.held


async def test_a_backlog_is_delivered_at_50_a_second_and_stored_every_half_second() -> None:
    """No more at a time than its concurrency."""
    stage = Stage("a")
    stage.feed.add(*(f"key{number % 40}" for number in range(500)), ago=timedelta(minutes=2))
    began = stage.clock.monotonic()
    await stage.until(done(stage, "a"))

    stage.require_order("a")
    assert len(stage.receivers["a"].taken) == 500
    assert 9.9 < stage.clock.monotonic() - began < 12
    assert stage.feed.endpoints["a"].stores < 30
    assert stage.receivers["a"].most <= 4


async def test_new_events_are_delivered_at_200_a_second_to_all_endpoints() -> None:
    """The loop that sends messages has priority; endpoints share the pace alike."""
    stage = Stage("a", "b")
    began = stage.clock.monotonic()
    stage.feed.add(*(f"key{number % 40}" for number in range(500)))
    await stage.until(done(stage, "a"))
    first = stage.clock.monotonic() - began
    await stage.until(done(stage, "b"))

    stage.require_order("a")
    stage.require_order("b")
    whole = 2 * 500 / DELIVERED_PER_SECOND
    assert 0.9 * whole < first <= stage.clock.monotonic() - began < whole + 2


async def test_events_that_come_later_are_delivered_soon() -> None:
    """Each within a second, after half a minute in which nothing was due."""
    stage = Stage("a")
    async with anyio.create_task_group() as tasks:
        pump = stage.pump(Process(stage.feed))
        tasks.start_soon(pump.run)
        for number in range(20):
            stage.feed.add(f"key{number}")
            await anyio.sleep(1)
            assert len(stage.receivers["a"].taken) == number + 1
            await anyio.sleep(30)
        pump.stop()


async def test_an_outage_of_a_day_costs_few_requests_and_loses_nothing() -> None:
    """The first failures, and a probe for each step."""
    stage = Stage("a", poll_seconds=60)
    stage.feed.add(*(f"key{number}" for number in range(2_000)))
    receiver, began = stage.receivers["a"], stage.clock.monotonic()
    receiver.answers = lambda number, request: (0.01, FAILED if stage.clock.monotonic() < began + 86_400 else TAKEN)
    await stage.until(done(stage, "a"), within=timedelta(days=3))

    assert len([at for at in receiver.times if at < began + 86_400]) <= DOWN_AFTER + 4 + 8
    drained = [at for at in receiver.times if at >= began + 86_400]
    # 50 a second, also where all of it has come since the process began.
    assert 2_000 / DRAIN_PER_SECOND - 1 < drained[-1] - drained[0] < 2 * 2_000 / DRAIN_PER_SECOND
    stage.require_order("a")


async def test_a_hanging_endpoint_delays_no_other() -> None:
    """Nor do ten, each with as many requests as it may have."""
    stage = Stage("good", *(f"hung{number}" for number in range(10)))
    for number in range(10):
        stage.receivers[f"hung{number}"].answers = lambda number, request: (15.0, HUNG)
        stage.feed.endpoints[f"hung{number}"].concurrency = 16
    stage.feed.add(*(f"key{number}" for number in range(400)))
    began = stage.clock.monotonic()
    await stage.until(done(stage, "good"))

    assert stage.clock.monotonic() - began < 12


async def test_an_endpoint_gets_more_at_a_time_with_each_answer() -> None:
    """From four on, until its concurrency."""
    stage = Stage("a")
    stage.feed.endpoints["a"].concurrency = 16
    stage.feed.add(*(f"key{number}" for number in range(60)))
    receiver = stage.receivers["a"]
    receiver.answers = lambda number, request: (1.0, TAKEN)
    await stage.until(done(stage, "a"))

    began = receiver.times[0]
    assert [sum(1 for at in receiver.times if at < began + seconds) for seconds in (0.9, 1.9, 2.9, 3.9)] == [
        4,
        12,
        28,
        44,
    ]
    assert receiver.most == 16


async def test_410_disables_at_once_and_the_position_stays() -> None:
    """Enabled, it gets what it refused and all later ones."""
    stage = Stage("a")
    stage.feed.add(*"abcdefghij")
    stage.receivers["a"].answers = lambda number, request: (0.01, DeliveryAnswer(status=410) if number == 3 else TAKEN)
    one = stage.feed.endpoints["a"]
    one.concurrency = 1
    await stage.until(lambda: one.state == "disabled")
    assert (one.reason, one.position, sorted(one.held), stage.receivers["a"].taken) == ("gone", 3, [3], [1, 2])

    one.state = "active"
    stage.receivers["a"].answers = lambda number, request: (0.01, TAKEN)
    await stage.until(done(stage, "a"), within=timedelta(days=1))
    stage.require_order("a")


async def test_three_days_without_a_success_disable() -> None:
    """A redirect is no success; until then few requests are made."""
    stage = Stage("a", poll_seconds=60)
    stage.feed.add(*(f"key{number}" for number in range(100)))
    stage.receivers["a"].answers = lambda number, request: (0.01, REDIRECTED)
    one, began = stage.feed.endpoints["a"], stage.clock.monotonic()
    await stage.until(lambda: one.state == "disabled", within=timedelta(days=9))

    assert one.reason == "failing"
    assert timedelta(days=3).total_seconds() <= stage.clock.monotonic() - began < timedelta(days=5).total_seconds()
    assert len(stage.receivers["a"].times) < 30


async def test_a_stop_waits_for_answers_and_stores_them() -> None:
    """And gives the lease back."""
    stage = Stage("a")
    stage.feed.add("a", "b")
    stage.receivers["a"].answers = lambda number, request: (1.0, TAKEN)
    await stage.until(lambda: stage.receivers["a"].open == 2)

    assert stage.receivers["a"].taken == [1, 2]
    assert stage.feed.endpoints["a"].position == 2
    assert stage.feed.endpoints["a"].holder is None


@pytest.mark.parametrize("seconds", [0.01, 1.0])
async def test_a_paused_endpoint_gets_only_the_requests_that_have_begun(seconds: float) -> None:
    """Their answers are stored, and the lease is given back."""
    stage = Stage("a")
    stage.feed.add(*(f"key{number}" for number in range(100)))
    one, receiver = stage.feed.endpoints["a"], stage.receivers["a"]
    receiver.answers = lambda number, request: (seconds, TAKEN)
    pump = stage.pump(Process(stage.feed))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pump.run)
        while len(receiver.times) < 4:  # noqa: ASYNC110 - the database notifies nobody here
            await anyio.sleep(0.01)
        await anyio.sleep(0.01)
        one.state, paused_at = "paused", stage.clock.monotonic()
        await anyio.sleep(5)
        assert max(receiver.times) < paused_at + SEEN_SECONDS
        assert one.position == len(receiver.taken) == len(receiver.times)
        assert one.holder is None
        pump.stop()


@pytest.mark.parametrize("processes", [1, 2])
async def test_nothing_is_missed_over_10_000_events_and_20_kills(processes: int) -> None:
    """By a receiver that fails, hangs, redirects, is slow, and is away."""
    stage = Stage("a", seed=processes, poll_seconds=2)
    rng, receiver = stage.rng, stage.receivers["a"]
    stage.feed.endpoints["a"].concurrency = 16
    phases: list[Callable[[], tuple[float, DeliveryAnswer]]] = [
        lambda: (0.02, TAKEN),
        lambda: (0.02, FAILED) if rng.random() < 0.3 else (rng.random() / 10, TAKEN),
        lambda: (15.0, HUNG) if rng.random() < 0.05 else (0.02, TAKEN),
        lambda: (0.02, REDIRECTED),
        lambda: (rng.random() * 14, TAKEN),
        lambda: (0.0, DeliveryAnswer(status=None, error="not_connected")),
    ]
    began = stage.clock.monotonic()

    def answer(number: int, request: int) -> tuple[float, DeliveryAnswer]:
        passed = stage.clock.monotonic() - began
        return phases[int(passed // 20) % len(phases)]() if passed < _TROUBLED_SECONDS else (0.02, TAKEN)

    receiver.answers = answer
    stage.feed.add(*(f"key{rng.randrange(600)}" for _ in range(10_000)), ago=timedelta(minutes=2))
    reached = done(stage, "a")
    kills = 0
    with anyio.fail_after(timedelta(days=20).total_seconds()):
        while not reached():
            async with anyio.create_task_group() as tasks:
                alive = [Process(stage.feed) for _ in range(processes)]
                for process in alive:
                    tasks.start_soon(stage.pump(process).run)
                ends = stage.clock.monotonic() + (rng.uniform(2, 30) if kills < 20 else float("inf"))
                while stage.clock.monotonic() < ends and not reached():  # noqa: ASYNC110 - the database notifies nobody here
                    await anyio.sleep(0.5)
                alive[0].kill()
                kills += 1
                tasks.cancel_scope.cancel()

    assert kills > 20
    stage.require_order("a")
