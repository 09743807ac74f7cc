"""What a log holds of an error, in each of its forms: nothing that the error's words were made of."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import cattrs
import httpx

from outreach_server.monitoring.log_lines import JsonFormatter, TextFormatter

NUMBER: Final = "+4915123456789"
BODY: Final = "Dear Anna, your appointment is tomorrow"
TOKEN: Final = "sk-live-Zr81qq"
SECRETS: Final = (NUMBER, NUMBER[3:], BODY, "Anna", TOKEN)


class OwnError(ValueError):
    """An error of an adapter of one's own."""


def break_down() -> NoReturn:
    """Fail as an adapter does that tells in words what it was about: in a chain, in parts and in notes."""
    try:
        try:
            try:
                cattrs.structure({"to": BODY}, dict[str, int])
            except Exception as unreadable:
                raise httpx.ReadError(f"{TOKEN} was not taken") from unreadable
        except httpx.ReadError:
            raise KeyError(NUMBER)  # noqa: B904 - its context is what is looked for
    except KeyError as error:
        failed = OwnError(f"bad number {NUMBER}: {BODY}, {TOKEN!r}")
        failed.add_note(f"to {NUMBER}")
        raise ExceptionGroup(f"sending to {NUMBER}", [failed, OSError(TOKEN, BODY)]) from error
    raise AssertionError("It is no number.")


class Log(logging.Handler):
    """Collects all lines, as text and as JSON of a server, and as a host's own formatter writes those of the engine."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Write it in each form."""
        self.records.append(record)
        own = ("outreach", "outreach_server")
        if record.name.partition(".")[0] in own:
            self.lines.append(logging.Formatter(logging.BASIC_FORMAT).format(record))
            self.lines.append(repr(vars(record)))
        self.lines.append(JsonFormatter().format(record))
        self.lines.append(TextFormatter().format(record))

    def of(self, action: str) -> list[logging.LogRecord]:
        """Return the records of an action."""
        return [record for record in self.records if getattr(record, "action", None) == action]

    def holds_no_words(self) -> None:
        """Check that nothing of what an error was made of is in any line."""
        for line in self.lines:
            assert [secret for secret in SECRETS if secret in line] == [], line

    def tells_where(self, action: str) -> None:
        """Check that the lines of an action tell where, and of which types the errors of the whole chain are."""
        (record, *_) = self.of(action)
        for formatter in (logging.Formatter(), JsonFormatter(), TextFormatter()):
            line = formatter.format(record)
            for told in ("tests/logged.py", "break_down", "ReadError", "KeyError", "OwnError", "OSError"):
                assert told in line


@contextmanager
def listening() -> Iterator[Log]:
    """Hear what is logged in the process."""
    log, root = Log(), logging.getLogger()
    before = root.level
    root.addHandler(log)
    root.setLevel(logging.INFO)
    try:
        yield log
    finally:
        root.setLevel(before)
        root.removeHandler(log)
