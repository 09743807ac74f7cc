"""Libraries that wheels bring, of which the metadata of their part does not tell the licence."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

LICENCES = {
    "libcom_err": "MIT",
    "libcrypt": "LGPL-2.1-or-later",
    "libcrypto": "Apache-2.0",
    "libgssapi_krb5": "MIT",
    "libk5crypto": "MIT",
    "libkeyutils": "LGPL-2.0-or-later",
    "libkrb5": "MIT",
    "libkrb5support": "MIT",
    "liblber": "OLDAP-2.8",
    "libldap": "OLDAP-2.8",
    "libpq": "PostgreSQL",
    "libsasl2": "BSD-3-Clause-Attribution",
    "libssl": "Apache-2.0",
}
"""By the name of the library: those of psycopg-binary."""

TEXTS = Path(__file__).resolve().parent / "licences"
"""Texts that a library's licence asks for, and its part does not have: the LGPL-3.0 of psycopg is about the GPL-3.0."""


def bundled_libraries(names: Iterable[str]) -> dict[str, str]:
    """Return the libraries of wheels among the files of the executable, with their licences.

    Raises:
        SystemExit: The licence of one is not known.
    """
    found = {name: LICENCES.get(Path(name).name.split("-")[0]) for name in sorted(names) if ".libs/" in name}
    unknown = [name for name, licence in found.items() if licence is None]
    if unknown:
        sys.exit(f"No licence is known of: {', '.join(unknown)}. Look it up, and add it to {__file__}")
    return {name: licence for name, licence in found.items() if licence is not None}


def texts() -> dict[str, str]:
    """Return the texts by the names of their licences."""
    return {file.stem: file.read_text("utf-8") for file in sorted(TEXTS.iterdir())}
