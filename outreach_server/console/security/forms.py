"""Forms: where a request comes from, and the token that binds a form to its session."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import anyio
import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request

TOKEN_FIELD: Final = "token"  # noqa: S105 - a field's name
KEY_FIELD: Final = "key"
ACTION_FIELD: Final = "action"

MAX_FORM_BYTES: Final = 64 * 1024
"""The largest form without files."""

MAX_FIELDS: Final = 500

IDLE_SECONDS: Final = 30.0
"""A form that stops arriving for this long is given up, and one without a file after this time."""


@attrs.frozen(kw_only=True)
class FormTokens:
    """Makes and checks the tokens of forms.

    Attributes:
        keys: Secret keys that all processes of the database share, the newest first.
    """

    keys: Sequence[bytes] = attrs.field(repr=False)

    def token(self, subject: str, now: datetime) -> str:
        """Return the token of a session's or person's forms for a day."""
        return _token(self.keys[0], subject, now.date())

    def accepts(self, token: str, subject: str, now: datetime) -> bool:
        """Return whether a token is of this session or person, and of today or yesterday."""
        expected = (
            _token(key, subject, day) for key in self.keys for day in (now.date(), now.date() - timedelta(days=1))
        )
        # All are compared, so that the time says nothing.
        return sum(hmac.compare_digest(token.encode(), one.encode()) for one in expected) > 0


def _token(key: bytes, subject: str, day: date) -> str:
    return hmac.new(key, f"{day.isoformat()}\n{subject}".encode(), sha256).hexdigest()


async def read_form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form, the first of each name.

    Raises:
        HTTPException: It is too large, too slow, or no form.
    """
    body = bytearray()
    try:
        with anyio.fail_after(IDLE_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_FORM_BYTES:
                    raise HTTPException(413)
    except TimeoutError:
        raise HTTPException(408) from None
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise HTTPException(400) from None
    found: dict[str, str] = {}
    for name, value in fields:
        found.setdefault(name, value)
    return found


def is_same_origin(request: Request, public_url: str | None) -> bool:
    """Return whether a request was made by a page of this origin.

    Browsers say so by `Sec-Fetch-Site`. Those without it send `Origin`, which must be the origin of the host that the
    request names, or of the public URL behind a proxy that names another host. A request without both is refused.

    Args:
        request: The request.
        public_url: The configured public URL, if any.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    if origin is None:
        return False
    ours = {f"{request.url.scheme}://{request.headers.get('host', '')}".lower()}
    if public_url:
        public = urlsplit(public_url)
        ours = {f"{public.scheme}://{public.netloc}".lower()}
    return origin.lower() in ours
