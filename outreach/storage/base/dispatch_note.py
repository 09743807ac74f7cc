"""A file that says how far a database has come: it shows that the database was set back while nothing ran."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.errors import DispatchRefused, Problem
from outreach.models.diagnosis import database_problem
from outreach.models.work import HighWaterMark


@attrs.frozen
class DispatchNote:
    """A file with a high-water mark.

    Attributes:
        path: The file.
        directory: What its directory is called in errors.
    """

    path: Path
    directory: str

    def content(self) -> Mapping[str, Any]:
        """Return what was written; empty without a readable file."""
        try:
            value = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def mark(self) -> HighWaterMark | None:
        """Return the high-water mark; None without a readable one."""
        value = self.content()
        try:
            database, epoch, change = value["database"], value["epoch"], value["change"]
            # Notes of earlier versions have no time.
            renewed_at = parse_timestamp(value["renewed_at"]) if value.get("renewed_at") is not None else None
        except (ValueError, TypeError, KeyError):
            return None
        # A truncated file may still be JSON.
        dated = renewed_at is None or renewed_at.tzinfo is not None
        if type(database) is str and type(epoch) is int and type(change) is int and dated:
            return HighWaterMark(database=database, epoch=epoch, change=change, renewed_at=renewed_at)
        return None

    def write(self, mark: HighWaterMark, **more: object) -> None:
        """Write the mark, and more beside it; raise `DispatchRefused` if that fails."""
        draft = self.path.with_name(f"{self.path.name}.new")
        renewed_at = format_timestamp(mark.renewed_at) if mark.renewed_at is not None else None
        try:
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "w", encoding="ascii") as opened:
                json.dump({**attrs.asdict(mark), "renewed_at": renewed_at, **more}, opened)
            draft.replace(self.path)
        except OSError as error:
            raise cannot_be_written(self.path, self.directory, error) from error


def note_in(state_dir: Path, database: str) -> DispatchNote:
    """Return the note of a database in a state directory; the text tells the databases of this machine apart."""
    name = hashlib.sha256(database.encode(errors="surrogateescape")).hexdigest()[:16]
    return DispatchNote(state_dir / f"outreach-{name}.dispatch-note", "The state directory")


def of_state_directory(directory: Path | None) -> Iterator[Problem]:
    """Yield that a state directory cannot be written; None for no directory."""
    if directory is None or (directory.is_dir() and os.access(directory, os.W_OK | os.X_OK)):
        return
    quoted = shlex.quote(str(directory))
    commands = [f"sudo chown $(id -un) {quoted}", f"chmod u+rwx {quoted}"]
    message = f"This user may not write the state directory {str(directory)!r}: nothing is sent."
    if not directory.is_dir():
        commands = [f"mkdir -p -m 700 {quoted}"]
        message = f"There is no state directory {str(directory)!r}: nothing is sent."
    yield database_problem("database_not_writable", message, directory, *commands, looks=["outreach-server config"])


def cannot_be_written(file: Path, directory: str, error: OSError) -> DispatchRefused:
    """Return the error of a process that cannot record how far the database has come."""
    return DispatchRefused(
        f"The high-water mark {str(file)!r} cannot be written ({error.strerror}). {directory} must be writable, and "
        "its disk must have room.",
        reason="note",
    )
