"""Keeping phone numbers out of what httpx and httpcore log."""

from __future__ import annotations

import logging
import re
from typing import Final

_QUERY: Final = re.compile(r"(?P<address>https?://[^\s?\"']*)\?[^\s\"']*")
_ANSWER: Final = re.compile(r" return_value=(?:\(b'[^']*', (?P<status>[0-9]+))?.*", re.DOTALL)
_ERROR: Final = re.compile(r" exception=(?P<kind>[A-Za-z]*).*", re.DOTALL)

_WIRE: Final = ("connection", "http11", "http2", "proxy", "socks")
"""The loggers of httpcore; a filter of their parent would not be asked."""


class _WithoutQueries(logging.Filter):
    """Lets every line through, and cuts the query off each address in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the line where an address in it has a query."""
        told = record.getMessage()
        _tell(record, told, _QUERY.sub(r"\g<address>", told))
        return True


class _WithoutAnswers(logging.Filter):
    """Lets every line through, and leaves of an answer its status, and of an error its kind."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the line where it holds headers, or an error that quotes them."""
        told = record.getMessage()
        _tell(record, told, _ERROR.sub(_kind, _ANSWER.sub(_status, told)))
        return True


def _status(found: re.Match[str]) -> str:
    return f" status={found['status']}" if found["status"] else ""


def _kind(found: re.Match[str]) -> str:
    return f" exception={found['kind']}"


def _tell(record: logging.LogRecord, told: str, cut: str) -> None:
    if cut != told:
        record.msg, record.args = cut, ()


_QUERIES: Final = _WithoutQueries()
_ANSWERS: Final = _WithoutAnswers()


def redact_http_logs() -> None:
    """Keep what may hold phone numbers out of the log, in this process from now on; a second call changes nothing.

    httpx logs each request at INFO with its whole address (https://www.python-httpx.org/logging/), and httpcore at
    DEBUG the headers of each answer, a `Location` with what was asked for among them. A program that embeds the engine
    may log at either level, and no full phone number may stand in a log. The loggers are those of the whole process:
    other requests made with httpx are logged without these, too.
    """
    logging.getLogger("httpx").addFilter(_QUERIES)
    for name in _WIRE:
        logging.getLogger(f"httpcore.{name}").addFilter(_ANSWERS)
