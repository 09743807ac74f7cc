"""Bringing a paused campaign to where half of it is sent, without the hours that this takes."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

_PATTERN: Final = """
    SELECT * FROM dispatches WHERE state = 'accepted' AND campaign_number = :number ORDER BY created_at LIMIT 1
"""

_OWN: Final = {
    "id": "'copy-' || recipients.position",
    "provider_id": "'sim-copy-' || recipients.position",
    "position": "recipients.position",
    "to_number": "phone",
}
"""Columns of a dispatch that are its recipient's own; all others are the pattern's."""

_RECIPIENTS: Final = """
    UPDATE recipients SET (status, attempts, tries, dispatched, successful, ended_at) = (
        SELECT status, attempts, tries, dispatched, successful, ended_at FROM recipients
        WHERE campaign_number = :number AND position = :pattern
    )
    WHERE campaign_number = :number AND position < :half AND status = 'pending'
"""

_RECOUNT: Final = """
    SELECT COUNT(*) AS recipients_total,
        SUM(is_open AND attempts = 0 AND NOT dispatched) AS recipients_pending,
        SUM(is_open) AS recipients_open,
        SUM(dispatched AND NOT is_open) AS recipients_completed,
        SUM(successful) AS recipients_successful
    FROM (
        SELECT *, status IN ('pending', 'waiting', 'dispatching', 'in_progress', 'unknown') AS is_open
        FROM recipients WHERE campaign_number = :number
    )
"""

_COUNTERS: Final = (
    "recipients_total",
    "recipients_pending",
    "recipients_open",
    "recipients_completed",
    "recipients_successful",
)


def make_half_sent(connection: sqlite3.Connection) -> int:
    """Write the rest of the first half of the largest campaign; return how many recipients that half has.

    The campaign is paused, and nothing of it is on its way. Each dispatch that is written is a copy of one that was
    really sent, but for what is its recipient's own.
    """
    connection.row_factory = sqlite3.Row
    number, total = connection.execute(
        "SELECT number, recipients_total FROM campaigns WHERE status = 'paused' ORDER BY recipients_total DESC"
    ).fetchone()
    values: dict[str, Any] = {"number": number, "half": total // 2}
    pattern = connection.execute(_PATTERN, values).fetchone()
    values["pattern"] = pattern["position"]
    columns = pattern.keys()
    written = ", ".join(_OWN.get(column, f":of_{column}") for column in columns)
    values |= {f"of_{column}": pattern[column] for column in columns}
    with connection:
        # Column names are the table's own.
        connection.execute(
            f"INSERT INTO dispatches ({', '.join(columns)}) SELECT {written} FROM recipients "  # noqa: S608
            "WHERE campaign_number = :number AND position < :half AND status = 'pending'",
            values,
        )
        connection.execute(_RECIPIENTS, values)
        counted = dict(connection.execute(_RECOUNT, values).fetchone())
        changes = ", ".join(f"{name} = :{name}" for name in _COUNTERS)
        connection.execute(f"UPDATE campaigns SET {changes} WHERE number = :number", {**values, **counted})  # noqa: S608
    half: int = counted["recipients_completed"]
    sent = connection.execute(
        "SELECT COUNT(*) FROM dispatches WHERE campaign_number = :number AND state = 'accepted'", values
    ).fetchone()[0]
    assert half == sent
    return half
