from __future__ import annotations

from datetime import UTC, datetime

import pytest

from outreach.serialization.field_rules import read_timestamp


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-01T09:00:00Z", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01t09:00:00z", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01T09:00:00", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01T09:00:00-08:00", datetime(2026, 12, 1, 17, tzinfo=UTC)),
        ("2026-12-01T09:00:00+05:45", datetime(2026, 12, 1, 3, 15, tzinfo=UTC)),
        ("2026-12-01T09:00:00-00:00", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01T09:00:00.5Z", datetime(2026, 12, 1, 9, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-12-01T09:00:00.1234567890123Z", datetime(2026, 12, 1, 9, 0, 0, 123_456, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, tzinfo=UTC)),
        ("2016-12-31T23:59:60.9Z", datetime(2017, 1, 1, tzinfo=UTC)),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
        ("0002-01-01T00:00:00+23:59", datetime(1, 12, 31, 0, 1, tzinfo=UTC)),
        ("9998-12-31T23:59:60-23:59", datetime(9999, 1, 1, 23, 59, tzinfo=UTC)),
    ],
)
def test_rfc_3339_with_an_optional_offset(text: str, moment: datetime) -> None:
    """docs/interface.md#timestamps: RFC 3339, the offset optional (then UTC)."""
    assert read_timestamp(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-12-01",
        "2026-12-01 09:00:00Z",
        "2026-12-01T09:00Z",
        "2026-12-01T24:00:00Z",
        "2026-12-01T09:60:00Z",
        "2026-12-01T09:00:61Z",
        "2026-13-01T09:00:00Z",
        "2025-02-29T09:00:00Z",
        "2026-12-01T09:00:00.Z",
        "2026-12-01T09:00:00,5Z",
        "2026-12-01T09:00:00+24:00",
        "2026-12-01T09:00:00+05:60",
        "2026-12-01T09:00:00+0500",
        "2026-12-01T09:00:00Z\n",
        " 2026-12-01T09:00:00Z",
        "٢٠٢٦-12-01T09:00:00Z",
        "20261201T090000Z",
        "1764579600",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_anything_else_is_no_timestamp(text: str) -> None:
    """docs/interface.md#timestamps: else 400; moments that leave the calendar in UTC too, instead of a crash."""
    assert read_timestamp(text) is None
