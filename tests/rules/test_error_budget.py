from __future__ import annotations

from collections.abc import Sequence

import pytest

from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState
from outreach.rules.settlement import counts_against_budget, is_spent
from outreach.testing.builders import make_dispatch

S = DispatchState


def one(state: DispatchState, reason: str | None = None) -> Dispatch:
    """Return a dispatch with an outcome."""
    return make_dispatch(message_id="m", state=state, reason=reason)


GOOD, BAD = one(S.ACCEPTED), one(S.UNKNOWN, "timeout")


@pytest.mark.parametrize(
    ("dispatch", "trouble"),
    [
        (one(S.ACCEPTED), False),
        (one(S.ACCEPTED, "bad_sender"), True),
        (one(S.ACCEPTED, "unreachable"), False),
        (one(S.ACCEPTED, "filtered"), False),
        (one(S.ACCEPTED, "opted_out"), False),
        (one(S.UNKNOWN, "timeout"), True),
        (one(S.UNKNOWN, "adapter_error"), True),
        (one(S.UNCONFIRMED, "no_evidence"), True),
        (one(S.GIVEN_UP, "operator_retry"), True),
        (one(S.UNKNOWN, "worker_lost"), False),
        (one(S.UNKNOWN, "interrupted"), False),
        (one(S.UNCONFIRMED, "worker_lost"), False),
        (one(S.REFUSED, "provider_auth"), True),
        (one(S.REFUSED, "provider_funds"), True),
        (one(S.REFUSED, "bad_sender"), True),
        (one(S.REFUSED, "rejected"), True),
        (one(S.REFUSED, "invalid_number"), False),
        (one(S.REFUSED, "unreachable"), False),
        (one(S.REFUSED, "opted_out"), False),
        (one(S.REFUSED, "temporary"), False),
        (one(S.DEFERRED, "rate_limited"), False),
        (one(S.NOT_SENT, "not_connected"), False),
        (one(S.WITHDRAWN, "rejected"), False),
    ],
)
def test_what_counts(dispatch: Dispatch, trouble: bool) -> None:
    """Unknown and provider-class failures count, contact-class ones and our own deaths do not.

    docs/rules.md#error-budget.
    """
    assert counts_against_budget(dispatch) is trouble


@pytest.mark.parametrize(
    ("history", "spent"),
    [
        ([], False),
        ([BAD] * 4, False),
        ([BAD] * 5, True),
        ([BAD] * 4 + [GOOD] + [BAD] * 4, False),
        ([GOOD] + [BAD] * 5, False),
        ([GOOD, BAD] * 10, True),
        ([GOOD, BAD] * 9 + [GOOD], False),
        ([GOOD] * 11 + [BAD] * 9, False),
        ([GOOD] * 10 + [BAD] * 10, True),
        ([GOOD] * 20 + [BAD] * 20, False),
    ],
)
def test_five_in_a_row_or_half_of_the_last_twenty_spend_it(history: Sequence[Dispatch], spent: bool) -> None:
    """Newest first; fewer than twenty are not halved."""
    assert is_spent(history) is spent
