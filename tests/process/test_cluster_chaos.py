"""A cluster of real processes on PostgreSQL, of which everything fails at some time: the contract holds."""

from __future__ import annotations

import random
import re
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import attrs
import httpx
import pytest
from cryptography.fernet import Fernet

from outreach.core.secret_keys import SECRET_KEY_VARIABLE
from tests.process.cluster import LEASE_SECONDS, MAX_UNKNOWN, Cluster, Member, open_cluster, wait_for_books
from tests.process.killing import fresh_seed, replay
from tests.process.waiting import PATIENCE

MINUTE: Final = timedelta(minutes=1)
REQUEST_LIMIT: Final = 120
LATENCY_MS: Final = 150.0

LOOK_UP_AT_ONCE: Final = {
    "OUTREACH_RECONCILE_DELAY_SECONDS": "0.001",
    "OUTREACH_RECONCILE_RETRY_SECONDS": "1",
    "OUTREACH_RECONCILE_INTERVAL_SECONDS": "0.5",
}

ON_ITS_WAY: Final = timedelta(seconds=1)
"""How long a request may take, on a busy machine, from the worker's last look at the clock to the carrier's log."""

_OF_PROCRASTINATE: Final = re.compile(
    r"\A.* procrastinate\.|^procrastinate\.exceptions\.ConnectorException", re.MULTILINE
)
"""How it tells that a connection was lost, and that a job went to another worker while this one stood still."""

MAX_LATE_EACH: Final = 10
"""Requests that a process which stood still may send afterwards: those between that look and their first byte."""


@attrs.frozen(kw_only=True)
class Course:
    """What happens to a cluster.

    Attributes:
        campaigns: How many there are.
        recipients: Of each.
        rate: Of each, a minute.
        kills: Of workers and nodes.
        halts: Of workers, for longer than a lease.
        restarts: Of PostgreSQL.
        cuts: Connections that are cut at a commit.
    """

    campaigns: int
    recipients: int
    rate: int
    kills: int
    halts: int
    restarts: Sequence[signal.Signals]
    cuts: int

    @property
    def messages(self) -> int:
        """How many messages are to be sent."""
        return self.campaigns * self.recipients

    def events(self, rng: random.Random) -> Sequence[str | signal.Signals]:
        """Return what happens, in an order that the seed decides."""
        events: list[str | signal.Signals] = [*self.restarts, *["kill"] * self.kills, *["halt"] * self.halts]
        events += [("before", "after")[number % 2] for number in range(self.cuts)]
        rng.shuffle(events)
        return events


FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT
SHORT: Final = Course(campaigns=5, recipients=40, rate=120, kills=4, halts=1, restarts=[IMMEDIATE], cuts=2)
WHOLE: Final = Course(campaigns=50, recipients=200, rate=180, kills=20, halts=5, restarts=[FAST, IMMEDIATE], cuts=12)


