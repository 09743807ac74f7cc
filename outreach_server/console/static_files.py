"""The files that browsers load: served under a path with their hash, and kept by browsers for a year."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib import resources
from types import MappingProxyType
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_TYPES: Final = MappingProxyType(
    {
        "console.css": "text/css; charset=utf-8",
        "console.js": "text/javascript; charset=utf-8",
        "favicon.svg": "image/svg+xml",
        "htmx.js": "text/javascript; charset=utf-8",
        "icons.svg": "image/svg+xml",
        "sample.csv": "text/csv; charset=utf-8",
    }
)
SAMPLE: Final = resources.files("outreach_server") / "cli/serving/sample.csv"
"""Contacts of nobody, to look at and to try things with."""

_FOR_GOOD: Final = "public, max-age=31536000, immutable"


class StaticFiles:
    """Reads the files once, and answers requests for them."""

    def __init__(self) -> None:
        folder = resources.files("outreach_server.console") / "static"
        places = {"sample.csv": SAMPLE}
        self._files = {name: places.get(name, folder / name).read_bytes() for name in _TYPES}
        self.hashes: Mapping[str, str] = {
            name: sha256(content).hexdigest()[:12] for name, content in self._files.items()
        }

    async def answer(self, request: Request) -> Response:
        """Return a file.

        Raises:
            HTTPException: There is none of this name with this hash.
        """
        name = request.path_params["file"]
        if self.hashes.get(name) != request.path_params["hash"]:
            raise HTTPException(404)
        return Response(self._files[name], media_type=_TYPES[name], headers={"Cache-Control": _FOR_GOOD})
