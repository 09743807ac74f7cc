from __future__ import annotations

import logging

import anyio
import anyio.lowlevel
import attrs
import httpx
import pytest
from prometheus_client import CollectorRegistry, Metric, PlatformCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families

from outreach.integrations.prometheus import Counts, Family, Histograms, TallyCollector, TallyMetric
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.testing.builders import make_dispatch
from outreach_server import ServerMetrics
from outreach_server.cli.serving.metrics_address import answering
from outreach_server.cli.serving.serving import bind
from outreach_server.monitoring.exposition import PART_LINES, Exposition

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
DOTS = "text/plain; version=1.0.0; escaping=dots"

ODD = ('a "quoted" name', "back\\slash", "two\nlines", "a separator\u2028", "spaces at the end  ", "", "ü", "{}#=,")
"""Values of a label that are written in another way than they are, or could be taken for something else."""


class Shown:
    """A registry of two counters, one of which nothing is counted by, and of a histogram."""

    def __init__(self) -> None:
        self.quiet = Counts(Family("quiet_total", "counter", "Nothing happens.", ("kind",)))
        self.busy = Counts(Family("busy_total", "counter", "Much\nhappens.", ("kind",)))
        self.times = Histograms(Family("times_seconds", "histogram", "How long.", ("kind",), (0.0, 0.25, 10)))
        self.empty = Counts(Family("empty_total", "counter", "It has no labels.", ()))
        self.registry = CollectorRegistry()
        self.registry.register(TallyCollector([self.quiet, self.busy, self.times, self.empty]))
        PlatformCollector(registry=self.registry)
        self.exposition = Exposition(self.registry)
        self.quiet.start("one")
        self.busy.start("one")

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """What is written."""
        parts, content_type = self.exposition.parts(accept)
        return b"".join(parts), content_type

    def expected(self, accept: str = "") -> tuple[bytes, str]:
        """What the library writes of all of it at once."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


@pytest.fixture
def shown() -> Shown:
    """Two counters and a histogram."""
    return Shown()


@pytest.mark.parametrize("accept", ["", "text/plain", OPENMETRICS, DOTS])
def test_the_text_is_that_of_the_library(shown: Shown, accept: str) -> None:
    """Also after something was counted, and after another form was asked for."""
    for number in range(3):
        assert shown.text(accept) == shown.expected(accept)
        shown.busy.add("one")
        shown.busy.add(f"later {number}")
        shown.times.observe(number / 8, "one")
        shown.times.observe(number, f"later {number}")
        assert shown.text(OPENMETRICS) == shown.expected(OPENMETRICS)


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_labels_and_numbers_are_written_as_the_library_writes_them(shown: Shown, accept: str) -> None:
    """Whatever stands in them, when they are written first and when only the number is new."""
    for amount in (0, 1, 999_999, 1, 0.5, 1e15, 1e300, float("inf")):
        for name in ODD:
            shown.busy.add(name, amount=amount)
            shown.times.observe(amount, name)
        shown.empty.add(amount=amount)
        assert shown.text(accept) == shown.expected(accept)
    # The parser of the old form reads backslashes and quotes as they are meant.
    read = {one.name: one for one in text_string_to_metric_families(shown.text()[0].decode())}
    assert {sample.labels["kind"] for sample in read["busy"].samples} == {"one", *ODD}
    assert read["busy"].samples == next(one for one in shown.registry.collect() if one.name == "busy").samples


def test_what_has_not_changed_is_not_made_again(shown: Shown) -> None:
    """Most lines are zeros, which take as long to write as any other."""

    def families() -> list[Metric]:
        return list(shown.registry.collect())[:3]

    shown.times.observe(1, "one")
    before = families()
    shown.busy.add("one")
    after = families()
    assert [one is other for one, other in zip(before, after, strict=True)] == [True, False, True]
    assert [one.samples[0].value for one in after] == [0, 1, 0]
    shown.times.observe(1, "one")
    assert families()[2] is not after[2]


def test_the_beginning_of_a_line_is_written_by_the_library_once(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    """From then on a scrape makes no samples of what is only counted."""
    made: list[tuple[str, int]] = []
    part = TallyMetric.part

    def noted(metric: TallyMetric, first: int, end: int) -> Metric:
        made.extend((metric.name, at) for at in range(first, end))
        return part(metric, first, end)

    monkeypatch.setattr(TallyMetric, "part", noted)
    for number in range(5):
        shown.busy.add("one")
        shown.busy.add(f"new {number % 2}")
        shown.text()
    assert made == [("quiet", 0), ("busy", 0), ("busy", 1), ("busy", 2)]


def test_two_tallies_of_one_name_keep_their_own_labels(shown: Shown) -> None:
    """A registry takes them, whatever Prometheus says of the text."""
    other = Counts(shown.busy.family)
    shown.registry.register(TallyCollector([other]))
    for number in range(3):
        other.add(f"other {number}")
        shown.busy.add("one")
        assert shown.text() == shown.expected()


def test_all_parts_show_the_moment_at_which_they_were_asked_for(shown: Shown) -> None:
    """What is counted while they are written is in the next text; two scrapes at once do not disturb each other."""
    for number in range(3 * PART_LINES):
        shown.busy.add(f"label {number}")
    expected = shown.expected()[0]
    first, _ = shown.exposition.parts("")
    begun = [next(first)]
    for number in range(4 * PART_LINES):
        shown.busy.add(f"label {number}")
        shown.times.observe(number, f"label {number % 7}")
    later = shown.expected()[0]
    second, _ = shown.exposition.parts("")
    also_begun = [next(second), next(second)]
    in_another_form, _ = shown.exposition.parts(OPENMETRICS)
    others_begun = [next(in_another_form)]
    assert b"".join([*begun, *first]) == expected
    assert b"".join([*also_begun, *second]) == later
    assert b"".join([*others_begun, *in_another_form]) == shown.expected(OPENMETRICS)[0]
    assert shown.text()[0] == later


def _server_metrics(workspaces: int) -> ServerMetrics:
    """Metrics of an engine that has sent for many workspaces."""
    metrics = ServerMetrics(by_workspace=True)
    for number in range(workspaces):
        _send(metrics, number)
    return metrics


def _send(metrics: ServerMetrics, number: int) -> None:
    dispatch = attrs.evolve(make_dispatch(), workspace_id=f"w{number}")
    metrics.engine.intent_committed(dispatch)
    metrics.engine.request_started(dispatch, late_seconds=0.1)
    metrics.engine.request_ended(dispatch, DispatchOutcome(state=DispatchState.ACCEPTED), seconds=0.1)


def _ours(text: bytes) -> list[bytes]:
    """The lines of the engine and the server; those of the process change by themselves."""
    return [line for line in text.splitlines() if line.startswith(b"outreach_")]


def _expected(metrics: ServerMetrics, accept: str = "") -> list[bytes]:
    return _ours(choose_encoder(accept)[0](metrics.registry))


@pytest.mark.anyio
async def test_other_tasks_run_while_a_long_text_is_written() -> None:
    """No part is long, and between any two of them every other task has its turn; the second time too."""
    metrics = _server_metrics(1000)
    parts = list(metrics._exposition.parts("")[0])
    assert len(parts) >= 10
    assert max(part.count(b"\n") for part in parts) < 2 * PART_LINES
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        await anyio.lowlevel.checkpoint()
        for _ in range(2):
            before = turns
            text, _ = await metrics.text_in_parts()
            assert turns - before >= len(parts) - 2
            assert _ours(text) == _ours(metrics.text()[0]) == _expected(metrics)
            _send(metrics, 1)
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_two_scrapes_at_once_read_the_whole_text_and_one_that_is_cancelled_changes_nothing() -> None:
    """Each of them begins before the lines of the other are known."""
    metrics = _server_metrics(300)
    texts: dict[str, list[bytes]] = {"": [], OPENMETRICS: []}

    async def scrape(accept: str) -> None:
        texts[accept].append((await metrics.text_in_parts(accept))[0])

    async with anyio.create_task_group() as tasks:
        for accept in ("", "", OPENMETRICS):
            tasks.start_soon(scrape, accept)
    assert [_ours(text) for text in texts[""]] == [_expected(metrics)] * 2
    assert [_ours(text) for text in texts[OPENMETRICS]] == [_expected(metrics, OPENMETRICS)]
    for number in range(600):
        _send(metrics, number)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await metrics.text_in_parts()
    assert scope.cancelled_caught
    assert _ours(metrics.text()[0]) == _expected(metrics)


@pytest.mark.anyio
async def test_a_client_that_disconnects_in_the_middle_disturbs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The next one reads everything."""
    metrics = _server_metrics(300)
    with bind("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()
        async with answering(metrics.app(), listener, level="error"):
            for _ in range(3):
                stream = await anyio.connect_tcp(host, port)
                await stream.send(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
                await stream.receive(1)
                await stream.aclose()
            async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
                answer = await client.get(f"http://{host}:{port}/metrics")
    assert answer.status_code == 200
    assert _ours(answer.content) == _expected(metrics)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
