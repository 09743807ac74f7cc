"""Test tools for applications, and for adapters, storages and dispatchers of their own.

The public names are those in the `__all__` of each module; docs/reference/testing.md lists them.
"""

from __future__ import annotations

from outreach.core.extras import require

require("testing", "outreach.testing")
