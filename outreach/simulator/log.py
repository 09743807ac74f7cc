"""The simulator's log of accepted requests."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import attrs

from outreach.clock import format_timestamp, parse_timestamp


@attrs.frozen(kw_only=True)
class Acceptance:
    """One accepted request."""

    kind: str
    to: str
    from_number: str | None
    body: str | None
    dispatch_id: str
    at: datetime


class AcceptanceLog:
    """One JSON line for each accepted message or call, written before the response.

    Args:
        path: The file; None keeps the log in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: dict[str, Acceptance] = {}

    @property
    def durable(self) -> bool:
        """Whether it outlives the process, so that a missing request was never accepted."""
        return self._path is not None

    def append(self, entry: Acceptance) -> None:
        """Append one line in one write: two processes may append to the same file."""
        self._seen[entry.dispatch_id] = entry
        if self._path is None:
            return
        line = json.dumps(
            {
                "kind": entry.kind,
                "to": entry.to,
                "from": entry.from_number,
                "body": entry.body,
                "dispatch_id": entry.dispatch_id,
                "at": format_timestamp(entry.at),
            },
            ensure_ascii=False,
        )
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, (line + "\n").encode())
        finally:
            os.close(descriptor)

    def find(self, dispatch_id: str) -> Acceptance | None:
        """Return the acceptance of a dispatch id, in this process or, with a file, in any."""
        found = self._seen.get(dispatch_id)
        if found is None and self._path is not None and self._path.exists():
            with self._path.open(encoding="utf-8") as lines:
                for line in lines:
                    if dispatch_id in line:
                        found = _read(line)
        return found


def _read(line: str) -> Acceptance | None:
    try:
        entry = json.loads(line)
        return Acceptance(
            kind=entry["kind"],
            to=entry["to"],
            from_number=entry["from"],
            body=entry["body"],
            dispatch_id=entry["dispatch_id"],
            at=parse_timestamp(entry["at"]),
        )
    except (ValueError, KeyError, TypeError):
        # A crash cut this line, so it was never answered.
        return None
