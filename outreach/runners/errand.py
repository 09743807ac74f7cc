"""One request to make, in the two steps in which it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

import attrs

from outreach.models.dispatch import Dispatch, Outcome

Ask = Callable[[], Awaitable[Outcome]]
"""Makes the one request."""

FindProvider = Callable[[], Awaitable[Ask]]
"""Finds who is asked, and returns what asks: before the last checks, so that nothing lies between these and the
request. Raises `ConfigError` where there is nobody."""


def account_of(workspace_id: str, provider: str) -> str:
    """Return whose places requests to a provider take (`runners.places`)."""
    return f"{workspace_id}/{provider}"


@attrs.frozen(kw_only=True)
class Errand:
    """One request to make.

    Attributes:
        find_provider: Finds who is asked.
        account: Whose place it has; see `account_of`.
        paces: The paces that it keeps, by key, each with the time between two starts.
        stops: How many stops there had been at its commit; None where that is not known, and all is looked at anew.
    """

    dispatch: Dispatch
    find_provider: FindProvider
    account: str
    paces: Mapping[str, timedelta] = attrs.field(factory=dict)
    stops: int | None = None
