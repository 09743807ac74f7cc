"""A form that is sent again with its key, but with other content: by the way back of a browser, usually."""

from __future__ import annotations

from typing import Final

from outreach import InvalidRequest

_KEY: Final = "idempotency_key"
_BEFORE: Final = (
    "This form was sent before with something else, and that was done. Nothing was done now. If you want this too, "
    "send the form again."
)


def is_sent_before(error: InvalidRequest) -> bool:
    """Return whether the key of a form has been used for something else."""
    return any(one.path == _KEY for one in error.details)


def as_of_form(error: InvalidRequest) -> InvalidRequest:
    """Return an error for the person with the form, who does not know of its key and gets a new one with the answer."""
    return InvalidRequest(_BEFORE) if is_sent_before(error) else error
