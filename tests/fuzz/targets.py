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


def bind(target: Target) -> BaseSchema:
    """Return the contract, bound to an app whose lifespan has not begun."""
    schema = schemathesis.openapi.from_dict(copy.deepcopy(DOCUMENT))
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
SQLITE_SCHEMA: Final = bind(SQLITE)
