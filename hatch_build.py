"""The build hook: put the contract into the server's package, in wheels only."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ContractHook(BuildHookInterface):
    """Ship `openapi.yaml`, which lies at the root of the repository, as `outreach_server/openapi.yaml`.

    The setting `force-include` would do it too, but it applies to editable installations as well and leaves
    a copy there that is stale from the next edit on.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to a wheel; the build stops when it is missing."""
        if self.target_name == "wheel" and version != "editable":
            build_data["force_include"]["openapi.yaml"] = "outreach_server/openapi.yaml"
