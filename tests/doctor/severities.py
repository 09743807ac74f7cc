"""Every code has a meaning, and the severities that a finding with it may have."""

from __future__ import annotations

from typing import Final

from outreach.models import diagnosis
from outreach_server.cli.doctor import findings
from tests.reference.markdown import meanings

SEVERITIES: Final[dict[str, set[str]]] = {}
"""The severities of each code, as the code has them."""

for _module, _name in ((diagnosis, "DatabaseCode"), (diagnosis, "EngineCode"), (findings, "ServerCode")):
    for _entry in meanings(_module, _name):
        _code, _, _severities = _entry.removesuffix(")").partition(" (")
        SEVERITIES.setdefault(_code, set()).update(_severities.split(", "))
