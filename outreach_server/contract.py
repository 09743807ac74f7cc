"""The HTTP contract, `openapi.yaml`, wherever this package runs from.

The file is written by hand at the root of the repository. The wheel carries it inside this package; a
checkout, and an editable installation of one, reads it from the root, so that there is one copy to edit.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

CONTRACT_NAME = "openapi.yaml"
"""The name of the file, in the wheel and in the repository."""


def contract_bytes() -> bytes:
    """Return the contract exactly as its file holds it.

    Raises:
        FileNotFoundError: The installation is broken: it lacks the file.
    """
    packaged = resources.files(__package__) / CONTRACT_NAME
    if packaged.is_file():
        return packaged.read_bytes()
    root = Path(__file__).resolve().parent.parent
    # In site-packages a file of this name is somebody else's: only a checkout's root has the project file.
    if (root / "pyproject.toml").is_file() and (root / CONTRACT_NAME).is_file():
        return (root / CONTRACT_NAME).read_bytes()
    raise FileNotFoundError(
        f"{CONTRACT_NAME} is neither in the package {__package__} nor at the root of a checkout. Reinstall outreach."
    )


def contract_text() -> str:
    """Return the contract as text: YAML in UTF-8.

    Raises:
        FileNotFoundError: The installation is broken: it lacks the file.
    """
    return contract_bytes().decode("utf-8")
