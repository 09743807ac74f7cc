"""The findings of a server, beside those of its engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from outreach import ConfigError
from outreach.models import DiagnosisFinding, DiagnosisSeverity

ServerCode = Literal[
    "certificate_expired",
    "certificate_expires_soon",
    "certificate_key_exposed",
    "certificate_key_mismatch",
    "certificate_not_usable",
    "certificate_not_valid_yet",
    "certificate_of_another_name",
    "check_failed",
    "config_file_exposed",
    "config_invalid",
    "database_not_usable",
    "key_exposed",
    "listens_in_plain",
    "proxies_too_wide",
    "public_url_unanswered",
    "root_path_differs",
    "spool_not_writable",
]
"""What a server finds beside its engine's codes."""


def finding(
    code: ServerCode,
    why: str,
    where: str,
    *commands: str,
    looks: Sequence[str] = (),
    severity: DiagnosisSeverity = "warning",
) -> DiagnosisFinding:
    """Return a finding about the whole system."""
    return DiagnosisFinding(code=code, severity=severity, why=why, where=where, commands=commands, looks=looks)


def config_invalid(error: ConfigError) -> DiagnosisFinding:
    """Return the finding of a configuration that is not valid."""
    place = "the configuration"
    return finding("config_invalid", error.message, place, looks=["outreach-server config"], severity="critical")
