"""Removes phone numbers from the log lines of httpx and httpcore."""

from __future__ import annotations

import logging
import re
from typing import Final

_QUERY: Final = re.compile(r"(?P<address>https?://[^\s?\"']*)\?[^\s\"']*")
_ANSWER: Final = re.compile(r" return_value=(?:\(b'[^']*', (?P<status>[0-9]+))?.*", re.DOTALL)
_ERROR: Final = re.compile(r" exception=(?P<kind>[A-Za-z]*).*", re.DOTALL)

_WIRE: Final = ("connection", "http11", "http2", "proxy", "socks")
"""httpcore's loggers; a filter on their parent would not apply."""


class _WithoutQueries(logging.Filter):
    """Removes the query of each URL in a line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the line."""
        written = record.getMessage()
        _replace(record, written, _QUERY.sub(r"\g<address>", written))
        return True


class _WithoutAnswers(logging.Filter):
    """Reduces a response to its status and an error to its kind."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the line."""
        written = record.getMessage()
        _replace(record, written, _ERROR.sub(_kind, _ANSWER.sub(_status, written)))
        return True


def _status(found: re.Match[str]) -> str:
    return f" status={found['status']}" if found["status"] else ""


def _kind(found: re.Match[str]) -> str:
    return f" exception={found['kind']}"


def _replace(record: logging.LogRecord, written: str, cut: str) -> None:
    if cut != written:
        record.msg, record.args = cut, ()


_QUERIES: Final = _WithoutQueries()
_ANSWERS: Final = _WithoutAnswers()


def redact_http_logs() -> None:
    """Keep phone numbers out of the logs of httpx and httpcore, from now on in the whole process; idempotent.

    httpx logs each URL at INFO (https://www.python-httpx.org/logging/), httpcore the headers of each response at DEBUG,
    `Location` included, and an embedding program may log at either level.
    """
    logging.getLogger("httpx").addFilter(_QUERIES)
    for name in _WIRE:
        logging.getLogger(f"httpcore.{name}").addFilter(_ANSWERS)
