"""The files of exports: CSV, JSON lines and XLSX, made part by part."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import orjson

from outreach.models.base import Channel
from outreach.models.campaign_report import ExportedContact, ExportFormat
from outreach.serialization.exports.columns import Table
from outreach.serialization.exports.rows import delimited_bytes, write_exported_contact

EXPORT_CONTENT_TYPES: Final[Mapping[ExportFormat, str]] = MappingProxyType(
    {
        "csv": "text/csv; charset=utf-8",
        "jsonl": "application/jsonl; charset=utf-8",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }
)
"""The content type of each format."""

_PART_BYTES: Final = 64 * 1024


def export_bytes(
    contacts: AsyncIterator[ExportedContact],
    kind: ExportFormat,
    *,
    channel: Channel,
    variables: Sequence[str] | None,
    zone: str,
) -> AsyncGenerator[bytes]:
    """Return an export as the parts of a file.

    Args:
        contacts: What to export; read as the file is made.
        kind: The format.
        channel: The campaign's: it decides the columns.
        variables: The names of the contacts' custom variables, one column each; None for one column of all.
        zone: By whose clocks CSV and XLSX have their times, with the offset; JSON has them in UTC.

    Raises:
        ConfigError: The library for XLSX is not installed.
    """
    if kind == "jsonl":
        return _line_bytes(contacts)
    table = Table(channel, variables, zone)
    if kind == "csv":
        return delimited_bytes(contacts, table)
    from outreach.serialization.exports.workbook import require_library, workbook_bytes

    require_library()
    return workbook_bytes(contacts, table)


async def _line_bytes(contacts: AsyncIterator[ExportedContact]) -> AsyncGenerator[bytes]:
    lines: list[bytes] = []
    size = 0
    async for contact in contacts:
        lines.append(orjson.dumps(write_exported_contact(contact)))
        size += len(lines[-1])
        if size >= _PART_BYTES:
            yield b"\n".join(lines) + b"\n"
            lines, size = [], 0
    if lines:
        yield b"\n".join(lines) + b"\n"
