from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder

from outreach.metrics import Counts, Family, TallyCollector
from outreach_server.monitoring.exposition import Exposition

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Shown:
    """A registry of two counters, one of which nothing is counted by."""

    def __init__(self) -> None:
        self.quiet = Counts(Family("quiet_total", "counter", "Nothing happens.", ("kind",)))
        self.busy = Counts(Family("busy_total", "counter", "Much happens.", ("kind",)))
        self.registry = CollectorRegistry()
        self.registry.register(TallyCollector([self.quiet, self.busy]))
        self.exposition = Exposition(self.registry)
        self.quiet.start("one")
        self.busy.start("one")

    def expected(self, accept: str) -> tuple[bytes, str]:
        """What the library writes of all of it at once."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


@pytest.fixture
def shown() -> Shown:
    """Two counters."""
    return Shown()


@pytest.mark.parametrize("accept", ["", "text/plain", OPENMETRICS])
def test_the_text_is_that_of_the_library(shown: Shown, accept: str) -> None:
    """Also after something was counted, and after another form was asked for."""
    for number in range(3):
        assert shown.exposition.text(accept) == shown.expected(accept)
        shown.busy.add("one")
        shown.busy.add(f"later {number}")
        assert shown.exposition.text(OPENMETRICS) == shown.expected(OPENMETRICS)


def test_what_has_not_changed_is_not_made_again(shown: Shown) -> None:
    """Most lines are zeros, which take as long to write as any other."""

    def families() -> list[Metric]:
        return list(shown.registry.collect())

    before = families()
    shown.busy.add("one")
    after = families()
    assert [one is other for one, other in zip(before, after, strict=True)] == [True, False]
    assert [one.samples[0].value for one in after] == [0, 1]
