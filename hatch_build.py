"""The build hook: put the contract and the pages of the documentation into the packages, in wheels only."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ContractHook(BuildHookInterface):
    """Ship `openapi.yaml` as `outreach_server/openapi.yaml`, and `docs`, to which docstrings point, as `outreach/docs`.

    Both lie at the root of the repository. The setting `force-include` would do it too, but it applies to editable
    installations as well and leaves copies there that are stale from the next edit on.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to a wheel; the build stops when they are missing."""
        if self.target_name == "wheel" and version != "editable":
            build_data["force_include"] |= {"openapi.yaml": "outreach_server/openapi.yaml", "docs": "outreach/docs"}
