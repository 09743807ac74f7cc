"""Errors in log lines: where they were raised, and their types; their words only where these are for operators.

The words of an error may hold a number, a text or a secret: an adapter puts an answer in them, a library the value that
it could not read. docs/logging.md has the rule.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final

_MAX_FRAMES: Final = 40
"""Frames of one traceback: a recursion has a thousand."""

_MAX_ERRORS: Final = 50
"""Errors of one chain with its groups."""

_MAX_WORDS: Final = 2000

_CAUSE: Final = "The above exception was the direct cause of the following exception:"
_CONTEXT: Final = "During handling of the above exception, another exception occurred:"

_KEPT_FILES: Final = r"\.(?:db|pem|py|toml|dispatch-note|dispatch-position)"
"""Endings of files whose paths are no secret, and that an operator has to find."""

_MASKED: Final = re.compile(
    # An id, an address, a date, the path of a file, or a quoted name or path: they stay.
    r"(?P<kept>\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|(?<!\d\.)\b\d{1,3}(?:\.\d{1,3}){3}\b(?!\.\d)|\b\d{4}-\d\d-\d\d\b"
    rf"|/[^\s\"']*{_KEPT_FILES}\b"
    rf"|(?<!\w)(?P<name_quote>[\"'])(?:[a-z_]+|[^\"'\n]*[/\\][\w.-]+{_KEPT_FILES})(?P=name_quote)(?!\w))"
    # Up to the quote, or to where the words were cut; an apostrophe within a word is no quote.
    r"|(?P<quoted>\"(?:\\.|[^\"\\])*(?:\"|\\?\Z)|(?<!\w)'(?:\\.|[^'\\]|'(?=\w))*(?:'|\\?\Z))"
    r"|(?P<digits>\+?(?:\d{5,}|\d(?:[\s().\-/\u2010-\u2015]{0,3}\d){6,}))"
)

_logged: Final[ContextVar[BaseException | None]] = ContextVar("outreach_logged_error", default=None)


def log_error(
    logger: logging.Logger, level: int, message: str, *args: object, error: BaseException | None, extra: dict[str, Any]
) -> None:
    """Log a line with the loggable part of an error, instead of `exc_info`, whose words any formatter writes.

    Args:
        logger: Writes the line.
        level: The log level.
        message: What failed.
        *args: Arguments of the message.
        error: The error; None for a line without.
        extra: Fields of the record.
    """
    if not logger.isEnabledFor(level):
        return
    file, line, function, _ = logger.findCaller(stacklevel=2)
    if error is not None:
        extra = {"error_type": type(error).__name__, **extra}
    record = logger.makeRecord(logger.name, level, file, line, message, args, None, function, extra)
    if error is not None:
        # As a formatter leaves it for the next one: it is written below the message.
        record.exc_text = described(error)
    token = _logged.set(error)
    try:
        logger.handle(record)
    finally:
        _logged.reset(token)


def logged_error() -> BaseException | None:
    """Return the error of the line that a handler is given now, for a handler that keeps no line."""
    return _logged.get()


def show_words(error: Exception) -> None:
    """Have the words of an error logged in full, for the doubles of `outreach.testing`: a test holds no secret."""
    # One without a dictionary keeps its words.
    with suppress(AttributeError):
        error._words_in_full = True  # type: ignore[attr-defined]


def described(error: BaseException) -> str:
    """Return an error as a traceback of files, lines and functions, with its causes and parts, but not their words."""
    return "\n".join(_lines(error, []))


def masked(text: str) -> str:
    """Return words for the log without what they quote, and with long numbers but for their last two digits."""
    return _MASKED.sub(_mask, text[:_MAX_WORDS])


def _lines(error: BaseException, seen: list[int]) -> Iterator[str]:
    seen.append(id(error))
    before, link = error.__cause__, _CAUSE
    if before is None and not error.__suppress_context__:
        before, link = error.__context__, _CONTEXT
    if before is not None and id(before) not in seen and len(seen) < _MAX_ERRORS:
        yield from _lines(before, seen)
        yield from ("", link, "")
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):"
        yield from _frames(error.__traceback__)
    yield _title(error)
    if isinstance(error, BaseExceptionGroup):
        for number, part in enumerate(error.exceptions, 1):
            if len(seen) >= _MAX_ERRORS:
                yield f"  ({len(error.exceptions) - number + 1} more)"
                return
            yield f"  Part {number} of {len(error.exceptions)}:"
            yield from (f"    {line}" for line in _lines(part, seen))


def _frames(raised: TracebackType) -> Iterator[str]:
    frames = list(traceback.walk_tb(raised))
    if len(frames) > _MAX_FRAMES:
        yield f"  ({len(frames) - _MAX_FRAMES} more)"
    for frame, line in frames[-_MAX_FRAMES:]:
        yield f'  File "{frame.f_code.co_filename}", line {line}, in {frame.f_code.co_name}'


def _title(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    words = _words(error)
    return f"{name}: {words}" if words else name


def _words(error: BaseException) -> str:
    if getattr(error, "_words_in_full", False):
        return str(error)[:_MAX_WORDS]
    if getattr(type(error), "_words_are_for_operators", False):
        try:
            return masked(str(error))
        except Exception:  # the code of others: a log line raises nothing
            return ""
    if isinstance(error, OSError) and type(error).__module__ == "builtins":
        # The system's words for its number, not those that the error was made with.
        number = error.errno
        if isinstance(number, int) and number in errno.errorcode:
            return f"[{errno.errorcode[number]}] {os.strerror(number)}"
    return ""


def _mask(found: re.Match[str]) -> str:
    if found["kept"] is not None:
        return found["kept"]
    if found["quoted"] is not None:
        return f"{found['quoted'][0]}…{found['quoted'][0]}"
    digits = found["digits"]
    plus = "+" if digits.startswith("+") else ""
    rest = digits.removeprefix("+")
    shown = rest[-2:] if len(rest) >= len("123456") else ""
    return f"{plus}{'*' * (len(rest) - len(shown))}{shown}"
