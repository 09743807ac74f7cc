"""As much of PromQL as the alert rules use: selectors, `increase`, `rate`, aggregations, arithmetic, comparisons.

And `or` between these.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
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


@attrs.frozen
class Scrape:
    """What was read at a time."""

    at: float
    samples: Sequence[Sample]


def seconds_of(text: str) -> float:
    """Return a duration such as `5m` in seconds."""
    return int(text[:-1]) * _SECONDS[text[-1]]


def evaluate(expression: str, scrapes: Sequence[Scrape], at: float) -> Vector:
    """Return what an expression gives at a time.

    Raises:
        ValueError: It is not of the subset.
    """
    reader = _Reader(expression, scrapes, at)
    found = reader.comparison()
    while reader.left[:1] == ["or"]:
        reader.left.pop(0)
        found = {**_vector(reader.comparison()), **_vector(found)}
    if reader.left:
        raise ValueError(f"{expression!r}: {reader.left[0]!r} is not understood.")
    return _vector(found)


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

    def comparison(self) -> Vector | float:
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
            inner = self.comparison()
            self._expect(")")
            return inner
        if re.fullmatch(r"\d+(\.\d+)?", token):
            return float(token)
        if token in _AGGREGATIONS:
            return self._aggregate(_AGGREGATIONS[token])
        if token in {"increase", "rate"}:
            return self._over_time(token)
        return self._selected(token)

    def _aggregate(self, combine: Callable[[Sequence[float]], float]) -> Vector:
        by: set[str] = set()
        if self._next() == "by":
            self._take()
            self._expect("(")
            while (label := self._take()) != ")":
                by |= {label} - {","}
        self._expect("(")
        inner = _vector(self.comparison())
        self._expect(")")
        groups: dict[Labels, list[float]] = {}
        for labels, value in inner.items():
            groups.setdefault(frozenset(pair for pair in labels if pair[0] in by), []).append(value)
        return {labels: combine(values) for labels, values in groups.items()}

    def _over_time(self, function: str) -> Vector:
        self._expect("(")
        matches = self._selector(self._take())
        window = seconds_of(self._take()[1:-1])
        self._expect(")")
        series: dict[Labels, list[float]] = {}
        for scrape in self._scrapes:
            if self._at - window <= scrape.at <= self._at:
                for one in scrape.samples:
                    if matches(one):
                        series.setdefault(frozenset(one.labels.items()), []).append(one.value)
        # As Prometheus has it: a series needs two samples, and a counter that falls has begun anew at zero.
        rises = {
            labels: sum(b - a if b >= a else b for a, b in itertools.pairwise(values))
            for labels, values in series.items()
            if len(values) > 1
        }
        return {labels: rise / window if function == "rate" else rise for labels, rise in rises.items()}

    def _selected(self, name: str) -> Vector:
        matches = self._selector(name)
        latest = [one for one in self._scrapes if self._at - _FRESH_SECONDS <= one.at <= self._at][-1:]
        return {frozenset(one.labels.items()): one.value for scrape in latest for one in scrape.samples if matches(one)}

    def _selector(self, name: str) -> Callable[[Sample], bool]:
        wanted: list[tuple[str, re.Pattern[str], bool]] = []
        if self._next() == "{":
            self._take()
            while (label := self._take()) != "}":
                if label == ",":
                    continue
                sign, text = self._take(), self._take()[1:-1]
                wanted.append((label, re.compile(text if sign == "=~" else re.escape(text)), sign != "!="))
        return lambda one: (
            one.name == name
            and all(
                (pattern.fullmatch(one.labels.get(label, "")) is not None) == like for label, pattern, like in wanted
            )
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
