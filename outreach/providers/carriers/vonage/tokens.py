"""The two kinds of JSON Web Tokens at Vonage: ours, by which an application is known, and theirs, on callbacks.

https://developer.vonage.com/en/getting-started/concepts/authentication and
https://developer.vonage.com/en/getting-started/concepts/webhooks (signed webhooks). PyJWT signs and verifies, each kind
by one algorithm, which nothing in a token can change; the claims are checked here, by the engine's clock.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from outreach.core.extras import needed_for
from outreach.protocols.adapter import Callback, CallbackRefused
from outreach.providers.http.callback_bodies import json_event
from outreach.providers.http.signatures import equal_in_constant_time, require_header, require_recent, require_valid

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from jwt import PyJWS

TOKEN_LIFETIME_SECONDS: Final = 900
"""How long our tokens are valid."""

_LONGEST: Final = 8192
_SCHEME: Final = "bearer"


def load_private_key(pem: str) -> RSAPrivateKey:
    """Return the private key of an application.

    Raises:
        ValueError: It is no RSA key in PEM without a password.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (TypeError, UnsupportedAlgorithm):
        raise ValueError("no usable key") from None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("no RSA key")  # noqa: TRY004 - the caller's value is wrong, not its type
    return key


def application_token(key: RSAPrivateKey, *, application_id: str, token_id: str, now: datetime) -> str:
    """Return a token of an application, RS256.

    Args:
        key: The application's private key.
        application_id: Which application it is.
        token_id: Another one for each token.
        now: The present moment.
    """
    with needed_for("Sending as an application of Vonage"):
        import jwt

    issued = int(now.timestamp())
    claims = {"application_id": application_id, "iat": issued, "exp": issued + TOKEN_LIFETIME_SECONDS, "jti": token_id}
    return jwt.encode(claims, key, algorithm="RS256")


def callback_token(body: bytes, *, api_key: str, secret: str, token_id: str, now: datetime) -> str:
    """Return the token of a callback, as Vonage makes it."""
    claims = {
        "iat": int(now.timestamp()),
        "jti": token_id,
        "iss": "Vonage",
        "api_key": api_key,
        "payload_hash": hashlib.sha256(body).hexdigest(),
    }
    with needed_for("A callback of Vonage"):
        return _verifier().encode(json.dumps(claims).encode(), secret, algorithm="HS256")


def verify_callback(callback: Callback, *, api_key: str, secret: str, now: datetime) -> None:
    """Verify the token of a callback: its signature, whose it is, its times, and that it is of this body.

    Raises:
        CallbackRefused: It is not Vonage's, too old, or of another body.
    """
    with needed_for("A callback of Vonage"):
        from jwt import InvalidAlgorithmError, InvalidSignatureError, PyJWTError

    scheme, _, token = require_header(callback.headers, "authorization").partition(" ")
    if scheme.lower() != _SCHEME or len(token) > _LONGEST or not token.isascii():
        raise CallbackRefused("The callback carries no token.")
    try:
        claims = json_event(_verifier().decode(token.strip(), secret, algorithms=["HS256"]))
    except InvalidAlgorithmError:
        raise CallbackRefused("The token is signed by an algorithm that is not the agreed one.") from None
    except InvalidSignatureError:
        raise CallbackRefused("The signature does not match the body.") from None
    # A header of thousands of brackets ends in RecursionError, which PyJWT lets through.
    except (PyJWTError, RecursionError):
        raise CallbackRefused("The callback carries no token.") from None
    _require_text(claims, "api_key", api_key)
    _require_text(claims, "payload_hash", hashlib.sha256(callback.body).hexdigest())
    issued = _time(claims, "iat")
    if issued is None:
        raise CallbackRefused("The token has no time.")
    require_recent(issued, now=now)
    require_valid(now=now, not_before=_time(claims, "nbf"), expires=_time(claims, "exp"))


def _require_text(claims: Mapping[str, Any], name: str, expected: str) -> None:
    given = claims.get(name)
    if not isinstance(given, str) or not equal_in_constant_time(given.lower(), expected.lower()):
        raise CallbackRefused(f"The token's {name} does not match.")


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a time of a token in Unix seconds (RFC 7519, 4.1); None where it has none of that name."""
    given = claims.get(name)
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise CallbackRefused(f"The token's {name} is not a time.")
    return given


@functools.cache
def _verifier() -> PyJWS:
    """Return what verifies HS256 with a secret of any length: Vonage chooses it; PyJWT warns of short ones."""
    from jwt import PyJWS
    from jwt.algorithms import HMACAlgorithm

    class VonagesSecret(HMACAlgorithm):
        def check_key_length(self, key: bytes) -> None:
            return None

    verifier = PyJWS(algorithms=[])
    verifier.register_algorithm("HS256", VonagesSecret(HMACAlgorithm.SHA256))
    return verifier
