"""Exports as JSON, a contact a line, and as CSV, in which a spreadsheet finds nothing to run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import datetime
from typing import Any, Final

from outreach.clock import format_timestamp
from outreach.convert.exports.columns import Cell, Table
from outreach.convert.json_reports import write_provider_failure
from outreach.convert.json_responses import write_call
from outreach.models.campaign_report import ExportedContact
from outreach.models.dispatch import Dispatch

_PART_CHARACTERS: Final = 64 * 1024

_FORMULA: Final = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r\n\0]")
"""The first characters of cells that a spreadsheet runs as a formula, also full-width or after skipped ones."""

_PHONE: Final = re.compile(r"[+-]?[0-9][0-9 ().-]*")
"""A phone number, which is not a formula and is kept as it is."""


def write_exported_contact(contact: ExportedContact) -> dict[str, Any]:
    """Return a contact with its requests, calls and replies as JSON types."""
    recipient = contact.recipient
    return {
        "position": recipient.position,
        "phone_number": recipient.phone_number,
        "phone": recipient.phone,
        "first_name": recipient.first_name,
        "last_name": recipient.last_name,
        "email": recipient.email,
        "company": recipient.company,
        "external_id": recipient.external_id,
        "custom_variables": dict(recipient.custom_variables),
        "status": recipient.status.value,
        "reason": recipient.reason,
        "meaning": contact.meaning,
        "attempts": recipient.attempts,
        "contacted": recipient.dispatched,
        "successful": recipient.successful,
        "due_at": moment(recipient.due_at),
        "ended_at": moment(recipient.ended_at),
        "texts": list(contact.texts),
        "segments": contact.segments,
        "failure": None if contact.failure is None else write_provider_failure(contact.failure),
        "requests": [_request(one) for one in contact.dispatches],
        "calls": [write_call(one) for one in contact.calls],
        "replies": [{"received_at": moment(one.received_at), "body": one.body} for one in contact.replies],
        "opted_out_at": moment(contact.opted_out_at),
    }


def _request(one: Dispatch) -> dict[str, Any]:
    return {
        "id": one.id,
        "step": one.step,
        "attempt": one.attempt,
        "leg": one.leg,
        "try_number": one.try_number,
        "provider": one.provider,
        "provider_id": one.provider_id,
        "from_number": one.from_number,
        "body": one.body,
        "segments": one.segments,
        "state": one.state.value,
        "report": None if one.report is None else one.report.value,
        "reason": one.reason,
        "error_code": one.error_code,
        "error_message": one.error_message,
        "created_at": moment(one.created_at),
        "settled_at": moment(one.settled_at),
    }


def moment(at: datetime | None) -> str | None:
    """Return a time as in the HTTP interface."""
    return None if at is None else format_timestamp(at)


def escape_formula(text: str) -> str:
    """Return a cell that a spreadsheet shows and does not run, with a leading apostrophe if needed."""
    return f"'{text}" if _FORMULA.match(text) and not _PHONE.fullmatch(text) else text


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


def _cell(value: Cell) -> str | int:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int():
            return value
        case _:
            return escape_formula(value)


def _taken(out: io.StringIO) -> bytes:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text.encode("utf-8")
