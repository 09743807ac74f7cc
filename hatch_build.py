"""The build hook: put the contract and the pages of the documentation into the packages, in wheels only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ContractHook(BuildHookInterface):
    """Ship `openapi.yaml` in `outreach_server`, and the pages of `docs`, to which docstrings point, in `outreach/docs`.

    Both lie at the root of the repository. The setting `force-include` would do it too, but it applies to editable
    installations as well and leaves copies there that are stale from the next edit on.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to a wheel; the build stops when they are missing."""
        if self.target_name == "wheel" and version != "editable":
            pages = Path(self.root, "docs").rglob("*.md")
            build_data["force_include"] |= {"openapi.yaml": "outreach_server/openapi.yaml"} | {
                str(page): f"outreach/{page.relative_to(self.root).as_posix()}" for page in pages
            }
