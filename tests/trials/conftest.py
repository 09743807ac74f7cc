"""The programs of the trials have tests of their own, which are run as their teams would run them."""

from __future__ import annotations

collect_ignore = ["parcel_shop", "clinic_site", "platform_team"]
