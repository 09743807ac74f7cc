"""Writes the text that Prometheus reads, in parts; only changed lines are formatted again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final

import attrs

from outreach.integrations.prometheus import TallyMetric

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

PART_LINES: Final = 500
"""A part of the text has about as many lines: the library writes them in some milliseconds."""

_FIRST_EXPONENT: Final = 1_000_000
"""From this number on the library writes an exponent."""


class Exposition:
    """Everything that a registry collects, as text.

    The library takes 4 µs to write a line, and as much to make its sample. So it writes each line of a tally once; from
    then on its beginning is known, and only its number is put after it. Any other metric is written by the library,
    unless its collector returns the same object again.

    Args:
        registry: What is shown.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._written: dict[str, _Written] = {}
        self._beginnings: dict[str, _Beginnings] = {}

    def parts(self, accept: str) -> tuple[Iterator[bytes], str]:
        """Return the text in parts, and its content type; all parts show the moment of this call.

        Args:
            accept: The header `Accept` of the request.
        """
        from prometheus_client.exposition import choose_encoder

        encode, content_type = choose_encoder(accept)
        form = _Form(content_type, encode, encode(_Families()))
        return self._parts(list(self._registry.collect()), form), content_type

    def _parts(self, metrics: Sequence[Metric], form: _Form) -> Iterator[bytes]:
        part: list[bytes] = []
        lines = 0
        for metric in metrics:
            for text in self._texts(metric, form):
                part.append(text)
                lines += text.count(b"\n")
                if lines >= PART_LINES:
                    yield b"".join(part)
                    part, lines = [], 0
        yield b"".join([*part, form.end])

    def _texts(self, metric: Metric, form: _Form) -> Iterator[bytes]:
        known = self._written.get(metric.name)
        if known is not None and known.metric is metric and known.form.content_type == form.content_type:
            yield from known.texts
            return
        texts = []
        for text in self._texts_of_tally(metric, form) if isinstance(metric, TallyMetric) else [form.write(metric)]:
            texts.append(text)
            yield text
        self._written[metric.name] = _Written(metric, form, texts)

    def _texts_of_tally(self, metric: TallyMetric, form: _Form) -> Iterator[bytes]:
        beginnings = self._beginnings.get(metric.name)
        if beginnings is None or not beginnings.are_of(metric, form):
            beginnings = self._beginnings[metric.name] = _Beginnings(metric, form)
        return beginnings.texts(metric)


@attrs.frozen
class _Form:
    """The form of a text.

    Attributes:
        content_type: Its name.
        encode: The library's function that writes it.
        end: What ends the whole text.
    """

    content_type: str
    encode: Callable[[_Families], bytes]
    end: bytes

    def write(self, metric: Metric) -> bytes:
        """Return a metric as text."""
        return self.encode(_Families((metric,))).removesuffix(self.end)


@attrs.frozen
class _Written:
    """A family as it was written last.

    Attributes:
        metric: The family.
        form: The form of the text.
        texts: The text.
    """

    metric: Metric
    form: _Form
    texts: Sequence[bytes]


class _Beginnings:
    """How the lines of a tally begin: its name and labels, as the library writes them.

    Args:
        metric: What the tally has counted.
        form: The form of the text.
    """

    def __init__(self, metric: TallyMetric, form: _Form) -> None:
        self._tally, self._form = metric.tally, form
        self._head = form.write(metric.part(0, 0))
        self._beginnings: list[str] = []
        self._lock = Lock()

    def are_of(self, metric: TallyMetric, form: _Form) -> bool:
        """Return whether these are the beginnings of this metric in this form."""
        return self._tally is metric.tally and self._form.content_type == form.content_type

    def texts(self, metric: TallyMetric) -> Iterator[bytes]:
        """Yield the text in parts."""
        yield self._head
        each = metric.samples_each
        step = max(PART_LINES // each, 1)
        for first in range(0, len(metric.labels), step):
            end = min(first + step, len(metric.labels))
            self._learn(metric, end)
            lines = slice(first * each, end * each)
            yield "".join(
                [
                    f"{beginning}{_number(number)}\n"
                    for beginning, number in zip(self._beginnings[lines], metric.numbers[lines], strict=True)
                ]
            ).encode()

    def _learn(self, metric: TallyMetric, end: int) -> None:
        # Two threads that did so at once would shift all later lines.
        with self._lock:
            known = len(self._beginnings) // metric.samples_each
            if known < end:
                text = self._form.write(metric.part(known, end))[len(self._head) :].decode()
                self._beginnings += [line[: line.rindex(" ") + 1] for line in text.split("\n")[:-1]]


def _number(value: float) -> str:
    """Return a number as the library writes it, which takes 1 µs itself."""
    if type(value) is int and 0 <= value < _FIRST_EXPONENT:
        return f"{value}.0"
    from prometheus_client.utils import floatToGoString

    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return text


@attrs.frozen
class _Families:
    """A registry of some families."""

    metrics: tuple[Metric, ...] = ()

    def collect(self) -> Iterator[Metric]:
        """Yield them."""
        yield from self.metrics
