"""The sentences of logins and accounts."""

from __future__ import annotations

from typing import Final

from outreach import InvalidRequest

WAIT: Final = "Too many failed logins. Try again in {seconds} s."
LINK_GONE: Final = "This link is not valid: it was used, has expired, or was withdrawn. Ask for a new one."
SETUP_GONE: Final = (
    "This link is not valid: it is older than an hour, or a later start of the server has made another one. Restart "
    "`outreach-server serve` and open the link that it prints."
)
REQUIRED: Final = "Fill this in."
PROOF_ENDED: Final = "Your password was given too long ago: give it again. Nothing was changed."

_FIELDS: Final = {
    "email": "The e-mail address",
    "name": "The name",
    "password": "The password",
    "code": "The code",
    # What is wrong with it begins with what was typed.
    "default_region": "",
}


def problems_of(error: InvalidRequest) -> dict[str, str]:
    """Return what is wrong with each field of a form, in a sentence."""
    return {one.path: f"{_FIELDS.get(one.path, 'This')} {one.message}.".lstrip() for one in error.details}
