"""Whether the public address leads to this server, as far as that can be known from inside."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

import httpx

from outreach.errors import Problem
from outreach_server.cli.doctor.findings import finding
from outreach_server.contract import CONTRACT_NAME, contract_bytes

SECONDS: Final = 8.0

_TITLE: Final = re.compile(rb"(?m)^  title: .+$")


async def of_answer(url: str | None, *, transport: httpx.AsyncBaseTransport | None = None) -> Sequence[Problem]:
    """Return whether something else than a server of this package answers at a public address, or nothing.

    Args:
        url: The public address; None if none is set.
        transport: The HTTP transport; None for the network.
    """
    if url is None:
        return []
    # Proxies keep /healthz and /readyz from the outside.
    document_url = f"{url}/{CONTRACT_NAME}"
    try:
        async with httpx.AsyncClient(transport=transport, timeout=SECONDS, follow_redirects=False) as client:
            answer = await client.get(document_url)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return [_unanswered(url, document_url, f"no answer came ({str(error) or type(error).__name__})")]
    title = _TITLE.search(contract_bytes())
    if answer.is_success and title is not None and title[0] in answer.content:
        return []
    return [_unanswered(url, document_url, f"something else answers, with {answer.status_code}")]


def _unanswered(url: str, document_url: str, what: str) -> Problem:
    return finding(
        "public_url_unanswered",
        f"No server of this package answers at {document_url}: {what}. Look at the name, the proxy and the firewall; "
        "from inside some networks the public address cannot be reached, so ask from outside as well.",
        url,
        looks=[f"curl -i {shlex.quote(document_url)}"],
    )
