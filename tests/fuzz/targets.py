"""What is fuzzed: the contract, bound to an app over each storage."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Final

import schemathesis
import yaml
from schemathesis.schemas import BaseSchema

from outreach_server.contract import contract_text
from tests.fuzz import hooks
from tests.fuzz.workspace import Target, make_target


def bind(target: Target) -> BaseSchema:
    """Return the contract, bound to an app whose lifespan has not begun."""
    schema = schemathesis.openapi.from_dict(yaml.safe_load(contract_text()))
    schema.app = target.app
    return schema


def begin(target: Target, schema: BaseSchema) -> None:
    """Begin the lifespan, which makes the key, if it has not begun; tell Schemathesis and the hooks."""
    schemathesis.openapi.from_asgi("/openapi.yaml", target.app)
    schema.config.update(headers={"Authorization": f"Bearer {target.api_key}"})
    hooks.use(target.known)


# Schemathesis ends the lifespans when pytest ends, after every fixture: so the directory goes last of all.
_DIRECTORY: Final = Path(tempfile.mkdtemp(prefix="outreach-fuzz-"))
atexit.register(shutil.rmtree, _DIRECTORY, ignore_errors=True)

MEMORY: Final = make_target("memory://")
SQLITE: Final = make_target(f"sqlite:///{_DIRECTORY / 'outreach.db'}")
MEMORY_SCHEMA: Final = bind(MEMORY)
SQLITE_SCHEMA: Final = bind(SQLITE)
