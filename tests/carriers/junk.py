"""Callbacks of any content: the worst that `read` does is to refuse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outreach.models.reports import CallReport
from outreach.protocols.adapter import Adapter, Callback, CallbackEvent, CallbackRefused
from tests.carriers.kit import callback, connection

SHARED = [HealthCheck.differing_executors, HealthCheck.too_slow]
"""Each adapter's class runs the tests for itself: an example that failed for one is only one more for the others."""

TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["", "\0", "1" * 5000, "sms", "delivered", "2026-03-02T09:30:15Z", "9999-12-31T23:59:59-23:59"]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


class JunkRules:
    """The tests; a subclass names the adapter, its credentials, and how its provider signs a body."""

    adapter: Adapter
    credentials: Mapping[str, str]
    headers: tuple[str, ...]
    template: ClassVar[Mapping[str, Any]]
    """A callback that is read, as JSON or as the fields of a form."""

    def sign(self, body: bytes) -> Callback:
        """Return a callback of this body, signed as the provider does."""
        raise NotImplementedError

    def write(self, event: Mapping[str, Any]) -> bytes:
        """Return the body that holds an event."""
        return json.dumps(event).encode()

    def read(self, coming: Callback) -> None:
        """Read a callback, and look through what comes of it."""
        try:
            events = self.adapter.read(connection(self.credentials), coming)
        except CallbackRefused:
            return
        for event in events:
            assert isinstance(event, CallbackEvent)
            assert 0 < len(event.event_id) <= 1000
            event.event_id.encode()
            if isinstance(event.content, CallReport):
                (event.content.summary or "").encode()
                assert event.content.at.tzinfo is not None

    def test_the_template_is_read(self) -> None:
        """The control: what is changed below is a callback that says something."""
        events = self.adapter.read(connection(self.credentials), self.sign(self.write(self.template)))
        assert [event.content for event in events if event.content is not None]

    @given(data=st.data())
    @settings(max_examples=60, suppress_health_check=SHARED)
    def test_any_bytes_under_any_headers_are_refused(self, data: st.DataObject) -> None:
        """What nobody signed is refused, whatever it is."""
        values = st.one_of(
            st.text(max_size=60), st.sampled_from(["Bearer a.b.c", "Bearer ..", "1", "v=1,d=2", "€", "=="])
        )
        headers = data.draw(st.dictionaries(st.sampled_from([*self.headers, "content-type"]), values))
        with pytest.raises(CallbackRefused):
            self.adapter.read(connection(self.credentials), callback(data.draw(st.binary(max_size=200)), headers))

    @given(body=st.one_of(st.binary(max_size=200), VALUES.map(lambda value: json.dumps(value).encode())))
    @settings(max_examples=60, suppress_health_check=SHARED)
    def test_any_body_that_is_signed_is_read_or_refused(self, body: bytes) -> None:
        """A provider that sends nonsense, and signs it, does no harm."""
        self.read(self.sign(body))

    @given(data=st.data())
    @settings(max_examples=150, suppress_health_check=SHARED)
    def test_any_value_anywhere_in_an_event_is_read_or_refused(self, data: st.DataObject) -> None:
        """Fields that are missing, of another type, or beyond all bounds, one or several at a time."""
        event = json.loads(json.dumps(self.template))
        for _ in range(data.draw(st.integers(1, 3))):
            self._change(event, data)
        self.read(self.sign(self.write(event)))

    def _change(self, event: Any, data: st.DataObject) -> None:
        at = event
        while True:
            keys = sorted(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                return
            key = data.draw(st.sampled_from(keys))
            if isinstance(at[key], dict | list) and data.draw(st.booleans()):
                at = at[key]
                continue
            if data.draw(st.booleans()):
                del at[key]
            else:
                at[key] = data.draw(VALUES)
            return
