"""Fixtures of the acceptance tests: each runs in memory, and for `make soak` on SQLite too."""

from __future__ import annotations

from tests.engine.conftest import clock as clock
from tests.engine.conftest import open_storage as open_storage
