"""As much of PromQL as the alert rules use: selectors, functions over a time, aggregations, `*`, `/`, comparisons.

And `and`, `unless` (both with `on`) and `or` between these. Unlike Prometheus it does not extrapolate an increase to
the whole of its window, which adds an interval's share at most.
"""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, NoReturn

import attrs

from tests.monitoring.exposition import Sample

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<duration>\[\d+[smh]\])|(?P<number>\d+(?:\.\d+)?)|(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)"
    r'|(?P<text>"[^"]*")|(?P<mark>==|!=|>=|<=|=~|[(){},=<>+*/-]))'
)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_AGGREGATIONS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {"sum": sum, "max": max, "min": min}
_COMPARISONS: Final = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_FRESH_SECONDS: Final = 300


@attrs.define(slots=False)
class Scrape:
    """What was read at a time."""

    at: float
    samples: Sequence[Sample]

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[tuple[Labels, Sample]]]:
        """The samples of each name."""
        found: dict[str, list[tuple[Labels, Sample]]] = {}
        for one in self.samples:
            found.setdefault(one.name, []).append((frozenset(one.labels.items()), one))
        return found


def seconds_of(text: str) -> float:
    """Return a duration such as `5m` in seconds."""
    return int(text[:-1]) * _SECONDS[text[-1]]


def evaluate(expression: str, scrapes: Sequence[Scrape], at: float) -> Vector:
    """Return what an expression gives at a time, from scrapes in the order of their times.

    Raises:
        ValueError: It is not of the subset.
    """
    reader = _Reader(expression, scrapes, at)
    found = reader.either()
    if reader.left:
        raise ValueError(f"{expression!r}: {reader.left[0]!r} is not understood.")
    return _vector(found)


def _rise(values: Sequence[float], _: float) -> float:
    """Return how far a counter rose; one that falls has begun anew at zero."""
    return sum(b - a if b >= a else b for a, b in itertools.pairwise(values))


_OVER_TIME: Final[Mapping[str, tuple[int, Callable[[Sequence[float], float], float]]]] = {
    "increase": (2, _rise),
    "rate": (2, lambda values, window: _rise(values, window) / window),
    "max_over_time": (1, lambda values, _: max(values)),
}
"""How many samples a series needs, and what is made of them and the window's length."""


def _time(scrape: Scrape) -> float:
    return scrape.at


def _only(labels: Labels, names: set[str] | None) -> Labels:
    return labels if names is None else frozenset(pair for pair in labels if pair[0] in names)


def names_in(expression: str) -> set[str]:
    """Return the metrics that an expression names."""
    return set(re.findall(r"\b(?:outreach|process|python)_[a-z0-9_]+\b", expression))


def _vector(found: Vector | float) -> Vector:
    return found if isinstance(found, dict) else _wrong("a number stands where a vector should")


def _number(found: Vector | float) -> float:
    return found if isinstance(found, float) else _wrong("only with a number is compared")


def _wrong(what: str) -> NoReturn:
    raise ValueError(f"This is not understood: {what}.")


