"""The program of the trial has tests of its own, which are run as its team would run them."""

from __future__ import annotations

collect_ignore = ["clinic_site"]
