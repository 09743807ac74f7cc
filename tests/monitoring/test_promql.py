"""The evaluator of alert rules, against values that were worked out by hand from Prometheus' documentation."""

from __future__ import annotations

import pytest

from tests.monitoring.exposition import Sample
from tests.monitoring.promql import Scrape, evaluate

A, B = {"instance": "a"}, {"instance": "b"}


def scrape(at: float, **values: float) -> Scrape:
    """Return one; `up_a=1` is `up{instance="a"} 1`."""
    samples = []
    for key, value in values.items():
        name, instance = key.rsplit("_", 1)
        samples.append(Sample(name, {"instance": instance}, value))
    return Scrape(at, samples)


SCRAPES = [
    scrape(0, up_a=1, up_b=1, n_a=0, n_b=5, age_a=3),
    scrape(15, up_a=1, up_b=1, n_a=2, n_b=5, age_a=50),
    scrape(30, up_a=1, up_b=0, n_a=1, n_b=5, age_a=4),
]
"""`n` of a rises by 2, then begins anew and rises by 1; that of b stands still."""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("up", {"a": 1, "b": 0}),
        ("up == 0", {"b": 0}),
        ("increase(n[1m])", {"a": 3, "b": 0}),
        ("increase(n[15s])", {"a": 1, "b": 0}),
        ("increase(n[10s])", {}),
        ("rate(n[1m])", {"a": 0.05, "b": 0}),
        ("max_over_time(age[1m])", {"a": 50}),
        ("max_over_time(age[1m]) > 50", {}),
        ("sum(increase(n[1m]))", {"": 3}),
        ("sum by (instance) (increase(n[1m])) > 0", {"a": 3}),
        # `unless` and `and` keep the values of the left side.
        ("n unless on (instance) up == 0", {"a": 1}),
        ("n and on (instance) up == 0", {"b": 5}),
        ("n and up", {"a": 1, "b": 5}),
        # Without `on` an aggregate has other labels than what it was made of: nothing matches.
        ("n unless sum(up)", {"a": 1, "b": 5}),
        ("n unless on () sum(up)", {}),
        ("n unless on () sum(up) > 1", {"a": 1, "b": 5}),
        ("sum(n) unless max(age) > 3", {}),
        ("sum(n) unless max(age) > 4", {"": 6}),
        # Nothing on the right side takes nothing away, and leaves nothing of an `and`.
        ("n unless on () nowhere", {"a": 1, "b": 5}),
        ("n and on () nowhere", {}),
        ("nowhere unless on () n", {}),
        # From left to right.
        ("n unless on (instance) up == 0 unless on (instance) age > 3", {}),
        ("n unless on (instance) up == 0 and on (instance) age > 3", {"a": 1}),
        # Before `or`, unless parentheses say otherwise.
        ("age or n unless on () up", {"a": 4}),
        ("(age or n) unless on () up", {}),
        ("age or n", {"a": 4, "b": 5}),
        # Division before comparison before `unless`.
        ("age / n > 3 unless on (instance) n > 4", {"a": 4}),
        ('n{instance=~"a|c"}', {"a": 1}),
        ('n{instance!="a"}', {"b": 5}),
    ],
)
def test_an_expression_is_what_prometheus_makes_of_it(expression: str, expected: dict[str, float]) -> None:
    """At the last scrape, with `instance` as the only label."""
    found = evaluate(expression, SCRAPES, 30)
    assert {dict(labels).get("instance", ""): value for labels, value in found.items()} == expected


def test_a_series_that_the_latest_scrape_does_not_have_is_stale() -> None:
    """Functions over a time still see it."""
    later = [*SCRAPES, scrape(45, up_b=0)]
    assert evaluate("n", later, 45) == {}
    assert evaluate("max_over_time(age[1m]) > 10", later, 45) == {frozenset(A.items()): 50}
    assert evaluate("up", later, 400) == {}


def test_what_comes_later_is_not_seen() -> None:
    """An expression is asked at a time."""
    assert evaluate("n", SCRAPES, 20) == {frozenset(A.items()): 2, frozenset(B.items()): 5}
