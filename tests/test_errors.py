"""Errors as a task queue, or a pool of processes, hands them over."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable

import pytest

from outreach import errors
from outreach.errors import (
    AccountMissing,
    ArchiveUnavailable,
    CannotStart,
    DispatchRefused,
    IllegalTransition,
    InsufficientScope,
    InvalidRequest,
    LoginThrottled,
    NotFound,
    OutreachError,
    Problem,
    RateLimited,
    RequestInProgress,
)
from outreach.storage.base.writer import CommitUnknown
from outreach.sync.thread import EngineClosed

DETAIL = Problem(path="recipients[3].phone_number", message="is no number")

MADE: dict[type[OutreachError], Callable[[], OutreachError]] = {
    AccountMissing: lambda: AccountMissing("None.", workspace_id="w", provider="twilio", connectable=True),
    ArchiveUnavailable: lambda: ArchiveUnavailable("It is gone.", command="outreach-server db archives"),
    CannotStart: lambda: CannotStart([DETAIL]),
    DispatchRefused: lambda: DispatchRefused("Not here.", reason="lock"),
    IllegalTransition: lambda: IllegalTransition("campaign", "draft", "start", ["update"]),
    InsufficientScope: lambda: InsufficientScope(["send", "manage"]),
    InvalidRequest: lambda: InvalidRequest(details=[DETAIL]),
    NotFound: lambda: NotFound("campaign", "7"),
    RateLimited: lambda: RateLimited(limit=600, retry_after_seconds=7),
    LoginThrottled: lambda: LoginThrottled(retry_after_seconds=7),
    RequestInProgress: lambda: RequestInProgress(retry_after_seconds=2),
}

KINDS = [
    *(found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, OutreachError)),
    CommitUnknown,
    EngineClosed,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hand_over", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])  # noqa: S301 - our own
def test_an_error_is_the_same_in_another_process(
    kind: type[OutreachError], hand_over: Callable[[OutreachError], OutreachError]
) -> None:
    """A pool that cannot read an error is broken by it, and a queue shows another one."""
    error = MADE.get(kind, lambda: kind("It cannot be done."))()
    error.add_note("Told by a task.")
    found = hand_over(error)
    assert type(found) is kind
    assert (str(found), vars(found), found.args) == (str(error), vars(error), error.args)


def test_the_tree_of_errors_is_the_one_of_their_classes() -> None:
    """The docstring of the module draws each class below the class that it derives from."""
    drawn: dict[str, set[str]] = {}
    above: list[str] = []
    for branches, name in re.findall(r"^    ((?:[| ] {3})*(?:\+-- )?)([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE):
        depth = len(branches) // 4
        assert depth <= len(above), name
        above[depth:] = [name]
        drawn.setdefault(name, set())
        if depth:
            drawn[above[depth - 1]].add(name)
    public: set[type[OutreachError]] = {kind for kind in KINDS if kind.__module__ == errors.__name__}
    assert drawn == {kind.__name__: {one.__name__ for one in public & {*kind.__subclasses__()}} for kind in public}