@pytest.fixture(params=["in_process", "procrastinate"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Three workers and two nodes, not started, with each dispatcher."""
    # There is no file beside a database on a server that the key of the accounts could be in.
    monkeypatch.setenv(SECRET_KEY_VARIABLE, Fernet.generate_key().decode())
    with open_cluster(tmp_path, latency_ms=LATENCY_MS, request_limit=REQUEST_LIMIT, dispatcher=request.param) as made:
        yield made


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "course",
    [
        pytest.param(SHORT, id="short"),
        pytest.param(WHOLE, id="whole", marks=pytest.mark.nightly("the long course of the cluster")),
    ],
)
def test_a_cluster_of_which_everything_fails_keeps_the_contract(cluster: Cluster, course: Course) -> None:
    """Workers and nodes are killed and stand still, PostgreSQL restarts, connections are cut at a commit.

    Nobody is reached twice, nobody is lost, and what cannot be known is listed and bounded. The rate of each campaign
    holds over its workers, and the request limit of a workspace over the nodes.
    """
    seed = fresh_seed()
    for member in cluster.members:
        cluster.start(member)
    cluster.place.create(campaigns=course.campaigns, recipients=course.recipients, rate=course.rate)
    chaos = Chaos(cluster=cluster, course=course, rng=random.Random(seed))
    with replay(seed, chaos.told), Asking(cluster) as asking:
        chaos.run()
        wait_for_books("everybody", lambda: not cluster.place.books.unfinished(), seconds=4 * PATIENCE)
        asking.check()
        check_everybody(cluster, course)
        check_unknown(cluster)
        check_rates(cluster, course)
        check_found(cluster)
        chaos.check_logs()


@attrs.define(kw_only=True)
class Chaos:
    """What happens to a cluster, one event after the other.

    Attributes:
        told: What has happened.
    """

    cluster: Cluster
    course: Course
    rng: random.Random
    told: list[str] = attrs.field(factory=list)
    _halted: dict[str, tuple[Member, float]] = attrs.field(factory=dict)
    _begun: float = attrs.field(factory=time.monotonic)

    def run(self) -> None:
        """Let everything happen while messages are sent, so that something is always on its way."""
        events = self.course.events(self.rng)
        each = self.course.messages * 0.9 / len(events)
        books = self.cluster.place.books
        for number, event in enumerate(events):
            target = int((number + self.rng.random()) * each)
            wait_for_books(f"{target} messages", lambda: self._wait_on(books.sent() >= target), seconds=2 * PATIENCE)  # noqa: B023
            time.sleep(self.rng.uniform(0, 0.1))  # the moment of the event, not a wait for anything
            self._let_happen(event)
            permits = self.cluster.permits()
            assert sum(permits) <= MAX_UNKNOWN + 2 * max(len(permits) - 1, 0), permits
            for epoch, count in self.cluster.open_intents().items():
                assert count <= MAX_UNKNOWN, f"epoch {epoch} has more intents without an outcome than it may have"
        wait_for_books("all to go on", lambda: self._wait_on(not self._halted), seconds=PATIENCE)

    def _let_happen(self, event: str | signal.Signals) -> None:
        match event:
            case "kill":
                member = self._choose(self.cluster.members)
                self.tell(f"kill {member.name}")
                self.cluster.kill(member)
                self.cluster.start(member)
            case "halt":
                member = self._choose(self.cluster.workers)
                self.tell(f"halt {member.name}")
                self.cluster.halt(member)
                self._halted[member.name] = (member, time.monotonic() + LEASE_SECONDS + self.rng.uniform(0.5, 3))
            case "before" | "after":
                self.tell(f"cut {event} a commit")
                self.cluster.proxy.cut = event
            case signal.Signals():
                self.tell(f"restart PostgreSQL by {event.name}")
                self.cluster.restart_server(event)

    def _choose(self, members: Sequence[Member]) -> Member:
        return self.rng.choice([member for member in members if member.name not in self._halted])

    def _wait_on(self, done: bool) -> bool:
        """Let those go on that have stood still for long enough; return what is given."""
        for member, until in list(self._halted.values()):
            if time.monotonic() >= until:
                self.tell(f"{member.name} goes on")
                self.cluster.go_on(member)
                del self._halted[member.name]
        return done

    def tell(self, what: str) -> None:
        """Note what has happened."""
        self.told.append(f"{time.monotonic() - self._begun:6.1f} s: {what}")

    def check_logs(self) -> None:
        """Check that no process has met an error that it did not expect."""
        for file in self.cluster.place.directory.glob("process-*.err"):
            for entry in re.split(r"^(?=\d{4}-\d\d-\d\d )", file.read_text("utf-8"), flags=re.MULTILINE):
                assert "Traceback" not in entry or _OF_PROCRASTINATE.search(entry), entry


class Asking:
    """Somebody who asks both nodes all the time, and notes what is answered.

    Args:
        cluster: Whose nodes are asked.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(node,)) for node in cluster.nodes]
        self.answers: list[tuple[float, int]] = []
        self._begun = 0.0

    def __enter__(self) -> Asking:
        """Begin to ask."""
        self._begun = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ask no more."""
        self._ended.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _ask(self, node: Member) -> None:
        headers = {"Authorization": f"Bearer {self._cluster.limited_key}"}
        with httpx.Client(headers=headers, timeout=PATIENCE) as client:
            while not self._ended.wait(0.05):
                try:
                    answer = client.get(f"{node.running.url}/sms-campaigns")
                except httpx.HTTPError:
                    # It was killed; another one has its place soon, at another port.
                    continue
                self.answers.append((time.monotonic(), answer.status_code))

    def check(self) -> None:
        """Check that the nodes together answered no more than the limit in each of its windows."""
        statuses = Counter(status for _, status in self.answers)
        assert statuses.keys() <= {200, 429, 503}, statuses
        # The first window begins before the first answer is here.
        windows = int((max(moment for moment, _ in self.answers) - self._begun) // 60) + 1
        assert statuses[200] <= windows * REQUEST_LIMIT, statuses
        assert statuses[200] >= REQUEST_LIMIT * 0.75, statuses


def check_everybody(cluster: Cluster, course: Course) -> None:
    """Check that nobody was reached twice, and that everybody was reached or is listed as unknown."""
    books = cluster.place.books
    books.check()
    counted = books.recipients()
    assert counted.keys() <= {"completed", "unknown"}, counted
    assert sum(counted.values()) == course.messages, counted
    assert counted["completed"] == len(books.dispatches("accepted"))


def check_unknown(cluster: Cluster) -> None:
    """Check that what is unknown is listed, for its reason, and is no more than each worker may leave."""
    books = cluster.place.books
    listed = cluster.place.command("dispatches", "unknown", cluster.place.workspace_id, "--limit", "100000")
    assert {item["id"] for item in listed} == books.dispatches("unknown")
    assert {item["reason"] for item in listed} <= {"worker_lost", "timeout"}
    left = cluster.open_intents()
    assert all(count <= MAX_UNKNOWN for count in left.values()), left


def check_rates(cluster: Cluster, course: Course) -> None:
    """Check the pace of each campaign over all workers, and so its rate in each minute.

    What the carrier noted when its intent was not valid any more says nothing of the pace: it was on its way already,
    or its process stood still, and another worker may have had its turn meanwhile. There are few of these.
    """
    books = cluster.place.books
    dispatches = {row["id"]: row for row in books.rows("SELECT id, campaign_number, valid_until FROM dispatches")}
    noted: dict[int, list[datetime]] = defaultdict(list)
    on_time: dict[int, list[datetime]] = defaultdict(list)
    late = 0
    for one in sorted(books.accepted(), key=lambda one: one.at):
        dispatch = dispatches[one.dispatch_id]
        valid_until = datetime.fromisoformat(dispatch["valid_until"])
        noted[dispatch["campaign_number"]].append(one.at)
        late += one.at > valid_until + ON_ITS_WAY
        if one.at <= valid_until:
            on_time[dispatch["campaign_number"]].append(one.at)
    assert late <= MAX_LATE_EACH * course.halts
    assert noted.keys() == on_time.keys()
    for campaign, moments in noted.items():
        _check_pace(on_time[campaign], MINUTE / course.rate)
        allowed = course.rate + 1 + int(ON_ITS_WAY / (MINUTE / course.rate))
        assert _most_in_a_minute(moments) <= allowed + len(moments) - len(on_time[campaign])


def _check_pace(noted: Sequence[datetime], spacing: timedelta) -> None:
    """Check that starts are so far apart over all workers, but for the time that each was on its way."""
    for first, moment in enumerate(noted):
        for later in range(first + 1, len(noted)):
            assert noted[later] - moment >= (later - first) * spacing - ON_ITS_WAY, (first, later)


def _most_in_a_minute(moments: Sequence[datetime]) -> int:
    most = begin = 0
    for end, moment in enumerate(moments):
        while moment - moments[begin] >= MINUTE:
            begin += 1
        most = max(most, end - begin + 1)
    return most


def check_found(cluster: Cluster) -> None:
    """Check that a look-up finds each message that the carrier has noted, and that the others stay listed.

    A message that a carrier does not list may have reached it all the same.
    """
    books = cluster.place.books
    heard = {entry.dispatch_id for entry in books.accepted()}
    unheard = books.dispatches("unknown") - heard
    for worker in cluster.workers:
        cluster.kill(worker)
    cluster.start(cluster.workers[0], **LOOK_UP_AT_ONCE)
    wait_for_books("those who were heard", lambda: books.dispatches("unknown") == unheard, seconds=2 * PATIENCE)
    books.check()