class _Reader:
    def __init__(self, expression: str, scrapes: Sequence[Scrape], at: float) -> None:
        self.left: list[str] = []
        place = 0
        while expression[place:].strip():
            match = _TOKEN.match(expression, place)
            if match is None:
                raise ValueError(f"{expression!r}: {expression[place:]!r} is not understood.")
            self.left.append(match[0].strip())
            place = match.end()
        self._scrapes, self._at = scrapes, at

    def either(self) -> Vector | float:
        found = self._both()
        while self._next() == "or":
            self._take()
            found = {**_vector(self._both()), **_vector(found)}
        return found

    def _both(self) -> Vector | float:
        """Read `and` and `unless`: one precedence, from left to right, before `or` and after comparisons."""
        found = self._comparison()
        while self._next() in {"and", "unless"}:
            wanted, on = self._take() == "and", None
            if self._next() == "on":
                self._take()
                on = self._labels()
            there = {_only(labels, on) for labels in _vector(self._comparison())}
            found = {
                labels: value for labels, value in _vector(found).items() if (_only(labels, on) in there) == wanted
            }
        return found

    def _labels(self) -> set[str]:
        names: set[str] = set()
        self._expect("(")
        while (label := self._take()) != ")":
            names |= {label} - {","}
        return names

    def _comparison(self) -> Vector | float:
        first = self._term()
        if self._next() not in _COMPARISONS:
            return first
        compare, second = _COMPARISONS[self._take()], self._term()
        limit = _number(second)
        return {labels: value for labels, value in _vector(first).items() if compare(value, limit)}

    def _term(self) -> Vector | float:
        first = self._atom()
        while self._next() in {"/", "*"}:
            sign, first, second = self._take(), _vector(first), _vector(self._atom())
            both = first.keys() & second.keys()
            combine = operator.truediv if sign == "/" else operator.mul
            first = {labels: combine(first[labels], second[labels]) for labels in both if second[labels] or sign == "*"}
        return first

    def _atom(self) -> Vector | float:
        token = self._take()
        if token == "(":
            inner = self.either()
            self._expect(")")
            return inner
        if re.fullmatch(r"\d+(\.\d+)?", token):
            return float(token)
        if token in _AGGREGATIONS:
            return self._aggregate(_AGGREGATIONS[token])
        if token in _OVER_TIME:
            return self._over_time(token)
        return self._selected(token)

    def _aggregate(self, combine: Callable[[Sequence[float]], float]) -> Vector:
        by: set[str] = set()
        if self._next() == "by":
            self._take()
            by = self._labels()
        self._expect("(")
        inner = _vector(self.either())
        self._expect(")")
        groups: dict[Labels, list[float]] = {}
        for labels, value in inner.items():
            groups.setdefault(_only(labels, by), []).append(value)
        return {labels: combine(values) for labels, values in groups.items()}

    def _over_time(self, function: str) -> Vector:
        self._expect("(")
        name = self._take()
        matches = self._selector()
        window = seconds_of(self._take()[1:-1])
        self._expect(")")
        first = bisect_left(self._scrapes, self._at - window, key=_time)
        end = bisect_right(self._scrapes, self._at, key=_time)
        series: dict[Labels, list[float]] = {}
        for scrape in self._scrapes[first:end]:
            for labels, one in scrape.by_name.get(name, ()):
                if labels in series or matches(one):
                    series.setdefault(labels, []).append(one.value)
        least, combine = _OVER_TIME[function]
        return {labels: combine(values, window) for labels, values in series.items() if len(values) >= least}

    def _selected(self, name: str) -> Vector:
        matches = self._selector()
        end = bisect_right(self._scrapes, self._at, key=_time)
        # A series that the latest scrape does not have is stale.
        latest = [one for one in self._scrapes[end - 1 : end] if one.at >= self._at - _FRESH_SECONDS]
        return {labels: one.value for scrape in latest for labels, one in scrape.by_name.get(name, ()) if matches(one)}

    def _selector(self) -> Callable[[Sample], bool]:
        wanted: list[tuple[str, re.Pattern[str], bool]] = []
        if self._next() == "{":
            self._take()
            while (label := self._take()) != "}":
                if label == ",":
                    continue
                sign, text = self._take(), self._take()[1:-1]
                wanted.append((label, re.compile(text if sign == "=~" else re.escape(text)), sign != "!="))
        return lambda one: all(
            (pattern.fullmatch(one.labels.get(label, "")) is not None) == like for label, pattern, like in wanted
        )

    def _next(self) -> str:
        return self.left[0] if self.left else ""

    def _take(self) -> str:
        if not self.left:
            raise ValueError("The expression ends too early.")
        return self.left.pop(0)

    def _expect(self, token: str) -> None:
        if (taken := self._take()) != token:
            raise ValueError(f"{taken!r} stands where {token!r} should.")
