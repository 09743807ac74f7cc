"""What one endpoint gets next."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import attrs
import pytest

from outreach.rules.webhook_queue import MAX_WAITING, DeliveryQueue, EndpointHealth, QueuedEvent
from outreach.rules.webhooks import DOWN_AFTER, MAX_HELD_KEYS, STEPS

NOW = datetime(2026, 3, 2, 15, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def queue_of(*keys: str) -> DeliveryQueue:
    """Queue of."""
    queue = DeliveryQueue(position=0, health=EndpointHealth())
    for number, key in enumerate(keys, 1):
        queue.add(number, key)
    return queue


def taken(queue: DeliveryQueue, now: datetime = NOW) -> list[int]:
    """Taken."""
    found: list[int] = []
    while (event := queue.take(now)) is not None:
        found.append(event.number)
    return found


def refuse(queue: DeliveryQueue, now: datetime = NOW) -> QueuedEvent:
    """Refuse."""
    event = queue.take(now)
    assert event is not None
    queue.fail(event, now, draw=0.5)
    return event


def test_keys_go_side_by_side_and_events_of_one_key_one_after_the_other() -> None:
    """Keys go side by side and events of one key one after the other."""
    queue = queue_of("a", "a", "b", "a")
    first, second = queue.take(NOW), queue.take(NOW)

    assert first is not None
    assert second is not None
    assert (first.number, second.number, queue.take(NOW)) == (1, 3, None)
    queue.succeed(first, NOW)
    assert taken(queue) == [2]


def test_the_position_is_the_number_up_to_which_all_is_done_or_held() -> None:
    """The position is the number up to which all is done or held."""
    queue = queue_of("a", "b", "c")
    first, second, third = (queue.take(NOW) for _ in range(3))
    assert first
    assert second
    assert third

    queue.succeed(second, NOW)
    assert queue.position == 0
    queue.fail(first, NOW, draw=0.5)
    assert queue.position == 2
    queue.succeed(third, NOW)
    queue.read_until = 9
    assert queue.position == 9


def test_a_refused_event_holds_its_key_alone() -> None:
    """A refused event holds its key alone."""
    queue = queue_of("a", "b", "a", "b")
    event = refuse(queue)
    queue.add(5, "a")

    assert taken(queue) == [2]
    assert {number: one and one.attempts for number, one in queue.take_changed().items()} == {1: 1, 3: 0, 5: 0}
    assert event.next_at == NOW + STEPS[0]
    assert queue.next_at() == NOW + STEPS[0]
    assert taken(queue, NOW + STEPS[0]) == [1]
    queue.succeed(event, NOW + STEPS[0])
    assert taken(queue, NOW + STEPS[0]) == [3]
    assert queue.take_changed() == {1: None}


def test_five_failures_over_one_key_do_not_mean_that_the_endpoint_is_down() -> None:
    """Five failures over one key do not mean that the endpoint is down."""
    queue, now = queue_of("a"), NOW
    for _ in range(8):
        now = refuse(queue, now).next_at or now

    assert not queue.health.is_down
    assert queue.health.consecutive_failures == 1


def test_while_an_endpoint_is_down_one_probe_goes_out_for_each_step() -> None:
    """While an endpoint is down one probe goes out for each step."""
    queue, now = queue_of(*map(str, range(20))), NOW
    for _ in range(DOWN_AFTER):
        refuse(queue, now)
    assert queue.health == EndpointHealth(consecutive_failures=5, failing_since=NOW, next_probe_at=NOW + STEPS[0])
    assert not queue.wants_more

    probes = []
    for step in (*STEPS, STEPS[-1]):
        assert queue.take(now + step - SECOND) is None
        now += step
        probe = queue.take(now)
        assert probe is not None
        assert queue.take(now) is None
        probes.append(probe.number)
        queue.fail(probe, now, draw=0.5)
    assert probes == [1, 2, 3, 4, 5] * 2
    assert queue.health.failing_since == NOW


def test_after_a_probe_succeeds_everything_is_due() -> None:
    """After a probe succeeds everything is due."""
    queue = queue_of(*map(str, range(7)))
    for _ in range(DOWN_AFTER):
        refuse(queue)
    at = NOW + STEPS[0]
    probe = queue.take(at)
    assert probe is not None
    queue.succeed(probe, at)

    assert queue.health == EndpointHealth()
    assert taken(queue, at) == [2, 3, 4, 5, 6, 7]


def test_answers_that_come_late_are_no_probes() -> None:
    """Answers that come late are no probes."""
    queue = queue_of(*map(str, range(9)))
    events = [queue.take(NOW) for _ in range(9)]
    for event in events:
        assert event is not None
        queue.fail(event, NOW, draw=0.5)

    assert queue.health.consecutive_failures == DOWN_AFTER
    assert queue.next_at() == NOW + STEPS[0]


def test_an_event_that_is_refused_for_its_own_sake_is_given_up() -> None:
    """An event that is refused for its own sake is given up."""
    queue, now, given_up, good = queue_of("bad", "bad"), NOW, False, None
    for number in range(10, 10 + len(STEPS) + 1):
        bad = queue.take(now)
        assert bad is not None
        assert bad.number == 1
        given_up = queue.fail(bad, now, draw=0.5)
        queue.add(number, f"good{number}")
        good = queue.take(now)
        assert good is not None
        if not given_up:
            queue.succeed(good, now)
            now = bad.next_at or now

    assert given_up
    assert now - NOW >= timedelta(hours=75)
    assert good is not None
    assert good.number == 2  # its key goes on


def test_no_more_is_read_while_a_thousand_keys_are_held_or_many_events_wait() -> None:
    """No more is read while a thousand keys are held or many events wait."""
    held = [QueuedEvent(number=n, key=str(n), attempts=1, next_at=NOW, held=True) for n in range(1, MAX_HELD_KEYS + 1)]
    queue = DeliveryQueue(position=MAX_HELD_KEYS, health=EndpointHealth(), held=held)
    assert not queue.wants_more
    event = queue.take(NOW)
    assert event is not None
    queue.succeed(event, NOW)
    assert queue.wants_more
    assert not queue_of(*map(str, range(MAX_WAITING))).wants_more


def test_what_was_taken_and_not_sent_is_next_again() -> None:
    """What was taken and not sent is next again."""
    queue = queue_of("a", "b")
    event = queue.take(NOW)
    assert event is not None
    queue.give_back(event)

    assert taken(queue) == [1, 2]


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_lost_and_order_holds_within_each_key_over_restarts(seed: int) -> None:
    """Nothing is lost and order holds within each key over restarts."""
    rng, now = random.Random(seed), NOW
    feed = {number: f"key{rng.randrange(12)}" for number in range(1, 300)}
    stored: dict[int, QueuedEvent] = {}
    queue, position = DeliveryQueue(position=0, health=EndpointHealth()), 0
    delivered: dict[str, list[int]] = defaultdict(list)
    in_flight: list[QueuedEvent] = []
    health = queue.health
    while position < 299 or stored:
        if rng.random() < 0.02:
            # A kill: what was not stored is forgotten.
            queue = DeliveryQueue(position=position, health=health, held=[attrs.evolve(one) for one in stored.values()])
            in_flight = []
        while queue.wants_more and queue.read_until < 299 and rng.random() < 0.9:
            queue.add(queue.read_until + 1, feed[queue.read_until + 1])
        while len(in_flight) < 4 and (event := queue.take(now)) is not None:
            assert event.key not in {one.key for one in in_flight}
            in_flight.append(event)
        if in_flight:
            event = in_flight.pop(rng.randrange(len(in_flight)))
            if event.attempts < 5 and rng.random() < 0.35:
                assert not queue.fail(event, now, draw=rng.random())
            else:
                delivered[event.key].append(event.number)
                queue.succeed(event, now)
        else:
            now = max(now, queue.next_at() or now) + SECOND
        if rng.random() < 0.3:
            for number, one in queue.take_changed().items():
                if one is None:
                    stored.pop(number, None)
                else:
                    stored[number] = attrs.evolve(one)
            position, health = queue.position, queue.health

    assert sorted({number for numbers in delivered.values() for number in numbers}) == sorted(feed)
    for numbers in delivered.values():
        first = list(dict.fromkeys(numbers))
        assert first == sorted(first)


def test_a_test_is_the_next_probe_of_an_endpoint_that_is_down() -> None:
    """A person waits for its answer; after it has failed, other events are probes too."""
    down = EndpointHealth(consecutive_failures=DOWN_AFTER, failing_since=NOW, next_probe_at=NOW)
    held = [QueuedEvent(number=number, key=str(number), attempts=1, held=True) for number in (1, 2)]
    test = QueuedEvent(number=-1, key="test", next_at=NOW, held=True)
    queue = DeliveryQueue(position=2, health=down, held=[*held, test])
    probes, now = [], NOW
    for _ in range(3):
        probe = queue.take(now)
        assert probe is not None
        probes.append(probe.number)
        queue.fail(probe, now, draw=0.5)
        assert queue.health.next_probe_at is not None
        now = queue.health.next_probe_at
    assert probes == [-1, -1, 1]
