"""What is fuzzed: the contract, bound to an app over each storage."""

from __future__ import annotations

import atexit
import copy
import shutil
import tempfile
from pathlib import Path
from typing import Final

import schemathesis
from schemathesis.schemas import BaseSchema

from tests import postgres
from tests.contract.document import DOCUMENT
from tests.fuzz import hooks
from tests.fuzz.workspace import STABLE_KEY, Target


def bind(target: Target, *, own_ids: bool = True) -> BaseSchema:
    """Return the contract, bound to an app whose lifespan has not begun.

    Args:
        target: The app.
        own_ids: Whether bodies have the application's own identifiers. In sequences they have not: Schemathesis takes
            `external_id` for another resource's identifier, and begins no sequence with an operation that needs one.
    """
    document = copy.deepcopy(DOCUMENT)
    for model in document["components"]["schemas"].values() if not own_ids else ():
        fields = model.get("properties", {})
        for name in [name for name, field in fields.items() if field.get("$ref", "").endswith("/OwnExternalId")]:
            del fields[name]
    schema = schemathesis.openapi.from_dict(document)
    schema.app = target
    schema.config.update(headers={"Authorization": f"Bearer {STABLE_KEY}"})
    return schema


def begin(target: Target) -> None:
    """Begin the lifespan, which makes the workspace and the key, and tell the hooks what there is."""
    schemathesis.openapi.from_asgi("/openapi.yaml", target)
    hooks.use(target.known)


# Schemathesis ends the lifespan after every fixture: so the directory goes last of all.
_DIRECTORY: Final = Path(tempfile.mkdtemp(prefix="outreach-fuzz-"))
atexit.register(shutil.rmtree, _DIRECTORY, ignore_errors=True)

MEMORY: Final = Target(make_url=lambda: "memory://")
SQLITE: Final = Target(make_url=lambda: f"sqlite:///{_DIRECTORY / 'outreach.db'}")
POSTGRES: Final = Target(make_url=postgres.empty_database)
MEMORY_SCHEMA: Final = bind(MEMORY)
SQLITE_SCHEMA: Final = bind(SQLITE, own_ids=False)
