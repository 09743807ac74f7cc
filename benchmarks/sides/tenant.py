"""Makes a database of the engine with a workspace, as `benchmarks.tenants.tenant` does, by an earlier version.

Told: the arguments of `tenant`.
"""

from __future__ import annotations

import logging
from pathlib import Path

import attrs

from benchmarks.sides.telling import tell, told
from benchmarks.tenants import tenant

if __name__ == "__main__":
    logging.disable(logging.ERROR)
    arguments = told()
    made = tenant(Path(arguments.pop("directory")), **arguments)
    tell({**attrs.asdict(made), "database": str(made.database)})
