"""Write the tables of docs/configuration.md from the config classes: python -m tests.documents.settings_table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from outreach import EngineConfig, SimulatorConfig
from outreach.config_sources import Setting
from outreach_server.cli.setting_flags import shown
from outreach_server.config import ServerConfig
from tests.documents.blocks import ROOT

PAGE: Final = ROOT / "docs" / "configuration.md"

_TABLE: Final = re.compile(r"(<!-- settings: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def _settings() -> dict[str, Sequence[Setting]]:
    engine = {setting.name for setting in EngineConfig.settings()}
    return {
        "server": [setting for setting in ServerConfig.settings() if setting.name not in engine],
        "engine": EngineConfig.settings(),
        "simulators": SimulatorConfig.settings(),
    }


def _row(setting: Setting) -> str:
    values = f" {setting.values.capitalize()}." if setting.values else ""
    flag = f"{setting.flag}`, `--no-{setting.flag[2:]}" if setting.kind == "boolean" else setting.flag
    return (
        f"| `{setting.variable}`<br>`{flag}` | `{setting.key}` | {setting.kind} | {shown(setting.default)} "
        f"| {setting.meaning}{values} |"
    )


def with_tables(page: str) -> str:
    """Return a page with its tables as the classes have them."""
    settings = _settings()

    def table(match: re.Match[str]) -> str:
        head = "| Variable, flag of `serve` | Key of the file | Kind | Default | Meaning |\n|---|---|---|---|---|\n"
        rows = "\n".join(_row(setting) for setting in settings[match[2]])
        return f"{match[1]}\n{head}{rows}\n\n{match[3]}"

    return _TABLE.sub(table, page)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
