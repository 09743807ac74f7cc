"""Fakes, builders and contract suites for applications and for adapters of their own."""

from __future__ import annotations

from outreach.extras import require

require("testing", "outreach.testing")
