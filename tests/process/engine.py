"""An engine that dispatches from a database until it is killed, under settings for which a server has no options."""

from __future__ import annotations

import json
import sys

import anyio

from outreach import EngineConfig, Outreach


async def main(url: str, config: str) -> None:
    """Dispatch, after writing one document that says so; `config` holds settings as JSON."""
    async with Outreach.open(url, dispatch=True, config=EngineConfig(**json.loads(config))) as engine:
        sys.stdout.write(json.dumps({"dispatching": engine.health().dispatching}))
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
