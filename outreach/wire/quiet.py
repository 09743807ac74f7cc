"""What httpx logs of requests, without what the addresses ask for: look-ups have whole phone numbers there."""

from __future__ import annotations

import logging
import re
from typing import Final

_QUERY: Final = re.compile(r"(?P<address>https?://[^\s?\"']*)\?[^\s\"']*")


class _WithoutQueries(logging.Filter):
    """Lets every line through, and cuts the query off each address in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the line where an address in it has a query."""
        told = record.getMessage()
        cut = _QUERY.sub(r"\g<address>", told)
        if cut != told:
            record.msg, record.args = cut, ()
        return True


_FILTER: Final = _WithoutQueries()


def keep_queries_out_of_logs() -> None:
    """Have httpx log addresses without their queries, in this process from now on; a second call changes nothing.

    httpx logs each request at INFO with its whole address (https://www.python-httpx.org/logging/), and a program that
    embeds the engine may log at INFO; no full phone number may stand in a log. The logger is that of the whole process:
    other requests made with httpx are logged without their queries, too. httpcore, at DEBUG, names hosts alone.
    """
    logging.getLogger("httpx").addFilter(_FILTER)
