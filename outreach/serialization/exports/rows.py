"""Exports as JSON, a contact a line, and as CSV, in which a spreadsheet finds nothing to run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from outreach.models.campaign_report import ExportedContact
from outreach.serialization.campaigns import write_call_details
from outreach.serialization.documents import chosen_fields, document_of, to_json
from outreach.serialization.exports.columns import CONTACT_FIELDS, Cell, Table

_PART_CHARACTERS: Final = 64 * 1024

_FORMULA: Final = re.compile(r"[\s\x00-\x1f]*(?:[=+@\uff0b\uff0d\uff1d\uff20]|-(?!\)))|[\t\r\n\0]")
"""The first characters of cells that a spreadsheet runs as a formula, also full-width or after skipped ones."""

_PHONE: Final = re.compile(r" *[+-]?[0-9][0-9 ().-]*")
"""A phone number, which is not a formula and is kept as it is."""


_CONTACT: Final = (*CONTACT_FIELDS, "custom_variables", "status", "reason")
_REQUEST: Final = (
    *("id", "step", "attempt", "leg", "try_number", "provider", "provider_id", "from_number", "body", "segments"),
    *("state", "report", "reason", "error_code", "error_message", "created_at", "settled_at"),
)


def write_exported_contact(contact: ExportedContact) -> dict[str, Any]:
    """Return a contact with its requests, calls and replies as JSON types."""
    recipient = contact.recipient
    return {
        **chosen_fields(recipient, _CONTACT),
        "meaning": contact.meaning,
        "attempts": recipient.attempts,
        "contacted": recipient.dispatched,
        "successful": recipient.successful,
        "due_at": to_json(recipient.due_at),
        "ended_at": to_json(recipient.ended_at),
        "texts": list(contact.texts),
        "segments": contact.segments,
        "failure": None if contact.failure is None else document_of(contact.failure, "source"),
        "requests": [chosen_fields(one, _REQUEST) for one in contact.dispatches],
        "calls": [write_call_details(one, contact.transcripts.get(one.id)) for one in contact.calls],
        "replies": to_json(contact.replies),
        "opted_out_at": to_json(contact.opted_out_at),
    }


def escape_formula(text: str) -> str:
    """Return a cell that a spreadsheet shows and does not run, with an apostrophe before each formula in it.

    Some spreadsheets split a row at each `;`, also within quotes.
    """
    return ";".join(
        f"'{part}" if _FORMULA.match(part) and not _PHONE.fullmatch(part) else part for part in text.split(";")
    )


async def delimited_bytes(contacts: AsyncIterator[ExportedContact], table: Table) -> AsyncGenerator[bytes]:
    """Yield a CSV file in UTF-8, with the mark by which spreadsheets know that it is."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    out.write("\ufeff")
    writer.writerow([escape_formula(name) for name in table.header])
    async for contact in contacts:
        writer.writerow([_cell(value) for value in table.row(contact)])
        if out.tell() >= _PART_CHARACTERS:
            yield _taken(out)
    yield _taken(out)


def _cell(value: Cell) -> str | int | float:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return value
        case _:
            return escape_formula(value)


def _taken(out: io.StringIO) -> bytes:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text.encode("utf-8")
