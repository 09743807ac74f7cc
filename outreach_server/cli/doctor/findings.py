"""The findings of a server, beside those of its engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from outreach import ConfigError
from outreach.errors import Problem, Severity

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
"""The codes of a server's findings beside its engine's:

    certificate_expired (critical): the certificate has expired
    certificate_expires_soon (warning): the certificate expires within 14 days; one that is valid for less than 70
        days, within the last fifth of its time
    certificate_key_exposed (warning): everybody on the machine may read the key of the certificate
    certificate_key_mismatch (critical): the key is that of another certificate
    certificate_not_usable (critical): the certificate or its key cannot be read
    certificate_not_valid_yet (critical): the certificate is valid from later on
    certificate_of_another_name (warning): the certificate is not for the public address's host
    check_failed (warning): a check of the server failed or took too long; the others went on
    config_file_exposed (warning): everybody on the machine may read the configuration file, which has a password
    config_invalid (critical): the configuration is not valid, or its database's URL is not: little else was looked at
    database_not_usable (critical): the database cannot be opened; the message says why
    key_exposed (warning): others may read the file of `OUTREACH_SECRET_KEY_FILE`: it is used all the same
    listens_in_plain (warning): the server listens beyond this machine without TLS, and knows no proxy
    proxies_too_wide (warning): every client is taken for a proxy (`proxy_headers`)
    public_url_unanswered (warning): no server of this package answers there, asked from this machine
    root_path_differs (warning): the path of the public address is not the one that the server is told to lie below
        (`root_path`)
    spool_not_writable (warning): the directory for large bodies cannot be written
"""


def finding(
    code: ServerCode,
    message: str,
    path: str,
    *commands: str,
    looks: Sequence[str] = (),
    severity: Severity = "warning",
) -> Problem:
    """Return a finding about the whole system."""
    return Problem(code=code, severity=severity, message=message, path=path, commands=commands, looks=looks)


def config_invalid(error: ConfigError) -> Problem:
    """Return the finding of a configuration that is not valid."""
    place = "the configuration"
    return finding("config_invalid", error.message, place, looks=["outreach-server config"], severity="critical")
