"""The HTTP contract, `openapi.yaml`, wherever this package runs from.

The wheel has a copy in this package; a checkout, and an editable installation, read the one file at the root.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final
from urllib.parse import quote

CONTRACT_NAME = "openapi.yaml"
"""The name of the file, in the wheel and in the repository."""

_CARRIERS: Final = re.compile(rb"(?m)^( +enum: \[twilio, telnyx, vonage)\]$")
_SERVER: Final = re.compile(rb"(?m)^(servers:\n {2}- url: )/$")


def contract_bytes() -> bytes:
    """Return the contract's bytes.

    Raises:
        FileNotFoundError: The installation lacks the file.
    """
    packaged = resources.files(__package__) / CONTRACT_NAME
    if packaged.is_file():
        return packaged.read_bytes()
    root = Path(__file__).resolve().parent.parent
    # Only a checkout's root has the project file; in site-packages the file would be another package's.
    if (root / "pyproject.toml").is_file() and (root / CONTRACT_NAME).is_file():
        return (root / CONTRACT_NAME).read_bytes()
    raise FileNotFoundError(
        f"{CONTRACT_NAME} is neither in the package {__package__} nor at the root of a checkout. Reinstall outreach."
    )


def contract_of(path: str, carriers: Sequence[str] = ()) -> bytes:
    """Return the contract of a server as it is set up.

    Args:
        path: Where it is mounted, which its paths then begin with; empty for nowhere.
        carriers: Carriers that it accepts beside those of the interface.

    Raises:
        FileNotFoundError: The installation lacks the file.
    """
    contract = contract_bytes()
    if carriers:
        further = "".join(f", {json.dumps(name)}" for name in carriers).encode()
        contract = _CARRIERS.sub(lambda match: match[1] + further + b"]", contract, count=1)
    if path:
        url = json.dumps(quote(path)).encode()
        contract = _SERVER.sub(lambda match: match[1] + url, contract, count=1)
    return contract
