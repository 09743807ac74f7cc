"""Requests to a wrong address that names an account: a provider's callbacks, perhaps."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from typing import Final

from starlette.requests import Request

from outreach import NotFound
from outreach.models import Misdirection
from outreach.server_support import token_of
from outreach_server.context import server_of

_HARMLESS: Final = frozenset({"HEAD", "OPTIONS"})
"""Methods with which no provider sends anything."""

_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_MAX_IDS: Final = 4
"""The most ids in a path that are looked up."""


async def note_misdirection(request: Request, how: Misdirection) -> None:
    """Warn of a request that is not read, for each account whose id is in its path, in any letter case.

    Not of a test callback, whose test says what became of it.
    """
    if request.method in _HARMLESS or token_of(request.query_params) is not None:
        return
    found = (match[0].lower() for match in _ID.finditer(request.url.path))
    for account_id in itertools.islice(dict.fromkeys(found), _MAX_IDS):
        with suppress(NotFound):
            await server_of(request).engine.callbacks.misdirected(account_id, how)
