from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from outreach.testing.builders import make_dispatch
from outreach_server.monitoring import log_lines
from outreach_server.monitoring.log_context import DISPATCH_ID, REQUEST_ID, LogContext
from outreach_server.monitoring.log_lines import (
    FIELDS,
    LINES_A_SECOND,
    FloodFilter,
    JsonFormatter,
    TextFormatter,
)
from tests.monitoring.log_actions import calls_without_action, fields
from tests.reference.markdown import meanings

ALWAYS = ("at", "level", "logger", "action", "message", "request_id", "dispatch_id")


class Written:
    """A logger, and the lines that a handler of a server writes of it."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self.log = logging.Logger("outreach.test")
        handler = logging.Handler()
        handler.emit = self._emit  # type: ignore[method-assign]
        handler.setFormatter(formatter)
        handler.addFilter(FloodFilter(lambda: self.now))
        self._handler = handler
        self.log.addHandler(handler)
        log_lines._log.addHandler(handler)

    def _emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self._handler.format(record))

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The lines as JSON."""
        return [json.loads(line) for line in self.lines]

    def close(self) -> None:
        """Give the server's logger back."""
        log_lines._log.removeHandler(self._handler)


@pytest.fixture
def written() -> Iterator[Written]:
    """Lines of JSON."""
    made = Written(JsonFormatter())
    yield made
    made.close()


@pytest.fixture
def text() -> Iterator[Written]:
    """Lines of text."""
    made = Written(TextFormatter())
    yield made
    made.close()


def test_every_line_has_the_same_first_fields(written: Written) -> None:
    """With values of their own, or null; what the record has beside the schema stays out."""
    written.log.warning(
        "%s fails", "twilio", extra={"action": "account_in_trouble", "provider": "twilio", "phone": "+1"}
    )
    written.log.info("A library says\nsomething")
    first, second = written.objects
    assert tuple(first)[:7] == tuple(second)[:7] == ALWAYS
    assert set(first) == {*ALWAYS, "provider"}
    assert (first["level"], first["action"], first["message"]) == ("warning", "account_in_trouble", "twilio fails")
    assert (second["action"], second["message"], second["request_id"]) == ("other", "A library says\nsomething", None)
    assert datetime.fromisoformat(first["at"]).tzinfo is not None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["at"])


def test_an_error_brings_its_class_and_traceback(written: Written) -> None:
    """In one line all the same."""
    try:
        raise KeyError("k")
    except KeyError:
        written.log.exception("It failed", extra={"action": "request_failed"})
    (line,) = written.objects
    assert line["error_type"] == "KeyError"
    assert line["traceback"].startswith("Traceback")


def test_a_text_that_is_no_utf_8_is_a_line_too(written: Written) -> None:
    """Such as a path with bytes of another encoding."""
    written.log.warning("Cannot read %s", "/data/\udcff.db", extra={"action": "key_exposed", "reason": "\ud800"})
    (line,) = written.objects
    assert (line["message"], line["action"], line["reason"]) == ("Cannot read /data/\udcff.db", "key_exposed", "\ud800")
    assert written.lines[0].isascii()


def test_lines_have_the_ids_of_their_request_and_dispatch(written: Written, text: Written) -> None:
    """From where they are written, or from the record; a text does not repeat what its message says."""
    tokens = REQUEST_ID.set("r-1"), DISPATCH_ID.set(None)
    try:
        LogContext().intent_committed(dispatch := make_dispatch())
        for log in (written.log, text.log):
            log.info("Any line")
            log.info("Of request %s", "r-2", extra={"request_id": "r-2"})
    finally:
        REQUEST_ID.reset(tokens[0])
        DISPATCH_ID.reset(tokens[1])
    assert [(line["request_id"], line["dispatch_id"]) for line in written.objects] == [
        ("r-1", dispatch.id),
        ("r-2", dispatch.id),
    ]
    assert text.lines[0].endswith(f" INFO outreach.test: Any line (request r-1, dispatch {dispatch.id})")
    assert text.lines[1].endswith(f" INFO outreach.test: Of request r-2 (dispatch {dispatch.id})")


def test_a_flood_of_one_action_is_cut_and_counted_and_no_other_line_is_lost(written: Written) -> None:
    """However many come in a second; the next one says how many were left out."""
    for _ in range(10_000):
        written.log.error("It failed", extra={"action": "request_failed"})
    written.log.warning("Lost", extra={"action": "lease_lost"})
    assert len(written.lines) == LINES_A_SECOND + 1
    assert written.objects[-1]["action"] == "lease_lost"
    written.now += 1
    written.log.error("It failed again", extra={"action": "request_failed"})
    told, last = written.objects[-2:]
    assert (told["action"], told["reason"], told["count"]) == ("lines_left_out", "request_failed", 9_900)
    assert last["message"] == "It failed again"


def test_actions_without_end_take_no_memory(written: Written) -> None:
    """They share one count."""
    for number in range(5_000):
        written.log.info("Line", extra={"action": f"action {number}"})
    assert len(written.lines) <= 600


def test_every_line_has_an_action_and_known_fields() -> None:
    """The fields of the schema are those that the code gives to lines; each says what it is."""
    assert calls_without_action() == []
    # A setting adds the client.
    assert {*fields(), "client"} == {*FIELDS, "action", "request_id", "dispatch_id"}
    assert tuple(meanings(log_lines, "FIELDS")) == (*ALWAYS, *FIELDS[:8], "traceback", *FIELDS[8:])
