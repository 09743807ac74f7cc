"""The files that HTTPS is served with."""

from __future__ import annotations

import shlex
import ssl
import stat
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from outreach.errors import Problem
from outreach_server.cli.doctor.findings import finding
from outreach_server.config import ServerConfig

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

SOON: Final = timedelta(days=14)

SHARE: Final = 5
"""Certificates of few days are renewed later: soon is a fifth of their time at most."""

_RENEW: Final = "sudo certbot renew"


def of_certificate(config: ServerConfig, *, now: datetime) -> Iterator[Problem]:
    """Yield what is wrong with a server's certificate and key."""
    file = config.tls_certificate
    if file is None:
        return
    key = config.tls_key or file
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file, config.tls_key, password="")
    except OSError as error:
        yield _unusable(file, key, error)
        return
    if key.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
        yield finding(
            "certificate_key_exposed",
            f"Everybody on this machine may read the key {str(key)!r}, and so pretend to be this server.",
            str(key),
            f"chmod o-rwx {shlex.quote(str(key))}",
        )
    certificate = _read_certificate(file)
    if certificate is not None:
        yield from _of_time(certificate, file, now)
        yield from _of_name(certificate, file, config.public_url)


def expiry_unknown(config: ServerConfig) -> Sequence[str]:
    """Return that the expiry of the certificate cannot be known here, where that is so."""
    if config.tls_certificate is None or _has_reader():
        return ()
    return ["Until when the certificate is valid was not looked at: that takes the package cryptography."]


def _unusable(file: Path, key: Path, error: OSError) -> Problem:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return finding(
            "certificate_key_mismatch",
            f"The key {str(key)!r} is not that of the certificate {str(file)!r}: no server can start with them.",
            str(key),
            looks=[
                f"openssl x509 -noout -pubkey -in {shlex.quote(str(file))}",
                f"openssl pkey -pubout -in {shlex.quote(str(key))}",
            ],
            severity="critical",
        )
    files = [str(file)] if key == file else [str(file), str(key)]
    return finding(
        "certificate_not_usable",
        f"{' and '.join(files)} cannot be used for TLS: {error.strerror or error}. A certificate and its key without a "
        "password are needed, in PEM files that this user may read.",
        str(file),
        looks=[f"ls -l {shlex.join(files)}"],
        severity="critical",
    )


def _of_time(certificate: Certificate, file: Path, now: datetime) -> Iterator[Problem]:
    since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now >= until:
        yield finding(
            "certificate_expired",
            f"The certificate expired on {until:%Y-%m-%d}: clients and providers refuse to connect.",
            str(file),
            _RENEW,
            severity="critical",
        )
    elif now < since:
        yield finding(
            "certificate_not_valid_yet",
            f"The certificate is valid from {since:%Y-%m-%d %H:%M} UTC on only: is this machine's clock right?",
            str(file),
            looks=["timedatectl status"],
            severity="critical",
        )
    elif until - now < min(SOON, (until - since) / SHARE):
        yield finding(
            "certificate_expires_soon",
            f"The certificate expires on {until:%Y-%m-%d}, and has not been renewed.",
            str(file),
            _RENEW,
        )


def _of_name(certificate: Certificate, file: Path, public_url: str | None) -> Iterator[Problem]:
    host = urlsplit(public_url).hostname if public_url is not None else None
    names = _names(certificate)
    if host is None or not names or any(_covers(name, host) for name in names):
        return
    yield finding(
        "certificate_of_another_name",
        f"The certificate is for {', '.join(sorted(names))}, and not for the public address's host {host}.",
        str(file),
        f"sudo certbot certonly -d {shlex.quote(host)}",
    )


def _covers(name: str, host: str) -> bool:
    name, host = name.lower(), host.lower()
    return name == host or (name.startswith("*.") and host.partition(".")[2] == name[2:])


def _names(certificate: Certificate) -> set[str]:
    from cryptography import x509

    try:
        listed = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = listed.get_values_for_type(x509.IPAddress)
    return {*listed.get_values_for_type(x509.DNSName), *(str(address) for address in addresses)}


def _has_reader() -> bool:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        return False
    return True


def _read_certificate(file: Path) -> Certificate | None:
    """Return the first certificate of a file that TLS takes; None without the package that reads it."""
    if not _has_reader():
        return None
    from cryptography import x509

    return x509.load_pem_x509_certificates(file.read_bytes())[0]
