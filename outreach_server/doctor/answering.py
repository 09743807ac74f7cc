"""Whether the public address leads to this server, as far as that can be known from inside."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

import httpx

from outreach.models import DiagnosisFinding
from outreach_server.doctor.findings import finding

SECONDS: Final = 8.0


async def of_answer(
    url: str | None, *, transport: httpx.AsyncBaseTransport | None = None
) -> Sequence[DiagnosisFinding]:
    """Return whether something else than a server of this package answers at a public address, or nothing.

    Args:
        url: The public address; None if none is set.
        transport: How it is asked; None for the network.
    """
    if url is None:
        return []
    asked = f"{url}/healthz"
    try:
        async with httpx.AsyncClient(transport=transport, timeout=SECONDS, follow_redirects=False) as client:
            answer = await client.get(asked)
        told: Any = answer.json() if answer.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return [_unanswered(url, asked, f"the answer is {str(error) or type(error).__name__}")]
    if isinstance(told, dict) and told.get("status") == "ok":
        return []
    return [_unanswered(url, asked, f"something else answers, with {answer.status_code}")]


def _unanswered(url: str, asked: str, what: str) -> DiagnosisFinding:
    return finding(
        "public_url_unanswered",
        f"No server of this package answers at {asked}: {what}. Look at the name, the proxy and the firewall; from "
        "inside some networks the public address cannot be reached, so ask from outside as well.",
        url,
        f"curl -i {shlex.quote(asked)}",
    )
