"""Our engine, which creates and starts campaigns in the database of a URL, as `engine` does in a file before it sends.

Told: `url`; `campaigns` and `recipients` of each; `rate` a minute.
"""

from __future__ import annotations

import logging

import anyio

from benchmarks.sides.engine import furnish
from benchmarks.sides.telling import tell, told

if __name__ == "__main__":
    logging.disable(logging.ERROR)
    arguments = told()
    tell({"workspace": anyio.run(furnish, arguments["url"], arguments)})
